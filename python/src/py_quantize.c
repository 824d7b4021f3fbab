/* py_quantize.c - quantizing, and the parts of quantized arrays.
 *
 * A configuration is a dict with the members of lb_quant_config as keys, and
 * words in place of enum values; lowbit.QuantizationConfig makes such dicts.
 */
#include <stddef.h>
#include <string.h>

#include "lowbit_ext.h"
#include "py_lowbit.h"

/* ---- words --------------------------------------------------------------- */

static const py_word compats[] = {
    {"native", LB_COMPAT_NATIVE},
    {"eformer", LB_COMPAT_EFORMER},
    {"bnb-cuda", LB_COMPAT_BNB_CUDA},
    {"bnb-cpu", LB_COMPAT_BNB_CPU},
    {NULL, 0},
};
static const py_word decodes[] = {
    {"table", LB_DECODE_TABLE}, {"poly", LB_DECODE_POLY}, {NULL, 0}};
static const py_word scales[] = {
    {"default", LB_SCALE_DEFAULT}, {"none", LB_SCALE_NONE},
    {"tensor", LB_SCALE_TENSOR},   {"row", LB_SCALE_ROW},
    {"block", LB_SCALE_BLOCK},     {NULL, 0},
};
static const py_word meanings[] = {
    {"scale", LB_MEANS_SCALE},
    {"absmax", LB_MEANS_ABSMAX},
    {"inverse", LB_MEANS_INVERSE},
    {NULL, 0},
};
static const py_word thresholds[] = {
    {"std", LB_THRESHOLD_STD}, {"absmean", LB_THRESHOLD_ABSMEAN}, {NULL, 0}};
static const py_word blocks[] = {
    {"default", LB_BLOCKS_DEFAULT},
    {"in-rows", LB_BLOCKS_IN_ROWS},
    {"flat", LB_BLOCKS_FLAT},
    {"listed", LB_BLOCKS_LISTED},
    {NULL, 0},
};
static const py_word nonfinites[] = {
    {"error", LB_NONFINITE_ERROR}, {"clamp", LB_NONFINITE_CLAMP}, {NULL, 0}};

/* ---- members ------------------------------------------------------------- */

typedef enum py_member_kind {
    TEXT,
    COUNT,
    AXES,
    DTYPE,
    FLAG,
    WORD
} py_member_kind;

typedef struct py_member {
    const char *name;
    py_member_kind kind;
    size_t offset;
    const py_word *words;
} py_member;

#define AT(member) offsetof(lb_quant_config, member)
static const py_member members[] = {
    {"format", TEXT, AT(format), NULL},
    {"block_size", COUNT, AT(block_size), NULL},
    {"axes", AXES, AT(axes), NULL},
    {"dtype", DTYPE, AT(dtype), NULL},
    {"simulate", FLAG, AT(simulate), NULL},
    {"reference", FLAG, AT(reference), NULL},
    {"compat", WORD, AT(compat), compats},
    {"decode", WORD, AT(decode), decodes},
    {"scale", WORD, AT(scale), scales},
    {"meaning", WORD, AT(meaning), meanings},
    {"threshold", WORD, AT(threshold), thresholds},
    {"blocks", WORD, AT(blocks), blocks},
    {"on_nonfinite", WORD, AT(on_nonfinite), nonfinites},
    {"double_quant", FLAG, AT(double_quant), NULL},
    {"center", FLAG, AT(center), NULL},
    {"clip_gradient", FLAG, AT(clip_gradient), NULL},
};
enum { N_MEMBERS = sizeof members / sizeof *members };

/* Enums are ints to the compiler (its size is that of every enum here). */
static bool set_member(const py_member *m, PyObject *o, lb_quant_config *c)
{
    void *to = (char *)c + m->offset;
    if (o == Py_None) return true;
    switch (m->kind) {
    case TEXT: {
        const char *text = PyUnicode_AsUTF8AndSize(o, NULL);
        memcpy(to, &text, sizeof text);
        return text != NULL;
    }
    case COUNT:
        return py_int_from(o, to);
    case AXES:
        if (!py_axes_from(o, to)) return false;
        return true;
    case DTYPE:
        return py_dtype_from(o, to);
    case FLAG: {
        const int truth = PyObject_IsTrue(o);
        *(bool *)to = truth > 0;
        return truth >= 0;
    }
    default: {
        const int value = py_word_value(o, m->words, m->name);
        memcpy(to, &value, sizeof value);
        return value >= 0;
    }
    }
}

