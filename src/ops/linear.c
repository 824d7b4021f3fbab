/* linear.c - the linear layer, x w^T + bias, composed from dot_general and add.
 *
 * 16-bit results are summed with the bias in f32, so that they are rounded
 * once.
 */
#include <string.h>

#include "core/core.h"

static bool read_options(lb_ctx *cx, const lb_linear_options *options,
                         lb_linear_options *o)
{
    *o = (lb_linear_options){0};
    if (!options) return true;
    const size_t size =
        options->struct_size ? options->struct_size : sizeof *options;
    if (size < offsetof(lb_linear_options, precision))
        return lb_fail(cx, LB_E_ARG,
                       "linear: options.struct_size is %zu, not the sizeof or "
                       "0",
                       size);
    memcpy(o, options, size < sizeof *o ? size : sizeof *o);
    return true;
}

static bool check_shapes(lb_ctx *cx, const lb_array *x, const lb_array *w,
                         const lb_array *bias, bool in_out)
{
    if (!x || !w)
        return lb_fail(cx, LB_E_NULL, "linear: %s is NULL", x ? "w" : "x");
    if (!x->shape.rank || w->shape.rank != 2)
        return lb_fail(cx, LB_E_SHAPE,
                       "linear: x has shape %s and w %s, but x needs at least "
                       "one axis and w two",
                       LB_SHOW(&x->shape), LB_SHOW(&w->shape));
    const int64_t in = x->shape.dim[x->shape.rank - 1];
    const int64_t out = w->shape.dim[in_out];
    if (w->shape.dim[!in_out] != in)
        return lb_fail(cx, LB_E_SHAPE,
                       "linear: x has %lld features, but w %s is %s with %lld "
                       "inputs (options.in_out selects the order)",
                       (long long)in, LB_SHOW(&w->shape),
                       in_out ? "(in, out)" : "(out, in)",
                       (long long)w->shape.dim[!in_out]);
    if (bias && (bias->shape.rank != 1 || bias->shape.dim[0] != out))
        return lb_fail(cx, LB_E_SHAPE, "linear: bias has shape %s, not (%lld)",
                       LB_SHOW(&bias->shape), (long long)out);
    return true;
}

static bool check_bias(lb_ctx *cx, const lb_array *bias, lb_dtype out)
{
    return !bias || lb_dtype_is_float(out) || !lb_dtype_is_float(bias->dtype) ||
           lb_fail(cx, LB_E_DTYPE,
                   "linear: bias is %s, but the result is %s (set "
                   "options.dtype)",
                   lb_dtype_name(bias->dtype), lb_dtype_name(out));
}

lb_array *lb_linear(lb_ctx *cx, lb_array *x, lb_array *w, lb_array *bias,
                    const lb_linear_options *options)
{
    lb_linear_options o;
    if (!cx || !read_options(cx, options, &o) ||
        !check_shapes(cx, x, w, bias, o.in_out))
        return NULL;
    const lb_dtype to = o.dtype ? o.dtype : lb_promote(x->dtype, w->dtype);
    if (!check_bias(cx, bias, to)) return NULL;
    const bool half = to == LB_F16 || to == LB_BF16;
    const lb_dot_dims d = {
        .lhs_contract = {1, {x->shape.rank - 1}},
        .rhs_contract = {1, {!o.in_out}},
        .preferred = half && bias ? LB_F32 : to,
        .precision = o.precision,
    };
    lb_enter(cx);
    lb_array *y = lb_dot_general(cx, x, w, &d);
    if (y && bias) y = lb_add(cx, y, lb_as(cx, bias, y->dtype));
    return lb_leave_with(cx, y ? lb_as(cx, y, to) : NULL);
}
