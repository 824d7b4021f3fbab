/* small_float_avx512.c - small_float.h for AVX-512. */
#include "kernels/small_float.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define SMALL_TARGET LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq,f16c")

SMALL_TARGET
LB_INLINE void small_eight_bytes(const uint8_t *from, float v, float *out)
{
    static const float level[16] = {0,     0.5F,  1,  1.5F,  2,  3,  4,  6,
                                    -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};
    const __m512 table = _mm512_loadu_ps(level);
    const __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)from);
    const __m128i low = _mm_set1_epi8(15);
    const __m128i q = _mm_unpacklo_epi8(
        _mm_and_si128(b, low), _mm_and_si128(_mm_srli_epi16(b, 4), low));
    const __m512 w = _mm512_permutexvar_ps(_mm512_cvtepu8_epi32(q), table);
    _mm512_storeu_ps(out, _mm512_mul_ps(w, _mm512_set1_ps(v)));
}

/* 16 codes as f16. E4M3 has a bias less by 8: its values are 2^-8 of what they
 * should be. */
SMALL_TARGET
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

SMALL_TARGET
LB_INLINE __m256i small_halves_e5m2(const uint8_t *code)
{
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)code);
    return _mm256_slli_epi16(_mm256_cvtepu8_epi16(b), 8);
}

SMALL_TARGET
LB_INLINE void small_e4m3(const uint8_t *code, float v, float *out)
{
    const __m512 a = _mm512_cvtph_ps(small_halves_e4m3(code));
    const __m512 w = _mm512_mul_ps(a, _mm512_set1_ps(0x1p8f));
    _mm512_storeu_ps(out, _mm512_mul_ps(w, _mm512_set1_ps(v)));
}

SMALL_TARGET
LB_INLINE void small_e5m2(const uint8_t *code, float v, float *out)
{
    const __m512 w = _mm512_cvtph_ps(small_halves_e5m2(code));
    _mm512_storeu_ps(out, _mm512_mul_ps(w, _mm512_set1_ps(v)));
}

#define LOOP_E4M3  small_e4m3
#define LOOP_E5M2  small_e5m2
#define LOOP_E2M1  small_eight_bytes
#define LOOP_FN    SMALL_TARGET static inline
#define LOOP_TABLE lb_small_decoders_avx512
#include "kernels/small_float_loops.h"
#endif
