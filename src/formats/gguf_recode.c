/* gguf_recode.c - see gguf_recode.h. kernels/gguf_loops.h has drawings of the
 * blocks.
 *
 * Parameters are exact in f32: a d of 11 bits times a small scale of at most 8.
 */
#include "formats/gguf_recode.h"

#include <math.h>
#include <string.h>

#include "formats/gguf_block.h"

/* ---- parameters ---------------------------------------------------------- */

void lb_gguf_put_d(uint8_t *to, float d)
{
    const uint16_t h = lb_f16_from_f32(d);
    to[0] = (uint8_t)(h & 0xff);
    to[1] = (uint8_t)(h >> 8);
}

static lb_qparam scaled(float scale, int zero)
{
    return (lb_qparam){.scale = scale, .zero = zero};
}

static lb_qparam d_first_16(const uint8_t *block, int i)
{
    (void)i;
    return scaled(lb_gguf_get_d(block), 16);
}

static lb_qparam d_first_1(const uint8_t *block, int i)
{
    (void)i;
    return scaled(lb_gguf_get_d(block), 1);
}

static lb_qparam d_and_m(const uint8_t *block, int i)
{
    (void)i;
    return (lb_qparam){.scale = lb_gguf_get_d(block),
                       .bias = lb_gguf_get_d(block + 2)};
}

/* Codes 0 and 1 are -d and d. */
static lb_qparam d_or_minus_d(const uint8_t *block, int i)
{
    (void)i;
    const float d = lb_gguf_get_d(block);
    return (lb_qparam){.scale = 2 * d, .bias = -d};
}

/* Half of 2^(e - 127), because levels are doubled. */
static lb_qparam power(const uint8_t *block, int i)
{
    (void)i;
    return scaled(ldexpf(1, block[0] - 128), 0);
}

static lb_qparam of_q2_k(const uint8_t *block, int i)
{
    const int both = block[i / 16];
    return (lb_qparam){.scale = lb_gguf_get_d(block + 80) * (float)(both & 15),
                       .bias =
                           -(lb_gguf_get_d(block + 82) * (float)(both >> 4))};
}

static lb_qparam of_q3_k(const uint8_t *block, int i)
{
    const int s = i / 16;
    const uint8_t *scale = block + 96;
    const int low = scale[s % 8] >> s / 8 * 4 & 15;
    const int high = scale[8 + s % 4] >> s / 4 * 2 & 3;
    return scaled(lb_gguf_get_d(block + 108) * (float)((low | high << 4) - 32),
                  4);
}

static int six_bits(const uint8_t *scale, int s, bool minimum)
{
    const uint8_t *first = scale + (minimum ? 4 : 0);
    if (s < 4) return first[s] & 63;
    return (minimum ? scale[4 + s] >> 4 : scale[4 + s] & 15) |
           first[s - 4] >> 6 << 4;
}

/* Of q4_k and q5_k. */
static lb_qparam of_k(const uint8_t *block, int i)
{
    const float m = (float)six_bits(block + 4, i / 32, true);
    const float scale = (float)six_bits(block + 4, i / 32, false);
    return (lb_qparam){.scale = lb_gguf_get_d(block) * scale,
                       .bias = -(lb_gguf_get_d(block + 2) * m)};
}

static lb_qparam of_q6_k(const uint8_t *block, int i)
{
    return scaled(
        lb_gguf_get_d(block + 208) * (float)(int8_t)block[192 + i / 16], 32);
}

static lb_qparam of_iq4_xs(const uint8_t *block, int i)
{
    const int s = i / 32;
    const int high = block[2 + s / 4] >> s % 4 * 2 & 3;
    const int scale = (block[4 + s / 2] >> s % 2 * 4 & 15) | high << 4;
    return scaled(lb_gguf_get_d(block) * (float)(scale - 32), 0);
}

/* ---- blocks -------------------------------------------------------------- */

void lb_gguf_put_halves(uint8_t *to, const int16_t *code)
{
    for (int i = 0; i < 16; i++)
        to[i] = (uint8_t)((code[i] & 15) | (code[16 + i] & 15) << 4);
}

static void put_fifths(uint8_t *to, const int16_t *code)
{
    uint32_t fifth = 0;
    for (int i = 0; i < 32; i++)
        fifth |= (uint32_t)(code[i] >> 4 & 1) << i;
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(fifth >> 8 * i);
}

static void put_q4_1(uint8_t *block, const int16_t *code, const lb_qparam *p)
{
    lb_gguf_put_d(block, p->scale);
    lb_gguf_put_d(block + 2, p->bias);
    lb_gguf_put_halves(block + 4, code);
}

static void put_q5_0(uint8_t *block, const int16_t *code, const lb_qparam *p)
{
    lb_gguf_put_d(block, p->scale);
    put_fifths(block + 2, code);
    lb_gguf_put_halves(block + 6, code);
}

static void put_q5_1(uint8_t *block, const int16_t *code, const lb_qparam *p)
{
    lb_gguf_put_d(block, p->scale);
    lb_gguf_put_d(block + 2, p->bias);
    put_fifths(block + 4, code);
    lb_gguf_put_halves(block + 8, code);
}

/* The nearest power of two that a byte expresses. */
static void put_mxfp4(uint8_t *block, const int16_t *code, const lb_qparam *p)
{
    int e = 0;
    const float half = frexpf(p->scale, &e);
    e += 127 + (half > 0.75f);
    block[0] = (uint8_t)(e < 0 || half <= 0 ? 0 : e > 254 ? 254 : e);
    lb_gguf_put_halves(block + 1, code);
}

