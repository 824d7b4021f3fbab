/* py_grad.c - functions of arrays that take Python functions: gradients,
 * straight-through estimators, reductions by any function.
 *
 * Python's functions get and return Array objects. Trees of arguments are
 * flattened by the package's Python code.
 */
#include <stdlib.h>

#include "py_callbacks.h"

/* Calls c->fn. On success the result is a new reference. */
static PyObject *call_fn(py_callback *c, lb_array *const *args, int n)
{
    PyObject *tuple = py_tuple_of(args, n);
    PyObject *r = tuple ? PyObject_CallObject(c->fn, tuple) : NULL;
    Py_XDECREF(tuple);
    return r;
}

/* The array of a result, which c keeps. */
static lb_array *keep(py_callback *c, PyObject *o)
{
    if (!py_is_array(o)) {
        PyErr_Format(PyExc_TypeError,
                     "the function must return arrays of lowbit, not %R",
                     Py_TYPE(o));
        return NULL;
    }
    return PyList_Append(c->kept, o) ? NULL : py_array_of(o);
}

lb_array *py_call_one(lb_ctx *cx, lb_array *const *args, int n, void *user)
{
    (void)cx;
    py_callback *c = user;
    py_callback_enter(c);
    PyObject *r = call_fn(c, args, n);
    lb_array *a = r ? keep(c, r) : NULL;
    Py_XDECREF(r);
    py_callback_leave(c, !a);
    return a;
}

bool py_call_many(lb_ctx *cx, lb_array *const *args, int n, lb_array **out,
                  int n_out, void *user)
{
    (void)cx;
    py_callback *c = user;
    py_callback_enter(c);
    PyObject *r = call_fn(c, args, n);
    bool ok = r && (PyTuple_Check(r) || PyList_Check(r));
    if (ok && PySequence_Size(r) != n_out) ok = false;
    if (r && !ok)
        PyErr_Format(PyExc_TypeError,
                     "the function must return a tuple of %d arrays", n_out);
    for (int i = 0; ok && i < n_out; i++) {
        PyObject *o = PySequence_GetItem(r, i);
        ok = o && (out[i] = keep(c, o));
        Py_XDECREF(o);
    }
    Py_XDECREF(r);
    py_callback_leave(c, !ok);
    return ok;
}

/* ---- gradients ----------------------------------------------------------- */

/* _value_and_grad(fn, arrays, n_grad) -> value, gradients */
static PyObject *value_and_grad(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *fn, *arrays, *result = NULL;
    int n_grad;
    if (!PyArg_ParseTuple(args, "OOi:_value_and_grad", &fn, &arrays, &n_grad))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    py_list list;
    py_callback c;
    if (!py_list_from(cx, arrays, PY_KEPT, &list)) return py_leave_failed(cx);
    lb_array **grad = calloc(list.n ? (size_t)list.n : 1, sizeof(lb_array *));
    if (!grad) PyErr_NoMemory();
    if (grad && py_callback_begin(&c, fn)) {
        lb_array *y = lb_value_and_grad(cx, py_call_one, list.a, list.n, &c,
                                        grad, n_grad);
        if (py_callback_end(&c) && y)
            result =
                Py_BuildValue("NN", py_array_new(y), py_tuple_of(grad, n_grad));
        Py_DECREF(c.kept);
    }
    free(grad);
    py_list_free(&list);
    if (!result) return py_leave_failed(cx);
    py_leave(cx);
    return result;
}

/* With the GIL released by py_callback_begin. */
static lb_array *run_taped(lb_ctx *cx, lb_tape *t, py_list *in, int n_grad,
                           lb_array *dy, py_callback *c, lb_array **grad)
{
    for (int i = 0; i < n_grad; i++) {
        /* A view of its own, so that the same array may be passed twice. */
        in->a[i] = lb_reshape(cx, in->a[i], lb_shape_of(in->a[i]));
        if (!in->a[i] || !lb_tape_watch(t, in->a[i])) return NULL;
    }
    lb_array *y = py_call_one(cx, in->a, in->n, c);
    return y && lb_tape_grad(t, y, dy, in->a, n_grad, grad) ? y : NULL;
}

