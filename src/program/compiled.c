/* compiled.c - compiled functions: a cache of programs by signature.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/program.h"

enum { DEFAULT_CACHE = 16 };
static const int64_t default_fold = 1 << 20;

struct lb_compiled {
    lb_ctx *cx;
    size_t got;
    prog_function fn;
    bool check, off;
    int room; /* maximum number of programs */
    int64_t fold_bytes;
    lb_list programs; /* most recently used first */
    lb_compiled_stats stats;
    char *text; /* of lb_compiled_explain */
    size_t text_got;
};

static bool read_options(lb_ctx *cx, const lb_compile_options *options,
                         lb_compile_options *o)
{
    *o = (lb_compile_options){0};
    if (!options) return true;
    const size_t size =
        options->struct_size ? options->struct_size : sizeof *options;
    if (size < offsetof(lb_compile_options, cache))
        return lb_fail(cx, LB_E_ARG,
                       "compile: options.struct_size is %zu, too small", size);
    memcpy(o, options, size < sizeof *o ? size : sizeof *o);
    if (o->cache < 0)
        return lb_fail(cx, LB_E_ARG,
                       "compile: options.cache is %d; it must not be negative",
                       o->cache);
    if (o->fold_bytes < -1)
        return lb_fail(cx, LB_E_ARG,
                       "compile: options.fold_bytes is %lld, less than -1",
                       (long long)o->fold_bytes);
    return true;
}

/* LOWBIT_COMPILE: "off"; "on", empty or not set. */
static bool read_switch(lb_ctx *cx, bool *off)
{
    const char *s = getenv("LOWBIT_COMPILE");
    *off = s && strcmp(s, "off") == 0;
    if (!s || !*s || *off || strcmp(s, "on") == 0) return true;
    return lb_fail(cx, LB_E_ARG, "LOWBIT_COMPILE is \"%.100s\": not on or off",
                   s);
}

static lb_compiled *compile(lb_ctx *cx, const prog_function *fn,
                            const lb_compile_options *options)
{
    lb_compile_options o;
    bool off;
    size_t got;
    if (!cx || !read_options(cx, options, &o) || !read_switch(cx, &off))
        return NULL;
    if (!fn->one && !fn->many) {
        lb_fail(cx, LB_E_NULL, "compile: the function is NULL");
        return NULL;
    }
    if (fn->n_out < 1) {
        lb_fail(cx, LB_E_ARG, "compile: n_out is %d; it must be at least 1",
                fn->n_out);
        return NULL;
    }
    lb_compiled *f = lb_heap_alloc(cx->heap, sizeof *f, &got);
    if (!f) {
        lb_fail(cx, LB_E_NOMEM, "out of memory (a compiled function)");
        return NULL;
    }
    *f = (lb_compiled){
        .cx = cx,
        .got = got,
        .fn = *fn,
        .check = o.check,
        .off = off,
        .room = o.cache ? o.cache : DEFAULT_CACHE,
        .fold_bytes = o.fold_bytes ? o.fold_bytes : default_fold,
    };
    return f;
}

lb_compiled *lb_compile(lb_ctx *cx, lb_fn fn, void *user,
                        const lb_compile_options *options)
{
    return compile(cx, &(prog_function){.one = fn, .n_out = 1, .user = user},
                   options);
}

lb_compiled *lb_compile_many(lb_ctx *cx, lb_fn_many fn, int n_out, void *user,
                             const lb_compile_options *options)
{
    return compile(cx,
                   &(prog_function){.many = fn, .n_out = n_out, .user = user},
                   options);
}

void lb_compiled_close(lb_compiled *f)
{
    if (!f) return;
    for (int64_t i = 0; i < f->programs.n; i++)
        lb_program_free(f->programs.item[i]);
    lb_list_free(f->cx->heap, &f->programs);
    if (f->text) lb_heap_free(f->cx->heap, f->text, f->text_got);
    lb_heap_free(f->cx->heap, f, f->got);
}

lb_compiled_stats lb_compiled_stats_of(const lb_compiled *f)
{
    lb_compiled_stats s = {0};
    if (!f) return s;
    s = f->stats;
    s.programs = (int)f->programs.n;
    return s;
}

/* ---- the cache ----------------------------------------------------------- */

