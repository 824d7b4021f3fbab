/* py_lowbit.h - what the files of the Python extension share.
 *
 * Every call into the library runs between py_enter and py_leave: in the
 * context of this thread, in a scope of its own, with the GIL released while
 * the library computes (Py_BEGIN_ALLOW_THREADS). Arrays that Python sees are
 * Array objects, each of which holds a reference (lb_ref).
 *
 * Functions that return a pointer return NULL, and those that return bool
 * false, with a Python exception set, unless a comment says otherwise.
 */
#ifndef PY_LOWBIT_H
#define PY_LOWBIT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "lowbit.h"

/* ---- contexts ------------------------------------------------------------ */

/* A context of the library with a lock: objects that belong to it (optimizers,
 * compiled functions) may be used from any thread. */
typedef struct py_context py_context;

/* Locks the context of this thread, which is opened on first use, and opens a
 * scope. */
lb_ctx *py_enter(void);
/* The same with a given context, which is that of this thread until py_leave.
 * NULL: the current one. */
lb_ctx *py_enter_in(py_context *c);
/* Closes the scope, unlocks, and frees what arrays that died had borrowed from
 * Python. Keeps a set exception. cx: as returned by py_enter. */
void py_leave(lb_ctx *cx);
/* py_leave; a as an Array object, or NULL: raises the context's error. */
PyObject *py_leave_with(lb_ctx *cx, lb_array *a);
/* Raises the context's error, if any, and clears it. Returns NULL. A Python
 * exception that is set already stays. */
PyObject *py_raise(lb_ctx *cx);
/* py_raise and py_leave. */
PyObject *py_leave_failed(lb_ctx *cx);

/* The context of this thread, with a reference that py_context_release gives
 * back; it may be the last one. */
py_context *py_context_hold(void);
void py_context_release(py_context *c);
/* Opens a context and makes it that of this thread; py_context_pop closes it
 * and returns to the one before. */
bool py_context_push(const lb_options *options);
bool py_context_pop(void);
/* This thread's own context has so many threads from now on, those of the team
 * (static; NULL: its own): if it has others, it is replaced. Contexts of
 * py_context_push, and those that are in use, keep theirs. In a process that
 * was forked a team is not used: its threads do not exist there. */
bool py_context_resize(int threads, const lb_team *team);

/* Python functions that the library calls. py_callback_begin: before the
 * library is called; it releases the GIL, and marks the context as busy.
 * py_callback_enter and _leave: around the Python code in the callback. */
typedef struct py_callback {
    PyObject *fn;
    PyObject *kept; /* list: results that the library still uses */
    PyThreadState *thread;
    PyObject *type, *value, *trace; /* the exception that ended fn */
} py_callback;
bool py_callback_begin(py_callback *c, PyObject *fn);
/* Returns false, with the exception of fn set, if there was one. */
bool py_callback_end(py_callback *c);
void py_callback_enter(py_callback *c);
/* failed: takes the exception that is set. */
void py_callback_leave(py_callback *c, bool failed);
/* Whether a function is being differentiated or traced in this thread. */
bool py_is_recording(void);

/* Adds the exceptions to the module; Python's class for a status. */
bool py_errors_add(PyObject *module);
PyObject *py_error_class(lb_status status);
bool py_contexts_init(void);

/* ---- objects that arrays have borrowed ----------------------------------- */

/* A buffer, or a capsule of DLPack, that an array uses without a copy. Released
 * by the next py_leave of any thread after the array died: the library may free
 * arrays where the GIL is not held. */
typedef struct py_loan {
    struct py_loan *next;
    void (*release)(struct py_loan *); /* called with the GIL */
    Py_buffer buffer;
    void *other;
} py_loan;
py_loan *py_loan_new(void (*release)(py_loan *));
void py_loan_done(void *loan); /* lb_wrap's done */
void py_loans_drain(void);

/* ---- dtypes -------------------------------------------------------------- */

bool py_dtypes_add(PyObject *module);
PyObject *py_dtype_object(lb_dtype dtype);
/* A dtype of lowbit, numpy, torch or Python (float, int, bool), or a name. None
 * is LB_NO_DTYPE. */
bool py_dtype_from(PyObject *o, lb_dtype *dtype);
bool py_dtype_is_float(lb_dtype dtype);
bool py_dtype_is_signed(lb_dtype dtype);
bool py_dtype_is_unsigned(lb_dtype dtype);
/* numpy's name: "float32". */
const char *py_dtype_name(lb_dtype dtype);

/* ---- arrays -------------------------------------------------------------- */

typedef struct py_array {
    PyObject_HEAD lb_array *a;
    PyObject *weak;
} py_array;