bool py_config_from(PyObject *o, lb_quant_config *c)
{
    *c = (lb_quant_config){sizeof *c, 0};
    if (o == Py_None) return true;
    if (!PyDict_Check(o)) {
        PyErr_Format(PyExc_TypeError, "a dict of options, not %R", Py_TYPE(o));
        return false;
    }
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(o, &at, &key, &value)) {
        int k = 0;
        while (k < N_MEMBERS &&
               !(PyUnicode_Check(key) &&
                 PyUnicode_CompareWithASCIIString(key, members[k].name) == 0))
            k++;
        if (k == N_MEMBERS) {
            PyErr_Format(py_error_class(LB_E_ARG),
                         "quantize: %R is not an option (block_size, axes, "
                         "dtype, compat, scale, ...)",
                         key);
            return false;
        }
        if (!set_member(&members[k], value, c)) return false;
    }
    return true;
}

static PyObject *member_object(const py_member *m, const lb_quant_config *c)
{
    const void *from = (const char *)c + m->offset;
    switch (m->kind) {
    case TEXT:
        return PyUnicode_FromString(c->format ? c->format : "nf4");
    case COUNT:
        return PyLong_FromLongLong(c->block_size);
    case AXES: {
        lb_shape s = {.rank = c->axes.n};
        for (int k = 0; k < s.rank; k++)
            s.dim[k] = c->axes.axis[k];
        return py_shape_tuple(s);
    }
    case DTYPE:
        return py_dtype_object(c->dtype);
    case FLAG:
        return PyBool_FromLong(*(const bool *)from);
    default: {
        int value;
        memcpy(&value, from, sizeof value);
        return PyUnicode_FromString(py_word_name(value, m->words));
    }
    }
}

static bool is_zero(const py_member *m, const lb_quant_config *c)
{
    static const lb_quant_config none;
    const size_t size = m->kind == FLAG    ? sizeof(bool)
                        : m->kind == COUNT ? sizeof(int64_t)
                                           : sizeof(int);
    return m->kind != TEXT &&
           memcmp((const char *)c + m->offset, (const char *)&none + m->offset,
                  size) == 0;
}

/* Without members that have their defaults. */
PyObject *py_config_dict(const lb_quant_config *c)
{
    PyObject *dict = PyDict_New();
    for (int k = 0; dict && k < N_MEMBERS; k++) {
        if (is_zero(&members[k], c)) continue;
        PyObject *value = member_object(&members[k], c);
        if (!value || PyDict_SetItemString(dict, members[k].name, value))
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* ---- attributes of arrays ------------------------------------------------ */

static PyObject *get_config(PyObject *self, void *unused)
{
    (void)unused;
    lb_quant_config c = {.struct_size = sizeof c};
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    if (!lb_config_of(cx, py_array_of(self), &c)) return py_leave_failed(cx);
    PyObject *dict = py_config_dict(&c);
    py_leave(cx);
    return dict;
}

static PyObject *get_parts(PyObject *self, void *unused)
{
    (void)unused;
    lb_array *a = py_array_of(self);
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    PyObject *dict = PyDict_New();
    const char *name;
    for (int k = 0; dict && (name = lb_component_name(a, k)); k++) {
        lb_array *part = lb_component(cx, a, name);
        PyObject *o = part ? py_array_new(part) : NULL;
        if ((!part && lb_error_status(cx)) || (part && !o) ||
            (o && PyDict_SetItemString(dict, name, o)))
            Py_CLEAR(dict);
        Py_XDECREF(o);
    }
    if (!dict) return py_leave_failed(cx);
    py_leave(cx);
    return dict;
}

PyGetSetDef py_quantized_getset[] = {
    {"config", get_config, NULL,
     "how lowbit.quantize makes such an array, as a dict; an error for dense "
     "arrays and views that it cannot make",
     NULL},
    {"parts", get_parts, NULL,
     "the stored parts (codes, scales, ...) as a dict of arrays; empty for "
     "dense arrays",
     NULL},
    {0},
};

/* The whole array that a view sees, and where: the arguments of from_view. */
static PyObject *view_arguments(lb_array *a)
{
    lb_ctx *cx = py_enter();
    lb_array *whole = cx ? lb_view(cx, a) : NULL;
    if (!whole) return cx ? py_leave_failed(cx) : NULL;
    whole->shape = a->store->shape;
    whole->offset = 0;
    lb_row_major(&whole->shape, whole->stride);
    lb_shape strides = {.rank = a->shape.rank};
    memcpy(strides.dim, a->stride, sizeof a->stride);
    const int64_t offset = lb_size(a) ? a->offset : 0;
    PyObject *result = NULL;
    if (lb_config_of(
            cx, whole,
            &(lb_quant_config){.struct_size = sizeof(lb_quant_config)}))
        result = Py_BuildValue("NNNL", py_array_new(whole),
                               py_shape_tuple(lb_shape_of(a)),
                               py_shape_tuple(strides), (long long)offset);
    if (!result) return py_leave_failed(cx);
    py_leave(cx);
    return result;
}

/* A dense array: its bytes; a packed one: its configuration and parts, or those
 * of the array that it is a view of. */
static PyObject *array_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    lb_array *a = py_array_of(self);
    const bool dense = strcmp(lb_format_of(a), "dense") == 0;
    PyObject *module = PyImport_ImportModule("lowbit");
    PyObject *fn = module ? PyObject_GetAttrString(
                                module, dense ? "_from_bytes" : "_from_parts")
                          : NULL;
    PyObject *shape = py_shape_tuple(lb_shape_of(a)), *result = NULL;
    if (fn && shape && dense) {
        PyObject *bytes = PyObject_CallMethod(self, "tobytes", NULL);
        if (bytes)
            result = Py_BuildValue("O(sON)", fn, py_dtype_name(lb_dtype_of(a)),
                                   shape, bytes);
    } else if (fn && shape) {
        PyObject *config = get_config(self, NULL);
        PyObject *parts = config ? get_parts(self, NULL) : NULL;
        if (parts) result = Py_BuildValue("O(OOO)", fn, config, shape, parts);
        Py_XDECREF(config);
        Py_XDECREF(parts);
        if (!config &&
            PyErr_ExceptionMatches(py_error_class(LB_E_UNSUPPORTED))) {
            PyErr_Clear();
            Py_DECREF(fn);
            fn = PyObject_GetAttrString(module, "_from_view");
            PyObject *view = fn ? view_arguments(a) : NULL;
            if (view) result = Py_BuildValue("ON", fn, view);
        }
    }
    Py_XDECREF(module);
    Py_XDECREF(fn);
    Py_XDECREF(shape);
    return result;
}

PyMethodDef py_quantized_methods[] = {
    {"__reduce__", array_reduce, METH_NOARGS, NULL},
    {0},
};

/* ---- functions ----------------------------------------------------------- */

typedef lb_array *py_quantizer(lb_ctx *, lb_array *, const lb_quant_config *);

static PyObject *quantized(PyObject *args, const char *format, py_quantizer *fn)
{
    PyObject *x, *config = Py_None;
    lb_quant_config c;
    if (!PyArg_ParseTuple(args, format, &x, &config) ||
        !py_config_from(config, &c))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, x, PY_USED_NOW);
    if (!a) return py_leave_failed(cx);
    lb_array *q;
    Py_BEGIN_ALLOW_THREADS
    q = fn(cx, a, &c);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, q);
}

