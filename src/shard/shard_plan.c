/* shard_plan.c - decides how the axes of a call are cut; see shard_plan.h. */
#include "shard/shard_plan.h"

#include <stdio.h>
#include <string.h>

/* A label that is cut needs an entry of a spec. */
enum { LABELS = LB_MAX_RANK };

/* ---- labels -------------------------------------------------------------- */

/* Labels may be any small integers: those that are cut get entries in p->label
 * in the order they are chosen. */
typedef struct {
    int n;
    int label[LABELS];
} chosen;

static int place_of(const chosen *c, int label)
{
    for (int i = 0; i < c->n; i++)
        if (c->label[i] == label) return i;
    return -1;
}

/* Whether n pieces divide every axis with the label. */
static bool divides(const lb_shard_plan *p, int label, int64_t n)
{
    const lb_call *c = p->call;
    for (int i = 0; i < c->n_in; i++)
        for (int k = 0; k < c->in[i]->shape.rank; k++)
            if (p->cuts.in[i][k] == label && c->in[i]->shape.dim[k] % n)
                return false;
    for (int k = 0; k < c->shape.rank; k++)
        if (p->cuts.out[k] == label && c->shape.dim[k] % n) return false;
    return true;
}

static bool misfit(const lb_shard_plan *p, int i, int k, int64_t piece,
                   int64_t grain)
{
    const lb_array *a = p->call->in[i];
    return lb_fail(p->mesh->cx, LB_E_SHAPE,
                   "%s: axis %d of %s%s is cut in pieces of %lld, inside "
                   "blocks of %lld: use a block size that divides %lld",
                   p->call->prim->name, k, lb_dtype_name(a->dtype),
                   LB_SHOW(&a->shape), (long long)piece, (long long)grain,
                   (long long)piece);
}

/* Tries to cut the label of axis k of operand i as that axis is cut. False: an
 * error. */
static bool choose(lb_shard_plan *p, chosen *c, unsigned *used, int i, int k)
{
    const lb_spec *spec = &lb_spread_of(p->call->in[i])->spec;
    const int label = p->cuts.in[i][k];
    const unsigned mask = lb_spec_mask(spec, k);
    const int n = lb_grid_ranks(&p->mesh->grid, mask);
    if (!mask || !label || place_of(c, label) >= 0 || (mask & *used) ||
        c->n == LABELS || !divides(p, label, n))
        return true;
    const int64_t piece = p->call->in[i]->shape.dim[k] / n;
    const int64_t grain = p->cuts.grain[label];
    if (n > 1 && grain > 1 && piece % grain)
        return !p->cuts.firm || misfit(p, i, k, piece, grain);
    p->label.entry[c->n] = spec->entry[k];
    c->label[c->n++] = label;
    *used |= mask;
    return true;
}

/* The size of an operand as a dense array; the same on all ranks. */
static int64_t weight(const lb_array *a)
{
    return lb_size(a) * (int64_t)lb_dtype_size(a->dtype);
}

/* The next smaller operand after `last`; -1: none. */
static int next_largest(const lb_call *c, int last)
{
    int best = -1;
    for (int i = 0; i < c->n_in; i++) {
        const int64_t w = weight(c->in[i]);
        const int64_t most = last < 0 ? INT64_MAX : weight(c->in[last]);
        const bool after = last < 0 || w < most || (w == most && i > last);
        if (after && (best < 0 || w > weight(c->in[best]))) best = i;
    }
    return best;
}

static bool choose_all(lb_shard_plan *p, chosen *c)
{
    const lb_call *call = p->call;
    unsigned used = 0;
    for (int i = next_largest(call, -1); i >= 0; i = next_largest(call, i)) {
        if (lb_mesh_of(call->in[i]) != p->mesh) continue;
        for (int k = 0; k < call->in[i]->shape.rank; k++)
            if (!choose(p, c, &used, i, k)) return false;
    }
    p->label.n = c->n;
    return true;
}

/* ---- specs --------------------------------------------------------------- */

static lb_spec spec_of(const lb_shard_plan *p, const chosen *c,
                       const int *label, int rank)
{
    lb_spec s = {.n = rank};
    for (int k = 0; k < rank; k++) {
        const int at = label[k] ? place_of(c, label[k]) : -1;
        if (at >= 0) s.entry[k] = p->label.entry[at];
    }
    return s;
}

static void settle(lb_shard_plan *p, const chosen *c)
{
    const lb_call *call = p->call;
    p->out = spec_of(p, c, p->cuts.out, call->shape.rank);
    for (int i = 0; i < call->n_in; i++)
        p->want[i] = spec_of(p, c, p->cuts.in[i], call->in[i]->shape.rank);
    const unsigned kept = lb_spec_masks(&p->out);
    for (int i = 0; i < c->n; i++) {
        const unsigned mask = lb_spec_mask(&p->label, i);
        p->partial |= mask & ~kept;
        if (p->cuts.spans[c->label[i]]) p->spans |= mask;
    }
}

static bool other_mesh(const lb_shard_plan *p)
{
    const lb_call *c = p->call;
    for (int i = 0; i < c->n_in; i++)
        if (lb_is_sharded(c->in[i]) && lb_mesh_of(c->in[i]) != p->mesh)
            return lb_fail(
                p->mesh->cx, LB_E_MESH,
                "%s: operand %d is sharded over a different mesh than "
                "the others",
                c->prim->name, i);
    return true;
}

bool lb_shard_plan_open(lb_mesh *mesh, const lb_call *call, lb_shard_plan *p)
{
    typedef int labels[LB_MAX_RANK];
    const size_t n = (size_t)call->n_in;
    const size_t specs = n * sizeof *p->want, rows = n * sizeof(labels);
    *p = (lb_shard_plan){.mesh = mesh, .call = call, .whole = true};
    if (!other_mesh(p)) return false;
    char *block = lb_heap_alloc(mesh->heap, specs + rows, &p->got);
    if (!block) return lb_fail(mesh->cx, LB_E_NOMEM, "out of memory");
    memset(block, 0, specs + rows);
    p->block = block;
    p->want = (lb_spec *)(void *)block;
    p->cuts.in = (labels *)(void *)(block + specs);
    if (!call->prim->shard || !call->prim->shard(call, &p->cuts)) {
        p->cuts.combine = LB_COMBINE_SUM;
        return true;
    }
    chosen c = {0};
    p->whole = false;
    if (choose_all(p, &c)) {
        settle(p, &c);
        return true;
    }
    lb_shard_plan_close(p);
    return false;
}

void lb_shard_plan_close(lb_shard_plan *p)
{
    if (p->block) lb_heap_free(p->mesh->heap, p->block, p->got);
    p->block = NULL;
}

bool lb_shard_plan_gathers(const lb_shard_plan *p, int i)
{
    const lb_spread *s = lb_spread_of(p->call->in[i]);
    const lb_grid *grid = &p->mesh->grid;
    for (int k = 0; s && k < s->spec.n; k++) {
        const unsigned is = lb_spec_mask(&s->spec, k);
        const unsigned want = lb_spec_mask(&p->want[i], k);
        if (lb_grid_ranks(grid, is & ~want) > 1) return true;
    }
    return false;
}
