/* bind.c - the single entry point: every operation goes through lb_bind.
 *
 *   layers   the innermost sees the call and passes it on with lb_bind
 *   infer    shape and dtype of the result, or an error
 *   rule     the format's own implementation, if it has one that accepts
 *   move     a view, or moved whole blocks
 *   composed the calls that the primitive is a shortcut for
 *   tiles    eval, decoding operands as it reads them
 *   dense    eval on dense copies of the operands, if the policy allows
 */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "kernels/stream.h"

/* What a call did or would do, for lb_explain. */
typedef struct {
    const char *tier;
    const char *kernel;
    int64_t units;
    size_t shared, per_thread;
    char detail[LB_PLAN_DETAIL];
} bind_report;

/* ---- tiers -------------------------------------------------------------- */

/* Rules are user code: check that the result is what infer promised. */
static bool is_promised(lb_ctx *cx, const lb_call *c, int i, const lb_array *a)
{
    if (a && a->dtype == c->dtype && lb_shape_equal(&a->shape, &c->shape))
        return true;
    return lb_fail(cx, LB_E_ARG, "%s: the rule of %s returned %s%s, not %s%s",
                   c->prim->name, c->in[i]->store->fmt->name,
                   a ? lb_dtype_name(a->dtype) : "nothing",
                   a ? LB_SHOW(&a->shape) : "", lb_dtype_name(c->dtype),
                   LB_SHOW(&c->shape));
}

/* The latest first. A rule that is running is not tried, so that it can call
 * its own primitive. */
static lb_verdict by_added_rule(lb_ctx *cx, const lb_call *c, int i,
                                lb_array **out)
{
    const lb_format *fmt = c->in[i]->store->fmt;
    lb_verdict v = LB_DECLINED;
    for (int64_t k = cx->rules.n; k-- > 0 && v == LB_DECLINED;) {
        lb_added_rule *r = cx->rules.item[k];
        if (r->prim != c->prim || r->active || (r->fmt && r->fmt != fmt))
            continue;
        r->active = true;
        v = r->run(cx, c, i, out);
        r->active = false;
    }
    return v;
}

static lb_verdict by_own_rule(lb_ctx *cx, const lb_call *c, int i,
                              lb_array **out)
{
    const lb_rule *r = c->in[i]->store->fmt->rules;
    lb_verdict v = LB_DECLINED;
    for (; r && r->prim && v == LB_DECLINED; r++)
        if (strcmp(r->prim, c->prim->name) == 0) v = r->run(cx, c, i, out);
    return v;
}

/* Tries the rules of each operand in order; the first that does not decline
 * decides. */
static lb_verdict by_rule(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    for (int i = 0; i < c->n_in; i++) {
        lb_verdict v = by_added_rule(cx, c, i, out);
        if (v == LB_DECLINED) v = by_own_rule(cx, c, i, out);
        if (v == LB_DONE && !is_promised(cx, c, i, *out)) return LB_FAILED;
        if (v != LB_DECLINED) return v;
    }
    return LB_DECLINED;
}

static bool has_rules(const lb_ctx *cx, const lb_call *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (lb_has_rules(cx, c->in[i]->store->fmt)) return true;
    return false;
}

/* Ends the scope of a call, which may have created intermediate arrays: only
 * the result leaves. A rule may return an array that its scope does not hold,
 * such as an operand or one that its author keeps; the caller gets a view, so
 * that every result is the caller's to drop. */
static lb_array *leave_with_result(lb_ctx *cx, const lb_call *c, lb_array *out)
{
    const bool overwritten = c->reuse && out == c->in[0];
    if (out && !overwritten && !lb_in_scope(cx, cx->n_scopes - 1, out))
        out = lb_view(cx, out);
    return lb_leave_with(cx, out);
}

