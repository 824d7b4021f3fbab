/* py_jobs.c - jobs from file to file: quantize, convert, shard, merge.
 *
 * The library calls back on the thread of the job: after each array (a row of
 * the report), after each piece (progress; then signals are handled, and an
 * exception of a callback stops the job), and with warnings and notes.
 */
#include "py_files.h"

#include <stdlib.h>

enum { MOST_OTHERS = 32 };

typedef struct py_job {
    py_callback c;    /* fn: progress, or None */
    PyObject *report; /* list of dicts */
    PyObject *notes;  /* list of texts */
    PyObject *warnings;
} py_job;

/* ---- callbacks ----------------------------------------------------------- */

static PyObject *text_or_none(const char *text)
{
    return text ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

/* Adds an object of the caller's to a dict. */
static bool put(PyObject *dict, const char *key, PyObject *o)
{
    const bool ok = dict && o && !PyDict_SetItemString(dict, key, o);
    Py_XDECREF(o);
    return ok;
}

static bool put_error(PyObject *dict, const lb_difference *d)
{
    const bool some = d->n > 0;
    return put(dict, "sums",
               Py_BuildValue("LLLddddd", (long long)d->n, (long long)d->apart,
                             (long long)d->nonfinite, d->aa, d->bb, d->ab,
                             d->dd, d->max)) &&
           put(dict, "nrmse",
               some ? PyFloat_FromDouble(lb_difference_nrmse(d))
                    : Py_NewRef(Py_None)) &&
           put(dict, "max",
               some ? PyFloat_FromDouble(d->max) : Py_NewRef(Py_None)) &&
           put(dict, "cosine",
               some ? PyFloat_FromDouble(lb_difference_cosine(d))
                    : Py_NewRef(Py_None));
}

static const char *moved_word(lb_moved moved)
{
    static const char *const word[] = {NULL, "moved", "rounded", "requantized",
                                       "refused"};
    return word[moved];
}

static void done(void *user, const lb_written *w)
{
    py_job *j = user;
    py_callback_enter(&j->c);
    PyObject *d = py_entry_dict(w->entry);
    const bool ok =
        d && put(d, "output_format", text_or_none(w->format)) &&
        put(d, "output_dtype",
            text_or_none(w->dtype ? lb_dtype_name(w->dtype) : NULL)) &&
        put(d, "output_bytes", PyLong_FromUnsignedLongLong(w->nbytes)) &&
        put(d, "kept", text_or_none(w->kept)) &&
        put(d, "fell_back", PyBool_FromLong(w->fell_back)) &&
        put(d, "resumed", PyBool_FromLong(w->resumed)) &&
        put(d, "moved", text_or_none(moved_word(w->moved))) &&
        put(d, "refused", text_or_none(w->refused)) &&
        put_error(d, &w->error) && !PyList_Append(j->report, d);
    Py_XDECREF(d);
    py_callback_leave(&j->c, !ok);
}

static void progress(void *user, const lb_progress *p)
{
    py_job *j = user;
    if (j->c.type) return; /* the job is about to stop */
    py_callback_enter(&j->c);
    PyObject *r =
        PyObject_CallFunction(j->c.fn, "KK", (unsigned long long)p->done,
                              (unsigned long long)p->total);
    Py_XDECREF(r);
    py_callback_leave(&j->c, !r);
}

static bool cancel(void *user)
{
    py_job *j = user;
    if (j->c.type) return true;
    py_callback_enter(&j->c);
    const bool stop = PyErr_CheckSignals() != 0;
    py_callback_leave(&j->c, stop);
    return stop;
}

static void add_text(py_job *j, PyObject *list, const char *text)
{
    py_callback_enter(&j->c);
    PyObject *o = PyUnicode_FromString(text);
    const bool ok = o && !PyList_Append(list, o);
    Py_XDECREF(o);
    py_callback_leave(&j->c, !ok);
}

static void note(void *user, const char *text)
{
    py_job *j = user;
    add_text(j, j->notes, text);
}

static void warn(void *user, const char *text)
{
    py_job *j = user;
    add_text(j, j->warnings, text);
}

/* ---- begin and end ------------------------------------------------------- */

static bool begin(py_job *j, PyObject *fn)
{
    j->report = PyList_New(0);
    j->notes = PyList_New(0);
    j->warnings = PyList_New(0);
    return j->report && j->notes && j->warnings && py_callback_begin(&j->c, fn);
}

/* (report, notes, warnings), or the exception of a callback, or the job's. */
static PyObject *end(py_job *j, lb_ctx *cx, bool ran, bool ok)
{
    PyObject *result = NULL;
    if (ran && py_callback_end(&j->c) && ok)
        result = Py_BuildValue("OOO", j->report, j->notes, j->warnings);
    if (ran) Py_XDECREF(j->c.kept);
    Py_XDECREF(j->report);
    Py_XDECREF(j->notes);
    Py_XDECREF(j->warnings);
    if (!result) return py_leave_failed(cx);
    py_leave(cx);
    return result;
}

/* ---- quantize ------------------------------------------------------------ */

typedef struct py_quantize_arguments {
    PyObject *from, *to, *selection, *others;
    lb_quant_config other[MOST_OTHERS];
    lb_quantize_options o;
    PyObject *progress;
} py_quantize_arguments;

static bool others_from(py_quantize_arguments *a)
{
    const Py_ssize_t n = a->others ? PyList_Size(a->others) : 0;
    if (n > MOST_OTHERS)
        PyErr_Format(py_error_class(LB_E_ARG), "%zd types: at most %d", n,
                     MOST_OTHERS);
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++)
        if (!py_config_from(PyList_GetItem(a->others, i), &a->other[i]))
            return false;
    a->o.other = a->other;
    a->o.n_other = (int)n;
    return !PyErr_Occurred();
}

