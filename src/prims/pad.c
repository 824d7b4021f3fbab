/* pad.c - pad: adds a value around and between elements; negative widths remove
 * elements.
 *
 * Element i moves to lo + i*(interior + 1). Without interior padding the frame
 * and the middle are disjoint boxes, written independently; with it the whole
 * result is filled first, and then the elements are spread over it.
 */
#include "lowbit_params.h"
#include "prims/cuts.h"
#include "prims/place.h"

/* lo + hi + n + (n - 1)*interior, or false on overflow. */
static bool padded(int64_t n, int64_t lo, int64_t hi, int64_t interior,
                   int64_t *out)
{
    int64_t gaps = 0;
    return (n == 0 || lb_mul_i64(n - 1, interior, &gaps)) &&
           lb_add_i64(n, gaps, out) && lb_add_i64(*out, lo, out) &&
           lb_add_i64(*out, hi, out);
}

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_pad_params *p = c->params;
    const lb_array *a = c->in[0], *value = c->in[1];
    if (value->shape.rank)
        return lb_fail(cx, LB_E_SHAPE,
                       "pad: the value has shape %s, but must be a scalar",
                       LB_SHOW(&value->shape));
    if (value->dtype != a->dtype)
        return lb_fail(cx, LB_E_DTYPE,
                       "pad: the value is %s, but the array is %s",
                       lb_dtype_name(value->dtype), lb_dtype_name(a->dtype));
    c->dtype = a->dtype;
    c->shape.rank = a->shape.rank;
    for (int k = 0; k < a->shape.rank; k++) {
        const int64_t lo = p->lo[k], hi = p->hi[k], in = p->interior[k];
        if (in < 0)
            return lb_fail(cx, LB_E_ARG,
                           "pad: negative interior padding %lld of axis %d",
                           (long long)in, k);
        int64_t *n = &c->shape.dim[k];
        if (!padded(a->shape.dim[k], lo, hi, in, n))
            return lb_fail(cx, LB_E_SIZE,
                           "pad: axis %d of %s with %lld before, %lld after "
                           "and %lld between is too large",
                           k, LB_SHOW(&a->shape), (long long)lo, (long long)hi,
                           (long long)in);
        if (*n < 0)
            return lb_fail(cx, LB_E_SHAPE,
                           "pad: axis %d of %s with %lld before and %lld "
                           "after has size %lld",
                           k, LB_SHOW(&a->shape), (long long)lo, (long long)hi,
                           (long long)*n);
    }
    return lb_shape_check(cx, "pad", &c->shape);
}

/* Along one axis: elements [from, to) are kept; the first goes to index `at`,
 * the others follow at distance step. */
typedef struct pad_kept {
    int64_t from, to, at, step;
} pad_kept;

static pad_kept keep(int64_t n, int64_t lo, int64_t interior, int64_t out)
{
    /* Sizes were checked, but with one element interior is arbitrary. */
    const int64_t step = n > 1 ? interior + 1 : 1;
    const int64_t cut = lo < 0 ? -(lo + 1) / step : -1; /* the last removed
                                                         * element */
    int64_t room; /* i is inside if i*step < out - lo */
    if (cut >= n - 1 || lo >= out) return (pad_kept){0, 0, 0, 1};
    const int64_t from = cut + 1;
    if (!lb_add_i64(out, -lo, &room)) room = INT64_MAX;
    const int64_t to = lb_min_i64(n, lb_ceil_div(room, step));
    return from < to ? (pad_kept){from, to, lo + from * step, step}
                     : (pad_kept){0, 0, 0, 1};
}

enum { PLACES = 2 * LB_MAX_RANK + 1 };

typedef struct places {
    lb_place p[PLACES];
    int n;     /* in total */
    int first; /* in phase 0: all, unless the result is filled first */
} places;

static void lay_out(const lb_call *c, places *to)
{
    const lb_pad_params *p = c->params;
    const lb_array *a = c->in[0];
    int64_t from[LB_MAX_RANK], end[LB_MAX_RANK], at[LB_MAX_RANK];
    int64_t past[LB_MAX_RANK], step[LB_MAX_RANK];
    bool gaps = false, none = false;
    for (int k = 0; k < a->shape.rank; k++) {
        const pad_kept e =
            keep(a->shape.dim[k], p->lo[k], p->interior[k], c->shape.dim[k]);
        from[k] = e.from;
        end[k] = e.to;
        at[k] = e.at;
        past[k] = e.at + (e.to - e.from);
        step[k] = e.step;
        gaps |= step[k] > 1 && e.to - e.from > 1;
        none |= e.from == e.to;
    }
    to->n = 0;
    if (gaps || none) {
        const lb_array fill = lb_repeat(c->in[1], &c->shape);
        lb_place_plan(&to->p[to->n++], &fill, &c->shape, NULL, NULL);
    } else {
        lb_frame frame[2 * LB_MAX_RANK];
        const int n = lb_frames(&c->shape, at, past, frame);
        for (int i = 0; i < n; i++) {
            lb_shape box = c->shape;
            for (int k = 0; k < box.rank; k++)
                box.dim[k] = frame[i].hi[k] - frame[i].lo[k];
            const lb_array fill = lb_repeat(c->in[1], &box);
            lb_place_plan(&to->p[to->n++], &fill, &c->shape, frame[i].lo, NULL);
        }
    }
    to->first = to->n + !gaps;
    if (none) {
        to->first = to->n;
        return;
    }
    const lb_array middle = lb_cut(a, from, end, NULL);
    lb_place_plan(&to->p[to->n++], &middle, &c->shape, at, step);
}

