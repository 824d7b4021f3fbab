/* small_float_avx2.c - small_float.h for AVX2. */
#include "kernels/small_float.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

/* Magnitudes from a table of eight. */
LB_TARGET("avx2,f16c")
LB_INLINE void small_eight(__m128i code, __m256 v, float *out)
{
    const __m256 table = _mm256_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6);
    const __m256i q = _mm256_cvtepu8_epi32(code);
    const __m256i sign = _mm256_slli_epi32(_mm256_srli_epi32(q, 3), 31);
    const __m256 a = _mm256_permutevar8x32_ps(table, q);
    const __m256 w = _mm256_or_ps(a, _mm256_castsi256_ps(sign));
    _mm256_storeu_ps(out, _mm256_mul_ps(w, v));
}

LB_TARGET("avx2,f16c")
LB_INLINE void small_eight_bytes(const uint8_t *from, float v, float *out)
{
    const __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)from);
    const __m128i low = _mm_set1_epi8(15);
    const __m128i q = _mm_unpacklo_epi8(
        _mm_and_si128(b, low), _mm_and_si128(_mm_srli_epi16(b, 4), low));
    const __m256 scale = _mm256_set1_ps(v);
    small_eight(q, scale, out);
    small_eight(_mm_srli_si128(q, 8), scale, out + 8);
}

/* 16 codes as f16. E4M3 has a bias less by 8: its values are 2^-8 of what they
 * should be. */
LB_TARGET("avx2,f16c")
LB_INLINE __m256i small_halves_e4m3(const uint8_t *code)
{
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)code);
    const __m256i q = _mm256_cvtepu8_epi16(b);
    const __m256i em = _mm256_and_si256(q, _mm256_set1_epi16(0x7f));
    const __m256i sign = _mm256_slli_epi16(_mm256_srli_epi16(q, 7), 15);
    const __m256i nan = _mm256_cmpeq_epi16(em, _mm256_set1_epi16(0x7f));
    const __m256i h = _mm256_blendv_epi8(_mm256_slli_epi16(em, 7),
                                         _mm256_set1_epi16(0x7e00), nan);
    return _mm256_or_si256(h, sign);
}

LB_TARGET("avx2,f16c")
LB_INLINE __m256i small_halves_e5m2(const uint8_t *code)
{
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)code);
    return _mm256_slli_epi16(_mm256_cvtepu8_epi16(b), 8);
}

LB_TARGET("avx2,f16c")
LB_INLINE void small_e4m3(const uint8_t *code, float v, float *out)
{
    const __m256i h = small_halves_e4m3(code);
    const __m256 scale = _mm256_set1_ps(v), up = _mm256_set1_ps(0x1p8f);
    const __m256 a = _mm256_cvtph_ps(_mm256_castsi256_si128(h));
    const __m256 b = _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1));
    _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_mul_ps(a, up), scale));
    _mm256_storeu_ps(out + 8, _mm256_mul_ps(_mm256_mul_ps(b, up), scale));
}

LB_TARGET("avx2,f16c")
LB_INLINE void small_e5m2(const uint8_t *code, float v, float *out)
{
    const __m256i h = small_halves_e5m2(code);
    const __m256 scale = _mm256_set1_ps(v);
    const __m256 a = _mm256_cvtph_ps(_mm256_castsi256_si128(h));
    const __m256 b = _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1));
    _mm256_storeu_ps(out, _mm256_mul_ps(a, scale));
    _mm256_storeu_ps(out + 8, _mm256_mul_ps(b, scale));
}

#define LOOP_E4M3  small_e4m3
#define LOOP_E5M2  small_e5m2
#define LOOP_E2M1  small_eight_bytes
#define LOOP_FN    LB_TARGET("avx2,f16c") static inline
#define LOOP_TABLE lb_small_decoders_avx2
#include "kernels/small_float_loops.h"
#endif
