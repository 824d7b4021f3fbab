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

/* A divisor of many numbers. Dividing is most of what encoders do, and a
 * quotient q off by one in the last place at most becomes the one that is
 * rounded to nearest by a multiplication with r = 1 / by, rounded likewise:
 * q + r * (x - q * by), the difference exact (Markstein, 1990). It is done
 * twice, for x * r may be off by more. Differences that underflow are those of
 * x below 2^-78; with by from 2^-60 on, such quotients are below 2^-18, and
 * what is near to 0 has the code of 0 in every format. */
typedef struct lb_divisor {
    __m512 by, inverse;
} lb_divisor;

LB_INLINE bool lb_has_inverse(lb_quotient how, float by)
{
    return LB_EXACT && how != LB_PRODUCT && by >= 0x1p-60f && by <= 0x1p60f;
}

AVX512 LB_INLINE lb_divisor lb_divisor_of(float by)
{
    return (lb_divisor){_mm512_set1_ps(by), _mm512_set1_ps(1 / by)};
}

AVX512 LB_INLINE __m512 lb_divided(__m512 x, lb_divisor d)
{
    __m512 q = _mm512_mul_ps(x, d.inverse);
    q = _mm512_fmadd_ps(d.inverse, _mm512_fnmadd_ps(q, d.by, x), q);
    return _mm512_fmadd_ps(d.inverse, _mm512_fnmadd_ps(q, d.by, x), q);
}

/* As lb_quotient8. inverts: lb_has_inverse, a constant. */
AVX512 LB_INLINE __m512 lb_quotient16(lb_quotient how, bool inverts, __m512 x,
                                      lb_divisor d)
{
    const __m512 v = inverts             ? lb_divided(x, d)
                     : how == LB_PRODUCT ? _mm512_mul_ps(x, d.by)
                                         : _mm512_div_ps(x, d.by);
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