static bool matches(const lb_program *p, lb_array *const *args, int n)
{
    if (p->n_args != n || p->precision != p->cx->precision) return false;
    for (int i = 0; i < n; i++) {
        const prog_key key = lb_key_of(args[i]);
        if (!lb_key_equal(&key, &p->key[i])) return false;
    }
    for (int64_t i = 0; i < p->states.n; i++) {
        const prog_state *s = p->states.item[i];
        const prog_key key = lb_key_of(*s->slot);
        if (!lb_key_equal(&key, &p->state_key[i])) return false;
    }
    return true;
}

/* Moves the k-th program to the front. */
static lb_program *used(lb_compiled *f, int64_t k)
{
    void **item = f->programs.item;
    lb_program *p = item[k];
    memmove(item + 1, item, (size_t)k * sizeof *item);
    item[0] = p;
    return p;
}

static lb_program *trace(lb_compiled *f, lb_array *const *args, int n)
{
    lb_program *p = lb_program_trace(f->cx, &f->fn, args, n, f->fold_bytes);
    f->stats.traces++;
    if (p && lb_program_simplify(p) && lb_program_group(p) &&
        lb_program_schedule(p))
        return p;
    lb_program_free(p);
    return NULL;
}

/* The program for these arguments, traced if there is none. */
static lb_program *find(lb_compiled *f, lb_array *const *args, int n)
{
    for (int64_t k = 0; k < f->programs.n; k++)
        if (matches(f->programs.item[k], args, n)) return used(f, k);
    lb_program *p = trace(f, args, n);
    if (!p) return NULL;
    if (f->programs.n == f->room)
        lb_program_free(f->programs.item[--f->programs.n]);
    if (!lb_list_push(f->cx, &f->programs, p)) {
        lb_program_free(p);
        return NULL;
    }
    return used(f, f->programs.n - 1);
}

const char *lb_compiled_explain(lb_compiled *f, int k, lb_explain_form form)
{
    if (!f) return NULL;
    if (k < 0 || k >= f->programs.n) {
        lb_fail(f->cx, LB_E_ARG,
                "explain: program %d does not exist (of %lld)%s", k,
                (long long)f->programs.n,
                f->programs.n ? "" : "; run the function first");
        return NULL;
    }
    if (f->text) lb_heap_free(f->cx->heap, f->text, f->text_got);
    f->text = lb_program_text(f->programs.item[k], form, &f->text_got);
    return f->text;
}

/* ---- options.check ------------------------------------------------------- */

static bool same_constant(lb_ctx *cx, lb_array *a, lb_array *b)
{
    if (!a || !b || a == b) return a == b;
    if (!lb_shape_equal(&a->shape, &b->shape) || a->dtype != b->dtype)
        return false;
    lb_enter(cx);
    lb_array *x = lb_materialize(cx, a), *y = lb_materialize(cx, b);
    const void *p = lb_data(x), *q = lb_data(y);
    const bool same =
        p && q &&
        memcmp(p, q, (size_t)lb_size(a) * lb_dtype_size(a->dtype)) == 0;
    lb_leave(cx);
    return same;
}

static bool same_node(const prog_node *a, const prog_node *b)
{
    const lb_prim *prim = a->prim;
    const size_t size =
        prim->params_exact ? prim->params_exact : prim->params_size;
    if (prim != b->prim || a->n_in != b->n_in ||
        !lb_shape_equal(&a->out->shape, &b->out->shape) ||
        memcmp(a->params, b->params, size) != 0)
        return false;
    for (int i = 0; i < a->n_in; i++)
        if (a->traced[i] != b->traced[i]) return false;
    return a->out->id == b->out->id;
}

static int id_of(const prog_value *v)
{
    return v ? v->id : -1;
}

/* Whether both use the same arrays, scalars and counters of objects. */
static bool same_states(const lb_program *a, const lb_program *b)
{
    if (a->states.n != b->states.n || a->numbers.n != b->numbers.n ||
        a->counts.n != b->counts.n)
        return false;
    for (int64_t i = 0; i < a->states.n; i++) {
        const prog_state *s = a->states.item[i], *t = b->states.item[i];
        if (s->slot != t->slot || id_of(s->in) != id_of(t->in) ||
            id_of(s->out) != id_of(t->out))
            return false;
    }
    for (int64_t i = 0; i < a->numbers.n; i++) {
        const prog_number *s = a->numbers.item[i], *t = b->numbers.item[i];
        if (s->fn != t->fn || s->user != t->user || s->which != t->which ||
            s->value->id != t->value->id)
            return false;
    }
    for (int64_t i = 0; i < a->counts.n; i++) {
        const prog_count *s = a->counts.item[i], *t = b->counts.item[i];
        if (s->count != t->count || s->by != t->by) return false;
    }
    return true;
}

