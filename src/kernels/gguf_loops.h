/* gguf_loops.h - GGUF's block types to floats, in loops that a compiler turns
 * into vector instructions. Each level includes it with
 *
 *   LOOP_FN     how its functions are declared
 *   LOOP_TABLE  the lb_gguf_decoders to define
 *   LOOP_READERS  and the lb_gguf_readers; see gguf_integer_loops.h
 *   LOOP_HALF   optional: the value of an f16
 *   LOOP_LEVELS optional: d times the levels of 16 bytes of codes
 *
 * A block is decoded in two steps: codes to bytes, bytes times scale to floats.
 * No step depends on the width of vectors, so every level has the same bits:
 * those of gguf-py and of ggml without contraction.
 *
 * h: an f16. Codes of 4 bits: the low halves of a run of bytes come before the
 * high halves.
 */
#include <string.h>

#include "kernels/gguf_decode.h"
#include "kernels/gguf_integers.h"

typedef uint8_t loop_codes[256];

/* Vectors are only local variables: whether registers are as wide is up to the
 * level. */
typedef int32_t loop_i8 __attribute__((vector_size(32)));
typedef float loop_f8 __attribute__((vector_size(32)));

#ifndef LOOP_HALF
#define LOOP_HALF lb_f32_from_f16
#endif
#ifndef LOOP_LEVELS
#define LOOP_LEVELS loop_levels
LOOP_FN void loop_levels(const int8_t *level, const uint8_t *restrict from,
                         float d, float *restrict out)
{
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)level[from[i] & 15];
        out[16 + i] = d * (float)level[from[i] >> 4];
    }
}
#endif

/* Ends each turn of a loop that must not become vectors itself: gcc would
 * transpose the runs of 16 that are. */
#define LOOP_TURN __asm__ volatile("")

LOOP_FN float loop_half(const uint8_t *p)
{
    return LOOP_HALF((uint16_t)(p[0] | p[1] << 8));
}

LOOP_FN uint32_t loop_u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

LOOP_FN uint32_t loop_u32(const uint8_t *p)
{
    return loop_u16(p) | loop_u16(p + 2) << 16;
}

/* ---- codes to values ----------------------------------------------------- */

LOOP_FN void loop_subtract(const uint8_t *restrict q, int n, float d, float m,
                           float *restrict out)
{
    for (int i = 0; i < n; i++)
        out[i] = d * (float)q[i] - m;
}

LOOP_FN void loop_scale(const uint8_t *restrict q, int zero, int n, float d,
                        float *restrict out)
{
    for (int i = 0; i < n; i++)
        out[i] = d * (float)(q[i] - zero);
}

/* 16 bytes, whose fifth bits are those of a word. */
LOOP_FN void loop_five(const uint8_t *restrict from, uint32_t fifth, int zero,
                       float d, float m, bool plus, float *restrict out)
{
    for (int i = 0; i < 16; i++) {
        const uint32_t low = from[i] & 15u, high = from[i] >> 4;
        const int a = (int)(low | (fifth >> i & 1) << 4) - zero;
        const int b = (int)(high | (fifth >> (16 + i) & 1) << 4) - zero;
        out[i] = plus ? d * (float)a + m : d * (float)a;
        out[16 + i] = plus ? d * (float)b + m : d * (float)b;
    }
}

/* ---- codes to bytes ----------------------------------------------------- */

/* 2 n codes of n bytes. */
LOOP_FN void loop_halves(const uint8_t *from, int n, uint8_t *q)
{
    for (int i = 0; i < n; i++) {
        q[i] = from[i] & 15;
        q[n + i] = from[i] >> 4;
    }
}

/* 256 codes of 2 bits: 32 bytes hold 128, and byte m those of m, m + 32, m + 64
 * and m + 96. */
LOOP_FN void loop_quarters(const uint8_t *from, uint8_t *q)
{
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 32; i++) {
            const uint8_t b = from[32 * k + i];
            q[128 * k + i] = b & 3;
            q[128 * k + 32 + i] = b >> 2 & 3;
            q[128 * k + 64 + i] = b >> 4 & 3;
            q[128 * k + 96 + i] = b >> 6;
        }
}

/* Adds bit k of each of 32 bytes to the codes 32 k, ... */
LOOP_FN void loop_or(const uint8_t *from, int to, uint8_t *q)
{
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 32; i++)
            q[32 * k + i] = (uint8_t)(q[32 * k + i] | (from[i] >> k & 1) << to);
}

/* ---- blocks of 32, 64 and 128 ------------------------------------------- */

/* h d, h m, 16 bytes. */
LOOP_FN void loop_q4_1(const uint8_t *restrict from, float *restrict out)
{
    const float d = loop_half(from), m = loop_half(from + 2);
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)(from[4 + i] & 15) + m;
        out[16 + i] = d * (float)(from[4 + i] >> 4) + m;
    }
}

