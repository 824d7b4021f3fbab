/* dotword_avx2.c - products of 16-bit integers with vpmaddwd: the 6x16 tile for
 * AVX2. Sums of 32 bits are exact as long as the caller bounds x (dotbyte.h).
 *
 *            w: 16 rows        12 accumulators of 8 sums, a row of w to each
 *          +------+------+     lane, two vectors of w, a pair of x in every
 *   x: 6   | r[i][0..1]  |     lane, a product: 16 registers.
 *   rows   +------+------+
 */
#include "kernels/dotbyte.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/intrin.h"

enum { MR = 6, NR = 16, STEP = LB_DOTBYTE_STEP };

#define AVX2 LB_TARGET("avx2,fma")

/* ---- rounding ------------------------------------------------------------ */

AVX2 LB_INLINE __m256i round_16(const float *x, __m256 factor, __m256i *sum)
{
    const __m256i a =
        _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), factor));
    const __m256i b =
        _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8), factor));
    *sum = _mm256_add_epi32(*sum, _mm256_add_epi32(a, b));
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
}

AVX2 LB_INLINE void put_pairs(__m256i v, int8_t *to, int64_t apart)
{
    int32_t pair[8];
    _mm256_storeu_si256((__m256i *)(void *)pair, v);
    for (int i = 0; i < 8; i++)
        memcpy(to + i * apart, &pair[i], sizeof *pair);
}

AVX2 LB_INLINE int32_t sum_of_8(__m256i v)
{
    int32_t lane[8], sum = 0;
    _mm256_storeu_si256((__m256i *)(void *)lane, v);
    for (int i = 0; i < 8; i++)
        sum += lane[i];
    return sum;
}

AVX2 static int32_t round_row(int64_t n, const float *x, float factor,
                              int planes, int fields, int8_t *to, int64_t apart,
                              int64_t plane)
{
    const __m256 f = _mm256_set1_ps(factor);
    __m256i sum = _mm256_setzero_si256();
    (void)planes;
    (void)fields; /* 1 */
    (void)plane;
    for (; n > 0; n -= STEP, x += STEP, to += STEP / 2 * apart) {
        float rest[STEP] = {0};
        const float *from = x;
        if (n < STEP) from = memcpy(rest, x, (size_t)n * sizeof *x);
        put_pairs(round_16(from, f, &sum), to, apart);
        put_pairs(round_16(from + 16, f, &sum), to + 8 * apart, apart);
    }
    return sum_of_8(sum);
}

/* ---- tiles --------------------------------------------------------------- */

AVX2 LB_INLINE void put_8(__m256i sum, __m256 ws, __m256 xs, bool first,
                          float *c)
{
    const __m256 t = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), ws);
    const __m256 old = first ? _mm256_setzero_ps() : _mm256_loadu_ps(c);
    _mm256_storeu_ps(c, _mm256_fmadd_ps(t, xs, old));
}

/* rows is a constant where this is inlined. */
AVX2 LB_INLINE void tile_block(const int rows, const lb_dotbyte_x *x, int64_t k,
                               const lb_dotbyte_w *panel, bool first, float *c)
{
    const int8_t *from = x->bytes;
    const uint8_t *w = panel->bytes, *const end = w + k * 2 * NR;
    __m256i r[MR][2];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        r[i][0] = r[i][1] = _mm256_setzero_si256();
        LB_KEEP(r[i][0]);
        LB_KEEP(r[i][1]);
    }
    for (; w < end; w += NR * 4, from += rows * 4) {
        const __m256i w0 = _mm256_loadu_si256((const __m256i *)(const void *)w);
        const __m256i w1 =
            _mm256_loadu_si256((const __m256i *)(const void *)(w + 32));
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            int32_t pair;
            memcpy(&pair, from + i * 4, sizeof pair);
            const __m256i q = _mm256_set1_epi32(pair);
            r[i][0] = _mm256_add_epi32(r[i][0], _mm256_madd_epi16(w0, q));
            r[i][1] = _mm256_add_epi32(r[i][1], _mm256_madd_epi16(w1, q));
        }
    }
    const __m256 s0 = _mm256_loadu_ps(panel->scale);
    const __m256 s1 = _mm256_loadu_ps(panel->scale + 8);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        const __m256 xs = _mm256_set1_ps(x->scale[i]);
        put_8(r[i][0], s0, xs, first, c + i * NR);
        put_8(r[i][1], s1, xs, first, c + i * NR + 8);
    }
}

AVX2 LB_INLINE void tile_rows(const int rows, const lb_dotbyte_x *x, int64_t k,
                              const lb_dotbyte_w *w, bool first, float *c)
{
    lb_dotbyte_x x1 = *x;
    lb_dotbyte_w w1 = *w;
    do {
        const int64_t some = k < x1.share ? k : x1.share;
        tile_block(rows, &x1, some, &w1, first, c);
        lb_dotbyte_next(&x1, &w1, 2, NR);
        first = false;
        k -= some;
    } while (k > 0);
}

AVX2 static void tile(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                      bool first, float *c, lb_dotbyte_ask *ask)
{
    (void)ask; /* packing asks */
    switch (x->rows) {
    case 6:
        tile_rows(6, x, k, w, first, c);
        break;
    case 5:
        tile_rows(5, x, k, w, first, c);
        break;
    case 4:
        tile_rows(4, x, k, w, first, c);
        break;
    case 3:
        tile_rows(3, x, k, w, first, c);
        break;
    case 2:
        tile_rows(2, x, k, w, first, c);
        break;
    default:
        tile_rows(1, x, k, w, first, c);
    }
}

const lb_dotbyte lb_dotword_avx2 = {
    .name = "dot i16 rows avx2",
    .size = 2,
    .piece = 4,
    .mr = MR,
    .nr = NR,
    .round = round_row,
    .tile = tile,
};
#endif
