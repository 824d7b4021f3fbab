/* dotint_avx512.c - products of whole numbers: the 6x4 tile for AVX-512, with
 * vpdpwssd where VNNI is, with vpmaddwd and vpaddd where it is not.
 *
 *            w: 4 rows              24 accumulators of 16 sums along the depth,
 *          +----+----+----+----+    four vectors of w, one of x at a time and a
 *   x: 6   | r[i][0..3]        |    product: 30 of 32 registers. A step of 32
 *   rows   +----+----+----+----+    numbers is 24 products against 10 loads.
 *
 * Sixteen sums are first folded to eight, which is exact, and these as in
 * dotint_avx2.c: the bits are the same. So are panels, but that both vectors
 * of a step are one.
 */
#include "kernels/dotint.h"

#if defined(__x86_64__)
#include "kernels/x86/dotint_pack.h"
#include "kernels/x86/intrin.h"

enum { MR = 6, NR = 4, LANES = 32 };

#define LEVEL "avx2,fma,avx512f,avx512bw,avx512vl,avx512dq"

LB_TARGET(LEVEL)
LB_INLINE __m512i load(const int16_t *p)
{
    __m512i v = _mm512_loadu_si512((const void *)p);
    LB_KEEP_512(v);
    return v;
}

LB_TARGET(LEVEL)
LB_INLINE __m512i add_product(__m512i sum, __m512i x, __m512i w)
{
    __m512i t = _mm512_madd_epi16(x, w);
    LB_KEEP_512(t);
    sum = _mm512_add_epi32(sum, t);
    LB_KEEP_512(sum);
    return sum;
}

/* Compilers copy the accumulator of the intrinsic before and after. */
#if defined(LB_SIMDE)
#define add_product_vnni add_product
#else
LB_TARGET(LEVEL)
LB_INLINE __m512i add_product_vnni(__m512i sum, __m512i x, __m512i w)
{
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
    return sum;
}
#endif

/* ---- folds and results ----------------------------------------------------
 */

LB_TARGET(LEVEL)
LB_INLINE __m256i halves(__m512i sum)
{
    return _mm256_add_epi32(_mm512_castsi512_si256(sum),
                            _mm512_extracti64x4_epi64(sum, 1));
}

/* The four sums of a row. */
LB_TARGET(LEVEL)
LB_INLINE __m128 sums_4(const __m512i *r)
{
    const __m256i a = _mm256_hadd_epi32(halves(r[0]), halves(r[1]));
    const __m256i b = _mm256_hadd_epi32(halves(r[2]), halves(r[3]));
    const __m256i s = _mm256_hadd_epi32(a, b);
    return _mm_cvtepi32_ps(_mm_add_epi32(_mm256_castsi256_si128(s),
                                         _mm256_extracti128_si256(s, 1)));
}

LB_TARGET(LEVEL)
LB_INLINE __m128 sums_4_fine(const __m512i *r)
{
    const __m256 a = _mm256_hadd_ps(_mm256_cvtepi32_ps(halves(r[0])),
                                    _mm256_cvtepi32_ps(halves(r[1])));
    const __m256 b = _mm256_hadd_ps(_mm256_cvtepi32_ps(halves(r[2])),
                                    _mm256_cvtepi32_ps(halves(r[3])));
    const __m256 s = _mm256_hadd_ps(a, b);
    return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

LB_TARGET(LEVEL)
LB_INLINE void put_4(__m128 sum, __m128 ws, const float *xs, bool first,
                     float *c)
{
    const __m128 old = first ? _mm_setzero_ps() : _mm_loadu_ps(c);
    _mm_storeu_ps(c, _mm_fmadd_ps(_mm_mul_ps(sum, ws), _mm_loadu_ps(xs), old));
}

/* ---- tiles ----------------------------------------------------------------
 */

/* rows and vnni are constants where this is inlined. */
LB_TARGET(LEVEL)
LB_INLINE void tile_rows(const int rows, const bool vnni, int64_t k,
                         const int16_t *x, const int16_t *w, const float *xs,
                         const float *ws, bool fine, bool first, float *c)
{
    __m512i r[MR][NR];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        LB_UNROLL
        for (int j = 0; j < NR; j++) {
            r[i][j] = _mm512_setzero_si512();
            LB_KEEP_512(r[i][j]);
        }
    }
    for (int64_t kk = 0; kk < k; kk += LANES) {
        __m512i v[NR];
        LB_UNROLL
        for (int j = 0; j < NR; j++)
            v[j] = load(w + j * LANES);
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m512i xi = load(x + i * LANES);
            LB_UNROLL
            for (int j = 0; j < NR; j++)
                r[i][j] = vnni ? add_product_vnni(r[i][j], xi, v[j])
                               : add_product(r[i][j], xi, v[j]);
        }
        x += rows * LANES;
        w += NR * LANES;
    }
    const __m128 scale = _mm_loadu_ps(ws);
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        put_4(fine ? sums_4_fine(r[i]) : sums_4(r[i]), scale, xs + i * NR,
              first, c + i * NR);
}

LB_TARGET(LEVEL)
LB_INLINE void tile_any(const bool vnni, int rows, int64_t k, const int16_t *x,
                        const int16_t *w, const float *xs, const float *ws,
                        bool fine, bool first, float *c)
{
    switch (rows) {
    case 6:
        tile_rows(6, vnni, k, x, w, xs, ws, fine, first, c);
        break;
    case 5:
        tile_rows(5, vnni, k, x, w, xs, ws, fine, first, c);
        break;
    case 4:
        tile_rows(4, vnni, k, x, w, xs, ws, fine, first, c);
        break;
    case 3:
        tile_rows(3, vnni, k, x, w, xs, ws, fine, first, c);
        break;
    case 2:
        tile_rows(2, vnni, k, x, w, xs, ws, fine, first, c);
        break;
    default:
        tile_rows(1, vnni, k, x, w, xs, ws, fine, first, c);
    }
}

LB_TARGET(LEVEL)
static void tile(int rows, int64_t k, const int16_t *x, const int16_t *w,
                 const float *xs, const float *ws, bool fine, bool first,
                 float *c)
{
    tile_any(false, rows, k, x, w, xs, ws, fine, first, c);
}

LB_TARGET(LEVEL)
static void tile_vnni(int rows, int64_t k, const int16_t *x, const int16_t *w,
                      const float *xs, const float *ws, bool fine, bool first,
                      float *c)
{
    tile_any(true, rows, k, x, w, xs, ws, fine, first, c);
}

const lb_dotint lb_dotint_avx512 = {
    .name = "dot i16 avx512",
    .mr = MR,
    .nr = NR,
    .lanes = LANES,
    .kc = LB_DOTINT_KC,
    .largest = lb_largest_avx2,
    .round = lb_round_row_avx2_32,
    .unpack = lb_unpack_avx2,
    .turn = lb_turn_lines_avx2,
    .ratios = lb_ratios_avx2,
    .pack = lb_pack_avx2_32,
    .tile = tile,
};

const lb_dotint lb_dotint_vnni = {
    .name = "dot i16 avx512vnni",
    .mr = MR,
    .nr = NR,
    .lanes = LANES,
    .kc = LB_DOTINT_KC,
    .largest = lb_largest_avx2,
    .round = lb_round_row_avx2_32,
    .unpack = lb_unpack_avx2,
    .turn = lb_turn_lines_avx2,
    .ratios = lb_ratios_avx2,
    .pack = lb_pack_avx2_32,
    .tile = tile_vnni,
};
#endif
