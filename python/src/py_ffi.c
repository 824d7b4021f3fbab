/* py_ffi.c - handlers for XLA's foreign-function interface: products with
 * packed operands, and encoding and decoding, called by compiled JAX functions.
 *
 * XLA calls a handler on one of its own threads, several at once if a program
 * has independent parts or runs on several host devices. The first call gets
 * the context with a pool of worker threads; calls that run beside it get
 * contexts without workers, so that threads in use never exceed those of XLA
 * plus one pool. Contexts are kept for later calls. Nothing here needs Python's
 * interpreter.
 */
#include "py_lowbit.h"

#include <fenv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "py_ffi.h"

/* ---- contexts ------------------------------------------------------------ */

typedef struct ffi_context {
    struct ffi_context *next;
    lb_ctx *cx;
    bool wide; /* with worker threads */
} ffi_context;

static struct {
    pthread_mutex_t lock;
    ffi_context *wide, *single; /* not in use */
    bool opened;                /* the wide one */
    pid_t pid;                  /* of the process that opened them */
} contexts = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Memory that a context without workers keeps for reuse. */
enum { KEEP_SINGLE = 64 << 20 };

static ffi_context *context_open(bool wide)
{
    const lb_options options = {.struct_size = sizeof options,
                                .threads = wide ? 0 : 1,
                                .keep_bytes = wide ? 0 : KEEP_SINGLE};
    ffi_context *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->wide = wide;
    c->cx = lb_open(&options);
    if (c->cx) return c;
    free(c);
    return NULL;
}

static ffi_context *context_take(void)
{
    pthread_mutex_lock(&contexts.lock);
    if (contexts.pid != getpid()) {
        /* After fork the workers do not exist: closing would wait for them. */
        contexts.wide = contexts.single = NULL;
        contexts.opened = false;
        contexts.pid = getpid();
    }
    const bool wide = contexts.wide || !contexts.opened;
    ffi_context **list = wide ? &contexts.wide : &contexts.single;
    ffi_context *c = *list;
    if (c) *list = c->next;
    if (wide) contexts.opened = true;
    pthread_mutex_unlock(&contexts.lock);
    return c ? c : context_open(wide);
}

static void context_give(ffi_context *c)
{
    pthread_mutex_lock(&contexts.lock);
    ffi_context **list = c->wide ? &contexts.wide : &contexts.single;
    c->next = *list;
    *list = c;
    pthread_mutex_unlock(&contexts.lock);
}

/* ---- calls --------------------------------------------------------------- */

static ffi_error *error(const ffi_frame *f, int code, const char *sentence)
{
    ffi_error_args args = {sizeof args, NULL, sentence, code};
    /* XLA copies them. */
    /* cppcheck-suppress returnDanglingLifetime */
    return f->api->error_create(&args);
}

/* Whether XLA only asks which version of the interface this is. */
static bool answer_metadata(ffi_frame *f)
{
    if (!f->extension || f->extension->type != FFI_EXTENSION_METADATA)
        return false;
    ffi_metadata *m = ((ffi_metadata_extension *)f->extension)->metadata;
    m->version.major = FFI_MAJOR;
    m->version.minor = FFI_MINOR;
    m->traits = 0;
    return true;
}

static ffi_error *run(ffi_frame *f, bool (*fn)(ffi_call *))
{
    if (answer_metadata(f)) return NULL;
    ffi_context *c = context_take();
    if (!c)
        return error(f, FFI_RESOURCE_EXHAUSTED,
                     "lowbit: out of memory, or LOWBIT_ISA, LOWBIT_DENSE or "
                     "LOWBIT_PRECISION is invalid");
    ffi_call call = {.frame = f, .cx = c->cx};
    ffi_error *failed = NULL;
    /* XLA's threads flush subnormal numbers to zero. */
    fenv_t theirs;
    fegetenv(&theirs);
    fesetenv(FE_DFL_ENV);
    lb_enter(c->cx);
    if (!fn(&call)) {
        const lb_status status = lb_error_status(c->cx);
        char sentence[600];
        snprintf(sentence, sizeof sentence, "lowbit: %s", lb_error(c->cx));
        failed = error(f,
                       status == LB_E_NOMEM ? FFI_RESOURCE_EXHAUSTED
                                            : FFI_INVALID_ARGUMENT,
                       sentence);
        lb_clear(c->cx);
    }
    lb_leave(c->cx);
    fesetenv(&theirs);
    context_give(c);
    return failed;
}

static bool dot_general(ffi_call *call)
{
    lb_dot_dims dims;
    lb_array *lhs = ffi_operand(call, 0), *rhs = ffi_operand(call, 1);
    return lhs && rhs && ffi_dims_read(call, &dims) &&
           ffi_result(call, lb_dot_general(call->cx, lhs, rhs, &dims));
}

static bool decode(ffi_call *call)
{
    return ffi_result(call, ffi_operand(call, 0));
}

/* The part of q, or all parts of scales in 8 bits. */
static bool part_result(ffi_call *call, lb_array *q, const char *name)
{
    lb_array *a = lb_component(call->cx, q, name);
    if (!a || !strcmp(lb_format_of(a), "dense")) return ffi_result(call, a);
    const char *inner;
    for (int k = 0; (inner = lb_component_name(a, k)); k++) {
        lb_array *b = lb_component(call->cx, a, inner);
        if (b ? !ffi_result(call, b) : lb_error_status(call->cx) != LB_OK)
            return false;
    }
    return true;
}

