/* quantize.c - "quantize": converts any float array to a format's codes and
 * scales.
 *
 * The format defines what is stored (layout) and encodes it, either one run at
 * a time (encode_run, called from here) or in its own phases (encode_plan and
 * encode). Encoders read the source with lb_source_read and related functions,
 * which ensure that every value is finite.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "kernels/encode.h"
#include "lowbit_params.h"
#include "prims/cuts.h"
#include "prims/dims.h"
#include "prims/quantize_vjp.h"

extern const lb_prim lb_prim_quantize_scales;

enum { PIECE = 2048 }; /* elements per piece, approximately */

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_quant *q = c->params;
    const lb_array *a = c->in[0];
    lb_layout l;
    if (!q->format)
        return lb_fail(cx, LB_E_NULL, "quantize: the format is NULL");
    if (!lb_dtype_is_float(a->dtype))
        return lb_fail(cx, LB_E_DTYPE,
                       "quantize: %s%s is not of a float dtype (for codes and "
                       "a scale use lb_from_codes, for numbers lb_convert)",
                       lb_dtype_name(a->dtype), LB_SHOW(&a->shape));
    if (!lb_layout_of(cx, q, a->dtype, &a->shape, &l)) return false;
    c->shape = a->shape;
    c->dtype = l.dtype;
    return true;
}

static lb_layout layout_of(const lb_call *c)
{
    lb_layout l;
    lb_layout_of(NULL, c->params, c->in[0]->dtype, &c->in[0]->shape, &l);
    return l;
}

static lb_array *result(lb_ctx *cx, const lb_call *c)
{
    const lb_quant *q = c->params;
    lb_layout l = layout_of(c);
    lb_array *out = lb_layout_alloc(cx, q, &l, &c->shape);
    if (out && q->format->prepare) q->format->prepare(q, out->store);
    return out;
}

/* ---- pieces: distribution of runs ---------------------------------------- */

typedef struct {
    int64_t row;    /* elements of a stored row */
    int64_t length; /* elements of a piece: a multiple of the run, or the row */
    int64_t each;   /* pieces per row */
    int64_t total;  /* pieces in total */
    int64_t unit;   /* pieces per unit of work */
} pieces;

static pieces pieces_of(const lb_call *c)
{
    const lb_layout l = layout_of(c);
    const int rank = l.stored.rank;
    const int64_t size = lb_shape_size(&l.stored);
    pieces p = {.row = rank ? l.stored.dim[rank - 1] : 1};
    if (!size) return (pieces){.row = 1, .each = 1, .unit = 1};
    p.length = lb_max_i64(PIECE / l.run, 1);
    p.length = p.length > p.row / l.run ? p.row : p.length * l.run;
    p.each = lb_ceil_div(p.row, p.length);
    p.total = size / p.row * p.each;
    p.unit = lb_max_i64(4 * PIECE / p.length, 1);
    return p;
}

/* ---- boxes: if the source is not row-major ------------------------------- */

/* The axis along which the source is read, if it is not the last; else -1. */
static int nearest_axis(const lb_array *a)
{
    const int last = a->shape.rank - 1;
    int best = last;
    for (int k = last - 1; k >= 0; k--)
        if (a->shape.dim[k] > 1 &&
            lb_distance(a->stride[k]) < lb_distance(a->stride[best]))
            best = k;
    return best == last ? -1 : best;
}

/* Boxes of short pieces of many rows: read together they are long contiguous
 * runs. tiles is 0 if rows are to be read one by one. */
static lb_tiling boxes_of(const lb_call *c)
{
    enum { SHORT = 128, SIZE = 16384 }; /* elements */
    const lb_layout l = layout_of(c);
    const lb_array *a = c->in[0];
    const int last = a->shape.rank - 1, other = nearest_axis(a);
    lb_tiling t = {.shape = a->shape, .tiles = 0};
    if (other < 0 || !lb_shape_equal(&l.stored, &a->shape) ||
        !lb_shape_size(&a->shape) || l.run > SIZE / 4)
        return t;
    t.tiles = t.size = 1;
    for (int k = 0; k <= last; k++)
        t.n[k] = 1;
    t.n[last] =
        lb_min_i64(a->shape.dim[last], lb_max_i64(SHORT / l.run, 1) * l.run);
    t.n[other] = lb_min_i64(a->shape.dim[other], SIZE / t.n[last]);
    for (int k = 0; k <= last; k++) {
        t.count[k] = lb_ceil_div(a->shape.dim[k], t.n[k]);
        t.tiles *= t.count[k];
        t.size *= t.n[k];
    }
    return t;
}

