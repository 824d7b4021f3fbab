/* py_callbacks.h - Python functions as functions of the library. user is a
 * py_callback between py_callback_begin and py_callback_end. */
#ifndef PY_CALLBACKS_H
#define PY_CALLBACKS_H

#include "py_lowbit.h"

lb_array *py_call_one(lb_ctx *cx, lb_array *const *args, int n, void *user);
/* The function returns a tuple or a list of n_out arrays. */
bool py_call_many(lb_ctx *cx, lb_array *const *args, int n, lb_array **out,
                  int n_out, void *user);

#endif