static bool quantize_arguments(PyObject *args, PyObject *names,
                               py_quantize_arguments *a)
{
    static char *keys[] = {"",
                           "",
                           "config",
                           "selection",
                           "others",
                           "kind",
                           "layout",
                           "directory",
                           "max_memory",
                           "sync",
                           "measure",
                           "dry_run",
                           "resume",
                           "strict",
                           "verify",
                           "fallback",
                           "target_bits",
                           "target_bytes",
                           "linear_class",
                           "progress",
                           NULL};
    static const py_word fallbacks[] = {
        {"keep", LB_FALLBACK_KEEP},
        {"error", LB_FALLBACK_ERROR},
        {"adjust", LB_FALLBACK_ADJUST},
        {NULL, 0},
    };
    PyObject *config = Py_None, *fallback = Py_None;
    int directory = 0, sync = 1, measure = 0, dry = 0, resume = 0, strict = 0,
        verify = 0;
    unsigned long long memory = 0, bytes = 0;
    *a = (py_quantize_arguments){.progress = Py_None};
    lb_quantize_options *o = &a->o;
    o->struct_size = sizeof *o;
    if (!PyArg_ParseTupleAndKeywords(
            args, names, "O&O&|$OO!O!zzpKppppppOdKzO:_quantize_file", keys,
            PyUnicode_FSConverter, &a->from, PyUnicode_FSConverter, &a->to,
            &config, &PyList_Type, &a->selection, &PyList_Type, &a->others,
            &o->kind, &o->layout, &directory, &memory, &sync, &measure, &dry,
            &resume, &strict, &verify, &fallback, &o->target_bits, &bytes,
            &o->linear_class, &a->progress))
        return false;
    const int back = py_word_value(fallback, fallbacks, "fallback");
    if (back < 0 || !py_config_from(config, &o->config) || !others_from(a))
        return false;
    o->directory = directory;
    o->no_sync = !sync;
    o->measure = measure;
    o->dry_run = dry;
    o->resume = resume;
    o->strict = strict;
    o->verify = verify;
    o->max_memory = memory;
    o->target_bytes = bytes;
    o->fallback = (lb_shape_fallback)back;
    return true;
}

