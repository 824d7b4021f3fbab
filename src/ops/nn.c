/* nn.c - building blocks of neural networks, composed from primitives.
 *
 * Each function opens a scope, so that only its result outlives it. 16-bit
 * floats and integers are computed in f32 and rounded once at the end: begin()
 * converts, end() converts back.
 */
#include <math.h>

#include "core/core.h"

typedef struct {
    lb_ctx *cx;
    lb_dtype dtype; /* of the result */
    bool weak;
} nn_work;

/* x in the dtype to compute in; NULL on error. */
static lb_array *begin(nn_work *w, lb_ctx *cx, const char *who, lb_array *x)
{
    *w = (nn_work){cx, LB_F32, false};
    if (!cx) return NULL;
    lb_enter(cx);
    if (!x) {
        lb_fail(cx, LB_E_NULL, "%s: the array is NULL", who);
        return NULL;
    }
    w->weak = x->weak;
    if (lb_dtype_is_float(x->dtype)) w->dtype = x->dtype;
    return x->dtype == LB_F64 ? x : lb_as(cx, x, LB_F32);
}

static lb_array *end(const nn_work *w, lb_array *y)
{
    if (!w->cx) return NULL;
    lb_array *out = y ? lb_as(w->cx, y, w->dtype) : NULL;
    if (out && w->weak) out->weak = true;
    return lb_leave_with(w->cx, out);
}

/* Restores the reduced axes with size 1. */
static lb_array *keep_axes(lb_ctx *cx, lb_array *reduced, const lb_shape *of,
                           const lb_axes *axes)
{
    lb_shape s = *of;
    for (int i = 0; i < axes->n; i++)
        s.dim[axes->axis[i]] = 1;
    return lb_reshape(cx, reduced, s);
}

/* ---- activations -------------------------------------------------------- */

lb_array *lb_relu(lb_ctx *cx, lb_array *x)
{
    if (!cx) return NULL;
    lb_enter(cx);
    lb_array *y = lb_max(cx, x, lb_scalar_int(cx, 0));
    return lb_leave_with(cx, y);
}

lb_array *lb_silu(lb_ctx *cx, lb_array *x)
{
    nn_work w;
    x = begin(&w, cx, "silu", x);
    return end(&w, x ? lb_mul(cx, x, lb_logistic(cx, x)) : NULL);
}

/* x/2 (1 + t) */
static lb_array *gate(lb_ctx *cx, lb_array *x, lb_array *t)
{
    lb_array *half = lb_mul(cx, x, lb_scalar(cx, 0.5));
    return lb_mul(cx, half, lb_add(cx, t, lb_scalar(cx, 1)));
}

lb_array *lb_gelu(lb_ctx *cx, lb_array *x)
{
    nn_work w;
    x = begin(&w, cx, "gelu", x);
    if (!x) return end(&w, NULL);
    lb_array *z =
        lb_mul(cx, x, lb_full(cx, x->dtype, (lb_shape){0}, M_SQRT1_2));
    return end(&w, gate(cx, x, lb_erf(cx, z)));
}

/* approximates erf by tanh of sqrt(2/pi) (x + 0.044715 x^3) */
lb_array *lb_gelu_tanh(lb_ctx *cx, lb_array *x)
{
    nn_work w;
    x = begin(&w, cx, "gelu_tanh", x);
    if (!x) return end(&w, NULL);
    const lb_shape s = {0};
    lb_array *cube = lb_mul(cx, lb_full(cx, x->dtype, s, 0.044715),
                            lb_integer_pow(cx, x, 3));
    lb_array *z =
        lb_mul(cx, lb_full(cx, x->dtype, s, sqrt(M_2_PI)), lb_add(cx, x, cube));
    return end(&w, gate(cx, x, lb_tanh(cx, z)));
}

/* ---- statistics --------------------------------------------------------- */

/* The dtype of sums: jax.numpy's, whose default integers have 32 bits. */
static lb_dtype sum_dtype(lb_dtype d)
{
    switch (d) {
    case LB_BOOL:
    case LB_I8:
    case LB_I16:
        return LB_I32;
    case LB_U8:
    case LB_U16:
        return LB_U32;
    default:
        return d;
    }
}

typedef lb_array *reducing(lb_ctx *, lb_array *, const lb_axes *);

/* reduce(x converted to dtype), with its axes kept if the caller wants it. */
static lb_array *reduced(lb_ctx *cx, reducing *reduce, lb_array *x,
                         lb_dtype dtype, const lb_axes *axes, bool keep)
{
    lb_axes a;
    if (!cx) return NULL;
    lb_enter(cx);
    if (x && x->dtype != dtype) x = lb_convert(cx, x, dtype);
    lb_array *r = reduce(cx, x, axes);
    if (r && keep)
        r = lb_axes_fix(cx, "reduce", axes, x->shape.rank, &a)
                ? keep_axes(cx, r, &x->shape, &a)
                : NULL;
    return lb_leave_with(cx, r);
}

lb_array *lb_sum(lb_ctx *cx, lb_array *x, const lb_axes *axes, bool keep)
{
    const lb_dtype d = x ? sum_dtype(x->dtype) : LB_NO_DTYPE;
    return reduced(cx, lb_reduce_sum, x, d, axes, keep);
}

lb_array *lb_prod(lb_ctx *cx, lb_array *x, const lb_axes *axes, bool keep)
{
    const lb_dtype d = x ? sum_dtype(x->dtype) : LB_NO_DTYPE;
    return reduced(cx, lb_reduce_prod, x, d, axes, keep);
}

