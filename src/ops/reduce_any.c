/* reduce_any.c - lb_reduce: reductions by any associative function of arrays.
 *
 * Each axis is folded in a tree of neighbors, which needs no commutativity, and
 * whose levels are calls of the function on whole slices:
 *
 *   0 1 2 3 4 5 6    level 1: (0 1) (2 3) (4 5)    6 is set aside
 *                    level 2: (0 1 2 3)            (4 5), then (4 5 6)
 *                    at last: (0 1 2 3 4 5 6)
 *
 * The last axis is folded first, so that elements keep their row-major order.
 * Everything is composed of other operations, which provide gradients, formats,
 * sharding and compilation, and the same bits on any number of threads.
 *
 * Arrays are held by references instead of scopes: a level frees the one before
 * it, and the function may return one array twice, or one of its own.
 */
#include <string.h>

#include "core/core.h"

typedef struct {
    lb_ctx *cx;
    lb_fn_many body;
    void *user;
    int n;
    lb_array **acc;  /* what is left of each operand */
    lb_array **tail; /* the last elements, set aside; or NULLs */
    lb_array **init;
    lb_array **args; /* 2n, for body */
    lb_array **got;  /* n, from body */
} reduction;

/* Replaces the references in `to`. */
static void hold(lb_array **to, lb_array *const *from, int n)
{
    for (int i = 0; i < n; i++)
        if (from) lb_ref(from[i]);
    for (int i = 0; i < n; i++) {
        lb_unref(to[i]);
        to[i] = from ? from[i] : NULL;
    }
}

/* Calls body on args, in an open scope; the results are in got. */
static bool combine(reduction *r)
{
    lb_ctx *cx = r->cx;
    memset(r->got, 0, (size_t)r->n * sizeof *r->got);
    if (!r->body(cx, r->args, 2 * r->n, r->got, r->n, r->user))
        return lb_fail(cx, LB_E_ARG, "reduce: the function failed");
    for (int i = 0; i < r->n; i++) {
        const lb_array *a = r->args[i], *b = r->got[i];
        if (!b)
            return lb_fail(cx, LB_E_NULL,
                           "reduce: result %d of the function is NULL", i);
        if (b->dtype != a->dtype || !lb_shape_equal(&a->shape, &b->shape))
            return lb_fail(cx, LB_E_SHAPE,
                           "reduce: result %d of the function is %s%s, but "
                           "its operand %d is %s%s",
                           i, lb_dtype_name(b->dtype), LB_SHOW(&b->shape), i,
                           lb_dtype_name(a->dtype), LB_SHOW(&a->shape));
    }
    return true;
}

/* Elements first, first + step, ... below end of an axis of all operands. */
static bool slices(const reduction *r, int axis, int64_t first, int64_t end,
                   int64_t step, lb_array **to)
{
    for (int i = 0; i < r->n; i++) {
        const lb_shape *s = &r->acc[i]->shape;
        int64_t lo[LB_MAX_RANK] = {0}, hi[LB_MAX_RANK], by[LB_MAX_RANK];
        for (int k = 0; k < s->rank; k++) {
            hi[k] = s->dim[k];
            by[k] = 1;
        }
        lo[axis] = first;
        hi[axis] = end;
        by[axis] = step;
        to[i] = lb_slice(r->cx, r->acc[i], lo, hi, by);
        if (!to[i]) return false;
    }
    return true;
}

/* Sets the last of m elements aside, before those that already are. */
static bool set_aside(reduction *r, int axis, int64_t m)
{
    lb_array **last = r->args;
    if (!slices(r, axis, m - 1, m, 1, last)) return false;
    if (r->tail[0]) {
        memcpy(r->args + r->n, r->tail, (size_t)r->n * sizeof *r->tail);
        if (!combine(r)) return false;
        last = r->got;
    }
    hold(r->tail, last, r->n);
    return true;
}

/* One level of the tree: an axis of m elements becomes one of m / 2. */
static bool fold_level(reduction *r, int axis, int64_t m)
{
    if (m % 2 && !set_aside(r, axis, m)) return false;
    const int64_t even = m / 2 * 2;
    if (!slices(r, axis, 0, even, 2, r->args) ||
        !slices(r, axis, 1, even, 2, r->args + r->n) || !combine(r))
        return false;
    hold(r->acc, r->got, r->n);
    return true;
}

static bool add_tail(reduction *r)
{
    if (!r->tail[0]) return true;
    memcpy(r->args, r->acc, (size_t)r->n * sizeof *r->acc);
    memcpy(r->args + r->n, r->tail, (size_t)r->n * sizeof *r->tail);
    if (!combine(r)) return false;
    hold(r->acc, r->got, r->n);
    hold(r->tail, NULL, r->n);
    return true;
}

static bool fold_axis(reduction *r, int axis)
{
    bool ok = true;
    for (int64_t m = r->acc[0]->shape.dim[axis]; ok && m > 1; m /= 2) {
        lb_enter(r->cx);
        ok = fold_level(r, axis, m);
        lb_leave(r->cx);
    }
    lb_enter(r->cx);
    ok = ok && add_tail(r);
    lb_leave(r->cx);
    return ok;
}

