/* py_operand.c - arrays from Python's values: numbers, buffers, sequences. */
#include "py_lowbit.h"

#include <stdlib.h>
#include <string.h>

/* ---- small values -------------------------------------------------------- */

bool py_int_from(PyObject *o, int64_t *i)
{
    PyObject *n = PyNumber_Index(o);
    if (!n) return false;
    *i = PyLong_AsLongLong(n);
    Py_DECREF(n);
    return !(*i == -1 && PyErr_Occurred());
}

static bool integers_from(PyObject *o, const char *what, int *n, int64_t *to)
{
    *n = 1;
    if (PyIndex_Check(o) && !PySequence_Check(o)) return py_int_from(o, to);
    PyObject *list = PySequence_Tuple(o);
    if (!list) return false;
    const Py_ssize_t len = PyTuple_Size(list);
    bool ok = len <= LB_MAX_RANK;
    if (!ok)
        PyErr_Format(py_error_class(LB_E_SHAPE),
                     "%zd %s: arrays have at most %d axes", len, what,
                     LB_MAX_RANK);
    *n = (int)len;
    for (int k = 0; ok && k < *n; k++)
        ok = py_int_from(PyTuple_GetItem(list, k), &to[k]);
    Py_DECREF(list);
    return ok;
}

bool py_shape_from(PyObject *o, lb_shape *shape)
{
    *shape = (lb_shape){0};
    return integers_from(o, "sizes", &shape->rank, shape->dim);
}

bool py_axes_from(PyObject *o, lb_axes *axes)
{
    int64_t axis[LB_MAX_RANK];
    axes->n = -1;
    if (!o || o == Py_None) return true;
    int n;
    if (!integers_from(o, "axes", &n, axis)) return false;
    for (int k = 0; k < n; k++)
        axes->axis[k] = axis[k] < INT32_MIN   ? INT32_MIN
                        : axis[k] > INT32_MAX ? INT32_MAX
                                              : (int)axis[k];
    axes->n = n;
    return true;
}

bool py_key_from(PyObject *o, lb_key *key)
{
    *key = (lb_key){0};
    const bool pair = PyTuple_Check(o) && PyTuple_Size(o) == 2;
    PyObject *seed = pair ? PyTuple_GetItem(o, 0) : o;
    key->seed = PyLong_AsUnsignedLongLongMask(seed);
    if (pair && !PyErr_Occurred())
        key->stream = PyLong_AsUnsignedLongLongMask(PyTuple_GetItem(o, 1));
    if (!PyErr_Occurred()) return true;
    PyErr_Format(PyExc_TypeError,
                 "%R is not a key: a seed, or a pair (seed, stream)", o);
    return false;
}

PyObject *py_shape_tuple(lb_shape shape)
{
    PyObject *t = PyTuple_New(shape.rank);
    for (int k = 0; t && k < shape.rank; k++) {
        PyObject *n = PyLong_FromLongLong(shape.dim[k]);
        if (!n || PyTuple_SetItem(t, k, n)) Py_CLEAR(t);
    }
    return t;
}

int py_word_value(PyObject *o, const py_word *words, const char *what)
{
    if (o == Py_None) return 0;
    const char *text =
        PyUnicode_Check(o) ? PyUnicode_AsUTF8AndSize(o, NULL) : NULL;
    if (PyErr_Occurred()) return -1;
    char list[256] = "";
    for (const py_word *w = words; w->name; w++) {
        if (text && strcmp(text, w->name) == 0) return w->value;
        const size_t at = strlen(list);
        PyOS_snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "",
                      w->name);
    }
    PyErr_Format(py_error_class(LB_E_ARG), "%s is %R: not one of %s", what, o,
                 list);
    return -1;
}

const char *py_word_name(int value, const py_word *words)
{
    for (const py_word *w = words; w->name; w++)
        if (w->value == value) return w->name;
    return "unknown";
}

/* ---- buffers ------------------------------------------------------------- */

static void release_buffer(py_loan *loan)
{
    PyBuffer_Release(&loan->buffer);
}

/* The dtype of a buffer's items; LB_NO_DTYPE and an exception if there is none.
 * Items are native, as numpy's are unless byte-swapped. */
static lb_dtype buffer_dtype(const Py_buffer *b)
{
    const char *f = b->format ? b->format : "B";
    const char order = strchr("@=<>!", *f) ? *f++ : '@';
    static const lb_dtype ints[] = {
        [1] = LB_I8, [2] = LB_I16, [4] = LB_I32, [8] = LB_I64};
    static const lb_dtype uints[] = {
        [1] = LB_U8, [2] = LB_U16, [4] = LB_U32, [8] = LB_U64};
    const bool sized = b->itemsize > 0 && b->itemsize <= 8;
    lb_dtype t = LB_NO_DTYPE;
    if (f[0] && !f[1] && sized && (strchr("@=<", order) || b->itemsize == 1)) {
        if (strchr("bhilqn", *f)) t = ints[b->itemsize];
        if (strchr("BHILQN", *f)) t = uints[b->itemsize];
        if (*f == '?') t = LB_BOOL;
        if (*f == 'e') t = LB_F16;
        if (*f == 'f') t = LB_F32;
        if (*f == 'd') t = LB_F64;
    }
    if (!t)
        PyErr_Format(py_error_class(LB_E_DTYPE),
                     "a buffer of format \"%s\" has no dtype of lowbit "
                     "(byte order must be native)",
                     b->format ? b->format : "");
    return t;
}

