/* small_floats.c - fp8_e4m3, fp8_e5m2, mxfp8, mxfp4, nvfp4, fp4_e2m1: layout
 * and decoding; see float_groups.h. And e8m0, the scales of some of them.
 */
#include "formats/float_groups.h"

#include <math.h>
#include <string.h>

#include "formats/config.h"
#include "formats/recode.h"

enum { CODES = LB_SMALL_CODES, SCALE = LB_SMALL_SCALE };
enum { TILE = 128 }; /* default block_size of fp8: DeepSeek's */

extern const lb_format lb_format_e8m0;

/* ---- e8m0 ---------------------------------------------------------------- */

/* w = 2^(code - 127). For code 255, programs have three answers, told apart by
 * the meaning of the array: NaN, as OCP defines it; infinity, if they compute
 * the power; or a power of two that only products see (see decode_beyond). */
enum { E8M0_NAN, E8M0_INFINITY, E8M0_BEYOND };

static void e8m0_decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                        int64_t n, void *out)
{
    const uint8_t *code = (const uint8_t *)lb_part_bytes(s, CODES) +
                          lb_part_entry(s, CODES, first);
    float *w = out;
    (void)cpu;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = lb_e8m0_bits(code[i]);
        memcpy(&w[i], &bits, sizeof *w);
    }
    for (int64_t i = 0; i < n && s->meaning == E8M0_NAN; i++)
        if (code[i] == 255) w[i] = NAN;
}

static bool check_unused(lb_ctx *cx, const lb_quant *q)
{
    return lb_config_unused(cx, q, "axis", lb_config_flag(q->axes.n)) &&
           lb_config_unused(cx, q, "threshold",
                            lb_config_threshold(q->threshold)) &&
           lb_config_unused(cx, q, "decode", lb_config_decode(q->decode)) &&
           lb_config_unused(cx, q, "center", lb_config_flag(q->center));
}

static bool e8m0_layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                        const lb_shape *shape, lb_layout *to)
{
    (void)from;
    if (!check_unused(cx, q) || !lb_config_float(cx, q, to->dtype) ||
        !lb_config_unused(cx, q, "scale", lb_config_scale(q->scale)) ||
        !lb_config_unused(cx, q, "block_size", lb_config_flag(q->block_size)) ||
        !lb_config_unused(cx, q, "compat",
                          q->compat ? lb_compat_name(q->compat) : NULL) ||
        !lb_config_unused(cx, q, "blocks",
                          lb_config_flag(q->blocks == LB_BLOCKS_FLAT)))
        return false;
    lb_part_rows(&to->part[CODES], shape, 1);
    to->elem[CODES] = LB_U8;
    return true;
}

const lb_format lb_format_e8m0 = {
    .struct_size = sizeof(lb_format),
    .name = "e8m0",
    .part = {{.name = "codes", .raw = true}},
    .codes = {.bits = 8, .most = 0xff, .step = 1},
    .relabel = true,
    .decode = e8m0_decode,
    .layout = e8m0_layout,
};

/* ---- layout -------------------------------------------------------------- */

lb_scale lb_small_scale(const lb_quant *q)
{
    const lb_small_type *type = q->format->type;
    const bool plain = type->kind == LB_E2M1 && !type->block;
    return q->scale ? q->scale : plain ? LB_SCALE_NONE : LB_SCALE_BLOCK;
}

static bool check(lb_ctx *cx, const lb_quant *q)
{
    const lb_small_type *type = q->format->type;
    const char *name = q->format->name;
    const lb_scale scale = lb_small_scale(q);
    if (!check_unused(cx, q)) return false;
    if (q->compat)
        return lb_fail(cx, LB_E_ARG,
                       "%s: compat is %s, which has no such format", name,
                       lb_compat_name(q->compat));
    if (q->blocks == LB_BLOCKS_FLAT)
        return lb_fail(cx, LB_E_ARG, "%s: blocks cannot cross rows", name);
    if (q->meaning == LB_MEANS_ABSMAX || (q->meaning && scale == LB_SCALE_NONE))
        return lb_fail(cx, LB_E_ARG, "%s: meaning is %s%s", name,
                       lb_config_meaning(q->meaning),
                       scale == LB_SCALE_NONE ? ", but there is no scale"
                                              : ", but not a scale");
    if (type->block && q->meaning)
        return lb_fail(cx, LB_E_ARG,
                       "%s: meaning is %s, but scales of this format multiply",
                       name, lb_config_meaning(q->meaning));
    if (type->block && q->scale && q->scale != LB_SCALE_BLOCK)
        return lb_fail(cx, LB_E_ARG,
                       "%s: scale is %s, but this format has one "
                       "per block",
                       name, lb_config_scale(q->scale));
    if (type->block && q->block_size && q->block_size != type->block)
        return lb_fail(cx, LB_E_ARG,
                       "%s: block_size is %lld, but blocks have "
                       "%d elements",
                       name, (long long)q->block_size, type->block);
    if (q->block_size && (scale == LB_SCALE_NONE || scale == LB_SCALE_TENSOR))
        return lb_fail(cx, LB_E_ARG, "%s: block_size is %lld, but scale is %s",
                       name, (long long)q->block_size, lb_config_scale(scale));
    return true;
}