static PyObject *quantize(PyObject *module, PyObject *args)
{
    (void)module;
    return quantized(args, "O|O:quantize", lb_quantize);
}

static PyObject *straight_through(PyObject *module, PyObject *args)
{
    (void)module;
    return quantized(args, "O|O:straight_through", lb_straight_through);
}

static PyObject *from_codes(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *config, *codes, *scale = Py_None;
    lb_quant_config c;
    if (!PyArg_ParseTuple(args, "OO|O:from_codes", &config, &codes, &scale) ||
        !py_config_from(config, &c))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, codes, PY_KEPT);
    lb_array *s = a && scale != Py_None ? py_operand(cx, scale, PY_KEPT) : NULL;
    if (!a || (scale != Py_None && !s)) return py_leave_failed(cx);
    return py_leave_with(cx, lb_from_codes(cx, &c, a, s));
}

/* parts: a dict of arrays. */
/* A view is checked, so that damaged pickles cannot read elsewhere. */
static bool is_inside(const lb_array *whole, const lb_shape *shape,
                      const lb_shape *stride, int64_t offset)
{
    int64_t lo = offset, hi = offset, step;
    if (!lb_is_row_major(whole) || whole->offset || shape->rank != stride->rank)
        return false;
    for (int k = 0; k < shape->rank; k++)
        if (shape->dim[k] == 0) return offset == 0; /* see view_arguments */
    for (int k = 0; k < shape->rank; k++)
        if (__builtin_mul_overflow(shape->dim[k] - 1, stride->dim[k], &step) ||
            __builtin_add_overflow(step < 0 ? lo : hi, step,
                                   step < 0 ? &lo : &hi))
            return false;
    return lo >= 0 && hi < lb_size(whole);
}

