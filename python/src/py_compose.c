/* py_compose.c - compositions with numpy's meaning. See py_compose.h.
 *
 * Errors come from the library: where an argument is wrong, the operation that
 * would be called fails with its own message.
 */
#include "py_compose.h"

static bool is_float(const lb_array *x)
{
    return x && py_dtype_is_float(lb_dtype_of(x));
}

static bool is_signed(const lb_array *x)
{
    return x && py_dtype_is_signed(lb_dtype_of(x));
}

/* ---- elementwise --------------------------------------------------------- */

lb_array *py_where(lb_ctx *cx, lb_array *pred, lb_array *x, lb_array *y)
{
    if (pred && lb_dtype_of(pred) != LB_BOOL)
        pred = lb_convert(cx, pred, LB_BOOL);
    return lb_select(cx, pred, x, y);
}

lb_array *py_is_finite(lb_ctx *cx, lb_array *x)
{
    return is_float(x) ? lb_is_finite(cx, x) : lb_eq(cx, x, x);
}

lb_array *py_whole(lb_ctx *cx, lb_array *x,
                   lb_array *(*fn)(lb_ctx *, lb_array *))
{
    return !x || is_float(x) ? fn(cx, x) : x;
}

lb_array *py_true_divide(lb_ctx *cx, lb_array *x, lb_array *y)
{
    if (!x || !y || is_float(x) || is_float(y)) return lb_div(cx, x, y);
    return lb_div(cx, lb_convert(cx, x, LB_F32), lb_convert(cx, y, LB_F32));
}

/* Whether the remainder r is not zero and has another sign than y. */
static lb_array *crosses(lb_ctx *cx, lb_array *r, lb_array *y)
{
    lb_array *zero = lb_scalar_int(cx, 0);
    return lb_and(cx, lb_ne(cx, r, zero),
                  lb_xor(cx, lb_lt(cx, r, zero), lb_lt(cx, y, zero)));
}

lb_array *py_remainder(lb_ctx *cx, lb_array *x, lb_array *y)
{
    lb_array *r = lb_rem(cx, x, y);
    if (!is_float(r) && !is_signed(r)) return r;
    lb_array *moved = lb_select(cx, crosses(cx, r, y), lb_add(cx, r, y), r);
    if (!is_float(r)) return moved;
    /* A zero has the sign of y. */
    lb_array *one = lb_full(cx, lb_dtype_of(r), lb_shape_make(0, NULL), 1);
    lb_array *zero = lb_mul(cx, lb_scalar_int(cx, 0),
                            lb_select(cx, lb_lt(cx, y, lb_scalar_int(cx, 0)),
                                      lb_neg(cx, one), one));
    return lb_select(cx, lb_eq(cx, moved, lb_scalar_int(cx, 0)), zero, moved);
}

/* floor((x - x % y) / y): the difference is a multiple of y, so that the
 * quotient is near an integer. */
static lb_array *floor_divide_floats(lb_ctx *cx, lb_array *x, lb_array *y)
{
    lb_array *q = lb_div(cx, lb_sub(cx, x, py_remainder(cx, x, y)), y);
    lb_array *finite = lb_and(cx, lb_is_finite(cx, x), lb_is_finite(cx, y));
    lb_array *usual = lb_and(cx, finite, lb_ne(cx, y, lb_scalar_int(cx, 0)));
    /* A zero has the sign of x / y. */
    lb_array *plain = lb_div(cx, x, y), *zero = lb_scalar_int(cx, 0);
    q = lb_select(cx, lb_eq(cx, q, zero), lb_mul(cx, zero, plain),
                  lb_round(cx, q));
    return lb_select(cx, usual, q, lb_floor(cx, plain));
}

lb_array *py_floor_divide(lb_ctx *cx, lb_array *x, lb_array *y)
{
    if (is_float(x) || is_float(y)) {
        /* Both in the common dtype. */
        lb_array *zero = lb_mul(cx, lb_scalar_int(cx, 0), lb_rem(cx, x, y));
        const lb_dtype t = zero ? lb_dtype_of(zero) : LB_F32;
        return floor_divide_floats(cx, lb_convert(cx, x, t),
                                   lb_convert(cx, y, t));
    }
    lb_array *q = lb_div(cx, x, y);
    if (!is_signed(q)) return q;
    lb_array *down = crosses(cx, lb_rem(cx, x, y), y);
    return lb_sub(cx, q, lb_convert(cx, down, lb_dtype_of(q)));
}

lb_array *py_shift_right(lb_ctx *cx, lb_array *x, lb_array *y)
{
    return is_signed(x) ? lb_shift_right_arithmetic(cx, x, y)
                        : lb_shift_right_logical(cx, x, y);
}

/* ---- structure ----------------------------------------------------------- */

lb_array *py_fail(lb_ctx *cx, const char *text)
{
    if (lb_error_status(cx)) return NULL;
    PyGILState_STATE s = PyGILState_Ensure();
    PyErr_SetString(py_error_class(LB_E_AXIS), text);
    PyGILState_Release(s);
    return NULL;
}

lb_array *py_transpose(lb_ctx *cx, lb_array *a, const lb_axes *axes)
{
    if (!axes) return lb_transpose(cx, a, NULL);
    if (axes->n != lb_rank(a))
        return py_fail(cx, "permute_dims: axes must name every axis once");
    return lb_transpose(cx, a, axes->axis);
}

lb_array *py_reshape_permuted(lb_ctx *cx, lb_array *a, const lb_axes *axes,
                              lb_shape shape)
{
    if (axes && axes->n != lb_rank(a))
        return py_fail(cx, "reshape_permuted: axes must name every axis once");
    return lb_reshape_permuted(cx, a, axes ? axes->axis : NULL, shape);
}

lb_array *py_broadcast_in_dim(lb_ctx *cx, lb_array *a, lb_shape shape,
                              const lb_axes *dims)
{
    if (!dims || dims->n != lb_rank(a))
        return py_fail(cx, "broadcast_in_dim: dims must have an axis of the "
                           "result for each axis of x");
    return lb_broadcast_in_dim(cx, a, shape, dims->axis);
}

const lb_axes *py_all_axes(const lb_array *a, const lb_axes *axes,
                           lb_axes *room)
{
    if (axes) return axes;
    room->n = lb_rank(a);
    for (int k = 0; k < room->n; k++)
        room->axis[k] = k;
    return room;
}

/* ---- reductions ---------------------------------------------------------- */

/* A reduction of x with the axes put back with size 1. */
static lb_array *keep_axes(lb_ctx *cx, const lb_array *x, lb_array *y,
                           const lb_axes *axes, bool keep)
{
    if (!y || !keep) return y;
    lb_shape shape = lb_shape_of(x);
    for (int k = 0; k < (axes ? axes->n : shape.rank); k++) {
        const int axis = axes ? axes->axis[k] : k;
        shape.dim[axis < 0 ? axis + shape.rank : axis] = 1;
    }
    return lb_reshape(cx, y, shape);
}

lb_array *py_arg_reduce(lb_ctx *cx, lb_array *x, const lb_axes *axes, bool keep,
                        lb_array *(*fn)(lb_ctx *, lb_array *, int, lb_dtype))
{
    if (axes && axes->n != 1)
        return py_fail(cx, "argmax and argmin reduce one axis, or all");
    lb_array *from =
        axes || !x ? x : lb_reshape(cx, x, lb_shape_make(1, &(int64_t){-1}));
    return keep_axes(cx, x, fn(cx, from, axes ? axes->axis[0] : 0, LB_I32),
                     axes, keep);
}