/* Floats are quantized; integers are codes. */
static bool encode(ffi_call *call)
{
    ffi_spec s;
    lb_array *q, *x = ffi_operand(call, 1);
    if (!x || !ffi_spec_read(call, 0, &s)) return false;
    const lb_dtype t = lb_dtype_of(x);
    if (t == LB_F32 || t == LB_F16 || t == LB_BF16 || t == LB_F64)
        q = lb_quantize(call->cx, x, &s.config);
    else
        q = lb_from_codes(call->cx, &s.config, x, NULL);
    if (!q) return false;
    for (int p = 0; p < LB_MAX_PARTS; p++)
        if (s.parts >> p & 1 && !part_result(call, q, lb_component_name(q, p)))
            return false;
    return true;
}

static ffi_error *handle_dot_general(ffi_frame *f)
{
    return run(f, dot_general);
}

static ffi_error *handle_decode(ffi_frame *f)
{
    return run(f, decode);
}

static ffi_error *handle_encode(ffi_frame *f)
{
    return run(f, encode);
}

/* ---- for Python ---------------------------------------------------------- */

static bool add_handler(PyObject *dict, const char *name, ffi_handler *fn)
{
    void *pointer;
    memcpy(&pointer, &fn, sizeof pointer);
    /* The name that jaxlib expects. */
    PyObject *o = PyCapsule_New(pointer, "xla._CUSTOM_CALL_TARGET", NULL);
    const bool ok = o && !PyDict_SetItemString(dict, name, o);
    Py_XDECREF(o);
    return ok;
}

static PyObject *ffi_handlers(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *dict = PyDict_New();
    if (dict && add_handler(dict, "lowbit_dot_general", handle_dot_general) &&
        add_handler(dict, "lowbit_decode", handle_decode) &&
        add_handler(dict, "lowbit_encode", handle_encode))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

/* Appends (name, p, dtype, shape) of part k of a layout, which belongs to part
 * p of the array; of, if not "", is that part's name. */
static bool append_part(PyObject *list, const char *of, int p,
                        const lb_format *f, const lb_layout *l, int k)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s%s", of, *of ? "." : "", f->part[k].name);
    PyObject *dtype = py_dtype_object(l->elem[k]);
    PyObject *shape = py_shape_tuple(lb_part_shape(&l->stored, &l->part[k]));
    PyObject *o =
        dtype && shape ? Py_BuildValue("(siOO)", name, p, dtype, shape) : NULL;
    const bool ok = o && !PyList_Append(list, o);
    Py_XDECREF(o);
    Py_XDECREF(dtype);
    Py_XDECREF(shape);
    return ok;
}

/* The parts of scales in 8 bits, which are stored as one row. */
static bool append_scales(lb_ctx *cx, PyObject *list, int p, const lb_format *f,
                          const lb_layout *l)
{
    const lb_shape scales = lb_part_shape(&l->stored, &l->part[p]);
    const lb_shape row = LB_SHAPE(lb_shape_size(&scales));
    lb_layout inner;
    const lb_format *g;
    if (!ffi_scale_layout(cx, &row, &inner, &g)) return false;
    for (int k = 0; k < LB_MAX_PARTS && g->part[k].name; k++)
        if (inner.elem[k] &&
            !append_part(list, f->part[p].name, p, g, &inner, k))
            return false;
    return true;
}

/* Does not check the configuration as a whole: the encoder does. */
static PyObject *ffi_parts(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *config, *type, *dims;
    lb_quant_config c;
    lb_dtype dtype;
    lb_shape shape;
    lb_layout l;
    const lb_format *f = NULL;
    if (!PyArg_ParseTuple(args, "OOO:_ffi_parts", &config, &type, &dims) ||
        !py_config_from(config, &c) || !py_dtype_from(type, &dtype) ||
        !py_shape_from(dims, &shape))
        return NULL;
    if (!c.format) c.format = "nf4";
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    if (!lb_shape_check(cx, "quantize", &shape) ||
        !ffi_layout(cx, &c, dtype, &shape, &l, &f))
        return py_leave_failed(cx);
    PyObject *list = PyList_New(0);
    for (int p = 0; list && p < LB_MAX_PARTS && f->part[p].name; p++) {
        if (!l.elem[p]) continue;
        if (!(c.double_quant && f->part[p].scale
                  ? append_scales(cx, list, p, f, &l)
                  : append_part(list, "", p, f, &l, p)))
            Py_CLEAR(list);
    }
    if (lb_error_status(cx)) return py_leave_failed(cx);
    py_leave(cx);
    return list;
}

PyMethodDef py_ffi_methods[] = {
    {"_ffi_handlers", ffi_handlers, METH_NOARGS,
     "Handlers for XLA's foreign-function interface, as capsules by name."},
    {"_ffi_parts", ffi_parts, METH_VARARGS,
     "_ffi_parts(config, dtype, shape, /)\n--\n\n(name, index, dtype, shape) "
     "of "
     "the "
     "parts of such a quantized array."},
    {NULL, NULL, 0, NULL},
};