static PyObject *from_view(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *base, *shape_object, *stride_object;
    lb_shape shape, stride;
    long long offset;
    if (!PyArg_ParseTuple(args, "O!OOL:from_view", py_array_type, &base,
                          &shape_object, &stride_object, &offset) ||
        !py_shape_from(shape_object, &shape) ||
        !py_shape_from(stride_object, &stride))
        return NULL;
    const lb_array *whole = py_array_of(base);
    if (!is_inside(whole, &shape, &stride, offset)) {
        PyErr_SetString(PyExc_ValueError,
                        "from_view: the view is not inside of the array");
        return NULL;
    }
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a =
        lb_shape_check(cx, "from_view", &shape) ? lb_view(cx, whole) : NULL;
    if (a) {
        a->shape = shape;
        memcpy(a->stride, stride.dim, sizeof a->stride);
        a->offset = offset;
    }
    return py_leave_with(cx, a);
}

static PyObject *from_parts(PyObject *module, PyObject *args)
{
    (void)module;
    enum { MOST = 16 };
    PyObject *config, *shape_object, *parts, *key, *value;
    const char *layout = NULL, *name[MOST];
    lb_array *part[MOST];
    lb_shape shape;
    lb_quant_config c;
    if (!PyArg_ParseTuple(args, "OOO!|z:from_parts", &config, &shape_object,
                          &PyDict_Type, &parts, &layout) ||
        !py_config_from(config, &c) || !py_shape_from(shape_object, &shape))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    int n = 0;
    Py_ssize_t at = 0;
    while (n < MOST && PyDict_Next(parts, &at, &key, &value)) {
        name[n] = PyUnicode_AsUTF8AndSize(key, NULL);
        part[n] = name[n] ? py_operand(cx, value, PY_KEPT) : NULL;
        if (!part[n++]) return py_leave_failed(cx);
    }
    return py_leave_with(cx,
                         lb_from_parts(cx, &c, shape, layout, name, part, n));
}

/* None if the array does not have this optional part. */
static PyObject *optional_part(lb_ctx *cx, lb_array *part)
{
    if (part || lb_error_status(cx)) return py_leave_with(cx, part);
    py_leave(cx);
    Py_RETURN_NONE;
}

static PyObject *component(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *x;
    const char *name;
    if (!PyArg_ParseTuple(args, "O!s:component", py_array_type, &x, &name))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    return optional_part(cx, lb_component(cx, py_array_of(x), name));
}

static PyObject *export(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *x;
    const char *layout, *name;
    if (!PyArg_ParseTuple(args, "O!zs:export", py_array_type, &x, &layout,
                          &name))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    return optional_part(cx, lb_export(cx, py_array_of(x), layout, name));
}

static PyObject *is_kernel_available(PyObject *module, PyObject *args)
{
    (void)module;
    const char *format = "nf4";
    if (!PyArg_ParseTuple(args, "|s:is_kernel_available", &format)) return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    const bool yes = lb_kernel_available(cx, format);
    py_leave(cx);
    return PyBool_FromLong(yes);
}

static PyObject *can_quantize(PyObject *module, PyObject *args)
{
    (void)module;
    const char *format;
    if (!PyArg_ParseTuple(args, "s:can_quantize", &format)) return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    const bool yes = lb_can_quantize(cx, format);
    py_leave(cx);
    return PyBool_FromLong(yes);
}

static PyObject *formats(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    PyObject *list = PyList_New(0);
    const char *name;
    for (int k = 0; list && (name = lb_format_name(cx, k)); k++) {
        PyObject *o = PyUnicode_FromString(name);
        if (!o || PyList_Append(list, o)) Py_CLEAR(list);
        Py_XDECREF(o);
    }
    py_leave(cx);
    return list;
}

PyMethodDef py_quantize_methods[] = {
    {"_quantize", quantize, METH_VARARGS, NULL},
    {"_straight_through", straight_through, METH_VARARGS, NULL},
    {"_from_codes", from_codes, METH_VARARGS, NULL},
    {"_from_parts", from_parts, METH_VARARGS, NULL},
    {"_from_view", from_view, METH_VARARGS, NULL},
    {"component", component, METH_VARARGS,
     "component($module, x, name, /)\n--\n\n"
     "A stored part of x by name; None if x does not have this optional part."},
    {"export", export, METH_VARARGS,
     "export($module, x, layout, name, /)\n--\n\n"
     "A part of x in another program's layout: 'eformer', 'bnb', ..."},
    {"is_kernel_available", is_kernel_available, METH_VARARGS,
     "is_kernel_available($module, format='nf4', /)\n--\n\n"
     "Whether a format has kernels of its own for this CPU."},
    {"can_quantize", can_quantize, METH_VARARGS,
     "can_quantize($module, format, /)\n--\n\n"
     "Whether quantize can produce a format; others can only be read."},
    {"formats", formats, METH_NOARGS,
     "formats($module, /)\n--\n\nThe names of all formats, 'dense' first.\n\n"
     ">>> 'nf4' in lowbit.formats()\nTrue"},
    {0},
};
