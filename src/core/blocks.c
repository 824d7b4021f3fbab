/* blocks.c - moving whole blocks without leaving the format: pack, join, pick.
 *
 * Conditions per part, along stored axis k with box [lo, end) of n:
 *   cut     g == 0, or lo and end are multiples of g (or end is n)
 *   join    same format, meaning, dtype, axis order and table; cut; along the
 *           joined axis all but the last are multiples of g or, if g == 0,
 *           the entries are equal
 *   pick    cut, and g <= 1 along the axis
 * The same conditions then apply to the part itself. A part that cannot keep
 * its own format becomes dense, unless it is firm: then the move declines.
 * Everything is checked first, down to the leaves (the can_ functions), and
 * moved afterwards, so that a move is never left half done.
 */
#include <string.h>

#include "core/core.h"

static bool is_leaf(const lb_array *a)
{
    return a->store->data != NULL;
}

/* Whether a part may become dense, or is. */
static bool is_soft(const lb_store *s, int p, const lb_array *part)
{
    return !s->fmt->part[p].firm || is_leaf(part);
}

/* Views a contiguous array as one row, so that blocks that cross rows are
 * within a row. */
static bool as_row(const lb_array *a, lb_array *row)
{
    if (a->shape.rank < 2 || !lb_is_row_major(a)) return false;
    *row = *a;
    row->shape = (lb_shape){1, {lb_shape_size(&a->shape)}};
    row->stride[0] = 1;
    return true;
}

/* The store's plain view with the logical shape and the box's axis order. */
static lb_array *logical_view(lb_array *plain, const lb_box *b,
                              const lb_shape *shape)
{
    if (!plain) return NULL;
    int64_t stride[LB_MAX_RANK] = {0};
    for (int k = 0; k < shape->rank; k++)
        if (b->axis[k] >= 0) stride[k] = plain->stride[b->axis[k]];
    plain->shape = *shape;
    memcpy(plain->stride, stride, sizeof stride);
    return plain;
}

/* Gives the row returned by a move the requested shape. */
static lb_verdict give_row(lb_verdict v, const lb_shape *shape, lb_array **row)
{
    if (v == LB_DONE) {
        (*row)->shape = *shape;
        lb_row_major(shape, (*row)->stride);
    }
    return v;
}

/* ---- pack --------------------------------------------------------------- */

bool lb_can_pack(const lb_array *a)
{
    lb_box b;
    lb_array cut, row;
    if (is_leaf(a)) return false;
    if (!lb_as_box(a, &b)) return as_row(a, &row) && lb_can_pack(&row);
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        if (!b.part[p].a) continue;
        if (!lb_box_cut(&b, p, &cut)) return false;
        if (!is_soft(a->store, p, &cut) && !lb_can_pack(&cut)) return false;
    }
    return true;
}

/* Copies a part to compact storage: packed if possible, else dense. */
static lb_array *pack_part(lb_ctx *cx, const lb_array *cut)
{
    lb_array *view = lb_view(cx, cut), *out = NULL;
    if (!view) return NULL;
    switch (lb_pack(cx, view, &out)) {
    case LB_DONE:
        return out;
    case LB_DECLINED:
        /* A view into something larger would keep all of it alive. */
        if (lb_size(view) < lb_shape_size(&view->store->shape))
            return lb_bind(cx, lb_find_primitive(cx, "copy"), 1, &view, NULL);
        return lb_materialize(cx, view);
    case LB_FAILED:
        break;
    }
    return NULL;
}

