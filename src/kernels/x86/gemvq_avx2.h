/* gemvq_avx2.h - what the AVX2 kernels of gemvq.h share. */
#ifndef LB_GEMVQ_AVX2_H
#define LB_GEMVQ_AVX2_H

#include "kernels/gemvq.h"
#include "kernels/gemvq_sets.h"
#include "kernels/x86/intrin.h"

#define AVX2        LB_TARGET("avx2,fma")
#define AVX2_INLINE AVX2 LB_INLINE

/* Of few rows: gemvq_few_avx2.c. */
void lb_gemvq_few8_avx2(const lb_gemvq_cols *c, int rows);
void lb_gemvq_few4_avx2(const lb_gemvq_cols *c, int rows);
void lb_gemvq_few2_avx2(const lb_gemvq_cols *c, int rows);
void lb_gemvq_few1_avx2(const lb_gemvq_cols *c, int rows);

AVX2_INLINE __m256i load_codes(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* Bytes of a and b in turns: eight of each 16, or the other eight. */
AVX2_INLINE __m256i interleave(__m256i a, __m256i b, bool second)
{
    return second ? _mm256_unpackhi_epi8(a, b) : _mm256_unpacklo_epi8(a, b);
}

/* Group g, of 32 bytes, of line i, where reading is all that takes time. */
AVX2_INLINE __m256i load_group(const lb_gemvq_rows *r, int i, int64_t g)
{
    LB_FETCH(r->codes[i] + 32 * g, r->ahead);
    return load_codes(r->codes[i] + 32 * g);
}

/* The same 16 bytes in both halves. */
AVX2_INLINE __m256i load_twice(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}

/* Adds up the lanes of each, in halves. */
AVX2_INLINE __m128 fold4(__m256 a, __m256 b, __m256 c, __m256 d)
{
    __m256 ab = _mm256_hadd_ps(a, b), cd = _mm256_hadd_ps(c, d);
    __m256 s = _mm256_hadd_ps(ab, cd);
    return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

AVX2_INLINE __m128i fold4_i32(__m256i a, __m256i b, __m256i c, __m256i d)
{
    __m256i ab = _mm256_hadd_epi32(a, b), cd = _mm256_hadd_epi32(c, d);
    __m256i s = _mm256_hadd_epi32(ab, cd);
    return _mm_add_epi32(_mm256_castsi256_si128(s),
                         _mm256_extracti128_si256(s, 1));
}

/* Indices of 16 levels to f32, four bytes of each looked up on their own. A
 * vector of 32 indices gives four of floats: float 4*h + e of vector v is
 * index 16*h + 4*v + e. */
typedef struct {
    __m256i byte[4], low;
} levels_f32;

AVX2_INLINE levels_f32 load_levels_f32(const lb_gemvq_table *t)
{
    return (levels_f32){{load_twice(t->byte[0]), load_twice(t->byte[1]),
                         load_twice(t->byte[2]), load_twice(t->byte[3])},
                        _mm256_set1_epi8(15)};
}

AVX2_INLINE void look_up_f32(const levels_f32 *l, __m256i index, __m256 *to)
{
    const __m256i b0 = _mm256_shuffle_epi8(l->byte[0], index);
    const __m256i b1 = _mm256_shuffle_epi8(l->byte[1], index);
    const __m256i b2 = _mm256_shuffle_epi8(l->byte[2], index);
    const __m256i b3 = _mm256_shuffle_epi8(l->byte[3], index);
    const __m256i low0 = _mm256_unpacklo_epi8(b0, b1);
    const __m256i low1 = _mm256_unpackhi_epi8(b0, b1);
    const __m256i high0 = _mm256_unpacklo_epi8(b2, b3);
    const __m256i high1 = _mm256_unpackhi_epi8(b2, b3);
    to[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(low0, high0));
    to[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(low0, high0));
    to[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(low1, high1));
    to[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(low1, high1));
}

AVX2_INLINE __m256i low_half(__m256i v, __m256i low)
{
    return _mm256_and_si256(v, low);
}

AVX2_INLINE __m256i high_half(__m256i v, __m256i low)
{
    return _mm256_and_si256(_mm256_srli_epi16(v, 4), low);
}

/* Numbers for units of 64, 32 or 16 elements of a group of 64, in the lanes of
 * its elements: to[0] for the first eight bytes of each 16, to[1] for the
 * others. */
AVX2_INLINE void spread_units(const float *from, int64_t g, int unit, int shift,
                              __m256 *to)
{
    if (unit == 64) {
        to[0] = to[1] = _mm256_broadcast_ss(from + (g >> shift));
    } else if (unit == 32) {
        const __m256d two =
            _mm256_broadcast_sd((const double *)(const void *)(from + 2 * g));
        to[0] = to[1] = _mm256_permutevar_ps(
            _mm256_castpd_ps(two), _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
    } else {
        const __m256 four = _mm256_castsi256_ps(load_twice(from + 4 * g));
        to[0] = _mm256_permutevar_ps(four,
                                     _mm256_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2));
        to[1] = _mm256_permutevar_ps(four,
                                     _mm256_setr_epi32(1, 1, 1, 1, 3, 3, 3, 3));
    }
}

/* Byte b of each lane at its top, zeros below: 2^24 times a code of 8 bits. */
AVX2_INLINE __m256i top_byte(__m256i v, int b)
{
    const char o = -1, c = (char)b;
    if (b == 3)
        return _mm256_and_si256(v, _mm256_set1_epi32((int32_t)0xff000000));
    return _mm256_shuffle_epi8(
        v, _mm256_broadcastsi128_si256(
               _mm_setr_epi8(o, o, o, c, o, o, o, (char)(c + 4), o, o, o,
                             (char)(c + 8), o, o, o, (char)(c + 12))));
}

#endif
