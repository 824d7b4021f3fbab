/* py_compose.h - compositions of the library's functions that have numpy's
 * meaning. All run without the GIL. */
#ifndef PY_COMPOSE_H
#define PY_COMPOSE_H

#include "py_lowbit.h"

lb_array *py_where(lb_ctx *cx, lb_array *pred, lb_array *x, lb_array *y);
lb_array *py_is_finite(lb_ctx *cx, lb_array *x);
/* fn(x), or x if it holds integers. */
lb_array *py_whole(lb_ctx *cx, lb_array *x,
                   lb_array *(*fn)(lb_ctx *, lb_array *));
lb_array *py_transpose(lb_ctx *cx, lb_array *a, const lb_axes *axes);
lb_array *py_reshape_permuted(lb_ctx *cx, lb_array *a, const lb_axes *axes,
                              lb_shape shape);
lb_array *py_broadcast_in_dim(lb_ctx *cx, lb_array *a, lb_shape shape,
                              const lb_axes *dims);
/* axes, or all axes of a, which are written to room. */
const lb_axes *py_all_axes(const lb_array *a, const lb_axes *axes,
                           lb_axes *room);
/* Reports an error of this module through the context. */
lb_array *py_fail(lb_ctx *cx, const char *text);

#endif
