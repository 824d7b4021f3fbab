/* gguf_encode_neon.c - GGUF's block types from numbers, with NEON; what is done
 * is written in gguf_ref.c, and how bytes lie in the formats' files. IQ4_NL is
 * the reference's: its loops over tries are vectors already. */
#include "kernels/gguf_ref.h"

#if defined(__aarch64__)
#include <math.h>
#include <string.h>

#include "kernels/arm/encode_neon.h"

LB_INLINE void put_d(uint8_t *to, float d)
{
    const uint16_t bits =
        vget_lane_u16(vreinterpret_u16_f16(vcvt_f16_f32(vdupq_n_f32(d))), 0);
    memcpy(to, &bits, sizeof bits);
}

LB_INLINE float inverse(float d)
{
    const float id = 1 / d;
    return isfinite(id) ? id : 0;
}

static float largest(const float *x, int n)
{
    float32x4_t a = lb_load_abs(x), b = lb_load_abs(x + 4);
    for (int i = 8; i < n; i += 8) {
        a = vmaxq_f32(a, lb_load_abs(x + i));
        b = vmaxq_f32(b, lb_load_abs(x + i + 4));
    }
    return vmaxvq_f32(vmaxq_f32(a, b));
}

/* The first of 32 numbers with the largest |x|; 0, never -0, if all are 0. */
static float signed_peak(const float *x)
{
    const float most = largest(x, 32);
    int i = 0;
    while (i < 31 && fabsf(x[i]) != most) /* none is equal to a NaN */
        i++;
    return most > 0 ? x[i] : 0;
}

/* ---- Q8_0, Q4_0 --------------------------------------------------------- */

void lb_q8_0_encode_neon(const float *x, int64_t blocks, uint8_t *to)
{
    for (; blocks > 0; blocks--, to += 34) {
        const float d = largest(x, 32) / 127, id = inverse(d);
        put_d(to, d);
        for (int h = 0; h < 2; h++, x += 16) {
            int32x4_t v[4];
            LB_UNROLL
            for (int q = 0; q < 4; q++) /* half away from zero */
                v[q] = vcvtaq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * q), id));
            vst1q_u8(to + 2 + (ptrdiff_t)16 * h, lb_low_bytes(v));
        }
    }
}

LB_INLINE uint8x16_t q4_0_codes(const float *x, float id)
{
    int32x4_t v[4];
    LB_UNROLL
    for (int q = 0; q < 4; q++) {
        const float32x4_t y = vmulq_n_f32(vld1q_f32(x + 4 * q), id);
        v[q] = vminq_s32(vcvtq_s32_f32(vaddq_f32(y, vdupq_n_f32(8.5f))),
                         vdupq_n_s32(15));
    }
    return lb_low_bytes(v);
}

void lb_q4_0_encode_neon(const float *x, int64_t blocks, uint8_t *to)
{
    for (; blocks > 0; blocks--, x += 32, to += 18) {
        const float d = signed_peak(x) / -8, id = inverse(d);
        put_d(to, d);
        /* element j is below element j + 16 */
        vst1q_u8(to + 2,
                 vsliq_n_u8(q4_0_codes(x, id), q4_0_codes(x + 16, id), 4));
    }
}

/* ---- TQ1_0, TQ2_0 ------------------------------------------------------- */

/* x * id rounded half away from zero, of sixteen: -1, 0 or 1 as bytes. */
LB_INLINE uint8x16_t signs16(const float *x, float id)
{
    int32x4_t v[4];
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        v[q] = vcvtaq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * q), id));
    return lb_low_bytes(v);
}

void lb_tq2_0_encode_neon(const float *x, int64_t blocks, uint8_t *to)
{
    const uint8x16_t ones = vdupq_n_u8(0x55); /* the 1 of each code */
    for (; blocks > 0; blocks--, x += 256, to += 66) {
        const float d = largest(x, 256), id = inverse(d);
        for (int b = 0; b < 64; b += 16) {
            const float *from = x + b / 32 * 128 + b % 32;
            /* v0 + 4 (v1 + 4 (v2 + 4 v3)), each -1 .. 1 */
            uint8x16_t v = signs16(from + 96, id);
            for (int k = 2; k >= 0; k--)
                v = vaddq_u8(vshlq_n_u8(v, 2),
                             signs16(from + (ptrdiff_t)32 * k, id));
            vst1q_u8(to + b, vaddq_u8(v, ones));
        }
        put_d(to + 64, d);
    }
}

/* ceil(t * 256 / 243) = t + (13 t + 242) / 243 for t < 243; 17261 / 2^22 is
 * 1/243 and so little more that quotients up to 3388 are right. */
LB_INLINE uint16x8_t spread8(uint8x8_t t)
{
    const uint16x8_t wide = vmovl_u8(t);
    const uint16x8_t n = vmlaq_n_u16(vdupq_n_u16(242), wide, 13);
    const uint32x4_t lo = vmull_n_u16(vget_low_u16(n), 17261);
    const uint32x4_t hi = vmull_high_n_u16(n, 17261);
    const uint16x8_t q = vcombine_u16(vmovn_u32(vshrq_n_u32(lo, 22)),
                                      vmovn_u32(vshrq_n_u32(hi, 22)));
    return vaddq_u16(wide, q);
}

LB_INLINE uint8x16_t spread(uint8x16_t t)
{
    return vcombine_u8(vmovn_u16(spread8(vget_low_u8(t))),
                       vmovn_u16(spread8(vget_high_u8(t))));
}

/* Sixteen bytes of five codes, which are `apart` numbers apart; those past the
 * n-th are 0. */
LB_INLINE uint8x16_t fives(const float *x, int n, ptrdiff_t apart, float id)
{
    const uint8x16_t three = vdupq_n_u8(3);
    uint8x16_t t = signs16(x, id);
    for (int k = 1; k < 5; k++)
        t = vmlaq_u8(k < n ? signs16(x + k * apart, id) : vdupq_n_u8(0xff), t,
                     three);
    return spread(vaddq_u8(t, vdupq_n_u8(121))); /* 1 + 3 + 9 + 27 + 81 */
}

void lb_tq1_0_encode_neon(const float *x, int64_t blocks, uint8_t *to)
{
    for (; blocks > 0; blocks--, x += 256, to += 54) {
        const float d = largest(x, 256), id = inverse(d);
        float last[32] = {0};
        uint8_t bytes[16];
        memcpy(last, x + 240, 16 * sizeof *x);
        vst1q_u8(to, fives(x, 5, 32, id));
        vst1q_u8(to + 16, fives(x + 16, 5, 32, id));
        vst1q_u8(to + 32, fives(x + 160, 5, 16, id));
        vst1q_u8(bytes, fives(last, 4, 4, id));
        memcpy(to + 48, bytes, 4);
        put_d(to + 52, d);
    }
}
#endif
