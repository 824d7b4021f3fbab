/* int8.c - whole numbers from -127 to 127 times a scale that a group shares.
 *
 *   codes  i8, one per element
 *   scale  one per group: along the axes of the config, or per block of the
 *          last; s = max |x| / 127, code = round_half_even(x / s)
 *
 *   meaning scale    w = code * s, rounded to the dtype of the scale
 *           absmax   w = (code * s) * f32(1/127), where s is max |x|
 *           inverse  w = code / s
 *
 * Encoding is in whole_encode.c.
 */
#include <math.h>
#include <string.h>

#include "formats/config.h"
#include "formats/whole.h"
#include "kernels/convert.h"
#include "kernels/decode.h"
#include "kernels/unpack.h"
#include "lowbit_ext.h"

enum { CODES = LB_WHOLE_CODES, SCALE = LB_WHOLE_SCALE };
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
                       "int8: blocks is flat: its groups lie in rows");
    if (q->scale)
        return lb_fail(
            cx, LB_E_ARG,
            "int8: scale is %s: axis and block_size say who shares one",
            lb_config_scale(q->scale));
    const bool one = q->compat == LB_COMPAT_EFORMER || lb_config_is_bnb(q);
    if (one && q->meaning &&
        !(lb_config_is_bnb(q) && q->meaning == LB_MEANS_ABSMAX))
        return lb_fail(cx, LB_E_ARG, "int8: meaning is %s: compat %s stores %s",
                       lb_config_meaning(q->meaning), lb_compat_name(q->compat),
                       lb_config_is_bnb(q) ? "max |x|" : "max |x| / 127");
    const bool blocks = q->block_size && q->compat != LB_COMPAT_EFORMER;
    if ((blocks || lb_config_is_bnb(q)) && !only_last(q, rank))
        return lb_fail(cx, LB_E_AXIS,
                       "int8: axis %d of %d is to share a scale, but %s of "
                       "compat %s are along the last",
                       q->axes.axis[0], rank, blocks ? "blocks" : "the groups",
                       lb_compat_name(q->compat));
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

/* The largest |x| of groups begin there. */
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

/* Not where numbers are rounded to 16 bits: they would be, twice. */
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

/* Nor there. */
static bool levels(const lb_cpu *cpu, const lb_store *s, lb_levels *to)
{
    (void)cpu;
    to->scale = SCALE;
    to->inverse = s->meaning == LB_MEANS_INVERSE;
    to->factor = s->meaning == LB_MEANS_ABSMAX ? 1.0f / 127.0f : 1.0f;
    return s->part[SCALE].a->dtype == LB_F32;
}

/* Half a step, of which there are 127. What rounding adds, with u = 2^-24: in
 * units of a step at most 127 u for each of scale, quotient and the two of
 * decoding, below 2^-14. Where steps are rounded to 16 bits, or numbers to f16
 * before all else, nothing is promised: small groups may lose everything. */
static double bound(const lb_quant *q)
{
    if (q->compat != LB_COMPAT_NATIVE) return 0;
    return (0.5 + 0x1p-14) / MOST + lb_config_unit(q);
}

/* ---- the bytes of others ------------------------------------------------ */

/* eformer: "weight" and "scale", which are the parts under other names. */
static lb_array *load_eformer(lb_ctx *cx, const lb_quant *q,
                              const lb_shape *shape, lb_array *const *part)
{
    static const char *const name[] = {"codes", "scale"};
    const lb_quant_config config = lb_config_of(q);
    return lb_from_parts(cx, &config, *shape, NULL, name, part,
                         part[SCALE] ? 2 : 1);
}

/* A scale as others have it: dense, an entry per element of an axis or one for
 * all of it. */
static lb_array *plain_scale(lb_ctx *cx, lb_array *a, int meaning)
{
    const lb_store *s = a->store;
    if (s->meaning != meaning) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "int8: its scales have meaning %d, and this layout %d",
                s->meaning, meaning);
        return NULL;
    }
    bool ok = lb_shape_equal(&a->shape, &s->shape);
    for (int k = 0; k < s->shape.rank; k++)
        ok = ok && (s->part[SCALE].g[k] <= 1 ||
                    s->part[SCALE].g[k] >= s->shape.dim[k]);
    if (!ok) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "int8: scales %s of %s are of blocks, which this layout does "
                "not have",
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
    lb_quant_config config = lb_config_of(q);
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
                "int8: scales %s of %s are not one for each row",
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
    .encode_plan = lb_whole_plan,
    .encode = lb_whole_encode,
    .encode_meet = lb_whole_meet,
    .bound = bound,
    .kernels = LB_DECODE_LEVELS,
    .foreign = foreign,
};
