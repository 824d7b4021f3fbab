/* encode_neon.c - the encoders with NEON: largest numbers and whole ones are
 * here, others in the files of their families. */
#include "kernels/encode.h"

#if defined(__aarch64__)
#include <math.h>
#include <string.h>

#include "kernels/arm/encode_neon.h"

/* ---- the largest -------------------------------------------------------- */

LB_INLINE uint32x4_t bits_4(const float *x)
{
    return vreinterpretq_u32_f32(lb_load_abs(x));
}

static uint32_t peak_bits(const float *x, int64_t n)
{
    uint32x4_t m[4];
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        m[q] = vdupq_n_u32(0);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        LB_UNROLL
        for (int q = 0; q < 4; q++)
            m[q] = vmaxq_u32(m[q], bits_4(x + i + 4 * q));
    }
    const uint32_t most =
        vmaxvq_u32(vmaxq_u32(vmaxq_u32(m[0], m[1]), vmaxq_u32(m[2], m[3])));
    const uint32_t rest = lb_encode_ref.peak_bits(x + i, n - i);
    return rest > most ? rest : most;
}

/* Numbers may be looked at twice, so the last sixteen are the tail. */
static float largest_of(const float *x, int64_t n)
{
    if (n < 16) return lb_largest_abs(x, n);
    float32x4_t m[4];
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        m[q] = lb_load_abs(x + n - 16 + 4 * q);
    for (int64_t i = 0; i + 16 <= n; i += 16) {
        LB_UNROLL
        for (int q = 0; q < 4; q++)
            m[q] = vmaxq_f32(m[q], lb_load_abs(x + i + 4 * q));
    }
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(m[0], m[1]), vmaxq_f32(m[2], m[3])));
}

static void largest(const float *x, int64_t n, int64_t block, float *most)
{
    for (int64_t i = 0; i < n; i += block)
        *most++ = largest_of(x + i, n - i < block ? n - i : block);
}

static void raise(const float *x, int64_t n, float *most)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(most + i, vmaxq_f32(lb_load_abs(x + i), vld1q_f32(most + i)));
    lb_encode_ref.raise(x + i, n - i, most + i);
}

/* ---- whole numbers ------------------------------------------------------- */

/* Sixteen codes, half to even. Saturation is the upper bound; the lower is
 * -127. apart: from a `by` to the next, 0 or 1. */
LB_INLINE void whole16(const lb_quotient how, const float *x, const float *by,
                       const int apart, int8_t *code)
{
    int16x4_t v[4];
    LB_UNROLL
    for (int q = 0; q < 4; q++) {
        const float32x4_t b = apart ? vld1q_f32(by + 4 * q) : vld1q_dup_f32(by);
        v[q] = vqmovn_s32(
            vcvtnq_s32_f32(lb_quotient4(how, vld1q_f32(x + 4 * q), b)));
    }
    const int8x16_t c = vcombine_s8(vqmovn_s16(vcombine_s16(v[0], v[1])),
                                    vqmovn_s16(vcombine_s16(v[2], v[3])));
    vst1q_s8(code, vmaxq_s8(c, vdupq_n_s8(-127)));
}

LB_INLINE void whole_run(const lb_quotient how, const float *x, int64_t n,
                         const float *by, const int apart, int8_t *code)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        whole16(how, x + i, by + i * apart, apart, code + i);
    if (i == n) return;
    float rest[16] = {0}, bys[16];
    int8_t codes[16];
    for (int64_t j = 0; j < 16; j++)
        bys[j] = i + j < n ? by[(i + j) * apart] : 1;
    memcpy(rest, x + i, (size_t)(n - i) * sizeof *x);
    whole16(how, rest, bys, 1, codes);
    memcpy(code + i, codes, (size_t)(n - i));
}

LB_INLINE void whole_any(lb_quotient how, const float *x, int64_t n,
                         const float *by, const int apart, int8_t *code)
{
    switch (how) {
    case LB_QUOTIENT:
        whole_run(LB_QUOTIENT, x, n, by, apart, code);
        return;
    case LB_PRODUCT:
        whole_run(LB_PRODUCT, x, n, by, apart, code);
        return;
    case LB_QUOTIENT_F16:
        whole_run(LB_QUOTIENT_F16, x, n, by, apart, code);
        return;
    case LB_QUOTIENT_BF16:
        whole_run(LB_QUOTIENT_BF16, x, n, by, apart, code);
        return;
    }
}

static void whole(lb_quotient how, const float *x, int64_t n, float by,
                  int8_t *code)
{
    whole_any(how, x, n, &by, 0, code);
}

static void whole_each(lb_quotient how, const float *x, int64_t n,
                       const float *by, int8_t *code)
{
    whole_any(how, x, n, by, 1, code);
}

/* ---- the table ---------------------------------------------------------- */

const lb_encode_kernel lb_encode_neon = {
    .name = "encode neon",
    .peak_bits = peak_bits,
    .largest = largest,
    .raise = raise,
    .totals = lb_totals_neon,
    .moments = lb_moments_neon,
    .whole = whole,
    .whole_each = whole_each,
    .ternary = lb_ternary_neon,
    .binary = lb_binary_neon,
};
#endif
