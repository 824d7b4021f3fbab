/* shard_gather.c - joins slices of other ranks to larger ones.
 *
 * A slice consists of leaves: its elements, or those of its parts. Each leaf is
 * gathered as bytes. Then the slice of every rank is rebuilt like this rank's
 * own, and all are concatenated, which keeps the format if blocks can be
 * joined.
 */
#include <string.h>

#include "shard/shard_move.h"

enum { MOST_LEAVES = 32 };

typedef struct {
    lb_mesh *mesh;
    unsigned mask;
    int ranks;
    int n;                       /* number of leaves */
    lb_array *leaf[MOST_LEAVES]; /* of this rank; borrowed */
    lb_array *all[MOST_LEAVES];  /* of all, along a new first axis */
} gathering;

/* ---- leaves -------------------------------------------------------------- */

/* Whether it can be sent without copying. */
static bool is_compact(const lb_array *a)
{
    const lb_store *s = a->store;
    if (s->data) return lb_data(a) != NULL;
    if (lb_size(a) != lb_shape_size(&s->shape)) return false;
    for (int p = 0; p < LB_MAX_PARTS; p++)
        if (s->part[p].a && !is_compact(s->part[p].a)) return false;
    return true;
}

static lb_array *compact(lb_ctx *cx, lb_array *a)
{
    lb_array *out = NULL;
    if (is_compact(a)) return a;
    if (lb_pack(cx, a, &out) == LB_DONE && is_compact(out)) return out;
    return cx->status ? NULL : lb_materialize(cx, a);
}

static bool find_leaves(gathering *g, lb_array *a)
{
    lb_ctx *cx = g->mesh->cx;
    if (!a->store->data) {
        for (int p = 0; p < LB_MAX_PARTS; p++)
            if (a->store->part[p].a && !find_leaves(g, a->store->part[p].a))
                return false;
        return true;
    }
    if (g->n == MOST_LEAVES)
        return lb_fail(cx, LB_E_SIZE, "gather: %s has more than %d parts",
                       lb_format_of(a), MOST_LEAVES);
    lb_shape shape = {1, {lb_size(a)}};
    if (!lb_mul_i64(shape.dim[0], g->ranks, &shape.dim[0]) ||
        !lb_shape_check(cx, "gather", &shape))
        return false;
    g->leaf[g->n] = a;
    return (g->all[g->n++] = lb_dense(cx, a->dtype, &shape)) != NULL;
}

/* ---- rebuilding slices --------------------------------------------------- */

/* a as on rank m of the group; *next counts leaves. */
static lb_array *member(gathering *g, const lb_array *a, int m, int *next)
{
    lb_ctx *cx = g->mesh->cx;
    const lb_store *s = a->store;
    lb_array *out;
    if (s->data) {
        if (!(out = lb_view(cx, g->all[*next]))) return NULL;
        out->offset = lb_size(g->leaf[(*next)++]) * m;
        out->shape = a->shape;
        lb_row_major(&out->shape, out->stride);
        return out;
    }
    lb_part table[LB_MAX_PARTS];
    memcpy(table, s->part, sizeof table);
    for (int p = 0; p < LB_MAX_PARTS; p++)
        if (table[p].a && !(table[p].a = member(g, table[p].a, m, next)))
            return NULL;
    out = lb_make_like(cx, s, a->dtype, &s->shape, table);
    if (!out) return NULL;
    out->shape = a->shape;
    memcpy(out->stride, a->stride, sizeof out->stride);
    out->offset = a->offset;
    return out;
}

/* The position of member m when pieces are numbered along all gathered axes,
 * the last fastest. */
static int order(const gathering *g, const lb_spec *spec, int m)
{
    const lb_grid *grid = &g->mesh->grid;
    int coord[LB_MAX_MESH_AXES], at = 0;
    lb_grid_coord(grid, lb_mesh_member(g->mesh, g->mask, m), coord);
    for (int k = 0; k < spec->n; k++) {
        if (!(lb_spec_mask(spec, k) & g->mask)) continue;
        for (int i = 0; i < spec->entry[k].n; i++) {
            const int axis = spec->entry[k].axis[i];
            at = at * grid->axis[axis].size + coord[axis];
        }
    }
    return at;
}

