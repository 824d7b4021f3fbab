/* trace.c - runs a function on arrays without elements and records its calls.
 *
 * A traced array has the metadata of the real one (format and parts of an
 * argument, or those created by a primitive's `result`; otherwise it is dense),
 * so that code that depends on formats takes the same path as in eager calls.
 * It has no elements: lb_has_elements fails, and nothing may read them.
 *
 * Calls without a traced operand depend on constants only. They are computed at
 * once if the result is small or a view, and recorded otherwise.
 */
#include <string.h>

#include "program/program.h"

typedef struct tracer {
    lb_layer layer;  /* first member, to be cast back */
    lb_tracer hooks; /* for objects with state */
    lb_program *p;
    int64_t id, fold_bytes;
} tracer;

/* What lb_store.traced of a traced array points to. */
typedef struct ghost {
    lb_traced base; /* first member, to be cast back */
    prog_value *value;
    tracer *t;        /* valid while its trace runs */
    lb_array *origin; /* a reference: source of the metadata; or NULL */
} ghost;

/* ---- memory of a program ------------------------------------------------- */

void *lb_prog_alloc(prog_memory *m, size_t size)
{
    enum { ALIGN = 16, LEAST = 8192 };
    const size_t own = (sizeof(prog_block) + ALIGN - 1) / ALIGN * ALIGN;
    const size_t need = (size + ALIGN - 1) / ALIGN * ALIGN;
    prog_block *b = m->first;
    if (need < size) b = NULL;
    if (!b || b->size - b->used < need) {
        size_t want, got;
        b = need >= size && lb_add_size(own, need > LEAST ? need : LEAST, &want)
                ? lb_heap_alloc(m->cx->heap, want, &got)
                : NULL;
        if (!b) {
            lb_fail(m->cx, LB_E_NOMEM, "out of memory (a compiled function)");
            return NULL;
        }
        *b = (prog_block){m->first, got, own, want};
        m->first = b;
    }
    void *to = (char *)b + b->used;
    b->used += need;
    return memset(to, 0, size);
}

void lb_prog_free(prog_memory *m)
{
    while (m->first) {
        prog_block *b = m->first;
        m->first = b->next;
        lb_heap_free(m->cx->heap, b, b->got);
    }
}

/* ---- values and nodes ---------------------------------------------------- */

static prog_value *new_value(lb_program *p, lb_dtype dtype,
                             const lb_shape *shape)
{
    prog_value *v = lb_prog_alloc(&p->memory, sizeof *v);
    if (!v) return NULL;
    v->id = (int)p->values.n;
    v->dtype = dtype;
    v->shape = *shape;
    v->arg = -1;
    return lb_list_push(p->cx, &p->values, v) ? v : NULL;
}

static prog_value *constant_of(lb_program *p, lb_array *a)
{
    for (int64_t i = 0; i < p->values.n; i++) {
        prog_value *v = p->values.item[i];
        if (v->constant == a) return v;
    }
    prog_value *v = new_value(p, a->dtype, &a->shape);
    if (v) v->constant = lb_ref(a);
    return v;
}

/* ---- traced arrays ------------------------------------------------------- */

static void forget(void *user)
{
    lb_unref(((ghost *)user)->origin);
}

static lb_array *like_of(lb_ctx *cx, lb_array *a, const lb_array *like,
                         bool cheap);

/* A traced array for a value. origin: source of its metadata, or NULL: dense.
 */
