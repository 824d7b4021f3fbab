/* py_context.c - one context of the library for each Python thread.
 *
 * A thread's contexts are a stack: its own one, which is opened on first use
 * and closed with the thread, and above it those of `with config(...)` and of
 * objects that belong to another thread's context while they run.
 */
#include "py_lowbit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct py_context {
    lb_ctx *cx;
    lb_options options;
    pthread_mutex_t lock; /* recursive: callbacks call the library again */
    atomic_int refs;
    int forks; /* forked_times when it was opened */
    int busy;  /* callbacks that run */
};

enum { MAX_STACK = 64 };
typedef struct py_thread {
    py_context *stack[MAX_STACK];
    int n;
    char *logged[16]; /* messages that become warnings */
    int n_logged;
} py_thread;

static _Thread_local py_thread *here;
static pthread_key_t at_thread_exit;
static atomic_int forked_times;

/* ---- loans --------------------------------------------------------------- */

static _Atomic(py_loan *) returned;

py_loan *py_loan_new(void (*release)(py_loan *))
{
    py_loan *loan = calloc(1, sizeof *loan);
    if (!loan) PyErr_NoMemory();
    if (loan) loan->release = release;
    return loan;
}

void py_loan_done(void *user)
{
    py_loan *loan = user;
    loan->next = atomic_load(&returned);
    while (!atomic_compare_exchange_weak(&returned, &loan->next, loan))
        continue;
}

void py_loans_drain(void)
{
    if (!atomic_load_explicit(&returned, memory_order_relaxed)) return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    py_loan *loan = atomic_exchange(&returned, NULL);
    while (loan) {
        py_loan *next = loan->next;
        loan->release(loan);
        free(loan);
        loan = next;
    }
    PyErr_Restore(type, value, trace);
}

/* ---- opening and closing ------------------------------------------------- */

/* Called without the GIL: the messages are shown by py_leave. */
static void log_message(void *user, const char *sentence)
{
    (void)user;
    py_thread *t = here;
    const int room = (int)(sizeof t->logged / sizeof *t->logged);
    char *copy = t && t->n_logged < room ? strdup(sentence) : NULL;
    if (copy) t->logged[t->n_logged++] = copy;
}

static py_context *context_open(const lb_options *options)
{
    py_context *c = calloc(1, sizeof *c);
    if (!c) {
        PyErr_NoMemory();
        return NULL;
    }
    if (options) c->options = *options;
    c->options.log = log_message;
    c->cx = lb_open(&c->options);
    if (!c->cx) {
        char why[256];
        PyErr_SetString(py_error_class(LB_E_ARG),
                        lb_open_why(&c->options, why, sizeof why));
        free(c);
        return NULL;
    }
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&c->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    atomic_init(&c->refs, 1);
    c->forks = atomic_load(&forked_times);
    return c;
}

void py_context_release(py_context *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) > 1) return;
    /* After fork the workers of the context do not exist: closing it would wait
     * for them. */
    if (c->forks != atomic_load(&forked_times)) return;
    lb_close(c->cx);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static void thread_free(void *user)
{
    py_thread *t = user;
    while (t->n)
        py_context_release(t->stack[--t->n]);
    while (t->n_logged)
        free(t->logged[--t->n_logged]);
    free(t);
    here = NULL;
}

static void after_fork(void)
{
    atomic_fetch_add(&forked_times, 1);
}

bool py_contexts_init(void)
{
    static bool done; /* the import lock is held */
    if (done) return true;
    if (pthread_key_create(&at_thread_exit, thread_free) ||
        pthread_atfork(NULL, NULL, after_fork)) {
        PyErr_SetString(PyExc_RuntimeError, "no thread-specific data left");
        return false;
    }
    return done = true;
}

static py_thread *this_thread(void)
{
    if (here) return here;
    py_thread *t = calloc(1, sizeof *t);
    if (!t || pthread_setspecific(at_thread_exit, t)) {
        free(t);
        PyErr_NoMemory();
        return NULL;
    }
    return here = t;
}

/* Replaces the contexts of the parent process by new ones. */
static bool renew(py_thread *t)
{
    for (int i = 0; i < t->n; i++) {
        if (t->stack[i]->forks == atomic_load(&forked_times)) continue;
        lb_options options = t->stack[i]->options;
        options.team = NULL;
        py_context *c = context_open(&options);
        if (!c) return false;
        py_context_release(t->stack[i]);
        t->stack[i] = c;
    }
    return true;
}

/* The context of this thread. */
static py_context *current(void)
{
    py_thread *t = this_thread();
    if (!t) return NULL;
    if (!t->n) {
        py_context *c = context_open(NULL);
        if (!c) return NULL;
        t->stack[t->n++] = c;
    }
    if (t->stack[t->n - 1]->forks !=
            atomic_load_explicit(&forked_times, memory_order_relaxed) &&
        !renew(t))
        return NULL;
    return t->stack[t->n - 1];
}

