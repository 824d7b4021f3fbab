/* py_exchange.c - arrays and other libraries: the buffer protocol, DLPack,
 * __array__, bytes and lists.
 *
 * A dense row-major array is lent without a copy, and read-only; other dense
 * arrays are first made row-major. Packed arrays have no buffer: __array__
 * decodes them.
 */
#include "py_lowbit.h"

#include <stdlib.h>
#include <string.h>

#include "py_dlpack.h"

/* a as a dense row-major array, with a reference for the caller. Packed arrays
 * are refused unless decode. */
static lb_array *row_major(lb_array *a, bool decode)
{
    if (!decode && strcmp(lb_format_of(a), "dense") != 0) {
        PyErr_Format(PyExc_BufferError,
                     "a %s array has no buffer: call lowbit.materialize, "
                     "or numpy.asarray, which decodes it",
                     lb_format_of(a));
        return NULL;
    }
    if (lb_data(a)) return lb_ref(a);
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *m;
    Py_BEGIN_ALLOW_THREADS
    m = lb_materialize(cx, a);
    Py_END_ALLOW_THREADS
    const bool known = m && (lb_data(m) || !lb_size(m));
    if (known)
        lb_ref(m);
    else if (!m)
        py_raise(cx);
    else
        PyErr_SetString(PyExc_BufferError,
                        "the elements are not known while the function is "
                        "compiled");
    py_leave(cx);
    return known ? m : NULL;
}

/* ---- buffers ------------------------------------------------------------- */

typedef struct py_view {
    lb_array *a;
    Py_ssize_t shape[LB_MAX_RANK], strides[LB_MAX_RANK];
} py_view;

static const char *const buffer_format[LB_N_DTYPES] = {
    [LB_F32] = "f", [LB_F16] = "e", [LB_F64] = "d", [LB_I8] = "b",
    [LB_I16] = "h", [LB_I32] = "i", [LB_I64] = "q", [LB_U8] = "B",
    [LB_U16] = "H", [LB_U32] = "I", [LB_U64] = "Q", [LB_BOOL] = "?",
};

int py_array_buffer(PyObject *self, Py_buffer *view, int flags)
{
    lb_array *a = py_array_of(self);
    const char *format = buffer_format[lb_dtype_of(a)];
    view->obj = NULL;
    if (flags & PyBUF_WRITABLE || !format) {
        PyErr_SetString(PyExc_BufferError,
                        format ? "arrays are immutable"
                               : "bfloat16 has no buffer format: use astype, "
                                 "numpy.asarray (with ml_dtypes) or DLPack");
        return -1;
    }
    if (!(a = row_major(a, false))) return -1;
    py_view *v = malloc(sizeof *v);
    if (!v) {
        lb_unref(a);
        PyErr_NoMemory();
        return -1;
    }
    v->a = a;
    const lb_shape shape = lb_shape_of(a);
    const size_t size = lb_dtype_size(lb_dtype_of(a));
    Py_ssize_t bytes = (Py_ssize_t)size;
    for (int k = shape.rank - 1; k >= 0; k--) {
        v->shape[k] = (Py_ssize_t)shape.dim[k];
        v->strides[k] = bytes;
        bytes *= v->shape[k];
    }
    *view = (Py_buffer){
        .buf = (void *)(uintptr_t)lb_data(a),
        .obj = Py_NewRef(self),
        .len = (Py_ssize_t)(lb_size(a) * (int64_t)size),
        .itemsize = (Py_ssize_t)size,
        .readonly = 1,
        .ndim = flags & PyBUF_ND ? shape.rank : 1,
        .format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)format : NULL,
        .shape = flags & PyBUF_ND ? v->shape : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? v->strides : NULL,
        .internal = v,
    };
    return 0;
}

void py_array_release(PyObject *self, Py_buffer *view)
{
    (void)self;
    py_view *v = view->internal;
    lb_unref(v->a);
    free(v);
}

/* ---- DLPack: to others --------------------------------------------------- */