lb_verdict lb_pack(lb_ctx *cx, lb_array *a, lb_array **out)
{
    lb_box b;
    lb_array row, cut;
    if (!lb_can_pack(a)) return LB_DECLINED;
    if (!lb_as_box(a, &b)) {
        as_row(a, &row);
        lb_array *flat = lb_view(cx, &row);
        if (!flat) return LB_FAILED;
        return give_row(lb_pack(cx, flat, out), &a->shape, out);
    }
    const lb_shape stored = lb_shape_make(b.shape.rank, b.n);
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        if (!b.part[p].a) continue;
        lb_box_cut(&b, p, &cut);
        if (!(b.part[p].a = pack_part(cx, &cut))) return LB_FAILED;
    }
    *out = logical_view(lb_make_like(cx, a->store, a->dtype, &stored, b.part),
                        &b, &a->shape);
    return *out ? LB_DONE : LB_FAILED;
}

/* The box's axes in the order of a's, then those that a does not have. False if
 * elements inside an entry would change their order: raw parts count positions
 * along the last axis, unless each element has an entry of its own. */
static bool row_order(const lb_array *a, const lb_box *b, int *order)
{
    bool used[LB_MAX_RANK] = {false};
    int n = 0;
    for (int k = 0; k < a->shape.rank; k++) {
        if (b->axis[k] < 0) continue;
        order[n++] = b->axis[k];
        used[b->axis[k]] = true;
    }
    for (int j = 0; j < b->shape.rank; j++)
        if (!used[j]) order[n++] = j;
    const int last = b->shape.rank - 1;
    for (int p = 0; p < LB_MAX_PARTS && order[last] != last; p++) {
        const lb_part *part = &b->part[p];
        if (!part->a || !a->store->fmt->part[p].raw) continue;
        for (int j = 0; j <= last; j++)
            if (part->g[j] != 1) return false;
    }
    return true;
}

/* A part with its axes in that order; an axis of its own stays the last. */
static void reorder(const lb_part *part, int rank, const int *order,
                    lb_part *to, lb_array *cut)
{
    const lb_array was = *cut;
    for (int j = 0; j < rank; j++) {
        to->g[j] = part->g[order[j]];
        cut->shape.dim[j] = was.shape.dim[order[j]];
        cut->stride[j] = was.stride[order[j]];
    }
}

lb_verdict lb_pack_rows(lb_ctx *cx, lb_array *a, lb_array **out)
{
    lb_box b;
    int order[LB_MAX_RANK];
    if (!lb_can_pack(a) || !lb_as_box(a, &b) || !row_order(a, &b, order))
        return LB_DECLINED;
    lb_part table[LB_MAX_PARTS];
    memcpy(table, b.part, sizeof table);
    lb_shape stored = b.shape;
    for (int j = 0; j < stored.rank; j++)
        stored.dim[j] = b.n[order[j]];
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        lb_array cut;
        if (!b.part[p].a) continue;
        lb_box_cut(&b, p, &cut);
        reorder(&b.part[p], stored.rank, order, &table[p], &cut);
        if (!(table[p].a = pack_part(cx, &cut))) return LB_FAILED;
    }
    *out =
        lb_make(cx, a->store->fmt, a->dtype, a->store->meaning, &stored, table);
    if (!*out) return LB_FAILED;
    (*out)->shape = a->shape;
    lb_row_major(&a->shape, (*out)->stride);
    return LB_DONE;
}

/* ---- join --------------------------------------------------------------- */

static bool same_values(const lb_cpu *cpu, const lb_array *a, const lb_array *b)
{
    if (a->dtype != b->dtype || !lb_shape_equal(&a->shape, &b->shape))
        return false;
    enum { RUN = 64 };
    const int64_t size = lb_shape_size(&a->shape);
    const lb_ctype c = lb_ctype_of(a->dtype);
    for (int64_t i = 0; i < size; i += RUN) {
        _Alignas(8) char x[RUN * 8], y[RUN * 8];
        const int64_t n = lb_min_i64(RUN, size - i);
        lb_tile_read_flat(cpu, a, i, n, c, x);
        lb_tile_read_flat(cpu, b, i, n, c, y);
        if (memcmp(x, y, (size_t)n * lb_ctype_size(c)) != 0) return false;
    }
    return true;
}

