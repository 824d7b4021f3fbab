/* py_array.c - the type lowbit.Array: attributes, text, and methods of its own.
 * Operators are in py_operators.c, indices in py_index.c, the exchange with
 * other libraries in py_exchange.c, what concerns quantization in
 * py_quantize.c.
 */
#include "py_compose.h"

#include <stdlib.h>
#include <structmember.h>

PyTypeObject *py_array_type;

PyObject *py_array_new(lb_array *a)
{
    py_array *o = PyObject_New(py_array, py_array_type);
    if (!o) return NULL;
    o->a = lb_ref(a);
    o->weak = NULL;
    return (PyObject *)o;
}

static void array_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    py_array *o = (py_array *)self;
    if (o->weak) PyObject_ClearWeakRefs(self);
    lb_unref(o->a);
    PyObject_Free(self);
    Py_DECREF(type);
    py_loans_drain();
}

/* ---- text ---------------------------------------------------------------- */

/* lb_to_string with room for most arrays, then with as much as it needs. */
static PyObject *text_of(lb_array *a, const lb_print_options *options)
{
    char small[1024], *text = small;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    int64_t n;
    Py_BEGIN_ALLOW_THREADS
    n = lb_to_string_with(cx, a, options, small, sizeof small);
    if (n >= (int64_t)sizeof small && (text = malloc((size_t)n + 1)))
        n = lb_to_string_with(cx, a, options, text, (size_t)n + 1);
    Py_END_ALLOW_THREADS
    if (n < 0) py_raise(cx);
    if (!text) PyErr_NoMemory();
    py_leave(cx);
    PyObject *o =
        PyErr_Occurred() ? NULL : PyUnicode_FromStringAndSize(text, n);
    if (text != small) free(text);
    return o;
}

static PyObject *array_repr(PyObject *self)
{
    return text_of(py_array_of(self), NULL);
}

static PyObject *array_to_string(PyObject *self, PyObject *args,
                                 PyObject *names)
{
    static char *list[] = {"precision", "threshold", "edge", "line_width",
                           "suppress",  "header",    NULL};
    lb_print_options o = {sizeof o, 0};
    long long threshold = 0;
    int suppress = 0, header = 1;
    if (!PyArg_ParseTupleAndKeywords(args, names, "|$iLiipp:to_string", list,
                                     &o.precision, &threshold, &o.edge,
                                     &o.line_width, &suppress, &header))
        return NULL;
    o.threshold = threshold;
    o.suppress = suppress;
    o.no_header = !header;
    return text_of(py_array_of(self), &o);
}

static PyObject *array_describe(PyObject *self, PyObject *unused)
{
    (void)unused;
    char text[512];
    lb_describe(py_array_of(self), text, sizeof text);
    return PyUnicode_FromString(text);
}

/* ---- attributes ---------------------------------------------------------- */

static PyObject *get_shape(PyObject *self, void *unused)
{
    (void)unused;
    return py_shape_tuple(lb_shape_of(py_array_of(self)));
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return py_dtype_object(lb_dtype_of(py_array_of(self)));
}

static PyObject *get_ndim(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(lb_rank(py_array_of(self)));
}

static PyObject *get_size(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(lb_size(py_array_of(self)));
}

static PyObject *get_format(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(lb_format_of(py_array_of(self)));
}

static PyObject *get_nbytes(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(lb_nbytes(py_array_of(self)));
}

static PyObject *get_itemsize(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(lb_dtype_size(lb_dtype_of(py_array_of(self))));
}

static PyObject *get_bits(PyObject *self, void *unused)
{
    (void)unused;
    lb_array *a = py_array_of(self);
    const int64_t n = lb_size(a);
    return PyFloat_FromDouble(n ? 8.0 * (double)lb_nbytes(a) / (double)n : 0);
}

static PyObject *get_device(PyObject *self, void *unused)
{
    (void)self, (void)unused;
    return PyUnicode_FromString("cpu");
}

/* The axes in reverse order, or the last two swapped (the array API's T has two
 * axes; numpy reverses them all). */
static PyObject *transposed(PyObject *self, bool last_two)
{
    lb_array *a = py_array_of(self);
    const int rank = lb_rank(a);
    int perm[LB_MAX_RANK];
    if (last_two && rank < 2) {
        PyErr_SetString(py_error_class(LB_E_AXIS),
                        "mT: the array has fewer than two axes");
        return NULL;
    }
    for (int k = 0; k < rank; k++)
        perm[k] = !last_two      ? rank - 1 - k
                  : k < rank - 2 ? k
                                 : 2 * rank - 3 - k;
    lb_ctx *cx = py_enter();
    return cx ? py_leave_with(cx, lb_transpose(cx, a, perm)) : NULL;
}

