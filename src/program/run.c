/* run.c - runs a program: its steps in order, on the arrays of this call.
 *
 * The array of a value is referenced until the step of its last use. Calls go
 * through lb_bind, as eager ones do, so that formats, rules and a mesh see
 * them.
 */
#include <string.h>

#include "program/program.h"

/* Makes a the array of a value: it leaves the open scope and is referenced. */
static bool keep(lb_ctx *cx, lb_array **val, const prog_value *v, lb_array *a)
{
    if (!a) return false;
    val[v->id] = lb_ref(a);
    lb_drop(cx, a);
    return true;
}

/* ---- updates in place ---------------------------------------------------- */

/* An updated argument has two names if it is passed twice, and only eagerly
 * would both see the update. */
static bool check_twice(const lb_program *p, lb_array *const *args)
{
    for (int i = 0; i < p->n_args; i++)
        for (int k = 0; k < p->n_args && p->arg[i]->updated; k++)
            if (k != i && args[k] == args[i])
                return lb_fail(p->cx, LB_E_ARG,
                               "run: arguments %d and %d are the same array, "
                               "%s%s, and the function updates argument %d in "
                               "place (pass a view or a copy as the other one)",
                               i, k, lb_dtype_name(args[i]->dtype),
                               LB_SHOW(&args[i]->shape), i);
    return true;
}

/* Known references to operand 0, which nothing needs after the call: those of
 * its values and, if the function updates an argument, of the caller. 0: it is
 * not to be overwritten. */
static int refs_given(const prog_node *node, const lb_array *a,
                      lb_array *const *args)
{
    const prog_value *v = node->in[0];
    if (!node->last || v->constant || v->is_state) return 0;
    if (!node->gives || node->root < 0 || args[node->root] != a)
        return v->by ? 1 : 0;
    return v->by ? 2 : 1;
}

static int updated(const lb_program *p, int i)
{
    const prog_node *node = p->result[i]->by;
    return node && node->gives ? node->root : -1;
}

/* The argument that result i is an updated form of, or -1; of several results
 * the first. */
static int root_of(const lb_program *p, int i)
{
    const int root = updated(p, i);
    for (int k = 0; k < i && root >= 0; k++)
        if (updated(p, k) == root) return -1;
    return root;
}

/* Updated arguments that had to be copied: their holders hold the results. */
static void hand_over(lb_program *p, lb_array *const *args, lb_array **out)
{
    for (int i = 0; i < p->n_results; i++) {
        const int root = root_of(p, i);
        if (root >= 0 && args[root] != out[i])
            lb_replace(p->cx, args[root], out[i]);
    }
}

/* ---- steps --------------------------------------------------------------- */

static bool run_call(lb_program *p, const prog_node *node,
                     lb_array *const *args, prog_arena *arena, lb_array **val,
                     const char **kernel)
{
    enum { FEW = 16 };
    lb_ctx *cx = p->cx;
    lb_array *few[FEW], **in = few;
    size_t got = 0;
    if (node->n_in > FEW &&
        !(in = lb_heap_alloc(cx->heap, (size_t)node->n_in * sizeof *in, &got)))
        return lb_fail(cx, LB_E_NOMEM, "out of memory (a compiled function)");
    for (int k = 0; k < node->n_in; k++)
        in[k] = val[node->in[k]->id];
    lb_enter(cx);
    /* lb_materialize of a dense array calls nothing */
    const bool as_is = node->fusion.kind == LB_FUSE_SAME && node->n_in == 1 &&
                       !node->prim->move && lb_data(in[0]);
    lb_array *out;
    const int refs = node->prim->reuses ? refs_given(node, in[0], args) : 0;
    cx->quiet += node->quiet;
    lb_arena_offer(p, arena, node->out);
    if (as_is)
        out = lb_view(cx, in[0]);
    else if (node->prim == &lb_prim_cut_like)
        out = lb_run_cut_like(cx, node, in);
    else if (refs)
        out = lb_bind_given(cx, refs, node->prim, node->n_in, in, node->params);
    else
        out = lb_bind(cx, node->prim, node->n_in, in, node->params);
    lb_arena_end_offer(p);
    cx->quiet -= node->quiet;
    const bool reused = refs && out == in[0];
    if (node->gives && out && !reused) lb_copy_report(cx, in[0], refs, out);
    bool ok = out != NULL;
    if (reused)
        val[node->out->id] = lb_ref(out);
    else
        ok = keep(cx, val, node->out, out);
    *kernel = as_is ? "view" : cx->kernel;
    lb_leave(cx);
    if (got) lb_heap_free(cx->heap, in, got);
    return ok;
}

