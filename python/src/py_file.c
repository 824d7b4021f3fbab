/* py_file.c - lowbit._lowbit.File: an open file, its entries and metadata.
 * lowbit.files gives it the interface of safetensors' safe_open.
 *
 * A file belongs to the context that opened it, whose lock makes it safe to use
 * from any thread.
 */
#include "py_files.h"

typedef struct py_file {
    PyObject_HEAD py_context *context;
    lb_file *f;
} py_file;

static PyTypeObject *file_type;

/* ---- opening and closing ------------------------------------------------- */

static PyObject *file_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *keys[] = {"path",         "map",        "raw",
                           "linear_class", "max_header", NULL};
    PyObject *path = NULL;
    int map = 1, raw = 0;
    unsigned long long most = 0;
    lb_file_options o = {.struct_size = sizeof o};
    if (!PyArg_ParseTupleAndKeywords(args, names, "O&|$ppzK:File", keys,
                                     PyUnicode_FSConverter, &path, &map, &raw,
                                     &o.linear_class, &most))
        return NULL;
    o.no_map = !map;
    o.raw = raw;
    o.max_header = most;
    py_file *p = (py_file *)PyType_GenericAlloc(type, 0);
    lb_ctx *cx = p ? py_enter() : NULL;
    if (cx) {
        p->context = py_context_hold();
        const char *name = PyBytes_AsString(path);
        Py_BEGIN_ALLOW_THREADS
        p->f = lb_file_open(cx, name, &o);
        Py_END_ALLOW_THREADS
        if (!p->f) py_raise(cx);
        py_leave(cx);
    }
    Py_DECREF(path);
    if (p && !p->f) {
        Py_DECREF((PyObject *)p);
        return NULL;
    }
    return (PyObject *)p;
}

static void close_file(py_file *p)
{
    if (!p->f) return;
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    lb_ctx *cx = py_enter_in(p->context);
    if (cx) {
        lb_file_close(p->f);
        p->f = NULL;
        py_leave(cx);
    }
    PyErr_Restore(kind, value, trace);
}

static void file_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    py_file *p = (py_file *)self;
    close_file(p);
    py_context_release(p->context);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *file_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    close_file((py_file *)self);
    Py_RETURN_NONE;
}

static lb_ctx *enter_file(py_file *p)
{
    lb_ctx *cx = py_enter_in(p->context);
    if (cx && !p->f) {
        PyErr_SetString(PyExc_ValueError, "the file is closed");
        py_leave(cx);
        return NULL;
    }
    return cx;
}

/* ---- entries ------------------------------------------------------------- */

PyObject *py_entry_dict(const lb_entry *e)
{
    PyObject *shape = PyTuple_New(e->rank);
    for (int k = 0; shape && k < e->rank; k++) {
        PyObject *n = PyLong_FromLongLong(e->dim[k]);
        if (!n || PyTuple_SetItem(shape, k, n)) Py_CLEAR(shape);
    }
    if (!shape) return NULL;
    const char *dtype = e->dtype ? lb_dtype_name(e->dtype) : NULL;
    return Py_BuildValue("{sssssssssNsKsssi}", "name", e->name, "type", e->type,
                         "format", e->format, "dtype", dtype, "shape", shape,
                         "bytes", (unsigned long long)e->nbytes, "layout",
                         e->layout, "tensors", e->n_tensors);
}

static PyObject *file_names(PyObject *self, PyObject *unused)
{
    (void)unused;
    py_file *p = (py_file *)self;
    lb_ctx *cx = enter_file(p);
    if (!cx) return NULL;
    PyObject *list = PyList_New(0);
    const lb_entry *e;
    for (int64_t i = 0; list && (e = lb_file_entry(p->f, i)); i++) {
        PyObject *o = PyUnicode_FromString(e->name);
        if (!o || PyList_Append(list, o)) Py_CLEAR(list);
        Py_XDECREF(o);
    }
    py_leave(cx);
    return list;
}

static Py_ssize_t file_length(PyObject *self)
{
    py_file *p = (py_file *)self;
    lb_ctx *cx = enter_file(p);
    if (!cx) return -1;
    const Py_ssize_t n = (Py_ssize_t)lb_file_count(p->f);
    py_leave(cx);
    return n;
}

