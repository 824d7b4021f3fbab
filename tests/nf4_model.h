/* nf4_model.h - a reference for nf4, independent of the library: the levels and
 * the three rules as their original programs state them; and helpers shared by
 * its tests. */
#ifndef LB_NF4_MODEL_H
#define LB_NF4_MODEL_H

#include "check.h"
#include "lowbit_ext.h"
#include "numbers.h"

/* As bitsandbytes prints them. */
static const float level[16] = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

/* ---- the rules ----------------------------------------------------------- */

static inline int argmin_code(float v)
{
    int best = 0;
    for (int c = 1; c < 16; c++)
        if (fabsf(v - level[c]) < fabsf(v - level[best])) best = c;
    return best;
}

static inline int bucketize_code(float v)
{
    int c = 0;
    while (c < 15 && (level[c] + level[c + 1]) / 2 < v)
        c++;
    return c;
}

static inline int tree_code(float v)
{
    static const float edge[15] = {
        -0.8480964004993439f,   -0.6106329262256622f,  -0.4599952697753906f,
        -0.33967943489551544f,  -0.23460740596055984f, -0.13791173323988914f,
        -0.045525018125772476f, 0.03979014977812767f,  0.1202552504837513f,
        0.2035212516784668f,    0.2920137718319893f,   0.3893125355243683f,
        0.5016634166240692f,    0.6427869200706482f,   0.8614784181118011f,
    };
    int c = 0;
    for (int j = 0; j < 15; j++)
        c += v > edge[j];
    return c;
}

/* ---- small helpers ------------------------------------------------------- */

static inline float from_bits(lb_dtype d, uint32_t bits)
{
    return (float)number_from_float(d, bits);
}

static inline lb_array *array_of(lb_ctx *cx, lb_dtype d, lb_shape shape,
                                 const float *x)
{
    return lb_convert(cx, lb_from(cx, LB_F32, shape, x), d);
}

static const uint8_t *bytes_of(lb_ctx *cx, lb_array *a, const char *name)
{
    lb_array *part = lb_component(cx, a, name);
    CHECK(part && lb_data(part));
    return part ? lb_data(part) : NULL;
}

/* Nibble i of a row of bytes. */
static inline int nibble(const uint8_t *byte, int64_t i)
{
    return i % 2 ? byte[i / 2] & 15 : byte[i / 2] >> 4;
}

static inline bool same_f32(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static inline void refused(lb_ctx *cx, const lb_array *got, lb_status status,
                           const char *word)
{
    CHECK(!got);
    CHECK_EQ_I(lb_error_status(cx), status);
    if (check_fails(strstr(lb_error(cx), word) != NULL))
        fprintf(stderr, "error \"%s\" does not contain \"%s\"\n", lb_error(cx),
                word);
    lb_clear(cx);
}

static inline void fill(uint64_t seed, int64_t n, float *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((int64_t)(number_draw(&seed) >> 40) - (1 << 23)) /
               (float)(1 << 20);
}

#endif