extern PyTypeObject *py_array_type;
bool py_array_add(PyObject *module);
/* An Array that holds a reference of its own to a. */
PyObject *py_array_new(lb_array *a);
static inline bool py_is_array(PyObject *o)
{
    return Py_TYPE(o) == py_array_type;
}
static inline lb_array *py_array_of(PyObject *o)
{
    return ((py_array *)o)->a;
}

/* Methods and slots of Array that are defined in other files. */
extern PyMethodDef py_exchange_methods[], py_quantized_methods[],
    py_operator_methods[];
extern PyGetSetDef py_quantized_getset[];
extern PyType_Slot py_operator_slots[];
int py_array_buffer(PyObject *self, Py_buffer *view, int flags);
void py_array_release(PyObject *self, Py_buffer *view);
PyObject *py_array_item(PyObject *self, PyObject *key);
PyObject *py_array_at(PyObject *self, Py_ssize_t i);

/* ---- from Python to the library ------------------------------------------ */

typedef enum py_operand_use {
    PY_USED_NOW, /* memory of other objects may be used until py_leave */
    PY_KEPT,     /* ... is copied: results may share it */
    PY_TRIED,    /* PY_USED_NOW, in an operator: returns NULL without an
                  * exception for values that it should not convert */
} py_operand_use;
/* An Array, a number (a weak scalar), any object with a buffer, __dlpack__ or
 * __array__, or nested sequences of numbers. The result is valid until
 * py_leave, while o is. */
lb_array *py_operand(lb_ctx *cx, PyObject *o, py_operand_use use);
/* The same without weak scalars. copy: -1 as needed, 0 never, 1 always. */
lb_array *py_asarray(lb_ctx *cx, PyObject *o, lb_dtype dtype, int copy);
/* Nested sequences of numbers. */
lb_array *py_from_sequence(lb_ctx *cx, PyObject *o, lb_dtype dtype);
/* An object with __dlpack__. */
lb_array *py_from_dlpack(lb_ctx *cx, PyObject *o, int copy);

bool py_int_from(PyObject *o, int64_t *i);
/* An integer or a sequence of integers. */
bool py_shape_from(PyObject *o, lb_shape *shape);
/* The same; None: axes->n is -1. */
bool py_axes_from(PyObject *o, lb_axes *axes);
bool py_key_from(PyObject *o, lb_key *key);
PyObject *py_shape_tuple(lb_shape shape);

/* A list of operands. free(list->a) belongs to the caller. */
typedef struct py_list {
    lb_array **a;
    int n;
} py_list;
bool py_list_from(lb_ctx *cx, PyObject *o, py_operand_use use, py_list *list);
void py_list_free(py_list *list);
/* Array objects of n arrays, as a tuple. */
PyObject *py_tuple_of(lb_array *const *a, int n);

/* A dict of options to lb_quant_config: strings are valid while o is. None:
 * all defaults. */
bool py_config_from(PyObject *o, lb_quant_config *config);
PyObject *py_config_dict(const lb_quant_config *config);
/* The value of a named constant; -1 and an exception if there is none. */
typedef struct py_word {
    const char *name;
    int value;
} py_word;
int py_word_value(PyObject *o, const py_word *words, const char *what);
const char *py_word_name(int value, const py_word *words);
extern const py_word py_precisions[], py_dense_policies[];

/* ---- compositions with numpy's meaning ----------------------------------- */

lb_array *py_true_divide(lb_ctx *cx, lb_array *x, lb_array *y);
lb_array *py_floor_divide(lb_ctx *cx, lb_array *x, lb_array *y);
lb_array *py_remainder(lb_ctx *cx, lb_array *x, lb_array *y);
lb_array *py_shift_right(lb_ctx *cx, lb_array *x, lb_array *y);
lb_array *py_arg_reduce(lb_ctx *cx, lb_array *x, const lb_axes *axes, bool keep,
                        lb_array *(*fn)(lb_ctx *, lb_array *, int, lb_dtype));

/* ---- parts of the module ------------------------------------------------- */

extern PyMethodDef py_call_methods[], py_special_methods[],
    py_quantize_methods[], py_grad_methods[], py_nn_methods[],
    py_context_methods[], py_creation_methods[], py_ffi_methods[];
bool py_calls_init(void);
bool py_training_add(PyObject *module);
bool py_programs_add(PyObject *module);
#ifdef PY_WITH_IO
extern PyMethodDef py_save_methods[], py_job_methods[], py_command_methods[],
    py_descriptor_methods[];
bool py_files_add(PyObject *module);
#endif

/* METH_FASTCALL | METH_KEYWORDS functions as PyMethodDef wants them. */
#define PY_FAST(fn) ((PyCFunction)(void (*)(void))(fn))

#endif
