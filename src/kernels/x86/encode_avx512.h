/* encode_avx512.h - what the encoders with AVX-512 share. */
#ifndef LB_ENCODE_AVX512_H
#define LB_ENCODE_AVX512_H

#include "kernels/encode.h"
#include "kernels/x86/intrin.h"

#define AVX512 LB_TARGET("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")

/* The first n of 16, which may be none, or all. */
LB_INLINE __mmask16 lb_first_16(int64_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : n <= 0 ? 0 : (1u << n) - 1);
}

/* Those of 16 numbers, and zeros, or others. */
AVX512 LB_INLINE __m512 lb_load_some(const float *x, int64_t n)
{
    return n > 0 ? _mm512_maskz_loadu_ps(lb_first_16(n), x)
                 : _mm512_setzero_ps();
}

AVX512 LB_INLINE __m512 lb_load_some_or(__m512 other, const float *x, int64_t n)
{
    return n > 0 ? _mm512_mask_loadu_ps(other, lb_first_16(n), x) : other;
}

/* Four vectors of numbers as 64 bytes, saturated, in fours: number 4l + e of
 * vector v is byte e of four 4l + v; and where fours come from in order. */
AVX512 LB_INLINE __m512i lb_bytes(const __m512i *v)
{
    return _mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]),
                              _mm512_packs_epi32(v[2], v[3]));
}

AVX512 LB_INLINE __m512i lb_fours(void)
{
    return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11,
                             15);
}

/* As lb_quotient8. */
AVX512 LB_INLINE __m512 lb_quotient16(lb_quotient how, __m512 x, __m512 by)
{
    const __m512 v =
        how == LB_PRODUCT ? _mm512_mul_ps(x, by) : _mm512_div_ps(x, by);
    if (how == LB_QUOTIENT_F16)
        return _mm512_cvtph_ps(_mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    if (how == LB_QUOTIENT_BF16) {
        const __m512i u = _mm512_castps_si512(v);
        const __m512i odd =
            _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
        const __m512i up = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
        return _mm512_castsi512_ps(_mm512_and_si512(
            _mm512_add_epi32(u, up), _mm512_set1_epi32((int)0xffff0000u)));
    }
    return v;
}

#endif
