/* py_nn.c - functions of lowbit_nn.h that take options. */
#include "py_lowbit.h"

static const py_word scalings[] = {
    {"none", LB_ROPE_NONE},
    {"linear", LB_ROPE_LINEAR},
    {"llama3", LB_ROPE_LLAMA3},
    {"yarn", LB_ROPE_YARN},
    {NULL, 0},
};

static PyObject *rope(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    static char *keys[] = {"",          "positions", "axis",   "interleaved",
                           "dims",      "base",      "offset", "scaling",
                           "factor",    "low",       "high",   "original",
                           "magnitude", NULL};
    PyObject *x, *positions = Py_None, *scaling = Py_None;
    lb_rope_options o = {.struct_size = sizeof o};
    int interleaved = 0;
    long long dims = 0, offset = 0, original = 0;
    if (!PyArg_ParseTupleAndKeywords(
            args, names, "O|O$ipLdLOdddLd:rope", keys, &x, &positions, &o.axis,
            &interleaved, &dims, &o.base, &offset, &scaling, &o.factor, &o.low,
            &o.high, &original, &o.magnitude))
        return NULL;
    const int s = py_word_value(scaling, scalings, "scaling");
    lb_ctx *cx = s < 0 ? NULL : py_enter();
    if (!cx) return NULL;
    o.interleaved = interleaved;
    o.dims = dims;
    o.offset = offset;
    o.original = original;
    o.scaling = (lb_rope_scaling)s;
    lb_array *a = py_operand(cx, x, PY_USED_NOW);
    if (a && positions != Py_None)
        o.positions = py_operand(cx, positions, PY_USED_NOW);
    if (!a || (positions != Py_None && !o.positions))
        return py_leave_failed(cx);
    lb_array *r;
    Py_BEGIN_ALLOW_THREADS
    r = lb_rope(cx, a, &o);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, r);
}

static PyObject *attention(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    static char *keys[] = {"",
                           "",
                           "",
                           "causal",
                           "window",
                           "scale",
                           "soft_cap",
                           "q_positions_first",
                           "kv_positions_first",
                           "valid",
                           NULL};
    PyObject *in[3], *valid = Py_None;
    lb_attention_options o = {.struct_size = sizeof o};
    int causal = 0, q_first = 0, kv_first = 0;
    long long window = 0;
    if (!PyArg_ParseTupleAndKeywords(args, names, "OOO|$pLddppO:attention",
                                     keys, &in[0], &in[1], &in[2], &causal,
                                     &window, &o.scale, &o.soft_cap, &q_first,
                                     &kv_first, &valid))
        return NULL;
    o.causal = causal;
    o.window = window;
    o.q_positions_first = q_first;
    o.kv_positions_first = kv_first;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a[3];
    for (int i = 0; i < 3; i++)
        if (!(a[i] = py_operand(cx, in[i], PY_USED_NOW)))
            return py_leave_failed(cx);
    if (valid != Py_None && !(o.valid = py_operand(cx, valid, PY_USED_NOW)))
        return py_leave_failed(cx);
    lb_array *r;
    Py_BEGIN_ALLOW_THREADS
    r = lb_attention(cx, a[0], a[1], a[2], &o);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, r);
}

static PyObject *top_k(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *x, *count, *result = NULL;
    int64_t k;
    if (!PyArg_ParseTuple(args, "OO:top_k", &x, &count) ||
        !py_int_from(count, &k))
        return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, x, PY_USED_NOW), *both[2] = {NULL, NULL};
    if (!a) return py_leave_failed(cx);
    Py_BEGIN_ALLOW_THREADS
    both[0] = lb_top_k(cx, a, k, &both[1]);
    Py_END_ALLOW_THREADS
    if (both[0]) result = py_tuple_of(both, 2);
    if (!result) return py_leave_failed(cx);
    py_leave(cx);
    return result;
}

static PyObject *sample(PyObject *module, PyObject *args, PyObject *names)
{
    (void)module;
    static char *keys[] = {"",      "",      "temperature", "top_k",
                           "top_p", "min_p", NULL};
    PyObject *key_object, *logits;
    lb_sample_options o = {.struct_size = sizeof o, .temperature = 1};
    lb_key key;
    long long top_k = 0;
    if (!PyArg_ParseTupleAndKeywords(args, names, "OO|$dLdd:sample", keys,
                                     &key_object, &logits, &o.temperature,
                                     &top_k, &o.top_p, &o.min_p) ||
        !py_key_from(key_object, &key))
        return NULL;
    o.top_k = top_k;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, logits, PY_USED_NOW), *r;
    if (!a) return py_leave_failed(cx);
    Py_BEGIN_ALLOW_THREADS
    r = lb_sample(cx, key, a, &o);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, r);
}

PyMethodDef py_nn_methods[] = {
    {"attention", PY_FAST(attention), METH_VARARGS | METH_KEYWORDS,
     "attention($module, q, k, v, /, *, causal=False, window=0, scale=0.0, "
     "soft_cap=0.0, q_positions_first=False, kv_positions_first=False, "
     "valid=None)\n--\n\n"
     "softmax(scale q k^T + mask) v of q (heads, queries, size), k and v (kv "
     "heads, keys,\nsize). Zeros are the defaults of lb_attention_options."},
    {"rope", PY_FAST(rope), METH_VARARGS | METH_KEYWORDS,
     "rope($module, x, /, positions=None, *, axis=-2, interleaved=False, "
     "dims=0, base=10000.0, offset=0, scaling='none', factor=1.0, low=0.0, "
     "high=0.0, original=8192, magnitude=0.0)\n--\n\n"
     "Rotary position embedding of x, (..., positions, ..., head size); "
     "scaling: 'none',\n'linear', 'llama3' or 'yarn'. Zeros are the defaults "
     "of "
     "lb_rope_options."},
    {"sample", PY_FAST(sample), METH_VARARGS | METH_KEYWORDS,
     "sample($module, key, logits, /, *, temperature=1.0, top_k=0, top_p=0.0, "
     "min_p=0.0)\n--\n\n"
     "A token for each row of logits (..., vocabulary), as int32; temperature "
     "0: the most\nlikely one. Zeros of the other options: all tokens.\n\n"
     ">>> lowbit.sample(1, [[0.0, 9.0, 1.0]], temperature=0).tolist()\n[1]"},
    {"top_k", top_k, METH_VARARGS,
     "top_k($module, x, k, /)\n--\n\n"
     "The k largest elements along the last axis, the largest first, and their "
     "indices\nas int32.\n\n"
     ">>> [a.tolist() for a in lowbit.top_k([3.0, 9.0, 7.0], 2)]\n"
     "[[9.0, 7.0], [1, 2]]"},
    {0},
};
