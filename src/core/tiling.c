/* tiling.c - how a shape is divided into tiles.
 *
 * Tiles are runs of rows if all operands are read along the last axis. If one
 * is read along another axis, as transposed ones are, tiles are planes of the
 * two axes, and larger, because both axes need long runs.
 */
#include "core/core.h"

static int64_t magnitude(int64_t a)
{
    return a < 0 ? -a : a;
}

/* The axis along which some operand is best read, if that is not the last:
 * where its elements are closer together, or repeated. */
static int other_axis(const lb_shape *shape, const lb_array *const *in, int n)
{
    const int last = shape->rank - 1;
    if (last < 1 || shape->dim[last] == 1) return -1;
    for (int i = 0; i < n; i++) {
        int best = last, still = -1;
        for (int k = last; k >= 0; k--) {
            const int64_t was = magnitude(in[i]->stride[best]);
            const int64_t is = magnitude(in[i]->stride[k]);
            if (shape->dim[k] == 1) continue;
            if (!is) still = k;
            if (is && is < was) best = k;
        }
        if (magnitude(in[i]->stride[last]) <= 1) continue;
        if (best != last) return best;
        if (still >= 0) return still;
    }
    return -1;
}

lb_tiling lb_tiling_for(const lb_shape *shape, const lb_array *const *in, int n)
{
    enum { ROW = 64 };
    lb_tiling t = {.shape = *shape, .tiles = 1, .size = 1};
    const int last = shape->rank - 1, other = other_axis(shape, in, n);
    int64_t room = other < 0 ? LB_RUN : LB_TILE;
    for (int k = 0; k <= last; k++)
        t.n[k] = 1;
    if (other >= 0) {
        const int64_t rows = shape->dim[other], row = shape->dim[last];
        t.n[last] = lb_max_i64(lb_min_i64(row, ROW), 1);
        t.n[other] = lb_max_i64(lb_min_i64(rows, room / t.n[last]), 1);
        t.n[last] = lb_max_i64(lb_min_i64(row, room / t.n[other]), 1);
        room /= t.n[last] * t.n[other];
    }
    for (int k = last; k >= 0 && room > 1; k--) {
        if (k == other || (other >= 0 && k == last)) continue;
        t.n[k] = lb_max_i64(lb_min_i64(shape->dim[k], room), 1);
        room /= t.n[k];
        if (t.n[k] < shape->dim[k]) break;
    }
    for (int k = 0; k <= last; k++) {
        t.n[k] = lb_max_i64(t.n[k], 1);
        t.count[k] = lb_ceil_div(shape->dim[k], t.n[k]);
        t.tiles *= t.count[k];
        t.size *= t.n[k];
    }
    return t;
}

int64_t lb_tiling_box(const lb_tiling *t, int64_t tile, int64_t *lo, int64_t *n)
{
    int64_t size = 1;
    for (int k = t->shape.rank - 1; k >= 0; k--) {
        lo[k] = tile % t->count[k] * t->n[k];
        tile /= t->count[k];
        n[k] = lb_min_i64(t->n[k], t->shape.dim[k] - lo[k]);
        size *= n[k];
    }
    return size;
}