static lb_array *stand_in(tracer *t, prog_value *value, lb_array *origin,
                          const char *made_by)
{
    lb_ctx *cx = t->p->cx;
    const size_t own = (sizeof(lb_store) + 15) / 16 * 16;
    size_t got;
    lb_array *dense = NULL;
    if (!origin) { /* provides the metadata of a leaf */
        const lb_shape none = {1, {0}};
        origin = dense = lb_dense(cx, value->dtype, &none);
        if (!dense) return NULL;
    }
    lb_store *s = lb_heap_alloc(cx->heap, own + sizeof(ghost), &got);
    if (!s) {
        lb_fail(cx, LB_E_NOMEM, "out of memory (a compiled function)");
        return NULL;
    }
    ghost *g = (ghost *)(void *)((char *)s + own);
    *s = *origin->store;
    const lb_traced behind = {
        .trace = t->id, .made_by = made_by, .like = like_of};
    *g = (ghost){behind, value, t, lb_ref(origin)};
    s->refs = 1;
    s->heap = cx->heap;
    s->heap_size = got;
    s->data = NULL;
    s->data_size = 0;
    s->done = forget;
    s->user = g;
    s->traced = &g->base;
    if (dense) s->shape = value->shape;
    for (int i = 0; i < LB_MAX_PARTS; i++)
        lb_ref(s->part[i].a);
    lb_array *a = lb_view_store(cx, s, value->dtype);
    if (dense) lb_drop(cx, dense);
    if (!a) return NULL;
    a->shape = value->shape;
    if (dense) {
        lb_row_major(&a->shape, a->stride);
    } else {
        memcpy(a->stride, origin->stride, sizeof a->stride);
        a->offset = origin->offset;
        a->weak = origin->weak;
    }
    return a;
}

static const ghost *ghost_of(const lb_array *a)
{
    return (const ghost *)(const void *)a->store->traced;
}

/* The value of an operand or a result. */
static prog_value *value_of(tracer *t, const char *who, lb_array *a)
{
    const ghost *g = ghost_of(a);
    if (!g) return constant_of(t->p, a);
    if (g->base.trace == t->id) return g->value;
    lb_fail(t->p->cx, LB_E_ARG,
            "%s: %s%s belongs to a function that was compiled before", who,
            lb_dtype_name(a->dtype), LB_SHOW(&a->shape));
    return NULL;
}

/* ---- recording ----------------------------------------------------------- */

/* The argument that a value is an updated form of, or -1. */
static int root_of(const prog_value *v)
{
    return v->by && v->by->gives ? v->by->root : v->arg;
}

static lb_array *record(tracer *t, lb_call *c)
{
    lb_program *p = t->p;
    lb_ctx *cx = p->cx;
    const size_t n = (size_t)c->n_in;
    prog_node *node = lb_prog_alloc(&p->memory, sizeof *node);
    void *params = lb_prog_alloc(&p->memory, c->prim->params_size);
    prog_value **in = lb_prog_alloc(&p->memory, n * sizeof(prog_value *));
    int *traced = lb_prog_alloc(&p->memory, n * sizeof(int));
    if (!node || !params || !in || !traced) return NULL;
    if (c->prim->params_size) memcpy(params, c->params, c->prim->params_size);
    for (int i = 0; i < c->n_in; i++) {
        if (!(in[i] = value_of(t, c->prim->name, c->in[i]))) return NULL;
        traced[i] = in[i]->id;
    }
    *node = (prog_node){.prim = c->prim,
                        .params = params,
                        .n_in = c->n_in,
                        .in = in,
                        .traced = traced,
                        .at = (int)p->nodes.n,
                        .quiet = cx->quiet > 0,
                        .gives = n && cx->given == c->in[0]};
    node->root = node->gives ? root_of(in[0]) : -1;
    if (node->gives) in[0]->updated = true;
    cx->given = NULL;
    if (c->prim->fuse) c->prim->fuse(c, &node->fusion);
    if (c->prim->operations) node->operations = c->prim->operations(c);
    if (!(node->out = new_value(p, c->dtype, &c->shape))) return NULL;
    node->out->by = node;
    if (!lb_list_push(cx, &p->nodes, node)) return NULL;
    lb_array *origin = c->prim->result ? c->prim->result(cx, c) : NULL;
    if (c->prim->result && !origin) return NULL;
    lb_array *out = stand_in(t, node->out, origin, c->prim->name);
    if (origin) lb_drop(cx, origin);
    return out;
}

/* Whether a call on constants is computed now: its result is a view, or small.
 */
static bool folds(const tracer *t, const lb_call *c)
{
    size_t size;
    if (t->fold_bytes < 0) return false;
    if (!c->prim->eval) return true;
    return lb_mul_size((size_t)lb_shape_size(&c->shape),
                       lb_dtype_size(c->dtype), &size) &&
           size <= (size_t)t->fold_bytes;
}

