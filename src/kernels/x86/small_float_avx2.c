/* small_float_avx2.c - small_float.h for AVX2. */
#include "kernels/small_float.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

/* Magnitudes from a table of eight. */
LB_TARGET("avx2") LB_INLINE void small_eight(__m128i code, __m256 v, float *out)
{
    const __m256 table = _mm256_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6);
    const __m256i q = _mm256_cvtepu8_epi32(code);
    const __m256i sign = _mm256_slli_epi32(_mm256_srli_epi32(q, 3), 31);
    const __m256 a = _mm256_permutevar8x32_ps(table, q);
    const __m256 w = _mm256_or_ps(a, _mm256_castsi256_ps(sign));
    _mm256_storeu_ps(out, _mm256_mul_ps(w, v));
}

LB_TARGET("avx2")
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

#define LOOP_EIGHT_BYTES small_eight_bytes
#define LOOP_FN          LB_TARGET("avx2") static inline
#define LOOP_TABLE       lb_small_decoders_avx2
#include "kernels/small_float_loops.h"
#endif