static void put_q2_0(uint8_t *block, const int16_t *code, const lb_qparam *p)
{
    lb_gguf_put_d(block, p->scale);
    for (int i = 0; i < 16; i++)
        block[2 + i] = (uint8_t)(code[4 * i] | code[4 * i + 1] << 2 |
                                 code[4 * i + 2] << 4 | code[4 * i + 3] << 6);
}

static void put_q1_0(uint8_t *block, const int16_t *code, const lb_qparam *p)
{
    lb_gguf_put_d(block, p->scale / 2);
    memset(block + 2, 0, 16);
    for (int i = 0; i < 128; i++)
        block[2 + i / 8] = (uint8_t)(block[2 + i / 8] | code[i] << i % 8);
}

/* ---- types --------------------------------------------------------------- */

#define RECODER(NAME) const lb_gguf_recoder lb_recode_##NAME
#define INT           LB_LEVELS_INT

LB_GGUF_TYPES(LB_DECLARE_RECODER)
RECODER(q5_0) = {INT, 0, 31, 16, false, 32, d_first_16, put_q5_0};
RECODER(q4_1) = {INT, 0, 15, 0, true, 32, d_and_m, put_q4_1};
RECODER(q5_1) = {INT, 0, 31, 0, true, 32, d_and_m, put_q5_1};
RECODER(q2_0) = {INT, 0, 3, 1, false, 64, d_first_1, put_q2_0};
RECODER(q1_0) = {INT, 0, 1, 0, true, 128, d_or_minus_d, put_q1_0};
RECODER(q2_k) = {INT, 0, 3, 0, true, 16, of_q2_k, NULL};
RECODER(q3_k) = {INT, 0, 7, 4, false, 16, of_q3_k, NULL};
RECODER(q4_k) = {INT, 0, 15, 0, true, 32, of_k, NULL};
RECODER(q5_k) = {INT, 0, 31, 0, true, 32, of_k, NULL};
RECODER(q6_k) = {INT, 0, 63, 32, false, 16, of_q6_k, NULL};
RECODER(gguf_mxfp4) = {LB_LEVELS_E2M1, 0, 15, 0, false, 32, power, put_mxfp4};
RECODER(iq4_xs) = {LB_LEVELS_IQ4, 0, 15, 0, false, 32, of_iq4_xs, NULL};
/* Points of a grid, not codes of one element each. */
RECODER(iq3_s) = {0};
RECODER(iq3_xxs) = {0};
RECODER(iq2_s) = {0};
RECODER(iq2_xs) = {0};
RECODER(iq2_xxs) = {0};
RECODER(iq1_m) = {0};
RECODER(iq1_s) = {0};

/* ---- lb_recode ----------------------------------------------------------- */

static const lb_gguf_block *type_of(const lb_store *s)
{
    return s->fmt->type;
}

static bool scheme(const lb_store *s, lb_scheme *to)
{
    const lb_gguf_recoder *r = type_of(s)->recoder;
    if (!r->group) return false;
    *to = (lb_scheme){.levels = r->levels,
                      .least = r->least,
                      .most = r->most,
                      .zero_least = r->zero,
                      .zero_most = r->zero,
                      .bias = r->bias,
                      .stores = r->put != NULL};
    for (int k = 0; k < s->shape.rank; k++)
        to->g[k] = k < s->shape.rank - 1 ? 1 : r->group;
    return true;
}

static lb_qparam param(const lb_store *s, int64_t e)
{
    const lb_gguf_block *type = type_of(s);
    const int64_t column = e % s->shape.dim[s->shape.rank - 1];
    const uint8_t *block =
        (const uint8_t *)lb_part_bytes(s, 0) + lb_part_entry(s, 0, e);
    return type->recoder->param(block, (int)(column % type->len));
}

/* The last block of a row may be short: zeros follow. */
static void put(lb_store *to, int64_t first, int64_t n, const int16_t *code,
                const lb_qparam *p)
{
    enum { MOST = 256 };
    const lb_gguf_block *type = type_of(to);
    uint8_t *at = (uint8_t *)lb_part_place(to, 0) + lb_part_entry(to, 0, first);
    int16_t filled[MOST];
    if (n < type->len) {
        for (int i = 0; i < type->len; i++)
            filled[i] = i < n ? code[i] : (int16_t)p->zero;
        code = filled;
    }
    type->recoder->put(at, code, p);
}

/* Of 32 codes of 4 bits at the end of a block: 0 and -0 decode to 0. */
static bool codes(const lb_store *s, int64_t first, int64_t n, int16_t *code)
{
    const lb_gguf_block *type = type_of(s);
    const int64_t column = first % s->shape.dim[s->shape.rank - 1];
    const uint8_t *block =
        (const uint8_t *)lb_part_bytes(s, 0) + lb_part_entry(s, 0, first);
    if (type->recoder->levels != LB_LEVELS_E2M1) return false;
    for (int64_t i = 0, at = column % type->len; i < n; i++, at++) {
        const uint8_t *byte = block + at / 32 * type->size + type->size - 16;
        code[i] = byte[at % 16] >> at % 32 / 16 * 4 & 15;
    }
    return true;
}

const lb_recode lb_gguf_recode = {
    .scheme = scheme, .param = param, .codes = codes, .put = put};