static lb_array *trace_call(lb_ctx *cx, lb_layer *self, const lb_prim *prim,
                            int n, lb_array *const *in, const void *params)
{
    tracer *t = (tracer *)(void *)self;
    bool traced = false;
    for (int i = 0; i < n; i++)
        traced = traced || in[i]->store->traced;
    lb_call c = lb_call_of(cx, prim, n, in, params);
    if (!prim->infer(cx, &c)) {
        lb_fail(cx, LB_E_ARG, "%s: refused", prim->name);
        return NULL;
    }
    if (traced || !folds(t, &c)) return record(t, &c);
    cx->given = NULL; /* constants stay */
    return lb_bind(cx, prim, n, in, params);
}

/* Whether a primitive that is a shortcut for other calls is recorded as one
 * node: if it can be fused or has a gradient of its own. Otherwise the other
 * calls are recorded, and fuse with their neighbours. */
static bool trace_whole(const lb_layer *self, const lb_prim *prim, int n,
                        lb_array *const *in)
{
    (void)self, (void)n, (void)in;
    return prim->fuse || prim->vjp;
}

/* ---- cut as another array ------------------------------------------------ */

typedef struct like_params {
    bool cheap;
} like_params;

static bool like_infer(lb_ctx *cx, lb_call *c)
{
    (void)cx;
    c->shape = c->in[0]->shape;
    c->dtype = c->in[0]->dtype;
    return true;
}

/* Never bound: the mesh's layer would pass slices. */
lb_array *lb_run_cut_like(lb_ctx *cx, const prog_node *node,
                          lb_array *const *in)
{
    const like_params *p = node->params;
    lb_array *out = lb_cut_like(cx, in[0], in[1], p->cheap);
    return out == in[0] ? lb_view(cx, out) : out;
}

const lb_prim lb_prim_cut_like = {
    .struct_size = sizeof(lb_prim),
    .name = "cut_like",
    .params_size = sizeof(like_params),
    .n_in = 2,
    .infer = like_infer,
};

/* Recorded only if there are several ranks. */
static lb_array *like_of(lb_ctx *cx, lb_array *a, const lb_array *like,
                         bool cheap)
{
    const lb_array *of = a->store->traced ? a : like;
    const ghost *g = ghost_of(of);
    /* traces do not nest: the running one is the last one begun */
    if (!cx->tracer || g->base.trace != cx->traces) {
        lb_has_elements(cx, "cut_like", of);
        return NULL;
    }
    if (!g->t->layer.below) return a;
    lb_array *in[2] = {a, NULL};
    if (!(in[1] = lb_view(cx, like))) return NULL;
    lb_call c = lb_call_of(cx, &lb_prim_cut_like, 2, in, &(like_params){cheap});
    like_infer(cx, &c);
    return record(g->t, &c);
}

/* ---- states -------------------------------------------------------------- */

static tracer *tracer_of(lb_tracer *hooks)
{
    return (tracer *)(void *)((char *)hooks - offsetof(tracer, hooks));
}

static prog_state *state_of(tracer *t, lb_array **slot)
{
    lb_program *p = t->p;
    for (int64_t i = 0; i < p->states.n; i++) {
        prog_state *s = p->states.item[i];
        if (s->slot == slot) return s;
    }
    prog_state *s = lb_prog_alloc(&p->memory, sizeof *s);
    if (!s) return NULL;
    s->slot = slot;
    if (!(s->in = new_value(p, (*slot)->dtype, &(*slot)->shape))) return NULL;
    s->in->is_state = true;
    return lb_list_push(p->cx, &p->states, s) ? s : NULL;
}

static lb_array *get_state(lb_tracer *hooks, lb_array **slot)
{
    tracer *t = tracer_of(hooks);
    const prog_state *s = state_of(t, slot);
    if (!s) return NULL;
    return stand_in(t, s->out ? s->out : s->in, s->out ? NULL : *slot, NULL);
}

static bool set_state(lb_tracer *hooks, lb_array **slot, lb_array *a)
{
    tracer *t = tracer_of(hooks);
    prog_state *s = state_of(t, slot);
    return s && (s->out = value_of(t, "run", a)) != NULL;
}

