/* dotint_round_avx2.c - rows of x as whole numbers with AVX2.
 *
 * A step of the depth is two vectors, in the order in which bytes unpack (see
 * dotint_pack_avx2.c), for 16 lanes and for 32.
 */
#include "kernels/dotint.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/dotint_pack.h"

enum { STEP = LB_DOTINT_STEP };

/* Magnitudes of a step: the largest so far, as bits, which order as they do,
 * NaN on top; and sums as they will meet in lanes, two numbers to each. */
typedef struct {
    __m256i most;
    __m256 lo, hi;
} magnitudes;

/* Four numbers from each of two places. */
LB_TARGET("avx2")
LB_INLINE __m256 load_4_4(const float *a, const float *b)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a)),
                                _mm_loadu_ps(b), 1);
}

LB_TARGET("avx2")
LB_INLINE void add_16(const float *a, const float *b, magnitudes *m)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    const __m256 lo = _mm256_andnot_ps(sign, load_4_4(a, b));
    const __m256 hi = _mm256_andnot_ps(sign, load_4_4(a + 4, b + 4));
    m->most = _mm256_max_epi32(m->most, _mm256_castps_si256(lo));
    m->most = _mm256_max_epi32(m->most, _mm256_castps_si256(hi));
    m->lo = _mm256_add_ps(m->lo, lo);
    m->hi = _mm256_add_ps(m->hi, hi);
}

LB_TARGET("avx2")
float lb_largest_avx2(int64_t n, const float *x, float *lane)
{
    const __m256 zero = _mm256_setzero_ps();
    magnitudes m = {_mm256_setzero_si256(), zero, zero};
    for (; n >= STEP; n -= STEP, x += STEP) {
        add_16(x, x + 16, &m);
        add_16(x + 8, x + 24, &m);
    }
    if (n) {
        float rest[STEP] = {0};
        memcpy(rest, x, (size_t)n * sizeof *x);
        add_16(rest, rest + 16, &m);
        add_16(rest + 8, rest + 24, &m);
    }
    *lane = lb_largest_of_8(_mm256_castps_si256(_mm256_hadd_ps(m.lo, m.hi)));
    return lb_largest_of_8(m.most);
}

/* Eight numbers from each of two places, rounded: [a0..3 | b0..3] is the first
 * half, [a4..7 | b4..7] the second, which packing brings together. */
LB_TARGET("avx2")
LB_INLINE __m256i round_16(const float *a, const float *b, __m256 factor)
{
    const __m256 lo = load_4_4(a, b), hi = load_4_4(a + 4, b + 4);
    return _mm256_packs_epi32(_mm256_cvtps_epi32(_mm256_mul_ps(lo, factor)),
                              _mm256_cvtps_epi32(_mm256_mul_ps(hi, factor)));
}

/* Returns sums of pairs. */
LB_TARGET("avx2")
LB_INLINE __m256i round_step(const float *x, __m256 factor, int16_t *to,
                             lb_gaps at)
{
    const __m256i one = _mm256_set1_epi16(1);
    const __m256i a = round_16(x, x + 16, factor);
    const __m256i b = round_16(x + 8, x + 24, factor);
    lb_put_16(to, a);
    lb_put_16(to + at.second, b);
    return _mm256_add_epi32(_mm256_madd_epi16(a, one),
                            _mm256_madd_epi16(b, one));
}

LB_TARGET("avx2")
LB_INLINE int32_t sum_of_8(__m256i v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v),
                              _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

LB_TARGET("avx2")
LB_INLINE int32_t round_row(int64_t n, const float *x, float factor,
                            int16_t *to, lb_gaps at)
{
    const __m256 f = _mm256_set1_ps(factor);
    __m256i sum = _mm256_setzero_si256();
    for (; n >= STEP; n -= STEP, x += STEP, to += at.next)
        sum = _mm256_add_epi32(sum, round_step(x, f, to, at));
    if (n) {
        float rest[STEP] = {0};
        memcpy(rest, x, (size_t)n * sizeof *x);
        sum = _mm256_add_epi32(sum, round_step(rest, f, to, at));
    }
    return sum_of_8(sum);
}

LB_TARGET("avx2")
int32_t lb_round_row_avx2(int64_t n, const float *x, float factor, int16_t *to,
                          int64_t apart)
{
    return round_row(n, x, factor, to, lb_gaps_16(apart));
}

LB_TARGET("avx2")
int32_t lb_round_row_avx2_32(int64_t n, const float *x, float factor,
                             int16_t *to, int64_t apart)
{
    return round_row(n, x, factor, to, lb_gaps_32(apart));
}
#endif