static bool push(py_context *c)
{
    py_thread *t = this_thread();
    if (!t) return false;
    if (t->n == MAX_STACK) {
        PyErr_Format(PyExc_RecursionError, "%d contexts in one thread",
                     MAX_STACK);
        return false;
    }
    t->stack[t->n++] = c;
    return true;
}

py_context *py_context_hold(void)
{
    py_context *c = current();
    if (c) atomic_fetch_add(&c->refs, 1);
    return c;
}

bool py_is_recording(void)
{
    return here && here->n && here->stack[here->n - 1]->busy > 0;
}

static bool refuse_while_busy(void)
{
    if (!py_is_recording()) return true;
    PyErr_SetString(py_error_class(LB_E_ARG),
                    "config: not inside a function that is differentiated or "
                    "compiled; put it around the call");
    return false;
}

bool py_context_push(const lb_options *options)
{
    if (!current() || !refuse_while_busy()) return false;
    py_context *c = context_open(options);
    if (!c) return false;
    if (push(c)) return true;
    py_context_release(c);
    return false;
}

bool py_context_pop(void)
{
    py_thread *t = this_thread();
    if (!t || !refuse_while_busy()) return false;
    if (t->n < 2) {
        PyErr_SetString(py_error_class(LB_E_ARG),
                        "config: it was left in another thread than entered");
        return false;
    }
    py_context_release(t->stack[--t->n]);
    return true;
}

bool py_context_resize(int threads, const lb_team *team)
{
    py_context *c = current();
    if (!c) return false;
    py_thread *t = here;
    if (atomic_load_explicit(&forked_times, memory_order_relaxed)) team = NULL;
    if (t->n > 1 || c->busy) return true;
    if (lb_threads(c->cx) == threads && c->options.team == team) return true;
    lb_options options = c->options;
    options.threads = threads;
    options.team = team;
    py_context *other = context_open(&options);
    if (!other) return false;
    t->stack[0] = other;
    py_context_release(c);
    return true;
}

/* ---- calls --------------------------------------------------------------- */

/* If another thread uses the context, waits without the GIL, which that thread
 * may need to finish. */
static lb_ctx *begin(py_context *c)
{
    if (pthread_mutex_trylock(&c->lock)) {
        Py_BEGIN_ALLOW_THREADS
        pthread_mutex_lock(&c->lock);
        Py_END_ALLOW_THREADS
    }
    lb_enter(c->cx);
    return c->cx;
}

lb_ctx *py_enter(void)
{
    return py_enter_in(NULL);
}

lb_ctx *py_enter_in(py_context *c)
{
    if (!c && !(c = current())) return NULL;
    if (c->forks != atomic_load_explicit(&forked_times, memory_order_relaxed)) {
        PyErr_SetString(py_error_class(LB_E_ARG),
                        "this object belongs to the parent process: make it "
                        "after the fork");
        return NULL;
    }
    if (!push(c)) return NULL;
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return begin(c);
}

static void show_logged(py_thread *t)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    while (t->n_logged) {
        char *text = t->logged[--t->n_logged];
        const int raised = PyErr_WarnEx(PyExc_UserWarning, text, 1);
        free(text);
        if (!raised) continue;
        if (type)
            PyErr_Clear();
        else
            PyErr_Fetch(&type, &value, &trace);
    }
    PyErr_Restore(type, value, trace);
}

void py_leave(lb_ctx *cx)
{
    py_thread *t = here;
    py_context *c = t->stack[--t->n];
    lb_leave(cx);
    pthread_mutex_unlock(&c->lock);
    py_context_release(c);
    py_loans_drain();
    if (t->n_logged) show_logged(t);
}

PyObject *py_leave_with(lb_ctx *cx, lb_array *a)
{
    PyObject *o = a ? py_array_new(a) : py_raise(cx);
    py_leave(cx);
    if (!o || !PyErr_Occurred()) return o;
    Py_DECREF(o); /* a warning that is an error */
    return NULL;
}

PyObject *py_leave_failed(lb_ctx *cx)
{
    py_raise(cx);
    py_leave(cx);
    return NULL;
}

/* ---- callbacks ----------------------------------------------------------- */

bool py_callback_begin(py_callback *c, PyObject *fn)
{
    *c = (py_callback){.fn = fn, .kept = PyList_New(0)};
    if (!c->kept) return false;
    here->stack[here->n - 1]->busy++;
    c->thread = PyEval_SaveThread();
    return true;
}

bool py_callback_end(py_callback *c)
{
    PyEval_RestoreThread(c->thread);
    here->stack[here->n - 1]->busy--;
    if (c->type) PyErr_Restore(c->type, c->value, c->trace);
    return !c->type;
}

void py_callback_enter(py_callback *c)
{
    PyEval_RestoreThread(c->thread);
}

void py_callback_leave(py_callback *c, bool failed)
{
    if (failed && !c->type) PyErr_Fetch(&c->type, &c->value, &c->trace);
    if (failed) PyErr_Clear();
    c->thread = PyEval_SaveThread();
}
