/* py_creation.c - making arrays from Python's values. */
#include "py_lowbit.h"

#include <string.h>

/* copy: None, False or True; array() copies by default. */
static PyObject *as_array(PyObject *args, PyObject *names, const char *format,
                          PyObject *copy)
{
    static char *list[] = {"", "dtype", "copy", "device", NULL};
    PyObject *o, *dtype = Py_None, *device = Py_None;
    lb_dtype t;
    if (!PyArg_ParseTupleAndKeywords(args, names, format, list, &o, &dtype,
                                     &copy, &device) ||
        !py_dtype_from(dtype, &t))
        return NULL;
    const int truth = copy == Py_None ? -1 : PyObject_IsTrue(copy);
    if (PyErr_Occurred()) return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    return py_leave_with(cx, py_asarray(cx, o, t, truth));
}

static PyObject *asarray(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    return as_array(args, names, "O|$OOO:asarray", Py_None);
}

static PyObject *array(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    return as_array(args, names, "O|O$OO:array", Py_True);
}

static PyObject *from_dlpack(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    static char *list[] = {"", "device", "copy", NULL};
    PyObject *o, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O|$OO:from_dlpack", list, &o,
                                     &device, &copy))
        return NULL;
    const int truth = copy == Py_None ? -1 : PyObject_IsTrue(copy);
    lb_ctx *cx = PyErr_Occurred() ? NULL : py_enter();
    if (!cx) return NULL;
    if (py_is_array(o)) return py_leave_with(cx, py_array_of(o));
    return py_leave_with(cx, py_from_dlpack(cx, o, truth));
}

static PyObject *full(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    static char *list[] = {"shape", "fill_value", "dtype", "device", NULL};
    PyObject *shape_object, *value, *dtype = Py_None, *device = Py_None;
    lb_shape shape;
    lb_dtype t;
    if (!PyArg_ParseTupleAndKeywords(args, names, "OO|$OO:full", list,
                                     &shape_object, &value, &dtype, &device) ||
        !py_shape_from(shape_object, &shape) || !py_dtype_from(dtype, &t))
        return NULL;
    const bool is_float = PyFloat_Check(value);
    const double f = is_float ? PyFloat_AsDouble(value) : 0;
    int64_t i = 0;
    if (!is_float && !py_int_from(value, &i)) return NULL;
    const lb_dtype usual = is_float                         ? LB_F32
                           : PyBool_Check(value)            ? LB_BOOL
                           : i < INT32_MIN || i > INT32_MAX ? LB_I64
                                                            : LB_I32;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    if (!t) t = usual;
    lb_array *a;
    Py_BEGIN_ALLOW_THREADS
    a = is_float ? lb_full(cx, t, shape, f) : lb_full_int(cx, t, shape, i);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, a);
}

static PyObject *from_bytes(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *dtype, *shape_object;
    const char *bytes;
    Py_ssize_t size;
    lb_shape shape;
    lb_dtype t;
    if (!PyArg_ParseTuple(args, "OOy#:_from_bytes", &dtype, &shape_object,
                          &bytes, &size) ||
        !py_dtype_from(dtype, &t) || !py_shape_from(shape_object, &shape))
        return NULL;
    int64_t want = (int64_t)lb_dtype_size(t);
    for (int k = 0; k < shape.rank; k++)
        if (shape.dim[k] < 0 ||
            (shape.dim[k] > 0 && want > INT64_MAX / shape.dim[k])) {
            PyErr_SetString(py_error_class(LB_E_SIZE), "the shape is invalid");
            return NULL;
        } else
            want *= shape.dim[k];
    if (want != size || !t) {
        PyErr_Format(py_error_class(LB_E_SIZE),
                     "%zd bytes for an array of %lld bytes", size,
                     (long long)want);
        return NULL;
    }
    lb_ctx *cx = py_enter();
    return cx ? py_leave_with(cx, lb_from(cx, t, shape, bytes)) : NULL;
}

#define COPY_DOC                                                               \
    "copy: True, False, or None: only if needed. An array that was not "       \
    "copied "                                                                  \
    "shares the\nmemory of its source, which must not be changed then."

PyMethodDef py_creation_methods[] = {
    {"asarray", PY_FAST(asarray), METH_VARARGS | METH_KEYWORDS,
     "asarray($module, obj, /, *, dtype=None, copy=None, device=None)\n--\n\n"
     "An array of a number, nested lists, numpy, or any object with a buffer, "
     "__dlpack__\nor __array__.\n\n" COPY_DOC},
    {"array", PY_FAST(array), METH_VARARGS | METH_KEYWORDS,
     "array($module, obj, /, dtype=None, *, copy=True, device=None)\n--\n\n"
     "As asarray, but a copy by default.\n\n"
     ">>> lowbit.array([[1, 2], [3, 4]]).shape\n(2, 2)"},
    {"from_dlpack", PY_FAST(from_dlpack), METH_VARARGS | METH_KEYWORDS,
     "from_dlpack($module, x, /, *, device=None, copy=None)\n--\n\n"
     "An array of an object with __dlpack__.\n\n" COPY_DOC},
    {"full", PY_FAST(full), METH_VARARGS | METH_KEYWORDS,
     "full($module, shape, fill_value, *, dtype=None, device=None)\n--\n\n"
     "An array of equal elements."},
    {"_from_bytes", from_bytes, METH_VARARGS, NULL},
    {0},
};