static PyObject *get_t(PyObject *self, void *unused)
{
    (void)unused;
    return transposed(self, false);
}

static PyObject *get_mt(PyObject *self, void *unused)
{
    (void)unused;
    return transposed(self, true);
}

static PyGetSetDef getset[] = {
    {"shape", get_shape, NULL, "sizes of the axes", NULL},
    {"dtype", get_dtype, NULL, "dtype of the elements, however stored", NULL},
    {"ndim", get_ndim, NULL, "number of axes", NULL},
    {"size", get_size, NULL, "number of elements", NULL},
    {"format", get_format, NULL, "how they are stored: 'dense', 'nf4', ...",
     NULL},
    {"nbytes", get_nbytes, NULL, "bytes of storage, with scales", NULL},
    {"itemsize", get_itemsize, NULL, "bytes per element of the dtype", NULL},
    {"bits", get_bits, NULL, "bits of storage per element", NULL},
    {"device", get_device, NULL, "'cpu'", NULL},
    {"T", get_t, NULL, "the array with its axes reversed", NULL},
    {"mT", get_mt, NULL, "the array with its last two axes swapped", NULL},
    {0},
};

/* ---- methods ------------------------------------------------------------- */

static PyObject *array_astype(PyObject *self, PyObject *args, PyObject *names)
{
    static char *list[] = {"", "copy", NULL};
    PyObject *dtype;
    int copy = 1; /* arrays are immutable: no difference */
    lb_dtype t;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O|$p:astype", list, &dtype,
                                     &copy) ||
        !py_dtype_from(dtype, &t))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a;
    Py_BEGIN_ALLOW_THREADS
    a = lb_convert(cx, py_array_of(self), t);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, a);
}

/* reshape(2, 3) and reshape((2, 3)). */
static PyObject *array_reshape(PyObject *self, PyObject *args)
{
    lb_shape shape;
    const bool one = PyTuple_Size(args) == 1;
    if (!py_shape_from(one ? PyTuple_GetItem(args, 0) : args, &shape))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a;
    Py_BEGIN_ALLOW_THREADS
    a = lb_reshape(cx, py_array_of(self), shape);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, a);
}

/* transpose(), transpose(1, 0) and transpose((1, 0)). */
static PyObject *array_transpose(PyObject *self, PyObject *args)
{
    const Py_ssize_t n = PyTuple_Size(args);
    lb_axes axes;
    PyObject *given = n == 1 ? PyTuple_GetItem(args, 0) : args;
    if (!py_axes_from(n ? given : Py_None, &axes)) return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a =
        py_transpose(cx, py_array_of(self), axes.n < 0 ? NULL : &axes);
    return py_leave_with(cx, a);
}

static PyObject *array_self(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

/* For ndarray-like code: where an array is and that nothing can be done. */
static PyObject *array_to_device(PyObject *self, PyObject *args,
                                 PyObject *names)
{
    static char *list[] = {"", "stream", NULL};
    PyObject *device, *stream = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O|$O:to_device", list,
                                     &device, &stream))
        return NULL;
    if (PyUnicode_Check(device) &&
        PyUnicode_CompareWithASCIIString(device, "cpu") == 0)
        return Py_NewRef(self);
    PyErr_Format(PyExc_ValueError, "%R is not a device: 'cpu' is the only one",
                 device);
    return NULL;
}

static PyObject *array_namespace(PyObject *self, PyObject *args,
                                 PyObject *names)
{
    static char *list[] = {"api_version", NULL};
    PyObject *version = Py_None;
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, names, "|$O:__array_namespace__",
                                     list, &version))
        return NULL;
    PyObject *module = PyImport_ImportModule("lowbit.array_api");
    if (!module || version == Py_None) return module;
    PyObject *own = PyObject_GetAttrString(module, "__array_api_version__");
    const int same = own ? PyObject_RichCompareBool(version, own, Py_LE) : -1;
    Py_XDECREF(own);
    if (same > 0) return module;
    if (!same)
        PyErr_Format(PyExc_ValueError, "version %R of the array API", version);
    Py_DECREF(module);
    return NULL;
}

