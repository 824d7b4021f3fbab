/* bitcast_convert.c - the bytes of an array as elements of another dtype.
 *
 *   same width  (..., n)    -> (..., n)
 *   narrower    (..., n)    -> (..., n, r)   r = wide / narrow
 *   wider       (..., n, r) -> (..., n)
 *
 * Element 0 of the axis of size r has the least significant bits. In memory all
 * three are the same row-major bytes, so that evaluation is a copy. Packed
 * operands are decoded: the bits are those of their values in their dtype.
 */
#include "lowbit_params.h"
#include "prims/cuts.h"
#include "prims/place.h"

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_bitcast_params *p = c->params;
    const lb_array *a = c->in[0];
    const int64_t from = (int64_t)lb_dtype_size(a->dtype);
    const int64_t to = (int64_t)lb_dtype_size(p->dtype);
    if (!to)
        return lb_fail(cx, LB_E_DTYPE, "bitcast_convert: %d is not a dtype",
                       (int)p->dtype);
    if (a->dtype == LB_BOOL || p->dtype == LB_BOOL)
        return lb_fail(cx, LB_E_DTYPE,
                       "bitcast_convert: %s%s to %s: bool has no bits to "
                       "reinterpret (use lb_convert)",
                       lb_dtype_name(a->dtype), LB_SHOW(&a->shape),
                       lb_dtype_name(p->dtype));
    c->dtype = p->dtype;
    c->shape = a->shape;
    const int last = a->shape.rank - 1;
    if (from > to) {
        if (last + 1 == LB_MAX_RANK)
            return lb_fail(cx, LB_E_SHAPE,
                           "bitcast_convert: %s%s to %s would have rank %d, "
                           "more than %d",
                           lb_dtype_name(a->dtype), LB_SHOW(&a->shape),
                           lb_dtype_name(p->dtype), last + 2, LB_MAX_RANK);
        c->shape.dim[c->shape.rank++] = from / to;
    }
    if (from < to) {
        if (last < 0 || a->shape.dim[last] != to / from)
            return lb_fail(cx, LB_E_SHAPE,
                           "bitcast_convert: %s%s to %s needs a last axis of "
                           "size %lld",
                           lb_dtype_name(a->dtype), LB_SHOW(&a->shape),
                           lb_dtype_name(p->dtype), (long long)(to / from));
        c->shape.rank--;
    }
    return lb_shape_check(cx, "bitcast_convert", &c->shape);
}

static lb_verdict move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    const lb_array *a = c->in[0];
    if (c->dtype != a->dtype) return LB_DECLINED;
    *out = lb_view(cx, a);
    if (!*out) return LB_FAILED;
    (*out)->weak = false;
    return LB_DONE;
}

static void plan(const lb_call *c, lb_plan *plan)
{
    lb_place p;
    lb_place_plan(&p, c->in[0], &c->in[0]->shape, NULL, NULL);
    *plan = (lb_plan){
        .per_thread = p.raw ? 0 : LB_PLACE_SCRATCH,
        .phases = 1,
        .units = {p.units},
        .kernel = lb_place_name(&p),
    };
}

/* The result's bytes as an array of the operand's shape and dtype. */
static void eval(const lb_work *w)
{
    const lb_array *a = w->call->in[0], *out = w->out;
    const size_t skip = (size_t)out->offset * lb_dtype_size(out->dtype);
    lb_store store = {
        .heap = out->store->heap,
        .fmt = out->store->fmt,
        .shape = a->shape,
        .ctype = lb_ctype_of(a->dtype),
        .elem = a->dtype,
        .data = (char *)out->store->data + skip,
        .data_size = out->store->data_size - skip,
    };
    lb_array to = {.dtype = a->dtype, .store = &store, .shape = a->shape};
    lb_row_major(&to.shape, to.stride);
    lb_work same = *w;
    same.out = &to;
    lb_place p;
    lb_place_plan(&p, a, &a->shape, NULL, NULL);
    lb_place_run(&p, &same, w->lo, w->hi);
}

/* The axis of size r is never cut: it stays next to its element. */
static bool shard(const lb_call *c, lb_cuts *to)
{
    const int rank = c->in[0]->shape.rank;
    for (int k = 0; k < rank && k < c->shape.rank; k++)
        lb_cuts_pair(to, k + 1, 0, k, k);
    return true;
}

const lb_prim lb_prim_bitcast_convert = {
    .struct_size = sizeof(lb_prim),
    .name = "bitcast_convert",
    .params_size = sizeof(lb_bitcast_params),
    .n_in = 1,
    .infer = infer,
    .move = move,
    .plan = plan,
    .eval = eval,
    .flow = LB_FLOW_NONE,
    .shard = shard,
};

lb_array *lb_bitcast_convert(lb_ctx *cx, lb_array *a, lb_dtype dtype)
{
    return lb_bind(cx, &lb_prim_bitcast_convert, 1, &a,
                   &(lb_bitcast_params){dtype});
}
