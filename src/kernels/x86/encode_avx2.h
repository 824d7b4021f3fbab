/* encode_avx2.h - what the encoders with AVX2 share. */
#ifndef LB_ENCODE_AVX2_H
#define LB_ENCODE_AVX2_H

#include "kernels/encode.h"
#include "kernels/x86/intrin.h"

#define AVX2 LB_TARGET("avx2,fma,f16c")

AVX2 LB_INLINE __m256 lb_abs8(__m256 x)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

AVX2 LB_INLINE float lb_max_of_8(__m256 v)
{
    __m128 m =
        _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

/* The numbers of a, b, c and d as 32 bytes, saturated, in fours:
 *   a0-3 b0-3 c0-3 d0-3 | a4-7 b4-7 c4-7 d4-7 */
AVX2 LB_INLINE __m256i lb_bytes_in_fours(__m256i a, __m256i b, __m256i c,
                                         __m256i d)
{
    return _mm256_packs_epi16(_mm256_packs_epi32(a, b),
                              _mm256_packs_epi32(c, d));
}

/* The fours in their order. */
AVX2 LB_INLINE __m256i lb_sort_fours(__m256i v)
{
    return _mm256_permutevar8x32_epi32(
        v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Asks for the lines of `few` numbers (16 to a line) that lie n numbers behind
 * x. Runs are read from memory to be looked through, and from the first cache
 * to be encoded; meanwhile memory would rest, so encoders ask for the run that
 * follows, if it is not too long to be kept. It may lie past the end of the
 * array, so C must not see it as a pointer into that. */
LB_INLINE void lb_fetch_next(const float *x, int64_t n, int few)
{
    const uintptr_t at = (uintptr_t)x + (uintptr_t)n * sizeof *x;
    LB_UNROLL
    for (int i = 0; i < few; i += 16)
        __builtin_prefetch((const void *)(at + (uintptr_t)i * sizeof *x));
}

/* See lb_encode_kernel. */
void lb_totals_avx2(const float *x, int64_t n, float least, lb_total *each);
void lb_moments_avx2(const float *x, int64_t n, lb_moments *each);
void lb_ternary_avx2(const float *x, int64_t n, float cut, uint8_t *byte);
void lb_binary_avx2(const float *x, int64_t n, uint8_t *byte);

/* v = x / by or x * by, as lb_quotient says; how is a constant where this is
 * inlined. v is a number, or x * by is not rounded further. */
AVX2 LB_INLINE __m256 lb_quotient8(lb_quotient how, __m256 x, __m256 by)
{
    const __m256 v =
        how == LB_PRODUCT ? _mm256_mul_ps(x, by) : _mm256_div_ps(x, by);
    if (how == LB_QUOTIENT_F16)
        return _mm256_cvtph_ps(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    if (how == LB_QUOTIENT_BF16) {
        const __m256i u = _mm256_castps_si256(v);
        const __m256i odd =
            _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
        const __m256i up = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
        return _mm256_castsi256_ps(_mm256_and_si256(
            _mm256_add_epi32(u, up), _mm256_set1_epi32((int)0xffff0000u)));
    }
    return v;
}

#endif
