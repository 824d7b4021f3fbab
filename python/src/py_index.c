/* py_index.c - x[...] with numpy's meaning.
 *
 * Integers and slices become one lb_slice of all axes, integers' axes are then
 * removed and those of None inserted. Arrays of integers, of one shape after
 * broadcasting, replace their axes by theirs: lb_take for one, lb_gather for
 * several. A mask of bools is the indices of its true elements. As in numpy,
 * the new axes come first if integers or arrays are separated by other keys.
 */
#include <stdlib.h>

#include "py_lowbit.h"

enum { MAX_KEYS = 3 * LB_MAX_RANK };
typedef enum py_key_kind { AT, RANGE, NEW, REST, MANY } py_key_kind;

typedef struct py_key {
    py_key_kind kind;
    int64_t start, step, len; /* AT: start; RANGE: elements of the axis */
    lb_array *index;          /* MANY */
    bool masked;              /* MANY from a mask, whose axis has size len */
} py_key;

typedef struct py_keys {
    py_key key[MAX_KEYS];
    int n;
    int n_axes; /* axes that they consume, without REST */
    int n_many;
    bool has_rest;
} py_keys;

static bool fail_index(const char *text)
{
    PyErr_SetString(PyExc_IndexError, text);
    return false;
}

/* ---- reading keys -------------------------------------------------------- */

static py_key *push(py_keys *k, py_key_kind kind)
{
    if (k->n == MAX_KEYS) {
        fail_index("too many indices");
        return NULL;
    }
    k->key[k->n].kind = kind;
    k->n_axes += kind == AT || kind == RANGE || kind == MANY;
    k->n_many += kind == MANY;
    return &k->key[k->n++];
}

/* The indices of the true elements of a mask: one array for each axis. */
static bool push_mask(lb_ctx *cx, py_keys *k, lb_array *mask)
{
    const lb_shape shape = lb_shape_of(mask);
    const int64_t n = lb_size(mask);
    bool *bits = malloc(n ? (size_t)n : 1);
    int64_t *at = malloc((size_t)(n ? n : 1) * sizeof *at);
    bool ok = bits && at && lb_read(cx, mask, bits, (size_t)n);
    int64_t inner = n;
    for (int axis = 0; ok && axis < shape.rank; axis++) {
        inner = shape.dim[axis] ? inner / shape.dim[axis] : 0;
        int64_t count = 0;
        for (int64_t i = 0; i < n; i++)
            if (bits[i]) at[count++] = i / inner % shape.dim[axis];
        py_key *key = push(k, MANY);
        ok = key != NULL;
        if (!ok) break;
        key->masked = true;
        key->len = shape.dim[axis];
        key->index = lb_from(cx, LB_I64, lb_shape_make(1, &count), at);
        ok = ok && key->index;
    }
    free(bits);
    free(at);
    if (!ok) py_raise(cx);
    return ok;
}

static bool push_array(lb_ctx *cx, py_keys *k, PyObject *o)
{
    lb_array *a = py_asarray(cx, o, LB_NO_DTYPE, -1);
    if (!a) return false;
    const lb_dtype t = lb_dtype_of(a);
    if (t == LB_BOOL && lb_rank(a)) return push_mask(cx, k, a);
    if (lb_size(a) == 0 && (PyList_Check(o) || PyTuple_Check(o)))
        a = lb_convert(cx, a, LB_I64); /* [] */
    else if (!py_dtype_is_signed(t) && !py_dtype_is_unsigned(t))
        return fail_index("arrays used as indices must hold integers or a mask "
                          "of bools");
    py_key *key = push(k, MANY);
    if (key) key->index = lb_convert(cx, a, LB_I64);
    return key && key->index;
}

