/* py_special.c - functions of arrays whose arguments do not fit into the table
 * py_calls.def: lists of arrays, dimension numbers, padding.
 */
#include <string.h>

#include "py_lowbit.h"

const py_word py_precisions[] = {
    {"highest", LB_PRECISION_HIGHEST},
    {"fast", LB_PRECISION_FAST},
    {"fastest", LB_PRECISION_FASTEST},
    {NULL, 0},
};
static const py_word bounds[] = {
    {"clamp", LB_BOUNDS_CLAMP}, {"fill", LB_BOUNDS_FILL}, {NULL, 0}};

static bool precision_from(PyObject *o, lb_precision *p)
{
    const int value = py_word_value(o, py_precisions, "precision");
    *p = value < 0 ? LB_PRECISION_DEFAULT : (lb_precision)value;
    return value >= 0;
}

/* n integers, or one for all, or None: fill. */
static bool integers(PyObject *o, int n, int64_t fill, const char *what,
                     int64_t *to)
{
    for (int k = 0; k < n; k++)
        to[k] = fill;
    if (o == Py_None) return true;
    lb_shape s;
    if (!py_shape_from(o, &s)) return false;
    if (s.rank != n && !(s.rank == 1 && PyIndex_Check(o))) {
        PyErr_Format(py_error_class(LB_E_ARG), "%s: %d integers for %d axes",
                     what, s.rank, n);
        return false;
    }
    for (int k = 0; k < n; k++)
        to[k] = s.dim[PyIndex_Check(o) ? 0 : k];
    return true;
}

/* Axes, of which None means none. */
static bool axes_or_none(PyObject *o, lb_axes *axes)
{
    if (!py_axes_from(o, axes)) return false;
    if (axes->n < 0) *axes = (lb_axes){0};
    return true;
}

/* ---- structure ----------------------------------------------------------- */

static PyObject *concat(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    static char *keys[] = {"", "axis", NULL};
    PyObject *arrays, *axis_object = NULL;
    int64_t axis = 0;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O|$O:concat", keys, &arrays,
                                     &axis_object))
        return NULL;
    const bool flat = axis_object == Py_None;
    if (axis_object && !flat && !py_int_from(axis_object, &axis)) return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    py_list list;
    if (!py_list_from(cx, arrays, PY_USED_NOW, &list))
        return py_leave_failed(cx);
    for (int i = 0; flat && i < list.n; i++)
        list.a[i] = lb_reshape(cx, list.a[i], lb_shape_make(1, &(int64_t){-1}));
    lb_array *a;
    Py_BEGIN_ALLOW_THREADS
    a = lb_concatenate(cx, list.a, list.n, (int)axis);
    Py_END_ALLOW_THREADS
    py_list_free(&list);
    return py_leave_with(cx, a);
}

static PyObject *pad(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    static char *keys[] = {"", "lo", "hi", "interior", "value", NULL};
    PyObject *x, *lo, *hi = Py_None, *interior = Py_None, *value = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, names, "OO|OO$O:pad", keys, &x, &lo,
                                     &hi, &interior, &value))
        return NULL;
    int64_t n[3][LB_MAX_RANK];
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, x, PY_USED_NOW);
    lb_array *v = !a      ? NULL
                  : value ? py_operand(cx, value, PY_USED_NOW)
                          : lb_scalar_int(cx, 0);
    if (!v || !integers(lo, lb_rank(a), 0, "pad", n[0]) ||
        !integers(hi, lb_rank(a), 0, "pad", n[1]) ||
        !integers(interior, lb_rank(a), 0, "pad", n[2]))
        return py_leave_failed(cx);
    lb_array *r;
    Py_BEGIN_ALLOW_THREADS
    r = lb_pad(cx, a, v, n[0], n[1], n[2]);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, r);
}

/* dynamic_slice(x, starts, sizes), dynamic_update_slice(x, update, starts) */
static PyObject *dynamic(PyObject *args, const char *format, bool update)
{
    PyObject *x, *second, *third;
    if (!PyArg_ParseTuple(args, format, &x, &second, &third)) return NULL;
    int64_t sizes[LB_MAX_RANK];
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, x, PY_KEPT), *u = NULL, *r;
    py_list starts = {0};
    bool ok =
        a && py_list_from(cx, update ? third : second, PY_USED_NOW, &starts);
    if (ok && starts.n != lb_rank(a)) {
        PyErr_Format(py_error_class(LB_E_ARG), "%d starts for %d axes",
                     starts.n, lb_rank(a));
        ok = false;
    }
    if (ok && update)
        ok = (u = py_operand(cx, second, PY_USED_NOW)) != NULL;
    else if (ok)
        ok = integers(third, lb_rank(a), 1, "dynamic_slice", sizes);
    if (!ok) {
        py_list_free(&starts);
        return py_leave_failed(cx);
    }
    Py_BEGIN_ALLOW_THREADS
    r = update ? lb_dynamic_update_slice(cx, a, u, starts.a)
               : lb_dynamic_slice(cx, a, starts.a, sizes);
    Py_END_ALLOW_THREADS
    py_list_free(&starts);
    return py_leave_with(cx, r);
}

