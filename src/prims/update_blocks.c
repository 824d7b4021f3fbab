/* update_blocks.c - replaces blocks of a packed array by those of another one.
 *
 * Per part, along each axis with box [lo, hi) of n: the part follows the axis
 * (g > 0), and lo and hi are multiples of g, or hi is n. Then the box is one of
 * the part's entries, and the update's part holds exactly these. A part that is
 * shared along an axis of which only some is replaced needs equal entries: that
 * is left to lb_join, which makes a new array.
 */
#include "prims/dynamic.h"
#include "prims/place.h"

/* Whether a view is its store as it is, so that parts can be addressed. */
static bool is_plain(const lb_array *a)
{
    return a->offset == 0 && lb_shape_equal(&a->shape, &a->store->shape) &&
           lb_is_row_major(a);
}

/* The box of a part that belongs to the box [lo, lo + u.dim) of a. */
static bool part_box(const lb_array *a, const lb_array *u, int p,
                     const int64_t *lo, int64_t *to)
{
    const lb_part *x = &a->store->part[p], *y = &u->store->part[p];
    const int rank = a->shape.rank;
    if (x->own != y->own) return false;
    for (int k = 0; k < rank; k++) {
        const int64_t g = x->g[k], n = a->shape.dim[k], m = u->shape.dim[k];
        const int64_t hi = lo[k] + m;
        if (g != y->g[k] || (!g && m != n)) return false;
        if (g && (lo[k] % g || (hi % g && hi != n))) return false;
        to[k] = g ? lo[k] / g : 0;
    }
    if (x->own) to[rank] = 0;
    return true;
}

/* The box of u in a; with `write` it is written, after all has been checked. */
static bool visit(const lb_call *c, lb_array *a, const lb_array *u,
                  const int64_t *lo, bool write)
{
    if (a->store->data) {
        lb_place p;
        if (!lb_data(a) || !u->store->data || u->store->elem != a->dtype ||
            u->dtype != a->dtype)
            return false;
        if (!write) return true;
        const lb_work w = {.call = c, .out = a};
        lb_place_plan(&p, u, &a->shape, lo, NULL);
        lb_place_run(&p, &w, 0, p.units);
        return true;
    }
    const lb_store *x = a->store, *y = u->store;
    if (x->fmt != y->fmt || x->meaning != y->meaning || a->dtype != u->dtype ||
        (y->made.reference && !x->made.reference) || !is_plain(a) ||
        !is_plain(u))
        return false;
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        int64_t to[LB_MAX_RANK];
        if (!x->part[p].a != !y->part[p].a) return false;
        if (x->part[p].a && (!part_box(a, u, p, lo, to) ||
                             !visit(c, x->part[p].a, y->part[p].a, to, write)))
            return false;
    }
    return true;
}

bool lb_update_blocks(const lb_call *c, lb_array *a, const lb_array *u,
                      const int64_t *lo)
{
    return visit(c, a, u, lo, false) && visit(c, a, u, lo, true);
}

/* ---- a new array --------------------------------------------------------- */

static lb_array *cut_axis(lb_ctx *cx, const lb_array *a, int k, int64_t lo,
                          int64_t hi)
{
    lb_array *v = lb_view(cx, a);
    if (!v) return NULL;
    v->shape.dim[k] = hi - lo;
    v->offset += lo * v->stride[k];
    return v;
}

/* Along axis k and those after it. */
static lb_verdict join_from(lb_ctx *cx, lb_array *a, lb_array *u,
                            const int64_t *lo, int k, lb_array **out)
{
    while (k < a->shape.rank && u->shape.dim[k] == a->shape.dim[k])
        k++;
    if (k == a->shape.rank) {
        *out = lb_view(cx, u);
        return *out ? LB_DONE : LB_FAILED;
    }
    const int64_t from = lo[k], end = from + u->shape.dim[k];
    const int64_t dim = a->shape.dim[k];
    lb_array *piece[3], *inner = cut_axis(cx, a, k, from, end);
    int n = 0;
    if (!inner) return LB_FAILED;
    if (from && !(piece[n++] = cut_axis(cx, a, k, 0, from))) return LB_FAILED;
    const lb_verdict v = join_from(cx, inner, u, lo, k + 1, &piece[n]);
    if (v != LB_DONE) return v;
    n++;
    if (end < dim && !(piece[n++] = cut_axis(cx, a, k, end, dim)))
        return LB_FAILED;
    return lb_join(cx, piece, n, k, out);
}

lb_verdict lb_update_join(lb_ctx *cx, lb_array *a, lb_array *u,
                          const int64_t *lo, lb_array **out)
{
    return join_from(cx, a, u, lo, 0, out);
}