lb_array *lb_amax(lb_ctx *cx, lb_array *x, const lb_axes *axes, bool keep)
{
    return reduced(cx, lb_reduce_max, x, lb_dtype_of(x), axes, keep);
}

lb_array *lb_amin(lb_ctx *cx, lb_array *x, const lb_axes *axes, bool keep)
{
    return reduced(cx, lb_reduce_min, x, lb_dtype_of(x), axes, keep);
}

lb_array *lb_all(lb_ctx *cx, lb_array *x, const lb_axes *axes, bool keep)
{
    return reduced(cx, lb_reduce_and, x, LB_BOOL, axes, keep);
}

lb_array *lb_any(lb_ctx *cx, lb_array *x, const lb_axes *axes, bool keep)
{
    return reduced(cx, lb_reduce_or, x, LB_BOOL, axes, keep);
}

static lb_array *sum_kept(lb_ctx *cx, lb_array *x, const lb_axes *axis)
{
    lb_array *s = lb_reduce_sum(cx, x, axis);
    return s ? keep_axes(cx, s, &x->shape, axis) : NULL;
}

/* The mean, with its axes kept. */
static lb_array *mean_kept(lb_ctx *cx, lb_array *x, const lb_axes *axes)
{
    int64_t n = 1;
    if (!x) return NULL;
    for (int i = 0; i < axes->n; i++)
        n *= x->shape.dim[axes->axis[i]];
    return lb_div(cx, sum_kept(cx, x, axes),
                  lb_full(cx, x->dtype, (lb_shape){0}, (double)n));
}

static lb_array *drop_axes(lb_ctx *cx, lb_array *x, const lb_axes *axes,
                           bool keep)
{
    return keep || !x ? x : lb_squeeze(cx, x, axes);
}

lb_array *lb_mean(lb_ctx *cx, lb_array *x, const lb_axes *axes, bool keep)
{
    nn_work w;
    lb_axes a;
    x = begin(&w, cx, "mean", x);
    if (!x || !lb_axes_fix(cx, "mean", axes, x->shape.rank, &a))
        return end(&w, NULL);
    return end(&w, drop_axes(cx, mean_kept(cx, x, &a), &a, keep));
}

lb_array *lb_var(lb_ctx *cx, lb_array *x, const lb_axes *axes, bool keep)
{
    nn_work w;
    lb_axes a;
    x = begin(&w, cx, "var", x);
    if (!x || !lb_axes_fix(cx, "var", axes, x->shape.rank, &a))
        return end(&w, NULL);
    lb_array *d = lb_sub(cx, x, mean_kept(cx, x, &a));
    lb_array *v = d ? mean_kept(cx, lb_mul(cx, d, d), &a) : NULL;
    return end(&w, drop_axes(cx, v, &a, keep));
}

/* ---- cross entropy ------------------------------------------------------ */

static bool has_axis(lb_ctx *cx, const char *who, const lb_array *x)
{
    return x && (x->shape.rank ||
                 lb_fail(cx, LB_E_SHAPE, "%s: a scalar has no last axis", who));
}

/* x[..., label[...]]: a gather of single elements, NaN if out of range. */
static lb_array *pick(lb_ctx *cx, lb_array *x, lb_array *labels)
{
    const int lead = labels->shape.rank;
    lb_gather_dims d = {.index_vector_dim = lead,
                        .collapsed_slice_dims = {1, {lead}},
                        .start_index_map = {1, {lead}},
                        .bounds = LB_BOUNDS_FILL};
    for (int k = 0; k < lead; k++) {
        d.operand_batching_dims.axis[k] = k;
        d.start_indices_batching_dims.axis[k] = k;
    }
    d.operand_batching_dims.n = d.start_indices_batching_dims.n = lead;
    for (int k = 0; k <= lead; k++) /* an empty axis has no slice of size 1 */
        d.slice_sizes[k] = lb_min_i64(x->shape.dim[k], 1);
    return lb_gather(cx, x, lb_expand(cx, labels, lead), &d);
}

lb_array *lb_cross_entropy(lb_ctx *cx, lb_array *logits, lb_array *labels)
{
    nn_work w;
    lb_array *x = begin(&w, cx, "cross_entropy", logits);
    if (!has_axis(cx, "cross_entropy", x)) return end(&w, NULL);
    lb_shape lead = x->shape;
    lead.rank--;
    if (!labels || !lb_dtype_is_int(labels->dtype) ||
        !lb_shape_equal(&labels->shape, &lead)) {
        if (labels)
            lb_fail(cx, LB_E_SHAPE,
                    "cross_entropy: labels are %s%s, not integers of shape %s",
                    lb_dtype_name(labels->dtype), LB_SHOW(&labels->shape),
                    LB_SHOW(&lead));
        else
            lb_fail(cx, LB_E_NULL, "cross_entropy: labels are NULL");
        return end(&w, NULL);
    }
    lb_array *p = lb_log_softmax(cx, x, lead.rank);
    return end(&w, p ? lb_neg(cx, pick(cx, p, labels)) : NULL);
}

lb_array *lb_squared_error(lb_ctx *cx, lb_array *x, lb_array *y)
{
    if (!cx) return NULL;
    lb_enter(cx);
    lb_array *d = lb_sub(cx, x, y);
    return lb_leave_with(cx,
                         d ? lb_mean(cx, lb_mul(cx, d, d), NULL, false) : NULL);
}
