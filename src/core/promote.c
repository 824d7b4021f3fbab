/* promote.c - broadcasts and promotes the operands of user functions for the
 * strict primitives: shapes as in numpy, dtypes as in jax.numpy. Weak operands
 * take the dtype of the others if their kind allows it.
 */
#include "core/core.h"

lb_array *lb_as(lb_ctx *cx, lb_array *a, lb_dtype dtype)
{
    return a && a->dtype == dtype && !a->weak ? a : lb_convert(cx, a, dtype);
}

/* bool < integers < floats: a weak operand yields to a strong one of the same
 * or a higher kind. */
static int kind(lb_dtype d)
{
    return lb_dtype_is_float(d) ? 2 : lb_dtype_is_int(d) ? 1 : 0;
}

static lb_dtype common(lb_array *const *in, int n)
{
    lb_dtype strong = LB_NO_DTYPE, soft = LB_NO_DTYPE;
    for (int i = 0; i < n; i++) {
        lb_dtype *to = in[i]->weak ? &soft : &strong;
        *to = *to ? lb_promote(*to, in[i]->dtype) : in[i]->dtype;
    }
    if (!strong) return soft;
    if (!soft || kind(soft) <= kind(strong)) return strong;
    return lb_dtype_is_float(soft) ? LB_F32 : soft;
}

/* A weak integer is a scalar, possibly broadcast: its first element is its only
 * value. A value that does not fit into the common dtype is an error. */
static bool fits(lb_ctx *cx, const lb_array *a, lb_dtype d)
{
    if (!a->weak || !lb_dtype_is_int(a->dtype) || !lb_dtype_is_int(d) ||
        !lb_shape_size(&a->shape))
        return true;
    if (!lb_has_elements(cx, "promotion of a scalar", a)) return false;
    int64_t v;
    lb_tile_read_flat(&cx->cpu, a, 0, 1, LB_C_I64, &v);
    const int bits = 8 * (int)lb_dtype_size(d) - !lb_dtype_is_unsigned(d);
    const bool below = lb_dtype_is_unsigned(d)
                           ? v < 0
                           : bits < 63 && v < -((int64_t)1 << bits);
    const bool above = bits < 63 && v >= (int64_t)1 << bits;
    return (!below && !above) ||
           lb_fail(cx, LB_E_DTYPE, "the scalar %lld does not fit into %s",
                   (long long)v, lb_dtype_name(d));
}

bool lb_meet_dtypes(lb_ctx *cx, lb_array **in, int n)
{
    for (int i = 0; i < n; i++)
        if (!in[i]) return true; /* lb_bind reports it */
    const lb_dtype d = common(in, n);
    for (int i = 0; i < n; i++) {
        if (in[i]->dtype == d) continue;
        if (!fits(cx, in[i], d)) return false;
        lb_array *a = lb_convert(cx, in[i], d);
        if (!a) return false;
        in[i] = a;
    }
    return true;
}

bool lb_meet_shapes(lb_ctx *cx, const char *who, lb_array **in, int n)
{
    lb_shape s = {0};
    for (int i = 0; i < n; i++) {
        if (!in[i]) return true;
        s.rank = in[i]->shape.rank > s.rank ? in[i]->shape.rank : s.rank;
    }
    for (int k = 0; k < s.rank; k++) {
        s.dim[k] = 1;
        for (int i = 0; i < n; i++) {
            const int j = k - s.rank + in[i]->shape.rank;
            const int64_t d = j < 0 ? 1 : in[i]->shape.dim[j];
            if (d == 1 || d == s.dim[k]) continue;
            if (s.dim[k] != 1)
                return lb_fail(cx, LB_E_SHAPE,
                               "%s: operand %d has shape %s, which does not "
                               "broadcast with %lld along axis %d",
                               who, i, LB_SHOW(&in[i]->shape),
                               (long long)s.dim[k], k);
            s.dim[k] = d;
        }
    }
    for (int i = 0; i < n; i++) {
        if (lb_shape_equal(&in[i]->shape, &s)) continue;
        in[i] = lb_broadcast_to(cx, in[i], s);
        if (!in[i]) return false;
    }
    return true;
}
