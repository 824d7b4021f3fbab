/* dynamic.c - dynamic_slice and dynamic_update_slice: slices whose start is
 * given by integer scalars, clamped so that the slice fits.
 *
 * The scalars have values when the call runs, so dynamic_slice returns a view.
 * dynamic_update_slice writes the update and, around it, the rest of the
 * operand.
 */
#include "lowbit_params.h"
#include "prims/cuts.h"
#include "prims/place.h"

/* Starts are operands first, first + 1, ...: one per axis of operand 0. */
static bool check_starts(lb_ctx *cx, const lb_call *c, int first)
{
    const char *who = c->prim->name;
    const int rank = c->in[0]->shape.rank;
    if (c->n_in != first + rank)
        return lb_fail(cx, LB_E_ARG, "%s: %d starts for an array of rank %d",
                       who, c->n_in - first, rank);
    for (int k = 0; k < rank; k++) {
        const lb_array *s = c->in[first + k];
        if (s->shape.rank)
            return lb_fail(cx, LB_E_SHAPE,
                           "%s: start %d has shape %s, but must be a scalar",
                           who, k, LB_SHOW(&s->shape));
        if (!lb_dtype_is_int(s->dtype))
            return lb_fail(cx, LB_E_DTYPE, "%s: start %d is %s, not an integer",
                           who, k, lb_dtype_name(s->dtype));
    }
    return true;
}

/* The value of an integer scalar, clamped to 0 ... most. */
static int64_t start(const lb_cpu *cpu, const lb_array *a, int64_t most)
{
    if (lb_dtype_is_unsigned(a->dtype)) {
        uint64_t u = 0;
        lb_tile_read_flat(cpu, a, 0, 1, LB_C_U64, &u);
        return u < (uint64_t)most ? (int64_t)u : most;
    }
    int64_t i = 0;
    lb_tile_read_flat(cpu, a, 0, 1, LB_C_I64, &i);
    return lb_max_i64(lb_min_i64(i, most), 0);
}

static void box(const lb_call *c, int first, const int64_t *sizes, int64_t *lo,
                int64_t *hi)
{
    const lb_array *a = c->in[0];
    for (int k = 0; k < a->shape.rank; k++) {
        lo[k] = start(c->cpu, c->in[first + k], a->shape.dim[k] - sizes[k]);
        hi[k] = lo[k] + sizes[k];
    }
}

/* ---- dynamic_slice ------------------------------------------------------ */

static bool slice_infer(lb_ctx *cx, lb_call *c)
{
    const lb_dynamic_slice_params *p = c->params;
    const lb_array *a = c->in[0];
    if (!check_starts(cx, c, 1)) return false;
    c->dtype = a->dtype;
    c->shape.rank = a->shape.rank;
    for (int k = 0; k < a->shape.rank; k++) {
        if (p->sizes[k] < 0 || p->sizes[k] > a->shape.dim[k])
            return lb_fail(cx, LB_E_SHAPE,
                           "dynamic_slice: size %lld of axis %d of %s",
                           (long long)p->sizes[k], k, LB_SHOW(&a->shape));
        c->shape.dim[k] = p->sizes[k];
    }
    return true;
}

static lb_verdict slice_move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    const lb_dynamic_slice_params *p = c->params;
    int64_t lo[LB_MAX_RANK], hi[LB_MAX_RANK];
    box(c, 1, p->sizes, lo, hi);
    const lb_array v = lb_cut(c->in[0], lo, hi, NULL);
    *out = lb_view(cx, &v);
    return *out ? LB_DONE : LB_FAILED;
}

static lb_array *slice_vjp(lb_ctx *cx, const lb_call *c, int operand,
                           lb_array *out, lb_array *dout)
{
    (void)operand, (void)out;
    lb_enter(cx);
    lb_array *zeros = lb_zeros(cx, c->dtype, c->in[0]->shape);
    return lb_leave_with(cx,
                         lb_dynamic_update_slice(cx, zeros, dout, c->in + 1));
}

static lb_array *slice_share(lb_ctx *cx, const lb_share *p)
{
    const lb_call *c = p->whole;
    lb_dynamic_slice_params own = *(const lb_dynamic_slice_params *)c->params;
    for (int k = 0; k < p->shape.rank; k++)
        own.sizes[k] = p->shape.dim[k];
    return lb_bind(cx, c->prim, c->n_in, p->in, &own);
}

static bool slice_shard(const lb_call *c, lb_cuts *to)
{
    for (int k = 0; k < c->shape.rank; k++)
        if (c->shape.dim[k] == c->in[0]->shape.dim[k])
            lb_cuts_pair(to, k + 1, 0, k, k);
    to->run = slice_share;
    return true;
}

const lb_prim lb_prim_dynamic_slice = {
    .struct_size = sizeof(lb_prim),
    .name = "dynamic_slice",
    .params_size = sizeof(lb_dynamic_slice_params),
    .n_in = -1,
    .infer = slice_infer,
    .move = slice_move,
    .vjp = slice_vjp,
    .shard = slice_shard,
};

