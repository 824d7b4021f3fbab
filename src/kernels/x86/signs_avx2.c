/* signs_avx2.c - statistics, ternary and binary codes with AVX2.
 *
 * The eight lanes of a sum (sums.h) are two registers of doubles, and a chain
 * of additions is slower than they are many: two chunks go together.
 */
#include "kernels/encode.h"

#if defined(__x86_64__)
#include <math.h>
#include <string.h>

#include "kernels/x86/encode_avx2.h"

/* ---- sums --------------------------------------------------------------- */

typedef struct {
    __m256d low, high; /* lanes 0-3, 4-7 */
} lanes;

AVX2 LB_INLINE lanes no_lanes(void)
{
    return (lanes){_mm256_setzero_pd(), _mm256_setzero_pd()};
}

AVX2 LB_INLINE double fold(lanes s)
{
    const __m256d a = _mm256_add_pd(s.low, s.high);
    const __m128d b =
        _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_add_sd(b, _mm_unpackhi_pd(b, b)));
}

AVX2 LB_INLINE lanes widen(__m256 x)
{
    return (lanes){_mm256_cvtps_pd(_mm256_castps256_ps128(x)),
                   _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
}

AVX2 LB_INLINE lanes load_wide(const float *x)
{
    return (lanes){_mm256_cvtps_pd(_mm_loadu_ps(x)),
                   _mm256_cvtps_pd(_mm_loadu_ps(x + 4))};
}

AVX2 LB_INLINE void add(lanes *to, lanes v)
{
    to->low = _mm256_add_pd(to->low, v.low);
    to->high = _mm256_add_pd(to->high, v.high);
}

/* Squares of distances from the mean. */
AVX2 LB_INLINE lanes squares(lanes v, __m256d mean)
{
    const __m256d a = _mm256_sub_pd(v.low, mean);
    const __m256d b = _mm256_sub_pd(v.high, mean);
    return (lanes){_mm256_mul_pd(a, a), _mm256_mul_pd(b, b)};
}

/* ---- moments ------------------------------------------------------------ */

AVX2 LB_INLINE void moments_pair(const float *x, int64_t next, lb_moments *each)
{
    const float *y = x + LB_CHUNK;
    lanes a = no_lanes(), b = a;
    for (int i = 0; i < LB_CHUNK; i += 8) {
        lb_fetch_next(x + 2 * i, next, 16);
        add(&a, load_wide(x + i));
        add(&b, load_wide(y + i));
    }
    const double ma = fold(a) / LB_CHUNK, mb = fold(b) / LB_CHUNK;
    const __m256d va = _mm256_set1_pd(ma), vb = _mm256_set1_pd(mb);
    a = b = no_lanes();
    for (int i = 0; i < LB_CHUNK; i += 8) {
        add(&a, squares(load_wide(x + i), va));
        add(&b, squares(load_wide(y + i), vb));
    }
    each[0] = (lb_moments){LB_CHUNK, ma, fold(a)};
    each[1] = (lb_moments){LB_CHUNK, mb, fold(b)};
}

AVX2 void lb_moments_avx2(const float *x, int64_t n, lb_moments *each)
{
    int64_t i = 0;
    for (; i + 2 * LB_CHUNK <= n; i += 2 * LB_CHUNK, each += 2)
        moments_pair(x + i, n, each);
    for (; i < n; i += LB_CHUNK)
        *each++ = lb_moments_of(x + i, n - i < LB_CHUNK ? n - i : LB_CHUNK);
}

/* ---- totals ------------------------------------------------------------- */

AVX2 LB_INLINE __m256i above(__m256 x, __m256 least)
{
    return _mm256_castps_si256(_mm256_cmp_ps(x, least, _CMP_GT_OQ));
}

AVX2 LB_INLINE int sum_of_8(__m256i v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v),
                              _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_unpackhi_epi64(s, s));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 1)));
}

/* |x| where that is above least: its lanes; how many: minus that. */
AVX2 LB_INLINE void kept(const float *x, __m256 least, lanes *sum,
                         __m256i *count)
{
    const __m256 v = lb_abs8(_mm256_loadu_ps(x));
    const __m256i is = above(v, least);
    *count = _mm256_add_epi32(*count, is);
    add(sum, widen(_mm256_and_ps(v, _mm256_castsi256_ps(is))));
}

AVX2 LB_INLINE void totals_pair(const float *x, __m256 least, lb_total *each)
{
    lanes a = no_lanes(), b = a;
    __m256i na = _mm256_setzero_si256(), nb = na;
    for (int i = 0; i < LB_CHUNK; i += 8) {
        kept(x + i, least, &a, &na);
        kept(x + LB_CHUNK + i, least, &b, &nb);
    }
    each[0] = (lb_total){(double)-sum_of_8(na), fold(a)};
    each[1] = (lb_total){(double)-sum_of_8(nb), fold(b)};
}