static PyObject *dynamic_slice(PyObject *module, PyObject *args)
{
    (void)module;
    return dynamic(args, "OOO:dynamic_slice", false);
}

static PyObject *dynamic_update_slice(PyObject *module, PyObject *args)
{
    (void)module;
    return dynamic(args, "OOO:dynamic_update_slice", true);
}

/* ---- products ------------------------------------------------------------ */

static PyObject *dot_general(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    static char *keys[] = {"",      "",          "contract", "batch",
                           "dtype", "precision", NULL};
    PyObject *x, *y, *lc, *rc, *lb = Py_None, *rb = Py_None, *dtype = Py_None,
                               *precision = Py_None;
    lb_dot_dims d = {0};
    if (!PyArg_ParseTupleAndKeywords(args, names, "OO(OO)|(OO)$OO:dot_general",
                                     keys, &x, &y, &lc, &rc, &lb, &rb, &dtype,
                                     &precision) ||
        !axes_or_none(lc, &d.lhs_contract) ||
        !axes_or_none(rc, &d.rhs_contract) || !axes_or_none(lb, &d.lhs_batch) ||
        !axes_or_none(rb, &d.rhs_batch) ||
        !py_dtype_from(dtype, &d.preferred) ||
        !precision_from(precision, &d.precision))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, x, PY_USED_NOW);
    lb_array *b = a ? py_operand(cx, y, PY_USED_NOW) : NULL;
    if (!b) return py_leave_failed(cx);
    lb_array *r;
    Py_BEGIN_ALLOW_THREADS
    r = lb_dot_general(cx, a, b, &d);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, r);
}

static PyObject *linear(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    static char *keys[] = {"",          "",       "bias", "dtype",
                           "precision", "in_out", NULL};
    PyObject *x, *w, *bias = Py_None, *dtype = Py_None, *precision = Py_None;
    int in_out = 0;
    lb_linear_options o = {.struct_size = sizeof o};
    if (!PyArg_ParseTupleAndKeywords(args, names, "OO|O$OOp:linear", keys, &x,
                                     &w, &bias, &dtype, &precision, &in_out) ||
        !py_dtype_from(dtype, &o.dtype) ||
        !precision_from(precision, &o.precision))
        return NULL;
    o.in_out = in_out;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, x, PY_USED_NOW);
    lb_array *b = a ? py_operand(cx, w, PY_USED_NOW) : NULL;
    lb_array *c =
        b && bias != Py_None ? py_operand(cx, bias, PY_USED_NOW) : NULL;
    if (!b || (bias != Py_None && !c)) return py_leave_failed(cx);
    lb_array *r;
    Py_BEGIN_ALLOW_THREADS
    r = lb_linear(cx, a, b, c, &o);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, r);
}

static bool label_from(const char *text, char *to, size_t size)
{
    const size_t n = text ? strlen(text) : 0;
    if (n > size) {
        PyErr_Format(py_error_class(LB_E_ARG), "labels \"%s\" are too long",
                     text);
        return false;
    }
    if (n) memcpy(to, text, n);
    return true;
}

