/* py_calls.c - functions of arrays, from the table py_calls.def.
 *
 * A row's signature is parsed once. A call then converts its arguments by the
 * kinds of the row, and evaluates the row's expression without the GIL.
 */
#include "py_compose.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARAMS = 6 };

/* A converted argument. */
typedef union py_arg {
    lb_array *a;
    int64_t i;
    double f;
    bool b;
    lb_dtype d;
    lb_axes axes; /* n -1: None */
    lb_shape s;
    lb_key r;
} py_arg;

typedef struct py_param {
    char name[16];
    char text[12]; /* the default; "" if the argument is required */
    bool positional, keyword;
    PyObject *interned; /* the name */
} py_param;

typedef struct py_row {
    const char *name, *signature, *kinds;
    lb_array *(*run)(lb_ctx *cx, const py_arg *v);
    int n;            /* parameters */
    int n_positional; /* arguments that may be given by position */
    py_param param[MAX_PARAMS];
} py_row;

/* ---- the rows ------------------------------------------------------------ */

#define a0    (v[0].a)
#define a1    (v[1].a)
#define a2    (v[2].a)
#define i1    (v[1].i)
#define i2    (v[2].i)
#define f2    (v[2].f)
#define f3    (v[3].f)
#define f4    (v[4].f)
#define b2    (v[2].b)
#define d1    (v[1].d)
#define d2    (v[2].d)
#define s0    (v[0].s)
#define s1    (v[1].s)
#define s2    (v[2].s)
#define r0    (v[0].r)
#define axes1 (v[1].axes.n < 0 ? NULL : &v[1].axes)
#define axes2 (v[2].axes.n < 0 ? NULL : &v[2].axes)

#define CALL(name, signature, kinds, result, doc)                              \
    static lb_array *run_##name(lb_ctx *cx, const py_arg *v)                   \
    {                                                                          \
        return (result);                                                       \
    }
#include "py_calls.def"

enum {
#define CALL(name, signature, kinds, result, doc) ROW_##name,
#include "py_calls.def"
    N_ROWS
};