/* A tile of the last two axes. */
static void tile_groups(const lb_quant *q, const lb_shape *shape, lb_part *p)
{
    const int64_t n = q->block_size ? q->block_size : TILE;
    const int last = shape->rank - 1;
    lb_part_rows(p, shape, n);
    if (last > 0) p->g[last - 1] = n;
    for (int k = last - 1; k <= last; k++) /* one tile: no blocks */
        if (k >= 0 && shape->dim[k] <= n && shape->dim[k] > 0) p->g[k] = 0;
}

static bool layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                   const lb_shape *shape, lb_layout *to)
{
    const lb_small_type *type = q->format->type;
    const lb_scale scale = lb_small_scale(q);
    lb_part *p = &to->part[SCALE];
    (void)from;
    if (!check(cx, q) || !lb_config_float(cx, q, to->dtype)) return false;
    lb_part_rows(&to->part[CODES], shape, type->kind == LB_E2M1 ? 2 : 1);
    to->elem[CODES] = LB_U8;
    to->run = type->block ? type->block : 1;
    if (type->block)
        lb_part_rows(p, shape, type->block);
    else if (scale == LB_SCALE_BLOCK)
        tile_groups(q, shape, p);
    else if (scale == LB_SCALE_ROW)
        lb_part_rows(p, shape, q->block_size);
    if (scale == LB_SCALE_NONE) return true;
    to->elem[SCALE] = LB_F32;
    if (type->block && lb_is_encodable(q->format)) {
        to->elem[SCALE] = LB_U8;
        to->as[SCALE] = &lb_format_e8m0;
    }
    return true;
}

/* ---- decoding ------------------------------------------------------------ */

/* A program that multiplies the integer 2 code by 2^(e - 128), as ldexp does
 * and ggml, has a finite value for e = 255 and code 1/2, and 0 for code 0. Such
 * blocks are decoded again. */
static void decode_beyond(const lb_store *s, int64_t skip, int64_t n,
                          const uint8_t *from, lb_spans scale, float *w)
{
    static const float one = 1;
    const lb_small_type *type = s->fmt->type;
    int64_t i = 0, end = lb_span_first(scale, n);
    for (int64_t k = 0; i < n; k++, i = end, end = lb_span_next(scale, end, n))
        if (isinf(scale.value[k]) && type->kind == LB_E2M1) {
            const int64_t at = i + skip;
            lb_small_decoders_ref.times[LB_E2M1](from + at / 2, at % 2, end - i,
                                                 (lb_spans){&one, n, n}, w + i);
            for (int64_t j = i; j < end; j++)
                w[j] = 2 * w[j] * 0x1p127f;
        }
}

static void decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                   int64_t n, void *out)
{
    static const float one = 1;
    const lb_small_type *type = s->fmt->type;
    const lb_small_decoders *d = lb_small_decoders_for(cpu);
    const lb_array *part = s->part[SCALE].a;
    const uint8_t *from = lb_part_bytes(s, CODES);
    const int last = s->shape.rank - 1;
    float room[LB_SPANS], each[LB_RUN];
    lb_spans scale = {&one, n, n};
    if (part) scale = lb_part_spans(cpu, s, SCALE, first, n, room, each);
    from += lb_part_entry(s, CODES, first);
    const int64_t skip =
        type->kind == LB_E2M1 && last >= 0 ? first % s->shape.dim[last] % 2 : 0;
    const bool divides = s->meaning == LB_MEANS_INVERSE;
    (divides ? d->divided : d->times)[type->kind](from, skip, n, scale, out);
    if (part && part->store->fmt == &lb_format_e8m0 &&
        part->store->meaning == E8M0_BEYOND && !divides)
        decode_beyond(s, skip, n, from, scale, out);
}

static double bound(const lb_quant *q)
{
    const lb_small_type *type = q->format->type;
    if (lb_small_scale(q) == LB_SCALE_NONE) return 0;
    return type->bound + (1 + type->bound) * lb_config_unit(q);
}

/* ---- codes and parameters ------------------------------------------------ */

/* Of E2M1 with powers of two, which other programs store as well. Levels are
 * doubled, and scales halved. */
static bool scheme(const lb_store *s, lb_scheme *to)
{
    const lb_small_type *type = s->fmt->type;
    const lb_array *scale = s->part[SCALE].a;
    if (type->kind != LB_E2M1 || s->meaning || !scale ||
        scale->store->fmt != &lb_format_e8m0)
        return false;
    *to = (lb_scheme){.levels = LB_LEVELS_E2M1, .most = 15, .stores = true};
    for (int k = 0; k < s->shape.rank; k++)
        to->g[k] = s->part[SCALE].g[k];
    return true;
}

static lb_qparam param(const lb_store *s, int64_t e)
{
    return (lb_qparam){.scale = lb_recode_get(s, SCALE, e) / 2};
}

