/* value_and_grad.c - a function's value and gradients in one call: a tape with
 * its scopes.
 *
 * Arguments are watched as separate views, so that the same array may be passed
 * twice, and arrays that fn reaches in other ways are constants. fn runs in its
 * own scope, which is closed before the backward pass: then only the tape holds
 * the intermediate arrays, and frees them as it goes.
 */
#include "core/core.h"

static bool check(lb_ctx *cx, lb_fn fn, lb_array *const *args, int n,
                  lb_array **grad, int n_grad)
{
    const char *who = "value_and_grad";
    if (!fn) return lb_fail(cx, LB_E_NULL, "%s: the function is NULL", who);
    if (n < 0 || n_grad < 0 || n_grad > n)
        return lb_fail(cx, LB_E_ARG, "%s: n_grad is %d, not in 0..%d", who,
                       n_grad, n);
    if ((n && !args) || (n_grad && !grad))
        return lb_fail(cx, LB_E_NULL, "%s: the list of %s is NULL", who,
                       n && !args ? "arguments" : "gradients");
    for (int i = 0; i < n; i++) {
        if (!args[i])
            return lb_fail(cx, LB_E_NULL, "%s: argument %d is NULL", who, i);
        if (i < n_grad && !lb_dtype_is_float(args[i]->dtype))
            return lb_fail(
                cx, LB_E_DTYPE,
                "%s: argument %d is %s%s, which has no gradient: its "
                "dtype must be a float",
                who, i, lb_dtype_name(args[i]->dtype),
                LB_SHOW(&args[i]->shape));
    }
    return true;
}

static lb_array *call(lb_ctx *cx, lb_fn fn, lb_array *const *args, int n,
                      void *user)
{
    lb_enter(cx);
    lb_array *y = fn(cx, args, n, user);
    if (!y)
        lb_fail(cx, LB_E_NULL, "value_and_grad: the function returned NULL");
    return lb_leave_with(cx, y);
}

/* seen: space for n arrays. */
static lb_array *run(lb_ctx *cx, lb_tape *t, lb_fn fn, lb_array *const *args,
                     lb_array **seen, int n, void *user, lb_array **grad,
                     int n_grad)
{
    for (int i = 0; i < n; i++) {
        /* A call rather than lb_view, so that outer tapes record it. */
        seen[i] =
            i < n_grad ? lb_reshape(cx, args[i], args[i]->shape) : args[i];
        if (!seen[i] || (i < n_grad && !lb_tape_watch(t, seen[i]))) return NULL;
    }
    lb_array *y = call(cx, fn, seen, n, user);
    if (!y || !lb_tape_grad(t, y, NULL, seen, n_grad, grad)) return NULL;
    for (int i = 0; i < n_grad; i++)
        lb_keep(cx, grad[i]);
    return y;
}

lb_array *lb_value_and_grad(lb_ctx *cx, lb_fn fn, lb_array *const *args, int n,
                            void *user, lb_array **grad, int n_grad)
{
    size_t got;
    if (!cx) return NULL;
    for (int i = 0; i < n_grad && grad; i++)
        grad[i] = NULL;
    if (!check(cx, fn, args, n, grad, n_grad)) return NULL;
    lb_array **seen = lb_heap_alloc(cx->heap, (size_t)n * sizeof *seen, &got);
    if (!seen) {
        lb_fail(cx, LB_E_NOMEM, "out of memory (%d arguments)", n);
        return NULL;
    }
    lb_enter(cx);
    lb_tape *t = lb_tape_open(cx);
    lb_array *y = t ? run(cx, t, fn, args, seen, n, user, grad, n_grad) : NULL;
    lb_tape_close(t);
    lb_heap_free(cx->heap, seen, got);
    return lb_leave_with(cx, y);
}