/* Traces the function again, and fails if the calls differ. */
static bool check_again(lb_compiled *f, const lb_program *was,
                        lb_array *const *args, int n)
{
    lb_program *p = trace(f, args, n);
    if (!p) return false;
    const prog_node *differs = NULL;
    bool same = p->traced_nodes == was->traced_nodes &&
                p->traced_values == was->traced_values;
    for (int64_t i = 0; i < was->traced_nodes && same; i++) {
        same = same_node(was->nodes.item[i], p->nodes.item[i]);
        if (!same) differs = was->nodes.item[i];
    }
    for (int64_t i = 0; i < was->traced_values && same; i++) {
        const prog_value *x = was->values.item[i], *y = p->values.item[i];
        same = same_constant(f->cx, x->constant, y->constant);
    }
    for (int i = 0; i < was->n_results && same; i++)
        same = was->traced[i] == p->traced[i];
    same = same && same_states(was, p);
    const char *name = differs ? differs->prim->name : NULL;
    const long long nodes = p->traced_nodes, before = was->traced_nodes;
    lb_program_free(p);
    if (same) return true;
    return lb_fail(f->cx, LB_E_ARG,
                   "run: the function differs from call to call (%lld calls of "
                   "primitives, %lld before%s%s): it may depend on nothing but "
                   "its arguments",
                   nodes, before, name ? "; first difference at " : "",
                   name ? name : "");
}

/* ---- running ------------------------------------------------------------- */

/* Whether a tape or another layer must see each call. */
static bool is_watched(const lb_ctx *cx)
{
    for (const lb_layer *l = cx->layer; l; l = l->below)
        if (!l->transparent) return true;
    return false;
}

static bool check_args(lb_compiled *f, lb_array *const *args, int n)
{
    if (n < 0 || (n && !args))
        return n < 0 ? lb_fail(f->cx, LB_E_ARG,
                               "run: the number of arguments is %d", n)
                     : lb_fail(f->cx, LB_E_NULL,
                               "run: the list of %d arguments is NULL", n);
    for (int i = 0; i < n; i++)
        if (!args[i])
            return lb_fail(f->cx, LB_E_NULL, "run: argument %d is NULL", i);
    return true;
}

/* False if an argument was kept from a trace that has ended. */
static bool all_known(lb_ctx *cx, lb_array *const *args, int n)
{
    for (int i = 0; i < n; i++)
        if (!lb_has_elements(cx, "run", args[i])) return false;
    return true;
}

static bool eager(lb_compiled *f, lb_array *const *args, int n, lb_array **out)
{
    f->stats.eager++;
    if (lb_call_function(f->cx, &f->fn, args, n, out)) return true;
    for (int i = 0; i < f->fn.n_out; i++)
        out[i] = NULL;
    return false;
}

bool lb_run_many(lb_compiled *f, lb_array *const *args, int n, lb_array **out)
{
    if (!f) return false;
    lb_ctx *cx = f->cx;
    if (!out) return lb_fail(cx, LB_E_NULL, "run: the list of results is NULL");
    for (int i = 0; i < f->fn.n_out; i++)
        out[i] = NULL;
    if (!check_args(f, args, n)) return false;
    if (f->off || is_watched(cx)) return eager(f, args, n, out);
    if (!all_known(cx, args, n)) return false;
    const int64_t traces = f->stats.traces;
    lb_program *p = find(f, args, n);
    if (!p) return false;
    if (f->check && traces == f->stats.traces && !check_again(f, p, args, n))
        return false;
    f->stats.runs++;
    return lb_program_run(p, args, out);
}

lb_array *lb_run(lb_compiled *f, lb_array *const *args, int n)
{
    lb_array *out = NULL;
    if (f && f->fn.n_out != 1) {
        lb_fail(f->cx, LB_E_ARG,
                "run: the function has %d results (use lb_run_many)",
                f->fn.n_out);
        return NULL;
    }
    return lb_run_many(f, args, n, &out) ? out : NULL;
}