/* The byte of an element, and in *high whether it is in the high half. */
static uint8_t *half_of(const lb_store *s, int64_t e, bool *high)
{
    uint8_t *row = s->part[CODES].a->store->data;
    const int last = s->shape.rank - 1;
    const int64_t at = last < 0 ? 0 : e % s->shape.dim[last];
    *high = at % 2;
    return row + lb_part_entry(s, CODES, e - at) + at / 2;
}

static bool get_codes(const lb_store *s, int64_t first, int64_t n,
                      int16_t *code)
{
    bool high;
    const uint8_t *from = half_of(s, first, &high);
    for (int64_t i = 0; i < n; i++)
        code[i] = from[(i + high) / 2] >> 4 * ((i + high) % 2) & 15;
    return true;
}

static void put(lb_store *to, int64_t first, int64_t n, const int16_t *code,
                const lb_qparam *p)
{
    bool high;
    int e = 0;
    uint8_t *byte = half_of(to, first, &high);
    uint8_t *scale = lb_part_place(to, SCALE);
    const float half = frexpf(p->scale, &e); /* scale = 2^(e - 1) if 1/2 */
    e += 127 + (half > 0.75f);
    scale[lb_part_entry(to, SCALE, first)] = (uint8_t)(e < 0 || half <= 0 ? 0
                                                       : e > 254          ? 254
                                                                          : e);
    for (int64_t i = 0; i < n; i += 2)
        byte[i / 2] = (uint8_t)(code[i] | (i + 1 < n ? code[i + 1] : 0) << 4);
}

static const lb_recode recode = {
    .scheme = scheme, .param = param, .codes = get_codes, .put = put};

/* ---- the formats --------------------------------------------------------- */

#define PARTS(OPTIONAL)                                                        \
    {                                                                          \
        {.name = "codes", .raw = true},                                        \
        {                                                                      \
            .name = "scale", .scale = true, .optional = (OPTIONAL)             \
        }                                                                      \
    }
#define BYTES                                                                  \
    {                                                                          \
        .bits = 8, .most = 0xff, .step = 1                                     \
    }
#define HALVES                                                                 \
    {                                                                          \
        .bits = 4, .most = 15, .step = 1                                       \
    }
#define COMMON(NAME, TYPE)                                                     \
    .struct_size = sizeof(lb_format), .name = (NAME), .relabel = true,         \
    .groups = true, .decode = decode, .layout = layout, .bound = bound,        \
    .type = (TYPE), .kernels = LB_DECODE_LEVELS & ~(1u << LB_LEVEL_NEON)

/* The largest codes of E4M3 are 32 apart (of 448), those of E5M2 8192 (of
 * 57344); three roundings of 2^-24 each. */
static const lb_small_type e4m3 = {LB_E4M3, 0, 16.0 / 448 + 0x1p-21};
static const lb_small_type e5m2 = {LB_E5M2, 0, 4096.0 / 57344 + 0x1p-21};
/* The largest value of a block is between 224 and 448 scales: at worst 16 of
 * 272. Or between 3.5 and 7: at worst 1 of 5. */
static const lb_small_type mx8 = {LB_E4M3, 32, 16.0 / 272};
static const lb_small_type mx4 = {LB_E2M1, 32, 0.2};
static const lb_small_type nv4 = {LB_E2M1, 16, 0};
static const lb_small_type e2m1 = {LB_E2M1, 0, 0};

#define FP8                                                                    \
    .part = PARTS(true), .codes = BYTES, .prepare = lb_small_prepare,          \
    .encode_plan = lb_small_plan, .encode = lb_small_encode_phases

extern const lb_format lb_format_fp8_e4m3, lb_format_fp8_e5m2, lb_format_mxfp8,
    lb_format_mxfp4, lb_format_nvfp4, lb_format_fp4_e2m1;
const lb_format lb_format_fp8_e4m3 = {COMMON("fp8_e4m3", &e4m3), FP8};
const lb_format lb_format_fp8_e5m2 = {COMMON("fp8_e5m2", &e5m2), FP8};
/* From 1.75 2^127 on, values are rounded to 2^128. In mxfp8 a value may be
 * stored as an equal one with another scale. */
const lb_format lb_format_mxfp8 = {
    COMMON("mxfp8", &mx8), .part = PARTS(false),
    .codes = BYTES,        .encode_run = lb_small_encode_run,
    .largest = 0x1.cp127f, .searches = true,
};
const lb_format lb_format_mxfp4 = {
    COMMON("mxfp4", &mx4),
    .part = PARTS(false),
    .codes = HALVES,
    .encode_run = lb_small_encode_run,
    .largest = 0x1.bffffep127f,
    .recode = &recode,
};
const lb_format lb_format_nvfp4 = {
    COMMON("nvfp4", &nv4),
    .part = PARTS(false),
    .codes = HALVES,
};
const lb_format lb_format_fp4_e2m1 = {
    COMMON("fp4_e2m1", &e2m1),
    .part = PARTS(true),
    .codes = HALVES,
};
