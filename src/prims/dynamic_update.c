/* dynamic_update.c - dynamic_update_slice: an array with a slice replaced,
 * whose start is given by integer scalars, clamped so that it fits.
 *
 * Eval writes the update and, around it, the rest of the operand. If the caller
 * gives up the operand (lb_update_in_place), only the update is written. Packed
 * arrays keep their format if whole blocks are replaced (update_blocks.c).
 */
#include "prims/cuts.h"
#include "prims/dynamic.h"
#include "prims/place.h"

static bool update_infer(lb_ctx *cx, lb_call *c)
{
    const char *who = "dynamic_update_slice";
    if (c->n_in < 2)
        return lb_fail(cx, LB_E_ARG, "%s: %d operands, not at least 2", who,
                       c->n_in);
    const lb_array *a = c->in[0], *u = c->in[1];
    if (!lb_starts_check(cx, c, 2)) return false;
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

/* The rest of the result is in operand 0, which becomes the result. */
static bool overwrites(const lb_call *c)
{
    return c->reuse && lb_data(c->in[0]);
}

/* Plans the update and, unless the rest is already there, the boxes around it;
 * returns their number. */
static int lay_out(const lb_call *c, lb_place *p)
{
    const lb_array *a = c->in[0], *u = c->in[1];
    if (!lb_shape_size(&u->shape)) {
        if (overwrites(c)) return 0;
        lb_place_plan(p, a, &c->shape, NULL, NULL);
        return 1;
    }
    lb_frame frame[2 * LB_MAX_RANK];
    int64_t lo[LB_MAX_RANK], hi[LB_MAX_RANK];
    lb_starts_box(c, 2, u->shape.dim, lo, hi);
    const int n = overwrites(c) ? 0 : lb_frames(&c->shape, lo, hi, frame);
    lb_place_plan(&p[0], u, &c->shape, lo, NULL);
    if (overwrites(c)) p[0].move.stream = false; /* it will soon be read */
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

/* The update is written into the operand, whatever it was. */
static lb_verdict overwrite(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    lb_plan plan;
    update_plan(c, &plan);
    if (!lb_run_plan(cx, c, &plan, c->in[0])) return LB_FAILED;
    *out = c->in[0];
    return LB_DONE;
}

static lb_verdict update_move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    lb_array *a = c->in[0], *u = c->in[1];
    int64_t lo[LB_MAX_RANK], hi[LB_MAX_RANK];
    if (a->store->data)
        return overwrites(c) ? overwrite(cx, c, out) : LB_DECLINED;
    if (!lb_shape_size(&u->shape)) {
        *out = lb_view(cx, a);
        return *out ? LB_DONE : LB_FAILED;
    }
    if (u->store->data) return LB_DECLINED;
    lb_starts_box(c, 2, u->shape.dim, lo, hi);
    if (!c->reuse || !lb_update_blocks(c, a, u, lo))
        return lb_update_join(cx, a, u, lo, out);
    *out = a;
    return LB_DONE;
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
    to->varies = true; /* depends on whether shared parts are equal */
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
    .move = update_move,
    .plan = update_plan,
    .eval = update_eval,
    .moves = 1,
    .vjp = update_vjp,
    .shard = update_shard,
    .reuses = true,
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

/* ---- in place ------------------------------------------------------------ */

/* The update in the array's dtype, as in an assignment. */
static lb_array *as_element(lb_ctx *cx, const lb_array *a, lb_array *u)
{
    const char *who = "update_in_place";
    if (!u) {
        lb_fail(cx, LB_E_NULL, "%s: the update is NULL", who);
        return NULL;
    }
    if (lb_dtype_is_float(u->dtype) && !lb_dtype_is_float(a->dtype)) {
        lb_fail(cx, LB_E_DTYPE,
                "%s: the update is %s, which would be truncated to the "
                "array's %s (use lb_convert)",
                who, lb_dtype_name(u->dtype), lb_dtype_name(a->dtype));
        return NULL;
    }
    return lb_as(cx, u, a->dtype);
}

/* A function that is being compiled updates its arguments and what it makes:
 * another array would be updated by the trace, and by no run. */
static bool is_own(lb_ctx *cx, const lb_array *a)
{
    const lb_tracer *t = cx->tracer;
    if (!t || a->store->traced || lb_in_scope(cx, t->scope, a)) return true;
    return lb_fail(cx, LB_E_ARG,
                   "update_in_place: %s %s%s was made outside of the function "
                   "that is being compiled: pass it as an argument, and return "
                   "the updated array",
                   lb_format_of(a), lb_dtype_name(a->dtype),
                   LB_SHOW(&a->shape));
}

/* out is in the open scope and takes the place of *a. In a function that is
 * being compiled, where *a always changes, the old array stays for as long as
 * the scope, for callers that still have a copy of the pointer. */
static void hand_over(lb_ctx *cx, lb_array **a, lb_array *out)
{
    lb_array *old = (*a)->store->traced ? lb_ref(*a) : NULL;
    lb_copy_report(cx, *a, 1, out);
    lb_replace(cx, *a, out);
    if (old) (void)lb_own(cx, old);
    *a = out;
}

lb_array *lb_update_in_place(lb_ctx *cx, lb_array **a, lb_array *update,
                             lb_array *const *starts)
{
    lb_array *in[2 + LB_MAX_RANK];
    if (!cx) return NULL;
    if (!a || !*a || (lb_rank(*a) && !starts)) {
        lb_fail(cx, LB_E_NULL, "update_in_place: %s is NULL",
                a && *a ? "starts" : "the array");
        return NULL;
    }
    if (!is_own(cx, *a)) return NULL;
    const int rank = lb_rank(*a);
    in[0] = *a;
    for (int k = 0; k < rank; k++)
        in[2 + k] = starts[k];
    lb_enter(cx);
    lb_array *out = (in[1] = as_element(cx, *a, update))
                        ? lb_bind_given(cx, 1, &lb_prim_dynamic_update_slice,
                                        2 + rank, in, NULL)
                        : NULL;
    if (!out || out == *a) {
        lb_leave(cx);
        return out;
    }
    lb_leave_with(cx, out);
    hand_over(cx, a, out);
    return out;
}
