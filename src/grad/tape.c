/* tape.c - the gradient tape: a layer that records calls that depend on watched
 * arrays, and traverses them backward.
 *
 *     value   an array that gradients flow to: watched, or the result of a
 *             call with a value among its operands
 *     table   maps the addresses of arrays to their values
 *
 * Primitives define how a gradient passes a call (lb_prim.vjp); the tape knows
 * none of them by name. A value holds references to its array and to the call's
 * operands, so that no address is reused while it is in the table. The backward
 * pass starts with the last value: when a value is reached its gradient is
 * complete, and both are freed after use. Calls made by the backward pass go to
 * the layers below; a tape there records them.
 */
#include <stdint.h>
#include <string.h>

#include "core/core.h"

typedef struct value {
    size_t got;
    lb_array *a;         /* a reference */
    lb_array *grad;      /* a reference, or NULL: no contribution yet */
    bool watched;        /* keep its gradient for the caller */
    const lb_prim *prim; /* the recorded call that made it; NULL: none */
    int n_in;
    lb_array **in;       /* references */
    struct value **from; /* NULL: a constant */
    void *params;
} value;

struct lb_tape {
    lb_layer layer; /* first member, to be cast back */
    lb_ctx *cx;
    size_t got;
    lb_list values; /* in order of creation */
    value **table;  /* open addressing; room is a power of two */
    size_t room, table_got;
};

/* ---- the table ----------------------------------------------------------- */

static size_t hash(const lb_array *a)
{
    uint64_t h = (uint64_t)(uintptr_t)a;
    h *= UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio */
    return (size_t)(h >> 32);
}

/* The index of a, or where to insert it. */
static size_t place(value *const *table, size_t room, const lb_array *a)
{
    size_t i = hash(a) & (room - 1);
    while (table[i] && table[i]->a != a)
        i = (i + 1) & (room - 1);
    return i;
}

static value *find(const lb_tape *t, const lb_array *a)
{
    return t->room ? t->table[place(t->table, t->room, a)] : NULL;
}

/* Keeps the table at most half full. */
static bool make_room(lb_tape *t)
{
    size_t room = t->room ? t->room : 64, bytes, got;
    if ((size_t)t->values.n + 1 <= t->room / 2) return true;
    if (t->room) room *= 2;
    if (!lb_mul_size(room, sizeof(value *), &bytes))
        return lb_fail(t->cx, LB_E_NOMEM, "out of memory (a tape)");
    value **table = lb_heap_alloc(t->cx->heap, bytes, &got);
    if (!table)
        return lb_fail(t->cx, LB_E_NOMEM, "out of memory (%zu bytes of a tape)",
                       bytes);
    memset(table, 0, bytes);
    for (int64_t i = 0; i < t->values.n; i++) {
        value *v = t->values.item[i];
        table[place(table, room, v->a)] = v;
    }
    if (t->table) lb_heap_free(t->cx->heap, t->table, t->table_got);
    t->table = table;
    t->table_got = got;
    t->room = room;
    return true;
}

/* ---- values -------------------------------------------------------------- */

static void forget(lb_tape *t, value *v)
{
    for (int i = 0; i < v->n_in; i++)
        lb_unref(v->in[i]);
    lb_unref(v->a);
    lb_unref(v->grad);
    lb_heap_free(t->cx->heap, v, v->got);
}

static void clear(lb_tape *t)
{
    while (t->values.n)
        forget(t, t->values.item[--t->values.n]);
    if (t->table) memset(t->table, 0, t->room * sizeof *t->table);
}

