/* views.c - transpose, broadcast_in_dim, slice, reverse: always views.
 *
 * A view is shape, strides and offset over stored elements, so these cost
 * nothing in any format, even inside a block or a byte. They never decline and
 * have no eval.
 */
#include "lowbit_params.h"
#include "prims/cuts.h"
#include "prims/place.h"

/* A new view of like's store with v's shape, strides and offset. */
static lb_verdict give(lb_ctx *cx, const lb_array *v, lb_array **out)
{
    *out = lb_view(cx, v);
    return *out ? LB_DONE : LB_FAILED;
}

/* ---- transpose ---------------------------------------------------------- */

static bool transpose_infer(lb_ctx *cx, lb_call *c)
{
    const lb_transpose_params *p = c->params;
    const lb_array *a = c->in[0];
    lb_axes perm = {.n = a->shape.rank};
    for (int k = 0; k < perm.n; k++)
        perm.axis[k] = p->perm[k];
    if (!lb_axes_check(cx, "transpose", "perm", &perm, a->shape.rank))
        return false;
    c->dtype = a->dtype;
    c->shape.rank = a->shape.rank;
    for (int k = 0; k < perm.n; k++)
        c->shape.dim[k] = a->shape.dim[perm.axis[k]];
    return true;
}

static lb_verdict transpose_move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    const lb_transpose_params *p = c->params;
    const lb_array *a = c->in[0];
    lb_array v = *a;
    v.shape = c->shape;
    for (int k = 0; k < a->shape.rank; k++)
        v.stride[k] = a->stride[p->perm[k]];
    return give(cx, &v, out);
}

static lb_array *transpose_vjp(lb_ctx *cx, const lb_call *c, int operand,
                               lb_array *out, lb_array *dout)
{
    const lb_transpose_params *p = c->params;
    int back[LB_MAX_RANK];
    (void)operand, (void)out;
    for (int k = 0; k < c->shape.rank; k++)
        back[p->perm[k]] = k;
    return lb_transpose(cx, dout, back);
}

static bool transpose_shard(const lb_call *c, lb_cuts *to)
{
    const lb_transpose_params *p = c->params;
    for (int k = 0; k < c->shape.rank; k++)
        lb_cuts_pair(to, k + 1, 0, p->perm[k], k);
    return true;
}

static void transpose_fuse(const lb_call *c, lb_fusion *to)
{
    const lb_transpose_params *p = c->params;
    for (int k = 0; k < c->shape.rank; k++)
        if (p->perm[k] != k) return;
    to->kind = LB_FUSE_SAME;
}

const lb_prim lb_prim_transpose = {
    .struct_size = sizeof(lb_prim),
    .name = "transpose",
    .params_size = sizeof(lb_transpose_params),
    .n_in = 1,
    .infer = transpose_infer,
    .move = transpose_move,
    .vjp = transpose_vjp,
    .shard = transpose_shard,
    .fuse = transpose_fuse,
};

lb_array *lb_transpose(lb_ctx *cx, lb_array *a, const int *perm)
{
    lb_transpose_params p = {{0}};
    const int rank = lb_rank(a);
    for (int k = 0; k < rank; k++) {
        p.perm[k] = rank - 1 - k;
        if (perm && !lb_axis_fix(cx, "transpose", perm[k], rank, &p.perm[k]))
            return NULL;
    }
    return lb_bind(cx, &lb_prim_transpose, 1, &a, &p);
}

/* ---- broadcast_in_dim --------------------------------------------------- */

static bool broadcast_infer(lb_ctx *cx, lb_call *c)
{
    const char *who = "broadcast_in_dim";
    const lb_broadcast_params *p = c->params;
    const lb_array *a = c->in[0];
    lb_axes dims = {.n = a->shape.rank};
    for (int k = 0; k < dims.n; k++)
        dims.axis[k] = p->dims[k];
    if (!lb_shape_check(cx, who, &p->shape) ||
        !lb_axes_check(cx, who, "dims", &dims, p->shape.rank))
        return false;
    for (int k = 0; k < dims.n; k++) {
        const int64_t n = a->shape.dim[k], to = p->shape.dim[dims.axis[k]];
        if (n != 1 && n != to)
            return lb_fail(cx, LB_E_SHAPE,
                           "%s: axis %d of %s has size %lld, but axis %d of "
                           "%s has size %lld",
                           who, k, LB_SHOW(&a->shape), (long long)n,
                           dims.axis[k], LB_SHOW(&p->shape), (long long)to);
    }
    c->dtype = a->dtype;
    c->shape = p->shape;
    return true;
}

