/* int8.c - integers from -127 to 127 times a scale that a group shares.
 *
 *   codes  i8, one per element
 *   scale  one per group: along the axes of the config, or per block of the
 *          last; s = max |x| / 127, code = round_half_even(x / s)
 *
 *   meaning scale    w = code * s, rounded to the dtype of the scale
 *           absmax   w = (code * s) * f32(1/127), where s is max |x|
 *           inverse  w = code / s
 *
 * Encoding is in i8_encode.c.
 */
#include <math.h>
#include <string.h>

#include "formats/config.h"
#include "formats/i8_encode.h"
#include "formats/recode.h"
#include "kernels/convert.h"
#include "kernels/decode.h"
#include "kernels/unpack.h"
#include "lowbit_ext.h"

enum { CODES = LB_I8_CODES, SCALE = LB_I8_SCALE };
enum { MOST = 127 };

/* ---- layout ------------------------------------------------------------- */

static bool only_last(const lb_quant *q, int rank)
{
    return !q->axes.n || (q->axes.n == 1 && q->axes.axis[0] == rank - 1);
}

static bool check(lb_ctx *cx, const lb_quant *q, int rank)
{
    if (!lb_config_unused(cx, q, "decode", lb_config_decode(q->decode)) ||
        !lb_config_unused(cx, q, "threshold",
                          lb_config_threshold(q->threshold)) ||
        !lb_config_unused(cx, q, "center", lb_config_flag(q->center)))
        return false;
    if (q->blocks == LB_BLOCKS_FLAT)
        return lb_fail(cx, LB_E_ARG,
                       "int8: blocks is flat, but groups are within rows");
    if (q->scale)
        return lb_fail(cx, LB_E_ARG,
                       "int8: scale %s is not supported: use axis or "
                       "block_size instead",
                       lb_config_scale(q->scale));
    const bool one = q->compat == LB_COMPAT_EFORMER || lb_config_is_bnb(q);
    if (one && q->meaning &&
        !(lb_config_is_bnb(q) && q->meaning == LB_MEANS_ABSMAX))
        return lb_fail(cx, LB_E_ARG,
                       "int8: meaning is %s, but compat %s stores %s",
                       lb_config_meaning(q->meaning), lb_compat_name(q->compat),
                       lb_config_is_bnb(q) ? "max |x|" : "max |x| / 127");
    const bool blocks = q->block_size && q->compat != LB_COMPAT_EFORMER;
    if ((blocks || lb_config_is_bnb(q)) && !only_last(q, rank))
        return lb_fail(cx, LB_E_AXIS,
                       "int8: axis %d of %d is not supported with %s%s, which "
                       "requires the last axis",
                       q->axes.axis[0], rank, blocks ? "block_size" : "compat ",
                       blocks ? "" : lb_compat_name(q->compat));
    return true;
}

static bool layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                   const lb_shape *shape, lb_layout *to)
{
    const int last = shape->rank - 1;
    if (!check(cx, q, shape->rank) || !lb_config_float(cx, q, to->dtype))
        return false;
    lb_part_rows(&to->part[CODES], shape, 1);
    lb_part_rows(&to->part[SCALE], shape, 1);
    int64_t *g = to->part[SCALE].g;
    for (int i = 0; i < q->axes.n; i++)
        g[q->axes.axis[i]] = 0;
    if (!q->axes.n && last >= 0) g[last] = 0;
    const bool eformer = q->compat == LB_COMPAT_EFORMER;
    if (q->block_size && !eformer && last >= 0) g[last] = q->block_size;
    if (lb_config_is_bnb(q)) to->meaning = LB_MEANS_ABSMAX;
    to->elem[CODES] = LB_I8;
    to->elem[SCALE] = eformer && from != LB_F64 ? from : LB_F32;
    return true;
}