static void plan(const lb_call *c, lb_plan *plan)
{
    places s;
    lay_out(c, &s);
    bool raw = true;
    for (int i = 0; i < s.n; i++)
        raw = raw && s.p[i].raw;
    *plan = (lb_plan){
        .per_thread = raw ? 0 : LB_PLACE_SCRATCH,
        .phases = s.first < s.n ? 2 : 1,
        .units = {lb_places_units(s.p, s.first),
                  lb_places_units(s.p + s.first, s.n - s.first)},
        .kernel = raw ? "copy bytes" : "copy tiles",
    };
}

static void eval(const lb_work *w)
{
    places s;
    lay_out(w->call, &s);
    if (w->phase == 0)
        lb_places_run(s.p, s.first, w);
    else
        lb_places_run(s.p + s.first, s.n - s.first, w);
}

/* The operand's elements in dout; zeros for removed ones. */
static lb_array *unpadded(lb_ctx *cx, const lb_call *c, lb_array *dout)
{
    const lb_pad_params *p = c->params;
    const lb_shape *shape = &c->in[0]->shape;
    int64_t lo[LB_MAX_RANK], hi[LB_MAX_RANK], stride[LB_MAX_RANK];
    const int64_t start[LB_MAX_RANK] = {0};
    for (int k = 0; k < shape->rank; k++) {
        lo[k] = -p->lo[k];
        hi[k] = -p->hi[k];
        stride[k] = p->interior[k] + 1;
    }
    lb_enter(cx);
    lb_array *d = lb_pad(cx, dout, lb_scalar(cx, 0), lo, hi, NULL);
    d = d ? lb_slice(cx, d, start, d->shape.dim, stride) : NULL;
    return lb_leave_with(cx, d);
}

static lb_array *vjp(lb_ctx *cx, const lb_call *c, int operand, lb_array *out,
                     lb_array *dout)
{
    (void)out;
    if (!operand && !lb_shape_size(&c->in[0]->shape))
        return lb_zeros(cx, c->dtype, c->in[0]->shape);
    if (!operand) return unpadded(cx, c, dout);
    /* The value is everywhere else: a mask of 1 where it was put. */
    lb_enter(cx);
    lb_array *in = lb_zeros(cx, c->dtype, c->in[0]->shape);
    lb_array *one = lb_full(cx, c->dtype, (lb_shape){0}, 1);
    lb_array *mask =
        lb_bind(cx, c->prim, 2, (lb_array *[]){in, one}, c->params);
    return lb_leave_with(cx, lb_reduce_sum(cx, lb_mul(cx, dout, mask), NULL));
}

static bool shard(const lb_call *c, lb_cuts *to)
{
    const lb_pad_params *p = c->params;
    for (int k = 0; k < c->shape.rank; k++)
        if (!p->lo[k] && !p->hi[k] && !p->interior[k])
            lb_cuts_pair(to, k + 1, 0, k, k);
    return true;
}

const lb_prim lb_prim_pad = {
    .struct_size = sizeof(lb_prim),
    .name = "pad",
    .params_size = sizeof(lb_pad_params),
    .n_in = 2,
    .infer = infer,
    .plan = plan,
    .eval = eval,
    .moves = 1,
    .vjp = vjp,
    .shard = shard,
};

/* A weak value takes the array's dtype, unless its kind is higher. */
static bool settle_value(lb_ctx *cx, lb_array *a, lb_array **value)
{
    if (!a || !*value || !(*value)->weak) return true; /* lb_bind reports it */
    const lb_dtype v = (*value)->dtype;
    const bool above = lb_dtype_is_float(v) ? !lb_dtype_is_float(a->dtype)
                                            : a->dtype == LB_BOOL;
    if (above && v != a->dtype)
        return lb_fail(cx, LB_E_DTYPE,
                       "pad: %s%s cannot be padded with %s scalar",
                       lb_dtype_name(a->dtype), LB_SHOW(&a->shape),
                       lb_dtype_is_float(v) ? "a float" : "an integer");
    lb_array *met[2] = {a, *value};
    if (a->weak)
        met[1] = lb_as(cx, *value, a->dtype);
    else if (!lb_meet_dtypes(cx, met, 2))
        return false;
    *value = met[1];
    return *value != NULL;
}

lb_array *lb_pad(lb_ctx *cx, lb_array *a, lb_array *value, const int64_t *lo,
                 const int64_t *hi, const int64_t *interior)
{
    lb_pad_params p = {{0}, {0}, {0}};
    for (int k = 0; k < lb_rank(a); k++) {
        p.lo[k] = lo ? lo[k] : 0;
        p.hi[k] = hi ? hi[k] : 0;
        p.interior[k] = interior ? interior[k] : 0;
    }
    lb_enter(cx);
    lb_array *out =
        settle_value(cx, a, &value)
            ? lb_bind(cx, &lb_prim_pad, 2, (lb_array *[]){a, value}, &p)
            : NULL;
    return lb_leave_with(cx, out);
}
