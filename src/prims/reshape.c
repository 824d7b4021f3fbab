/* reshape.c - reshape of the input, optionally transposed.
 *
 * A view if numpy would not copy: contiguous old axes form groups, and each
 * group is split into new axes of the same product. Otherwise whole blocks of a
 * packed operand are moved to row-major order, or the elements are written to a
 * dense result in row-major order, which is the same in the old and the new
 * shape.
 */
#include "lowbit_params.h"
#include "prims/cuts.h"
#include "prims/place.h"

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_reshape_params *p = c->params;
    const lb_array *a = c->in[0];
    lb_axes perm = {.n = a->shape.rank};
    for (int k = 0; k < perm.n; k++)
        perm.axis[k] = p->perm[k];
    if (!lb_shape_check(cx, "reshape", &p->shape) ||
        (p->permute &&
         !lb_axes_check(cx, "reshape", "perm", &perm, a->shape.rank)))
        return false;
    const int64_t have = lb_shape_size(&a->shape);
    const int64_t want = lb_shape_size(&p->shape);
    if (have != want)
        return lb_fail(cx, LB_E_SHAPE,
                       "reshape: %s has %lld elements, %s has %lld",
                       LB_SHOW(&a->shape), (long long)have, LB_SHOW(&p->shape),
                       (long long)want);
    c->dtype = a->dtype;
    c->shape = p->shape;
    return true;
}

/* The operand with its axes permuted, on the caller's stack. */
static lb_array permuted(const lb_call *c)
{
    const lb_reshape_params *p = c->params;
    const lb_array *a = c->in[0];
    lb_array v = *a;
    for (int k = 0; k < a->shape.rank && p->permute; k++) {
        v.shape.dim[k] = a->shape.dim[p->perm[k]];
        v.stride[k] = a->stride[p->perm[k]];
    }
    return v;
}

static lb_verdict move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    lb_array v = permuted(c);
    int64_t stride[LB_MAX_RANK];
    if (lb_restride(&v, &c->shape, stride)) {
        v.shape = c->shape;
        for (int k = 0; k < c->shape.rank; k++)
            v.stride[k] = stride[k];
        *out = lb_view(cx, &v);
        return *out ? LB_DONE : LB_FAILED;
    }
    if (v.store->data) return LB_DECLINED;
    lb_array *packed = lb_view(cx, &v);
    if (!packed) return LB_FAILED;
    const lb_verdict done = lb_pack_rows(cx, packed, out);
    if (done != LB_DONE) return done;
    (*out)->shape = c->shape;
    lb_row_major(&c->shape, (*out)->stride);
    return LB_DONE;
}

static void plan(const lb_call *c, lb_plan *plan)
{
    const lb_array v = permuted(c);
    lb_place p;
    lb_place_plan(&p, &v, &v.shape, NULL, NULL);
    *plan = (lb_plan){
        .per_thread = p.raw ? 0 : LB_PLACE_SCRATCH,
        .phases = 1,
        .units = {p.units},
        .kernel = lb_place_name(&p),
    };
}

static void eval(const lb_work *w)
{
    const lb_array v = permuted(w->call);
    lb_place p;
    lb_place_plan(&p, &v, &v.shape, NULL, NULL);
    lb_place_run(&p, w, w->lo, w->hi);
}

static lb_array *vjp(lb_ctx *cx, const lb_call *c, int operand, lb_array *out,
                     lb_array *dout)
{
    const lb_reshape_params *p = c->params;
    const lb_array v = permuted(c);
    int back[LB_MAX_RANK];
    (void)operand, (void)out;
    if (!p->permute) return lb_reshape(cx, dout, v.shape);
    for (int k = 0; k < v.shape.rank; k++)
        back[p->perm[k]] = k;
    lb_enter(cx);
    lb_array *d = lb_reshape(cx, dout, v.shape);
    return lb_leave_with(cx, d ? lb_transpose(cx, d, back) : NULL);
}