/* Row-major bytes of b in memory of the array's own. */
static lb_array *copy_buffer(lb_ctx *cx, const Py_buffer *b, lb_dtype t,
                             lb_shape shape)
{
    if (PyBuffer_IsContiguous(b, 'C')) return lb_from(cx, t, shape, b->buf);
    void *bytes = malloc(b->len ? (size_t)b->len : 1);
    if (!bytes) {
        PyErr_NoMemory();
        return NULL;
    }
    lb_array *a = NULL;
    if (PyBuffer_ToContiguous(bytes, (Py_buffer *)b, b->len, 'C') == 0)
        a = lb_from(cx, t, shape, bytes);
    free(bytes);
    return a;
}

/* Uses the buffer's memory if it is row-major or column-major. Takes the buffer
 * over, or releases it. label: LB_BF16 for its bits; LB_NO_DTYPE: the buffer's.
 * copy: as py_asarray has it. Small arrays are cheaper to copy than to lend. */
static lb_array *take_buffer(lb_ctx *cx, py_loan *loan, lb_dtype label,
                             int copy)
{
    const Py_buffer *b = &loan->buffer;
    const lb_dtype t = label ? label : buffer_dtype(b);
    const bool c_order = PyBuffer_IsContiguous(b, 'C') != 0;
    const bool f_order = !c_order && PyBuffer_IsContiguous(b, 'F');
    const size_t align = t ? lb_dtype_size(t) : 1;
    const bool usable = (c_order || f_order) && (uintptr_t)b->buf % align == 0;
    lb_array *a = NULL;
    lb_shape shape = {0};
    if (b->ndim > LB_MAX_RANK)
        PyErr_Format(py_error_class(LB_E_SHAPE),
                     "%d axes: arrays have at most %d", b->ndim, LB_MAX_RANK);
    else if (copy == 0 && !usable && t)
        PyErr_SetString(PyExc_ValueError, "a copy is needed: the values are "
                                          "not contiguous and aligned");
    if (!t || PyErr_Occurred()) goto done;
    shape.rank = b->ndim;
    for (int k = 0; k < b->ndim; k++)
        shape.dim[k] = b->shape[f_order && copy < 1 ? b->ndim - 1 - k : k];
    if (usable && copy < 1 && (b->len > 1024 || copy == 0)) {
        a = lb_wrap(cx, t, shape, b->buf, py_loan_done, loan);
        if (a) return f_order ? lb_transpose(cx, a, NULL) : a;
    } else {
        if (f_order && copy < 1)
            for (int k = 0; k < b->ndim; k++)
                shape.dim[k] = b->shape[k];
        a = copy_buffer(cx, b, t, shape);
    }
done:
    PyBuffer_Release(&loan->buffer);
    free(loan);
    return a;
}

static lb_array *from_buffer(lb_ctx *cx, PyObject *o, lb_dtype label, int copy)
{
    py_loan *loan = py_loan_new(release_buffer);
    if (!loan) return NULL;
    if (PyObject_GetBuffer(o, &loan->buffer, PyBUF_FULL_RO)) {
        free(loan);
        return NULL;
    }
    return take_buffer(cx, loan, label, copy);
}

/* A numpy array of ml_dtypes.bfloat16, which has no buffer: its bits. */
static PyObject *bf16_bits(PyObject *o)
{
    PyObject *dtype = PyObject_GetAttrString(o, "dtype");
    PyObject *name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
    PyObject *bits = NULL;
    if (name && PyUnicode_Check(name) &&
        PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0)
        bits = PyObject_CallMethod(o, "view", "s", "uint16");
    Py_XDECREF(dtype);
    Py_XDECREF(name);
    if (!bits) PyErr_Clear();
    return bits;
}

/* ---- any object ---------------------------------------------------------- */

static bool has(PyObject *o, const char *name)
{
    PyObject *attr = PyObject_GetAttrString((PyObject *)Py_TYPE(o), name);
    PyErr_Clear();
    Py_XDECREF(attr);
    return attr != NULL;
}

/* What o.__array__() returns. */
static lb_array *from_array_method(lb_ctx *cx, PyObject *o, int copy)
{
    PyObject *x = PyObject_CallMethod(o, "__array__", NULL);
    if (!x) return NULL;
    lb_array *a = NULL;
    if (PyObject_CheckBuffer(x))
        a = from_buffer(cx, x, LB_NO_DTYPE, copy);
    else
        PyErr_Format(PyExc_TypeError, "__array__ of %R returned %R", Py_TYPE(o),
                     Py_TYPE(x));
    Py_DECREF(x);
    return a;
}

