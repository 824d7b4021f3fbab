/* one_block.c - one block of memory for the intermediate arrays of a run.
 *
 * When a program is scheduled, each array that one step computes and later ones
 * read gets a place in the block: the largest first, each at the lowest offset
 * that is free while it is needed. Results, states and whatever may be a view
 * of one have memory of their own. So has everything if an argument is sharded.
 *
 * In a run, a place is taken only if no array is left there. A rule or a
 * primitive of the user may hold one longer than the program needs it; then the
 * next one goes to the heap, and the block lives as long as its arrays.
 */
#include <stdlib.h>
#include <string.h>

#include "program/program.h"

enum { LINE = 64 };

/* ---- planning ------------------------------------------------------------ */

/* The first and the last step that need a value's memory. */
typedef struct place_life {
    int first, last;
    bool escapes; /* a result or a state may be a view of it */
} place_life;

typedef struct planner {
    lb_program *p;
    place_life *of;     /* by id of value */
    prog_value **value; /* that are placed; by size, then in order of offset */
    int n;
} planner;

/* Whether the result may share its operands' memory. */
static bool may_share(const prog_node *node)
{
    return node->prim->move || node->prim->reuses || node->gives ||
           node->fusion.kind == LB_FUSE_SAME;
}

/* Whether that changed something. */
static bool note_use(planner *w, const prog_node *node, int step)
{
    bool changed = false;
    const place_life *out = &w->of[node->out->id];
    const bool shares = may_share(node);
    for (int k = 0; k < node->n_in; k++) {
        place_life *in = &w->of[node->in[k]->id];
        const place_life was = *in;
        if (in->last < step) in->last = step;
        if (shares && in->last < out->last) in->last = out->last;
        if (shares && (out->escapes || node->prim->reuses)) in->escapes = true;
        changed |= in->last != was.last || in->escapes != was.escapes;
    }
    return changed;
}

static size_t bytes_of(const prog_value *v)
{
    return (size_t)lb_shape_size(&v->shape) * lb_dtype_size(v->dtype);
}

/* A dense array that eval, or the loop of a fused step, writes. */
static bool is_computed(const prog_step *s, const prog_node *node)
{
    if (s->fused) return node->out->leaves;
    return node->prim->eval && !node->prim->move && !node->prim->result &&
           !node->prim->reuses;
}

static bool find_spans(planner *w)
{
    lb_program *p = w->p;
    const size_t n = (size_t)p->values.n + 1;
    w->of = lb_prog_alloc(&p->memory, n * sizeof *w->of);
    w->value = lb_prog_alloc(&p->memory, n * sizeof(prog_value *));
    if (!w->of || !w->value) return false;
    for (int64_t i = 0; i < p->values.n; i++) {
        const prog_value *v = p->values.item[i];
        w->of[i] =
            (place_life){.last = -1, .escapes = v->is_result || v->is_state};
    }
    for (int i = p->n_steps - 1; i >= 0; i--) {
        const prog_step *s = &p->step[i];
        /* Nodes of a fused step are listed forward: until nothing changes. */
        for (bool more = true; more;) {
            more = false;
            const prog_node *node = s->node;
            for (; node; node = s->fused ? node->next : NULL)
                more |= note_use(w, node, i);
        }
        const prog_node *node = s->node;
        for (; node; node = s->fused ? node->next : NULL) {
            place_life *out = &w->of[node->out->id];
            out->first = i;
            if (out->escapes || out->last < i || !is_computed(s, node) ||
                !bytes_of(node->out))
                continue;
            w->value[w->n++] = node->out;
        }
    }
    return true;
}

static int by_size(const void *a, const void *b)
{
    const prog_value *x = *(prog_value *const *)a;
    const prog_value *y = *(prog_value *const *)b;
    const size_t m = bytes_of(x), n = bytes_of(y);
    return m != n ? (m < n) - (m > n) : (x->id > y->id) - (x->id < y->id);
}

/* Where v goes among those that are placed, which are in order of offset. */
static void place(planner *w, prog_value *v, int placed)
{
    const place_life *own = &w->of[v->id];
    const size_t bytes = (bytes_of(v) + LINE - 1) / LINE * LINE;
    size_t at = 0;
    for (int i = 0; i < placed; i++) {
        const prog_value *o = w->value[i];
        const place_life *other = &w->of[o->id];
        if (own->first > other->last || other->first > own->last) continue;
        if (o->place.at >= at + bytes) break;
        if (at < o->place.at + o->place.bytes)
            at = o->place.at + o->place.bytes;
    }
    v->place = (prog_place){.index = placed, .at = at, .bytes = bytes};
    if (w->p->arena < at + bytes) w->p->arena = at + bytes;
    int i = placed;
    for (; i && w->value[i - 1]->place.at > at; i--)
        w->value[i] = w->value[i - 1];
    w->value[i] = v;
}