static lb_verdict by_rule_or_move(lb_ctx *cx, const lb_call *c, bind_report *r,
                                  lb_array **out)
{
    const bool dry = cx->dry;
    if (!c->prim->move && !has_rules(cx, c)) return LB_DECLINED;
    cx->dry = false; /* whether blocks can move may depend on their values */
    lb_enter(cx);
    lb_verdict v = by_rule(cx, c, out);
    r->tier = "rule";
    if (v == LB_DECLINED && c->prim->move) {
        cx->quiet++; /* a part may become dense; the array does not */
        v = c->prim->move(cx, c, out);
        cx->quiet--;
        r->tier = "move";
    }
    cx->dry = dry;
    *out = leave_with_result(cx, c, v == LB_DONE ? *out : NULL);
    return v == LB_DONE && !*out ? LB_FAILED : v;
}

/* Applies the policy to operand i, of which a dense copy is needed or, if moved
 * is set, which makes the result dense. */
static bool may_be_dense(lb_ctx *cx, const lb_call *c, int i, bool moved)
{
    char s[LB_ERROR_SIZE];
    const lb_array *a = c->in[i];
    const lb_dense_policy policy = lb_dense_of(cx, a->store->fmt);
    if (policy == LB_DENSE_ALLOW) return true;
    if (moved)
        snprintf(s, sizeof s,
                 "%s has a dense result, %s%s of %lld bytes, because %s cannot "
                 "store the elements of operand %d, %s%s of %zu bytes, in this "
                 "layout",
                 c->prim->name, lb_dtype_name(c->dtype), LB_SHOW(&c->shape),
                 (long long)(lb_shape_size(&c->shape) *
                             (int64_t)lb_dtype_size(c->dtype)),
                 lb_format_of(a), i, lb_dtype_name(a->dtype),
                 LB_SHOW(&a->shape), lb_nbytes(a));
    else
        snprintf(s, sizeof s, "%s needs a dense copy of operand %d, %s %s%s",
                 c->prim->name, i, lb_format_of(a), lb_dtype_name(a->dtype),
                 LB_SHOW(&a->shape));
    if (policy == LB_DENSE_DENY)
        return lb_fail(cx, LB_E_DENIED,
                       "%s, which the context's policy forbids%s", s,
                       moved ? " (use lb_materialize first)" : "");
    if (cx->log) cx->log(cx->log_user, s);
    return true;
}

/* Applies the strictest policy of packed operands to a dense result that holds
 * their elements. An empty one holds none. */
static bool may_unpack(lb_ctx *cx, const lb_call *c)
{
    int n = c->prim->moves, strictest = -1;
    lb_dense_policy policy = LB_DENSE_ALLOW;
    if (n < 0 || n > c->n_in) n = c->n_in;
    if (cx->quiet || !lb_shape_size(&c->shape)) return true;
    for (int i = 0; i < n; i++) {
        const lb_store *s = c->in[i]->store;
        const lb_dense_policy own = lb_dense_of(cx, s->fmt);
        if (s->data || own <= policy) continue;
        policy = own;
        strictest = i;
    }
    return strictest < 0 || may_be_dense(cx, c, strictest, true);
}

/* Makes operands dense and row-major; copy has room for all of them. */
static bool densify(lb_ctx *cx, lb_call *c, lb_array **copy, bind_report *r)
{
    for (int i = 0; i < c->n_in; i++) {
        copy[i] = c->in[i];
        if (lb_data(copy[i])) continue;
        if (!copy[i]->store->data && !may_be_dense(cx, c, i, false))
            return false;
        r->tier = "dense";
        if (!cx->dry) copy[i] = lb_materialize(cx, copy[i]);
        if (!copy[i]) return false;
    }
    c->in = copy;
    return true;
}

typedef struct {
    lb_work work;
    char *scratch;
    size_t stride;
} bind_job;

static void run_units(void *arg, int64_t lo, int64_t hi, int thread)
{
    const bind_job *j = arg;
    lb_work w = j->work;
    w.lo = lo;
    w.hi = hi;
    w.scratch = j->scratch + j->stride * (size_t)thread;
    w.call->prim->eval(&w);
    lb_stream_end(); /* complete non-temporal stores before others read */
}

static bool in_trouble(lb_ctx *cx, const lb_call *c, int64_t where)
{
    if (c->prim->trouble) c->prim->trouble(cx, c, where);
    return lb_fail(cx, LB_E_ARG, "%s: invalid value at element %lld",
                   c->prim->name, (long long)where);
}

