/* py_save.c - writing arrays to files, and comparing and examining arrays. */
#include "py_files.h"

#include <stdlib.h>

/* ---- saving -------------------------------------------------------------- */

/* A list of tuples (key, type, item, n, bytes), which lowbit.files encodes. */
static bool meta_from(PyObject *list, lb_meta **to, int64_t *n)
{
    *n = PyList_Check(list) ? PyList_Size(list) : -1;
    *to = *n < 0 ? NULL : calloc((size_t)*n + 1, sizeof **to);
    if (!*to) {
        PyErr_SetString(PyExc_TypeError, "metadata must be a list");
        return false;
    }
    for (int64_t i = 0; i < *n; i++) {
        PyObject *row = PyList_GetItem(list, (Py_ssize_t)i);
        lb_meta *m = &(*to)[i];
        int type, item;
        unsigned long long items;
        const char *bytes;
        Py_ssize_t size;
        if (!row || !PyTuple_Check(row)) {
            PyErr_SetString(PyExc_TypeError, "metadata must be tuples");
            return false;
        }
        if (!PyArg_ParseTuple(row, "siiKy#", &m->key, &type, &item, &items,
                              &bytes, &size))
            return false;
        m->type = (lb_meta_type)type;
        m->item = (lb_meta_type)item;
        m->n = items;
        m->bytes = (const uint8_t *)bytes;
        m->size = (uint64_t)size;
    }
    return true;
}

/* lb_save_sharded on a mesh of one rank, which runs with a context of its own:
 * a context cannot leave a mesh. */
typedef struct py_shards {
    const char *path;
    const lb_planned *list;
    int n;
    const lb_save_options *o;
    lb_status status;
    char error[512];
} py_shards;

static int save_as_rank(lb_comm *comm, void *user)
{
    py_shards *s = user;
    lb_ctx *cx = lb_open(NULL);
    lb_mesh *mesh = lb_mesh_open(cx, comm, "all=1", NULL);
    if (mesh) lb_save_sharded(cx, mesh, s->path, s->list, s->n, s->o);
    lb_mesh_close(mesh);
    s->status = lb_error_status(cx);
    PyOS_snprintf(s->error, sizeof s->error, "%s", lb_error(cx));
    lb_close(cx);
    return 0;
}

static bool save_shards(const char *path, const lb_planned *list, int n,
                        const lb_save_options *o)
{
    py_shards s = {path, list, n, o, LB_OK, ""};
    int failed;
    Py_BEGIN_ALLOW_THREADS
    failed = lb_mesh_run(1, save_as_rank, &s);
    Py_END_ALLOW_THREADS
    if (!failed && s.status == LB_OK) return true;
    PyErr_SetString(py_error_class(failed ? LB_E_NOMEM : s.status),
                    failed ? "cannot start a thread" : s.error);
    return false;
}

/* _save(path, names, arrays, meta, *, kind, layout, max_shard, sync) */
static PyObject *save(PyObject *module, PyObject *args, PyObject *words)
{
    (void)module;
    static char *keys[] = {"",       "",          "",     "",  "kind",
                           "layout", "max_shard", "sync", NULL};
    PyObject *path = NULL, *names, *arrays, *meta;
    unsigned long long shard = 0;
    int sync = 1;
    lb_save_options o = {.struct_size = sizeof o};
    if (!PyArg_ParseTupleAndKeywords(args, words, "O&O!OO|$zzKp:_save", keys,
                                     PyUnicode_FSConverter, &path, &PyList_Type,
                                     &names, &arrays, &meta, &o.kind, &o.layout,
                                     &shard, &sync))
        return NULL;
    o.max_shard = shard;
    o.no_sync = !sync;
    lb_meta *list_of_meta = NULL;
    lb_planned *list = NULL;
    py_list a = {0};
    bool ok = meta_from(meta, &list_of_meta, &o.n_meta);
    lb_ctx *cx = ok ? py_enter() : NULL;
    ok = cx && py_list_from(cx, arrays, PY_USED_NOW, &a) &&
         (list = calloc((size_t)a.n + 1, sizeof *list));
    for (int i = 0; ok && i < a.n; i++) {
        PyObject *name = PyList_GetItem(names, i);
        list[i].name = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
        list[i].array = a.a[i];
        ok = list[i].name != NULL;
    }
    if (ok) {
        const char *to = PyBytes_AsString(path);
        o.meta = list_of_meta;
        if (shard) {
            ok = save_shards(to, list, a.n, &o);
        } else {
            Py_BEGIN_ALLOW_THREADS
            ok = lb_save(cx, to, list, a.n, &o);
            Py_END_ALLOW_THREADS
        }
    }
    free(list);
    free(list_of_meta);
    py_list_free(&a);
    Py_XDECREF(path);
    if (cx && !ok) return py_leave_failed(cx);
    if (!cx) return NULL;
    py_leave(cx);
    Py_RETURN_NONE;
}

static PyObject *can_save(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *x;
    const char *kind = NULL, *layout = NULL;
    if (!PyArg_ParseTuple(args, "O!|zz:can_save", py_array_type, &x, &kind,
                          &layout))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    const lb_planned p = {.name = "array", .array = py_array_of(x)};
    const bool yes = lb_can_save(cx, &p, kind, layout);
    if (!yes && lb_error_status(cx)) return py_leave_failed(cx);
    py_leave(cx);
    return PyBool_FromLong(yes);
}

