/* box.c - a view as a box of its store, which is re-shaped if necessary.
 *
 * The strides of a view, sorted s0 >= s1 >= ..., imply a stored shape (N/s0,
 * s0/s1, ..., sk). If the store can be given that shape, the view is a box of
 * it. Re-shaping matches old and new axes in groups of equal product. Within a
 * group a part is shared, or has one entry per G consecutive elements, or
 * cannot be expressed; G is carried over to the new axes. This single rule
 * turns a flat row of blocks into rows if the blocks divide them, merges and
 * splits row axes, and writes a per-row scale as "one per C elements".
 */
#include <string.h>

#include "core/core.h"

/* Number of consecutive elements of axes [from, to) per entry; 0: shared, -1:
 * cannot be expressed. */
static int64_t group_run(const int64_t *n, const int64_t *g, int from, int to)
{
    int64_t run = 1, outer = 1;
    bool follows = false;
    for (int k = from; k < to; k++)
        outer *= n[k];
    for (int k = to - 1; k >= from; k--) {
        outer /= n[k];
        if (n[k] == 1) continue;
        if (follows) {
            if (g[k] != 1) return -1;
        } else if (!g[k]) {
            run *= n[k];
        } else {
            run *= g[k];
            follows = true;
            if (outer > 1 && n[k] % g[k])
                return -1; /* short blocks in the
                            * interior */
        }
    }
    return follows ? run : 0;
}

/* The inverse: g of the new axes [from, to), given elements per entry. */
static bool group_split(int64_t run, const int64_t *n, int64_t *g, int from,
                        int to)
{
    int64_t outer = 1;
    bool follows = false;
    for (int k = from; k < to; k++)
        outer *= n[k];
    for (int k = to - 1; k >= from; k--) {
        outer /= n[k];
        if (n[k] == 1 || (follows && run)) {
            g[k] = 1;
        } else if (!run) {
            g[k] = 0;
        } else if (outer > 1 && run > n[k] && run % n[k] == 0) {
            g[k] = 0;
            run /= n[k];
        } else if (outer == 1 || n[k] % run == 0) {
            g[k] = run;
            follows = true;
        } else {
            return false;
        }
    }
    return true;
}

/* The table row of part p for a store of shape `to`. */
static bool reshape_part(const lb_store *s, int p, const lb_shape *to,
                         lb_part *part)
{
    const lb_part *old = &s->part[p];
    *part = *old;
    for (int i = 0, j = 0; i < s->shape.rank || j < to->rank;) {
        const int i0 = i, j0 = j;
        int64_t a = i < s->shape.rank ? s->shape.dim[i++] : 1;
        int64_t b = j < to->rank ? to->dim[j++] : 1;
        while (a != b) {
            if (a < b)
                a *= s->shape.dim[i++];
            else
                b *= to->dim[j++];
        }
        const int64_t run = group_run(s->shape.dim, old->g, i0, i);
        if (run < 0 || !group_split(run, to->dim, part->g, j0, j)) return false;
    }
    /* Positions inside an entry are counted along the last axis. */
    return !s->fmt->part[p].raw ||
           (to->rank && s->shape.rank &&
            part->g[to->rank - 1] == old->g[s->shape.rank - 1]);
}

/* Adapts the store's parts to a store of box->shape. */
static bool reshape_store(const lb_store *s, lb_box *b)
{
    const bool same = lb_shape_equal(&s->shape, &b->shape);
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        b->part[p] = s->part[p];
        if (!s->part[p].a) continue;
        b->view[p] = *s->part[p].a;
        if (same) continue;
        if (b->shape.rank == LB_MAX_RANK && s->part[p].own) return false;
        if (!reshape_part(s, p, &b->shape, &b->part[p])) return false;
        const lb_shape shape = lb_part_shape(&b->shape, &b->part[p]);
        if (!lb_restride(s->part[p].a, &shape, b->view[p].stride)) return false;
        b->view[p].shape = shape;
    }
    return true;
}

/* Sorts the axes of a by falling stride. ones: include axes of size 1, whose
 * strides may be meaningful. Returns their number, or -1. */
static int sort_axes(const lb_array *a, bool ones, int64_t total, int *order)
{
    int m = 0;
    for (int k = 0; k < a->shape.rank; k++) {
        const int64_t n = a->shape.dim[k], s = a->stride[k];
        if (n < 1 || (n > 1 && s < 1)) return -1;
        if (n == 1 && (!ones || s < 1 || total % s)) continue;
        int j = m++;
        for (; j > 0; j--) {
            const int64_t t = a->stride[order[j - 1]];
            if (t > s || (t == s && a->shape.dim[order[j - 1]] >= n)) break;
            order[j] = order[j - 1];
        }
        order[j] = k;
    }
    return m;
}

static bool try_box(const lb_array *a, bool ones, lb_box *b)
{
    int order[LB_MAX_RANK];
    const int64_t total = lb_shape_size(&a->store->shape);
    const int m = sort_axes(a, ones, total, order);
    if (m < 0) return false;
    memset(b, 0, sizeof *b);
    b->shape.rank = m;
    for (int k = 0; k < LB_MAX_RANK; k++)
        b->axis[k] = -1;
    int64_t outer = total;
    for (int j = 0; j < m; j++) {
        const int64_t s = a->stride[order[j]];
        if (outer % s) return false;
        b->shape.dim[j] = outer / s;
        b->axis[order[j]] = j;
        b->n[j] = a->shape.dim[order[j]];
        outer = s;
    }
    if (outer != 1 || m == 0) { /* the view has one element of an inner axis */
        if (m == LB_MAX_RANK) return false;
        b->n[m] = 1;
        b->shape.dim[b->shape.rank++] = outer;
    }
    int64_t e = a->offset;
    for (int j = b->shape.rank - 1; j >= 0; j--) {
        b->lo[j] = e % b->shape.dim[j];
        e /= b->shape.dim[j];
        if (b->lo[j] + b->n[j] > b->shape.dim[j]) return false;
    }
    return reshape_store(a->store, b);
}

bool lb_as_box(const lb_array *a, lb_box *b)
{
    if (!lb_shape_size(&a->store->shape)) return false;
    return try_box(a, true, b) || try_box(a, false, b);
}

/* Values would be correct for any end. Requiring a multiple of g, or the end of
 * the store, keeps bytes canonical: no entry covers elements outside. */
bool lb_box_cut(const lb_box *b, int p, lb_array *cut)
{
    const lb_part *part = &b->part[p];
    *cut = b->view[p];
    for (int k = 0; k < b->shape.rank; k++) {
        const int64_t g = part->g[k], lo = b->lo[k], end = lo + b->n[k];
        if (!g) continue;
        if (lo % g || (end % g && end != b->shape.dim[k])) return false;
        cut->offset += lo / g * cut->stride[k];
        cut->shape.dim[k] = lb_ceil_div(end, g) - lo / g;
    }
    return true;
}
