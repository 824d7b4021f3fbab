/* dotint_avx2.c - products of whole numbers: the 6x2 tile for AVX2.
 *
 *            w: 2 rows          12 accumulators of 8 sums along the depth, two
 *          +-------+-------+    vectors of w, one of x at a time and a product:
 *   x: 6   |r[i][0]|r[i][1]|    16 registers. A step of 16 numbers is 12
 *   rows   +-------+-------+    vpmaddwd, 12 vpaddd and 8 loads in 6 cycles.
 *
 * Eight sums are folded to one by a tree of horizontal additions that is the
 * same for every element: (0+1) + (2+3), then the two halves.
 */
#include "kernels/dotint.h"

#if defined(__x86_64__)
#include "kernels/x86/dotint_pack.h"
#include "kernels/x86/intrin.h"

enum { MR = 6, NR = 2, LANES = 16 };

/* Keeps a value in its register: compilers load again what is used twice, and
 * reorder the sums until they spill. */
#if defined(LB_SIMDE)
#define KEEP(v) ((void)0)
#else
#define KEEP(v) __asm__("" : "+x"(v))
#endif

LB_TARGET("avx2,fma")
LB_INLINE __m256i load(const int16_t *p)
{
    __m256i v = _mm256_load_si256((const __m256i *)(const void *)p);
    KEEP(v);
    return v;
}

LB_TARGET("avx2,fma")
LB_INLINE __m256i add_product(__m256i sum, __m256i x, __m256i w)
{
    __m256i t = _mm256_madd_epi16(x, w);
    KEEP(t);
    sum = _mm256_add_epi32(sum, t);
    KEEP(sum);
    return sum;
}

/* ---- folds --------------------------------------------------------------- */

/* Four sums; each half of the result has one half of each. */
LB_TARGET("avx2,fma")
LB_INLINE __m256i fold_4(__m256i a, __m256i b, __m256i c, __m256i d)
{
    return _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
}

LB_TARGET("avx2,fma")
LB_INLINE __m256 fold_4_fine(__m256i a, __m256i b, __m256i c, __m256i d)
{
    const __m256 fa = _mm256_cvtepi32_ps(a), fb = _mm256_cvtepi32_ps(b);
    const __m256 fc = _mm256_cvtepi32_ps(c), fd = _mm256_cvtepi32_ps(d);
    return _mm256_hadd_ps(_mm256_hadd_ps(fa, fb), _mm256_hadd_ps(fc, fd));
}

/* Two rows by two columns to four numbers. */
LB_TARGET("avx2,fma")
LB_INLINE __m128 sums_4(__m256i (*r)[NR], bool fine)
{
    if (fine) {
        const __m256 s = fold_4_fine(r[0][0], r[0][1], r[1][0], r[1][1]);
        return _mm_add_ps(_mm256_castps256_ps128(s),
                          _mm256_extractf128_ps(s, 1));
    }
    const __m256i s = fold_4(r[0][0], r[0][1], r[1][0], r[1][1]);
    return _mm_cvtepi32_ps(_mm_add_epi32(_mm256_castsi256_si128(s),
                                         _mm256_extracti128_si256(s, 1)));
}

/* Four rows to eight. */
LB_TARGET("avx2,fma")
LB_INLINE __m256 sums_8(__m256i (*r)[NR], bool fine)
{
    if (fine) {
        const __m256 s = fold_4_fine(r[0][0], r[0][1], r[1][0], r[1][1]);
        const __m256 t = fold_4_fine(r[2][0], r[2][1], r[3][0], r[3][1]);
        return _mm256_add_ps(_mm256_permute2f128_ps(s, t, 0x20),
                             _mm256_permute2f128_ps(s, t, 0x31));
    }
    const __m256i s = fold_4(r[0][0], r[0][1], r[1][0], r[1][1]);
    const __m256i t = fold_4(r[2][0], r[2][1], r[3][0], r[3][1]);
    return _mm256_cvtepi32_ps(
        _mm256_add_epi32(_mm256_permute2x128_si256(s, t, 0x20),
                         _mm256_permute2x128_si256(s, t, 0x31)));
}

/* ---- results ------------------------------------------------------------- */

LB_TARGET("avx2,fma")
LB_INLINE void put_8(__m256 sum, __m128 ws, const float *xs, bool first,
                     float *c)
{
    const __m256 t = _mm256_mul_ps(sum, _mm256_set_m128(ws, ws));
    const __m256 old = first ? _mm256_setzero_ps() : _mm256_loadu_ps(c);
    _mm256_storeu_ps(c, _mm256_fmadd_ps(t, _mm256_loadu_ps(xs), old));
}