/* The most bytes of arrays outside of the arena that are needed at a time. */
static size_t most_outside(const planner *w, int64_t *change)
{
    const lb_program *p = w->p;
    int64_t now = 0, most = 0;
    for (int i = 0; i < p->n_steps; i++) {
        const prog_step *s = &p->step[i];
        const prog_node *node = s->node;
        for (; node; node = s->fused ? node->next : NULL) {
            const prog_value *v = node->out;
            const place_life *of = &w->of[v->id];
            if (v->place.bytes || !node->prim->eval || (s->fused && !v->leaves))
                continue;
            change[i] += (int64_t)bytes_of(v);
            if (!v->is_result)
                change[(of->last < i ? i : of->last) + 1] -=
                    (int64_t)bytes_of(v);
        }
    }
    for (int i = 0; i < p->n_steps; i++) {
        now += change[i];
        most = lb_max_i64(most, now);
    }
    return (size_t)most;
}

bool lb_program_place(lb_program *p)
{
    planner w = {.p = p};
    int64_t *change =
        lb_prog_alloc(&p->memory, ((size_t)p->n_steps + 1) * sizeof *change);
    if (!change || !find_spans(&w)) return false;
    if (w.n) qsort(w.value, (size_t)w.n, sizeof *w.value, by_size);
    for (int i = 0; i < w.n; i++)
        place(&w, w.value[i], i);
    p->peak = p->arena + most_outside(&w, change);
    p->placed = w.value;
    p->n_placed = w.n;
    return true;
}

/* ---- a run --------------------------------------------------------------- */

struct prog_arena {
    int refs; /* atomic: the run, and each array in it */
    lb_heap *heap;
    size_t got;
    char *base;
    struct taken {
        struct prog_arena *in;
        int busy; /* atomic: an array is there */
    } * taken;    /* by prog_place.index */
};

static size_t head_bytes(const lb_program *p)
{
    const size_t head =
        sizeof(prog_arena) + (size_t)p->n_placed * sizeof(struct taken);
    return (head + LINE - 1) / LINE * LINE;
}

static void unref(prog_arena *a)
{
    if (!__atomic_sub_fetch(&a->refs, 1, __ATOMIC_ACQ_REL))
        lb_heap_free(a->heap, a, a->got);
}

static void release(void *user)
{
    struct taken *t = user;
    __atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
    unref(t->in);
}

bool lb_arena_open(const lb_program *p, prog_arena **out)
{
    size_t size, got;
    *out = NULL;
    for (int i = 0; i < p->n_args; i++)
        if (p->key[i].sharding) return true;
    if (!p->arena) return true;
    prog_arena *a = lb_add_size(head_bytes(p), p->arena, &size)
                        ? lb_heap_alloc(p->cx->heap, size, &got)
                        : NULL;
    if (!a)
        return lb_fail(p->cx, LB_E_NOMEM,
                       "out of memory (%zu bytes for intermediate arrays)",
                       p->arena);
    *a = (prog_arena){.refs = 1, .heap = p->cx->heap, .got = got};
    a->base = (char *)a + head_bytes(p);
    a->taken = (struct taken *)(void *)(a + 1);
    for (int i = 0; i < p->n_placed; i++)
        a->taken[i] = (struct taken){.in = a};
    *out = a;
    return true;
}

void lb_arena_close(prog_arena *a)
{
    if (a) unref(a);
}

static bool is_free(const lb_program *p, const prog_arena *a,
                    const prog_place *own)
{
    for (int i = 0; i < p->n_placed; i++) {
        const prog_place *o = &p->placed[i]->place;
        if (o->at >= own->at + own->bytes) break;
        if (o->at + o->bytes > own->at &&
            __atomic_load_n(&a->taken[o->index].busy, __ATOMIC_ACQUIRE))
            return false;
    }
    return true;
}

void lb_arena_offer(const lb_program *p, prog_arena *a, const prog_value *v)
{
    if (!a || !v->place.bytes || p->cx->room.shape || !is_free(p, a, &v->place))
        return;
    struct taken *t = &a->taken[v->place.index];
    t->busy = 1;
    __atomic_add_fetch(&a->refs, 1, __ATOMIC_RELAXED);
    p->cx->room = (lb_room){.dtype = v->dtype,
                            .shape = &v->shape,
                            .data = a->base + v->place.at,
                            .done = release,
                            .user = t};
}

void lb_arena_end_offer(const lb_program *p)
{
    lb_room *room = &p->cx->room;
    if (room->shape) release(room->user); /* nobody took it */
    room->shape = NULL;
}