static lb_array *get_number(lb_tracer *hooks, double (*fn)(void *, int),
                            void *user, int which)
{
    tracer *t = tracer_of(hooks);
    lb_program *p = t->p;
    prog_value *v = NULL;
    for (int64_t i = 0; i < p->numbers.n && !v; i++) {
        const prog_number *n = p->numbers.item[i];
        if (n->fn == fn && n->user == user && n->which == which) v = n->value;
    }
    if (!v) {
        prog_number *n = lb_prog_alloc(&p->memory, sizeof *n);
        v = n ? new_value(p, LB_F64, &(lb_shape){0}) : NULL;
        if (!v || !lb_list_push(p->cx, &p->numbers, n)) return NULL;
        v->is_state = true;
        *n = (prog_number){fn, user, which, v};
    }
    lb_array *a = stand_in(t, v, NULL, "a schedule");
    if (a) a->weak = true;
    return a;
}

static int advance_count(lb_tracer *hooks, int64_t *count)
{
    lb_program *p = tracer_of(hooks)->p;
    prog_count *c = NULL;
    for (int64_t i = 0; i < p->counts.n; i++) {
        c = p->counts.item[i];
        if (c->count == count) return (int)++c->by;
    }
    c = lb_prog_alloc(&p->memory, sizeof *c);
    if (!c || !lb_list_push(p->cx, &p->counts, c)) return -1;
    c->count = count;
    c->by = 1;
    return 1;
}

/* ---- the function -------------------------------------------------------- */

prog_key lb_key_of(const lb_array *a)
{
    return (prog_key){
        .dtype = a->dtype,
        .weak = a->weak,
        .direct = lb_data(a) != NULL,
        .packed = !a->store->data,
        .bytes = (int64_t)(a->store->data
                               ? (size_t)lb_size(a) * lb_dtype_size(a->dtype)
                               : lb_nbytes(a)),
        .fmt = a->store->fmt,
        .meaning = a->store->meaning,
        .sharding = a->store->sharding ? a->store->fmt : NULL,
        .shape = a->shape,
    };
}

bool lb_key_equal(const prog_key *a, const prog_key *b)
{
    return a->dtype == b->dtype && a->weak == b->weak &&
           a->direct == b->direct && a->fmt == b->fmt &&
           a->meaning == b->meaning && !a->sharding == !b->sharding &&
           lb_shape_equal(&a->shape, &b->shape);
}

bool lb_call_function(lb_ctx *cx, const prog_function *fn,
                      lb_array *const *args, int n, lb_array **out)
{
    for (int i = 0; i < fn->n_out; i++)
        out[i] = NULL;
    const int64_t before = cx->errors;
    bool ok = true;
    if (fn->many)
        ok = fn->many(cx, args, n, out, fn->n_out, fn->user);
    else
        out[0] = fn->one(cx, args, n, fn->user);
    for (int i = 0; i < fn->n_out && ok; i++)
        ok = out[i] != NULL;
    if (!ok && cx->errors == before)
        lb_fail(cx, LB_E_NULL, "run: the function returned no array");
    return ok;
}

static bool take_results(tracer *t, lb_array *const *out, int n)
{
    lb_program *p = t->p;
    p->n_results = n;
    p->traced_nodes = p->nodes.n;
    p->result = lb_prog_alloc(&p->memory, (size_t)n * sizeof *p->result);
    p->weak = lb_prog_alloc(&p->memory, (size_t)n * sizeof *p->weak);
    p->traced = lb_prog_alloc(&p->memory, (size_t)n * sizeof *p->traced);
    if (!p->result || !p->weak || !p->traced) return false;
    for (int i = 0; i < n; i++) {
        p->result[i] = value_of(t, "run", out[i]);
        if (!p->result[i]) return false;
        p->weak[i] = out[i]->weak;
        p->traced[i] = p->result[i]->id;
    }
    p->traced_values = p->values.n;
    return true;
}

/* Updated arguments have to be results: the caller could not find the array of
 * an update that had to copy. */