static void encode_boxes(const lb_work *w, const lb_quant *q,
                         const lb_tiling *t)
{
    const int last = t->shape.rank - 1;
    int64_t stride[LB_MAX_RANK], lo[LB_MAX_RANK], n[LB_MAX_RANK];
    lb_row_major(&t->shape, stride);
    for (int64_t u = w->lo; u < w->hi; u++) {
        const int64_t size = lb_tiling_box(t, u, lo, n), rows = size / n[last];
        const float *x = w->scratch;
        int64_t first = 0, step = 0; /* of the only axis with more than one
                                      * row */
        for (int k = 0; k <= last; k++) {
            first += lo[k] * stride[k];
            if (k < last && n[k] > 1) step = stride[k];
        }
        lb_source_read_box(w, lo, n, w->scratch);
        for (int64_t r = 0; r < rows; r++)
            q->format->encode_run(w->call->cpu, q, w->out->store,
                                  first + r * step, n[last], x + r * n[last]);
    }
}

static void plan(const lb_call *c, lb_plan *to)
{
    const lb_format *fmt = ((const lb_quant *)c->params)->format;
    to->kernel = fmt->name;
    if (!fmt->encode_run) {
        fmt->encode_plan(c, to);
        return;
    }
    const pieces p = pieces_of(c);
    const lb_tiling t = boxes_of(c);
    const int64_t length = t.tiles ? t.size : p.length;
    to->per_thread = (size_t)length * sizeof(float);
    to->phases = 1;
    to->units[0] = t.tiles ? t.tiles : lb_ceil_div(p.total, p.unit);
}

static void encode_runs(const lb_work *w, const lb_quant *q)
{
    const lb_tiling t = boxes_of(w->call);
    if (t.tiles) {
        encode_boxes(w, q, &t);
        return;
    }
    const pieces p = pieces_of(w->call);
    const int64_t end = lb_min_i64(w->hi * p.unit, p.total);
    for (int64_t i = w->lo * p.unit; i < end; i++) {
        const int64_t at = i % p.each * p.length;
        const int64_t first = i / p.each * p.row + at;
        const int64_t n = lb_min_i64(p.length, p.row - at);
        const float *x = lb_source_peek(w, first, n, w->scratch);
        q->format->encode_run(w->call->cpu, q, w->out->store, first, n, x);
    }
}

static void eval(const lb_work *w)
{
    static const lb_cpu reference = {.level = LB_LEVEL_REF};
    const lb_quant *q = w->call->params;
    lb_call call = *w->call;
    lb_work work = *w;
    if (q->reference) call.cpu = &reference;
    work.call = &call;
    if (q->format->encode_run)
        encode_runs(&work, q);
    else
        q->format->encode(&work);
}

/* ---- the source ---------------------------------------------------------- */

/* No NaN and no |x| above most, which is finite: without the sign, the bits of
 * floats have the same order as the values, with infinities and NaNs on top. */
static bool all_within(const lb_work *w, const float *x, int64_t n, float most)
{
    uint32_t limit;
    memcpy(&limit, &most, sizeof limit);
    return lb_encode_kernel_for(w->call->cpu)->peak_bits(x, n) <= limit;
}

/* The largest value of the source's dtype, or that the format can encode. */
static float largest(const lb_work *w)
{
    const lb_quant *q = w->call->params;
    const lb_dtype d = w->call->in[0]->dtype;
    const float most = d == LB_F16    ? 65504.0f
                       : d == LB_BF16 ? 0x1.fep127f
                                      : FLT_MAX;
    const float takes = q->format->largest;
    return takes > 0 && takes < most ? takes : most;
}

