/* py_sequence.c - arrays from nested sequences of Python's numbers.
 *
 * Two passes: the first finds shape and kind, the second fills f64 or i64
 * elements, which are converted to the dtype. Without a dtype it is bool, int32
 * (int64 if a value does not fit) or float32.
 */
#include <stdlib.h>

#include "py_lowbit.h"

typedef struct py_nest {
    lb_shape shape;
    bool has_int, has_float, wide;
    double *f;  /* filled in the second pass */
    int64_t *i; /* ... or this */
    int64_t at;
} py_nest;

static bool fail_ragged(int depth, Py_ssize_t got, int64_t want)
{
    PyErr_Format(py_error_class(LB_E_SHAPE),
                 "sequences at depth %d have different lengths (%zd and %lld)",
                 depth, got, (long long)want);
    return false;
}

/* A number, or an array or numpy scalar of one element. */
static bool leaf(py_nest *n, PyObject *o)
{
    const lb_dtype t = py_is_array(o) ? lb_dtype_of(py_array_of(o)) : 0;
    const bool is_bool = PyBool_Check(o) || t == LB_BOOL;
    const bool is_float = PyFloat_Check(o) || (t && py_dtype_is_float(t));
    if (!is_bool && !is_float && PyIndex_Check(o)) {
        int64_t i;
        if (!py_int_from(o, &i)) return false;
        n->has_int = true;
        n->wide |= i < INT32_MIN || i > INT32_MAX;
        if (n->i) n->i[n->at++] = i;
        if (n->f) n->f[n->at++] = (double)i;
        return true;
    }
    const double x = PyFloat_AsDouble(o);
    if (x == -1 && PyErr_Occurred()) return false;
    n->has_float |= !is_bool;
    if (n->i) n->i[n->at++] = x != 0;
    if (n->f) n->f[n->at++] = x;
    return true;
}

static bool walk(py_nest *n, PyObject *o, int depth, bool first)
{
    const bool nested = PyList_Check(o) || PyTuple_Check(o);
    if (nested != (depth < n->shape.rank)) {
        PyErr_Format(py_error_class(LB_E_SHAPE),
                     "numbers and sequences are mixed at depth %d", depth);
        return false;
    }
    if (!nested) return leaf(n, o);
    const Py_ssize_t len = PySequence_Size(o);
    if (len < 0) return false;
    if (first) n->shape.dim[depth] = len;
    if (n->shape.dim[depth] != len)
        return fail_ragged(depth, len, n->shape.dim[depth]);
    for (Py_ssize_t k = 0; k < len; k++) {
        PyObject *item = PySequence_GetItem(o, k);
        const bool ok = item && walk(n, item, depth + 1, first && k == 0);
        Py_XDECREF(item);
        if (!ok) return false;
    }
    return true;
}

/* The depth of first elements; empty sequences end it. */
static bool find_depth(py_nest *n, PyObject *o)
{
    PyObject *at = Py_NewRef(o);
    int depth = 0;
    while (PyList_Check(at) || PyTuple_Check(at)) {
        if (++depth > LB_MAX_RANK) {
            PyErr_Format(py_error_class(LB_E_SHAPE),
                         "sequences nested deeper than %d", LB_MAX_RANK);
            break;
        }
        if (!PySequence_Size(at)) break;
        PyObject *next = PySequence_GetItem(at, 0);
        Py_DECREF(at);
        if (!(at = next)) return false;
    }
    Py_DECREF(at);
    n->shape.rank = depth;
    return !PyErr_Occurred();
}

static lb_array *fill(lb_ctx *cx, py_nest *n, PyObject *o, lb_dtype t)
{
    const bool floats = n->has_float || (t && py_dtype_is_float(t));
    int64_t size = 1;
    for (int k = 0; k < n->shape.rank; k++)
        size *= n->shape.dim[k];
    void *room = malloc(size ? (size_t)size * 8 : 1);
    if (!room) {
        PyErr_NoMemory();
        return NULL;
    }
    n->f = floats ? room : NULL;
    n->i = floats ? NULL : room;
    n->at = 0;
    lb_array *a = NULL;
    if (walk(n, o, 0, false))
        a = lb_from(cx, floats ? LB_F64 : LB_I64, n->shape, room);
    free(room);
    const lb_dtype usual = n->has_float || !size ? LB_F32
                           : !n->has_int         ? LB_BOOL
                           : n->wide             ? LB_I64
                                                 : LB_I32;
    return a ? lb_convert(cx, a, t ? t : usual) : NULL;
}

lb_array *py_from_sequence(lb_ctx *cx, PyObject *o, lb_dtype t)
{
    py_nest n = {0};
    if (!find_depth(&n, o)) return NULL;
    if (!walk(&n, o, 0, true)) return NULL;
    return fill(cx, &n, o, t);
}