/* The maxima of |x| of all groups start at 0. */
static void prepare(const lb_quant *q, lb_store *to)
{
    (void)q;
    const lb_store *scale = to->part[SCALE].a->store;
    if (scale->data_size) memset(scale->data, 0, scale->data_size);
}

/* ---- decoding ----------------------------------------------------------- */

static void decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                   int64_t n, void *out)
{
    const int8_t *code = lb_part_bytes(s, CODES);
    float room[LB_SPANS];
    const lb_spans scale = lb_part_spans(cpu, s, SCALE, first, n, room, out);
    code += lb_part_entry(s, CODES, first);
    lb_decode_kernel_for(cpu)->bytes((lb_meaning)s->meaning, code, n, scale,
                                     out);
    if (s->meaning == LB_MEANS_SCALE)
        lb_convert_kernel_for(cpu)->round(s->part[SCALE].a->dtype, n, out);
}

/* Not if values are rounded to 16 bits: that would round them twice. */
static bool unpack(const lb_cpu *cpu, const lb_store *s, int64_t first,
                   int64_t n, lb_sink to)
{
    const int8_t *code = lb_part_bytes(s, CODES);
    float room[LB_SPANS], each[LB_RUN];
    if (s->part[SCALE].a->dtype != LB_F32) return false;
    const lb_spans scale = lb_part_spans(cpu, s, SCALE, first, n, room, each);
    code += lb_part_entry(s, CODES, first);
    return scale.value && lb_unpack_kernel_for(cpu)->bytes(
                              (lb_meaning)s->meaning, code, n, &scale, to);
}

/* Not if values are rounded to 16 bits either. */
static bool levels(const lb_cpu *cpu, const lb_store *s, lb_levels *to)
{
    (void)cpu;
    to->scale = SCALE;
    to->inverse = s->meaning == LB_MEANS_INVERSE;
    to->factor = s->meaning == LB_MEANS_ABSMAX ? 1.0f / 127.0f : 1.0f;
    return s->part[SCALE].a->dtype == LB_F32;
}

/* ---- codes and parameters ------------------------------------------------ */

static bool scheme(const lb_store *s, lb_scheme *to)
{
    *to = (lb_scheme){.least = -128, .most = MOST, .stores = true};
    for (int k = 0; k < s->shape.rank; k++)
        to->g[k] = s->part[SCALE].g[k];
    return true;
}

static lb_qparam param(const lb_store *s, int64_t e)
{
    lb_qparam p = {.scale = lb_recode_get(s, SCALE, e)};
    p.rounded = s->meaning != LB_MEANS_SCALE;
    if (s->meaning == LB_MEANS_ABSMAX) p.scale *= 1.0f / 127.0f;
    if (s->meaning == LB_MEANS_INVERSE) p.scale = 1 / p.scale;
    return p;
}

static void put(lb_store *to, int64_t first, int64_t n, const int16_t *code,
                const lb_qparam *p)
{
    int8_t *byte = (int8_t *)lb_part_place(to, CODES) + first;
    lb_recode_set(to, SCALE, first,
                  to->meaning == LB_MEANS_ABSMAX    ? p->scale * MOST
                  : to->meaning == LB_MEANS_INVERSE ? 1 / p->scale
                                                    : p->scale);
    for (int64_t i = 0; i < n; i++)
        byte[i] = (int8_t)code[i];
}

static const lb_recode recode = {.scheme = scheme, .param = param, .put = put};

/* Half a step of 1/127. Roundings add, with u = 2^-24 and in units of a step,
 * at most 127 u each for scale, quotient and the two operations of decoding:
 * below 2^-14 in total. There is no guarantee if scales are rounded to 16 bits,
 * or values to f16 first: small groups may lose everything. */
static double bound(const lb_quant *q)
{
    if (q->compat != LB_COMPAT_NATIVE) return 0;
    return (0.5 + 0x1p-14) / MOST + lb_config_unit(q);
}

/* ---- other programs' layouts --------------------------------------------- */