/* The initial values, combined with what is left; acc if there are no
 * elements. */
static bool finish(reduction *r, const lb_axes *axes, bool empty)
{
    lb_ctx *cx = r->cx;
    lb_shape kept = {0};
    for (int k = 0; k < r->acc[0]->shape.rank; k++)
        if (!lb_axes_has(axes, k))
            kept.dim[kept.rank++] = r->acc[0]->shape.dim[k];
    for (int i = 0; i < r->n; i++) {
        lb_array *a = r->acc[i];
        if (!empty && axes->n) a = lb_squeeze(cx, a, axes);
        r->args[r->n + i] = a;
        r->args[i] = lb_broadcast_to(cx, r->init[i], kept);
        if (!a || !r->args[i]) return false;
    }
    if (!empty && !combine(r)) return false;
    hold(r->acc, empty ? r->args : r->got, r->n);
    return true;
}

static bool reduce_all(reduction *r, const lb_axes *axes)
{
    bool empty = false;
    const lb_shape shape = r->acc[0]->shape;
    for (int i = 0; i < axes->n; i++)
        empty |= shape.dim[axes->axis[i]] == 0;
    for (int k = shape.rank - 1; k >= 0 && !empty; k--)
        if (lb_axes_has(axes, k) && !fold_axis(r, k)) return false;
    lb_enter(r->cx);
    const bool ok = finish(r, axes, empty);
    lb_leave(r->cx);
    return ok;
}

/* ---- operands ----------------------------------------------------------- */

static bool check(lb_ctx *cx, lb_array *const *in, lb_array *const *init, int n,
                  lb_fn_many body, lb_array **out)
{
    if (n < 1)
        return lb_fail(cx, LB_E_ARG, "reduce: the number of operands is %d", n);
    if (!in || !init || !body || !out)
        return lb_fail(cx, LB_E_NULL, "reduce: %s NULL",
                       !body  ? "the function is"
                       : !out ? "the results are"
                              : "the operands are");
    for (int i = 0; i < n; i++) {
        if (!in[i] || !init[i])
            return lb_fail(cx, LB_E_NULL, "reduce: %s %d is NULL",
                           in[i] ? "initial value" : "operand", i);
        if (!lb_shape_equal(&in[i]->shape, &in[0]->shape))
            return lb_fail(cx, LB_E_SHAPE,
                           "reduce: operand %d has shape %s, but operand 0 "
                           "has shape %s",
                           i, LB_SHOW(&in[i]->shape), LB_SHOW(&in[0]->shape));
        if (init[i]->shape.rank)
            return lb_fail(cx, LB_E_SHAPE,
                           "reduce: initial value %d has shape %s, but must "
                           "be a scalar",
                           i, LB_SHOW(&init[i]->shape));
    }
    return true;
}

/* An operand and its initial value, promoted to their common dtype. */
static bool take(reduction *r, lb_array *in, lb_array *init, int i)
{
    lb_array *met[2] = {in, init};
    bool ok = lb_meet_dtypes(r->cx, met, 2);
    for (int k = 0; k < 2 && ok; k++) {
        met[k] = lb_as(r->cx, met[k], met[k]->dtype);
        ok = met[k] != NULL;
    }
    if (!ok) return false;
    hold(&r->acc[i], &met[0], 1);
    hold(&r->init[i], &met[1], 1);
    return true;
}

static bool give(reduction *r, lb_array **out)
{
    for (int i = 0; i < r->n; i++) {
        lb_array *a = lb_own(r->cx, lb_ref(r->acc[i]));
        if (!a) {
            memset(out, 0, (size_t)r->n * sizeof *out);
            return false;
        }
        out[i] = a;
    }
    return true;
}

bool lb_reduce(lb_ctx *cx, lb_array *const *in, lb_array *const *init, int n,
               const lb_axes *axes, lb_fn_many body, void *user, lb_array **out)
{
    lb_axes a;
    size_t got, bytes;
    if (!cx) return false;
    if (out && n > 0) memset(out, 0, (size_t)n * sizeof *out);
    if (!check(cx, in, init, n, body, out) ||
        !lb_axes_fix(cx, "reduce", axes, in[0]->shape.rank, &a))
        return false;
    lb_array **room = NULL;
    if (lb_mul_size((size_t)n, 6 * sizeof *room, &bytes))
        room = lb_heap_alloc(cx->heap, bytes, &got);
    if (!room)
        return lb_fail(cx, LB_E_NOMEM, "out of memory (reduce: %d operands)",
                       n);
    memset(room, 0, bytes);
    reduction r = {cx,       body,         user,         n,           room,
                   room + n, room + 2 * n, room + 3 * n, room + 5 * n};
    lb_enter(cx);
    bool ok = true;
    for (int i = 0; i < n && ok; i++)
        ok = take(&r, in[i], init[i], i);
    ok = ok && reduce_all(&r, &a);
    lb_leave(cx);
    ok = ok && give(&r, out);
    hold(r.acc, NULL, n);
    hold(r.tail, NULL, n);
    hold(r.init, NULL, n);
    lb_heap_free(cx->heap, room, got);
    return ok;
}