/* A new value with space for a call's operands and params. */
static value *append(lb_tape *t, lb_array *a, int n, size_t params_size)
{
    enum { ALIGN = 16 };
    const size_t each = sizeof(lb_array *) + sizeof(value *);
    const size_t own = (sizeof(value) + ALIGN - 1) / ALIGN * ALIGN;
    size_t size, got;
    if (!make_room(t)) return NULL;
    value *v = lb_mul_size((size_t)n, each, &size) &&
                       lb_add_size(size, own + params_size, &size)
                   ? lb_heap_alloc(t->cx->heap, size, &got)
                   : NULL;
    if (!v) {
        lb_fail(t->cx, LB_E_NOMEM, "out of memory (a tape)");
        return NULL;
    }
    *v = (value){.got = got};
    if (!lb_list_push(t->cx, &t->values, v)) {
        lb_heap_free(t->cx->heap, v, got);
        return NULL;
    }
    v->params = (char *)v + own;
    v->in = (lb_array **)(void *)((char *)v->params + params_size);
    v->from = (value **)(void *)(v->in + n);
    v->a = lb_ref(a);
    t->table[place(t->table, t->room, a)] = v;
    return v;
}

/* ---- recording ----------------------------------------------------------- */

static bool depends(const lb_tape *t, int n, lb_array *const *in)
{
    for (int i = 0; i < n; i++)
        if (find(t, in[i])) return true;
    return false;
}

/* Params are stored after the value, padded to pointer alignment. */
static size_t padded(size_t params_size)
{
    const size_t align = sizeof(void *);
    return (params_size + align - 1) / align * align;
}

static bool note(lb_tape *t, const lb_prim *prim, int n, lb_array *const *in,
                 const void *params, lb_array *out)
{
    value *v = append(t, out, n, padded(prim->params_size));
    if (!v) return false;
    v->prim = prim;
    v->n_in = n;
    if (prim->params_size) memcpy(v->params, params, prim->params_size);
    for (int i = 0; i < n; i++) {
        v->from[i] = find(t, in[i]);
        v->in[i] = lb_ref(in[i]);
    }
    return true;
}

static lb_array *record(lb_ctx *cx, lb_layer *self, const lb_prim *prim, int n,
                        lb_array *const *in, const void *params)
{
    lb_tape *t = (lb_tape *)(void *)self;
    if (cx->given && depends(t, n, in))
        cx->given = NULL; /* backward needs it */
    lb_array *out = lb_bind(cx, prim, n, in, params);
    if (!out || prim->flow == LB_FLOW_NONE || !depends(t, n, in)) return out;
    if (!lb_dtype_is_float(out->dtype)) {
        if (prim->flow != LB_FLOW_ALWAYS) return out;
        lb_fail(
            cx, LB_E_DTYPE,
            "%s: no gradient flows through %s%s: convert it to a float dtype, "
            "or apply lb_stop_gradient first",
            prim->name, lb_dtype_name(out->dtype), LB_SHOW(&out->shape));
        lb_drop(cx, out);
        return NULL;
    }
    /* A rule may return an array that is already recorded. */
    lb_array *fresh = find(t, out) ? lb_reshape(cx, out, out->shape) : out;
    if (fresh && note(t, prim, n, in, params, fresh)) return fresh;
    if (fresh) lb_drop(cx, fresh);
    return NULL;
}

/* Without a vjp, gradients pass the calls that a primitive is composed of. */
static bool whole(const lb_layer *self, const lb_prim *prim, int n,
                  lb_array *const *in)
{
    return prim->vjp || !depends((const lb_tape *)(const void *)self, n, in);
}

lb_tape *lb_tape_open(lb_ctx *cx)
{
    size_t got;
    if (!cx) return NULL;
    lb_tape *t = lb_heap_alloc(cx->heap, sizeof *t, &got);
    if (!t) {
        lb_fail(cx, LB_E_NOMEM, "out of memory (a tape)");
        return NULL;
    }
    *t = (lb_tape){.layer = {.bind = record, .whole = whole, .gives = true},
                   .cx = cx,
                   .got = got};
    lb_push_layer(cx, &t->layer);
    return t;
}

void lb_tape_close(lb_tape *t)
{
    if (!t) return;
    lb_ctx *cx = t->cx;
    for (lb_layer **at = &cx->layer; *at; at = &(*at)->below) {
        if (*at != &t->layer) continue;
        *at = t->layer.below;
        break;
    }
    clear(t);
    lb_list_free(cx->heap, &t->values);
    if (t->table) lb_heap_free(cx->heap, t->table, t->table_got);
    lb_heap_free(cx->heap, t, t->got);
}

