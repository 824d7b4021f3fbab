/* codes_neon.h - codes out of bytes, and levels of codes, sixteen at a time. */
#ifndef LB_CODES_NEON_H
#define LB_CODES_NEON_H

#include <stdbool.h>

#include "kernels/arm/neon.h"

/* ---- codes --------------------------------------------------------------- */

/* How sixteen codes come out of the bytes that hold them: a lookup brings the
 * byte of each to its place, a shift by as much as that place needs brings the
 * code down, a mask leaves it alone. */
typedef struct lb_spread {
    uint8x16_t byte; /* where it is */
    int8x16_t down;  /* minus how far the code is from its lowest bit */
    uint8x16_t mask;
} lb_spread;

static inline lb_spread lb_spread_of(int bits, bool high_first)
{
    const int fields = 8 / bits;
    uint8_t byte[16];
    int8_t down[16];
    for (int i = 0; i < 16; i++) {
        const int at = i % fields;
        byte[i] = (uint8_t)(i / fields);
        down[i] = (int8_t)(-bits * (high_first ? fields - 1 - at : at));
    }
    return (lb_spread){vld1q_u8(byte), vld1q_s8(down),
                       vdupq_n_u8((uint8_t)((1 << bits) - 1))};
}

LB_INLINE uint8x16_t lb_codes_at(const lb_spread *s, uint8x16_t v,
                                 uint8x16_t byte)
{
    return vandq_u8(vshlq_u8(vqtbl1q_u8(v, byte), s->down), s->mask);
}

/* ---- bytes --------------------------------------------------------------- */

/* Byte 4*q + l goes to the top of lane l; what is past the table is 0. */
LB_INLINE uint8x16_t lb_tops(int q)
{
    const uint32x4_t lane = {0, 1u << 24, 2u << 24, 3u << 24};
    return vreinterpretq_u8_u32(
        vaddq_u32(vdupq_n_u32(0xffffff | (uint32_t)q << 26), lane));
}

/* Sixteen bytes to four vectors of f32, in order. */
LB_INLINE void lb_floats_16(int8x16_t code, float32x4_t *to)
{
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        to[q] = vcvtq_n_f32_s32(
            vreinterpretq_s32_s8(vqtbl1q_s8(code, lb_tops(q))), 24);
}

/* ---- levels -------------------------------------------------------------- */

/* Sixteen levels of f32, the same byte of each together. */
typedef struct lb_planes {
    uint8x16_t byte[4];
} lb_planes;

LB_INLINE lb_planes lb_planes_of(const float *level)
{
    const uint8x16x4_t v = vld4q_u8((const uint8_t *)(const void *)level);
    return (lb_planes){{v.val[0], v.val[1], v.val[2], v.val[3]}};
}

/* All levels are numbers of 16 bits, followed by zeros. */
LB_INLINE bool lb_planes_are_short(const lb_planes *p)
{
    return vmaxvq_u8(vorrq_u8(p->byte[0], p->byte[1])) == 0;
}

/* Two halves of eight lanes each. */
LB_INLINE void lb_put_halves(uint8x16_t low, uint8x16_t high, float32x4_t *to)
{
    const uint16x8_t l = vreinterpretq_u16_u8(low);
    const uint16x8_t h = vreinterpretq_u16_u8(high);
    to[0] = vreinterpretq_f32_u16(vzip1q_u16(l, h));
    to[1] = vreinterpretq_f32_u16(vzip2q_u16(l, h));
}

/* Sixteen indices to four vectors of f32, in order. */
LB_INLINE void lb_look_up(const lb_planes *p, uint8x16_t index, bool is_short,
                          float32x4_t *to)
{
    const uint8x16_t b2 = vqtbl1q_u8(p->byte[2], index);
    const uint8x16_t b3 = vqtbl1q_u8(p->byte[3], index);
    uint8x16_t low0 = vdupq_n_u8(0), low1 = low0;
    if (!is_short) {
        const uint8x16_t b0 = vqtbl1q_u8(p->byte[0], index);
        const uint8x16_t b1 = vqtbl1q_u8(p->byte[1], index);
        low0 = vzip1q_u8(b0, b1);
        low1 = vzip2q_u8(b0, b1);
    }
    lb_put_halves(low0, vzip1q_u8(b2, b3), to);
    lb_put_halves(low1, vzip2q_u8(b2, b3), to + 2);
}

#endif
