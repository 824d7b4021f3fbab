/* gguf_decode_x86.h - for gguf_loops.h with AVX2 and above: an f16 without a
 * call, which would end the use of wide registers, and a table of 16 bytes.
 */
#include <stdbool.h>

#include "kernels/x86/intrin.h"

LB_TARGET("avx2,f16c") LB_INLINE float loop_x86_half(uint16_t h)
{
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h)));
}

/* The levels of 16 bytes of codes: those of the low halves first. */
typedef struct {
    __m128i low, high;
} loop_x86_pair;

LB_TARGET("avx2,f16c")
LB_INLINE loop_x86_pair loop_x86_find(const int8_t *level, const uint8_t *from)
{
    const __m128i t = _mm_loadu_si128((const __m128i *)(const void *)level);
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)from);
    const __m128i low = _mm_set1_epi8(15);
    return (loop_x86_pair){
        _mm_shuffle_epi8(t, _mm_and_si128(b, low)),
        _mm_shuffle_epi8(t, _mm_and_si128(_mm_srli_epi16(b, 4), low))};
}

LB_TARGET("avx2,f16c")
LB_INLINE void loop_x86_lookup(const int8_t *level, const uint8_t *from,
                               int8_t *code)
{
    const loop_x86_pair p = loop_x86_find(level, from);
    _mm_storeu_si128((__m128i *)(void *)code, p.low);
    _mm_storeu_si128((__m128i *)(void *)(code + 16), p.high);
}

LB_TARGET("avx2,f16c")
LB_INLINE void loop_x86_eight(__m128i bytes, __m256 d, float *out)
{
    const __m256 code = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
    _mm256_storeu_ps(out, _mm256_mul_ps(d, code));
}

LB_TARGET("avx2,f16c")
LB_INLINE void loop_x86_levels(const int8_t *level, const uint8_t *from,
                               float d, float *out)
{
    const loop_x86_pair p = loop_x86_find(level, from);
    const __m256 v = _mm256_set1_ps(d);
    loop_x86_eight(p.low, v, out);
    loop_x86_eight(_mm_srli_si128(p.low, 8), v, out + 8);
    loop_x86_eight(p.high, v, out + 16);
    loop_x86_eight(_mm_srli_si128(p.high, 8), v, out + 24);
}

#define LOOP_HALF   loop_x86_half
#define LOOP_LEVELS loop_x86_levels
#define LOOP_LOOKUP loop_x86_lookup