static lb_verdict broadcast_move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    const lb_broadcast_params *p = c->params;
    const lb_array *a = c->in[0];
    lb_array v = lb_repeat(a, &c->shape);
    for (int k = 0; k < a->shape.rank; k++)
        if (a->shape.dim[k] != 1) v.stride[p->dims[k]] = a->stride[k];
    return give(cx, &v, out);
}

/* The gradient of a broadcast is a sum. */
static lb_array *broadcast_vjp(lb_ctx *cx, const lb_call *c, int operand,
                               lb_array *out, lb_array *dout)
{
    const lb_broadcast_params *p = c->params;
    const lb_shape *shape = &c->in[0]->shape;
    lb_axes gone = {0};
    int at[LB_MAX_RANK], perm[LB_MAX_RANK] = {0}, left = 0;
    (void)operand, (void)out;
    for (int k = 0; k < c->shape.rank; k++)
        at[k] = -1;
    for (int k = 0; k < shape->rank; k++)
        if (shape->dim[k] == c->shape.dim[p->dims[k]]) at[p->dims[k]] = k;
    for (int k = 0; k < c->shape.rank; k++)
        if (at[k] < 0) gone.axis[gone.n++] = k;
    /* The remaining axes are in the result's order: restore the operand's. */
    for (int j = 0; j < shape->rank; j++) {
        if (at[p->dims[j]] < 0) continue;
        int before = 0;
        for (int k = 0; k < p->dims[j]; k++)
            before += at[k] >= 0;
        perm[left++] = before;
    }
    lb_enter(cx);
    lb_array *d = gone.n ? lb_reduce_sum(cx, dout, &gone) : dout;
    d = d ? lb_transpose(cx, d, perm) : NULL;
    return lb_leave_with(cx, d ? lb_reshape(cx, d, *shape) : NULL);
}

static lb_array *broadcast_share(lb_ctx *cx, const lb_share *p)
{
    lb_broadcast_params own = *(const lb_broadcast_params *)p->whole->params;
    own.shape = p->shape;
    return lb_bind(cx, p->whole->prim, 1, p->in, &own);
}

/* Broadcast axes are not cut: every rank has them. */
static bool broadcast_shard(const lb_call *c, lb_cuts *to)
{
    const lb_broadcast_params *p = c->params;
    for (int k = 0; k < c->in[0]->shape.rank; k++)
        if (c->in[0]->shape.dim[k] == c->shape.dim[p->dims[k]])
            lb_cuts_pair(to, k + 1, 0, k, p->dims[k]);
    to->run = broadcast_share;
    return true;
}

static void broadcast_fuse(const lb_call *c, lb_fusion *to)
{
    const lb_broadcast_params *p = c->params;
    to->kind = LB_FUSE_REPEAT;
    for (int k = 0; k < c->in[0]->shape.rank; k++)
        to->axis[k] = p->dims[k];
}

const lb_prim lb_prim_broadcast_in_dim = {
    .struct_size = sizeof(lb_prim),
    .name = "broadcast_in_dim",
    .params_size = sizeof(lb_broadcast_params),
    .params_exact = sizeof(int),
    .n_in = 1,
    .infer = broadcast_infer,
    .move = broadcast_move,
    .vjp = broadcast_vjp,
    .shard = broadcast_shard,
    .fuse = broadcast_fuse,
};

lb_array *lb_broadcast_in_dim(lb_ctx *cx, lb_array *a, lb_shape shape,
                              const int *dims)
{
    lb_broadcast_params p = {.shape = shape};
    const int rank = lb_rank(a);
    if (rank > 0 && !dims) {
        lb_fail(cx, LB_E_NULL, "broadcast_in_dim: dims is NULL for rank %d",
                rank);
        return NULL;
    }
    for (int k = 0; k < rank; k++)
        if (!lb_axis_fix(cx, "broadcast_in_dim", dims[k], shape.rank,
                         &p.dims[k]))
            return NULL;
    return lb_bind(cx, &lb_prim_broadcast_in_dim, 1, &a, &p);
}

