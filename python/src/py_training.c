/* py_training.c - lowbit._lowbit.Optimizer: an optimizer of a list of arrays.
 * lowbit.SGD, Adam and AdamW flatten trees of parameters for it.
 */
#include <stdlib.h>
#include <string.h>

#include "py_lowbit.h"

typedef struct py_optimizer {
    PyObject_HEAD py_context *context;
    lb_optimizer *o;
    int n;
} py_optimizer;

static PyTypeObject *optimizer_type;

static const py_word optimizers[] = {
    {"sgd", LB_SGD}, {"adam", LB_ADAM}, {"adamw", LB_ADAMW}, {NULL, 0}};
static const py_word schedules[] = {
    {"constant", LB_CONSTANT}, {"cosine", LB_COSINE}, {NULL, 0}};

/* state is a dict for lb_quant_config; *state_config keeps it. */
static bool config_from(PyObject *args, PyObject *names, PyObject **params,
                        lb_optimizer_config *c, lb_quant_config *state_config)
{
    static char *keys[] = {"params",   "method",    "rate",     "momentum",
                           "nesterov", "beta1",     "beta2",    "eps",
                           "decay",    "clip_norm", "schedule", "warmup",
                           "steps",    "least",     "state",    NULL};
    PyObject *method = Py_None, *schedule = Py_None, *state = Py_None;
    int nesterov = 0;
    long long warmup = 0, steps = 0;
    *c = (lb_optimizer_config){.struct_size = sizeof *c};
    if (!PyArg_ParseTupleAndKeywords(
            args, names, "O|$OddpdddddOLLdO:Optimizer", keys, params, &method,
            &c->rate, &c->momentum, &nesterov, &c->beta1, &c->beta2, &c->eps,
            &c->decay, &c->clip_norm, &schedule, &warmup, &steps, &c->least,
            &state))
        return false;
    const int m = py_word_value(method, optimizers, "method");
    const int s = m < 0 ? -1 : py_word_value(schedule, schedules, "schedule");
    if (s < 0 || !py_config_from(state, state_config)) return false;
    c->method = (lb_method)m;
    c->schedule = (lb_schedule)s;
    c->nesterov = nesterov;
    c->warmup = warmup;
    c->steps = steps;
    c->state = state == Py_None ? NULL : state_config;
    return true;
}

static PyObject *optimizer_new(PyTypeObject *type, PyObject *args,
                               PyObject *names)
{
    PyObject *params;
    lb_optimizer_config c;
    lb_quant_config state;
    if (!config_from(args, names, &params, &c, &state)) return NULL;
    py_optimizer *p = (py_optimizer *)PyType_GenericAlloc(type, 0);
    lb_ctx *cx = p ? py_enter() : NULL;
    if (!cx) {
        Py_XDECREF((PyObject *)p);
        return NULL;
    }
    py_list list = {0};
    p->context = py_context_hold();
    if (py_list_from(cx, params, PY_USED_NOW, &list)) {
        p->n = list.n;
        p->o = lb_optimizer_open(cx, &c, list.a, list.n);
        py_list_free(&list);
    }
    if (!p->o) {
        py_leave_failed(cx);
        Py_DECREF((PyObject *)p);
        return NULL;
    }
    py_leave(cx);
    return (PyObject *)p;
}

