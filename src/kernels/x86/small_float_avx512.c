/* small_float_avx512.c - small_float.h for AVX-512. */
#include "kernels/small_float.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define SMALL_TARGET LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq")

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

#define LOOP_EIGHT_BYTES small_eight_bytes
#define LOOP_FN          SMALL_TARGET static inline
#define LOOP_TABLE       lb_small_decoders_avx512
#include "kernels/small_float_loops.h"
#endif
