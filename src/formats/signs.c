/* signs.c - layout and decoding of signs; see signs.h. */
#include "formats/signs.h"

#include <math.h>

#include "formats/config.h"
#include "formats/recode.h"
#include "kernels/bits.h"
#include "kernels/decode.h"
#include "kernels/unpack.h"

enum { BLOCK = 64 }; /* default block_size */

lb_scale lb_signs_scale(const lb_quant *q)
{
    if (q->scale) return q->scale;
    const bool none = q->compat == LB_COMPAT_EFORMER || q->dtype == LB_I8;
    return none ? LB_SCALE_NONE : LB_SCALE_TENSOR;
}

static bool check(lb_ctx *cx, const lb_quant *q)
{
    const char *name = q->format->name;
    const bool eformer = q->compat == LB_COMPAT_EFORMER;
    if (!eformer && q->compat != LB_COMPAT_NATIVE)
        return lb_fail(cx, LB_E_ARG,
                       "%s: compat is %s, but bitsandbytes has no %s format "
                       "(use native or eformer)",
                       name, lb_compat_name(q->compat), name);
    if (!lb_config_unused(cx, q, "decode", lb_config_decode(q->decode)) ||
        !lb_config_unused(cx, q, "center", lb_config_flag(q->center)) ||
        !(eformer ||
          lb_config_unused(cx, q, "axis", lb_config_flag(q->axes.n))))
        return false;
    if (q->blocks == LB_BLOCKS_FLAT)
        return lb_fail(cx, LB_E_ARG,
                       "%s: blocks is flat, but blocks are within rows", name);
    if (q->meaning == LB_MEANS_ABSMAX)
        return lb_fail(cx, LB_E_ARG,
                       "%s: meaning is absmax, but scales are means", name);
    if (q->meaning && lb_signs_scale(q) == LB_SCALE_NONE)
        return lb_fail(cx, LB_E_ARG, "%s: meaning is %s, but there is no scale",
                       name, lb_config_meaning(q->meaning));
    if (eformer && q->scale && q->scale != LB_SCALE_NONE)
        return lb_fail(cx, LB_E_ARG,
                       "%s: scale is %s, but compat eformer has no scale", name,
                       lb_config_scale(q->scale));
    if (q->block_size && !eformer && q->scale != LB_SCALE_BLOCK)
        return lb_fail(
            cx, LB_E_ARG, "%s: block_size is %lld, but scale is %s, not block",
            name, (long long)q->block_size, lb_config_scale(lb_signs_scale(q)));
    return true;
}

static bool check_dtype(lb_ctx *cx, const lb_quant *q, lb_dtype dtype)
{
    if (dtype >= LB_F32 && dtype <= LB_F64) return true;
    if (dtype == LB_I8 && lb_signs_scale(q) == LB_SCALE_NONE) return true;
    if (dtype == LB_I8)
        return lb_fail(
            cx, LB_E_DTYPE,
            "%s: dtype i8 requires scale none, not %s (values would not "
            "be integers)",
            q->format->name, lb_config_scale(lb_signs_scale(q)));
    return lb_fail(cx, LB_E_DTYPE,
                   "%s: dtype %s is not supported (use f32, f16, bf16, f64 or, "
                   "without a scale, i8)",
                   q->format->name, lb_dtype_name(dtype));
}

bool lb_signs_layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                     const lb_shape *shape, lb_layout *to)
{
    (void)from;
    const lb_scale scale = lb_signs_scale(q);
    if (q->compat == LB_COMPAT_EFORMER && !q->dtype) to->dtype = LB_I8;
    if (!check(cx, q) || !check_dtype(cx, q, to->dtype)) return false;
    lb_part_rows(&to->part[LB_SIGNS_CODES], shape, 8 / q->format->codes.bits);
    to->elem[LB_SIGNS_CODES] = LB_U8;
    if (scale == LB_SCALE_ROW)
        lb_part_rows(&to->part[LB_SIGNS_SCALE], shape, 0);
    if (scale == LB_SCALE_BLOCK)
        lb_part_rows(&to->part[LB_SIGNS_SCALE], shape,
                     q->block_size ? q->block_size : BLOCK);
    to->elem[LB_SIGNS_SCALE] = scale == LB_SCALE_NONE ? LB_NO_DTYPE : LB_F32;
    return true;
}

/* An empty group gets the scale of zeros, because nothing will be encoded. */
void lb_signs_prepare(const lb_quant *q, lb_store *to)
{
    const lb_array *scale = to->part[LB_SIGNS_SCALE].a;
    if (!scale || lb_shape_size(&to->shape)) return;
    float *s = lb_part_place(to, LB_SIGNS_SCALE);
    for (int64_t i = 0; i < lb_size(scale); i++)
        s[i] = q->meaning == LB_MEANS_INVERSE ? INFINITY : 0;
}

/* A run of a row: where the row begins, and the position of the run in it. */
typedef struct {
    lb_fields fields;
    const uint8_t *row;
    int64_t at;
} signs_run;