static bool push_key(lb_ctx *cx, py_keys *k, PyObject *o)
{
    py_key *key;
    if (o == Py_None) return push(k, NEW) != NULL;
    if (o == Py_Ellipsis) {
        if (k->has_rest) return fail_index("more than one ellipsis (...)");
        k->has_rest = true;
        return push(k, REST) != NULL;
    }
    if (PySlice_Check(o)) {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(o, &start, &stop, &step)) return false;
        if (!(key = push(k, RANGE))) return false;
        key->start = start;
        key->step = step;
        key->len = stop; /* see settle */
        return true;
    }
    if (PyBool_Check(o))
        return fail_index("True and False are not indices here");
    if (PyIndex_Check(o) && !(py_is_array(o) && lb_rank(py_array_of(o))) &&
        !PySequence_Check(o)) {
        if (!(key = push(k, AT))) return false;
        return py_int_from(o, &key->start);
    }
    if (py_is_array(o) && !lb_rank(py_array_of(o)) &&
        lb_dtype_of(py_array_of(o)) != LB_BOOL) {
        if (!(key = push(k, AT))) return false;
        return py_int_from(o, &key->start);
    }
    return push_array(cx, k, o);
}

/* Replaces REST by ranges, and finds the elements of each key in its axis. */
static bool settle(py_keys *k, lb_shape shape)
{
    if (k->n_axes > shape.rank) {
        PyErr_Format(PyExc_IndexError, "%d indices for an array of %d axes",
                     k->n_axes, shape.rank);
        return false;
    }
    if (!k->has_rest && !push(k, REST)) return false;
    py_key out[MAX_KEYS];
    int n = 0, axis = 0;
    for (int i = 0; i < k->n; i++) {
        py_key *key = &k->key[i];
        const int times = key->kind == REST ? shape.rank - k->n_axes : 1;
        for (int j = 0; j < times; j++) {
            if (n == MAX_KEYS) return fail_index("too many indices");
            out[n] = *key;
            if (key->kind == REST) {
                out[n] = (py_key){RANGE, 0, 1, shape.dim[axis], NULL};
            } else if (key->kind == RANGE) {
                Py_ssize_t start = (Py_ssize_t)key->start;
                Py_ssize_t stop = (Py_ssize_t)key->len;
                out[n].len =
                    PySlice_AdjustIndices((Py_ssize_t)shape.dim[axis], &start,
                                          &stop, (Py_ssize_t)key->step);
                out[n].start = start;
            } else if (key->kind == AT) {
                if (key->start < 0) out[n].start += shape.dim[axis];
                if (out[n].start < 0 || out[n].start >= shape.dim[axis]) {
                    PyErr_Format(PyExc_IndexError,
                                 "index %lld is out of range for axis %d of "
                                 "size %lld",
                                 (long long)key->start, axis,
                                 (long long)shape.dim[axis]);
                    return false;
                }
            }
            axis += key->kind != NEW;
            n++;
        }
    }
    for (int i = 0; i < n; i++)
        k->key[i] = out[i];
    k->n = n;
    return true;
}

/* Negative indices count from the end. Checks them, except while a function is
 * compiled: then out-of-range ones are clamped. */
static bool settle_many(lb_ctx *cx, py_key *key, int axis, int64_t size)
{
    lb_array *i = key->index;
    if (lb_size(i)) {
        const int64_t least = lb_item_int(cx, lb_reduce_min(cx, i, NULL));
        const int64_t most = lb_item_int(cx, lb_reduce_max(cx, i, NULL));
        if (lb_error_status(cx) == LB_E_UNSUPPORTED && py_is_recording()) {
            lb_clear(cx);
        } else if (lb_error_status(cx)) {
            return false;
        } else if (least < -size || most >= size) {
            PyErr_Format(PyExc_IndexError,
                         "index %lld is out of range for axis %d of size %lld",
                         (long long)(most >= size ? most : least), axis,
                         (long long)size);
            return false;
        } else if (least >= 0) {
            return true;
        }
    }
    key->index = lb_select(cx, lb_lt(cx, i, lb_scalar_int(cx, 0)),
                           lb_add(cx, i, lb_scalar_int(cx, size)), i);
    return key->index != NULL;
}

