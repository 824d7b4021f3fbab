/* label_avx2.h - level times scale as a dtype of 16 bits has it, in registers:
 * the f32 number that decoding gives. */
#ifndef LB_LABEL_AVX2_H
#define LB_LABEL_AVX2_H

#include <math.h>

#include "kernels/x86/intrin.h"
#include "lowbit_ext.h"

#define LB_LABEL LB_TARGET("avx2,fma,f16c") LB_INLINE

/* Of bf16 there are no NaNs, but the one that lb_label_scale knows: rounding
 * would carry out of others. */
LB_LABEL __m256 lb_labelled(const lb_dtype to, __m256 x)
{
    if (to == LB_F16) return _mm256_cvtph_ps(_mm256_cvtps_ph(x, 0));
    if (to != LB_BF16) return x;
    const __m256i u = _mm256_castps_si256(x), one = _mm256_set1_epi32(1);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), one);
    const __m256i up = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    return _mm256_castsi256_ps(
        _mm256_and_si256(_mm256_add_epi32(u, up), _mm256_set1_epi32(-0x10000)));
}

LB_LABEL __m256 lb_number(const lb_dtype to, __m256 level, __m256 scale)
{
    return lb_labelled(to, _mm256_mul_ps(level, scale));
}

/* Whether all products of these scales with codes of 8 bits are rounded to bf16
 * by adding half a unit and cutting off: those that are halves go to even,
 * which is up for all of them here. Codes below 64 are fractions of others, and
 * have their bits; 2^-24 of a scale is exact. */
LB_LABEL bool lb_label_all_up(__m256 scale)
{
    const __m256i half = _mm256_set1_epi32(0x40000000);
    const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), scale);
    const __m256 fits = _mm256_and_ps(
        _mm256_cmp_ps(size, _mm256_set1_ps(0x1p-100f), _CMP_GE_OQ),
        _mm256_cmp_ps(size, _mm256_set1_ps(0x1p100f), _CMP_LE_OQ));
    const __m256 one = _mm256_set1_ps(1);
    __m256 code = _mm256_set1_ps(64);
    __m256i down = _mm256_setzero_si256();
    for (int i = 64; i < 128; i++, code = _mm256_add_ps(code, one)) {
        const __m256i u = _mm256_castps_si256(_mm256_mul_ps(code, size));
        down = _mm256_or_si256(
            down, _mm256_cmpeq_epi32(_mm256_slli_epi32(u, 15), half));
    }
    return _mm256_testz_si256(down, down) && _mm256_movemask_ps(fits) == 0xff;
}

/* Then this is it. */
LB_LABEL __m256 lb_bf16_up(__m256 x)
{
    const __m256i up =
        _mm256_add_epi32(_mm256_castps_si256(x), _mm256_set1_epi32(0x8000));
    return _mm256_castsi256_ps(
        _mm256_and_si256(up, _mm256_set1_epi32(-0x10000)));
}

LB_INLINE float lb_label_scale(const lb_dtype to, float scale)
{
    return to == LB_BF16 && isnan(scale) ? (float)NAN : scale;
}

LB_LABEL __m256 lb_label_scales(const lb_dtype to, __m256 scale)
{
    if (to != LB_BF16) return scale;
    return _mm256_blendv_ps(scale, _mm256_set1_ps((float)NAN),
                            _mm256_cmp_ps(scale, scale, _CMP_UNORD_Q));
}

#endif
