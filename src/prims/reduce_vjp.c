/* reduce_vjp.c - gradients of sums, products, maxima and minima.
 *
 * A reduced array is broadcast to the operand's shape along the reduced axes.
 * 16-bit floats are computed in f32 and rounded once.
 */
#include "prims/reduce_vjp.h"

#include "core/core.h"
#include "lowbit_params.h"
#include "prims/elementwise.h"

/* Broadcasts a, which has the result's shape, along the reduced axes. */
static lb_array *spread(lb_ctx *cx, const lb_call *c, lb_array *a)
{
    const lb_reduce_params *p = c->params;
    const lb_shape *shape = &c->in[0]->shape;
    int dims[LB_MAX_RANK] = {0}, n = 0;
    for (int k = 0; k < shape->rank; k++)
        if (!lb_axes_has(&p->axes, k)) dims[n++] = k;
    return a ? lb_broadcast_in_dim(cx, a, *shape, dims) : NULL;
}

lb_array *lb_vjp_reduce_sum(lb_ctx *cx, const lb_call *c, int operand,
                            lb_array *out, lb_array *dout)
{
    (void)operand, (void)out;
    return spread(cx, c, dout);
}

static lb_array *end(lb_ctx *cx, const lb_call *c, lb_array *d)
{
    return lb_leave_with(cx, d ? lb_as(cx, d, c->dtype) : NULL);
}

static lb_array *sum(lb_ctx *cx, const lb_call *c, lb_array *a)
{
    const lb_reduce_params *p = c->params;
    return lb_reduce_sum(cx, a, &p->axes);
}

/* Elements equal to the extreme share its gradient equally. */
lb_array *lb_vjp_reduce_extreme(lb_ctx *cx, const lb_call *c, int operand,
                                lb_array *out, lb_array *dout)
{
    (void)operand;
    lb_enter(cx);
    lb_array *g = lb_vjp_wide(cx, dout);
    lb_array *is = lb_eq(cx, c->in[0], spread(cx, c, out));
    lb_array *count = is && g ? sum(cx, c, lb_convert(cx, is, g->dtype)) : NULL;
    lb_array *each = count ? spread(cx, c, lb_div(cx, g, count)) : NULL;
    return end(cx, c, each ? lb_select(cx, is, each, lb_scalar(cx, 0)) : NULL);
}

/* The product of all other elements: with one zero only that element has a
 * nonzero gradient, with two none has. */
lb_array *lb_vjp_reduce_prod(lb_ctx *cx, const lb_call *c, int operand,
                             lb_array *out, lb_array *dout)
{
    const lb_reduce_params *p = c->params;
    (void)operand, (void)out;
    lb_enter(cx);
    lb_array *g = lb_vjp_wide(cx, dout), *x = lb_vjp_wide(cx, c->in[0]);
    lb_array *zero = x ? lb_eq(cx, x, lb_scalar(cx, 0)) : NULL;
    if (!g || !zero) return end(cx, c, NULL);
    lb_array *some = lb_select(cx, zero, lb_scalar(cx, 1), x);
    lb_array *all = lb_mul(cx, g, lb_reduce_prod(cx, some, &p->axes));
    lb_array *zeros = sum(cx, c, lb_convert(cx, zero, x->dtype));
    lb_array *none = lb_eq(cx, zeros, lb_scalar(cx, 0));
    lb_array *one = lb_eq(cx, zeros, lb_scalar(cx, 1));
    lb_array *nil = lb_scalar(cx, 0);
    lb_array *at = lb_select(cx, one, all, nil);   /* where x is 0 */
    lb_array *off = lb_select(cx, none, all, nil); /* elsewhere, times 1/x */
    return end(cx, c,
               lb_select(cx, zero, spread(cx, c, at),
                         lb_div(cx, spread(cx, c, off), some)));
}