lb_array *lb_broadcast_to(lb_ctx *cx, lb_array *a, lb_shape shape)
{
    lb_broadcast_params p = {.shape = shape};
    const int rank = lb_rank(a);
    if (rank > shape.rank) {
        lb_fail(cx, LB_E_SHAPE, "broadcast_to: %s has rank %d, more than %s",
                LB_SHOW(&a->shape), rank, LB_SHOW(&shape));
        return NULL;
    }
    for (int k = 0; k < rank; k++)
        p.dims[k] = shape.rank - rank + k;
    return lb_bind(cx, &lb_prim_broadcast_in_dim, 1, &a, &p);
}

/* ---- slice -------------------------------------------------------------- */

static bool slice_infer(lb_ctx *cx, lb_call *c)
{
    const lb_slice_params *p = c->params;
    const lb_array *a = c->in[0];
    c->dtype = a->dtype;
    c->shape.rank = a->shape.rank;
    for (int k = 0; k < a->shape.rank; k++) {
        const int64_t lo = p->start[k], hi = p->limit[k], by = p->stride[k];
        if (lo < 0 || hi < lo || hi > a->shape.dim[k] || by < 1)
            return lb_fail(cx, LB_E_ARG,
                           "slice: %lld:%lld:%lld of axis %d of %s: %s",
                           (long long)lo, (long long)hi, (long long)by, k,
                           LB_SHOW(&a->shape),
                           by < 1    ? "the stride is below 1"
                           : lo < 0  ? "the start is below 0"
                           : hi < lo ? "the limit is below the start"
                                     : "the limit is beyond the axis");
        c->shape.dim[k] = lb_ceil_div(hi - lo, by);
    }
    return true;
}

static lb_verdict slice_move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    const lb_slice_params *p = c->params;
    const lb_array v = lb_cut(c->in[0], p->start, p->limit, p->stride);
    return give(cx, &v, out);
}

static lb_array *slice_vjp(lb_ctx *cx, const lb_call *c, int operand,
                           lb_array *out, lb_array *dout)
{
    const lb_slice_params *p = c->params;
    const lb_shape *shape = &c->in[0]->shape;
    int64_t hi[LB_MAX_RANK], between[LB_MAX_RANK];
    (void)operand, (void)out;
    if (!lb_shape_size(&c->shape)) return lb_zeros(cx, c->dtype, *shape);
    for (int k = 0; k < shape->rank; k++) {
        const int64_t last = p->start[k] + (c->shape.dim[k] - 1) * p->stride[k];
        between[k] = c->shape.dim[k] > 1 ? p->stride[k] - 1 : 0;
        hi[k] = shape->dim[k] - 1 - last;
    }
    lb_enter(cx);
    return lb_leave_with(
        cx, lb_pad(cx, dout, lb_scalar(cx, 0), p->start, hi, between));
}

static bool takes_all(const lb_call *c, int k)
{
    const lb_slice_params *p = c->params;
    return p->start[k] == 0 && p->limit[k] == c->in[0]->shape.dim[k] &&
           p->stride[k] == 1;
}

static lb_array *slice_share(lb_ctx *cx, const lb_share *p)
{
    lb_slice_params own = *(const lb_slice_params *)p->whole->params;
    for (int k = 0; k < p->shape.rank; k++)
        if (takes_all(p->whole, k)) own.limit[k] = p->in[0]->shape.dim[k];
    return lb_bind(cx, p->whole->prim, 1, p->in, &own);
}

static bool slice_shard(const lb_call *c, lb_cuts *to)
{
    for (int k = 0; k < c->shape.rank; k++)
        if (takes_all(c, k)) lb_cuts_pair(to, k + 1, 0, k, k);
    to->run = slice_share;
    return true;
}

const lb_prim lb_prim_slice = {
    .struct_size = sizeof(lb_prim),
    .name = "slice",
    .params_size = sizeof(lb_slice_params),
    .n_in = 1,
    .infer = slice_infer,
    .move = slice_move,
    .vjp = slice_vjp,
    .shard = slice_shard,
};