static bool check_updates(const lb_program *p)
{
    for (int64_t i = 0; i < p->nodes.n; i++) {
        const prog_node *node = p->nodes.item[i];
        if (!node->gives || node->root < 0 || node->out->updated) continue;
        bool found = false;
        for (int k = 0; k < p->n_results && !found; k++)
            found = p->result[k] == node->out;
        if (!found)
            return lb_fail(p->cx, LB_E_ARG,
                           "run: the function updates argument %d, %s%s, in "
                           "place but does not return the updated array",
                           node->root, lb_dtype_name(node->out->dtype),
                           LB_SHOW(&node->out->shape));
    }
    return true;
}

static bool take_arguments(tracer *t, lb_array *const *args, lb_array **in,
                           int n)
{
    lb_program *p = t->p;
    p->n_args = n;
    p->key = lb_prog_alloc(&p->memory, (size_t)n * sizeof *p->key);
    p->arg = lb_prog_alloc(&p->memory, (size_t)n * sizeof *p->arg);
    if (!p->key || !p->arg) return false;
    for (int i = 0; i < n; i++) {
        p->key[i] = lb_key_of(args[i]);
        p->arg[i] = new_value(p, args[i]->dtype, &args[i]->shape);
        if (!p->arg[i]) return false;
        p->arg[i]->arg = i;
        if (!(in[i] = stand_in(t, p->arg[i], args[i], NULL))) return false;
    }
    return true;
}

/* A program can be reused if the states have the same formats. */
static bool take_states(lb_program *p)
{
    p->state_key =
        lb_prog_alloc(&p->memory, (size_t)p->states.n * sizeof *p->state_key);
    for (int64_t i = 0; i < p->states.n && p->state_key; i++) {
        const prog_state *s = p->states.item[i];
        p->state_key[i] = lb_key_of(*s->slot);
    }
    return p->state_key != NULL;
}

void lb_program_free(lb_program *p)
{
    if (!p) return;
    lb_ctx *cx = p->cx;
    for (int64_t i = 0; i < p->values.n; i++)
        lb_unref(((prog_value *)p->values.item[i])->constant);
    lb_list_free(cx->heap, &p->values);
    lb_list_free(cx->heap, &p->nodes);
    lb_list_free(cx->heap, &p->states);
    lb_list_free(cx->heap, &p->numbers);
    lb_list_free(cx->heap, &p->counts);
    prog_memory m = p->memory; /* the program is inside */
    lb_prog_free(&m);
}

static lb_program *new_program(lb_ctx *cx)
{
    prog_memory m = {.cx = cx};
    lb_program *p = lb_prog_alloc(&m, sizeof *p);
    if (!p) return NULL;
    p->memory = m;
    p->cx = cx;
    p->precision = cx->precision;
    return p;
}

lb_program *lb_program_trace(lb_ctx *cx, const prog_function *fn,
                             lb_array *const *args, int n, int64_t fold_bytes)
{
    lb_program *p = new_program(cx);
    if (!p) return NULL;
    tracer t = {
        .layer = {.bind = trace_call, .whole = trace_whole, .gives = true},
        .hooks = {get_state, set_state, get_number, advance_count, 0},
        .p = p,
        .id = ++cx->traces,
        .fold_bytes = fold_bytes};
    lb_enter(cx);
    t.hooks.scope = cx->n_scopes - 1;
    lb_array **in = lb_prog_alloc(&p->memory, (size_t)n * sizeof(lb_array *));
    lb_array **out =
        lb_prog_alloc(&p->memory, (size_t)fn->n_out * sizeof(lb_array *));
    bool ok = in && out && take_arguments(&t, args, in, n);
    if (ok) {
        lb_push_layer(cx, &t.layer);
        cx->tracer = &t.hooks;
        /* a function may continue with the NaN of a failed lb_item */
        const int64_t before = cx->errors;
        ok = lb_call_function(cx, fn, in, n, out) &&
             (cx->errors == before || !lb_error_status(cx)) &&
             take_results(&t, out, fn->n_out) && check_updates(p) &&
             take_states(p);
        cx->tracer = NULL;
        if (cx->layer != &t.layer)
            ok = lb_fail(
                cx, LB_E_ARG,
                "run: the function left a gradient tape or a layer open");
        cx->layer = t.layer.below;
    }
    lb_leave(cx);
    if (ok) return p;
    lb_program_free(p);
    return NULL;
}