/* ---- looking at values --------------------------------------------------- */

/* _compare(a, b, so_far=None): sums, so that arrays can be compared in
 * pieces. */
static PyObject *compare(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *x, *y, *before = Py_None;
    lb_difference d = {0};
    if (!PyArg_ParseTuple(args, "OO|O:_compare", &x, &y, &before)) return NULL;
    long long n = 0, apart = 0, nonfinite = 0;
    if (before != Py_None && !PyTuple_Check(before)) {
        PyErr_SetString(PyExc_TypeError, "the sums must be a tuple");
        return NULL;
    }
    if (before != Py_None &&
        !PyArg_ParseTuple(before, "LLLddddd", &n, &apart, &nonfinite, &d.aa,
                          &d.bb, &d.ab, &d.dd, &d.max))
        return NULL;
    d.n = n;
    d.apart = apart;
    d.nonfinite = nonfinite;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, x, PY_USED_NOW);
    lb_array *b = a ? py_operand(cx, y, PY_USED_NOW) : NULL;
    bool ok = b != NULL;
    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        ok = lb_compare(cx, a, b, &d);
        Py_END_ALLOW_THREADS
    }
    if (!ok) return py_leave_failed(cx);
    py_leave(cx);
    return Py_BuildValue("LLLddddd", (long long)d.n, (long long)d.apart,
                         (long long)d.nonfinite, d.aa, d.bb, d.ab, d.dd, d.max);
}

/* nrmse and cosine of such sums. */
static PyObject *difference(PyObject *module, PyObject *args)
{
    (void)module;
    long long n, apart, nonfinite;
    lb_difference d = {0};
    if (!PyArg_ParseTuple(args, "LLLddddd:_difference", &n, &apart, &nonfinite,
                          &d.aa, &d.bb, &d.ab, &d.dd, &d.max))
        return NULL;
    d.n = n;
    d.apart = apart;
    d.nonfinite = nonfinite;
    return Py_BuildValue("dd", lb_difference_nrmse(&d),
                         lb_difference_cosine(&d));
}

static PyObject *examine(PyObject *module, PyObject *x)
{
    (void)module;
    lb_findings f = {0};
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, x, PY_USED_NOW);
    bool ok = a != NULL;
    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        ok = lb_examine(cx, a, &f);
        Py_END_ALLOW_THREADS
    }
    if (!ok) return py_leave_failed(cx);
    py_leave(cx);
    return Py_BuildValue(
        "{sLsLsLsLsLsLsLsdsdsdsdsO}", "values", (long long)f.n, "nan",
        (long long)f.nan.n, "infinite", (long long)f.inf.n, "invalid_codes",
        (long long)f.code.n, "invalid_scales", (long long)f.scale.n, "finite",
        (long long)f.finite, "zeros", (long long)f.zeros, "min", f.least, "max",
        f.most, "sum", f.sum, "squares", f.squares, "sound",
        lb_findings_sound(&f) ? Py_True : Py_False);
}

static PyObject *counts(const int64_t *count, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *o = PyLong_FromLongLong(count[i]);
        if (!o || PyList_SetItem(list, i, o)) Py_CLEAR(list);
    }
    return list;
}

static PyObject *histogram(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *x;
    lb_histogram h = {0};
    if (!PyArg_ParseTuple(args, "Oddi:_histogram", &x, &h.lo, &h.hi, &h.bins))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, x, PY_USED_NOW);
    bool ok = a != NULL;
    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        ok = lb_count_values(cx, a, &h);
        Py_END_ALLOW_THREADS
    }
    if (!ok) return py_leave_failed(cx);
    py_leave(cx);
    return Py_BuildValue("{sdsdsLsLsN}", "lo", h.lo, "hi", h.hi, "below",
                         (long long)h.below, "above", (long long)h.above,
                         "counts", counts(h.count, h.bins));
}

/* None if the format has no codes. */
static PyObject *code_counts(PyObject *module, PyObject *x)
{
    (void)module;
    int64_t count[256] = {0};
    if (!py_is_array(x)) {
        PyErr_SetString(PyExc_TypeError, "an Array is needed");
        return NULL;
    }
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    const bool ok = lb_count_codes(cx, py_array_of(x), count);
    const bool none = lb_error_status(cx) == LB_E_UNSUPPORTED;
    if (!ok && !none) return py_leave_failed(cx);
    lb_clear(cx);
    py_leave(cx);
    if (none) Py_RETURN_NONE;
    return counts(count, 256);
}

PyMethodDef py_save_methods[] = {
    {"_save", PY_FAST(save), METH_VARARGS | METH_KEYWORDS, NULL},
    {"_can_save", can_save, METH_VARARGS, NULL},
    {"_compare", compare, METH_VARARGS, NULL},
    {"_difference", difference, METH_VARARGS, NULL},
    {"_examine", examine, METH_O, NULL},
    {"_histogram", histogram, METH_VARARGS, NULL},
    {"_code_counts", code_counts, METH_O, NULL},
    {0},
};
