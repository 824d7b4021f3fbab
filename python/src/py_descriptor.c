/* py_descriptor.c - arrays as parts and a descriptor, for lowbit.torch and
 * others that keep them in containers of their own; and the threads of their
 * calls. */
#include "py_files.h"

#include <dlfcn.h>
#include <stdlib.h>

/* The descriptor of x, and its parts as a dict. */
static PyObject *to_parts(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *x;
    char part_name[128];
    if (!PyArg_ParseTuple(args, "O!:_to_parts", py_array_type, &x)) return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_array_of(x);
    const int64_t n = lb_descriptor(cx, a, NULL, 0);
    if (n < 0) return py_leave_failed(cx);
    char *text = malloc((size_t)n + 1);
    if (!text) {
        PyErr_NoMemory();
        return py_leave_failed(cx);
    }
    lb_descriptor(cx, a, text, (size_t)n + 1);
    PyObject *dict = PyDict_New();
    lb_array *part;
    for (int k = 0;
         dict && (part = lb_stored_part(cx, a, k, part_name, sizeof part_name));
         k++) {
        PyObject *o = py_array_new(part);
        if (!o || PyDict_SetItemString(dict, part_name, o)) Py_CLEAR(dict);
        Py_XDECREF(o);
    }
    if (lb_error_status(cx)) Py_CLEAR(dict); /* not the last part */
    PyObject *result =
        dict ? Py_BuildValue("s#N", text, (Py_ssize_t)n, dict) : NULL;
    free(text);
    if (!result) return py_leave_failed(cx);
    py_leave(cx);
    return result;
}

/* An array that shares the parts, a dict of Arrays. The names belong to the
 * dict, so the GIL is kept. */
static PyObject *from_descriptor(PyObject *module, PyObject *args)
{
    (void)module;
    enum { MOST = 64 };
    PyObject *parts, *key, *value;
    const char *text, *name[MOST];
    lb_array *part[MOST];
    Py_ssize_t size, at = 0;
    int n = 0;
    if (!PyArg_ParseTuple(args, "s#O!:_from_descriptor", &text, &size,
                          &PyDict_Type, &parts))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    while (n < MOST && PyDict_Next(parts, &at, &key, &value)) {
        name[n] = PyUnicode_AsUTF8AndSize(key, NULL);
        part[n] = name[n] ? py_operand(cx, value, PY_KEPT) : NULL;
        if (!part[n++]) return py_leave_failed(cx);
    }
    return py_leave_with(
        cx, lb_from_descriptor(cx, text, (size_t)size, name, part, n));
}

/* ---- threads ------------------------------------------------------------- */

/* OpenMP's threads, if the process has an OpenMP (GNU's, or LLVM's, which has
 * the same function): torch's pool. After a parallel operation they spin for
 * some ms, and other threads would have to share a core with them. */
static struct {
    bool known;
    void (*parallel)(void (*fn)(void *), void *data, unsigned n,
                     unsigned flags);
    int (*thread)(void);
} omp;

typedef struct py_body {
    void (*body)(void *arg, int k);
    void *arg;
} py_body;

static void omp_body(void *data)
{
    const py_body *b = data;
    b->body(b->arg, omp.thread());
}

static void omp_run(void *user, int n, void (*body)(void *arg, int k),
                    void *arg)
{
    (void)user;
    py_body b = {body, arg};
    omp.parallel(omp_body, &b, (unsigned)n, 0);
}

static const lb_team *omp_team(void)
{
    static const lb_team team = {omp_run, NULL};
    if (!omp.known) {
        void *f = dlsym(RTLD_DEFAULT, "GOMP_parallel");
        void *g = dlsym(RTLD_DEFAULT, "omp_get_thread_num");
        memcpy(&omp.parallel, &f, sizeof f);
        memcpy(&omp.thread, &g, sizeof g);
        omp.known = true;
    }
    return omp.parallel && omp.thread ? &team : NULL;
}

/* The number of threads of this thread's calls from now on; they are OpenMP's
 * if there is one. */
static PyObject *use_threads(PyObject *module, PyObject *n)
{
    (void)module;
    int64_t threads;
    if (!py_int_from(n, &threads)) return NULL;
    if (threads < 1 || threads > 256) threads = 256;
    if (!py_context_resize((int)threads, omp_team())) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef py_descriptor_methods[] = {
    {"_to_parts", to_parts, METH_VARARGS, NULL},
    {"_from_descriptor", from_descriptor, METH_VARARGS, NULL},
    {"_use_threads", use_threads, METH_O, NULL},
    {0},
};
