/* encode_neon.h - what the encoders with NEON share. */
#ifndef LB_ENCODE_NEON_H
#define LB_ENCODE_NEON_H

#include "kernels/arm/neon.h"
#include "kernels/encode.h"

/* See lb_encode_kernel. */
void lb_totals_neon(const float *x, int64_t n, float least, lb_total *each);
void lb_moments_neon(const float *x, int64_t n, lb_moments *each);
void lb_ternary_neon(const float *x, int64_t n, float cut, uint8_t *byte);
void lb_binary_neon(const float *x, int64_t n, uint8_t *byte);

LB_INLINE float32x4_t lb_load_abs(const float *x)
{
    return vabsq_f32(vld1q_f32(x));
}

/* The low bytes of sixteen numbers, in order. */
LB_INLINE uint8x16_t lb_low_bytes(const int32x4_t *v)
{
    const int16x8_t a = vcombine_s16(vmovn_s32(v[0]), vmovn_s32(v[1]));
    const int16x8_t b = vcombine_s16(vmovn_s32(v[2]), vmovn_s32(v[3]));
    return vreinterpretq_u8_s8(vcombine_s8(vmovn_s16(a), vmovn_s16(b)));
}

/* v = x / by or x * by, as lb_quotient says; how is a constant where this is
 * inlined. v is a number, or x * by is not rounded further. */
LB_INLINE float32x4_t lb_quotient4(const lb_quotient how, float32x4_t x,
                                   float32x4_t by)
{
    const float32x4_t v =
        how == LB_PRODUCT ? vmulq_f32(x, by) : vdivq_f32(x, by);
    if (how == LB_QUOTIENT_F16) return vcvt_f32_f16(vcvt_f16_f32(v));
    if (how == LB_QUOTIENT_BF16) {
        const uint32x4_t u = vreinterpretq_u32_f32(v);
        const uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
        const uint32x4_t up = vaddq_u32(odd, vdupq_n_u32(0x7fff));
        return vreinterpretq_f32_u32(
            vandq_u32(vaddq_u32(u, up), vdupq_n_u32(0xffff0000u)));
    }
    return v;
}

#endif