static PyObject *conv(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    static char *keys[] = {"",
                           "",
                           "stride",
                           "padding",
                           "lhs_dilation",
                           "rhs_dilation",
                           "reversal",
                           "feature_groups",
                           "batch_groups",
                           "lhs",
                           "rhs",
                           "out",
                           "dtype",
                           "precision",
                           NULL};
    PyObject *x, *y, *stride = Py_None, *lo = Py_None, *hi = Py_None,
                     *ld = Py_None, *rd = Py_None, *reversal = Py_None,
                     *dtype = Py_None, *precision = Py_None;
    const char *lhs = NULL, *rhs = NULL, *out = NULL;
    long long groups = 0, batches = 0;
    lb_conv_dims d = {.lhs = ""};
    if (!PyArg_ParseTupleAndKeywords(
            args, names, "OO|$O(OO)OOOLLzzzOO:conv_general_dilated", keys, &x,
            &y, &stride, &lo, &hi, &ld, &rd, &reversal, &groups, &batches, &lhs,
            &rhs, &out, &dtype, &precision) ||
        !label_from(lhs, d.lhs, sizeof d.lhs) ||
        !label_from(rhs, d.rhs, sizeof d.rhs) ||
        !label_from(out, d.out, sizeof d.out) ||
        !py_dtype_from(dtype, &d.preferred) ||
        !precision_from(precision, &d.precision))
        return NULL;
    d.feature_groups = groups;
    d.batch_groups = batches;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, x, PY_USED_NOW);
    lb_array *b = a ? py_operand(cx, y, PY_USED_NOW) : NULL;
    const int n = b ? lb_rank(a) - 2 : 0;
    int64_t turned[LB_MAX_SPATIAL] = {0};
    const bool fits = n <= LB_MAX_SPATIAL && n >= 0; /* else conv fails */
    if (!b || (fits && !(integers(stride, n, 1, "stride", d.stride) &&
                         integers(lo, n, 0, "padding", d.pad_lo) &&
                         integers(hi, n, 0, "padding", d.pad_hi) &&
                         integers(ld, n, 1, "lhs_dilation", d.lhs_dilation) &&
                         integers(rd, n, 1, "rhs_dilation", d.rhs_dilation) &&
                         integers(reversal, n, 0, "reversal", turned))))
        return py_leave_failed(cx);
    for (int k = 0; k < LB_MAX_SPATIAL; k++)
        d.reversal[k] = turned[k] != 0;
    lb_array *r;
    Py_BEGIN_ALLOW_THREADS
    r = lb_conv_general_dilated(cx, a, b, &d);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, r);
}

/* ---- gather and scatter -------------------------------------------------- */

/* The keyword arguments after the arrays, as in lb_gather_dims. */
static bool gather_dims_from(PyObject *names, lb_gather_dims *d)
{
    static char *keys[] = {"offset_dims",
                           "collapsed_slice_dims",
                           "operand_batching_dims",
                           "start_indices_batching_dims",
                           "start_index_map",
                           "index_vector_dim",
                           "slice_sizes",
                           "bounds",
                           "fill",
                           NULL};
    PyObject *axes[5] = {Py_None, Py_None, Py_None, Py_None, Py_None};
    PyObject *sizes = Py_None, *how = Py_None, *fill = Py_None;
    PyObject *empty = PyTuple_New(0);
    lb_shape shape = {0};
    *d = (lb_gather_dims){0};
    const bool parsed =
        empty && PyArg_ParseTupleAndKeywords(
                     empty, names, "|$OOOOOiOOO:gather", keys, &axes[0],
                     &axes[1], &axes[2], &axes[3], &axes[4],
                     &d->index_vector_dim, &sizes, &how, &fill);
    Py_XDECREF(empty);
    if (!parsed || !axes_or_none(axes[0], &d->offset_dims) ||
        !axes_or_none(axes[1], &d->collapsed_slice_dims) ||
        !axes_or_none(axes[2], &d->operand_batching_dims) ||
        !axes_or_none(axes[3], &d->start_indices_batching_dims) ||
        !axes_or_none(axes[4], &d->start_index_map) ||
        !(sizes == Py_None || py_shape_from(sizes, &shape)))
        return false;
    memcpy(d->slice_sizes, shape.dim, sizeof d->slice_sizes);
    const int bound = py_word_value(how, bounds, "bounds");
    if (bound < 0) return false;
    d->bounds = (lb_bounds)bound;
    d->has_fill = fill != Py_None;
    d->fill = d->has_fill ? PyFloat_AsDouble(fill) : 0;
    return !PyErr_Occurred();
}

static PyObject *gather(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    PyObject *x, *starts;
    lb_gather_dims d;
    if (!PyArg_ParseTuple(args, "OO:gather", &x, &starts) ||
        !gather_dims_from(names, &d))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, x, PY_KEPT);
    lb_array *s = a ? py_operand(cx, starts, PY_USED_NOW) : NULL;
    if (!s) return py_leave_failed(cx);
    lb_array *r;
    Py_BEGIN_ALLOW_THREADS
    r = lb_gather(cx, a, s, &d);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, r);
}