LB_TARGET("avx2,fma")
LB_INLINE void put_4(__m128 sum, __m128 ws, const float *xs, bool first,
                     float *c)
{
    const __m128 old = first ? _mm_setzero_ps() : _mm_loadu_ps(c);
    _mm_storeu_ps(c, _mm_fmadd_ps(_mm_mul_ps(sum, ws), _mm_loadu_ps(xs), old));
}

/* The first two of four. */
LB_TARGET("avx2,fma")
LB_INLINE void put_2(__m128 sum, __m128 ws, const float *xs, bool first,
                     float *c)
{
    const __m128 zero = _mm_setzero_ps();
    const __m128 x = _mm_loadl_pi(zero, (const __m64 *)(const void *)xs);
    const __m128 old =
        first ? zero : _mm_loadl_pi(zero, (const __m64 *)(const void *)c);
    _mm_storel_pi((__m64 *)(void *)c,
                  _mm_fmadd_ps(_mm_mul_ps(sum, ws), x, old));
}

/* rows, fine and first are constants where this is inlined. */
LB_TARGET("avx2,fma")
LB_INLINE void put(const int rows, __m256i (*r)[NR], const float *xs,
                   const float *ws, bool fine, bool first, float *c)
{
    const __m128 w = _mm_setr_ps(ws[0], ws[1], ws[0], ws[1]);
    int i = 0;
    if (rows >= 4) {
        put_8(sums_8(r, fine), w, xs, first, c);
        i = 4;
    }
    if (rows - i >= 2) {
        put_4(sums_4(r + i, fine), w, xs + i * NR, first, c + i * NR);
        i += 2;
    }
    if (i < rows) {
        __m256i last[2][NR] = {{r[i][0], r[i][1]}, {r[i][0], r[i][1]}};
        put_2(sums_4(last, fine), w, xs + i * NR, first, c + i * NR);
    }
}

/* ---- tiles --------------------------------------------------------------- */

LB_TARGET("avx2,fma")
LB_INLINE void tile_rows(const int rows, int64_t k, const int16_t *x,
                         const int16_t *w, const float *xs, const float *ws,
                         bool fine, bool first, float *c)
{
    __m256i r[MR][NR];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        r[i][0] = _mm256_setzero_si256();
        r[i][1] = _mm256_setzero_si256();
        KEEP(r[i][0]);
        KEEP(r[i][1]);
    }
    for (int64_t kk = 0; kk < k; kk += 2 * LANES) {
        LB_UNROLL
        for (int half = 0; half < 2; half++) {
            const __m256i w0 = load(w), w1 = load(w + LANES);
            LB_UNROLL
            for (int i = 0; i < rows; i++) {
                const __m256i v = load(x + i * LANES);
                r[i][0] = add_product(r[i][0], v, w0);
                r[i][1] = add_product(r[i][1], v, w1);
            }
            x += rows * LANES;
            w += NR * LANES;
        }
    }
    if (fine)
        put(rows, r, xs, ws, true, first, c);
    else
        put(rows, r, xs, ws, false, first, c);
}

LB_TARGET("avx2,fma")
static void tile(int rows, int64_t k, const int16_t *x, const int16_t *w,
                 const float *xs, const float *ws, bool fine, bool first,
                 float *c)
{
    switch (rows) {
    case 6:
        tile_rows(6, k, x, w, xs, ws, fine, first, c);
        break;
    case 5:
        tile_rows(5, k, x, w, xs, ws, fine, first, c);
        break;
    case 4:
        tile_rows(4, k, x, w, xs, ws, fine, first, c);
        break;
    case 3:
        tile_rows(3, k, x, w, xs, ws, fine, first, c);
        break;
    case 2:
        tile_rows(2, k, x, w, xs, ws, fine, first, c);
        break;
    default:
        tile_rows(1, k, x, w, xs, ws, fine, first, c);
    }
}

const lb_dotint lb_dotint_avx2 = {
    .name = "dot i16 avx2",
    .mr = MR,
    .nr = NR,
    .lanes = LANES,
    .largest = lb_largest_avx2,
    .round = lb_round_row_avx2,
    .unpack = lb_unpack_avx2,
    .turn = lb_turn_lines_avx2,
    .ratios = lb_ratios_avx2,
    .widen = lb_widen_avx2,
    .scale = lb_scale_avx2,
    .widen_fields = lb_widen_fields_avx2,
    .scale_fields = lb_scale_fields_avx2,
    .tile = tile,
};
#endif
