/* dynamic.c - dynamic_slice: a slice whose start is given by integer scalars,
 * clamped so that it fits. They have values when the call runs, so the result
 * is a view.
 */
#include "prims/dynamic.h"

#include "lowbit_params.h"
#include "prims/cuts.h"
#include "prims/place.h"

bool lb_starts_check(lb_ctx *cx, const lb_call *c, int first)
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

void lb_starts_box(const lb_call *c, int first, const int64_t *sizes,
                   int64_t *lo, int64_t *hi)
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
    if (!lb_starts_check(cx, c, 1)) return false;
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
    lb_starts_box(c, 1, p->sizes, lo, hi);
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