/* _vjp(fn, arrays, n_grad, dy) -> value, gradients */
static PyObject *vjp(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *fn, *arrays, *dy_object, *result = NULL;
    int n_grad;
    if (!PyArg_ParseTuple(args, "OOiO:_vjp", &fn, &arrays, &n_grad, &dy_object))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    py_list list = {0};
    py_callback c;
    lb_array *dy = py_operand(cx, dy_object, PY_KEPT);
    if (!dy || !py_list_from(cx, arrays, PY_KEPT, &list))
        return py_leave_failed(cx);
    lb_array **grad = calloc(list.n ? (size_t)list.n : 1, sizeof(lb_array *));
    lb_tape *tape =
        grad && n_grad >= 0 && n_grad <= list.n ? lb_tape_open(cx) : NULL;
    if (tape && py_callback_begin(&c, fn)) {
        lb_array *y = run_taped(cx, tape, &list, n_grad, dy, &c, grad);
        if (py_callback_end(&c) && y)
            result =
                Py_BuildValue("NN", py_array_new(y), py_tuple_of(grad, n_grad));
        Py_DECREF(c.kept);
    } else if (!tape && !lb_error_status(cx)) {
        PyErr_SetString(PyExc_ValueError, "vjp: no such number of gradients");
    }
    lb_tape_close(tape);
    free(grad);
    py_list_free(&list);
    if (!result) return py_leave_failed(cx);
    py_leave(cx);
    return result;
}

static PyObject *ste(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *fn, *x, *result = NULL;
    if (!PyArg_ParseTuple(args, "OO:_ste", &fn, &x)) return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    py_callback c;
    lb_array *a = py_operand(cx, x, PY_KEPT);
    if (a && py_callback_begin(&c, fn)) {
        lb_array *y = lb_ste(cx, py_call_one, a, &c);
        if (py_callback_end(&c) && y) result = py_array_new(y);
        Py_DECREF(c.kept);
    }
    if (!result) return py_leave_failed(cx);
    py_leave(cx);
    return result;
}

/* ---- reductions ---------------------------------------------------------- */

static PyObject *reduce(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    static char *keys[] = {"", "", "", "axis", NULL};
    PyObject *arrays, *inits, *fn, *axis = Py_None, *result = NULL;
    lb_axes axes;
    if (!PyArg_ParseTupleAndKeywords(args, names, "OOO|$O:reduce", keys,
                                     &arrays, &inits, &fn, &axis) ||
        !py_axes_from(axis, &axes))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    py_list in = {0}, init = {0};
    py_callback c;
    bool ok = py_list_from(cx, arrays, PY_KEPT, &in) &&
              py_list_from(cx, inits, PY_KEPT, &init);
    if (ok && in.n != init.n) {
        PyErr_Format(PyExc_ValueError, "reduce: %d arrays, %d initial values",
                     in.n, init.n);
        ok = false;
    }
    lb_array **out = ok ? calloc((size_t)in.n + 1, sizeof(lb_array *)) : NULL;
    if (out && py_callback_begin(&c, fn)) {
        ok = lb_reduce(cx, in.a, init.a, in.n, axes.n < 0 ? NULL : &axes,
                       py_call_many, &c, out);
        if (py_callback_end(&c) && ok) result = py_tuple_of(out, in.n);
        Py_DECREF(c.kept);
    }
    free(out);
    py_list_free(&in);
    py_list_free(&init);
    if (!result) return py_leave_failed(cx);
    py_leave(cx);
    return result;
}

PyMethodDef py_grad_methods[] = {
    {"_value_and_grad", value_and_grad, METH_VARARGS, NULL},
    {"_vjp", vjp, METH_VARARGS, NULL},
    {"_ste", ste, METH_VARARGS, NULL},
    {"reduce", PY_FAST(reduce), METH_VARARGS | METH_KEYWORDS,
     "reduce($module, arrays, init, body, /, *, axis=None)\n--\n\n"
     "XLA's reduce: n arrays together, by an associative elementwise function "
     "of n\naccumulators and n elements that returns n accumulators."},
    {0},
};