lb_array *lb_slice(lb_ctx *cx, lb_array *a, const int64_t *start,
                   const int64_t *limit, const int64_t *stride)
{
    lb_slice_params p = {{0}, {0}, {0}};
    const int rank = lb_rank(a);
    if (rank > 0 && (!start || !limit)) {
        lb_fail(cx, LB_E_NULL, "slice: %s is NULL for rank %d",
                start ? "limit" : "start", rank);
        return NULL;
    }
    for (int k = 0; k < rank; k++) {
        p.start[k] = start[k];
        p.limit[k] = limit[k];
        p.stride[k] = stride ? stride[k] : 1;
    }
    return lb_bind(cx, &lb_prim_slice, 1, &a, &p);
}

/* ---- reverse ------------------------------------------------------------ */

static bool reverse_infer(lb_ctx *cx, lb_call *c)
{
    const lb_reverse_params *p = c->params;
    c->dtype = c->in[0]->dtype;
    c->shape = c->in[0]->shape;
    return lb_axes_check(cx, "reverse", "axes", &p->axes, c->shape.rank);
}

static lb_verdict reverse_move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    const lb_reverse_params *p = c->params;
    lb_array v = *c->in[0];
    const bool empty = lb_shape_size(&v.shape) == 0;
    for (int i = 0; i < p->axes.n; i++) {
        const int k = p->axes.axis[i];
        if (empty || v.shape.dim[k] == 1) continue;
        v.offset += (v.shape.dim[k] - 1) * v.stride[k];
        v.stride[k] = -v.stride[k];
    }
    return give(cx, &v, out);
}

static lb_array *reverse_vjp(lb_ctx *cx, const lb_call *c, int operand,
                             lb_array *out, lb_array *dout)
{
    const lb_reverse_params *p = c->params;
    (void)operand, (void)out;
    return lb_reverse(cx, dout, &p->axes);
}

static bool reverse_shard(const lb_call *c, lb_cuts *to)
{
    const lb_reverse_params *p = c->params;
    for (int k = 0; k < c->shape.rank; k++)
        if (!lb_axes_has(&p->axes, k)) lb_cuts_pair(to, k + 1, 0, k, k);
    return true;
}

const lb_prim lb_prim_reverse = {
    .struct_size = sizeof(lb_prim),
    .name = "reverse",
    .params_size = sizeof(lb_reverse_params),
    .n_in = 1,
    .infer = reverse_infer,
    .move = reverse_move,
    .vjp = reverse_vjp,
    .shard = reverse_shard,
};

lb_array *lb_reverse(lb_ctx *cx, lb_array *a, const lb_axes *axes)
{
    lb_reverse_params p = {{0}};
    if (a && !lb_axes_fix(cx, "reverse", axes, a->shape.rank, &p.axes))
        return NULL;
    return lb_bind(cx, &lb_prim_reverse, 1, &a, &p);
}

/* ---- axes of size 1 ----------------------------------------------------- */

lb_array *lb_squeeze(lb_ctx *cx, lb_array *a, const lb_axes *axes)
{
    lb_axes gone = {0};
    lb_shape shape = {0};
    const int rank = a ? a->shape.rank : 0;
    if (a && axes && !lb_axes_fix(cx, "squeeze", axes, rank, &gone))
        return NULL;
    for (int k = 0; k < rank; k++) {
        const int64_t n = a->shape.dim[k];
        if (axes ? !lb_axes_has(&gone, k) : n != 1) {
            shape.dim[shape.rank++] = n;
        } else if (n != 1) {
            lb_fail(cx, LB_E_SHAPE, "squeeze: axis %d of %s has size %lld", k,
                    LB_SHOW(&a->shape), (long long)n);
            return NULL;
        }
    }
    return lb_reshape(cx, a, shape);
}

lb_array *lb_expand(lb_ctx *cx, lb_array *a, int axis)
{
    lb_shape shape = {0};
    int at = 0;
    if (!a) return lb_reshape(cx, a, shape);
    if (a->shape.rank == LB_MAX_RANK) {
        lb_fail(cx, LB_E_SHAPE, "expand: %s already has rank %d, the maximum",
                LB_SHOW(&a->shape), LB_MAX_RANK);
        return NULL;
    }
    shape.rank = a->shape.rank + 1;
    if (!lb_axis_fix(cx, "expand", axis, shape.rank, &at)) return NULL;
    for (int k = 0; k < shape.rank; k++)
        shape.dim[k] = k == at ? 1 : a->shape.dim[k < at ? k : k - 1];
    return lb_reshape(cx, a, shape);
}
