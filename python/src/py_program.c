/* py_program.c - lowbit.Program: a compiled function of a list of arrays.
 * lowbit.compile makes one for each structure of arguments.
 */
#include <stdlib.h>

#include "py_callbacks.h"

typedef struct py_program {
    PyObject_HEAD PyObject *fn;
    py_context *context;
    lb_compiled *f;
    int n_out;
    py_callback callback; /* while it runs */
} py_program;

static PyTypeObject *program_type;

static PyObject *program_new(PyTypeObject *type, PyObject *args,
                             PyObject *names)
{
    static char *keys[] = {"fn", "n_out", "check", "cache", "fold_bytes", NULL};
    lb_compile_options o = {.struct_size = sizeof o};
    PyObject *fn;
    int n_out, check = 0;
    long long fold = 0;
    if (!PyArg_ParseTupleAndKeywords(args, names, "Oi|$piL:Program", keys, &fn,
                                     &n_out, &check, &o.cache, &fold))
        return NULL;
    o.check = check;
    o.fold_bytes = fold;
    py_program *p = (py_program *)PyType_GenericAlloc(type, 0);
    if (!p) return NULL;
    lb_ctx *cx = py_enter();
    if (cx) {
        p->fn = Py_NewRef(fn);
        p->n_out = n_out;
        p->context = py_context_hold();
        p->f = lb_compile_many(cx, py_call_many, n_out, &p->callback, &o);
        if (p->f) {
            py_leave(cx);
            return (PyObject *)p;
        }
        py_leave_failed(cx);
    }
    Py_DECREF((PyObject *)p);
    return NULL;
}

static int program_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((py_program *)self)->fn);
    return 0;
}

static int program_clear(PyObject *self)
{
    Py_CLEAR(((py_program *)self)->fn);
    return 0;
}

static void program_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    py_program *p = (py_program *)self;
    PyObject_GC_UnTrack(self);
    if (p->f) {
        PyObject *kind, *value, *trace;
        PyErr_Fetch(&kind, &value, &trace);
        lb_ctx *cx = py_enter_in(p->context);
        if (cx) {
            lb_compiled_close(p->f);
            py_leave(cx);
        }
        PyErr_Restore(kind, value, trace);
    }
    py_context_release(p->context);
    program_clear(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* Results as a tuple. */
static PyObject *program_call(PyObject *self, PyObject *args, PyObject *names)
{
    static char *keys[] = {"", NULL};
    py_program *p = (py_program *)self;
    PyObject *arrays, *result = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O:Program", keys, &arrays))
        return NULL;
    lb_ctx *cx = py_enter_in(p->context);
    if (!cx) return NULL;
    if (p->callback.kept || !p->fn) {
        PyErr_SetString(PyExc_RuntimeError, "a compiled function calls itself");
        py_leave(cx);
        return NULL;
    }
    py_list list;
    if (!py_list_from(cx, arrays, PY_KEPT, &list)) return py_leave_failed(cx);
    lb_array **out = calloc((size_t)p->n_out + 1, sizeof(lb_array *));
    if (out && py_callback_begin(&p->callback, p->fn)) {
        const bool ok = lb_run_many(p->f, list.a, list.n, out);
        if (py_callback_end(&p->callback) && ok)
            result = py_tuple_of(out, p->n_out);
        Py_CLEAR(p->callback.kept);
    }
    free(out);
    py_list_free(&list);
    if (!result) return py_leave_failed(cx);
    py_leave(cx);
    return result;
}

static PyObject *program_stats(PyObject *self, PyObject *unused)
{
    (void)unused;
    const lb_compiled_stats s = lb_compiled_stats_of(((py_program *)self)->f);
    return Py_BuildValue("{sisLsLsL}", "programs", s.programs, "traces",
                         (long long)s.traces, "runs", (long long)s.runs,
                         "eager", (long long)s.eager);
}

static PyObject *program_explain(PyObject *self, PyObject *args)
{
    static const py_word forms[] = {
        {"text", LB_EXPLAIN_TEXT},
        {"json", LB_EXPLAIN_JSON},
        {"dot", LB_EXPLAIN_DOT},
        {NULL, 0},
    };
    py_program *p = (py_program *)self;
    PyObject *form = Py_None;
    int k = 0;
    if (!PyArg_ParseTuple(args, "|Oi:explain", &form, &k)) return NULL;
    const int f = py_word_value(form, forms, "form");
    lb_ctx *cx = f < 0 ? NULL : py_enter_in(p->context);
    if (!cx) return NULL;
    const char *text = lb_compiled_explain(p->f, k, (lb_explain_form)f);
    PyObject *o = text ? PyUnicode_FromString(text) : NULL;
    if (!o) return py_leave_failed(cx);
    py_leave(cx);
    return o;
}

static PyMethodDef methods[] = {
    {"stats", program_stats, METH_NOARGS,
     "stats($self, /)\n--\n\n"
     "Numbers of programs, traces, runs and eager calls, as a dict."},
    {"explain", program_explain, METH_VARARGS,
     "explain($self, form='text', k=0, /)\n--\n\n"
     "The steps of the k-th program, as text, json or dot."},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_new, program_new},
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_traverse, program_traverse},
    {Py_tp_clear, program_clear},
    {Py_tp_call, program_call},
    {Py_tp_methods, methods},
    {Py_tp_doc, "A compiled function of a list of arrays; see lowbit.compile."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "lowbit._lowbit.Program",
    .basicsize = sizeof(py_program),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

bool py_programs_add(PyObject *module)
{
    if (!program_type)
        program_type =
            (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return program_type && !PyModule_AddType(module, program_type);
}
