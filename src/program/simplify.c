/* simplify.c - removes unused calls, repeated calls, and views that change
 * nothing.
 *
 * Primitives are pure functions: nodes with the same primitive, params and
 * operands have equal results, and the later one is replaced by the earlier
 * one.
 */
#include <string.h>

#include "program/program.h"

static prog_value *resolved(prog_value *v)
{
    while (v->same)
        v = v->same;
    return v;
}

static bool equal(const prog_node *a, const prog_node *b)
{
    if (a->prim != b->prim || a->n_in != b->n_in ||
        memcmp(a->params, b->params, a->prim->params_size) != 0 ||
        a->gives != b->gives || a->root != b->root) /* updates in place */
        return false;
    for (int i = 0; i < a->n_in; i++)
        if (a->in[i] != b->in[i]) return false;
    return true;
}

static uint64_t mixed(uint64_t h, uint64_t x)
{
    h ^= x;
    h *= UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio */
    return h ^ h >> 32;
}

static uint64_t hash(const prog_node *node)
{
    const unsigned char *bytes = node->params;
    uint64_t h = (uint64_t)(uintptr_t)node->prim;
    for (int i = 0; i < node->n_in; i++)
        h = mixed(h, (uint64_t)node->in[i]->id);
    for (size_t i = 0; i < node->prim->params_size; i++)
        h = mixed(h, bytes[i]);
    return h;
}

/* Whether the result equals the operand: a transpose or reshape to the same
 * shape, a conversion to the same dtype. Not ste, whose result is sharded like
 * its other operand. */
static bool is_identity(const prog_node *node)
{
    const prog_value *in = node->n_in == 1 ? node->in[0] : NULL;
    return in &&
           (node->fusion.kind == LB_FUSE_SAME ||
            node->fusion.kind == LB_FUSE_CONVERT) &&
           node->prim->move && in->dtype == node->out->dtype &&
           lb_shape_equal(&in->shape, &node->out->shape);
}

static bool merge_repeated(lb_program *p)
{
    size_t room = 16, got;
    while (room < 2 * (size_t)p->nodes.n)
        room *= 2;
    prog_node **table = lb_heap_alloc(p->cx->heap, room * sizeof *table, &got);
    if (!table)
        return lb_fail(p->cx, LB_E_NOMEM, "out of memory (%zu bytes)",
                       room * sizeof *table);
    memset(table, 0, room * sizeof *table);
    for (int64_t i = 0; i < p->nodes.n; i++) {
        prog_node *node = p->nodes.item[i];
        for (int k = 0; k < node->n_in; k++)
            node->in[k] = resolved(node->in[k]);
        if (is_identity(node)) {
            node->out->same = node->in[0];
            p->removed++;
            continue;
        }
        size_t at = (size_t)hash(node) & (room - 1);
        while (table[at] && !equal(table[at], node))
            at = (at + 1) & (room - 1);
        if (table[at]) {
            node->out->same = table[at]->out;
            table[at]->quiet = table[at]->quiet && node->quiet;
            p->removed++;
        } else {
            table[at] = node;
        }
    }
    lb_heap_free(p->cx->heap, table, got);
    for (int i = 0; i < p->n_results; i++)
        p->result[i] = resolved(p->result[i]);
    for (int64_t i = 0; i < p->states.n; i++) {
        prog_state *s = p->states.item[i];
        if (s->out) s->out = resolved(s->out);
    }
    return true;
}

static void mark_result(prog_value *v)
{
    v->is_result = true;
    if (v->by) v->by->alive = true;
}

static void mark_alive(lb_program *p)
{
    for (int i = 0; i < p->n_results; i++)
        mark_result(p->result[i]);
    for (int64_t i = 0; i < p->states.n; i++) {
        const prog_state *s = p->states.item[i];
        if (s->out) mark_result(s->out);
    }
    for (int64_t i = p->nodes.n - 1; i >= 0; i--) {
        prog_node *node = p->nodes.item[i];
        for (int k = 0; k < node->n_in && node->alive; k++) {
            node->in[k]->uses++;
            if (node->in[k]->by) node->in[k]->by->alive = true;
        }
        p->removed += !node->alive && !node->out->same;
    }
}

/* Gives each fusible user of a broadcast a broadcast of its own, which is free
 * inside a loop. */
static bool split_repeats(lb_program *p)
{
    const int64_t n = p->nodes.n;
    for (int64_t i = 0; i < n; i++) {
        prog_node *node = p->nodes.item[i];
        if (!node->alive || node->fusion.kind != LB_FUSE_LANES) continue;
        for (int k = 0; k < node->n_in; k++) {
            prog_value *v = node->in[k];
            if (!v->by || v->by->fusion.kind != LB_FUSE_REPEAT || v->uses < 2)
                continue;
            prog_node *twin = lb_prog_alloc(&p->memory, sizeof *twin);
            prog_value *out = lb_prog_alloc(&p->memory, sizeof *out);
            if (!twin || !out) return false;
            *twin = *v->by; /* also its twin: a list */
            v->by->twin = twin;
            *out = *v;
            out->id = (int)p->values.n;
            out->by = twin;
            out->uses = 1;
            out->is_result = false;
            twin->out = out;
            twin->in[0]->uses++;
            v->uses--;
            node->in[k] = out;
            if (!lb_list_push(p->cx, &p->values, out) ||
                !lb_list_push(p->cx, &p->nodes, twin))
                return false;
        }
    }
    return true;
}

bool lb_program_simplify(lb_program *p)
{
    if (!merge_repeated(p)) return false;
    mark_alive(p);
    return split_repeats(p);
}