static bool same_table(const lb_array *x, const lb_box *a, const lb_array *y,
                       const lb_box *b, int at)
{
    const int rank = a->shape.rank;
    if (x->store->fmt != y->store->fmt || x->dtype != y->dtype ||
        x->store->meaning != y->store->meaning || rank != b->shape.rank ||
        memcmp(a->axis, b->axis, sizeof a->axis) != 0)
        return false;
    for (int k = 0; k < rank; k++)
        if (k != at && a->n[k] != b->n[k]) return false;
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        const lb_part *s = &a->part[p], *t = &b->part[p];
        if (!s->a != !t->a || s->own != t->own) return false;
        if (s->a && memcmp(s->g, t->g, (size_t)rank * sizeof s->g[0]) != 0)
            return false;
    }
    return true;
}

/* Whether operand i of n can be joined to the first; can_join_parts checks the
 * parts that are joined with it. */
static bool can_follow(const lb_cpu *cpu, const lb_array *first,
                       const lb_box *b0, const lb_array *a, int axis, bool last)
{
    lb_box b;
    const int at = b0->axis[axis];
    if (is_leaf(a) || !lb_as_box(a, &b) || b.axis[axis] != at) return false;
    if (!same_table(first, b0, a, &b, at)) return false;
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        lb_array cut, cut0;
        if (!b.part[p].a) continue;
        const int64_t g = b.part[p].g[at];
        if (!lb_box_cut(&b, p, &cut)) return false;
        if (g && !last && b.n[at] % g) return false;
        if (!g && first != a &&
            (!lb_box_cut(b0, p, &cut0) || !same_values(cpu, &cut0, &cut)))
            return false;
    }
    return true;
}

/* Part p of all operands. */
static bool pieces(lb_ctx *cx, lb_array *const *in, int n, int p,
                   lb_array **piece)
{
    for (int i = 0; i < n; i++) {
        lb_box b;
        lb_array cut;
        if (!lb_as_box(in[i], &b) || !lb_box_cut(&b, p, &cut)) return false;
        if (!(piece[i] = lb_view(cx, &cut))) return false;
    }
    return true;
}

/* If one packed part is firm, all must be joined packed. */
static bool all_soft(lb_array *const *in, int n, int p)
{
    for (int i = 0; i < n; i++)
        if (!is_soft(in[i]->store, p, in[i]->store->part[p].a)) return false;
    return true;
}

static lb_verdict can_join(lb_ctx *cx, lb_array *const *in, int n, int axis,
                           lb_box *b0, lb_array **piece)
{
    if (is_leaf(in[0]) || !lb_as_box(in[0], b0) || b0->axis[axis] < 0)
        return LB_DECLINED;
    const int at = b0->axis[axis];
    for (int i = 0; i < n; i++)
        if (!can_follow(&cx->cpu, in[0], b0, in[i], axis, i == n - 1))
            return LB_DECLINED;
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        lb_box part_box;
        if (!b0->part[p].a || all_soft(in, n, p)) continue;
        if (!b0->part[p].g[at]) {
            lb_array cut;
            if (!lb_box_cut(b0, p, &cut) || !lb_can_pack(&cut))
                return LB_DECLINED;
            continue;
        }
        if (!pieces(cx, in, n, p, piece)) return LB_FAILED;
        lb_array **below = piece + n; /* space for deeper levels of nesting */
        const lb_verdict v = can_join(cx, piece, n, at, &part_box, below);
        if (v != LB_DONE) return v;
    }
    return LB_DONE;
}

