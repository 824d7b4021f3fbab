/* signs_neon.c - statistics, ternary and binary codes with NEON.
 *
 * The eight lanes of a sum (sums.h) are four registers of doubles.
 */
#include "kernels/encode.h"

#if defined(__aarch64__)
#include <string.h>

#include "kernels/arm/encode_neon.h"

/* ---- sums --------------------------------------------------------------- */

typedef struct {
    float64x2_t v[4]; /* lanes 0 and 1, 2 and 3, ... */
} lanes;

LB_INLINE lanes no_lanes(void)
{
    const float64x2_t zero = vdupq_n_f64(0);
    return (lanes){{zero, zero, zero, zero}};
}

LB_INLINE lanes widen(float32x4_t low, float32x4_t high)
{
    return (lanes){{vcvt_f64_f32(vget_low_f32(low)), vcvt_high_f64_f32(low),
                    vcvt_f64_f32(vget_low_f32(high)), vcvt_high_f64_f32(high)}};
}

LB_INLINE void add(lanes *to, lanes x)
{
    LB_UNROLL
    for (int i = 0; i < 4; i++)
        to->v[i] = vaddq_f64(to->v[i], x.v[i]);
}

LB_INLINE double fold(const lanes *s)
{
    const float64x2_t a = vaddq_f64(s->v[0], s->v[2]);
    const float64x2_t b = vaddq_f64(s->v[1], s->v[3]);
    const float64x2_t c = vaddq_f64(a, b);
    return vgetq_lane_f64(c, 0) + vgetq_lane_f64(c, 1);
}

/* Squares of distances from the mean. */
LB_INLINE lanes squares(lanes x, float64x2_t mean)
{
    LB_UNROLL
    for (int i = 0; i < 4; i++) {
        const float64x2_t d = vsubq_f64(x.v[i], mean);
        x.v[i] = vmulq_f64(d, d);
    }
    return x;
}

static lb_moments moments_of(const float *x)
{
    lanes s = no_lanes();
    for (int i = 0; i < LB_CHUNK; i += 8)
        add(&s, widen(vld1q_f32(x + i), vld1q_f32(x + i + 4)));
    const double mean = fold(&s) / LB_CHUNK;
    const float64x2_t all = vdupq_n_f64(mean);
    s = no_lanes();
    for (int i = 0; i < LB_CHUNK; i += 8)
        add(&s, squares(widen(vld1q_f32(x + i), vld1q_f32(x + i + 4)), all));
    return (lb_moments){LB_CHUNK, mean, fold(&s)};
}

void lb_moments_neon(const float *x, int64_t n, lb_moments *each)
{
    int64_t i = 0;
    for (; i + LB_CHUNK <= n; i += LB_CHUNK)
        *each++ = moments_of(x + i);
    if (i < n) *each = lb_moments_of(x + i, n - i);
}

/* |x| where that is above least, else 0; count: minus how many are. */
LB_INLINE float32x4_t kept(const float *x, float32x4_t least, uint32x4_t *count)
{
    const float32x4_t v = lb_load_abs(x);
    const uint32x4_t is = vcgtq_f32(v, least);
    *count = vaddq_u32(*count, is);
    return vreinterpretq_f32_u32(vandq_u32(is, vreinterpretq_u32_f32(v)));
}

static lb_total total_of(const float *x, float32x4_t least)
{
    lanes s = no_lanes();
    uint32x4_t count = vdupq_n_u32(0);
    for (int i = 0; i < LB_CHUNK; i += 8) {
        const float32x4_t low = kept(x + i, least, &count);
        add(&s, widen(low, kept(x + i + 4, least, &count)));
    }
    return (lb_total){(double)(0u - vaddvq_u32(count)), fold(&s)};
}

void lb_totals_neon(const float *x, int64_t n, float least, lb_total *each)
{
    const float32x4_t limit = vdupq_n_f32(least);
    int64_t i = 0;
    for (; i + LB_CHUNK <= n; i += LB_CHUNK)
        *each++ = total_of(x + i, limit);
    if (i < n) *each = lb_total_above(x + i, n - i, least);
}

/* ---- ternary ------------------------------------------------------------ */

/* (x > cut) - (x < -cut) */
LB_INLINE int32x4_t sign4(float32x4_t x, float32x4_t cut)
{
    const uint32x4_t over = vcgtq_f32(x, cut);
    const uint32x4_t under = vcltq_f32(x, vnegq_f32(cut));
    return vreinterpretq_s32_u32(vsubq_u32(under, over));
}

/* Four bytes of four codes each: signs times powers of 4, and 1 for each. */
LB_INLINE int32x4_t ternary16(const float *x, float32x4_t cut)
{
    const float32x4x4_t v = vld4q_f32(x); /* every fourth number */
    int32x4_t t = sign4(v.val[3], cut);
    LB_UNROLL
    for (int j = 2; j >= 0; j--)
        t = vaddq_s32(vshlq_n_s32(t, 2), sign4(v.val[j], cut));
    return vaddq_s32(t, vdupq_n_s32(0x55));
}

LB_INLINE void ternary64(const float *x, float32x4_t cut, uint8_t *byte)
{
    int32x4_t t[4];
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        t[q] = ternary16(x + (ptrdiff_t)16 * q, cut);
    vst1q_u8(byte, lb_low_bytes(t));
}

void lb_ternary_neon(const float *x, int64_t n, float cut, uint8_t *byte)
{
    const float32x4_t all = vdupq_n_f32(cut);
    int64_t i = 0;
    for (; i + 64 <= n; i += 64)
        ternary64(x + i, all, byte + i / 4);
    if (i < n) { /* zeros follow: their code is the filler */
        float rest[64] = {0};
        uint8_t bytes[16];
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *x);
        ternary64(rest, all, bytes);
        memcpy(byte + i / 4, bytes, (size_t)(n - i + 3) / 4);
    }
}

/* ---- binary ------------------------------------------------------------- */

/* Of sixteen numbers the bit of its place in a byte, if it is not below 0. */
LB_INLINE uint8x16_t bits16(const float *x)
{
    const uint8x16_t place =
        vreinterpretq_u8_u64(vdupq_n_u64(UINT64_C(0x8040201008040201)));
    int32x4_t v[4];
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        v[q] = vreinterpretq_s32_u32(vcgezq_f32(vld1q_f32(x + 4 * q)));
    return vandq_u8(lb_low_bytes(v), place);
}

/* Eight neighbours to a byte. */
LB_INLINE void binary64(const float *x, uint8_t *byte)
{
    const uint8x16_t a = vpaddq_u8(bits16(x), bits16(x + 16));
    const uint8x16_t b = vpaddq_u8(bits16(x + 32), bits16(x + 48));
    const uint8x16_t c = vpaddq_u8(a, b);
    vst1_u8(byte, vget_low_u8(vpaddq_u8(c, c)));
}

void lb_binary_neon(const float *x, int64_t n, uint8_t *byte)
{
    int64_t i = 0;
    for (; i + 64 <= n; i += 64)
        binary64(x + i, byte + i / 8);
    if (i < n) {
        float rest[64];
        uint8_t bytes[8];
        for (int j = 0; j < 64; j++)
            rest[j] = -1; /* their bit is the filler */
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *x);
        binary64(rest, bytes);
        memcpy(byte + i / 8, bytes, (size_t)(n - i + 7) / 8);
    }
}
#endif