/* A list of pairs: "include", "exclude", "override" or "recipe", and a text. */
static lb_selection *selection_from(lb_ctx *cx, PyObject *list)
{
    lb_selection *s = lb_selection_open(cx);
    const Py_ssize_t n = list ? PyList_Size(list) : 0;
    for (Py_ssize_t i = 0; s && i < n; i++) {
        const char *what, *text;
        PyObject *row = PyList_GetItem(list, i);
        if (!PyTuple_Check(row)) row = NULL;
        if (!row) PyErr_SetString(PyExc_TypeError, "pairs of texts");
        if (!row || !PyArg_ParseTuple(row, "ss", &what, &text) ||
            !(strcmp(what, "include") == 0   ? lb_selection_include(cx, s, text)
              : strcmp(what, "exclude") == 0 ? lb_selection_exclude(cx, s, text)
              : strcmp(what, "override") == 0
                  ? lb_selection_override(cx, s, text)
                  : lb_selection_recipe(cx, s, text))) {
            lb_selection_close(s);
            return NULL;
        }
    }
    return s;
}

static PyObject *quantize_file(PyObject *module, PyObject *args,
                               PyObject *names)
{
    (void)module;
    py_quantize_arguments a;
    PyObject *result = NULL;
    lb_ctx *cx = quantize_arguments(args, names, &a) ? py_enter() : NULL;
    if (cx) {
        py_job j = {0};
        lb_quantize_options *o = &a.o;
        o->selection = selection_from(cx, a.selection);
        const bool ran = o->selection && begin(&j, a.progress);
        o->done = done;
        o->progress = a.progress == Py_None ? NULL : progress;
        o->cancel = cancel;
        o->note = note;
        o->warn = o->strict ? NULL : warn;
        o->done_user = o->progress_user = o->cancel_user = o->note_user =
            o->warn_user = &j;
        const char *to = PyBytes_AsString(a.to);
        const bool ok = ran && lb_quantize_file(cx, PyBytes_AsString(a.from),
                                                *to ? to : NULL, o);
        lb_selection_close(o->selection);
        result = end(&j, cx, ran, ok);
    }
    Py_XDECREF(a.from);
    Py_XDECREF(a.to);
    return result;
}

/* ---- convert ------------------------------------------------------------- */

static PyObject *convert_file(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    static char *keys[] = {"",       "",        "dtype",        "keep",
                           "kind",   "layout",  "directory",    "max_memory",
                           "sync",   "measure", "dry_run",      "resume",
                           "strict", "verify",  "linear_class", "progress",
                           "target", "allow",   "block_size",   NULL};
    PyObject *from = NULL, *to = NULL, *dtype = Py_None, *fn = Py_None,
             *result = NULL;
    int keep = 0, directory = 0, sync = 1, measure = 0, dry = 0, resume = 0,
        strict = 0, verify = 0;
    unsigned long long memory = 0;
    int allow = LB_ALLOW_EXACT;
    long long block_size = 0;
    lb_convert_options o = {.struct_size = sizeof o};
    lb_ctx *cx = NULL;
    if (PyArg_ParseTupleAndKeywords(
            args, names, "O&O&|$OpzzpKppppppzOziL:_convert_file", keys,
            PyUnicode_FSConverter, &from, PyUnicode_FSConverter, &to, &dtype,
            &keep, &o.kind, &o.layout, &directory, &memory, &sync, &measure,
            &dry, &resume, &strict, &verify, &o.linear_class, &fn, &o.target,
            &allow, &block_size) &&
        py_dtype_from(dtype, &o.dtype))
        cx = py_enter();
    if (cx) {
        py_job j = {0};
        o.keep = keep;
        o.allow = (lb_allow)allow;
        o.block_size = block_size;
        o.directory = directory;
        o.no_sync = !sync;
        o.measure = measure;
        o.dry_run = dry;
        o.resume = resume;
        o.strict = strict;
        o.verify = verify;
        o.max_memory = memory;
        o.done = done;
        o.progress = fn == Py_None ? NULL : progress;
        o.cancel = cancel;
        o.done_user = o.progress_user = o.cancel_user = &j;
        const bool ran = begin(&j, fn);
        const char *path = PyBytes_AsString(to);
        const bool ok = ran && lb_convert_file(cx, PyBytes_AsString(from),
                                               *path ? path : NULL, &o);
        result = end(&j, cx, ran, ok);
    }
    Py_XDECREF(from);
    Py_XDECREF(to);
    return result;
}

