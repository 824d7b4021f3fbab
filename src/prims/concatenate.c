/* concatenate.c - joins operands along one axis. */
#include "lowbit_params.h"
#include "prims/cuts.h"
#include "prims/place.h"

static bool fits(lb_ctx *cx, const lb_call *c, int i, int axis)
{
    const lb_array *a = c->in[0], *b = c->in[i];
    if (a->dtype != b->dtype)
        return lb_fail(cx, LB_E_DTYPE,
                       "concatenate: operand %d is %s, operand 0 is %s", i,
                       lb_dtype_name(b->dtype), lb_dtype_name(a->dtype));
    bool same = a->shape.rank == b->shape.rank;
    for (int k = 0; k < a->shape.rank && same; k++)
        same = k == axis || a->shape.dim[k] == b->shape.dim[k];
    return same ||
           lb_fail(cx, LB_E_SHAPE,
                   "concatenate: operand %d has shape %s, which cannot be "
                   "joined to %s along axis %d",
                   i, LB_SHOW(&b->shape), LB_SHOW(&a->shape), axis);
}

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_concatenate_params *p = c->params;
    const lb_array *a = c->in[0];
    if (p->axis < 0 || p->axis >= a->shape.rank)
        return lb_fail(cx, LB_E_AXIS,
                       "concatenate: axis %d is out of range for %s", p->axis,
                       LB_SHOW(&a->shape));
    c->dtype = a->dtype;
    c->shape = a->shape;
    int64_t *sum = &c->shape.dim[p->axis];
    for (int i = 1; i < c->n_in; i++) {
        if (!fits(cx, c, i, p->axis)) return false;
        const int64_t n = c->in[i]->shape.dim[p->axis];
        if (!lb_add_i64(*sum, n, sum))
            return lb_fail(cx, LB_E_SIZE,
                           "concatenate: the sizes along axis %d add up to "
                           "more than 2^63 at operand %d, %s",
                           p->axis, i, LB_SHOW(&c->in[i]->shape));
    }
    return lb_shape_check(cx, "concatenate", &c->shape);
}

/* Packed operands stay packed if their blocks can be joined. */
static lb_verdict move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    const lb_concatenate_params *p = c->params;
    return lb_join(cx, c->in, c->n_in, p->axis, out);
}

/* Plans the copy of operand i to index `at` of the axis. */
static void place(const lb_call *c, int i, int64_t at, lb_place *p)
{
    const lb_concatenate_params *params = c->params;
    int64_t lo[LB_MAX_RANK] = {0};
    lo[params->axis] = at;
    lb_place_plan(p, c->in[i], &c->shape, lo, NULL);
}

/* The copy of an operand, and the number of its first unit. */
typedef struct concat_part {
    int64_t unit;
    lb_place place;
} concat_part;

/* Phase 0 plans the parts once for all threads of phase 1. */
static void plan(const lb_call *c, lb_plan *plan)
{
    bool raw = true;
    int64_t units = 0;
    lb_place p;
    for (int i = 0; i < c->n_in; i++) {
        place(c, i, 0, &p);
        units += p.units;
        raw = raw && p.raw;
    }
    *plan = (lb_plan){
        .shared = (size_t)c->n_in * sizeof(concat_part),
        .per_thread = raw ? 0 : LB_PLACE_SCRATCH,
        .phases = 2,
        .units = {1, units},
        .kernel = raw ? "copy bytes" : "copy tiles",
    };
}

static void lay_out(const lb_call *c, concat_part *to)
{
    const lb_concatenate_params *params = c->params;
    int64_t unit = 0, at = 0;
    for (int i = 0; i < c->n_in; i++) {
        to[i].unit = unit;
        place(c, i, at, &to[i].place);
        unit += to[i].place.units;
        at += c->in[i]->shape.dim[params->axis];
    }
}

/* Parts of equally many units take turns, so that a thread writes rows of the
 * result and not every other piece of them, next to those of another thread. */
static bool takes_turns(const lb_call *c, const concat_part *p)
{
    for (int i = 1; i < c->n_in; i++)
        if (p[i].place.units != p[0].place.units) return false;
    return true;
}

static void eval(const lb_work *w)
{
    const lb_call *c = w->call;
    concat_part *p = w->shared;
    if (w->phase == 0) {
        lay_out(c, p);
        return;
    }
    if (takes_turns(c, p)) {
        for (int64_t u = w->lo; u < w->hi; u++)
            lb_place_run(&p[u % c->n_in].place, w, u / c->n_in,
                         u / c->n_in + 1);
        return;
    }
    int lo = 0, hi = c->n_in; /* the last operand whose first unit is <=
                               * w->lo */
    while (hi - lo > 1) {
        const int mid = lo + (hi - lo) / 2;
        if (p[mid].unit <= w->lo)
            lo = mid;
        else
            hi = mid;
    }
    for (int i = lo; i < c->n_in && p[i].unit < w->hi; i++)
        lb_place_run(&p[i].place, w, lb_max_i64(w->lo - p[i].unit, 0),
                     lb_min_i64(w->hi - p[i].unit, p[i].place.units));
}

static lb_array *vjp(lb_ctx *cx, const lb_call *c, int operand, lb_array *out,
                     lb_array *dout)
{
    const lb_concatenate_params *p = c->params;
    int64_t lo[LB_MAX_RANK] = {0}, hi[LB_MAX_RANK];
    (void)out;
    for (int k = 0; k < c->shape.rank; k++)
        hi[k] = c->shape.dim[k];
    for (int i = 0; i < operand; i++)
        lo[p->axis] += c->in[i]->shape.dim[p->axis];
    hi[p->axis] = lo[p->axis] + c->in[operand]->shape.dim[p->axis];
    return lb_slice(cx, dout, lo, hi, NULL);
}

static bool shard(const lb_call *c, lb_cuts *to)
{
    const lb_concatenate_params *p = c->params;
    lb_cuts_same(c, to);
    to->out[p->axis] = 0;
    to->varies = true; /* depends on whether parts shared along the axis are
                        * equal */
    for (int i = 0; i < c->n_in; i++)
        to->in[i][p->axis] = 0;
    return true;
}

const lb_prim lb_prim_concatenate = {
    .struct_size = sizeof(lb_prim),
    .name = "concatenate",
    .params_size = sizeof(lb_concatenate_params),
    .n_in = -1,
    .infer = infer,
    .move = move,
    .plan = plan,
    .eval = eval,
    .moves = -1,
    .vjp = vjp,
    .shard = shard,
};

lb_array *lb_concatenate(lb_ctx *cx, lb_array *const *in, int n, int axis)
{
    lb_concatenate_params p = {axis};
    if (!cx) return NULL;
    if (n < 1 || !in || !in[0])
        return lb_bind(cx, &lb_prim_concatenate, n, in, &p);
    if (!lb_axis_fix(cx, "concatenate", axis, in[0]->shape.rank, &p.axis))
        return NULL;
    size_t size, got = 0;
    lb_array **met = NULL;
    if (lb_mul_size((size_t)n, sizeof *met, &size))
        met = lb_heap_alloc(cx->heap, size, &got);
    if (!met) {
        lb_fail(cx, LB_E_NOMEM, "out of memory (%d operands of concatenate)",
                n);
        return NULL;
    }
    for (int i = 0; i < n; i++)
        met[i] = in[i];
    lb_enter(cx);
    lb_array *out = lb_meet_dtypes(cx, met, n)
                        ? lb_bind(cx, &lb_prim_concatenate, n, met, &p)
                        : NULL;
    lb_heap_free(cx->heap, met, got);
    return lb_leave_with(cx, out);
}