static float clamped(float x, float most)
{
    return isnan(x) ? 0 : x > most ? most : x < -most ? -most : x;
}

/* Whether bad values are clamped; otherwise the first one is reported. */
static bool mends(const lb_work *w)
{
    const lb_quant *q = w->call->params;
    return q->on_nonfinite == LB_NONFINITE_CLAMP;
}

static void mend(float most, int64_t n, float *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = clamped(x[i], most);
}

/* Pointer to n consecutive f32 elements starting at first, or NULL. */
static const float *in_place(const lb_array *a, int64_t first, int64_t n)
{
    const int last = a->shape.rank - 1;
    if (!a->store->data || a->store->elem != LB_F32 || a->dtype != LB_F32)
        return NULL;
    const float *x = (const float *)a->store->data + a->offset;
    if (lb_is_row_major(a)) return x + first;
    const int64_t row = a->shape.dim[last];
    if (a->stride[last] != 1 || n > row - first % row) return NULL;
    for (int k = last; k >= 0; first /= a->shape.dim[k], k--)
        x += first % a->shape.dim[k] * a->stride[k];
    return x;
}

const float *lb_source_peek(const lb_work *w, int64_t first, int64_t n,
                            float *room)
{
    const lb_call *c = w->call;
    const float most = largest(w), *x = in_place(c->in[0], first, n);
    if (x && all_within(w, x, n, most)) return x;
    if (x)
        memcpy(room, x, (size_t)n * sizeof *x);
    else
        lb_tile_read_flat(c->cpu, c->in[0], first, n, LB_C_F32, room);
    if (!x && all_within(w, room, n, most)) return room;
    for (int64_t i = 0; i < n && !mends(w); i++)
        if (!(fabsf(room[i]) <= most)) lb_work_trouble(w, first + i);
    mend(most, n, room);
    return room;
}

const float *lb_source_again(const lb_work *w, int64_t first, int64_t n,
                             float *room)
{
    const float *x = in_place(w->call->in[0], first, n);
    return x && !mends(w) ? x : lb_source_peek(w, first, n, room);
}

void lb_source_read(const lb_work *w, int64_t first, int64_t n, float *x)
{
    const float *from = lb_source_peek(w, first, n, x);
    if (n && from != x) memcpy(x, from, (size_t)n * sizeof *x);
}

void lb_source_read_box(const lb_work *w, const int64_t *lo, const int64_t *n,
                        float *x)
{
    const lb_call *c = w->call;
    const lb_shape *shape = &c->in[0]->shape;
    const float most = largest(w);
    int64_t size = 1;
    for (int k = 0; k < shape->rank; k++)
        size *= n[k];
    lb_tile_read(c->cpu, c->in[0], lo, n, LB_C_F32, x);
    if (all_within(w, x, size, most)) return;
    for (int64_t i = 0; i < size && !mends(w); i++) {
        if (fabsf(x[i]) <= most) continue;
        int64_t where = 0, rest = i, step = 1;
        for (int k = shape->rank - 1; k >= 0; k--) {
            where += (lo[k] + rest % n[k]) * step;
            rest /= n[k];
            step *= shape->dim[k];
        }
        lb_work_trouble(w, where);
    }
    mend(most, size, x);
}

static void trouble(lb_ctx *cx, const lb_call *c, int64_t where)
{
    const lb_quant *q = c->params;
    const lb_array *a = c->in[0];
    double v;
    lb_shape at = {.rank = a->shape.rank};
    lb_tile_read_flat(c->cpu, a, where, 1, LB_C_F64, &v);
    for (int k = at.rank - 1; k >= 0; k--) {
        at.dim[k] = where % a->shape.dim[k] + (c->whole ? c->whole->lo[k] : 0);
        where /= a->shape.dim[k];
    }
    const lb_shape *all = c->whole ? &c->whole->shape : &a->shape;
    lb_fail(cx, LB_E_ARG,
            "quantize: element %s of %s%s is %g, which %s cannot hold "
            "(config.on_nonfinite may be set to clamp)",
            LB_SHOW(&at), lb_dtype_name(a->dtype), LB_SHOW(all), v,
            q->format->name);
}