static lb_verdict join_boxes(lb_ctx *cx, lb_array *const *in, int n, int axis,
                             lb_array **piece, lb_array **out)
{
    lb_box b;
    const lb_verdict v = can_join(cx, in, n, axis, &b, piece);
    if (v != LB_DONE) return v;
    const int at = b.axis[axis];
    lb_shape stored = lb_shape_make(b.shape.rank, b.n), shape = in[0]->shape;
    for (int i = 1; i < n; i++)
        shape.dim[axis] += in[i]->shape.dim[axis];
    stored.dim[at] = shape.dim[axis];
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        if (!b.part[p].a) continue;
        if (!pieces(cx, in, n, p, piece)) return LB_FAILED;
        b.part[p].a = b.part[p].g[at] ? lb_concatenate(cx, piece, n, at)
                                      : pack_part(cx, piece[0]);
        if (!b.part[p].a) return LB_FAILED;
    }
    *out = logical_view(
        lb_make_like(cx, in[0]->store, in[0]->dtype, &stored, b.part), &b,
        &shape);
    for (int i = 1; i < n && *out; i++)
        if (in[i]->store->made.reference) (*out)->store->made.reference = true;
    return *out ? LB_DONE : LB_FAILED;
}

/* Along axis 0, contiguous operands can also be joined as rows, end to end. */
static lb_verdict join_rows(lb_ctx *cx, lb_array *const *in, int n,
                            lb_array **piece, lb_array **out)
{
    lb_shape shape = in[0]->shape;
    shape.dim[0] = 0;
    for (int i = 0; i < n; i++) {
        lb_array row;
        if (!as_row(in[i], &row)) return LB_DECLINED;
        if (!(piece[i] = lb_view(cx, &row))) return LB_FAILED;
        shape.dim[0] += in[i]->shape.dim[0];
    }
    const lb_verdict v = join_boxes(cx, piece, n, 0, piece + n, out);
    return give_row(v, &shape, out);
}

lb_verdict lb_join(lb_ctx *cx, lb_array *const *in, int n, int axis,
                   lb_array **out)
{
    size_t got;
    for (int i = 0; i < n; i++)
        if (is_leaf(in[i])) return LB_DECLINED;
    lb_array **room = lb_heap_alloc(
        cx->heap, (size_t)n * (LB_MAX_NESTING + 2) * sizeof *room, &got);
    if (!room) {
        lb_fail(cx, LB_E_NOMEM, "out of memory");
        return LB_FAILED;
    }
    lb_verdict v = join_boxes(cx, in, n, axis, room, out);
    if (v == LB_DECLINED && axis == 0) v = join_rows(cx, in, n, room, out);
    lb_heap_free(cx->heap, room, got);
    return v;
}

/* ---- pick --------------------------------------------------------------- */

static bool can_pick(const lb_array *a, int axis, lb_box *b)
{
    if (is_leaf(a) || !lb_as_box(a, b) || b->axis[axis] < 0) return false;
    const int at = b->axis[axis];
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        lb_array cut;
        lb_box inner;
        if (!b->part[p].a) continue;
        const int64_t g = b->part[p].g[at];
        if (g > 1 || !lb_box_cut(b, p, &cut)) return false;
        if (is_soft(a->store, p, &cut)) continue;
        if (g ? !can_pick(&cut, at, &inner) : !lb_can_pack(&cut)) return false;
    }
    return true;
}

lb_verdict lb_pick(lb_ctx *cx, lb_array *a, int axis, lb_array *index,
                   lb_array **out)
{
    lb_box b;
    if (!can_pick(a, axis, &b)) return LB_DECLINED;
    const int at = b.axis[axis];
    const int64_t count = index->shape.dim[0];
    lb_shape stored = lb_shape_make(b.shape.rank, b.n), shape = a->shape;
    stored.dim[at] = shape.dim[axis] = count;
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        lb_array cut;
        if (!b.part[p].a) continue;
        lb_box_cut(&b, p, &cut);
        lb_array *view = lb_view(cx, &cut);
        if (!view) return LB_FAILED;
        b.part[p].a = b.part[p].g[at] ? lb_take(cx, view, index, at)
                                      : pack_part(cx, view);
        if (!b.part[p].a) return LB_FAILED;
    }
    *out = logical_view(lb_make_like(cx, a->store, a->dtype, &stored, b.part),
                        &b, &shape);
    return *out ? LB_DONE : LB_FAILED;
}