static PyObject *scatter_add(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    PyObject *x, *starts, *updates;
    lb_gather_dims d;
    if (!PyArg_ParseTuple(args, "OOO:scatter_add", &x, &starts, &updates) ||
        !gather_dims_from(names, &d))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, x, PY_USED_NOW);
    lb_array *s = a ? py_operand(cx, starts, PY_USED_NOW) : NULL;
    lb_array *u = s ? py_operand(cx, updates, PY_USED_NOW) : NULL;
    if (!u) return py_leave_failed(cx);
    lb_array *r;
    Py_BEGIN_ALLOW_THREADS
    r = lb_scatter_add(cx, a, s, u, &d);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, r);
}

/* ---- dtypes, keys -------------------------------------------------------- */

static PyObject *promote(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *x, *y;
    lb_dtype a, b;
    if (!PyArg_ParseTuple(args, "OO:promote_types", &x, &y) ||
        !py_dtype_from(x, &a) || !py_dtype_from(y, &b))
        return NULL;
    return py_dtype_object(lb_promote(a, b));
}

static PyObject *key_fold(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *o;
    unsigned long long n;
    lb_key key;
    if (!PyArg_ParseTuple(args, "OK:key_fold", &o, &n) || !py_key_from(o, &key))
        return NULL;
    key = lb_key_fold(key, n);
    return Py_BuildValue("(KK)", (unsigned long long)key.seed,
                         (unsigned long long)key.stream);
}

#define GATHER_KEYS                                                            \
    "offset_dims=(), collapsed_slice_dims=(), operand_batching_dims=(), "      \
    "start_indices_batching_dims=(), start_index_map=(), index_vector_dim=0, " \
    "slice_sizes=(), bounds='clamp', fill=None"

PyMethodDef py_special_methods[] = {
    {"concat", PY_FAST(concat), METH_VARARGS | METH_KEYWORDS,
     "concat($module, arrays, /, *, axis=0)\n--\n\n"
     "Arrays one after the other along an axis; None: flattened."},
    {"pad", PY_FAST(pad), METH_VARARGS | METH_KEYWORDS,
     "pad($module, x, /, lo, hi=0, interior=0, *, value=0)\n--\n\n"
     "Padding at both ends of each axis and between elements; negative "
     "numbers remove\nelements."},
    {"dynamic_slice", dynamic_slice, METH_VARARGS,
     "dynamic_slice($module, x, starts, sizes, /)\n--\n\n"
     "A slice that starts at integer arrays, clamped so that it fits."},
    {"dynamic_update_slice", dynamic_update_slice, METH_VARARGS,
     "dynamic_update_slice($module, x, update, starts, /)\n--\n\n"
     "x with a slice replaced."},
    {"dot_general", PY_FAST(dot_general), METH_VARARGS | METH_KEYWORDS,
     "dot_general($module, x, y, /, contract, batch=((), ()), *, dtype=None, "
     "precision=None)\n--\n\nXLA's product: pairs of axes of x and y."},
    {"linear", PY_FAST(linear), METH_VARARGS | METH_KEYWORDS,
     "linear($module, x, w, /, bias=None, *, dtype=None, precision=None, "
     "in_out=False)\n--\n\nx @ w.T + bias; in_out: x @ w + bias."},
    {"conv_general_dilated", PY_FAST(conv), METH_VARARGS | METH_KEYWORDS,
     "conv_general_dilated($module, x, w, /, *, stride=1, padding=(0, 0), "
     "lhs_dilation=1, rhs_dilation=1, reversal=0, feature_groups=1, "
     "batch_groups=1, lhs='', rhs='', out='', dtype=None, precision=None)"
     "\n--\n\nXLA's convolution; labels as in lowbit.h."},
    {"gather", PY_FAST(gather), METH_VARARGS | METH_KEYWORDS,
     "gather($module, x, starts, /, *, " GATHER_KEYS ")\n--\n\n"
     "XLA's gather."},
    {"scatter_add", PY_FAST(scatter_add), METH_VARARGS | METH_KEYWORDS,
     "scatter_add($module, x, starts, updates, /, *, " GATHER_KEYS ")\n--\n\n"
     "Adds updates where gather would read."},
    {"promote_types", promote, METH_VARARGS,
     "promote_types($module, a, b, /)\n--\n\n"
     "The dtype of an operation on two dtypes, as in jax.numpy."},
    {"key_fold", key_fold, METH_VARARGS,
     "key_fold($module, key, n, /)\n--\n\n"
     "A key that is independent of key and of those for other n."},
    {0},
};
