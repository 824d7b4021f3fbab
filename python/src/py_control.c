/* py_control.c - the context of this thread: its options, memory and CPU. */
#include "py_lowbit.h"

const py_word py_dense_policies[] = {
    {"allow", LB_DENSE_ALLOW},
    {"log", LB_DENSE_LOG},
    {"deny", LB_DENSE_DENY},
    {NULL, 0},
};

/* The strings of the options must outlive the context: it only reads them when
 * it is opened, also after a fork. */
static PyObject *push_config(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    static char *keys[] = {"threads", "precision",  "dense", "isa",
                           "debug",   "keep_bytes", NULL};
    PyObject *precision = Py_None, *dense = Py_None, *isa = Py_None;
    int debug = 0;
    long long keep = 0;
    lb_options o = {.struct_size = sizeof o};
    if (!PyArg_ParseTupleAndKeywords(args, names, "|$iOOOpL:_push_config", keys,
                                     &o.threads, &precision, &dense, &isa,
                                     &debug, &keep))
        return NULL;
    static const py_word levels[] = {
        {"ref", 1},        {"neon", 2}, {"avx2", 3}, {"avx512", 4},
        {"avx512vnni", 5}, {"amx", 6},  {NULL, 0},
    };
    const int p = py_word_value(precision, py_precisions, "precision");
    const int d = py_word_value(dense, py_dense_policies, "dense");
    const int level = py_word_value(isa, levels, "isa");
    if (p < 0 || d < 0 || level < 0) return NULL;
    o.precision = (lb_precision)p;
    o.dense = (lb_dense_policy)d;
    o.isa = level ? levels[level - 1].name : NULL;
    o.debug = debug;
    o.keep_bytes = keep;
    if (!py_context_push(&o)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *pop_config(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    if (!py_context_pop()) return NULL;
    Py_RETURN_NONE;
}

static PyObject *set_dense(PyObject *module, PyObject *args)
{
    (void)module;
    const char *format;
    PyObject *policy;
    if (!PyArg_ParseTuple(args, "sO:set_dense", &format, &policy)) return NULL;
    const int p = py_word_value(policy, py_dense_policies, "policy");
    lb_ctx *cx = p < 0 ? NULL : py_enter();
    if (!cx) return NULL;
    if (!lb_set_dense(cx, format, (lb_dense_policy)p))
        return py_leave_failed(cx);
    py_leave(cx);
    Py_RETURN_NONE;
}

static PyObject *context_info(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    PyObject *dict = Py_BuildValue(
        "{sisssssssssnsn}", "threads", lb_threads(cx), "isa", lb_isa(cx),
        "isa_best", lb_isa_best(), "cpu_name", lb_cpu_name(cx), "cpu_family",
        lb_cpu_family(cx), "bytes_in_use", (Py_ssize_t)lb_bytes_in_use(cx),
        "bytes_peak", (Py_ssize_t)lb_bytes_peak(cx));
    py_leave(cx);
    return dict;
}

static PyObject *trim(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    const size_t n = lb_trim(cx);
    py_leave(cx);
    return PyLong_FromSize_t(n);
}

static PyObject *explain(PyObject *module, PyObject *args)
{
    (void)module;
    const char *primitive;
    PyObject *arrays;
    if (!PyArg_ParseTuple(args, "sO:explain", &primitive, &arrays)) return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    py_list list;
    if (!py_list_from(cx, arrays, PY_USED_NOW, &list))
        return py_leave_failed(cx);
    const char *text = lb_explain(cx, primitive, list.a, list.n, NULL);
    PyObject *o = text ? PyUnicode_FromString(text) : NULL;
    py_list_free(&list);
    if (!o) return py_leave_failed(cx);
    py_leave(cx);
    return o;
}

PyMethodDef py_context_methods[] = {
    {"_push_config", PY_FAST(push_config), METH_VARARGS | METH_KEYWORDS, NULL},
    {"_pop_config", pop_config, METH_NOARGS, NULL},
    {"set_dense", set_dense, METH_VARARGS,
     "set_dense($module, format, policy, /)\n--\n\n"
     "The policy 'allow', 'log' or 'deny' for operands of one format, in this "
     "thread;\nNone: that of config."},
    {"context_info", context_info, METH_NOARGS,
     "context_info($module, /)\n--\n\n"
     "Threads, instruction set and memory of this thread's context, as a "
     "dict."},
    {"trim", trim, METH_NOARGS,
     "trim($module, /)\n--\n\n"
     "Returns memory kept for reuse to the system; the result is in bytes."},
    {"explain", explain, METH_VARARGS,
     "explain($module, primitive, arrays, /)\n--\n\n"
     "How a primitive without parameters would run on these arrays, in a "
     "line."},
    {0},
};
