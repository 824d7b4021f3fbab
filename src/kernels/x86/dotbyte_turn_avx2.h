/* dotbyte_turn_avx2.h - codes from lines to quads, with AVX2. */
#ifndef LB_DOTBYTE_TURN_AVX2_H
#define LB_DOTBYTE_TURN_AVX2_H

#include "kernels/x86/intrin.h"

#define LB_AVX2_PACK LB_TARGET("avx2")

LB_AVX2_PACK LB_INLINE __m256i lb_load_2x16(const uint8_t *p, const uint8_t *q)
{
    const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)q);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
}

/* 16 bytes of 8 lines: quad q of all of them to v[q]. The halves of register
 * a begin as lines a and a + 4. */
LB_AVX2_PACK LB_INLINE void lb_turn_8_lines(const uint8_t *p, int64_t step,
                                            __m256i *v)
{
    const uint8_t *q = p + 4 * step;
    const __m256i a = lb_load_2x16(p, q), b = lb_load_2x16(p + step, q + step);
    const __m256i c = lb_load_2x16(p + 2 * step, q + 2 * step);
    const __m256i d = lb_load_2x16(p + 3 * step, q + 3 * step);
    const __m256i ab0 = _mm256_unpacklo_epi32(a, b);
    const __m256i ab1 = _mm256_unpackhi_epi32(a, b);
    const __m256i cd0 = _mm256_unpacklo_epi32(c, d);
    const __m256i cd1 = _mm256_unpackhi_epi32(c, d);
    v[0] = _mm256_unpacklo_epi64(ab0, cd0);
    v[1] = _mm256_unpackhi_epi64(ab0, cd0);
    v[2] = _mm256_unpacklo_epi64(ab1, cd1);
    v[3] = _mm256_unpackhi_epi64(ab1, cd1);
}

/* Dwords of a line in such an order that what unpacks of them is in order. */
LB_AVX2_PACK LB_INLINE __m256i lb_line_of_avx2(const uint8_t *p)
{
    const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    return _mm256_permutevar8x32_epi32(
        _mm256_loadu_si256((const __m256i *)(const void *)p), order);
}

#endif