static bool read_keys(lb_ctx *cx, PyObject *o, lb_shape shape, py_keys *k)
{
    const Py_ssize_t n = PyTuple_Check(o) ? PyTuple_Size(o) : 1;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!push_key(cx, k, PyTuple_Check(o) ? PyTuple_GetItem(o, i) : o))
            return false;
    if (!settle(k, shape)) return false;
    int axis = 0;
    for (int i = 0; i < k->n; i++) {
        py_key *key = &k->key[i];
        /* an empty mask fits any size */
        if (key->kind == MANY && key->masked && key->len &&
            key->len != shape.dim[axis]) {
            PyErr_Format(PyExc_IndexError,
                         "a mask of size %lld along axis %d of size %lld",
                         (long long)key->len, axis, (long long)shape.dim[axis]);
            return false;
        }
        if (key->kind == MANY && !settle_many(cx, key, axis, shape.dim[axis]))
            return false;
        axis += key->kind != NEW;
    }
    return true;
}

/* ---- applying them ------------------------------------------------------- */

/* Integers and ranges: one slice, then the axes to be reversed. */
static lb_array *apply_ranges(lb_ctx *cx, lb_array *a, const py_keys *k)
{
    const lb_shape shape = lb_shape_of(a);
    int64_t start[LB_MAX_RANK], limit[LB_MAX_RANK], stride[LB_MAX_RANK];
    lb_axes reversed = {0};
    bool whole = true;
    int axis = 0;
    for (int i = 0; i < k->n; i++) {
        const py_key *key = &k->key[i];
        if (key->kind == NEW) continue;
        start[axis] = 0;
        limit[axis] = shape.dim[axis];
        stride[axis] = 1;
        if (key->kind == AT) {
            start[axis] = key->start;
            limit[axis] = key->start + 1;
        } else if (key->kind == RANGE && key->len == 0) {
            limit[axis] = 0;
        } else if (key->kind == RANGE) {
            const int64_t last = key->start + (key->len - 1) * key->step;
            start[axis] = key->step > 0 ? key->start : last;
            limit[axis] = (key->step > 0 ? last : key->start) + 1;
            if (key->len > 1)
                stride[axis] = key->step > 0 ? key->step : -key->step;
            if (key->step < 0 && key->len > 1)
                reversed.axis[reversed.n++] = axis;
        }
        whole &= start[axis] == 0 && limit[axis] == shape.dim[axis] &&
                 stride[axis] == 1;
        axis++;
    }
    if (!whole) a = lb_slice(cx, a, start, limit, stride);
    return reversed.n ? lb_reverse(cx, a, &reversed) : a;
}

static lb_array *apply_axes(lb_ctx *cx, lb_array *a, const py_keys *k)
{
    lb_axes gone = {0};
    int axis = 0;
    for (int i = 0; i < k->n; i++) {
        if (k->key[i].kind == AT) gone.axis[gone.n++] = axis;
        axis += k->key[i].kind != NEW;
    }
    if (gone.n) a = lb_squeeze(cx, a, &gone);
    axis = 0;
    for (int i = 0; i < k->n; i++) {
        if (k->key[i].kind == NEW) a = lb_expand(cx, a, axis);
        axis += k->key[i].kind != AT;
    }
    return a;
}

/* Where the axes of the index arrays go: with the first of the integers and
 * arrays if these are next to each other, else first. */
static int place_of_many(const py_keys *k)
{
    int first = -1, axis = 0;
    bool ended = false;
    for (int i = 0; i < k->n; i++) {
        const bool advanced = k->key[i].kind == AT || k->key[i].kind == MANY;
        if (advanced && ended) return 0;
        if (advanced && first < 0) first = axis;
        if (!advanced && first >= 0) ended = true;
        axis += k->key[i].kind != AT;
    }
    return first;
}

/* All index arrays in one shape, side by side along a last axis. */
static lb_array *index_vectors(lb_ctx *cx, lb_array *const *index, int n)
{
    lb_array *common = index[0], *part[LB_MAX_RANK];
    for (int i = 1; i < n; i++)
        common = lb_add(cx, common, index[i]);
    if (!common) return NULL;
    const lb_shape shape = lb_shape_of(common);
    for (int i = 0; i < n; i++)
        part[i] =
            lb_expand(cx, lb_broadcast_to(cx, index[i], shape), shape.rank);
    return lb_concatenate(cx, part, n, shape.rank);
}