static const dl_type dl_types[LB_N_DTYPES] = {
    [LB_F32] = {DL_FLOAT, 32, 1},   [LB_F16] = {DL_FLOAT, 16, 1},
    [LB_BF16] = {DL_BFLOAT, 16, 1}, [LB_F64] = {DL_FLOAT, 64, 1},
    [LB_I8] = {DL_INT, 8, 1},       [LB_I16] = {DL_INT, 16, 1},
    [LB_I32] = {DL_INT, 32, 1},     [LB_I64] = {DL_INT, 64, 1},
    [LB_U8] = {DL_UINT, 8, 1},      [LB_U16] = {DL_UINT, 16, 1},
    [LB_U32] = {DL_UINT, 32, 1},    [LB_U64] = {DL_UINT, 64, 1},
    [LB_BOOL] = {DL_BOOL, 8, 1},
};

typedef struct py_lent {
    dl_managed old;
    dl_versioned new;
    lb_array *a;
    void *copy; /* NULL: a's own memory */
    int64_t shape[LB_MAX_RANK], strides[LB_MAX_RANK];
} py_lent;

/* Called by the consumer, from any thread, without the GIL. */
static void lent_free(py_lent *l)
{
    lb_unref(l->a);
    free(l->copy);
    free(l);
}

static void delete_old(dl_managed *m)
{
    lent_free(m->manager);
}

static void delete_new(dl_versioned *m)
{
    lent_free(m->manager);
}

/* A capsule that nobody consumed. */
static void capsule_free(PyObject *capsule)
{
    dl_managed *old = NULL;
    dl_versioned *new = NULL;
    if (PyCapsule_IsValid(capsule, "dltensor"))
        old = PyCapsule_GetPointer(capsule, "dltensor");
    if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        new = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (old) old->deleter(old);
    if (new) new->deleter(new);
}

/* Takes over a reference to a. */
static py_lent *lend(lb_array *a, bool copy)
{
    py_lent *l = calloc(1, sizeof *l);
    const lb_shape shape = lb_shape_of(a);
    const size_t size = lb_dtype_size(lb_dtype_of(a)) * (size_t)lb_size(a);
    if (l && copy && !(l->copy = aligned_alloc(64, (size + 64) / 64 * 64))) {
        free(l);
        l = NULL;
    }
    if (!l) {
        lb_unref(a);
        PyErr_NoMemory();
        return NULL;
    }
    if (copy) memcpy(l->copy, lb_data(a), size);
    l->a = a;
    int64_t stride = 1;
    for (int k = shape.rank - 1; k >= 0; k--) {
        l->shape[k] = shape.dim[k];
        l->strides[k] = stride;
        stride *= shape.dim[k];
    }
    const dl_tensor t = {
        .data = copy ? l->copy : (void *)(uintptr_t)lb_data(a),
        .device = {DL_CPU, 0},
        .ndim = shape.rank,
        .dtype = dl_types[lb_dtype_of(a)],
        .shape = l->shape,
        .strides = l->strides,
    };
    l->old = (dl_managed){t, l, delete_old};
    l->new = (dl_versioned){
        1, 0, l, delete_new, copy ? DL_IS_COPIED : DL_READ_ONLY, t};
    return l;
}

/* The first number of a version; 0 if none is given. */
static long major_version(PyObject *version)
{
    if (version == Py_None) return 0;
    PyObject *first = PySequence_GetItem(version, 0);
    const long major = first ? PyLong_AsLong(first) : -1;
    Py_XDECREF(first);
    return major;
}

static bool is_cpu(PyObject *device)
{
    if (device == Py_None) return true;
    PyObject *first = PySequence_GetItem(device, 0);
    const long type = first ? PyLong_AsLong(first) : -1;
    Py_XDECREF(first);
    if (type == DL_CPU) return true;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_BufferError, "arrays are on the CPU only");
    return false;
}

static PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *names)
{
    static char *list[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None,
             *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, names, "|$OOOO:__dlpack__", list,
                                     &stream, &version, &device, &copy))
        return NULL;
    if (stream != Py_None) {
        PyErr_SetString(PyExc_BufferError, "stream must be None on the CPU");
        return NULL;
    }
    const long major = major_version(version);
    if (major < 0 || !is_cpu(device)) return NULL;
    lb_array *a = row_major(py_array_of(self), false);
    py_lent *l = a ? lend(a, copy == Py_True) : NULL;
    if (!l) return NULL;
    PyObject *capsule =
        major ? PyCapsule_New(&l->new, "dltensor_versioned", capsule_free)
              : PyCapsule_New(&l->old, "dltensor", capsule_free);
    if (!capsule) lent_free(l);
    return capsule;
}

static PyObject *array_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", DL_CPU, 0);
}

/* ---- DLPack: from others ------------------------------------------------- */

static void release_old(py_loan *loan)
{
    dl_managed *m = loan->other;
    if (m->deleter) m->deleter(m);
}

static void release_new(py_loan *loan)
{
    dl_versioned *m = loan->other;
    if (m->deleter) m->deleter(m);
}

static lb_dtype dtype_of_dl(dl_type d)
{
    for (int t = LB_F32; t <= LB_BOOL; t++)
        if (dl_types[t].code == d.code && dl_types[t].bits == d.bits &&
            d.lanes == 1)
            return (lb_dtype)t;
    PyErr_Format(py_error_class(LB_E_DTYPE),
                 "a DLPack tensor of type %d with %d bits and %d lanes has no "
                 "dtype of lowbit",
                 d.code, d.bits, d.lanes);
    return LB_NO_DTYPE;
}

/* The elements of t, row-major, one by one. */
static lb_array *copy_strided(lb_ctx *cx, const dl_tensor *t, lb_dtype dtype,
                              lb_shape shape, const char *from)
{
    const size_t size = lb_dtype_size(dtype);
    int64_t n = 1, at[LB_MAX_RANK] = {0};
    for (int k = 0; k < shape.rank; k++)
        n *= shape.dim[k];
    char *to = malloc(n ? (size_t)n * size : 1);
    if (!to) {
        PyErr_NoMemory();
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t offset = 0;
        for (int k = 0; k < shape.rank; k++)
            offset += at[k] * t->strides[k];
        memcpy(to + (size_t)i * size, from + offset * (int64_t)size, size);
        for (int k = shape.rank - 1; k >= 0 && ++at[k] == shape.dim[k]; k--)
            at[k] = 0;
    }
    lb_array *a = lb_from(cx, dtype, shape, to);
    free(to);
    return a;
}

static bool check_tensor(const dl_tensor *t)
{
    if (t->device.type != DL_CPU)
        PyErr_Format(PyExc_BufferError,
                     "the tensor is on a device of type %d, not in the CPU's "
                     "memory",
                     t->device.type);
    else if (t->ndim > LB_MAX_RANK)
        PyErr_Format(py_error_class(LB_E_SHAPE),
                     "%d axes: arrays have at most %d", t->ndim, LB_MAX_RANK);
    return !PyErr_Occurred();
}

/* Takes the loan over. */
static lb_array *take_tensor(lb_ctx *cx, const dl_tensor *t, py_loan *loan,
                             int copy)
{
    lb_array *a = NULL;
    const lb_dtype dtype =
        check_tensor(t) ? dtype_of_dl(t->dtype) : LB_NO_DTYPE;
    if (!dtype) goto release;
    lb_shape shape = lb_shape_make(t->ndim, t->shape);
    int64_t stride = 1;
    bool dense = true;
    for (int k = t->ndim - 1; k >= 0; k--) {
        dense &= !t->strides || t->strides[k] == stride || shape.dim[k] <= 1;
        stride *= shape.dim[k];
    }
    const char *from = (const char *)t->data + t->byte_offset;
    dense |= stride == 0;
    const bool usable = dense && (uintptr_t)from % lb_dtype_size(dtype) == 0;
    if (usable && copy < 1 && stride) {
        a = lb_wrap(cx, dtype, shape, from, py_loan_done, loan);
        if (a) return a;
    } else if (copy == 0 && stride) {
        PyErr_SetString(PyExc_BufferError,
                        "a copy is needed: the tensor is not row-major");
    } else {
        a = dense ? lb_from(cx, dtype, shape, from)
                  : copy_strided(cx, t, dtype, shape, from);
    }
release:
    loan->release(loan);
    free(loan);
    return a;
}

