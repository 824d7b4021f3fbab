/* group.c - which nodes run together in one loop over tiles.
 *
 * A group loops over the elements of a shape. Its values are `full` (of that
 * shape) or, once trailing axes have been reduced, `row` values with one
 * element per row. Nodes join the groups of their operands:
 *
 *     full -> lanes, convert, same -> full      row -> lanes, .. -> row
 *     full -> rows (a reduction)   -> row       row -> repeat    -> full
 *
 * Two groups must not be joined if a path leads from one to the other through a
 * third group, which would have to run in between. At first every node is a
 * group; groups are joined in the order of the trace.
 */
#include "program/program.h"

enum {
    MOST_IN = 6 /* operands of a node that are considered */
};

typedef struct grouping {
    lb_program *p;
    prog_group **stack; /* space for all groups */
    int mark;
} grouping;

static bool is_row_shape(const lb_shape *s, const prog_group *g)
{
    if (g->lead < 0) return false;
    for (int k = 0; k < s->rank; k++)
        if (s->dim[k] != (k < g->lead ? g->shape.dim[k] : 1)) return false;
    return s->rank == g->lead || s->rank == g->shape.rank;
}

static int64_t row_length(const lb_shape *s, int lead)
{
    int64_t n = 1;
    for (int k = lead; k < s->rank; k++)
        n *= s->dim[k];
    return n;
}

/* The shape that a group of only this node loops over; *lead: the first axis
 * that is reduced, or -1. False: it does not start a group. */
static bool space_of(const prog_node *node, lb_shape *shape, int *lead)
{
    *lead = -1;
    *shape = node->out->shape;
    switch (node->fusion.kind) {
    case LB_FUSE_LANES:
    case LB_FUSE_CONVERT:
        return true;
    case LB_FUSE_ROWS:
        *shape = node->in[0]->shape;
        *lead = node->fusion.lead;
        const int64_t n = row_length(shape, *lead);
        return n > 1 && n <= LB_FUSE_COLS;
    default: /* not worth a loop of its own */
        return false;
    }
}

static bool is_full(const prog_value *v, const prog_group *g)
{
    return lb_shape_equal(&v->shape, &g->shape);
}

/* Whether the axes of a broadcast operand are the leading ones, in order. */
static bool keeps_axes(const prog_node *node)
{
    for (int k = 0; k < node->in[0]->shape.rank; k++)
        if (node->fusion.axis[k] != k) return false;
    return true;
}

/* Whether the shapes of node's operands and result allow it in g. */
static bool suits(const prog_node *node, const prog_group *g)
{
    const prog_value *in = node->n_in ? node->in[node->n_in - 1] : NULL;
    const bool rows = g->lead >= 0;
    const lb_shape *out = &node->out->shape;
    switch (node->fusion.kind) {
    case LB_FUSE_LANES:
    case LB_FUSE_CONVERT:
        return lb_shape_equal(out, &g->shape) || is_row_shape(out, g);
    case LB_FUSE_SAME:
        return (lb_shape_equal(out, &g->shape) && is_full(in, g)) ||
               (is_row_shape(out, g) && is_row_shape(&in->shape, g));
    case LB_FUSE_REPEAT:
        return lb_shape_equal(out, &g->shape) && is_row_shape(&in->shape, g) &&
               in->by && in->by->group == g && keeps_axes(node);
    case LB_FUSE_ROWS:
        return is_full(in, g) && row_length(&g->shape, node->fusion.lead) > 1 &&
               row_length(&g->shape, node->fusion.lead) <= LB_FUSE_COLS &&
               (!rows || g->lead == node->fusion.lead);
    default:
        return false;
    }
}

/* ---- paths --------------------------------------------------------------- */

/* Whether b depends on a through another group: joined, they would have to wait
 * for themselves. */
static bool path_between(grouping *w, const prog_group *a, prog_group *b)
{
    int top = 0;
    w->mark++;
    b->mark = w->mark;
    w->stack[top++] = b;
    while (top) {
        const prog_group *g = w->stack[--top];
        for (const prog_node *node = g->first; node; node = node->next)
            for (int k = 0; k < node->n_in; k++) {
                prog_group *to =
                    node->in[k]->by ? node->in[k]->by->group : NULL;
                if (!to) continue;
                if (to == a && g != b) return true;
                if (to == a || to->mark == w->mark) continue;
                to->mark = w->mark;
                w->stack[top++] = to;
            }
    }
    return false;
}

static void absorb(prog_group *to, prog_group *from)
{
    for (prog_node *node = from->first; node; node = node->next)
        node->group = to;
    to->last->next = from->first;
    to->last = from->last;
    to->n += from->n;
    if (from->lead >= 0) to->lead = from->lead;
    from->first = from->last = NULL;
    from->n = 0;
}

