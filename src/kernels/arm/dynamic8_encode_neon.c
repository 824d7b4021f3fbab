/* dynamic8_encode_neon.c - codes of dynamic8 with NEON, as
 * dynamic8_encode_avx2.c finds them: a place stands for a / 65535 with the sign
 * of s, whose row a compare finds, and within a row
 *
 *     m = a * slope + base, rounded down and kept in its row
 */
#include "kernels/dynamic8_ref.h"

#if defined(__aarch64__)
#include <string.h>

#include "kernels/arm/encode_neon.h"

/* Places of v; NaN goes to the first. */
LB_INLINE int32x4_t places(float32x4_t v)
{
    const float32x4_t one = vdupq_n_f32(1), half = vdupq_n_f32(0.5f);
    v = vminq_f32(vmaxnmq_f32(v, vnegq_f32(one)), one);
    v = vmulq_f32(vmulq_f32(vaddq_f32(v, one), half), vdupq_n_f32(65535));
    return vcvtq_s32_f32(vaddq_f32(v, half));
}

/* Rows from 2 on, and what they begin with: halfway from the last level of the
 * row before. slope: 2^k / (0.9 * 10^(k-6)) / 65535. */
enum { ROWS = 5 };
static const int32_t limit[ROWS] = {0, 8, 72, 692, 6738};
static const float slope[ROWS] = {
    (float)(4 / 0.9e-4 / 65535), (float)(8 / 0.9e-3 / 65535),
    (float)(16 / 0.9e-2 / 65535), (float)(32 / 0.9e-1 / 65535),
    (float)(64 / 0.9 / 65535)};

/* Codes minus 127: -127 .. 128. */
LB_INLINE int32x4_t codes(int32x4_t place)
{
    const int32x4_t s = vsubq_s32(vaddq_s32(place, place), vdupq_n_s32(65535));
    const int32x4_t a = vabsq_s32(s);
    float32x4_t rise = vdupq_n_f32(slope[0]), begin = vdupq_n_f32(4);
    LB_UNROLL
    for (int r = 1; r < ROWS; r++) {
        const uint32x4_t in = vcgtq_s32(a, vdupq_n_s32(limit[r]));
        rise = vbslq_f32(in, vdupq_n_f32(slope[r]), rise);
        begin = vbslq_f32(in, vdupq_n_f32((float)(4 << r)), begin);
    }
    /* 2^k * 8 / 9, which is exact times a power of two */
    const float32x4_t base = vmulq_f32(begin, vdupq_n_f32((float)(8 / 9.0)));
    const float32x4_t last = vsubq_f32(vaddq_f32(begin, begin), vdupq_n_f32(1));
    float32x4_t m = vaddq_f32(vmulq_f32(vcvtq_f32_s32(a), rise), base);
    m = vminq_f32(vmaxq_f32(m, begin), last);
    const int32x4_t k = vcvtq_s32_f32(m);
    const int32x4_t n = vbslq_s32(vcltzq_s32(s), vnegq_s32(k), k);
    /* The level 1 has no twin of the other sign. */
    return vsubq_s32(n,
                     vreinterpretq_s32_u32(vcgtq_s32(s, vdupq_n_s32(65304))));
}

/* zeros: a zero has the code of 0, which no place has. */
LB_INLINE int32x4_t codes4(const bool zeros, const float *x, float32x4_t by)
{
    const float32x4_t v = vld1q_f32(x);
    if (!zeros) return codes(places(vmulq_f32(v, by)));
    return vbicq_s32(codes(places(vdivq_f32(v, by))),
                     vreinterpretq_s32_u32(vceqzq_f32(v)));
}

LB_INLINE void put16(const bool zeros, const float *x, float32x4_t by,
                     uint8_t *code)
{
    int32x4_t c[4];
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        c[q] = codes4(zeros, x + 4 * q, by);
    vst1q_u8(code, vaddq_u8(lb_low_bytes(c), vdupq_n_u8(127)));
}

LB_INLINE void encode(const bool zeros, float by, const float *x, int64_t n,
                      uint8_t *code)
{
    const float32x4_t all = vdupq_n_f32(by);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        put16(zeros, x + i, all, code + i);
    if (i < n) {
        float rest[16] = {0};
        uint8_t bytes[16];
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *x);
        put16(zeros, rest, all, bytes);
        memcpy(code + i, bytes, (size_t)(n - i));
    }
}

void lb_dynamic8_encode_neon(lb_compat compat, float absmax, const float *x,
                             int64_t n, uint8_t *code)
{
    if (compat == LB_COMPAT_BNB_CUDA)
        lb_dynamic8_encode_ref(compat, absmax, x, n, code);
    else if (compat == LB_COMPAT_BNB_CPU)
        encode(false, 1.0f / absmax, x, n, code);
    else
        encode(true, absmax, x, n, code);
}
#endif