static lb_array *share(lb_ctx *cx, const lb_share *p)
{
    lb_reshape_params own = *(const lb_reshape_params *)p->whole->params;
    own.shape = p->shape;
    return lb_bind(cx, p->whole->prim, 1, p->in, &own);
}

/* If some old and new axes have the same product, the first ones are cut alike:
 * a piece of one is a piece of the other. */
static bool shard(const lb_call *c, lb_cuts *to)
{
    const lb_reshape_params *p = c->params;
    const lb_array v = permuted(c);
    const lb_shape *a = &v.shape, *b = &c->shape;
    int i = 0, j = 0;
    if (!lb_shape_size(b)) return false;
    for (int label = 1; i < a->rank && j < b->rank; label++) {
        while (i < a->rank && a->dim[i] == 1)
            i++;
        while (j < b->rank && b->dim[j] == 1)
            j++;
        if (i == a->rank || j == b->rank) break;
        lb_cuts_pair(to, label, 0, p->permute ? p->perm[i] : i, j);
        int64_t x = a->dim[i++], y = b->dim[j++];
        while (x != y) {
            if (x < y)
                x *= a->dim[i++];
            else
                y *= b->dim[j++];
        }
    }
    to->run = share;
    to->varies = true; /* depends on where blocks of the slice end */
    return true;
}

static void fuse(const lb_call *c, lb_fusion *to)
{
    const lb_reshape_params *p = c->params;
    if (!p->permute) to->kind = LB_FUSE_SAME;
}

const lb_prim lb_prim_reshape = {
    .struct_size = sizeof(lb_prim),
    .name = "reshape",
    .params_size = sizeof(lb_reshape_params),
    .params_exact = sizeof(int), /* the rank; dimensions are the result's */
    .n_in = 1,
    .infer = infer,
    .move = move,
    .plan = plan,
    .eval = eval,
    .moves = 1,
    .vjp = vjp,
    .shard = shard,
    .fuse = fuse,
};

/* Computes the -1 of a shape from the number of elements. */
static bool settle(lb_ctx *cx, int64_t n, lb_shape *shape)
{
    int open = -1;
    int64_t known = 1;
    bool fits = true;
    const int rank = shape->rank <= LB_MAX_RANK ? shape->rank : 0;
    for (int k = 0; k < rank; k++) {
        if (shape->dim[k] != -1) {
            fits = fits && lb_mul_i64(known, shape->dim[k], &known);
            continue;
        }
        if (open >= 0)
            return lb_fail(cx, LB_E_SHAPE,
                           "reshape: axes %d and %d of %s are both -1", open, k,
                           LB_SHOW(shape));
        open = k;
    }
    if (open < 0) return true;
    if (!fits || known <= 0 || n % known)
        return lb_fail(cx, LB_E_SHAPE,
                       "reshape: cannot infer -1 for %lld elements in shape %s",
                       (long long)n, LB_SHOW(shape));
    shape->dim[open] = n / known;
    return true;
}

lb_array *lb_reshape(lb_ctx *cx, lb_array *a, lb_shape shape)
{
    lb_reshape_params p = {.shape = shape};
    if (a && !settle(cx, lb_size(a), &p.shape)) return NULL;
    return lb_bind(cx, &lb_prim_reshape, 1, &a, &p);
}

lb_array *lb_reshape_permuted(lb_ctx *cx, lb_array *a, const int *perm,
                              lb_shape shape)
{
    lb_reshape_params p = {.shape = shape, .permute = true};
    if (a && !settle(cx, lb_size(a), &p.shape)) return NULL;
    const int rank = lb_rank(a);
    for (int k = 0; k < rank; k++) {
        p.perm[k] = rank - 1 - k;
        if (perm && !lb_axis_fix(cx, "reshape", perm[k], rank, &p.perm[k]))
            return NULL;
    }
    return lb_bind(cx, &lb_prim_reshape, 1, &a, &p);
}