/* ---- sharding ------------------------------------------------------------ */

static lb_array *share(lb_ctx *cx, const lb_share *p)
{
    const lb_call *c = p->whole;
    return lb_bind_slice(cx, c->prim, 1, p->in, c->params, p->slice_of);
}

static bool meet(const lb_work *w)
{
    const lb_quant *q = w->call->params;
    return q->format->encode_meet(w);
}

/* Whether the axes of the stored shape are those of the array, to which the
 * parts table then applies. */
static bool lies_as_it_is(const lb_call *c, const lb_layout *l)
{
    return lb_shape_equal(&l->stored, &c->in[0]->shape);
}

/* Blocks stay whole. For scales shared along a cut axis ranks cooperate, if the
 * format can; otherwise the array is gathered, and the result cut again. */
static bool shard(const lb_call *c, lb_cuts *to)
{
    const lb_quant *q = c->params;
    const lb_layout l = layout_of(c);
    to->firm = to->keeps = true;
    if (!lies_as_it_is(c, &l)) return false;
    lb_cuts_same(c, to);
    for (int k = 0; k < c->shape.rank; k++)
        for (int p = 0; p < LB_MAX_PARTS; p++) {
            const int64_t g = l.part[p].g[k], was = to->grain[k + 1];
            if (!l.elem[p]) continue;
            if (!g) to->spans[k + 1] = true;
            if (g > was) to->grain[k + 1] = g;
        }
    /* A general encoder may read any part of the source. */
    const bool alone = q->format->encode && !q->format->encode_meet;
    for (int k = 0; k < c->shape.rank && !q->format->encode_meet; k++)
        if (alone || to->spans[k + 1]) to->in[0][k] = to->out[k] = 0;
    to->run = share;
    return true;
}

const lb_prim lb_prim_quantize = {
    .struct_size = sizeof(lb_prim),
    .name = "quantize",
    .element_ns = 0.7F,
    .params_size = sizeof(lb_quant),
    .params_exact = offsetof(lb_quant, clip_gradient) + 1,
    .n_in = 1,
    .infer = infer,
    .plan = plan,
    .eval = eval,
    .result = result,
    .trouble = trouble,
    .vjp = lb_quantize_vjp,
    .shard = shard,
    .meet = meet,
    .flow = LB_FLOW_ALWAYS,
};

/* ---- public functions ---------------------------------------------------- */

static lb_array *run(lb_ctx *cx, const char *who, lb_array *a,
                     const lb_quant_config *config, bool floats)
{
    lb_quant q;
    lb_quant_config c;
    if (!cx) return NULL;
    if (!a) {
        lb_fail(cx, LB_E_NULL, "%s: the array is NULL", who);
        return NULL;
    }
    if (!lb_config_read(cx, who, config, &c) ||
        !lb_quant_to(cx, who, &c, a->shape.rank, &q))
        return NULL;
    if (floats && !q.dtype) q.dtype = a->dtype;
    if (floats && !lb_dtype_is_float(q.dtype)) {
        lb_fail(cx, LB_E_DTYPE, "%s: %s is not a float dtype", who,
                lb_dtype_name(q.dtype));
        return NULL;
    }
    lb_enter(cx);
    lb_array *out = lb_bind(cx, &lb_prim_quantize, 1, &a, &q);
    if (out && c.double_quant)
        out = lb_bind(cx, &lb_prim_quantize_scales, 1, &out,
                      &(lb_quantize_scales_params){q.compat});
    if (out && c.simulate) out = lb_materialize(cx, out);
    return lb_leave_with(cx, out);
}

lb_array *lb_quantize(lb_ctx *cx, lb_array *a, const lb_quant_config *config)
{
    return run(cx, "quantize", a, config, false);
}

lb_array *lb_straight_through(lb_ctx *cx, lb_array *a,
                              const lb_quant_config *config)
{
    return run(cx, "straight_through", a, config, true);
}