static bool run_phases(lb_ctx *cx, const lb_call *c, const lb_plan *plan,
                       lb_array *out)
{
    enum { FEW = 8192 };
    _Alignas(64) char few[FEW];
    const size_t line = 64;
    const size_t shared = (plan->shared + line - 1) / line * line;
    int64_t trouble = INT64_MAX;
    bind_job j = {
        .work = {.call = c, .out = out, .plan = plan, .trouble = &trouble}};
    size_t own, size, got = 0;
    j.stride = (plan->per_thread + line - 1) / line * line;
    char *block = few;
    if (!lb_mul_size(j.stride, (size_t)c->threads, &own) ||
        !lb_add_size(shared, own, &size) || shared < plan->shared ||
        j.stride < plan->per_thread)
        return lb_fail(cx, LB_E_NOMEM, "out of memory for the scratch of %s",
                       c->prim->name);
    if (size > FEW && !(block = lb_heap_alloc(cx->heap, size, &got)))
        return lb_fail(cx, LB_E_NOMEM,
                       "out of memory (%zu bytes of scratch for %s)", size,
                       c->prim->name);
    j.work.shared = block;
    j.scratch = block + shared;
    bool ok = true;
    for (int p = 0; p < plan->phases && ok; p++) {
        j.work.phase = p;
        if (c->threads > 1)
            lb_pool_offer(cx->pool, plan->units[p], run_units, &j);
        else if (plan->units[p] > 0)
            run_units(&j, 0, plan->units[p], 0);
        ok = trouble == INT64_MAX || in_trouble(cx, c, trouble);
        /* Other ranks wait for this slice, even if it has failed. */
        if (c->whole && c->whole->reduce && c->prim->meet)
            ok = c->prim->meet(&j.work) && ok;
    }
    if (got) lb_heap_free(cx->heap, block, got);
    return ok;
}

