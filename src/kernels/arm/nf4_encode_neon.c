/* nf4_encode_neon.c - codes of nf4 with NEON: a guess, then one compare, as in
 * nf4_encode_avx2.c, where it is said why they are exact. Edges are looked up
 * byte by byte, sixteen at a time. */
#include "kernels/nf4_ref.h"

#if defined(__aarch64__)
#include <string.h>

#include "kernels/arm/codes_neon.h"
#include "kernels/arm/encode_neon.h"

static lb_planes edges_of(const float *edge)
{
    float e[16] = {0}; /* no guess is 15 */
    memcpy(e, edge, 15 * sizeof *e);
    return lb_planes_of(e);
}

/* Products may be infinite, or NaN, which has the code 0 as -1 has. */
LB_INLINE float32x4_t load(const lb_quotient how, const float *x,
                           float32x4_t by)
{
    const float32x4_t v = lb_quotient4(how, vld1q_f32(x), by);
    if (how != LB_PRODUCT) return v;
    return vminq_f32(vmaxnmq_f32(v, vdupq_n_f32(-1)), vdupq_n_f32(1));
}

/* u(v) = v (12.9 - 5.5 |v|) + 7.24, rounded down. */
LB_INLINE int32x4_t guess(float32x4_t v)
{
    const float32x4_t slope =
        vfmsq_f32(vdupq_n_f32(12.9f), vabsq_f32(v), vdupq_n_f32(5.5f));
    return vcvtq_s32_f32(vfmaq_f32(vdupq_n_f32(7.24f), v, slope));
}

LB_INLINE uint8x16_t codes16(const lb_planes *e, const lb_quotient how,
                             const float *x, float32x4_t by)
{
    float32x4_t v[4], edge[4];
    int32x4_t k[4], above[4];
    LB_UNROLL
    for (int q = 0; q < 4; q++) {
        v[q] = load(how, x + 4 * q, by);
        k[q] = guess(v[q]);
    }
    const uint8x16_t index = lb_low_bytes(k);
    lb_look_up(e, index, false, edge);
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        above[q] = vreinterpretq_s32_u32(vcgtq_f32(v[q], edge[q]));
    return vsubq_u8(index, lb_low_bytes(above));
}

LB_INLINE void put32(const lb_planes *e, const lb_quotient how, const float *x,
                     float32x4_t by, uint8_t *byte)
{
    const uint8x16_t a = codes16(e, how, x, by);
    const uint8x16_t b = codes16(e, how, x + 16, by);
    /* the first of two in the high half */
    vst1q_u8(byte, vsliq_n_u8(vuzp2q_u8(a, b), vuzp1q_u8(a, b), 4));
}

LB_INLINE void encode_block(const lb_planes *e, const lb_quotient how,
                            const float *x, int64_t n, float by, uint8_t *byte)
{
    const float32x4_t all = vdupq_n_f32(by);
    int64_t i = 0;
    for (; i + 32 <= n; i += 32)
        put32(e, how, x + i, all, byte + i / 2);
    if (i < n) { /* zeros follow, and the odd place gets their code */
        float rest[32] = {0};
        uint8_t bytes[16];
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *x);
        put32(e, how, rest, all, bytes);
        memcpy(byte + i / 2, bytes, (size_t)(n - i + 1) / 2);
    }
}

LB_INLINE void encode_blocks(const float *edge, const lb_quotient how,
                             const float *x, int64_t n, int64_t block,
                             const float *by, uint8_t *byte)
{
    const lb_planes e = edges_of(edge);
    for (int64_t i = 0; i < n; i += block)
        encode_block(&e, how, x + i, n - i < block ? n - i : block, *by++,
                     byte + i / 2);
}

void lb_nf4_encode_neon(const float *edge, lb_quotient how, const float *x,
                        int64_t n, int64_t block, const float *by,
                        uint8_t *byte)
{
    switch (how) {
    case LB_QUOTIENT:
        encode_blocks(edge, LB_QUOTIENT, x, n, block, by, byte);
        return;
    case LB_PRODUCT:
        encode_blocks(edge, LB_PRODUCT, x, n, block, by, byte);
        return;
    case LB_QUOTIENT_F16:
        encode_blocks(edge, LB_QUOTIENT_F16, x, n, block, by, byte);
        return;
    case LB_QUOTIENT_BF16:
        encode_blocks(edge, LB_QUOTIENT_BF16, x, n, block, by, byte);
        return;
    }
}
#endif
