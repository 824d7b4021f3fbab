/* small_float_loops.h - decoders of small_float.h, in loops that a compiler
 * turns into vector instructions. Each level includes it with
 *
 *   LOOP_FN     how its functions are declared
 *   LOOP_TABLE  the lb_small_decoders to define
 *   LOOP_E4M3, LOOP_E5M2  optional: 16 values times a scale
 *   LOOP_E2M1  optional: the same, of 8 bytes
 *
 * A value is exact in f32, so there is one rounding: that of the product.
 */
#include <string.h>

#include "kernels/small_float.h"

enum { LOOP_RUN = 16 };

LOOP_FN float loop_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Without the sign: m bits of mantissa, an exponent that begins at 1 - bias. */
LOOP_FN float loop_value(uint32_t em, int m, int bias)
{
    const uint32_t normal = (em << (23 - m)) + ((uint32_t)(127 - bias) << 23);
    const float step = loop_float((uint32_t)(128 - bias - m) << 23);
    return em < 1u << m ? (float)(int)em * step : loop_float(normal);
}

LOOP_FN float loop_signed(float x, uint32_t sign)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return loop_float(bits | sign);
}

LOOP_FN float loop_e4m3(uint32_t code)
{
    const uint32_t em = code & 0x7f;
    const float x = em == 0x7f ? loop_float(0x7fc00000) : loop_value(em, 3, 7);
    return loop_signed(x, code >> 7 << 31);
}

LOOP_FN float loop_e5m2(uint32_t code)
{
    const uint32_t em = code & 0x7f;
    const uint32_t quiet = em == 0x7c ? 0 : 0x00400000; /* NaNs as of f16 */
    const float top = loop_float(0x7f800000 | quiet | (em & 3) << 21);
    const float x = em >= 0x7c ? top : loop_value(em, 2, 15);
    return loop_signed(x, code >> 7 << 31);
}

LOOP_FN float loop_e2m1(uint32_t code)
{
    static const float level[16] = {0,     0.5F,  1,  1.5F,  2,  3,  4,  6,
                                    -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};
    return level[code];
}

/* ---- runs ---------------------------------------------------------------- */

/* 16 bytes of kind VALUE, by OP. */
#define LOOP_SIXTEEN(NAME, VALUE, OP)                                          \
    LOOP_FN void NAME(const uint8_t *restrict code, float v,                   \
                      float *restrict out)                                     \
    {                                                                          \
        for (int i = 0; i < LOOP_RUN; i++)                                     \
            out[i] = VALUE(code[i]) OP v;                                      \
    }

#define LOOP_BYTES(NAME, RUN, VALUE, OP)                                       \
    LOOP_FN void loop_##NAME(const uint8_t *code, int64_t skip, int64_t n,     \
                             lb_spans s, float *out)                           \
    {                                                                          \
        int64_t i = 0, end = lb_span_first(s, n);                              \
        (void)skip;                                                            \
        for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {       \
            const float v = s.value[k];                                        \
            for (; end - i >= LOOP_RUN; i += LOOP_RUN)                         \
                RUN(code + i, v, out + i);                                     \
            for (; i < end; i++)                                               \
                out[i] = VALUE(code[i]) OP v;                                  \
        }                                                                      \
    }

/* Halves of bytes. */
#define LOOP_HALVES(NAME, RUN, OP)                                             \
    LOOP_FN void loop_##NAME(const uint8_t *byte, int64_t skip, int64_t n,     \
                             lb_spans s, float *out)                           \
    {                                                                          \
        int64_t i = 0, end = lb_span_first(s, n);                              \
        for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {       \
            const float v = s.value[k];                                        \
            while (i < end) {                                                  \
                const uint8_t *from = byte + (i + skip) / 2;                   \
                const bool high = (i + skip) & 1;                              \
                if (!high && end - i >= LOOP_RUN) {                            \
                    RUN(from, v, out + i);                                     \
                    i += LOOP_RUN;                                             \
                } else {                                                       \
                    out[i++] = loop_e2m1(high ? *from >> 4 : *from & 15) OP v; \
                }                                                              \
            }                                                                  \
        }                                                                      \
    }

LOOP_FN void loop_split(const uint8_t *from, uint8_t *code)
{
    for (int i = 0; i < LOOP_RUN / 2; i++) {
        code[2 * i] = from[i] & 15;
        code[2 * i + 1] = from[i] >> 4;
    }
}

LOOP_FN void loop_divide_e2m1(const uint8_t *from, float v, float *out)
{
    uint8_t code[LOOP_RUN];
    loop_split(from, code);
    for (int i = 0; i < LOOP_RUN; i++)
        out[i] = loop_e2m1(code[i]) / v;
}

#ifndef LOOP_E2M1
#define LOOP_E2M1 loop_times_e2m1
LOOP_FN void loop_times_e2m1(const uint8_t *from, float v, float *out)
{
    uint8_t code[LOOP_RUN];
    loop_split(from, code);
    for (int i = 0; i < LOOP_RUN; i++)
        out[i] = loop_e2m1(code[i]) * v;
}
#endif

#ifndef LOOP_E4M3
#define LOOP_E4M3 loop_times_e4m3
#define LOOP_E5M2 loop_times_e5m2
LOOP_SIXTEEN(loop_times_e4m3, loop_e4m3, *)
LOOP_SIXTEEN(loop_times_e5m2, loop_e5m2, *)
#endif
LOOP_SIXTEEN(loop_divide_e4m3, loop_e4m3, /)
LOOP_SIXTEEN(loop_divide_e5m2, loop_e5m2, /)

LOOP_BYTES(e4m3_times, LOOP_E4M3, loop_e4m3, *)
LOOP_BYTES(e5m2_times, LOOP_E5M2, loop_e5m2, *)
LOOP_BYTES(e4m3_divided, loop_divide_e4m3, loop_e4m3, /)
LOOP_BYTES(e5m2_divided, loop_divide_e5m2, loop_e5m2, /)
LOOP_HALVES(e2m1_times, LOOP_E2M1, *)
LOOP_HALVES(e2m1_divided, loop_divide_e2m1, /)

const lb_small_decoders LOOP_TABLE = {
    .times = {loop_e4m3_times, loop_e5m2_times, loop_e2m1_times},
    .divided = {loop_e4m3_divided, loop_e5m2_divided, loop_e2m1_divided},
};