static py_row rows[] = {
#define CALL(name, signature, kinds, result, doc)                              \
    {#name, signature, kinds, run_##name, 0, 0, {{{0}}}},
#include "py_calls.def"
};

static PyObject *call(const py_row *row, PyObject *const *args, Py_ssize_t n,
                      PyObject *names);

#define CALL(name, signature, kinds, result, doc)                              \
    static PyObject *call_##name(PyObject *module, PyObject *const *args,      \
                                 Py_ssize_t n, PyObject *names)                \
    {                                                                          \
        (void)module;                                                          \
        return call(&rows[ROW_##name], args, n, names);                        \
    }
#include "py_calls.def"

PyMethodDef py_call_methods[] = {
#define CALL(name, signature, kinds, result, doc)                              \
    {#name, PY_FAST(call_##name), METH_FASTCALL | METH_KEYWORDS,               \
     #name "(" signature ")\n--\n\n" doc},
#include "py_calls.def"
    {0},
};

/* ---- signatures ---------------------------------------------------------- */

/* Parses "x, /, *, axis=None": the parameters before / only by position, those
 * after * only by name. */
static bool parse(py_row *row)
{
    const char *at = row->signature;
    bool only_names = false;
    int only_positions = 0;
    while (*at) {
        const size_t len = strcspn(at, ",");
        const size_t name = strcspn(at, ",=");
        if (*at == '/') {
            only_positions = row->n;
        } else if (*at == '*') {
            only_names = true;
        } else {
            py_param *p = &row->param[row->n++];
            if (name >= sizeof p->name || len - name >= sizeof p->text)
                return false;
            memcpy(p->name, at, name);
            if (len > name) memcpy(p->text, at + name + 1, len - name - 1);
            p->positional = !only_names;
            p->interned = PyUnicode_InternFromString(p->name);
            if (!p->interned) return false;
            if (!only_names) row->n_positional = row->n;
        }
        at += len;
        at += strspn(at, ", ");
    }
    for (int i = 0; i < row->n; i++)
        row->param[i].keyword = i >= only_positions;
    return (size_t)row->n == strlen(row->kinds);
}

bool py_calls_init(void)
{
    static bool done; /* the import lock is held */
    for (int r = 0; r < N_ROWS && !done; r++) {
        if (parse(&rows[r])) continue;
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_SystemError, "py_calls.def: %s", rows[r].name);
        return false;
    }
    return done = true;
}

/* ---- arguments ----------------------------------------------------------- */

static bool set_default(const py_param *p, char kind, py_arg *v)
{
    *v = (py_arg){0};
    switch (kind) {
    case 'i':
        v->i = strtoll(p->text, NULL, 10);
        break;
    case 'f':
        v->f = strtod(p->text, NULL);
        break;
    case 'b':
        v->b = strcmp(p->text, "True") == 0;
        break;
    case 'A':
        v->axes.n = -1;
        break;
    default:
        break; /* None */
    }
    return true;
}

static bool convert(lb_ctx *cx, PyObject *o, char kind, py_arg *v)
{
    switch (kind) {
    case 'a':
        return (v->a = py_operand(cx, o, PY_USED_NOW)) != NULL;
    case 'k':
        return (v->a = py_operand(cx, o, PY_KEPT)) != NULL;
    case 'n':
        v->a = o == Py_None ? NULL : py_operand(cx, o, PY_USED_NOW);
        return v->a || o == Py_None;
    case 'i':
        if (!py_int_from(o, &v->i)) return false;
        if (v->i >= INT32_MIN && v->i <= INT32_MAX) return true;
        PyErr_Format(PyExc_OverflowError, "%R is too large", o);
        return false;
    case 'f':
        v->f = PyFloat_AsDouble(o);
        return !PyErr_Occurred();
    case 'b': {
        const int truth = PyObject_IsTrue(o);
        v->b = truth > 0;
        return truth >= 0;
    }
    case 'A':
        return py_axes_from(o, &v->axes);
    case 'd':
        return py_dtype_from(o, &v->d);
    case 's':
        return py_shape_from(o, &v->s);
    default:
        return py_key_from(o, &v->r);
    }
}

static bool fail(const py_row *row, const char *what, const char *name)
{
    PyErr_Format(PyExc_TypeError, "%s(%s): %s%s%s", row->name, row->signature,
                 what, name ? " " : "", name ? name : "");
    return false;
}

/* Which parameter a keyword means, -1 and an exception if none. */
static int find(const py_row *row, PyObject *name)
{
    for (int i = 0; i < row->n; i++)
        if (row->param[i].keyword && row->param[i].interned == name) return i;
    for (int i = 0; i < row->n; i++)
        if (row->param[i].keyword &&
            PyUnicode_Compare(row->param[i].interned, name) == 0)
            return i;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (text) fail(row, "unexpected keyword", text);
    return -1;
}

/* Sorts the arguments by parameter; NULL where none is given. */
static bool bind(const py_row *row, PyObject *const *args, Py_ssize_t n,
                 PyObject *names, PyObject **given)
{
    if (n > row->n_positional)
        return fail(row, "too many positional arguments", NULL);
    for (int i = 0; i < row->n; i++)
        given[i] = i < n ? args[i] : NULL;
    const Py_ssize_t n_names = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t k = 0; k < n_names; k++) {
        const int i = find(row, PyTuple_GetItem(names, k));
        if (i < 0) return false;
        if (given[i]) return fail(row, "given twice:", row->param[i].name);
        given[i] = args[n + k];
    }
    for (int i = 0; i < row->n; i++)
        if (!given[i] && !row->param[i].text[0])
            return fail(row, "missing argument", row->param[i].name);
    return true;
}

static PyObject *call(const py_row *row, PyObject *const *args, Py_ssize_t n,
                      PyObject *names)
{
    PyObject *given[MAX_PARAMS];
    py_arg v[MAX_PARAMS];
    if (!bind(row, args, n, names, given)) return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    for (int i = 0; i < row->n; i++)
        if (!(given[i] ? convert(cx, given[i], row->kinds[i], &v[i])
                       : set_default(&row->param[i], row->kinds[i], &v[i])))
            return py_leave_failed(cx);
    lb_array *a;
    Py_BEGIN_ALLOW_THREADS
    a = row->run(cx, v);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, a);
}