/* None if there is none of this name. */
static PyObject *file_entry(PyObject *self, PyObject *name)
{
    py_file *p = (py_file *)self;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    lb_ctx *cx = text ? enter_file(p) : NULL;
    if (!cx) return NULL;
    const lb_entry *e = lb_file_find(p->f, text);
    PyObject *o = e ? py_entry_dict(e) : Py_NewRef(Py_None);
    py_leave(cx);
    return o;
}

/* ---- loading ------------------------------------------------------------- */

/* load(name, start=None, count=None): all, or a box. */
static PyObject *file_load(PyObject *self, PyObject *args)
{
    py_file *p = (py_file *)self;
    const char *name;
    PyObject *first = Py_None, *counts = Py_None;
    lb_shape start, count;
    if (!PyArg_ParseTuple(args, "s|OO:load", &name, &first, &counts))
        return NULL;
    const bool box = first != Py_None;
    if (box &&
        (!py_shape_from(first, &start) || !py_shape_from(counts, &count)))
        return NULL;
    lb_ctx *cx = enter_file(p);
    if (!cx) return NULL;
    const lb_entry *e = lb_file_find(p->f, name);
    if (box && e && (start.rank != e->rank || count.rank != e->rank)) {
        PyErr_Format(py_error_class(LB_E_ARG),
                     "load: a box of %d axes of an array of %d", start.rank,
                     e->rank);
        py_leave(cx);
        return NULL;
    }
    const bool rows = box && e && e->rank == 1;
    lb_array *a;
    Py_BEGIN_ALLOW_THREADS
    a = !box   ? lb_file_load(cx, p->f, name)
        : rows ? lb_file_load_rows(cx, p->f, name, start.dim[0],
                                   start.dim[0] + count.dim[0])
               : lb_file_load_slice(cx, p->f, name, start.dim, count.dim);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, a);
}

/* ---- metadata ------------------------------------------------------------ */

/* The value of n bytes at b, little-endian as the machine. */
static PyObject *number(lb_meta_type type, const uint8_t *b)
{
    switch (type) {
    case LB_META_U8:
        return PyLong_FromLong(b[0]);
    case LB_META_I8:
        return PyLong_FromLong((int8_t)b[0]);
    case LB_META_BOOL:
        return PyBool_FromLong(b[0] != 0);
#define NUMBER(META, type, make)                                               \
    case META: {                                                               \
        type v;                                                                \
        memcpy(&v, b, sizeof v);                                               \
        return make(v);                                                        \
    }
        NUMBER(LB_META_U16, uint16_t, PyLong_FromLong)
        NUMBER(LB_META_I16, int16_t, PyLong_FromLong)
        NUMBER(LB_META_U32, uint32_t, PyLong_FromUnsignedLong)
        NUMBER(LB_META_I32, int32_t, PyLong_FromLong)
        NUMBER(LB_META_F32, float, PyFloat_FromDouble)
        NUMBER(LB_META_U64, uint64_t, PyLong_FromUnsignedLongLong)
        NUMBER(LB_META_I64, int64_t, PyLong_FromLongLong)
        NUMBER(LB_META_F64, double, PyFloat_FromDouble)
    default:
        Py_RETURN_NONE;
    }
}

static size_t size_of(lb_meta_type type)
{
    static const uint8_t size[LB_N_META] = {
        [LB_META_U8] = 1,  [LB_META_I8] = 1,   [LB_META_U16] = 2,
        [LB_META_I16] = 2, [LB_META_U32] = 4,  [LB_META_I32] = 4,
        [LB_META_F32] = 4, [LB_META_BOOL] = 1, [LB_META_U64] = 8,
        [LB_META_I64] = 8, [LB_META_F64] = 8,
    };
    return (unsigned)type < LB_N_META ? size[type] : 0;
}

/* Text of a file, which may not be UTF-8. */
static PyObject *text_of(const void *text, uint64_t n)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "surrogateescape");
}

