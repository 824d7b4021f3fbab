/* conv_vjp.c - gradients of convolutions, which are convolutions too.
 *
 *   of lhs: dout, dilated by the stride, with the kernel reversed and its
 *           input and output features exchanged (conv_phases.h)
 *   of rhs: lhs with dout as the kernel, dilated by the stride; batch and
 *           features are exchanged
 *
 * Padding follows from where kernel elements meet the input (conv_dims.h).
 * Feature groups of one are groups of the other.
 */
#include <string.h>

#include "core/core.h"
#include "matmul/conv_dims.h"
#include "matmul/conv_phases.h"

static int64_t dilated(int64_t n, int64_t by)
{
    return n ? (n - 1) * by + 1 : 0;
}

/* Labels of axes: two letters, and the spatial axes. */
static void label(char *to, const char *letters, int first, int second,
                  const int *space, int spaces)
{
    memset(to, 0, LB_MAX_SPATIAL + 3);
    to[first] = letters[0];
    to[second] = letters[1];
    for (int k = 0; k < spaces; k++)
        to[space[k]] = (char)('0' + k);
}

/* Splits axis `from` into (groups, rest), and moves the groups in front of axis
 * `to`. */
static lb_array *move_groups(lb_ctx *cx, lb_array *a, int from, int to,
                             int64_t groups)
{
    lb_shape split = {.rank = 0}, joined = {.rank = 0};
    int perm[LB_MAX_RANK], n = 0;
    for (int k = 0; k < a->shape.rank; k++) {
        if (k == from) split.dim[split.rank++] = groups;
        split.dim[split.rank++] = a->shape.dim[k] / (k == from ? groups : 1);
        joined.dim[joined.rank++] =
            k == from ? a->shape.dim[k] / groups
                      : a->shape.dim[k] * (k == to ? groups : 1);
    }
    for (int k = 0; k < split.rank; k++) {
        const bool is_to = k == (to > from ? to + 1 : to);
        if (is_to) perm[n++] = from;
        if (k != from) perm[n++] = k;
    }
    lb_enter(cx);
    a = lb_transpose(cx, lb_reshape(cx, a, split), perm);
    return lb_leave_with(cx, a ? lb_reshape(cx, a, joined) : NULL);
}

typedef struct {
    lb_conv v;
    int lhs[LB_MAX_SPATIAL], rhs[LB_MAX_SPATIAL], out[LB_MAX_SPATIAL];
} axes;

static lb_array *of_lhs(lb_ctx *cx, const lb_call *c, const axes *x,
                        lb_array *dout)
{
    const lb_conv_dims *p = c->params;
    const lb_conv *v = &x->v;
    lb_conv_dims d = {.preferred = c->in[0]->dtype,
                      .precision = p->precision,
                      .feature_groups = v->groups};
    label(d.lhs, "bf", v->out_b, v->out_f, x->out, v->spaces);
    label(d.rhs, "oi", v->rhs_i, v->rhs_o, x->rhs, v->spaces);
    label(d.out, "bf", v->lhs_b, v->lhs_f, x->lhs, v->spaces);
    for (int k = 0; k < v->spaces; k++) {
        const lb_conv_space *s = &v->space[k];
        const int64_t kernel = dilated(s->kernel, s->rhs_dilation);
        const int64_t lo = kernel - 1 - s->pad_lo;
        d.stride[k] = s->lhs_dilation;
        d.lhs_dilation[k] = s->stride;
        d.rhs_dilation[k] = s->rhs_dilation;
        d.reversal[k] = !s->reversed;
        d.pad_lo[k] = lo;
        d.pad_hi[k] = dilated(s->in, s->lhs_dilation) + kernel - 1 -
                      dilated(s->size, s->stride) - lo;
    }
    lb_array *w = c->in[1];
    if (v->groups > 1) w = move_groups(cx, w, v->rhs_o, v->rhs_i, v->groups);
    lb_array *r =
        w ? lb_conv_by_phases(cx, c->prim, (lb_array *[]){dout, w}, &d) : NULL;
    return r && v->by_batch ? move_groups(cx, r, v->lhs_f, v->lhs_b, v->groups)
                            : r;
}

static lb_array *of_rhs(lb_ctx *cx, const lb_call *c, const axes *x,
                        lb_array *dout)
{
    const lb_conv_dims *p = c->params;
    const lb_conv *v = &x->v;
    lb_conv_dims d = {.preferred = c->in[1]->dtype, .precision = p->precision};
    lb_axes back = {0};
    label(d.lhs, "bf", v->lhs_f, v->lhs_b, x->lhs, v->spaces);
    label(d.rhs, "oi", v->out_f, v->out_b, x->out, v->spaces);
    label(d.out, "bf", v->rhs_i, v->rhs_o, x->rhs, v->spaces);
    d.feature_groups = v->by_batch ? v->groups : 1;
    d.batch_groups = v->by_batch ? 1 : v->groups;
    for (int k = 0; k < v->spaces; k++) {
        const lb_conv_space *s = &v->space[k];
        d.stride[k] = s->rhs_dilation;
        d.lhs_dilation[k] = s->lhs_dilation;
        d.rhs_dilation[k] = s->stride;
        d.pad_lo[k] = s->pad_lo;
        d.pad_hi[k] = dilated(s->size, s->stride) -
                      dilated(s->in, s->lhs_dilation) +
                      dilated(s->kernel, s->rhs_dilation) - s->pad_lo - 1;
        if (s->reversed) back.axis[back.n++] = s->rhs;
    }
    lb_array *r = lb_bind(cx, c->prim, 2, (lb_array *[]){c->in[0], dout}, &d);
    return r && back.n ? lb_reverse(cx, r, &back) : r;
}

lb_array *lb_conv_vjp(lb_ctx *cx, const lb_call *c, int operand, lb_array *out,
                      lb_array *dout)
{
    lb_array *mine = c->in[operand];
    axes x;
    (void)out;
    if (!lb_shape_size(&c->shape) || !lb_shape_size(&mine->shape))
        return lb_zeros(cx, mine->dtype, mine->shape);
    lb_conv_read(NULL, &c->in[0]->shape, &c->in[1]->shape, c->params, &x.v);
    for (int k = 0; k < x.v.spaces; k++) {
        x.lhs[k] = x.v.space[k].lhs;
        x.rhs[k] = x.v.space[k].rhs;
        x.out[k] = x.v.space[k].out;
    }
    lb_enter(cx);
    return lb_leave_with(cx, operand ? of_rhs(cx, c, &x, dout)
                                     : of_lhs(cx, c, &x, dout));
}