void lb_work_trouble(const lb_work *w, int64_t where)
{
    int64_t was = __atomic_load_n(w->trouble, __ATOMIC_RELAXED);
    while (where < was &&
           !__atomic_compare_exchange_n(w->trouble, &was, where, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

/* Before a call is planned. */
static void set_threads(const lb_ctx *cx, lb_call *c)
{
    if (c->threads > 1) c->threads = lb_threads_for(cx, lb_call_ns(c));
}

static lb_array *by_eval(lb_ctx *cx, lb_call *c, bind_report *r)
{
    _Alignas(64) char note[LB_PLAN_NOTE];
    lb_plan plan = {.kernel = "", .note = note};
    if (cx->dry) plan.detail = r->detail;
    set_threads(cx, c);
    c->prim->plan(c, &plan);
    r->kernel = plan.kernel ? plan.kernel : "";
    cx->kernel = r->kernel;
    r->shared = plan.shared;
    r->per_thread = plan.per_thread;
    for (int p = 0; p < plan.phases; p++)
        r->units = lb_max_i64(r->units, plan.units[p]);
    if (cx->dry) return NULL;
    lb_array *out = c->prim->result ? c->prim->result(cx, c)
                                    : lb_dense(cx, c->dtype, &c->shape);
    if (!out || run_phases(cx, c, &plan, out)) return out;
    lb_drop(cx, out);
    return NULL;
}

/* Copies of operands must be freed before the call returns, so they have their
 * own scope and list. */
static lb_array *by_dense(lb_ctx *cx, lb_call *c, bind_report *r)
{
    size_t got;
    lb_array **copy =
        lb_heap_alloc(cx->heap, (size_t)c->n_in * sizeof *copy, &got);
    if (!copy) {
        lb_fail(cx, LB_E_NOMEM, "out of memory");
        return NULL;
    }
    lb_array *const *in = c->in;
    lb_enter(cx);
    lb_array *out = densify(cx, c, copy, r) ? by_eval(cx, c, r) : NULL;
    lb_leave_with(cx, out);
    c->in = in; /* lb_explain still uses them */
    lb_heap_free(cx->heap, copy, got);
    return out;
}

/* Rules of the operands' formats have to see the calls themselves. */
static bool is_composed(const lb_ctx *cx, const lb_call *c)
{
    const lb_prim *p = c->prim;
    return p->compose && ((p->suits && !p->suits(c)) || has_rules(cx, c));
}

static lb_array *by_compose(lb_ctx *cx, const lb_call *c)
{
    lb_enter(cx);
    lb_array *out = c->prim->compose(cx, c);
    if (out &&
        (out->dtype != c->dtype || !lb_shape_equal(&out->shape, &c->shape))) {
        lb_fail(cx, LB_E_ARG, "%s: composed, it is %s%s, not %s%s",
                c->prim->name, lb_dtype_name(out->dtype), LB_SHOW(&out->shape),
                lb_dtype_name(c->dtype), LB_SHOW(&c->shape));
        out = NULL;
    }
    return leave_with_result(cx, c, out);
}

static lb_array *run(lb_ctx *cx, lb_call *c, bind_report *r)
{
    lb_array *out = NULL;
    switch (by_rule_or_move(cx, c, r, &out)) {
    case LB_DONE:
        cx->kernel = r->tier;
        return out;
    case LB_FAILED:
        lb_fail(cx, LB_E_ARG, "%s failed", c->prim->name);
        return NULL;
    case LB_DECLINED:
        break;
    }
    if (is_composed(cx, c)) {
        r->tier = "composed";
        return cx->dry ? NULL : by_compose(cx, c);
    }
    r->tier = "tiles";
    if (!c->prim->eval) {
        lb_fail(cx, LB_E_UNSUPPORTED, "%s declined and has no eval",
                c->prim->name);
        return NULL;
    }
    if (c->prim->moves && !may_unpack(cx, c)) return NULL;
    return c->prim->dense ? by_dense(cx, c, r) : by_eval(cx, c, r);
}

/* ---- lb_bind ------------------------------------------------------------- */

static bool check_call(lb_ctx *cx, const lb_prim *prim, int n,
                       lb_array *const *in, const void *params)
{
    if (!prim) return lb_fail(cx, LB_E_NULL, "bind: the primitive is NULL");
    if (n < 0 || (prim->n_in < 0 ? n < 1 : n != prim->n_in))
        return lb_fail(cx, LB_E_ARG, "%s: %d operands, not %s%d", prim->name, n,
                       prim->n_in < 0 ? "at least " : "",
                       prim->n_in < 0 ? 1 : prim->n_in);
    if (n && !in)
        return lb_fail(cx, LB_E_NULL, "%s: the list of operands is NULL",
                       prim->name);
    for (int i = 0; i < n; i++) {
        if (!in[i])
            return lb_fail(cx, LB_E_NULL, "%s: operand %d is NULL", prim->name,
                           i);
        if (cx->debug && !lb_is_alive(cx, prim->name, in[i])) return false;
    }
    if (prim->params_size && !params)
        return lb_fail(cx, LB_E_NULL, "%s: params are NULL", prim->name);
    return true;
}

const lb_cpu *lb_cpu_for(const lb_ctx *cx, lb_array *const *in, int n)
{
    static const lb_cpu reference = {.level = LB_LEVEL_REF};
    for (int i = 0; i < n; i++)
        if (in[i]->store->made.reference) return &reference;
    return &cx->cpu;
}

lb_call lb_call_of(const lb_ctx *cx, const lb_prim *prim, int n,
                   lb_array *const *in, const void *params)
{
    return (lb_call){
        .prim = prim,
        .cpu = &cx->cpu,
        .threads = lb_pool_threads(cx->pool),
        .precision = cx->precision,
        .n_in = n,
        .in = in,
        .params = params,
    };
}

static lb_call make_call(lb_ctx *cx, const lb_prim *prim, int n,
                         lb_array *const *in, const void *params)
{
    lb_call c = lb_call_of(cx, prim, n, in, params);
    c.cpu = lb_cpu_for(cx, in, n);
    return c;
}

/* The mesh's layer handles all sharded arrays, a trace all traced ones: none
 * may get here. */
static bool all_here(lb_ctx *cx, const lb_prim *prim, int n,
                     lb_array *const *in)
{
    for (int i = 0; i < n; i++) {
        if (!lb_has_elements(cx, prim->name, in[i])) return false;
        if (in[i]->store->sharding)
            return lb_fail(cx, LB_E_MESH,
                           "%s: operand %d, %s%s, is sharded over a mesh that "
                           "does not, or no longer, belong to this context",
                           prim->name, i, lb_dtype_name(in[i]->dtype),
                           LB_SHOW(&in[i]->shape));
    }
    return true;
}

bool lb_run_plan(lb_ctx *cx, const lb_call *c, const lb_plan *plan,
                 lb_array *out)
{
    return run_phases(cx, c, plan, out);
}

static bool takes(const lb_layer *l, const lb_prim *prim, int n,
                  lb_array *const *in)
{
    return !prim->compose || (l->whole && l->whole(l, prim, n, in));
}

/* Makes the composed calls, which the innermost layer then sees. */
static lb_array *compose(lb_ctx *cx, const lb_prim *prim, int n,
                         lb_array *const *in, const void *params)
{
    lb_call c = lb_call_of(cx, prim, n, in, params);
    if (prim->infer(cx, &c)) return by_compose(cx, &c);
    lb_fail(cx, LB_E_ARG, "%s: refused", prim->name);
    return NULL;
}

/* Whether the result may be written into operand 0. */
static bool may_reuse(lb_ctx *cx, const lb_call *c)
{
    const lb_array *a = cx->given;
    cx->given = NULL;
    if (!a || !c->prim->reuses || c->in[0] != a) return false;
    for (int i = 1; i < c->n_in; i++)
        if (c->in[i] == a) return false;
    return !lb_shared_why(a, cx->given_refs);
}

lb_array *lb_bind(lb_ctx *cx, const lb_prim *prim, int n, lb_array *const *in,
                  const void *params)
{
    if (!cx || !check_call(cx, prim, n, in, params)) return NULL;
    lb_layer *layer = cx->layer;
    if (layer) {
        if (!layer->transparent && !layer->gives) cx->given = NULL;
        if (!takes(layer, prim, n, in)) return compose(cx, prim, n, in, params);
        cx->layer = layer->below;
        lb_array *out = layer->bind(cx, layer, prim, n, in, params);
        cx->layer = layer;
        return out;
    }
    if (!all_here(cx, prim, n, in)) return NULL;
    lb_call c = make_call(cx, prim, n, in, params);
    c.whole = cx->whole;
    cx->whole = NULL;
    c.reuse = may_reuse(cx, &c);
    bind_report r = {0};
    if (!prim->infer(cx, &c)) {
        lb_fail(cx, LB_E_ARG, "%s: refused", prim->name);
        return NULL;
    }
    const char *was = cx->making;
    cx->making = prim->name;
    lb_array *out = run(cx, &c, &r);
    cx->making = was;
    return out;
}

lb_array *lb_bind_given(lb_ctx *cx, int refs, const lb_prim *prim, int n,
                        lb_array *const *in, const void *params)
{
    cx->given = n ? in[0] : NULL;
    cx->given_refs = refs;
    lb_array *out = lb_bind(cx, prim, n, in, params);
    cx->given = NULL;
    return out;
}

lb_array *lb_bind_slice(lb_ctx *cx, const lb_prim *prim, int n,
                        lb_array *const *in, const void *params,
                        const lb_whole *whole)
{
    cx->whole = whole;
    lb_array *out = lb_bind(cx, prim, n, in, params);
    cx->whole = NULL;
    return out;
}

lb_verdict lb_bind_into(lb_ctx *cx, const lb_prim *prim, int n,
                        lb_array *const *in, const void *params, lb_array *out)
{
    lb_call c = make_call(cx, prim, n, in, params);
    _Alignas(64) char note[LB_PLAN_NOTE];
    lb_plan plan = {.kernel = "", .note = note};
    if (cx->layer || has_rules(cx, &c) || prim->move || prim->moves ||
        prim->dense || prim->result || prim->compose)
        return LB_DECLINED;
    if (!prim->infer(cx, &c)) return LB_FAILED;
    set_threads(cx, &c);
    prim->plan(&c, &plan);
    return run_phases(cx, &c, &plan, out) ? LB_DONE : LB_FAILED;
}

void lb_push_layer(lb_ctx *cx, lb_layer *layer)
{
    layer->below = cx->layer;
    cx->layer = layer;
}

void lb_pop_layer(lb_ctx *cx)
{
    if (cx->layer) cx->layer = cx->layer->below;
}

/* ---- lb_explain ---------------------------------------------------------- */

static size_t say_array(char *to, size_t room, const lb_array *a)
{
    const bool packed = !a->store->data;
    const int n = snprintf(to, room, " %s%s%s%s", packed ? lb_format_of(a) : "",
                           packed ? " " : "", lb_dtype_name(a->dtype),
                           LB_SHOW(&a->shape));
    return lb_min_i64(n, (int64_t)room - 1) > 0
               ? (size_t)lb_min_i64(n, (int64_t)room - 1)
               : 0;
}

static void say_call(lb_ctx *cx, const lb_call *c, const bind_report *r)
{
    enum { SHOWN = 4 }; /* operands shown of a long list */
    char *to = cx->explain;
    size_t room = sizeof cx->explain, at = 0;
    at += (size_t)snprintf(to, room, "%.64s", c->prim->name);
    for (int i = 0; i < c->n_in && i < SHOWN; i++)
        at += say_array(to + at, room - at, c->in[i]);
    at += (size_t)snprintf(
        to + at, room - at, "%s -> %s%s: %s", c->n_in > SHOWN ? " ..." : "",
        lb_dtype_name(c->dtype), LB_SHOW(&c->shape), r->tier);
    if (strcmp(r->tier, "tiles") == 0 || strcmp(r->tier, "dense") == 0)
        snprintf(to + at, room - at,
                 "%s%.64s%s%s, %lld unit%s on %d thread%s, "
                 "scratch %zu + %zu each",
                 r->kernel[0] ? ", " : "", r->kernel, r->detail[0] ? ", " : "",
                 r->detail, (long long)r->units, r->units == 1 ? "" : "s",
                 c->threads, c->threads == 1 ? "" : "s", r->shared,
                 r->per_thread);
}

/* Asks the layers whether one of them would handle the call itself. */
static bool by_layer(lb_ctx *cx, const lb_call *c, bind_report *r)
{
    for (lb_layer *l = cx->layer; l; l = l->below) {
        if (!takes(l, c->prim, c->n_in, c->in)) {
            r->tier = "composed";
            return true;
        }
        if (!l->explain ||
            !l->explain(cx, l, c, cx->explain, sizeof cx->explain))
            continue;
        r->tier = "layer";
        return true;
    }
    return !all_here(cx, c->prim, c->n_in, c->in);
}

const char *lb_explain(lb_ctx *cx, const char *primitive, lb_array *const *in,
                       int n, const void *params)
{
    if (!cx) return NULL;
    const lb_prim *prim = lb_find_primitive(cx, primitive);
    if (!prim) {
        lb_fail(cx, LB_E_ARG, "explain: unknown primitive \"%.100s\"",
                primitive ? primitive : "");
        return NULL;
    }
    if (!check_call(cx, prim, n, in, params)) return NULL;
    lb_call c = make_call(cx, prim, n, in, params);
    bind_report r = {.kernel = ""};
    /* Set an earlier error aside, so that it neither hides an error of this
     * call nor gets lost. */
    const lb_status before = cx->status;
    char sentence[LB_ERROR_SIZE];
    memcpy(sentence, cx->error, sizeof sentence);
    lb_clear(cx);
    cx->dry = true;
    lb_enter(cx);
    if (prim->infer(cx, &c) && !by_layer(cx, &c, &r)) run(cx, &c, &r);
    lb_leave(cx);
    cx->dry = false;
    const bool ok = !cx->status && r.tier;
    if (before) {
        cx->status = before;
        memcpy(cx->error, sentence, sizeof sentence);
    }
    if (!ok) return NULL;
    if (strcmp(r.tier, "layer") != 0) say_call(cx, &c, &r);
    return cx->explain;
}