/* The capsule of o, of either kind. */
static PyObject *capsule_of(PyObject *o)
{
    PyObject *method = PyObject_GetAttrString(o, "__dlpack__");
    PyObject *empty = PyTuple_New(0);
    PyObject *names = Py_BuildValue("{s(ii)}", "max_version", 1, 0);
    PyObject *capsule =
        method && empty && names ? PyObject_Call(method, empty, names) : NULL;
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); /* before DLPack 1.0 */
        capsule = PyObject_CallObject(method, NULL);
    }
    Py_XDECREF(method);
    Py_XDECREF(empty);
    Py_XDECREF(names);
    return capsule;
}

lb_array *py_from_dlpack(lb_ctx *cx, PyObject *o, int copy)
{
    PyObject *capsule = capsule_of(o);
    if (!capsule) return NULL;
    lb_array *a = NULL;
    const bool is_new = PyCapsule_IsValid(capsule, "dltensor_versioned");
    const char *name = is_new ? "dltensor_versioned" : "dltensor";
    void *m = PyCapsule_GetPointer(capsule, name);
    py_loan *loan = m ? py_loan_new(is_new ? release_new : release_old) : NULL;
    if (loan && is_new && ((dl_versioned *)m)->major != 1) {
        PyErr_Format(PyExc_BufferError, "version %u of DLPack",
                     ((dl_versioned *)m)->major);
        free(loan);
    } else if (loan) {
        PyCapsule_SetName(capsule,
                          is_new ? "used_dltensor_versioned" : "used_dltensor");
        loan->other = m;
        a = take_tensor(
            cx, is_new ? &((dl_versioned *)m)->t : &((dl_managed *)m)->t, loan,
            copy);
    }
    Py_DECREF(capsule);
    return a;
}

/* ---- numpy --------------------------------------------------------------- */

/* numpy.asarray(self) of a dense array: by its buffer, or DLPack for bfloat16
 * through its bits. */
static PyObject *as_numpy(lb_array *dense)
{
    PyObject *o = py_array_new(dense);
    PyObject *np = o ? PyImport_ImportModule("numpy") : NULL;
    PyObject *view = NULL, *x = NULL;
    if (np && lb_dtype_of(dense) != LB_BF16) {
        view = PyMemoryView_FromObject(o);
        x = view ? PyObject_CallMethod(np, "asarray", "O", view) : NULL;
    } else if (np) {
        lb_ctx *cx = py_enter();
        PyObject *bits =
            cx ? py_leave_with(cx, lb_bitcast_convert(cx, dense, LB_U16))
               : NULL;
        PyObject *types = bits ? PyImport_ImportModule("ml_dtypes") : NULL;
        PyObject *bf16 =
            types ? PyObject_GetAttrString(types, "bfloat16") : NULL;
        view = bf16 ? PyObject_CallMethod(np, "asarray", "O", bits) : NULL;
        x = view ? PyObject_CallMethod(view, "view", "O", bf16) : NULL;
        Py_XDECREF(bits);
        Py_XDECREF(types);
        Py_XDECREF(bf16);
    }
    Py_XDECREF(view);
    Py_XDECREF(np);
    Py_XDECREF(o);
    return x;
}

/* numpy.array(x, dtype, copy=copy) */
static PyObject *converted(PyObject *x, PyObject *dtype, bool copy)
{
    PyObject *np = PyImport_ImportModule("numpy");
    PyObject *fn =
        np ? PyObject_GetAttrString(np, copy ? "array" : "asarray") : NULL;
    PyObject *y = fn ? PyObject_CallFunction(fn, "OO", x, dtype) : NULL;
    Py_XDECREF(np);
    Py_XDECREF(fn);
    return y;
}