/* Concatenates along the last gathered axis, then the one before, ... */
static lb_array *join(gathering *g, const lb_spec *spec, lb_array **item)
{
    int n = g->ranks;
    for (int k = spec->n - 1; k >= 0; k--) {
        const unsigned mask = lb_spec_mask(spec, k) & g->mask;
        const int each = lb_grid_ranks(&g->mesh->grid, mask);
        for (int i = 0; i < n / each && each > 1; i++) {
            item[i] = lb_concatenate(g->mesh->cx, item + i * each, each, k);
            if (!item[i]) return NULL;
        }
        n /= each;
    }
    return item[0];
}

/* Gathered elements need no reordering if they were cut only along the first
 * axis. */
static lb_array *in_place(const gathering *g, const lb_spec *spec,
                          const lb_array *a)
{
    int k = 0;
    while (k < a->shape.rank && a->shape.dim[k] == 1 &&
           !(lb_spec_mask(spec, k) & g->mask))
        k++;
    if (!a->store->data || (lb_spec_mask(spec, k) & g->mask) != g->mask)
        return NULL;
    for (int m = 0; m < g->ranks; m++)
        if (order(g, spec, m) != m) return NULL;
    lb_array *out = lb_view(g->mesh->cx, g->all[0]);
    if (!out) return NULL;
    out->shape = a->shape;
    out->shape.dim[k] *= g->ranks;
    lb_row_major(&out->shape, out->stride);
    return out;
}

static lb_array *assemble(gathering *g, const lb_spec *spec, lb_array *a)
{
    lb_ctx *cx = g->mesh->cx;
    size_t got;
    lb_array *out = in_place(g, spec, a);
    if (out) return out;
    lb_array **item =
        lb_heap_alloc(cx->heap, (size_t)g->ranks * sizeof *item, &got);
    if (!item) {
        lb_fail(cx, LB_E_NOMEM, "out of memory");
        return NULL;
    }
    bool ok = true;
    for (int m = 0; m < g->ranks && ok; m++) {
        int next = 0;
        lb_array *one = member(g, a, m, &next);
        item[order(g, spec, m)] = one;
        ok = one != NULL;
    }
    out = ok ? join(g, spec, item) : NULL;
    lb_heap_free(cx->heap, item, got);
    return out;
}

/* ---- forms --------------------------------------------------------------- */

/* FNV-1a. */
static uint32_t mix(uint32_t h, const void *data, size_t n)
{
    const uint8_t *byte = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ byte[i]) * 16777619u;
    return h;
}

static uint32_t mix_number(uint32_t h, int64_t v)
{
    return mix(h, &v, sizeof v);
}

/* Hashes all properties that member() assumes to be the same on all ranks. */
static uint32_t mix_array(uint32_t h, const lb_array *a)
{
    const lb_store *s = a->store;
    h = mix(h, s->fmt->name, strlen(s->fmt->name));
    h = mix_number(h, a->dtype);
    h = mix_number(h, a->shape.rank);
    h = mix(h, a->shape.dim, (size_t)a->shape.rank * sizeof *a->shape.dim);
    if (s->data) return h; /* elements are sent in row-major order */
    h = mix(h, a->stride, (size_t)a->shape.rank * sizeof *a->stride);
    h = mix_number(h, a->offset);
    h = mix_number(h, s->meaning);
    h = mix(h, s->shape.dim, (size_t)s->shape.rank * sizeof *s->shape.dim);
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        const lb_part *part = &s->part[p];
        h = mix_number(h, part->a ? part->own + 1 : 0);
        if (!part->a) continue;
        h = mix(h, part->g, (size_t)s->shape.rank * sizeof *part->g);
        h = mix_array(h, part->a);
    }
    return h;
}

uint32_t lb_form_of(const lb_array *a)
{
    return a ? mix_array(2166136261u, a) : 0;
}

/* ---- gathering ----------------------------------------------------------- */

