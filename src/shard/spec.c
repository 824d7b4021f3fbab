/* spec.c - specs: which mesh axes cut which axis of an array.
 *
 * Rank r has coordinates c in the grid. An entry of names n1 ... nk, major to
 * minor, cuts its axis into as many pieces as the product of their sizes. The
 * index of r's piece is c[n1] ... c[nk], read as a mixed-radix number.
 */
#include <stdio.h>
#include <string.h>

#include "shard/mesh.h"

/* The number of pieces made by entry k, and the index of a rank's piece. */
static int64_t pieces_of(const lb_grid *grid, const lb_spec *spec, int k,
                         const int *coord, int64_t *which)
{
    int64_t n = 1;
    *which = 0;
    if (k >= spec->n) return 1;
    for (int i = 0; i < spec->entry[k].n; i++) {
        const int axis = spec->entry[k].axis[i];
        n *= grid->axis[axis].size;
        *which = *which * grid->axis[axis].size + coord[axis];
    }
    return n;
}

void lb_spec_slice(const lb_grid *grid, const lb_spec *spec,
                   const lb_shape *shape, int rank, int64_t *start,
                   int64_t *count)
{
    int coord[LB_MAX_MESH_AXES];
    lb_grid_coord(grid, rank, coord);
    for (int k = 0; k < shape->rank; k++) {
        int64_t which;
        const int64_t n = pieces_of(grid, spec, k, coord, &which);
        count[k] = shape->dim[k] / n;
        start[k] = which * count[k];
    }
}

int lb_spec_replica(const lb_grid *grid, const lb_spec *spec,
                    const lb_shape *shape, int rank)
{
    int coord[LB_MAX_MESH_AXES], replica = 0;
    unsigned used = 0;
    for (int k = 0; k < shape->rank; k++) /* empty slices are all the same */
        if (shape->dim[k]) used |= lb_spec_mask(spec, k);
    lb_grid_coord(grid, rank, coord);
    for (int k = 0; k < grid->n; k++)
        if (!(used >> k & 1)) replica = replica * grid->axis[k].size + coord[k];
    return replica;
}

/* Entry k without axes of size 1, which have no effect. */
static int essential(const lb_grid *grid, const lb_spec *spec, int k, int *axis)
{
    int n = 0;
    for (int i = 0; k < spec->n && i < spec->entry[k].n; i++)
        if (grid->axis[spec->entry[k].axis[i]].size > 1)
            axis[n++] = spec->entry[k].axis[i];
    return n;
}

bool lb_spec_equal(const lb_grid *grid, const lb_spec *a, const lb_spec *b)
{
    for (int k = 0; k < a->n || k < b->n; k++) {
        int x[LB_MAX_MESH_AXES], y[LB_MAX_MESH_AXES];
        const int n = essential(grid, a, k, x);
        if (n != essential(grid, b, k, y) ||
            memcmp(x, y, (size_t)n * sizeof *x) != 0)
            return false;
    }
    return true;
}

/* ---- text ---------------------------------------------------------------- */

static size_t put(char *buf, size_t size, size_t at, const char *s)
{
    if (at < size) snprintf(buf + at, size - at, "%s", s);
    return at + strlen(s);
}

const char *lb_spec_text(const lb_grid *grid, const lb_spec *spec, char *buf,
                         size_t size)
{
    size_t at = put(buf, size, 0, "P(");
    for (int k = 0; k < spec->n; k++) {
        const int n = spec->entry[k].n;
        if (k) at = put(buf, size, at, ", ");
        if (!n) at = put(buf, size, at, "None");
        if (n > 1) at = put(buf, size, at, "(");
        for (int i = 0; i < n; i++) {
            if (i) at = put(buf, size, at, ",");
            at = put(buf, size, at, grid->axis[spec->entry[k].axis[i]].name);
        }
        if (n > 1) at = put(buf, size, at, ")");
    }
    put(buf, size, at, ")");
    return buf;
}

const char *lb_grid_text(const lb_grid *grid, char *buf, size_t size)
{
    size_t at = 0;
    if (size) buf[0] = 0;
    for (int k = 0; k < grid->n && at < size; k++) {
        const int n = snprintf(buf + at, size - at, "%s%s=%d", k ? "," : "",
                               grid->axis[k].name, grid->axis[k].size);
        at += n > 0 ? (size_t)n : 0;
    }
    return buf;
}