static PyObject *array_array(PyObject *self, PyObject *args, PyObject *names)
{
    static char *list[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    lb_array *a = py_array_of(self);
    if (!PyArg_ParseTupleAndKeywords(args, names, "|OO:__array__", list, &dtype,
                                     &copy))
        return NULL;
    const bool packed = !lb_data(a);
    if (copy == Py_False && packed) {
        PyErr_SetString(PyExc_ValueError,
                        "a copy is needed to decode or rearrange the array");
        return NULL;
    }
    if (!(a = row_major(a, true))) return NULL;
    PyObject *x = as_numpy(a);
    lb_unref(a);
    if (!x || (dtype == Py_None && copy != Py_True)) return x;
    PyObject *y = converted(x, dtype, copy == Py_True);
    Py_DECREF(x);
    return y;
}

/* ---- bytes and lists ----------------------------------------------------- */

static PyObject *array_tobytes(PyObject *self, PyObject *unused)
{
    (void)unused;
    lb_array *a = py_array_of(self);
    const size_t size = lb_dtype_size(lb_dtype_of(a)) * (size_t)lb_size(a);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    lb_ctx *cx = bytes ? py_enter() : NULL;
    if (!cx) {
        Py_XDECREF(bytes);
        return NULL;
    }
    char *to = PyBytes_AsString(bytes);
    bool ok;
    Py_BEGIN_ALLOW_THREADS
    ok = lb_read(cx, a, to, size);
    Py_END_ALLOW_THREADS
    if (ok) {
        py_leave(cx);
        return bytes;
    }
    Py_DECREF(bytes);
    return py_leave_failed(cx);
}

/* Elements as f64 or i64, which hold those of any dtype (u64 by wrapping). */
typedef struct py_values {
    lb_dtype t;
    double *f;
    int64_t *i;
    int64_t at;
} py_values;

static PyObject *next_value(py_values *v)
{
    const int64_t at = v->at++;
    if (v->f) return PyFloat_FromDouble(v->f[at]);
    if (v->t == LB_BOOL) return PyBool_FromLong(v->i[at] != 0);
    if (v->t != LB_U64) return PyLong_FromLongLong(v->i[at]);
    return PyLong_FromUnsignedLongLong((unsigned long long)v->i[at]);
}

static PyObject *nested_list(py_values *v, const lb_shape *shape, int axis)
{
    if (axis == shape->rank) return next_value(v);
    PyObject *list = PyList_New((Py_ssize_t)shape->dim[axis]);
    for (int64_t k = 0; list && k < shape->dim[axis]; k++) {
        PyObject *item = nested_list(v, shape, axis + 1);
        if (!item || PyList_SetItem(list, (Py_ssize_t)k, item)) Py_CLEAR(list);
    }
    return list;
}

static PyObject *array_tolist(PyObject *self, PyObject *unused)
{
    (void)unused;
    lb_array *a = py_array_of(self);
    const lb_shape shape = lb_shape_of(a);
    const int64_t n = lb_size(a);
    py_values v = {.t = lb_dtype_of(a)};
    void *room = malloc(n ? (size_t)n * 8 : 1);
    if (!room) return PyErr_NoMemory();
    lb_ctx *cx = py_enter();
    bool ok = cx != NULL;
    if (ok && py_dtype_is_float(v.t))
        ok = lb_read_f64(cx, a, v.f = room, n);
    else if (ok)
        ok = lb_read_i64(cx, a, v.i = room, n);
    PyObject *list = ok ? nested_list(&v, &shape, 0) : NULL;
    free(room);
    if (cx && !ok) return py_leave_failed(cx);
    if (cx) py_leave(cx);
    return list;
}

PyMethodDef py_exchange_methods[] = {
    {"__dlpack__", PY_FAST(array_dlpack), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, "
     "copy=None)\n--\n\nThe elements for another library, without a copy. "
     "Only dense arrays."},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS, NULL},
    {"__array__", PY_FAST(array_array), METH_VARARGS | METH_KEYWORDS,
     "__array__($self, dtype=None, copy=None)\n--\n\n"
     "A numpy array; packed arrays are decoded."},
    {"tobytes", array_tobytes, METH_NOARGS,
     "tobytes($self, /)\n--\n\nThe elements, row-major, as bytes."},
    {"tolist", array_tolist, METH_NOARGS,
     "tolist($self, /)\n--\n\nThe elements as nested lists."},
    {0},
};