static PyObject *items_of(const lb_meta *m)
{
    PyObject *list = PyList_New(0);
    const size_t size = size_of(m->item);
    uint64_t at = 0, n;
    const char *text;
    for (uint64_t i = 0; list && i < m->n; i++) {
        PyObject *o = NULL;
        if (m->item == LB_META_STRING) {
            if (!lb_meta_next(m, &at, &text, &n)) break;
            o = text_of(text, n);
        } else if (size && (i + 1) * size <= m->size)
            o = number(m->item, m->bytes + i * size);
        else
            break; /* an array of arrays */
        if (!o || PyList_Append(list, o)) Py_CLEAR(list);
        Py_XDECREF(o);
    }
    return list;
}

static PyObject *file_metadata(PyObject *self, PyObject *unused)
{
    (void)unused;
    py_file *p = (py_file *)self;
    lb_ctx *cx = enter_file(p);
    if (!cx) return NULL;
    PyObject *dict = PyDict_New();
    const lb_meta *m;
    for (int64_t i = 0; dict && (m = lb_file_meta(p->f, i)); i++) {
        PyObject *o = m->type == LB_META_STRING  ? text_of(m->bytes, m->size)
                      : m->type == LB_META_ARRAY ? items_of(m)
                                                 : number(m->type, m->bytes);
        PyObject *key = text_of(m->key, strlen(m->key));
        if (!o || !key || PyDict_SetItem(dict, key, o)) Py_CLEAR(dict);
        Py_XDECREF(o);
        Py_XDECREF(key);
    }
    py_leave(cx);
    return dict;
}

static PyObject *file_method(PyObject *self, PyObject *unused)
{
    (void)unused;
    py_file *p = (py_file *)self;
    lb_quant_method m;
    lb_ctx *cx = enter_file(p);
    if (!cx) return NULL;
    if (!lb_file_method(cx, p->f, &m)) return py_leave_failed(cx);
    PyObject *o = m.name
                      ? Py_BuildValue("{sssOssss}", "method", m.name, "decoded",
                                      m.decoded ? Py_True : Py_False, "source",
                                      m.source, "tensor", m.tensor)
                      : Py_NewRef(Py_None);
    py_leave(cx);
    return o;
}

static PyObject *get_kind(PyObject *self, void *unused)
{
    (void)unused;
    py_file *p = (py_file *)self;
    lb_ctx *cx = enter_file(p);
    if (!cx) return NULL;
    PyObject *o = PyUnicode_FromString(lb_file_kind(p->f));
    py_leave(cx);
    return o;
}

static PyObject *get_bytes_read(PyObject *self, void *unused)
{
    (void)unused;
    py_file *p = (py_file *)self;
    lb_ctx *cx = enter_file(p);
    if (!cx) return NULL;
    const uint64_t n = lb_file_bytes_read(p->f);
    py_leave(cx);
    return PyLong_FromUnsignedLongLong(n);
}

/* ---- the type ------------------------------------------------------------ */

static PyGetSetDef getset[] = {
    {"kind", get_kind, NULL, "'safetensors', 'gguf', 'npy', 'npz'", NULL},
    {"bytes_read", get_bytes_read, NULL, "bytes read so far", NULL},
    {0},
};

static PyMethodDef methods[] = {
    {"close", file_close, METH_NOARGS,
     "close($self, /)\n--\n\nCloses the file; loaded arrays stay valid."},
    {"names", file_names, METH_NOARGS,
     "names($self, /)\n--\n\nThe names of all arrays, in file order."},
    {"entry", file_entry, METH_O,
     "entry($self, name, /)\n--\n\n"
     "What the header tells about an array, as a dict; None if there is none."},
    {"load", file_load, METH_VARARGS,
     "load($self, name, start=None, count=None, /)\n--\n\n"
     "An array, or a box of it, in the format that it is stored in."},
    {"metadata", file_metadata, METH_NOARGS,
     "metadata($self, /)\n--\n\nThe file's metadata, as a dict."},
    {"method", file_method, METH_NOARGS,
     "method($self, /)\n--\n\n"
     "How another program has quantized the checkpoint, as a dict, or None."},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_new, file_new},
    {Py_tp_dealloc, file_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_mp_length, file_length},
    {Py_tp_doc, "An open file; see lowbit.open."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "lowbit._lowbit.File",
    .basicsize = sizeof(py_file),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

bool py_files_add(PyObject *module)
{
    if (!file_type)
        file_type =
            (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return file_type && !PyModule_AddType(module, file_type);
}
