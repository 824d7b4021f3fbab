/* e4m3.c - 8-bit floats with a scale per block of a row.
 *
 *     code = sign | 4 bits e | 3 bits m             seee emmm
 *     value = (1 + m/8) 2^(e-7), or m 2^-9 if e is 0
 *     w = value * scale,   scale = max |w| of the block / 448
 *
 * Variant "fn": no infinities; 0x7f and 0xff are NaN; the largest value is 448
 * (0x7e). Finite values never become NaN. A block is config.block_size elements
 * of the last axis (default 128); the last block of a row may be shorter. A
 * block of zeros has scale 0.
 */
#include "e4m3.h"

#include <math.h>
#include <string.h>

enum { CODES, SCALE };
enum { BLOCK = 128 };
static const float largest = 448; /* (1 + 6/8) 2^(15-7) */

/* ---- one value ----------------------------------------------------------- */

/* The exponent biases of e4m3 and f32 are 7 and 127. */
enum { BIAS = 127 - 7, M_SHIFT = 23 - 3 };

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

float e4m3_value(uint8_t code)
{
    const uint32_t em = code & 0x7f;
    const uint32_t u = (em << M_SHIFT) + ((uint32_t)BIAS << 23);
    float x;
    memcpy(&x, &u, sizeof x);
    if (em < 0x08) x = (float)em * 0x1p-9f;
    if (em == 0x7f) x = NAN;
    return code & 0x80 ? -x : x;
}

uint8_t e4m3_code(float x)
{
    const uint32_t sign = bits_of(x) >> 31 << 7;
    const float a = fabsf(x);
    uint32_t u = bits_of(a), em;
    if (a < 0x1p-6f) /* adding 2^14 leaves 2^-9 as the last bit */
        em = bits_of(a + 0x1p14f) - bits_of(0x1p14f);
    else { /* round half to even */
        u += (1u << (M_SHIFT - 1)) - 1 + (u >> M_SHIFT & 1);
        em = (u >> M_SHIFT) - (BIAS << 3);
    }
    return (uint8_t)(sign | (a < largest ? em : 0x7e));
}

/* ---- functions of the format --------------------------------------------- */

static bool e4m3_layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                        const lb_shape *shape, lb_layout *to)
{
    const int64_t block = q->block_size ? q->block_size : BLOCK;
    (void)from; /* f32, f16, bf16 and f64 are encoded alike */
    if (q->compat || q->decode || q->meaning || q->threshold || q->center ||
        q->axes.n || q->blocks == LB_BLOCKS_FLAT ||
        (q->scale && q->scale != LB_SCALE_BLOCK))
        return lb_fail(cx, LB_E_ARG,
                       "e4m3 supports only block_size, dtype and "
                       "on_nonfinite of a config");
    if (lb_ctype_of(to->dtype) != LB_C_F32 &&
        lb_ctype_of(to->dtype) != LB_C_F64)
        return lb_fail(cx, LB_E_DTYPE, "e4m3: %s is not a float dtype",
                       lb_dtype_name(to->dtype));
    lb_part_rows(&to->part[CODES], shape, 1);
    lb_part_rows(&to->part[SCALE], shape, block);
    to->elem[CODES] = LB_U8;
    to->elem[SCALE] = LB_F32;
    to->run = block;
    return true;
}

static void e4m3_encode_run(const lb_cpu *cpu, const lb_quant *q, lb_store *to,
                            int64_t first, int64_t n, const float *x)
{
    const int64_t block = q->block_size ? q->block_size : BLOCK;
    uint8_t *code = lb_part_place(to, CODES);
    float *scale = lb_part_place(to, SCALE);
    (void)cpu; /* no special kernels */
    code += lb_part_entry(to, CODES, first);
    scale += lb_part_entry(to, SCALE, first);
    for (int64_t lo = 0; lo < n; lo += block, scale++) {
        const int64_t hi = n - lo > block ? lo + block : n;
        float most = 0;
        for (int64_t i = lo; i < hi; i++)
            most = fmaxf(most, fabsf(x[i]));
        *scale = most / largest;
        for (int64_t i = lo; i < hi; i++)
            code[i] = e4m3_code(*scale > 0 ? x[i] / *scale : 0 * x[i]);
    }
}

static void e4m3_decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                        int64_t n, void *out)
{
    const uint8_t *code = lb_part_bytes(s, CODES);
    float *w = out;
    code += lb_part_entry(s, CODES, first);
    lb_part_scales(cpu, s, SCALE, first, n, w);
    for (int64_t i = 0; i < n; i++)
        w[i] *= e4m3_value(code[i]);
}

/* The largest codes are 32 apart, so the error is 16 / 448, plus three
 * roundings (scale, quotient, product) of 2^-24 each. */
static double e4m3_bound(const lb_quant *q)
{
    (void)q;
    return 16.0 / 448 + 0x1p-21;
}

const lb_format e4m3_format = {
    .struct_size = sizeof(lb_format),
    .name = "e4m3",
    .part = {{.name = "codes", .raw = true}, {.name = "scale", .scale = true}},
    .codes = {.bits = 8, .most = 0xff, .step = 1},
    .relabel = true,
    .decode = e4m3_decode,
    .layout = e4m3_layout,
    .encode_run = e4m3_encode_run,
    .bound = e4m3_bound,
};