static lb_array *from_object(lb_ctx *cx, PyObject *o, int copy)
{
    if (PyObject_CheckBuffer(o)) {
        PyObject *bits = has(o, "view") ? bf16_bits(o) : NULL;
        lb_array *a =
            from_buffer(cx, bits ? bits : o, bits ? LB_BF16 : 0, copy);
        Py_XDECREF(bits);
        return a;
    }
    if (has(o, "__dlpack__")) return py_from_dlpack(cx, o, copy);
    if (has(o, "__array__")) return from_array_method(cx, o, copy);
    PyErr_Format(PyExc_TypeError, "%R cannot be converted to an array",
                 Py_TYPE(o));
    return NULL;
}

/* Numbers of Python, which are weak; numpy's float64, a subclass of float, is
 * not. *is_number: false if o is something else. */
static lb_array *from_number(lb_ctx *cx, PyObject *o, bool *is_number)
{
    *is_number = true;
    if (PyFloat_CheckExact(o)) return lb_scalar(cx, PyFloat_AsDouble(o));
    if (PyBool_Check(o))
        return lb_full_int(cx, LB_BOOL, lb_shape_make(0, NULL), o == Py_True);
    if (PyLong_CheckExact(o)) {
        const long long i = PyLong_AsLongLong(o);
        return i == -1 && PyErr_Occurred() ? NULL : lb_scalar_int(cx, i);
    }
    *is_number = false;
    return NULL;
}

static bool is_sequence(PyObject *o)
{
    return PyList_Check(o) || PyTuple_Check(o);
}

lb_array *py_operand(lb_ctx *cx, PyObject *o, py_operand_use use)
{
    if (py_is_array(o)) return py_array_of(o);
    bool is_number;
    lb_array *a = from_number(cx, o, &is_number);
    if (is_number) return a;
    const int copy = use == PY_KEPT || py_is_recording();
    if (use != PY_TRIED)
        return is_sequence(o) ? py_from_sequence(cx, o, LB_NO_DTYPE)
                              : from_object(cx, o, copy ? 1 : -1);
    if (PyBytes_Check(o) || PyByteArray_Check(o) ||
        !(PyObject_CheckBuffer(o) || has(o, "__dlpack__")))
        return NULL;
    return from_object(cx, o, copy ? 1 : -1);
}

/* Python's numbers have the default dtypes here. */
static lb_array *strong_number(lb_ctx *cx, PyObject *o, lb_dtype t)
{
    const lb_shape scalar = {0};
    if (PyFloat_Check(o))
        return lb_full(cx, t ? t : LB_F32, scalar, PyFloat_AsDouble(o));
    if (PyBool_Check(o))
        return lb_full_int(cx, t ? t : LB_BOOL, scalar, o == Py_True);
    return py_from_sequence(cx, o, t);
}

lb_array *py_asarray(lb_ctx *cx, PyObject *o, lb_dtype t, int copy)
{
    lb_array *a;
    if (py_is_array(o))
        a = py_array_of(o);
    else if (PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) ||
             is_sequence(o)) {
        if (copy == 0) {
            PyErr_SetString(PyExc_ValueError,
                            "a copy is needed: these are Python's objects");
            return NULL;
        }
        return is_sequence(o) ? py_from_sequence(cx, o, t)
                              : strong_number(cx, o, t);
    } else
        a = from_object(cx, o, copy);
    if (!a || !t || lb_dtype_of(a) == t) return a;
    if (copy == 0) {
        PyErr_Format(PyExc_ValueError, "a copy is needed: %s is not %s",
                     py_dtype_name(lb_dtype_of(a)), py_dtype_name(t));
        return NULL;
    }
    return lb_convert(cx, a, t);
}

/* ---- lists of arrays ----------------------------------------------------- */

bool py_list_from(lb_ctx *cx, PyObject *o, py_operand_use use, py_list *list)
{
    *list = (py_list){0};
    if (!PyList_Check(o) && !PyTuple_Check(o)) {
        PyErr_Format(PyExc_TypeError, "a list or tuple of arrays, not %R",
                     Py_TYPE(o));
        return false;
    }
    const Py_ssize_t n = PySequence_Size(o);
    list->a = calloc(n ? (size_t)n : 1, sizeof *list->a);
    if (!list->a) {
        PyErr_NoMemory();
        return false;
    }
    for (; list->n < n; list->n++) {
        PyObject *item = PySequence_GetItem(o, list->n);
        if (!item) break;
        list->a[list->n] = py_operand(cx, item, use);
        Py_DECREF(item); /* the list keeps it */
        if (!list->a[list->n]) break;
    }
    if (list->n == n) return true;
    py_list_free(list);
    return false;
}

void py_list_free(py_list *list)
{
    free(list->a);
    list->a = NULL;
}

PyObject *py_tuple_of(lb_array *const *a, int n)
{
    PyObject *t = PyTuple_New(n);
    for (int i = 0; t && i < n; i++) {
        PyObject *o = py_array_new(a[i]);
        if (!o || PyTuple_SetItem(t, i, o)) Py_CLEAR(t);
    }
    return t;
}
