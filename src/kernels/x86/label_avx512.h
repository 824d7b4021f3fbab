/* label_avx512.h - label_avx2.h for sixteen numbers. */
#ifndef LB_LABEL_AVX512_H
#define LB_LABEL_AVX512_H

#include "kernels/x86/label_avx2.h"

/* No NaNs of bf16, as there. */
LB_TARGET("avx512f")
LB_INLINE __m512 lb_labelled_512(const lb_dtype to, __m512 x)
{
    if (to == LB_F16) return _mm512_cvtph_ps(_mm512_cvtps_ph(x, 0));
    if (to != LB_BF16) return x;
    const __m512i u = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), one);
    const __m512i up = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    return _mm512_castsi512_ps(
        _mm512_and_si512(_mm512_add_epi32(u, up), _mm512_set1_epi32(-0x10000)));
}

LB_TARGET("avx512f")
LB_INLINE __m512 lb_number_512(const lb_dtype to, __m512 level, __m512 scale)
{
    return lb_labelled_512(to, _mm512_mul_ps(level, scale));
}

#endif