bool lb_tape_watch(lb_tape *t, lb_array *a)
{
    if (!t) return false;
    if (!a) return lb_fail(t->cx, LB_E_NULL, "tape_watch: the array is NULL");
    if (!lb_dtype_is_float(a->dtype))
        return lb_fail(
            t->cx, LB_E_DTYPE,
            "tape_watch: %s%s has no gradient: its dtype must be a float",
            lb_dtype_name(a->dtype), LB_SHOW(&a->shape));
    value *v = find(t, a);
    if (!v) v = append(t, a, 0, 0);
    if (v) v->watched = true;
    return v != NULL;
}

/* ---- backward ------------------------------------------------------------ */

/* Adds d, which belongs to the open scope, to the gradient so far. */
static bool add_to(lb_ctx *cx, value *v, lb_array *d)
{
    lb_array *sum = v->grad ? lb_add(cx, v->grad, d) : d;
    if (!sum) return false;
    lb_ref(sum);
    lb_unref(v->grad);
    v->grad = sum;
    return true;
}

/* Checks the result of a vjp, which may be user code. */
static bool is_right(lb_ctx *cx, const value *v, int i, const lb_array *d)
{
    const lb_array *a = v->in[i];
    if (d->dtype == a->dtype && lb_shape_equal(&d->shape, &a->shape))
        return true;
    return lb_fail(cx, LB_E_ARG,
                   "%s: the gradient of operand %d is %s%s, but the operand "
                   "%s%s",
                   v->prim->name, i, lb_dtype_name(d->dtype),
                   LB_SHOW(&d->shape), lb_dtype_name(a->dtype),
                   LB_SHOW(&a->shape));
}

static bool pass_on(lb_ctx *cx, value *v)
{
    lb_call c = lb_call_of(cx, v->prim, v->n_in, v->in, v->params);
    c.shape = v->a->shape;
    c.dtype = v->a->dtype;
    if (!v->prim->vjp)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "%s has no gradient (its result is %s%s)", v->prim->name,
                       lb_dtype_name(c.dtype), LB_SHOW(&c.shape));
    /* A gradient that is not sharded, although its array is, would make all
     * ranks do all of the work. */
    lb_array *dout = lb_cut_like(cx, v->grad, v->a, true);
    if (!dout) return false;
    for (int i = 0; i < v->n_in; i++) {
        if (!v->from[i]) continue;
        cx->quiet++; /* gradients are dense by nature */
        lb_array *d = v->prim->vjp(cx, &c, i, v->a, dout);
        cx->quiet--;
        if (cx->status) return false;
        if (d && (!is_right(cx, v, i, d) || !add_to(cx, v->from[i], d)))
            return false;
    }
    return true;
}

/* From the last value to the first; watched ones are kept, with their
 * gradients. */
static bool walk(lb_tape *t)
{
    lb_ctx *cx = t->cx;
    bool ok = true;
    for (int64_t k = t->values.n - 1; k >= 0 && ok; k--) {
        value *v = t->values.item[k];
        if (!v->prim) continue;
        lb_enter(cx);
        ok = !v->grad || pass_on(cx, v);
        lb_leave(cx);
        for (int i = 0; i < v->n_in; i++)
            lb_unref(v->in[i]);
        v->n_in = 0;
        if (v->watched) continue;
        lb_unref(v->grad);
        lb_unref(v->a);
        v->grad = v->a = NULL; /* its entry in the table stays occupied */
    }
    return ok;
}

static bool start(lb_ctx *cx, value *v, lb_array *dy)
{
    const lb_array *y = v->a;
    lb_enter(cx);
    lb_array *one = dy ? dy : lb_full(cx, y->dtype, y->shape, 1);
    const bool ok = one && add_to(cx, v, one);
    lb_leave(cx);
    return ok;
}

/* Gradients for the user, in the open scope: dense, row-major, and sharded like
 * the array. */