static size_t bytes_of(const lb_array *leaf)
{
    return (size_t)lb_size(leaf) * lb_dtype_size(leaf->dtype);
}

static lb_array *gather(lb_mesh *mesh, const char *at, lb_array *slice,
                        unsigned mask, const lb_spec *spec)
{
    gathering g = {.mesh = mesh, .mask = mask};
    bool alike, ok;
    g.ranks = lb_grid_ranks(&mesh->grid, mask);
    lb_array *a = compact(mesh->cx, slice);
    if (a) find_leaves(&g, a);
    ok = lb_mesh_meet_with(mesh, at, lb_form_of(a), &alike);
    if (ok && !alike) { /* some slices are in another format */
        g.n = 0;
        a = lb_materialize(mesh->cx, a);
        if (a) find_leaves(&g, a);
        ok = lb_mesh_meet(mesh, at);
    }
    for (int i = 0; ok && i < g.n; i++)
        ok = lb_mesh_gather_met(mesh, mask, bytes_of(g.leaf[i]),
                                lb_data(g.leaf[i]), g.all[i]->store->data);
    return ok ? assemble(&g, spec, a) : NULL;
}

lb_array *lb_gather_axes(lb_mesh *mesh, const char *at, lb_array *slice,
                         unsigned mask, lb_spec *spec)
{
    lb_ctx *cx = mesh->cx;
    lb_array *out = slice;
    if (lb_grid_ranks(&mesh->grid, mask) > 1) {
        lb_enter(cx);
        out = lb_leave_with(cx, gather(mesh, at, slice, mask, spec));
    }
    for (int k = 0; k < spec->n; k++)
        if (lb_spec_mask(spec, k) & mask) spec->entry[k].n = 0;
    return out;
}

/* The number of names in entry k of b beyond those in a, if a's are its major
 * ones; otherwise -1. */
static int refines(const lb_spec *a, const lb_spec *b, int k)
{
    const int n = k < a->n ? a->entry[k].n : 0;
    const int m = k < b->n ? b->entry[k].n : 0;
    for (int i = 0; i < n; i++)
        if (i >= m || a->entry[k].axis[i] != b->entry[k].axis[i]) return -1;
    return m - n;
}

bool lb_recut_is_local(const lb_spec *from, const lb_spec *to)
{
    for (int k = 0; k < from->n; k++)
        if (refines(from, to, k) < 0) return false;
    return true;
}

lb_array *lb_recut(lb_mesh *mesh, const char *at, lb_array *a,
                   const lb_spec *to)
{
    lb_spec from = lb_spread_of(a)->spec;
    int64_t start[LB_MAX_RANK], count[LB_MAX_RANK];
    int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK];
    const int rank = a->shape.rank;
    unsigned mask = 0;
    for (int k = 0; k < rank; k++)
        if (refines(&from, to, k) < 0) mask |= lb_spec_mask(&from, k);
    lb_array *slice = lb_slice_here(a);
    if (mask) slice = lb_gather_axes(mesh, at, slice, mask, &from);
    if (!slice) return NULL;
    lb_spec_slice(&mesh->grid, &from, &a->shape, mesh->comm->rank, lo, n);
    lb_spec_slice(&mesh->grid, to, &a->shape, mesh->comm->rank, start, count);
    bool same = true;
    for (int k = 0; k < rank; k++) {
        same = same && count[k] == n[k];
        start[k] -= lo[k];
    }
    return same ? slice : lb_cut_view(mesh->cx, slice, start, count);
}

lb_array *lb_gather_all(lb_ctx *cx, lb_array *a)
{
    const lb_spec whole = {0};
    const lb_spread *s = lb_spread_of(a);
    if (s->mesh->cx != cx) {
        lb_fail(cx, LB_E_MESH,
                "%s%s is sharded over a mesh that does not, or no "
                "longer, belong to this context",
                lb_dtype_name(a->dtype), LB_SHOW(&a->shape));
        return NULL;
    }
    lb_array *all = lb_recut(s->mesh, "unshard", a, &whole);
    return all ? lb_view(cx, all) : NULL;
}