/* eformer: "weight" and "scale" are our parts under other names. */
static lb_array *load_eformer(lb_ctx *cx, const lb_quant *q,
                              const lb_shape *shape, lb_array *const *part)
{
    static const char *const name[] = {"codes", "scale"};
    const lb_quant_config config = lb_config_from(q);
    return lb_from_parts(cx, &config, *shape, NULL, name, part,
                         part[SCALE] ? 2 : 1);
}

/* A scale as other programs store it: dense, with one entry per element of an
 * axis or one for the whole axis. */
static lb_array *plain_scale(lb_ctx *cx, lb_array *a, int meaning)
{
    const lb_store *s = a->store;
    if (s->meaning != meaning) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "int8: scales have meaning %d, but this layout needs %d",
                s->meaning, meaning);
        return NULL;
    }
    bool ok = lb_shape_equal(&a->shape, &s->shape);
    for (int k = 0; k < s->shape.rank; k++)
        ok = ok && (s->part[SCALE].g[k] <= 1 ||
                    s->part[SCALE].g[k] >= s->shape.dim[k]);
    if (!ok) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "int8: scales %s of %s are per block, which this layout does "
                "not support",
                LB_SHOW(&s->part[SCALE].a->shape), LB_SHOW(&a->shape));
        return NULL;
    }
    return lb_materialize(cx, s->part[SCALE].a);
}

static lb_array *save_eformer(lb_ctx *cx, lb_array *a, int part)
{
    return part ? plain_scale(cx, a, LB_MEANS_SCALE) : lb_codes(cx, a);
}

/* bitsandbytes: "weight" i8 (out, in) and "scb" f32 (out). */
static lb_array *load_bnb(lb_ctx *cx, const lb_quant *q, const lb_shape *shape,
                          lb_array *const *part)
{
    static const char *const name[] = {"codes", "scale"};
    lb_quant_config config = lb_config_from(q);
    config.meaning = LB_MEANS_ABSMAX;
    lb_shape scale = *shape;
    if (scale.rank) scale.dim[scale.rank - 1] = 1;
    lb_array *own[] = {part[CODES], part[SCALE]};
    if (own[SCALE] && !(own[SCALE] = lb_reshape(cx, own[SCALE], scale)))
        return NULL;
    return lb_from_parts(cx, &config, *shape, NULL, name, own,
                         own[SCALE] ? 2 : 1);
}

static lb_array *save_bnb(lb_ctx *cx, lb_array *a, int part)
{
    if (!part) return lb_codes(cx, a);
    lb_shape rows = a->shape;
    if (rows.rank) rows.rank--;
    lb_array *scale = plain_scale(cx, a, LB_MEANS_ABSMAX);
    if (!scale) return NULL;
    if (lb_size(scale) != lb_shape_size(&rows)) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "int8: scales %s of %s are not one per row",
                LB_SHOW(&scale->shape), LB_SHOW(&a->shape));
        return NULL;
    }
    return lb_reshape(cx, scale, rows);
}

static const lb_foreign foreign[] = {
    {"eformer", {"weight", "scale"}, load_eformer, save_eformer},
    {"bnb", {"weight", "scb"}, load_bnb, save_bnb},
    {0},
};

extern const lb_format lb_format_int8;
const lb_format lb_format_int8 = {
    .struct_size = sizeof(lb_format),
    .name = "int8",
    .part = {{.name = "codes", .raw = true}, {.name = "scale", .scale = true}},
    .codes = {.bits = 8, .least = -MOST, .most = MOST, .step = 1},
    .relabel = true,
    .levels = levels,
    .decode = decode,
    .unpack = unpack,
    .layout = layout,
    .prepare = prepare,
    .encode_plan = lb_i8_plan,
    .encode = lb_i8_encode,
    .encode_meet = lb_i8_meet,
    .bound = bound,
    .kernels = LB_DECODE_LEVELS,
    .foreign = foreign,
    .recode = &recode,
};