static lb_array *give(lb_ctx *cx, const value *v)
{
    lb_enter(cx);
    lb_array *g = v->grad ? v->grad : lb_zeros(cx, v->a->dtype, v->a->shape);
    g = lb_cut_like(cx, g, v->a, false);
    g = g ? lb_materialize(cx, g) : NULL;
    /* It may be the caller's array, or shared: return a view of it. */
    if (g && g == v->grad) g = lb_reshape(cx, g, g->shape);
    return lb_leave_with(cx, g);
}

static bool check_value(lb_ctx *cx, const lb_array *y, const lb_array *dy)
{
    if (!y) return lb_fail(cx, LB_E_NULL, "gradient: the value is NULL");
    if (!lb_dtype_is_float(y->dtype))
        return lb_fail(
            cx, LB_E_DTYPE,
            "gradient: the value is %s%s, but its dtype must be a float",
            lb_dtype_name(y->dtype), LB_SHOW(&y->shape));
    if (!dy && lb_shape_size(&y->shape) != 1)
        return lb_fail(cx, LB_E_SHAPE,
                       "gradient: the value is %s%s, not a scalar",
                       lb_dtype_name(y->dtype), LB_SHOW(&y->shape));
    if (dy && (dy->dtype != y->dtype || !lb_shape_equal(&dy->shape, &y->shape)))
        return lb_fail(cx, LB_E_SHAPE,
                       "gradient: dy is %s%s, but the value is %s%s",
                       lb_dtype_name(dy->dtype), LB_SHOW(&dy->shape),
                       lb_dtype_name(y->dtype), LB_SHOW(&y->shape));
    return true;
}

static bool check_watched(lb_tape *t, lb_array *const *of, int n)
{
    for (int i = 0; i < n; i++) {
        const value *v = of[i] ? find(t, of[i]) : NULL;
        if (!v || !v->watched)
            return lb_fail(t->cx, LB_E_ARG,
                           "gradient: array %d of %d, %s%s, is not watched", i,
                           n, of[i] ? lb_dtype_name(of[i]->dtype) : "NULL",
                           of[i] ? LB_SHOW(&of[i]->shape) : "");
    }
    return true;
}

static bool differentiate(lb_tape *t, lb_array *y, lb_array *dy,
                          lb_array *const *of, int n, lb_array **grad)
{
    lb_ctx *cx = t->cx;
    bool ok = check_value(cx, y, dy) && check_watched(t, of, n);
    value *v = ok ? find(t, y) : NULL;
    ok = ok && (!v || start(cx, v, dy)) && walk(t);
    for (int i = 0; i < n && ok; i++) {
        grad[i] = give(cx, find(t, of[i]));
        ok = grad[i] != NULL;
    }
    for (int i = 0; i < n && !ok; i++) {
        if (grad[i]) lb_drop(cx, grad[i]);
        grad[i] = NULL;
    }
    return ok;
}

bool lb_tape_grad(lb_tape *t, lb_array *y, lb_array *dy, lb_array *const *of,
                  int n, lb_array **grad)
{
    if (!t) return false;
    lb_ctx *cx = t->cx;
    lb_layer *top = cx->layer; /* calls of the backward pass go to the layers
                                * below */
    if (n < 0 || (n && (!of || !grad))) {
        clear(t);
        return n < 0
                   ? lb_fail(cx, LB_E_ARG,
                             "gradient: the number of arrays is %d", n)
                   : lb_fail(cx, LB_E_NULL, "gradient: the list of %s is NULL",
                             of ? "gradients" : "arrays");
    }
    for (int i = 0; i < n; i++)
        grad[i] = NULL;
    /* The status shows whether a vjp fails: set an earlier error aside, and
     * restore it as the first one. */
    const lb_status before = cx->status;
    char sentence[LB_ERROR_SIZE];
    memcpy(sentence, cx->error, sizeof sentence);
    lb_clear(cx);
    cx->layer = t->layer.below;
    const bool ok = differentiate(t, y, dy, of, n, grad);
    cx->layer = top;
    if (before) {
        cx->status = before;
        memcpy(cx->error, sentence, sizeof sentence);
    }
    clear(t);
    return ok;
}