static bool has_axis(const lb_axes *axes, int axis)
{
    for (int i = 0; i < axes->n; i++)
        if (axes->axis[i] == axis) return true;
    return false;
}

static lb_array *apply_many(lb_ctx *cx, lb_array *a, const py_keys *k)
{
    if (!a) return NULL;
    lb_array *index[MAX_KEYS];
    lb_axes axes = {0};
    int axis = 0;
    for (int i = 0; i < k->n; i++) {
        if (k->key[i].kind == MANY) {
            index[axes.n] = k->key[i].index;
            axes.axis[axes.n++] = axis;
        }
        axis += k->key[i].kind != AT;
    }
    const int place = place_of_many(k);
    if (axes.n == 1 && place == axes.axis[0])
        return lb_take(cx, a, index[0], place);
    lb_array *starts = index_vectors(cx, index, axes.n);
    if (!starts) return NULL;
    const lb_shape shape = lb_shape_of(a);
    const int batch = lb_rank(starts) - 1;
    const int rank = shape.rank - axes.n + batch;
    lb_gather_dims d = {.collapsed_slice_dims = axes,
                        .start_index_map = axes,
                        .index_vector_dim = batch};
    for (int i = 0; i < shape.rank; i++)
        d.slice_sizes[i] = shape.dim[i];
    for (int i = 0; i < axes.n; i++)
        d.slice_sizes[axes.axis[i]] = 1;
    lb_shape out = {.rank = rank < LB_MAX_RANK ? rank : LB_MAX_RANK};
    for (int i = 0, of = 0; i < out.rank; i++) {
        if (i >= place && i < place + batch) {
            out.dim[i] = lb_dim(starts, i - place);
            continue;
        }
        d.offset_dims.axis[d.offset_dims.n++] = i;
        while (has_axis(&axes, of))
            of++;
        out.dim[i] = shape.dim[of++];
    }
    /* A slice of size 1 does not fit into an empty axis. */
    return lb_size(starts) ? lb_gather(cx, a, starts, &d)
                           : lb_zeros(cx, lb_dtype_of(a), out);
}

/* x[True] and x[False]: a first axis of size 1 or 0. */
static bool is_truth(PyObject *o)
{
    return PyBool_Check(o) || (py_is_array(o) && !lb_rank(py_array_of(o)) &&
                               lb_dtype_of(py_array_of(o)) == LB_BOOL);
}

static PyObject *item_of_truth(lb_array *a, PyObject *o)
{
    const int truth = PyObject_IsTrue(o);
    lb_ctx *cx = truth < 0 ? NULL : py_enter();
    if (!cx) return NULL;
    lb_array *wide = lb_expand(cx, a, 0);
    lb_shape limit = wide ? lb_shape_of(wide) : (lb_shape){0};
    const int64_t start[LB_MAX_RANK] = {0};
    limit.dim[0] = truth;
    return py_leave_with(cx, lb_slice(cx, wide, start, limit.dim, NULL));
}

PyObject *py_array_item(PyObject *self, PyObject *o)
{
    lb_array *a = py_array_of(self);
    py_keys k = {0};
    if (is_truth(o)) return item_of_truth(a, o);
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    if (!read_keys(cx, o, lb_shape_of(a), &k)) return py_leave_failed(cx);
    Py_BEGIN_ALLOW_THREADS
    a = apply_axes(cx, apply_ranges(cx, a, &k), &k);
    if (k.n_many) a = apply_many(cx, a, &k);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, a);
}

/* For iteration. */
PyObject *py_array_at(PyObject *self, Py_ssize_t i)
{
    lb_array *a = py_array_of(self);
    if (lb_rank(a) < 1) {
        PyErr_SetString(PyExc_TypeError, "a 0-dimensional array has no items");
        return NULL;
    }
    if (i < 0 || i >= lb_dim(a, 0)) {
        PyErr_Format(PyExc_IndexError, "index %zd is out of range for axis 0",
                     i);
        return NULL;
    }
    PyObject *key = PyLong_FromSsize_t(i);
    PyObject *item = key ? py_array_item(self, key) : NULL;
    Py_XDECREF(key);
    return item;
}
