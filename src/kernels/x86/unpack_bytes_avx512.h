/* unpack_bytes_avx512.h - lines of numbers from signed bytes, with AVX-512. */
#ifndef LB_UNPACK_BYTES_AVX512_H
#define LB_UNPACK_BYTES_AVX512_H

#include <float.h>
#include <math.h>

#include "kernels/x86/unpack_avx512.h"

enum { SOME = 32, FLOATS = 16, AHEAD = LB_UNPACK_AHEAD };

/* What a scale does to codes, as in decode_avx512.c. */
typedef enum { TIMES, TWICE, OVER } by;

typedef struct {
    __m512 a, b;
} factors;

AVX512 LB_INLINE __m512 scaled(const by how, __m512i code, factors f)
{
    const __m512 x = _mm512_cvtepi32_ps(code);
    if (how == OVER) {
        const __m512 q = _mm512_mul_ps(x, f.b);
        return _mm512_fmadd_ps(_mm512_fnmadd_ps(q, f.a, x), f.b, q);
    }
    const __m512 y = _mm512_mul_ps(x, f.a);
    return how == TWICE ? _mm512_mul_ps(y, f.b) : y;
}

/* The reference must do it; here also if NaNs might come of it. */
LB_INLINE bool is_wild(const by how, float s)
{
    const float size = fabsf(s);
    if (how == TIMES) return !(size <= FLT_MAX);
    if (how == TWICE) return !(size <= 0x1p120f);
    return !LB_EXACT || !(size >= 0x1p-100f && size <= 0x1p100f);
}

AVX512 LB_INLINE factors factors_of(const by how, float s)
{
    return (factors){_mm512_set1_ps(s),
                     _mm512_set1_ps(how == OVER ? 1.0f / s : 1.0f / 127.0f)};
}

AVX512 LB_INLINE __m512i sixteen(const int8_t *code)
{
    return _mm512_cvtepi8_epi32(
        _mm_loadu_si128((const __m128i *)(const void *)code));
}

/* A line: 16 numbers, or 32. */
AVX512 LB_INLINE void put_bytes(const lb_dtype d, lb_lines *l, const by how,
                                const int8_t *code, factors f)
{
    if (d == LB_BF16) {
        const __m512i two = _mm512_cvtepi16_epi32(
            _mm256_loadu_si256((const __m256i *)(const void *)code));
        const __m512i even = _mm512_srai_epi32(_mm512_slli_epi32(two, 24), 24);
        const __m512i odd = _mm512_srai_epi32(two, 8);
        lb_lines_put(l,
                     lb_bf16_joined(scaled(how, even, f), scaled(how, odd, f)));
        return;
    }
    const __m512 a = scaled(how, sixteen(code), f);
    if (d == LB_F32)
        lb_lines_put_ps(l, a);
    else
        lb_lines_put(
            l, lb_halves_of(d, a, scaled(how, sixteen(code + FLOATS), f)));
}

#endif
