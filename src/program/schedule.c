/* schedule.c - the order of steps, and the last use of each value.
 *
 * Of the groups whose operands are available, the one whose last node was
 * traced first runs next, so that values live about as long as in eager calls.
 * A group of several nodes is one fused step or, if it exceeds a limit, a step
 * per node.
 */
#include <string.h>

#include "program/program.h"

/* A binary heap of groups, by the position of their last node. */
typedef struct queue {
    prog_group **item;
    int n;
} queue;

static bool before(const prog_group *a, const prog_group *b)
{
    return a->last->at < b->last->at;
}

static void push(queue *q, prog_group *g)
{
    int i = q->n++;
    for (; i && before(g, q->item[(i - 1) / 2]); i = (i - 1) / 2)
        q->item[i] = q->item[(i - 1) / 2];
    q->item[i] = g;
}

static prog_group *pop(queue *q)
{
    prog_group *top = q->item[0], *g = q->item[--q->n];
    int i = 0;
    for (int k; (k = 2 * i + 1) < q->n; i = k) {
        if (k + 1 < q->n && before(q->item[k + 1], q->item[k])) k++;
        if (!before(q->item[k], g)) break;
        q->item[i] = q->item[k];
    }
    q->item[i] = g;
    return top;
}

/* Sorts the nodes of a group by the order of the trace: joining groups only
 * appends one list to the other. */
static void sort_nodes(prog_group *g)
{
    prog_node *sorted = NULL, *last = NULL;
    for (prog_node *node = g->first, *next; node; node = next) {
        next = node->next;
        prog_node **to = last && last->at < node->at ? &last->next : &sorted;
        while (*to && (*to)->at < node->at)
            to = &(*to)->next;
        node->next = *to;
        *to = node;
        if (!node->next) last = node;
    }
    g->first = sorted;
    g->last = last;
}

/* A dependency between two groups. */
typedef struct edge {
    prog_group *to; /* the dependent group */
    struct edge *next;
} edge;

typedef struct scheduler {
    lb_program *p;
    edge **waiting; /* by id of group: edges to its dependents */
    queue ready;
    prog_group **order;
    int n;
} scheduler;

static bool add_edges(scheduler *s, prog_group *g)
{
    for (prog_node *node = g->first; node; node = node->next)
        for (int k = 0; k < node->n_in; k++) {
            const prog_node *by = node->in[k]->by;
            if (!by || by->group == g) continue;
            node->in[k]->leaves = true;
            edge *e = lb_prog_alloc(&s->p->memory, sizeof *e);
            if (!e) return false;
            *e = (edge){g, s->waiting[by->group->id]};
            s->waiting[by->group->id] = e;
            g->waits_for++;
        }
    return true;
}

static bool order_groups(scheduler *s)
{
    lb_program *p = s->p;
    const size_t n = (size_t)p->nodes.n + 1;
    s->waiting = lb_prog_alloc(&p->memory, n * sizeof *s->waiting);
    s->ready.item = lb_prog_alloc(&p->memory, n * sizeof *s->ready.item);
    s->order = lb_prog_alloc(&p->memory, n * sizeof *s->order);
    if (!s->waiting || !s->ready.item || !s->order) return false;
    for (int64_t i = 0; i < p->nodes.n; i++) {
        prog_node *node = p->nodes.item[i];
        if (!node->alive || node->group->listed) continue;
        node->group->listed = true;
        sort_nodes(node->group);
        if (!add_edges(s, node->group)) return false;
        if (!node->group->waits_for) push(&s->ready, node->group);
    }
    for (int64_t i = 0; i < p->values.n; i++) {
        prog_value *v = p->values.item[i];
        v->leaves = v->leaves || v->is_result;
    }
    while (s->ready.n) {
        prog_group *g = s->order[s->n++] = pop(&s->ready);
        for (const edge *e = s->waiting[g->id]; e; e = e->next)
            if (!--e->to->waits_for) push(&s->ready, e->to);
    }
    return true;
}

/* ---- steps --------------------------------------------------------------- */

static bool make_steps(scheduler *s)
{
    lb_program *p = s->p;
    p->step = lb_prog_alloc(&p->memory, (size_t)p->nodes.n * sizeof *p->step);
    if (!p->step) return false;
    for (int i = 0; i < s->n; i++) {
        prog_group *g = s->order[i];
        bool failed = false;
        prog_fused *f = g->n > 1 ? lb_fuse_group(p, g, &failed) : NULL;
        if (failed) return false;
        if (f) {
            p->step[p->n_steps++] = (prog_step){.node = g->first, .fused = f};
            continue;
        }
        for (prog_node *node = g->first; node; node = node->next)
            p->step[p->n_steps++] = (prog_step){.node = node};
    }
    return true;
}

/* Whether the result of a step may be written into its first operand. */
static void find_last(prog_step *s, const bool *needed)
{
    prog_node *node = s->node;
    if (s->fused || !node->prim->reuses) return;
    node->last = !needed[node->in[0]->id];
    for (int k = 1; k < node->n_in; k++)
        node->last = node->last && node->in[k] != node->in[0];
}

/* Walks the steps backward: the first use found is the last one. Values inside
 * a fused step have no array. */
static bool find_dead(lb_program *p)
{
    const size_t n = (size_t)p->values.n + 1;
    bool *needed = lb_prog_alloc(&p->memory, n * sizeof *needed);
    if (!needed) return false;
    for (int64_t i = 0; i < p->values.n; i++) {
        const prog_value *v = p->values.item[i];
        if (v->is_result) needed[v->id] = true;
    }
    for (int i = p->n_steps - 1; i >= 0; i--) {
        prog_step *s = &p->step[i];
        int dead = 0;
        find_last(s, needed);
        for (int count = 1; count >= 0; count--) {
            const prog_node *node = s->node;
            for (; node; node = s->fused ? node->next : NULL)
                for (int k = 0; k < node->n_in; k++) {
                    prog_value *v = node->in[k];
                    const bool inside =
                        s->fused && v->by && v->by->group == node->group;
                    if (inside || needed[v->id]) continue;
                    if (!v->by) {
                        needed[v->id] = !count;
                        continue;
                    }
                    if (count) {
                        dead++;
                        continue;
                    }
                    needed[v->id] = true;
                    s->dead[s->n_dead++] = v;
                }
            if (count)
                s->dead =
                    lb_prog_alloc(&p->memory, (size_t)dead * sizeof *s->dead);
            if (!s->dead) return false;
        }
    }
    return true;
}

bool lb_program_schedule(lb_program *p)
{
    scheduler s = {.p = p};
    return order_groups(&s) && make_steps(&s) && find_dead(p) &&
           lb_program_place(p);
}