static PyMethodDef own_methods[] = {
    {"astype", PY_FAST(array_astype), METH_VARARGS | METH_KEYWORDS,
     "astype($self, dtype, /, *, copy=True)\n--\n\n"
     "The array converted to dtype. A packed array stays packed if dtype is a "
     "float."},
    {"reshape", array_reshape, METH_VARARGS,
     "reshape($self, /, *shape)\n--\n\nThe elements in another shape."},
    {"transpose", array_transpose, METH_VARARGS,
     "transpose($self, /, *axes)\n--\n\nThe array with permuted axes."},
    {"describe", array_describe, METH_NOARGS,
     "describe($self, /)\n--\n\n"
     "Format, dtype, shape and bytes, as a line of text."},
    {"to_string", PY_FAST(array_to_string), METH_VARARGS | METH_KEYWORDS,
     "to_string($self, /, *, precision=8, threshold=1000, edge=3, "
     "line_width=75, suppress=False, header=True)\n--\n\n"
     "The text of repr, with numpy's print options."},
    {"copy", array_self, METH_NOARGS,
     "copy($self, /)\n--\n\nThe array itself: arrays are immutable."},
    {"__copy__", array_self, METH_NOARGS, NULL},
    {"__deepcopy__", array_self, METH_O, NULL},
    {"to_device", PY_FAST(array_to_device), METH_VARARGS | METH_KEYWORDS,
     "to_device($self, device, /, *, stream=None)\n--\n\nThe array itself."},
    {"__array_namespace__", PY_FAST(array_namespace),
     METH_VARARGS | METH_KEYWORDS,
     "__array_namespace__($self, /, *, api_version=None)\n--\n\n"
     "The functions of the array API."},
    {0},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_array, weak), READONLY,
     NULL},
    {0},
};

/* ---- the type ------------------------------------------------------------ */

enum { MAX_ITEMS = 64 };

/* The tables of several files as one. */
#define APPEND(to, n, table, member)                                           \
    for (int k = 0; (table)[k].member && (n) < MAX_ITEMS; k++)                 \
    (to)[(n)++] = (table)[k]

/* Attributes of the type that let numpy's arrays leave operators to ours. */
static bool precede_numpy(void)
{
    PyObject *type = (PyObject *)py_array_type;
    PyObject *priority = PyFloat_FromDouble(1000);
    const bool ok =
        priority &&
        !PyObject_SetAttrString(type, "__array_priority__", priority) &&
        !PyObject_SetAttrString(type, "__array_ufunc__", Py_None);
    Py_XDECREF(priority);
    return ok;
}

bool py_array_add(PyObject *module)
{
    static PyMethodDef methods[MAX_ITEMS + 1];
    static PyGetSetDef attributes[MAX_ITEMS + 1];
    static PyType_Slot slots[MAX_ITEMS + 1] = {
        {Py_tp_dealloc, array_dealloc},
        {Py_tp_repr, array_repr},
        {Py_tp_hash, PyObject_HashNotImplemented},
        {Py_tp_methods, methods},
        {Py_tp_getset, attributes},
        {Py_tp_members, members},
        {Py_bf_getbuffer, py_array_buffer},
        {Py_bf_releasebuffer, py_array_release},
        {Py_mp_subscript, py_array_item},
        {Py_sq_item, py_array_at},
        {Py_tp_doc, "Immutable array, dense or quantized.\n\n"
                    "Made by lowbit.array, lowbit.quantize, lowbit.load, ...; "
                    "works with Python's operators, numpy's indices and "
                    "numpy's arrays as operands."},
    };
    if (!py_array_type) {
        int n = 0, s = 0;
        APPEND(methods, n, own_methods, ml_name);
        APPEND(methods, n, py_exchange_methods, ml_name);
        APPEND(methods, n, py_quantized_methods, ml_name);
        APPEND(methods, n, py_operator_methods, ml_name);
        n = 0;
        APPEND(attributes, n, getset, name);
        APPEND(attributes, n, py_quantized_getset, name);
        while (slots[s].slot)
            s++;
        for (int k = 0; py_operator_slots[k].slot && s < MAX_ITEMS; k++)
            slots[s++] = py_operator_slots[k];
        PyType_Spec spec = {
            .name = "lowbit.Array",
            .basicsize = sizeof(py_array),
            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
            .slots = slots,
        };
        py_array_type =
            (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
        if (!py_array_type || !precede_numpy()) return false;
    }
    return py_array_type && !PyModule_AddType(module, py_array_type);
}