/* Runs the nodes of a fused step one by one; frees intermediate arrays. */
static bool run_apart(lb_program *p, prog_step *s, lb_array *const *args,
                      lb_array **val)
{
    bool ok = true;
    const prog_node *node = s->node;
    for (; node && ok; node = node->next)
        ok = run_call(p, node, args, NULL, val, &s->kernel);
    for (node = s->node; node; node = node->next) {
        lb_array **a = &val[node->out->id];
        if (node->out->leaves && ok) continue;
        lb_unref(*a);
        *a = NULL;
    }
    return ok;
}

static bool run_step(lb_program *p, prog_step *s, lb_array *const *args,
                     prog_arena *arena, lb_array **val)
{
    if (!s->fused) return run_call(p, s->node, args, arena, val, &s->kernel);
    switch (lb_fused_run(p, s->fused, arena, val)) {
    case LB_DONE:
        s->kernel = "fused";
        return true;
    case LB_DECLINED:
        return run_apart(p, s, args, val);
    default:
        return false;
    }
}

/* The i-th result, as a view, because its weak flag is its own. An argument
 * that was updated in place is itself the result. */
static lb_array *give(lb_program *p, int i, lb_array *const *args,
                      lb_array **val)
{
    const int root = root_of(p, i);
    lb_array *a = val[p->result[i]->id];
    if (root >= 0 && a == args[root]) return a;
    a = lb_view(p->cx, a);
    if (a) a->weak = p->weak[i];
    return a;
}

/* Computes the scalars of this run. */
static bool set_numbers(lb_program *p, lb_array **val)
{
    bool ok = true;
    for (int64_t i = 0; i < p->numbers.n && ok; i++) {
        const prog_number *n = p->numbers.item[i];
        ok = keep(p->cx, val, n->value,
                  lb_scalar(p->cx, n->fn(n->user, n->which)));
    }
    return ok;
}

/* Called when nothing can fail any more: either all states change, or none. */
static void set_states(lb_program *p, lb_array **val)
{
    for (int64_t i = 0; i < p->states.n; i++) {
        const prog_state *s = p->states.item[i];
        if (s->out) lb_ref(val[s->out->id]);
    }
    for (int64_t i = 0; i < p->states.n; i++) {
        const prog_state *s = p->states.item[i];
        if (!s->out) continue;
        lb_unref(*s->slot);
        *s->slot = val[s->out->id];
    }
    for (int64_t i = 0; i < p->counts.n; i++) {
        const prog_count *c = p->counts.item[i];
        *c->count += c->by;
    }
}

bool lb_program_run(lb_program *p, lb_array *const *args, lb_array **out)
{
    lb_ctx *cx = p->cx;
    const size_t n = (size_t)p->values.n + 1;
    size_t got;
    for (int i = 0; i < p->n_results; i++)
        out[i] = NULL;
    if (!check_twice(p, args)) return false;
    lb_array **val = lb_heap_alloc(cx->heap, n * sizeof *val, &got);
    if (!val)
        return lb_fail(cx, LB_E_NOMEM, "out of memory (a compiled function)");
    memset(val, 0, n * sizeof *val);
    for (int64_t i = 0; i < p->values.n; i++) {
        const prog_value *v = p->values.item[i];
        if (v->constant) val[i] = v->constant;
        if (v->arg >= 0) val[i] = args[v->arg];
    }
    for (int64_t i = 0; i < p->states.n; i++) {
        const prog_state *s = p->states.item[i];
        val[s->in->id] = lb_ref(*s->slot);
    }
    prog_arena *arena;
    bool ok = lb_arena_open(p, &arena) && set_numbers(p, val);
    for (int i = 0; i < p->n_steps && ok; i++) {
        prog_step *s = &p->step[i];
        ok = run_step(p, s, args, arena, val);
        for (int k = 0; k < s->n_dead && ok; k++) {
            lb_unref(val[s->dead[k]->id]);
            val[s->dead[k]->id] = NULL;
        }
    }
    for (int i = 0; i < p->n_results && ok; i++)
        ok = (out[i] = give(p, i, args, val)) != NULL;
    if (ok) set_states(p, val);
    for (int64_t i = 0; i < p->values.n; i++) {
        const prog_value *v = p->values.item[i];
        if (v->by || v->is_state) lb_unref(val[i]);
    }
    lb_arena_close(arena);
    lb_heap_free(cx->heap, val, got);
    for (int i = 0; i < p->n_results && !ok; i++) {
        const int root = root_of(p, i);
        if (root < 0 || out[i] != args[root]) lb_drop(cx, out[i]);
        out[i] = NULL;
    }
    if (ok) hand_over(p, args, out);
    p->runs += ok;
    return ok;
}