/* The same where all are. */
AVX2 LB_INLINE void totals_pair_of_all(const float *x, lb_total *each)
{
    lanes a = no_lanes(), b = a;
    for (int i = 0; i < LB_CHUNK; i += 8) {
        add(&a, widen(lb_abs8(_mm256_loadu_ps(x + i))));
        add(&b, widen(lb_abs8(_mm256_loadu_ps(x + LB_CHUNK + i))));
    }
    each[0] = (lb_total){LB_CHUNK, fold(a)};
    each[1] = (lb_total){LB_CHUNK, fold(b)};
}

AVX2 void lb_totals_avx2(const float *x, int64_t n, float least, lb_total *each)
{
    const __m256 limit = _mm256_set1_ps(least);
    int64_t i = 0;
    for (; i + 2 * LB_CHUNK <= n; i += 2 * LB_CHUNK, each += 2)
        if (least < 0)
            totals_pair_of_all(x + i, each);
        else
            totals_pair(x + i, limit, each);
    for (; i < n; i += LB_CHUNK)
        *each++ =
            lb_total_above(x + i, n - i < LB_CHUNK ? n - i : LB_CHUNK, least);
}

/* ---- ternary ------------------------------------------------------------ */

/* (x > cut) - (x < -cut) */
AVX2 LB_INLINE __m256i sign8(const float *x, __m256 cut, __m256 minus)
{
    const __m256 v = _mm256_loadu_ps(x);
    const __m256 over = _mm256_cmp_ps(v, cut, _CMP_GT_OQ);
    const __m256 under = _mm256_cmp_ps(v, minus, _CMP_LT_OQ);
    return _mm256_sub_epi32(_mm256_castps_si256(under),
                            _mm256_castps_si256(over));
}

/* The codes of 32 numbers, four to a byte: eight bytes as numbers of 32 bits,
 * in the order of lb_bytes_in_fours. */
AVX2 LB_INLINE __m256i ternary32(const float *x, __m256 cut, __m256 minus)
{
    const __m256i v =
        lb_bytes_in_fours(sign8(x, cut, minus), sign8(x + 8, cut, minus),
                          sign8(x + 16, cut, minus), sign8(x + 24, cut, minus));
    const __m256i code = _mm256_add_epi8(v, _mm256_set1_epi8(1));
    const __m256i two =
        _mm256_maddubs_epi16(code, _mm256_set1_epi16(4 << 8 | 1));
    return _mm256_madd_epi16(two, _mm256_set1_epi32(16 << 16 | 1));
}

AVX2 LB_INLINE void ternary128(const float *x, __m256 cut, __m256 minus,
                               uint8_t *byte)
{
    const __m256i a = _mm256_packus_epi32(ternary32(x, cut, minus),
                                          ternary32(x + 32, cut, minus));
    const __m256i b = _mm256_packus_epi32(ternary32(x + 64, cut, minus),
                                          ternary32(x + 96, cut, minus));
    const __m256i v = _mm256_packus_epi16(a, b);
    /* Even bytes are in the lower half, odd ones in the upper. */
    const __m128i even = _mm256_castsi256_si128(v);
    const __m128i odd = _mm256_extracti128_si256(v, 1);
    __m128i *to = (__m128i *)(void *)byte;
    _mm_storeu_si128(to, _mm_unpacklo_epi8(even, odd));
    _mm_storeu_si128(to + 1, _mm_unpackhi_epi8(even, odd));
}

AVX2 void lb_ternary_avx2(const float *x, int64_t n, float cut, uint8_t *byte)
{
    const __m256 plus = _mm256_set1_ps(cut), minus = _mm256_set1_ps(-cut);
    int64_t i = 0;
    for (; i + 128 <= n; i += 128) {
        lb_fetch_next(x + i, n, 128);
        ternary128(x + i, plus, minus, byte + i / 4);
    }
    if (i < n) { /* zeros follow: their code is the filler */
        float rest[128] = {0};
        uint8_t bytes[32];
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *x);
        ternary128(rest, plus, minus, bytes);
        memcpy(byte + i / 4, bytes, (size_t)(n - i + 3) / 4);
    }
}

/* ---- binary ------------------------------------------------------------- */

AVX2 LB_INLINE __m256i not_below(const float *x)
{
    const __m256 zero = _mm256_setzero_ps();
    return _mm256_castps_si256(
        _mm256_cmp_ps(_mm256_loadu_ps(x), zero, _CMP_GE_OQ));
}

AVX2 LB_INLINE uint32_t binary32(const float *x)
{
    const __m256i v = lb_bytes_in_fours(not_below(x), not_below(x + 8),
                                        not_below(x + 16), not_below(x + 24));
    return (uint32_t)_mm256_movemask_epi8(lb_sort_fours(v));
}

AVX2 void lb_binary_avx2(const float *x, int64_t n, uint8_t *byte)
{
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        lb_fetch_next(x + i, n, 32);
        const uint32_t bits = binary32(x + i);
        memcpy(byte + i / 8, &bits, sizeof bits);
    }
    if (i < n) {
        float rest[32];
        for (int j = 0; j < 32; j++)
            rest[j] = -1; /* their bit is the filler */
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *x);
        const uint32_t bits = binary32(rest);
        memcpy(byte + i / 8, &bits, (size_t)(n - i + 7) / 8);
    }
}
#endif