/* ---- shard and merge ----------------------------------------------------- */

static void placed(void *user, const lb_placement *p, int64_t i, int64_t n)
{
    (void)i, (void)n;
    py_job *j = user;
    py_callback_enter(&j->c);
    PyObject *d = py_entry_dict(p->entry);
    const bool ok = d && put(d, "rule", text_or_none(p->pattern)) &&
                    put(d, "replicated", text_or_none(p->whole)) &&
                    !PyList_Append(j->report, d);
    Py_XDECREF(d);
    py_callback_leave(&j->c, !ok);
}

/* _shard_file(from, to, mesh, rules, *, relaxed, dry_run, sync) */
static PyObject *shard_file(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    static char *keys[] = {"", "", "", "", "relaxed", "dry_run", "sync", NULL};
    PyObject *from = NULL, *to = NULL, *rules, *result = NULL;
    int relaxed = 0, dry = 0, sync = 1;
    lb_shard_options o = {.struct_size = sizeof o};
    lb_ctx *cx = NULL;
    if (PyArg_ParseTupleAndKeywords(
            args, names, "O&O&sO!|$ppp:_shard_file", keys,
            PyUnicode_FSConverter, &from, PyUnicode_FSConverter, &to, &o.mesh,
            &PyList_Type, &rules, &relaxed, &dry, &sync))
        cx = py_enter();
    if (cx) {
        py_job j = {0};
        o.relaxed = relaxed;
        o.dry_run = dry;
        o.no_sync = !sync;
        o.rules = lb_rules_open(cx);
        bool ok = o.rules != NULL;
        for (Py_ssize_t i = 0; ok && i < PyList_Size(rules); i++) {
            const char *text =
                PyUnicode_AsUTF8AndSize(PyList_GetItem(rules, i), NULL);
            ok = text && lb_rules_add(cx, o.rules, text);
        }
        o.placed = placed;
        o.cancel = cancel;
        o.user = o.cancel_user = &j;
        const bool ran = ok && begin(&j, Py_None);
        ok = ran && lb_shard_file(cx, PyBytes_AsString(from),
                                  PyBytes_AsString(to), &o);
        lb_rules_close(o.rules);
        result = end(&j, cx, ran, ok);
    }
    Py_XDECREF(from);
    Py_XDECREF(to);
    return result;
}

static PyObject *merge_file(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *from = NULL, *to = NULL, *result = NULL;
    int sync = 1;
    lb_ctx *cx = NULL;
    if (PyArg_ParseTuple(args, "O&O&|p:_merge_file", PyUnicode_FSConverter,
                         &from, PyUnicode_FSConverter, &to, &sync))
        cx = py_enter();
    if (cx) {
        py_job j = {0};
        const bool ran = begin(&j, Py_None);
        const lb_merge_options o = {.struct_size = sizeof o,
                                    .no_sync = !sync,
                                    .cancel = cancel,
                                    .cancel_user = &j};
        const bool ok = ran && lb_merge_file(cx, PyBytes_AsString(from),
                                             PyBytes_AsString(to), &o);
        result = end(&j, cx, ran, ok);
    }
    Py_XDECREF(from);
    Py_XDECREF(to);
    return result;
}

PyMethodDef py_job_methods[] = {
    {"_quantize_file", PY_FAST(quantize_file), METH_VARARGS | METH_KEYWORDS,
     NULL},
    {"_convert_file", PY_FAST(convert_file), METH_VARARGS | METH_KEYWORDS,
     NULL},
    {"_shard_file", PY_FAST(shard_file), METH_VARARGS | METH_KEYWORDS, NULL},
    {"_merge_file", merge_file, METH_VARARGS, NULL},
    {0},
};