/* h d, 4 bytes of fifth bits, 16 bytes. */
LOOP_FN void loop_q5_0(const uint8_t *restrict from, float *restrict out)
{
    loop_five(from + 6, loop_u32(from + 2), 16, loop_half(from), 0, false, out);
}

/* h d, h m, 4 bytes of fifth bits, 16 bytes. */
LOOP_FN void loop_q5_1(const uint8_t *restrict from, float *restrict out)
{
    loop_five(from + 8, loop_u32(from + 4), 0, loop_half(from),
              loop_half(from + 2), true, out);
}

/* 2^(e - 128), a subnormal number for e = 0 and 1. */
LOOP_FN float loop_e8m0_half(uint32_t e)
{
    const uint32_t bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;
    float d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* An exponent e, 16 bytes. The levels are doubled and the scale is halved. */
LOOP_FN void loop_gguf_mxfp4(const uint8_t *restrict from, float *restrict out)
{
    LOOP_LEVELS(lb_gguf_e2m1, from + 1, loop_e8m0_half(from[0]), out);
}

/* Four scales, E4M3 without a sign, of 16 values each; 32 bytes of codes, the
 * low halves of 8 before the high ones. Levels are doubled and scales halved;
 * 0 and 7f are 0. */
LOOP_FN void loop_gguf_nvfp4(const uint8_t *restrict from, float *restrict out)
{
    for (int s = 0; s < 4; s++) {
        const uint32_t em = from[s] & 0x7f;
        const uint32_t bits = (em << 20) + (119u << 23);
        float d;
        memcpy(&d, &bits, sizeof d);
        if (em < 8) d = (float)(int)em * 0x1p-10f;
        if (from[s] == 0x7f) d = 0;
        for (int i = 0; i < 8; i++) {
            const uint8_t b = from[4 + 8 * s + i];
            out[16 * s + i] = (float)lb_gguf_e2m1[b & 15] * d;
            out[16 * s + 8 + i] = (float)lb_gguf_e2m1[b >> 4] * d;
        }
    }
}

/* 32 bytes: -1, 0, 1; the first 32 in the high bits. 3 is 0. */
LOOP_FN void loop_i2_s(const uint8_t *restrict from, float *restrict out)
{
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 32; i++) {
            const int q = from[i] >> (6 - 2 * k) & 3;
            out[32 * k + i] = (float)(q == 3 ? 0 : q - 1);
        }
}

/* h d, 128 bits: d or -d. */
LOOP_FN void loop_q1_0(const uint8_t *restrict from, float *restrict out)
{
    const loop_i8 at = {0, 1, 2, 3, 4, 5, 6, 7};
    const float d = loop_half(from);
    for (int k = 0; k < 16; k++) {
        const loop_i8 bit = (loop_i8){0} + from[2 + k];
        const loop_i8 sign = (bit >> at & 1) * 2 - 1;
        const loop_f8 w = d * __builtin_convertvector(sign, loop_f8);
        memcpy(out + 8 * k, &w, sizeof w);
    }
}

/* h d, 64 codes of 2 bits in order. */
LOOP_FN void loop_q2_0(const uint8_t *restrict from, float *restrict out)
{
    const float d = loop_half(from);
    for (int k = 0; k < 8; k++) {
        const uint32_t eight = loop_u16(from + 2 + 2 * k);
        for (int i = 0; i < 8; i++)
            out[8 * k + i] = d * (float)((int)(eight >> 2 * i & 3) - 1);
    }
}

/* ---- K-quants: blocks of 256 with scales of their own -------------------- */

/* 16 bytes of a scale (low half) and a minimum for 16 values each, 64 bytes,
 * h d, h dmin. */
LOOP_FN void loop_q2_k(const uint8_t *restrict from, float *restrict out)
{
    const float d = loop_half(from + 80), dmin = loop_half(from + 82);
    loop_codes q;
    loop_quarters(from + 16, q);
    for (int s = 0; s < 16; s++) {
        loop_subtract(q + 16 * s, 16, d * (float)(from[s] & 15),
                      dmin * (float)(from[s] >> 4), out + 16 * s);
        LOOP_TURN;
    }
}