/* Whether both loop over the same elements, with the same reduced axes. */
static bool alike(const prog_group *a, const prog_group *b)
{
    return lb_shape_equal(&a->shape, &b->shape) &&
           (a->lead < 0 || b->lead < 0 || a->lead == b->lead);
}

/* Whether operands from outside of both groups are few enough. */
static bool has_room(grouping *w, const prog_group *a, const prog_group *b)
{
    const prog_group *both[2] = {a, b};
    int n = 0;
    w->mark++;
    for (int i = 0; i < 2; i++)
        for (const prog_node *node = both[i]->first; node; node = node->next)
            for (int k = 0; k < node->n_in; k++) {
                prog_value *v = node->in[k];
                const prog_group *by = v->by ? v->by->group : NULL;
                if (by && (by == a || by == b)) continue;
                n += v->mark != w->mark;
                v->mark = w->mark;
            }
    return n <= LB_FUSED_IN;
}

static bool can_join(grouping *w, const prog_node *node, prog_group *own,
                     prog_group *g)
{
    if (!g->fusible || g == own || g->n + own->n > LB_FUSED_CALLS) return false;
    const bool single = own->n == 1;
    if (single ? !suits(node, g) : !alike(own, g)) return false;
    return has_room(w, g, own) && !path_between(w, g, own) &&
           (single || !path_between(w, own, g));
}

/* Joins node's group with those of its operands. */
static void grow(grouping *w, prog_node *node)
{
    for (int k = 0; k < node->n_in && k < MOST_IN; k++) {
        prog_group *g = node->in[k]->by ? node->in[k]->by->group : NULL;
        prog_group *own = node->group;
        if (!g || g == own || !can_join(w, node, own, g)) continue;
        const int lead = node->fusion.kind == LB_FUSE_ROWS && own->n == 1
                             ? node->fusion.lead
                             : own->lead;
        if (g->lead < 0) g->lead = lead;
        own->lead = -1;
        absorb(g, own);
    }
}

static prog_group *alone(grouping *w, prog_node *node, int id)
{
    prog_group *g = lb_prog_alloc(&w->p->memory, sizeof *g);
    if (!g) return NULL;
    *g =
        (prog_group){.id = id, .first = node, .last = node, .n = 1, .lead = -1};
    g->fusible = space_of(node, &g->shape, &g->lead);
    node->group = g;
    return g;
}

static void leave(prog_group *g, prog_node *node)
{
    prog_node **at = &g->first, *last = NULL;
    for (; *at != node; at = &(*at)->next)
        last = *at;
    *at = node->next;
    if (g->last == node) g->last = last;
    g->n--;
    node->next = NULL;
}

static void enter(prog_group *g, prog_node *node)
{
    node->group = g;
    g->last->next = node;
    g->last = node;
    g->n++;
}

/* Whether the broadcast `node` should join its user's group: from a group of
 * its own, or from that of its operand, which then stores elements of rows
 * instead of rows of copies. */
static bool is_better_there(grouping *w, const prog_node *node, prog_node *user)
{
    prog_group *own = node->group, *g = user->group;
    const prog_node *by = node->in[0]->by;
    if (node->fusion.kind != LB_FUSE_REPEAT || own == g || !g->fusible ||
        node->out->uses > 1 || node->out->is_result ||
        user->fusion.kind != LB_FUSE_LANES || g->n >= LB_FUSED_CALLS ||
        !lb_shape_equal(&node->out->shape, &g->shape) ||
        !has_room(w, g, own->n > 1 ? g : own))
        return false;
    if (own->n > 1) return by && by->group == own;
    return (!by || by->group != g) && !path_between(w, g, own);
}

/* Broadcasts with one user: its loop reads the operand with strides of 0. */
static void take_repeats(grouping *w)
{
    for (int64_t i = 0; i < w->p->nodes.n; i++) {
        prog_node *user = w->p->nodes.item[i];
        for (int k = 0; user->alive && k < user->n_in; k++) {
            prog_node *node = user->in[k]->by;
            if (!node || !is_better_there(w, node, user)) continue;
            leave(node->group, node);
            enter(user->group, node);
        }
    }
}

bool lb_program_group(lb_program *p)
{
    const size_t n = (size_t)p->nodes.n;
    grouping w = {.p = p};
    w.stack = lb_prog_alloc(&p->memory, (n + 1) * sizeof *w.stack);
    if (!w.stack) return false;
    for (int64_t i = 0; i < p->nodes.n; i++) {
        prog_node *node = p->nodes.item[i];
        if (node->alive && !alone(&w, node, (int)i)) return false;
    }
    for (int64_t i = 0; i < p->nodes.n; i++) {
        prog_node *node = p->nodes.item[i];
        /* A twin is at the end of the list, but depends on what its original
         * does: users that come before it have to find its group. */
        for (; node && node->alive && !node->grown; node = node->twin) {
            node->grown = true;
            if (node->fusion.kind) grow(&w, node);
        }
    }
    take_repeats(&w);
    return true;
}
