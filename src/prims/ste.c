/* ste.c - stopping gradients, and straight-through gradients.
 *
 *   stop_gradient (a)   a, without a gradient
 *   ste (x, y)          y, with the gradient of x: a straight-through estimator
 *                       for any function that computes y from x
 */
#include "core/core.h"
#include "prims/cuts.h"

static lb_verdict give(lb_ctx *cx, const lb_array *a, lb_array **out)
{
    *out = lb_view(cx, a);
    return *out ? LB_DONE : LB_FAILED;
}

/* Elements of the last operand. */
static void fuse(const lb_call *c, lb_fusion *to)
{
    (void)c;
    to->kind = LB_FUSE_SAME;
}

/* ---- stop_gradient ------------------------------------------------------- */

static bool stop_infer(lb_ctx *cx, lb_call *c)
{
    (void)cx;
    c->shape = c->in[0]->shape;
    c->dtype = c->in[0]->dtype;
    return true;
}

static lb_verdict stop_move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    return give(cx, c->in[0], out);
}

const lb_prim lb_prim_stop_gradient = {
    .struct_size = sizeof(lb_prim),
    .name = "stop_gradient",
    .n_in = 1,
    .infer = stop_infer,
    .move = stop_move,
    .flow = LB_FLOW_NONE,
    .shard = lb_cuts_same,
    .fuse = fuse,
};

lb_array *lb_stop_gradient(lb_ctx *cx, lb_array *a)
{
    return lb_bind(cx, &lb_prim_stop_gradient, 1, &a, NULL);
}

/* ---- ste ----------------------------------------------------------------- */

static bool ste_infer(lb_ctx *cx, lb_call *c)
{
    const lb_array *x = c->in[0], *y = c->in[1];
    if (!lb_shape_equal(&x->shape, &y->shape))
        return lb_fail(
            cx, LB_E_SHAPE,
            "ste: result %s of operand %s: straight-through gradients "
            "need equal shapes",
            LB_SHOW(&y->shape), LB_SHOW(&x->shape));
    if (!lb_dtype_is_float(x->dtype) || !lb_dtype_is_float(y->dtype))
        return lb_fail(cx, LB_E_DTYPE,
                       "ste: result %s of operand %s: both must have a float "
                       "dtype",
                       lb_dtype_name(y->dtype), lb_dtype_name(x->dtype));
    c->shape = y->shape;
    c->dtype = y->dtype;
    return true;
}

static lb_verdict ste_move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    return give(cx, c->in[1], out);
}

static lb_array *ste_vjp(lb_ctx *cx, const lb_call *c, int operand,
                         lb_array *out, lb_array *dout)
{
    (void)out;
    return operand ? NULL : lb_as(cx, dout, c->in[0]->dtype);
}

const lb_prim lb_prim_ste = {
    .struct_size = sizeof(lb_prim),
    .name = "ste",
    .element_ns = 0.7F,
    .n_in = 2,
    .infer = ste_infer,
    .move = ste_move,
    .vjp = ste_vjp,
    .shard = lb_cuts_same,
    .fuse = fuse,
};

lb_array *lb_ste(lb_ctx *cx, lb_fn fn, lb_array *x, void *user)
{
    if (!cx) return NULL;
    if (!fn || !x) {
        lb_fail(cx, LB_E_NULL, "ste: the %s is NULL",
                fn ? "array" : "function");
        return NULL;
    }
    lb_enter(cx);
    lb_array *in[2] = {x, lb_stop_gradient(cx, x)};
    in[1] = in[1] ? fn(cx, &in[1], 1, user) : NULL;
    if (!in[1]) lb_fail(cx, LB_E_NULL, "ste: the function returned NULL");
    return lb_leave_with(cx,
                         in[1] ? lb_bind(cx, &lb_prim_ste, 2, in, NULL) : NULL);
}
