/* py_dtype.c - dtypes: one object for each, lowbit.float32 and so on. */
#include <string.h>

#include "py_lowbit.h"

typedef struct py_dtype {
    PyObject_HEAD lb_dtype t;
} py_dtype;

static PyTypeObject *dtype_type;
static PyObject *objects[LB_N_DTYPES];

static const struct {
    const char *name; /* numpy's */
    char kind;        /* as numpy.dtype.kind */
} rows[LB_N_DTYPES] = {
    [LB_F32] = {"float32", 'f'},   [LB_F16] = {"float16", 'f'},
    [LB_BF16] = {"bfloat16", 'f'}, [LB_F64] = {"float64", 'f'},
    [LB_I8] = {"int8", 'i'},       [LB_I16] = {"int16", 'i'},
    [LB_I32] = {"int32", 'i'},     [LB_I64] = {"int64", 'i'},
    [LB_U8] = {"uint8", 'u'},      [LB_U16] = {"uint16", 'u'},
    [LB_U32] = {"uint32", 'u'},    [LB_U64] = {"uint64", 'u'},
    [LB_BOOL] = {"bool", 'b'},
};

bool py_dtype_is_float(lb_dtype t)
{
    return rows[t].kind == 'f';
}

bool py_dtype_is_signed(lb_dtype t)
{
    return rows[t].kind == 'i';
}

bool py_dtype_is_unsigned(lb_dtype t)
{
    return rows[t].kind == 'u';
}

const char *py_dtype_name(lb_dtype t)
{
    return rows[t].name;
}

PyObject *py_dtype_object(lb_dtype t)
{
    if (t < LB_F32 || t > LB_BOOL) Py_RETURN_NONE;
    return Py_NewRef(objects[t]);
}

/* ---- from other libraries' dtypes ---------------------------------------- */

static lb_dtype named(const char *name)
{
    if (strncmp(name, "torch.", 6) == 0) name += 6;
    for (int t = LB_F32; t <= LB_BOOL; t++)
        if (strcmp(name, rows[t].name) == 0 ||
            strcmp(name, lb_dtype_name((lb_dtype)t)) == 0)
            return (lb_dtype)t;
    return strcmp(name, "bool_") == 0 ? LB_BOOL : LB_NO_DTYPE;
}

static lb_dtype named_by(PyObject *text)
{
    lb_dtype t = LB_NO_DTYPE;
    if (text && PyUnicode_Check(text)) {
        const char *name = PyUnicode_AsUTF8AndSize(text, NULL);
        if (name) t = named(name);
    }
    Py_XDECREF(text);
    PyErr_Clear();
    return t;
}

/* LB_NO_DTYPE, without an exception, if o does not mean a dtype. */
static lb_dtype meant(PyObject *o)
{
    if (Py_TYPE(o) == dtype_type) return ((py_dtype *)o)->t;
    if (o == (PyObject *)&PyFloat_Type) return LB_F32;
    if (o == (PyObject *)&PyLong_Type) return LB_I32;
    if (o == (PyObject *)&PyBool_Type) return LB_BOOL;
    if (PyUnicode_Check(o)) return named_by(Py_NewRef(o));
    if (PyType_Check(o)) return named_by(PyObject_GetAttrString(o, "__name__"));
    /* numpy.dtype has a name; the text of torch.float32 is its name. */
    PyObject *name = PyObject_GetAttrString(o, "name");
    PyErr_Clear();
    if (name) return named_by(name);
    PyObject *text = PyObject_Str(o);
    const char *s = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    const bool torch = s && strncmp(s, "torch.", 6) == 0;
    PyErr_Clear();
    if (torch) return named_by(text);
    Py_XDECREF(text);
    return LB_NO_DTYPE;
}

bool py_dtype_from(PyObject *o, lb_dtype *t)
{
    *t = LB_NO_DTYPE;
    if (!o || o == Py_None || (*t = meant(o)) != LB_NO_DTYPE) return true;
    PyErr_Format(py_error_class(LB_E_DTYPE),
                 "%R is not a dtype of lowbit (float32, bfloat16, int8, ...)",
                 o);
    return false;
}

/* ---- the type ------------------------------------------------------------ */

static void dtype_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *dtype_repr(PyObject *self)
{
    return PyUnicode_FromFormat("lowbit.%s", rows[((py_dtype *)self)->t].name);
}

static PyObject *dtype_str(PyObject *self)
{
    return PyUnicode_FromString(rows[((py_dtype *)self)->t].name);
}

static PyObject *dtype_compare(PyObject *self, PyObject *other, int op)
{
    if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
    const bool same = meant(other) == ((py_dtype *)self)->t;
    return PyBool_FromLong(same == (op == Py_EQ));
}

static Py_hash_t dtype_hash(PyObject *self)
{
    PyObject *name = dtype_str(self);
    const Py_hash_t h = name ? PyObject_Hash(name) : -1;
    Py_XDECREF(name);
    return h;
}

static PyObject *get_name(PyObject *self, void *unused)
{
    (void)unused;
    return dtype_str(self);
}

static PyObject *get_itemsize(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(lb_dtype_size(((py_dtype *)self)->t));
}

static PyObject *get_kind(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromStringAndSize(&rows[((py_dtype *)self)->t].kind, 1);
}

/* numpy.dtype(x) reads x.dtype; bfloat16 is a dtype of ml_dtypes. */
static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    const lb_dtype t = ((py_dtype *)self)->t;
    PyObject *np = PyImport_ImportModule("numpy");
    PyObject *from =
        t == LB_BF16 ? PyImport_ImportModule("ml_dtypes") : Py_XNewRef(np);
    PyObject *type =
        np && from ? PyObject_GetAttrString(from, t == LB_BOOL ? "bool_"
                                                               : rows[t].name)
                   : NULL;
    PyObject *dtype = type ? PyObject_CallMethod(np, "dtype", "O", type) : NULL;
    Py_XDECREF(np);
    Py_XDECREF(from);
    Py_XDECREF(type);
    return dtype;
}

static PyObject *dtype_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return dtype_str(self); /* a global of the module lowbit */
}

static PyGetSetDef getset[] = {
    {"name", get_name, NULL, "numpy's name of the dtype", NULL},
    {"itemsize", get_itemsize, NULL, "bytes per element", NULL},
    {"kind", get_kind, NULL, "'f', 'i', 'u' or 'b', as numpy.dtype.kind", NULL},
    {"dtype", get_dtype, NULL, "numpy's dtype (imports numpy)", NULL},
    {0},
};

static PyMethodDef methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dtype_dealloc},
    {Py_tp_repr, dtype_repr},
    {Py_tp_str, dtype_str},
    {Py_tp_richcompare, dtype_compare},
    {Py_tp_hash, dtype_hash},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Logical dtype of an array: lowbit.float32, lowbit.int8, ...\n"
                "\n"
                "Functions also take numpy's and torch's dtypes, and names."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "lowbit.DType",
    .basicsize = sizeof(py_dtype),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

bool py_dtypes_add(PyObject *module)
{
    if (!dtype_type)
        dtype_type =
            (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    if (!dtype_type || PyModule_AddType(module, dtype_type)) return false;
    for (int t = LB_F32; t <= LB_BOOL; t++) {
        if (!objects[t]) {
            py_dtype *d = PyObject_New(py_dtype, dtype_type);
            if (!d) return false;
            d->t = (lb_dtype)t;
            objects[t] = (PyObject *)d;
        }
        if (PyModule_AddObjectRef(module, rows[t].name, objects[t]))
            return false;
    }
    return true;
}
