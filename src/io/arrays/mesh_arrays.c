/* mesh_arrays.c - loads arrays of a file on the ranks of a mesh, a slice on
 * each. */
#include "io/arrays/mesh_arrays.h"

#include <stdio.h>
#include <string.h>

#include "core/core.h"

/* ---- block boundaries ---------------------------------------------------- */

static int64_t pieces_of(const lb_grid *grid, const lb_spec *spec, int k)
{
    int64_t n = 1;
    for (int i = 0; k < spec->n && i < spec->entry[k].n; i++)
        n *= grid->axis[spec->entry[k].axis[i]].size;
    return n;
}

/* Whether all pieces fit if only axis k is split. */
static bool axis_fits(const lb_described *d, int k, int64_t n, int64_t *block)
{
    bool ok = true;
    lb_cut box = lb_cut_all(&d->shape);
    box.count[k] = d->shape.dim[k] / n;
    for (int64_t i = 0; ok && i < n; i++) {
        box.start[k] = i * box.count[k];
        ok = lb_cut_fits(d, &box, block);
    }
    return ok;
}

static lb_cut slice_of(const lb_grid *grid, const lb_spec *spec,
                       const lb_shape *shape, int rank)
{
    lb_cut box = {.of = *shape};
    lb_spec_slice(grid, spec, shape, rank, box.start, box.count);
    return box;
}

/* The first rank whose slice cuts through a block; -1: none. */
static int misfit(const lb_grid *grid, const lb_spec *spec,
                  const lb_described *d, int64_t *block)
{
    for (int r = 0; r < lb_grid_size(grid); r++) {
        const lb_cut box = slice_of(grid, spec, &d->shape, r);
        if (!lb_cut_fits(d, &box, block)) return r;
    }
    return -1;
}

static void drop(lb_spec *spec, int k, lb_spec_report *r, int64_t piece,
                 int64_t block)
{
    spec->entry[k].n = 0;
    if (r->n < LB_MAX_CHANGES) {
        lb_spec_change *c = &r->change[r->n];
        c->entry = k;
        snprintf(c->why, sizeof c->why,
                 "pieces of %lld of axis %d would begin or end inside a block "
                 "of %lld",
                 (long long)piece, k, (long long)block);
    }
    r->n++;
}

static bool cannot_cut(lb_ctx *cx, const lb_grid *grid, const lb_spec *spec,
                       const lb_group *g, const lb_described *d, int axis,
                       int64_t block)
{
    char text[256];
    const int64_t piece = d->shape.dim[axis] / pieces_of(grid, spec, axis);
    return lb_fail(cx, LB_E_SHAPE,
                   "spec %s splits axis %d of '%s', %s %s%s, into pieces of "
                   "%lld, which cut through blocks of %lld",
                   lb_spec_text(grid, spec, text, sizeof text), axis,
                   LB_NAME(g->entry.name), g->entry.format,
                   lb_dtype_name(g->entry.dtype), LB_SHOW(&d->shape),
                   (long long)piece, (long long)block);
}

static bool fit_blocks(lb_ctx *cx, const lb_grid *grid, const lb_group *g,
                       const lb_described *d, lb_spec_report *report,
                       lb_spec *spec)
{
    int64_t block = 0;
    for (int k = 0; k < spec->n; k++) {
        const int64_t n = pieces_of(grid, spec, k);
        if (n == 1 || axis_fits(d, k, n, &block)) continue;
        if (!report) return cannot_cut(cx, grid, spec, g, d, k, block);
        drop(spec, k, report, d->shape.dim[k] / n, block);
    }
    /* If blocks cross rows, several axes may not be split together. */
    for (int k = spec->n - 1; k >= 0; k--) {
        const int64_t n = pieces_of(grid, spec, k);
        if (n == 1 || misfit(grid, spec, d, &block) < 0) continue;
        if (!report) return cannot_cut(cx, grid, spec, g, d, k, block);
        drop(spec, k, report, d->shape.dim[k] / n, block);
    }
    return true;
}

bool lb_group_spec(lb_ctx *cx, const lb_grid *grid, lb_file *f, lb_group *g,
                   const char *text, lb_spec_report *report, lb_spec *spec)
{
    lb_shape shape = {0};
    if (g->entry.rank > LB_MAX_RANK)
        return lb_tensor_shape(cx, f, g->tensor[0], &shape);
    shape = lb_shape_make(g->entry.rank, g->entry.dim);
    if (!lb_spec_parse(cx, grid, shape, text, report, spec)) return false;
    const bool clear = !lb_error_status(cx);
    const lb_described *d = lb_group_described(cx, f, g);
    if (!d) return !clear || !lb_error_status(cx);
    return fit_blocks(cx, grid, g, d, report, spec);
}

/* ---- loading ------------------------------------------------------------- */

static lb_array *load(lb_ctx *cx, lb_mesh *mesh, lb_file *f, lb_group *g,
                      const char *text, lb_spec_report *report)
{
    lb_spec spec;
    char words[512];
    const lb_grid *grid = lb_mesh_grid(mesh);
    if (!lb_group_spec(cx, grid, f, g, text, report, &spec)) return NULL;
    const lb_shape shape = lb_shape_make(g->entry.rank, g->entry.dim);
    const lb_cut box = slice_of(grid, &spec, &shape, lb_mesh_rank(mesh));
    lb_array *slice = lb_group_load_cut(cx, f, g, &box);
    if (!slice) return NULL;
    return lb_from_slice(cx, mesh, shape,
                         lb_spec_text(grid, &spec, words, sizeof words), slice);
}

lb_array *lb_file_load_sharded(lb_ctx *cx, lb_mesh *mesh, lb_file *f,
                               const char *name, const char *spec,
                               lb_spec_report *report)
{
    if (!cx) return NULL;
    if (!mesh) {
        lb_fail(cx, LB_E_NULL, "load_sharded: the mesh is NULL");
        return NULL;
    }
    lb_enter(cx);
    lb_group *g = lb_group_wanted(cx, f, name);
    lb_array *a = g ? load(cx, mesh, f, g, spec, report) : NULL;
    if (!f) lb_fail(cx, LB_E_NULL, "load_sharded: the file is NULL");
    lb_keep(cx, a);
    lb_leave(cx);
    return lb_mesh_agree(mesh) ? a : NULL;
}