static void optimizer_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    py_optimizer *p = (py_optimizer *)self;
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    lb_ctx *cx = p->o ? py_enter_in(p->context) : NULL;
    if (cx) {
        lb_optimizer_close(p->o);
        py_leave(cx);
    }
    PyErr_Restore(kind, value, trace);
    py_context_release(p->context);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *optimizer_step(PyObject *self, PyObject *args)
{
    py_optimizer *p = (py_optimizer *)self;
    PyObject *params, *grads, *result = NULL;
    if (!PyArg_ParseTuple(args, "OO:step", &params, &grads)) return NULL;
    lb_ctx *cx = py_enter_in(p->context);
    if (!cx) return NULL;
    py_list a = {0}, g = {0};
    if (py_list_from(cx, params, PY_KEPT, &a) &&
        py_list_from(cx, grads, PY_KEPT, &g)) {
        bool ok = a.n == p->n && g.n == p->n;
        if (!ok)
            PyErr_Format(PyExc_ValueError,
                         "%d parameters and %d gradients for an optimizer of "
                         "%d parameters",
                         a.n, g.n, p->n);
        if (ok) {
            Py_BEGIN_ALLOW_THREADS
            ok = lb_optimizer_step(p->o, a.a, g.a);
            Py_END_ALLOW_THREADS
        }
        if (ok) result = py_tuple_of(a.a, a.n);
    }
    py_list_free(&a);
    py_list_free(&g);
    if (!result) return py_leave_failed(cx);
    py_leave(cx);
    return result;
}

static PyObject *optimizer_state(PyObject *self, PyObject *unused)
{
    (void)unused;
    py_optimizer *p = (py_optimizer *)self;
    lb_ctx *cx = py_enter_in(p->context);
    if (!cx) return NULL;
    PyObject *dict = PyDict_New();
    const int n = lb_optimizer_count(p->o);
    for (int i = 0; dict && i < n; i++) {
        char name[128];
        lb_array *a = lb_optimizer_state(p->o, i, name, sizeof name);
        PyObject *o = a ? py_array_new(a) : NULL;
        if (!o || PyDict_SetItemString(dict, name, o)) Py_CLEAR(dict);
        Py_XDECREF(o);
    }
    if (!dict) return py_leave_failed(cx);
    py_leave(cx);
    return dict;
}

/* A dict in the order of state(). */
static PyObject *optimizer_restore(PyObject *self, PyObject *state)
{
    py_optimizer *p = (py_optimizer *)self;
    PyObject *values = PyMapping_Values(state);
    lb_ctx *cx = values ? py_enter_in(p->context) : NULL;
    if (!cx) {
        Py_XDECREF(values);
        return NULL;
    }
    py_list list;
    bool ok = py_list_from(cx, values, PY_KEPT, &list);
    ok = ok && lb_optimizer_restore(p->o, list.a, list.n);
    py_list_free(&list);
    Py_DECREF(values);
    if (!ok) return py_leave_failed(cx);
    py_leave(cx);
    Py_RETURN_NONE;
}

static PyObject *get_steps(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(lb_optimizer_steps(((py_optimizer *)self)->o));
}

static PyGetSetDef getset[] = {
    {"steps", get_steps, NULL, "completed steps", NULL},
    {0},
};

static PyMethodDef methods[] = {
    {"step", optimizer_step, METH_VARARGS,
     "step($self, params, grads, /)\n--\n\nThe updated parameters."},
    {"state", optimizer_state, METH_NOARGS,
     "state($self, /)\n--\n\nThe arrays of the state, as a dict."},
    {"restore", optimizer_restore, METH_O,
     "restore($self, state, /)\n--\n\nContinues from such a dict."},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_new, optimizer_new},
    {Py_tp_dealloc, optimizer_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_doc, "An optimizer of a list of arrays; see lowbit.Adam."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "lowbit._lowbit.Optimizer",
    .basicsize = sizeof(py_optimizer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

static PyObject *schedule_rate(PyObject *module, PyObject *args,
                               PyObject *names)
{
    (void)module;
    PyObject *step;
    lb_optimizer_config c;
    lb_quant_config state;
    int64_t at;
    if (!config_from(args, names, &step, &c, &state) || !py_int_from(step, &at))
        return NULL;
    return PyFloat_FromDouble(lb_schedule_rate(&c, at));
}

static PyMethodDef functions[] = {
    {"_schedule_rate", PY_FAST(schedule_rate), METH_VARARGS | METH_KEYWORDS,
     NULL},
    {0},
};

bool py_training_add(PyObject *module)
{
    if (!optimizer_type)
        optimizer_type =
            (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return optimizer_type && !PyModule_AddType(module, optimizer_type) &&
           !PyModule_AddFunctions(module, functions);
}