lb_array *lb_dynamic_slice(lb_ctx *cx, lb_array *a, lb_array *const *starts,
                           const int64_t *sizes)
{
    lb_dynamic_slice_params p = {{0}};
    lb_array *in[1 + LB_MAX_RANK] = {a};
    const int rank = lb_rank(a) < 0 ? 0 : lb_rank(a);
    if (rank && (!starts || !sizes)) {
        lb_fail(cx, LB_E_NULL, "dynamic_slice: %s is NULL for rank %d",
                starts ? "sizes" : "starts", rank);
        return NULL;
    }
    for (int k = 0; k < rank; k++) {
        in[1 + k] = starts[k];
        p.sizes[k] = sizes[k];
    }
    return lb_bind(cx, &lb_prim_dynamic_slice, 1 + rank, in, &p);
}

/* ---- dynamic_update_slice ----------------------------------------------- */

static bool update_infer(lb_ctx *cx, lb_call *c)
{
    const char *who = "dynamic_update_slice";
    if (c->n_in < 2)
        return lb_fail(cx, LB_E_ARG, "%s: %d operands, not at least 2", who,
                       c->n_in);
    const lb_array *a = c->in[0], *u = c->in[1];
    if (!check_starts(cx, c, 2)) return false;
    if (u->dtype != a->dtype)
        return lb_fail(cx, LB_E_DTYPE,
                       "%s: the update is %s, but the array is %s", who,
                       lb_dtype_name(u->dtype), lb_dtype_name(a->dtype));
    bool fits = u->shape.rank == a->shape.rank;
    for (int k = 0; k < a->shape.rank && fits; k++)
        fits = u->shape.dim[k] <= a->shape.dim[k];
    if (!fits)
        return lb_fail(cx, LB_E_SHAPE,
                       "%s: update of shape %s does not fit into %s", who,
                       LB_SHOW(&u->shape), LB_SHOW(&a->shape));
    c->dtype = a->dtype;
    c->shape = a->shape;
    return true;
}

enum { PLACES = 2 * LB_MAX_RANK + 1 };

/* Plans the update and the boxes around it; returns their number. */
static int lay_out(const lb_call *c, lb_place *p)
{
    const lb_array *a = c->in[0], *u = c->in[1];
    if (!lb_shape_size(&u->shape)) {
        lb_place_plan(p, a, &c->shape, NULL, NULL);
        return 1;
    }
    lb_frame frame[2 * LB_MAX_RANK];
    int64_t lo[LB_MAX_RANK], hi[LB_MAX_RANK];
    box(c, 2, u->shape.dim, lo, hi);
    const int n = lb_frames(&c->shape, lo, hi, frame);
    lb_place_plan(&p[0], u, &c->shape, lo, NULL);
    for (int i = 0; i < n; i++) {
        const lb_array part = lb_cut(a, frame[i].lo, frame[i].hi, NULL);
        lb_place_plan(&p[1 + i], &part, &c->shape, frame[i].lo, NULL);
    }
    return 1 + n;
}

static void update_plan(const lb_call *c, lb_plan *plan)
{
    lb_place p[PLACES];
    const int n = lay_out(c, p);
    bool raw = true;
    for (int i = 0; i < n; i++)
        raw = raw && p[i].raw;
    *plan = (lb_plan){
        .per_thread = raw ? 0 : LB_PLACE_SCRATCH,
        .phases = 1,
        .units = {lb_places_units(p, n)},
        .kernel = raw ? "copy bytes" : "copy tiles",
    };
}

static void update_eval(const lb_work *w)
{
    lb_place p[PLACES];
    lb_places_run(p, lay_out(w->call, p), w);
}

static lb_array *update_vjp(lb_ctx *cx, const lb_call *c, int operand,
                            lb_array *out, lb_array *dout)
{
    const lb_shape *box = &c->in[1]->shape;
    (void)out;
    if (operand) return lb_dynamic_slice(cx, dout, c->in + 2, box->dim);
    lb_enter(cx);
    lb_array *zeros = lb_zeros(cx, c->dtype, *box);
    return lb_leave_with(cx,
                         lb_dynamic_update_slice(cx, dout, zeros, c->in + 2));
}

static bool update_shard(const lb_call *c, lb_cuts *to)
{
    for (int k = 0; k < c->shape.rank; k++) {
        if (c->in[1]->shape.dim[k] != c->shape.dim[k]) continue;
        lb_cuts_pair(to, k + 1, 0, k, k);
        lb_cuts_pair(to, k + 1, 1, k, k);
    }
    return true;
}

const lb_prim lb_prim_dynamic_update_slice = {
    .struct_size = sizeof(lb_prim),
    .name = "dynamic_update_slice",
    .n_in = -1,
    .infer = update_infer,
    .plan = update_plan,
    .eval = update_eval,
    .moves = 1,
    .vjp = update_vjp,
    .shard = update_shard,
};

lb_array *lb_dynamic_update_slice(lb_ctx *cx, lb_array *a, lb_array *update,
                                  lb_array *const *starts)
{
    lb_array *in[2 + LB_MAX_RANK] = {a, update};
    const int rank = lb_rank(a) < 0 ? 0 : lb_rank(a);
    if (rank && !starts) {
        lb_fail(cx, LB_E_NULL,
                "dynamic_update_slice: starts is NULL for rank %d", rank);
        return NULL;
    }
    for (int k = 0; k < rank; k++)
        in[2 + k] = starts[k];
    lb_enter(cx);
    lb_array *out =
        lb_meet_dtypes(cx, in, 2)
            ? lb_bind(cx, &lb_prim_dynamic_update_slice, 2 + rank, in, NULL)
            : NULL;
    return lb_leave_with(cx, out);
}