static signs_run run_at(const lb_store *s, int64_t first)
{
    const lb_code_kind *k = &s->fmt->codes;
    const int last = s->shape.rank - 1;
    const int64_t at = last < 0 ? 0 : first % s->shape.dim[last];
    const uint8_t *row = lb_part_bytes(s, LB_SIGNS_CODES);
    return (signs_run){
        {k->bits, k->least, k->step, s->meaning == LB_MEANS_INVERSE},
        row + lb_part_entry(s, LB_SIGNS_CODES, first - at),
        at,
    };
}

static lb_spans scales_of(const lb_cpu *cpu, const lb_store *s, int64_t first,
                          int64_t n, float *room, float *spread)
{
    if (!s->part[LB_SIGNS_SCALE].a) return (lb_spans){NULL, n, n};
    return lb_part_spans(cpu, s, LB_SIGNS_SCALE, first, n, room, spread);
}

void lb_signs_decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                     int64_t n, void *out)
{
    float room[LB_SPANS];
    const signs_run r = run_at(s, first);
    const lb_spans scale = scales_of(cpu, s, first, n, room, out);
    lb_decode_kernel_for(cpu)->fields(r.fields, r.row, r.at, n, scale, out);
}

bool lb_signs_unpack(const lb_cpu *cpu, const lb_store *s, int64_t first,
                     int64_t n, lb_sink to)
{
    float room[LB_SPANS], each[LB_RUN];
    const signs_run r = run_at(s, first);
    const int bits = r.fields.bits;
    if (r.at * bits % 8) return false;
    const lb_spans scale = scales_of(cpu, s, first, n, room, each);
    if (s->part[LB_SIGNS_SCALE].a && !scale.value) return false;
    return lb_unpack_kernel_for(cpu)->fields(r.fields, r.row + r.at * bits / 8,
                                             n, &scale, to);
}

bool lb_signs_levels(const lb_cpu *cpu, const lb_store *s, lb_levels *to)
{
    (void)cpu;
    const lb_code_kind *k = &s->fmt->codes;
    for (int c = 0; c < 1 << k->bits; c++)
        to->level[c] = (float)(k->least + k->step * c);
    to->scale = s->part[LB_SIGNS_SCALE].a ? LB_SIGNS_SCALE : 0;
    to->inverse = s->meaning == LB_MEANS_INVERSE;
    return true;
}

/* A value and its decoded value never have opposite signs, and neither exceeds
 * the maximum; 2^-22 for the roundings of an inverse scale. */
double lb_signs_bound(const lb_quant *q)
{
    if (lb_signs_scale(q) == LB_SCALE_NONE) return 0;
    return 1 + (q->meaning == LB_MEANS_INVERSE ? 0x1p-22 : 0) +
           lb_config_unit(q);
}

/* ---- codes and parameters ------------------------------------------------ */

/* -1 and 1 are 2 c - 1 of codes 0 and 1: the step is part of the scale, and the
 * first value is a bias. -1, 0 and 1 have the zero point 1. */
static bool scheme(const lb_store *s, lb_scheme *to)
{
    const lb_part *scale = &s->part[LB_SIGNS_SCALE];
    const bool pair = s->fmt->codes.step == 2;
    *to = (lb_scheme){.most = pair ? 1 : 2,
                      .zero_least = !pair,
                      .zero_most = !pair,
                      .bias = pair,
                      .stores = true};
    for (int k = 0; k < s->shape.rank; k++)
        to->g[k] = scale->a ? scale->g[k] : 0;
    return true;
}

static lb_qparam param(const lb_store *s, int64_t e)
{
    const bool pair = s->fmt->codes.step == 2;
    float scale = 1;
    if (s->part[LB_SIGNS_SCALE].a) scale = lb_recode_get(s, LB_SIGNS_SCALE, e);
    if (s->meaning == LB_MEANS_INVERSE) scale = 1 / scale;
    if (pair) return (lb_qparam){.scale = 2 * scale, .bias = -scale};
    return (lb_qparam){.scale = scale, .zero = 1};
}

static void put(lb_store *to, int64_t first, int64_t n, const int16_t *code,
                const lb_qparam *p)
{
    enum { SOME = 256 };
    const lb_code_kind *k = &to->fmt->codes;
    const int64_t at = first % to->shape.dim[to->shape.rank - 1];
    uint8_t *row = lb_part_place(to, LB_SIGNS_CODES), bits[SOME];
    row += lb_part_entry(to, LB_SIGNS_CODES, first - at);
    const float scale = k->step == 2 ? p->scale / 2 : p->scale;
    if (to->part[LB_SIGNS_SCALE].a)
        lb_recode_set(to, LB_SIGNS_SCALE, first,
                      to->meaning == LB_MEANS_INVERSE ? 1 / scale : scale);
    for (int64_t i = 0; i < n; i += SOME) {
        const int64_t m = n - i < SOME ? n - i : SOME;
        for (int64_t c = 0; c < m; c++)
            bits[c] = (uint8_t)code[i + c];
        lb_bits_put(k->bits, (uint8_t)k->filler, bits, m, row, at + i);
    }
}

const lb_recode lb_signs_recode = {
    .scheme = scheme, .param = param, .put = put};