LOOP_FN int loop_q3_scale(const uint8_t *scale, int s)
{
    const int low = scale[s % 8] >> s / 8 * 4 & 15;
    const int high = scale[8 + s % 4] >> s / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

/* 32 bytes of third bits, 64 bytes, 16 scales of 6 bits in 12 bytes, h d. */
LOOP_FN void loop_q3_k(const uint8_t *restrict from, float *restrict out)
{
    const float d = loop_half(from + 108);
    loop_codes q;
    loop_quarters(from + 32, q);
    loop_or(from, 2, q);
    for (int s = 0; s < 16; s++)
        loop_scale(q + 16 * s, 4, 16, d * (float)loop_q3_scale(from + 96, s),
                   out + 16 * s);
}

/* The scale and the minimum of 32 values: 6 bits each, 8 of both in 12 bytes;
 * the high bits of the last four are those that the first four leave. */
LOOP_FN int loop_k_scale(const uint8_t *scale, int s, bool minimum)
{
    const uint8_t *first = scale + (minimum ? 4 : 0);
    if (s < 4) return first[s] & 63;
    return (minimum ? scale[4 + s] >> 4 : scale[4 + s] & 15) |
           first[s - 4] >> 6 << 4;
}

/* 8 runs of 32 codes; h d, h dmin, 12 bytes of scales. */
LOOP_FN void loop_k_runs(const uint8_t *from, const uint8_t *q, float *out)
{
    const float d = loop_half(from), dmin = loop_half(from + 2);
    for (int s = 0; s < 8; s++)
        loop_subtract(
            q + 32 * s, 32, d * (float)loop_k_scale(from + 4, s, false),
            dmin * (float)loop_k_scale(from + 4, s, true), out + 32 * s);
}

/* h d, h dmin, 12 bytes of scales, 128 bytes. */
LOOP_FN void loop_q4_k(const uint8_t *restrict from, float *restrict out)
{
    loop_codes q;
    for (int k = 0; k < 4; k++)
        loop_halves(from + 16 + 32 * k, 32, q + 64 * k);
    loop_k_runs(from, q, out);
}

/* h d, h dmin, 12 bytes of scales, 32 bytes of fifth bits, 128 bytes. */
LOOP_FN void loop_q5_k(const uint8_t *restrict from, float *restrict out)
{
    loop_codes q;
    for (int k = 0; k < 4; k++)
        loop_halves(from + 48 + 32 * k, 32, q + 64 * k);
    loop_or(from + 16, 4, q);
    loop_k_runs(from, q, out);
}

/* 128 bytes of low halves, 64 bytes of two more bits. */
LOOP_FN void loop_six(const uint8_t *restrict from, uint8_t *restrict q)
{
    loop_codes high;
    loop_halves(from, 64, q);
    loop_halves(from + 64, 64, q + 128);
    loop_quarters(from + 128, high);
    for (int i = 0; i < 256; i++)
        q[i] = (uint8_t)(q[i] | high[i] << 4);
}

/* Those, 16 signed scales, h d. */
LOOP_FN void loop_q6_k(const uint8_t *restrict from, float *restrict out)
{
    const float d = loop_half(from + 208);
    loop_codes q;
    loop_six(from, q);
    for (int s = 0; s < 16; s++) {
        loop_scale(q + 16 * s, 32, 16, d * (float)(int8_t)from[192 + s],
                   out + 16 * s);
        LOOP_TURN;
    }
}

LOOP_FN int loop_iq4_xs_scale(const uint8_t *from, int s)
{
    const uint32_t high = loop_u16(from + 2);
    return (int)((uint32_t)(from[4 + s / 2] >> s % 2 * 4 & 15) |
                 (high >> 2 * s & 3) << 4) -
           32;
}

/* h d, 16 bits and 4 bytes of scales of 6 bits for 32 values, 128 bytes: codes
 * of IQ4_NL's levels. */
LOOP_FN void loop_iq4_xs(const uint8_t *restrict from, float *restrict out)
{
    const float d = loop_half(from);
    for (int s = 0; s < 8; s++)
        LOOP_LEVELS(lb_gguf_iq4, from + 8 + 16 * s,
                    d * (float)loop_iq4_xs_scale(from, s), out + 32 * s);
}

#include "kernels/gguf_grid_loops.h"

/* ---- the table ----------------------------------------------------------- */

#define LOOP_BLOCKS(NAME, LEN, SIZE)                                           \
    LOOP_FN void loop_all_##NAME(const uint8_t *from, int64_t n, float *out)   \
    {                                                                          \
        for (; n > 0; n--, from += (SIZE), out += (LEN))                       \
            loop_##NAME(from, out);                                            \
    }
LB_GGUF_TYPES(LOOP_BLOCKS)
LB_GGUF_SCALED(LOOP_BLOCKS)

#define LOOP_ENTRY(NAME, LEN, SIZE) .NAME = loop_all_##NAME,
const lb_gguf_decoders LOOP_TABLE = {LB_GGUF_TYPES(LOOP_ENTRY)
                                         LB_GGUF_SCALED(LOOP_ENTRY)};

#include "kernels/gguf_integer_loops.h"
