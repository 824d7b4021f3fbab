/* gather.c - gather: windows of the operand, one per index vector.
 *
 * A small window is moved whole, and a unit is many of them; a large one is
 * split, and a unit is a piece. Dense operands are moved as bytes. If windows
 * are adjacent in the result, as columns are, many are moved together, one
 * element of each at a time.
 */
#include <math.h>
#include <string.h>

#include "kernels/convert.h"
#include "kernels/move_bytes.h"
#include "kernels/stream.h"
#include "prims/cuts.h"
#include "prims/gather_across.h"

static bool infer(lb_ctx *cx, lb_call *c)
{
    c->dtype = c->in[0]->dtype;
    return lb_windows_infer(cx, "gather", c->in[0], c->in[1], c->params,
                            &c->shape);
}

/* Size of a unit of adjacent windows: few enough elements that their sources,
 * often rows of which each window needs one element, stay in cache from one
 * group of windows to the next. */
enum { BESIDE_ELEMENTS = 16, BESIDE_WINDOWS = 32 * LB_WINDOWS };

typedef struct {
    lb_windows ws;
    int64_t stride[LB_MAX_RANK]; /* of the result */
    lb_array view;               /* a window at the operand's origin */
    const char *raw; /* the operand's elements if they can be moved as bytes,
                      * else NULL */
    bool beside;
    lb_move move, fill;       /* if raw */
    lb_tiling tiling;         /* otherwise */
    int64_t pieces, together; /* pieces per window; windows per unit */
} gather_job;

/* Whether the elements of adjacent windows are adjacent in the result, while
 * those of one window are not: the last axis is a batch axis. */
static bool side_by_side(const lb_windows *ws, const lb_shape *result)
{
    int last = result->rank - 1;
    while (last >= 0 && result->dim[last] == 1)
        last--;
    for (int i = 0; i < ws->n_batch; i++)
        if (ws->batch_out[i] == last) return true;
    return false;
}

static gather_job prepare(const lb_call *c)
{
    enum { BYTES = 32 << 10 }; /* approximate size of a unit */
    const lb_array *a = c->in[0];
    const size_t size = lb_dtype_size(a->dtype);
    gather_job j = {.ws = lb_windows_make(a, c->in[1], c->params), .view = *a};
    int64_t dst[LB_MAX_RANK], none[LB_MAX_RANK] = {0};
    lb_row_major(&c->shape, j.stride);
    j.view.shape = j.ws.window;
    for (int i = 0; i < j.ws.window.rank; i++) {
        j.view.stride[i] = a->stride[j.ws.offset_in[i]];
        dst[i] = j.stride[j.ws.offset_out[i]];
    }
    j.raw = lb_elements(a);
    j.beside = j.raw && side_by_side(&j.ws, &c->shape);
    const int64_t *n = j.ws.window.dim;
    const size_t total = (size_t)lb_shape_size(&c->shape) * size;
    const int64_t elements = lb_shape_size(&j.ws.window);
    if (j.beside) {
        j.pieces = lb_ceil_div(elements, BESIDE_ELEMENTS);
        j.together = BESIDE_WINDOWS;
        return j;
    }
    if (j.raw) {
        j.move =
            lb_move_plan(size, j.ws.window.rank, n, j.view.stride, dst, total);
        j.pieces = j.move.units;
    } else {
        const lb_array *in = &j.view;
        j.tiling = lb_tiling_for(&j.ws.window, &in, 1);
        j.pieces = j.tiling.tiles;
    }
    j.fill = lb_move_plan(size, j.ws.window.rank, n, none, dst, total);
    const int64_t bytes = elements * (int64_t)size;
    j.together = j.pieces > 1 ? 1 : BYTES / lb_max_i64(bytes, 1) + 1;
    return j;
}

static void plan(const lb_call *c, lb_plan *plan)
{
    const lb_windows ws = lb_windows_make(c->in[0], c->in[1], c->params);
    if (lb_across_fits(&ws, c->in[0])) {
        const lb_across x = lb_across_plan(&ws, c);
        *plan = (lb_plan){.per_thread = lb_across_scratch(&x),
                          .phases = 1,
                          .units = {x.units},
                          .kernel = "pick across"};
        return;
    }
    const gather_job j = prepare(c);
    *plan = (lb_plan){
        .per_thread = LB_WINDOWS * sizeof(lb_window) +
                      (j.raw ? 0 : (size_t)j.tiling.size * 8),
        .phases = 1,
        .units = {lb_ceil_div(j.ws.count, j.together) * j.pieces},
        .kernel = j.beside ? "copy side by side"
                  : j.raw  ? "copy bytes"
                           : "copy tiles",
    };
}

/* The value for windows that do not fit. */
static void fill_value(const lb_gather_dims *d, lb_dtype dtype, void *to)
{
    double value = d->fill;
    if (!d->has_fill)
        value = lb_dtype_is_float(dtype) ? (double)NAN
                : lb_dtype_is_int(dtype) && !lb_dtype_is_unsigned(dtype)
                    ? -HUGE_VAL /* saturates */
                    : HUGE_VAL;
    lb_store_run(LB_C_F64, &value, dtype, 1, to);
}

static void read_tile(const gather_job *j, const lb_work *w,
                      const lb_window *win, int64_t piece, void *tile)
{
    lb_array dst = *w->out, src = j->view;
    int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK];
    for (int k = 0; k < j->ws.rank; k++)
        src.offset += win->start[k] * w->call->in[0]->stride[k];
    dst.shape = j->ws.window;
    dst.offset += win->result;
    for (int i = 0; i < dst.shape.rank; i++)
        dst.stride[i] = j->stride[j->ws.offset_out[i]];
    const lb_ctype c = lb_ctype_of(dst.dtype);
    lb_tiling_box(&j->tiling, piece, lo, n);
    lb_tile_read(w->call->cpu, &src, lo, n, c, tile);
    lb_tile_write(w->call->cpu, &dst, lo, n, c, tile);
}

static void move_window(const gather_job *j, const lb_work *w,
                        const lb_window *win, int64_t piece, const void *fill,
                        void *tile)
{
    const size_t size = lb_dtype_size(w->call->dtype);
    char *to = (char *)w->out->store->data +
               (size_t)(w->out->offset + win->result) * size;
    if (!win->fits) {
        if (piece == 0) lb_move_run(&j->fill, fill, to, 0, j->fill.units);
        return;
    }
    if (!j->raw) {
        read_tile(j, w, win, piece, tile);
        return;
    }
    const lb_array *a = w->call->in[0];
    int64_t e = 0;
    for (int k = 0; k < j->ws.rank; k++)
        e += win->start[k] * a->stride[k];
    lb_move_run(&j->move, j->raw + e * (int64_t)size, to, piece, piece + 1);
}

/* Moves one element of each window: from[i] + (s & mask[i]) to to[i] + d. */
static void move_each(size_t size, int64_t n, const char *const *from,
                      const int64_t *mask, int64_t s, char *const *to,
                      int64_t d)
{
    switch (size) {
    case 1:
        for (int64_t i = 0; i < n; i++)
            to[i][d] = from[i][s & mask[i]];
        return;
    case 2:
        for (int64_t i = 0; i < n; i++)
            memcpy(to[i] + d, from[i] + (s & mask[i]), 2);
        return;
    case 4:
        for (int64_t i = 0; i < n; i++)
            memcpy(to[i] + d, from[i] + (s & mask[i]), 4);
        return;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(to[i] + d, from[i] + (s & mask[i]), 8);
    }
}

/* Moves a piece of n windows: elements first, first + 1, ... of each. */
static void move_beside(const gather_job *j, const lb_work *w,
                        const lb_window *win, int64_t n, int64_t first,
                        const void *fill)
{
    const lb_array *a = w->call->in[0];
    const size_t size = lb_dtype_size(a->dtype);
    const lb_shape *shape = &j->ws.window;
    const char *from[LB_WINDOWS];
    char *to[LB_WINDOWS];
    int64_t mask[LB_WINDOWS]; /* 0 for windows that do not fit: always read
                               * fill */
    for (int64_t i = 0; i < n; i++) {
        int64_t e = 0;
        for (int k = 0; k < j->ws.rank && win[i].fits; k++)
            e += win[i].start[k] * a->stride[k];
        from[i] = win[i].fits ? j->raw + e * (int64_t)size : fill;
        mask[i] = win[i].fits ? -1 : 0;
        to[i] = (char *)w->out->store->data +
                (size_t)(w->out->offset + win[i].result) * size;
    }
    int64_t index[LB_MAX_RANK], s = 0, d = 0, rest = first;
    const int64_t end =
        lb_min_i64(first + BESIDE_ELEMENTS, lb_shape_size(shape));
    for (int k = shape->rank - 1; k >= 0; k--) {
        index[k] = rest % shape->dim[k];
        rest /= shape->dim[k];
        s += index[k] * j->view.stride[k];
        d += index[k] * j->stride[j->ws.offset_out[k]];
    }
    for (int64_t e = first; e < end; e++) {
        move_each(size, n, from, mask, s * (int64_t)size, to,
                  d * (int64_t)size);
        for (int k = shape->rank - 1; k >= 0; k--) {
            const int64_t step = j->stride[j->ws.offset_out[k]];
            s += j->view.stride[k];
            d += step;
            if (++index[k] < shape->dim[k]) break;
            s -= shape->dim[k] * j->view.stride[k];
            d -= shape->dim[k] * step;
            index[k] = 0;
        }
    }
}

static void eval(const lb_work *w)
{
    const lb_call *c = w->call;
    const lb_windows ws = lb_windows_make(c->in[0], c->in[1], c->params);
    uint64_t fill = 0;
    fill_value(c->params, c->dtype, &fill);
    if (lb_across_fits(&ws, c->in[0])) {
        const lb_across x = lb_across_plan(&ws, c);
        lb_across_run(&x, w, &fill);
        return;
    }
    const gather_job j = prepare(c);
    lb_window *win = w->scratch;
    void *tile = win + LB_WINDOWS;
    for (int64_t u = w->lo; u < w->hi; u++) {
        const int64_t piece = u % j.pieces;
        int64_t i = u / j.pieces * j.together;
        const int64_t end = lb_min_i64(i + j.together, j.ws.count);
        for (int64_t n; i < end; i += n) {
            n = lb_min_i64(end - i, LB_WINDOWS);
            lb_windows_look(&j.ws, w->call, j.stride, i, n, win);
            if (j.beside)
                move_beside(&j, w, win, n, piece * BESIDE_ELEMENTS, &fill);
            for (int64_t k = 0; k < n && !j.beside; k++)
                move_window(&j, w, &win[k], piece, &fill, tile);
        }
    }
    lb_stream_end();
}

/* The axis along which the call takes whole slices, one per index, as lb_take
 * does; -1 if it is another kind of gather. */
static int taken_axis(const lb_call *c)
{
    const lb_gather_dims *d = c->params;
    const lb_array *a = c->in[0];
    const lb_shape *s = &c->in[1]->shape;
    if (d->bounds != LB_BOUNDS_CLAMP || d->operand_batching_dims.n ||
        d->collapsed_slice_dims.n != 1 || d->start_index_map.n != 1)
        return -1;
    const int axis = d->start_index_map.axis[0];
    const int vector = d->index_vector_dim;
    if (d->collapsed_slice_dims.axis[0] != axis) return -1;
    if (vector != s->rank && vector != s->rank - 1) return -1;
    const int batch = vector; /* axes before the index vector's, or all */
    for (int k = 0, i = 0; k < a->shape.rank; k++) {
        if (k == axis) continue;
        const int to = k < axis ? k : k - 1 + batch;
        if (d->slice_sizes[k] != a->shape.dim[k]) return -1;
        if (d->offset_dims.axis[i++] != to) return -1;
    }
    return axis;
}

/* Whole rows of packed blocks stay packed. */
static lb_verdict move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    const int axis = c->in[0]->store->data ? -1 : taken_axis(c);
    if (axis < 0) return LB_DECLINED;
    const lb_shape flat = {1, {lb_size(c->in[1])}};
    lb_array *index = lb_reshape(cx, c->in[1], flat);
    if (!index) return LB_FAILED;
    const lb_verdict v = lb_pick(cx, c->in[0], axis, index, out);
    if (v != LB_DONE) return v;
    int64_t stride[LB_MAX_RANK];
    if (!lb_restride(*out, &c->shape, stride)) return LB_DECLINED;
    (*out)->shape = c->shape;
    memcpy((*out)->stride, stride, sizeof stride);
    return LB_DONE;
}

/* Elements that were read repeatedly accumulate; a fill has no gradient. */
static lb_array *vjp(lb_ctx *cx, const lb_call *c, int operand, lb_array *out,
                     lb_array *dout)
{
    (void)operand, (void)out;
    lb_enter(cx);
    lb_array *zeros = lb_zeros(cx, c->dtype, c->in[0]->shape);
    zeros = lb_cut_like(cx, zeros, c->in[0], false);
    return lb_leave_with(cx,
                         lb_scatter_add(cx, zeros, c->in[1], dout, c->params));
}

/* ---- sharding ------------------------------------------------------------ */

/* The axis of picked entries, if ranks may sum their results. With fill they
 * may not, because every rank would add the fill value. */
static int picked_axis(const lb_call *c)
{
    const lb_gather_dims *d = c->params;
    return d->bounds == LB_BOUNDS_CLAMP ? lb_picked_axis(d) : -1;
}

static lb_array *share(lb_ctx *cx, const lb_share *p)
{
    const lb_call *c = p->whole;
    const lb_array *a = p->in[0];
    lb_gather_dims d = *(const lb_gather_dims *)c->params;
    lb_array *in[2] = {p->in[0], p->in[1]};
    for (int k = 0; k < a->shape.rank; k++)
        if (d.slice_sizes[k] == c->in[0]->shape.dim[k])
            d.slice_sizes[k] = a->shape.dim[k];
    if (p->partial) {
        const int axis = picked_axis(c);
        in[1] = lb_picked_here(cx, &d, in[1], p->lo[0][axis],
                               c->in[0]->shape.dim[axis]);
        d.bounds = LB_BOUNDS_FILL; /* on other ranks */
        d.has_fill = true;
        d.fill = 0;
    }
    return in[1] ? lb_bind(cx, c->prim, 2, in, &d) : NULL;
}

/* Cuts axes that windows take whole, those of the indices, and the axis of
 * picked entries: each entry is on one rank, and all others add zeros. */
static bool shard(const lb_call *c, lb_cuts *to)
{
    const lb_gather_dims *d = c->params;
    const lb_windows ws = lb_windows_make(c->in[0], c->in[1], d);
    int label = 1;
    for (int j = 0; j < ws.window.rank; j++) {
        const int k = ws.offset_in[j];
        if (d->slice_sizes[k] == c->in[0]->shape.dim[k] &&
            !lb_axes_has(&d->start_index_map, k))
            lb_cuts_pair(to, label++, 0, k, ws.offset_out[j]);
    }
    for (int k = 0, b = 0; k < c->in[1]->shape.rank; k++) {
        if (k == d->index_vector_dim) continue;
        lb_cuts_pair(to, label, 1, k, ws.batch_out[b]);
        for (int i = 0; i < ws.rank; i++)
            if (ws.follows[i] == b) to->in[0][i] = label;
        label++;
        b++;
    }
    if (picked_axis(c) >= 0) lb_cuts_pair(to, label, 0, picked_axis(c), -1);
    to->combine = LB_COMBINE_BITS;
    to->run = share;
    return true;
}

const lb_prim lb_prim_gather = {
    .struct_size = sizeof(lb_prim),
    .name = "gather",
    .params_size = sizeof(lb_gather_dims),
    .params_exact = sizeof(int),
    .n_in = 2,
    .infer = infer,
    .move = move,
    .plan = plan,
    .eval = eval,
    .moves = 1,
    .vjp = vjp,
    .shard = shard,
};

lb_array *lb_gather(lb_ctx *cx, lb_array *a, lb_array *starts,
                    const lb_gather_dims *dims)
{
    lb_gather_dims d = {.index_vector_dim = 0};
    if (a && starts && dims &&
        !lb_windows_fix(cx, "gather", a, starts, dims, &d))
        return NULL;
    return lb_bind(cx, &lb_prim_gather, 2, (lb_array *[]){a, starts},
                   dims ? &d : NULL);
}

/* Fails if an index is not below n. Traced indices have no elements. */
static bool in_range(lb_ctx *cx, lb_array *index, int64_t n)
{
    enum { RUN = 512 };
    int64_t run[RUN];
    bool ok = true;
    if (!lb_dtype_is_int(index->dtype) || index->store->traced) return true;
    lb_enter(cx);
    index = lb_here(cx, index);
    const int64_t size = lb_size(index);
    for (int64_t at = 0, m; index && ok && at < size; at += m) {
        m = lb_min_i64(size - at, RUN);
        lb_tile_read_flat(&cx->cpu, index, at, m, lb_ctype_of(index->dtype),
                          run); /* unsigned ones above 2^63 look negative */
        for (int64_t i = 0; i < m && ok; i++)
            ok = (run[i] >= 0 && run[i] < n) ||
                 lb_fail(
                     cx, LB_E_ARG, "take: index %lld is %lld, not in 0..%lld",
                     (long long)(at + i), (long long)run[i], (long long)n - 1);
    }
    lb_leave(cx);
    return ok && index;
}

lb_array *lb_take(lb_ctx *cx, lb_array *a, lb_array *index, int axis)
{
    if (!a || !index)
        return lb_bind(cx, &lb_prim_gather, 2, (lb_array *[]){a, index}, NULL);
    const int rank = a->shape.rank, batch = index->shape.rank;
    lb_gather_dims d = {.index_vector_dim = batch};
    if (!lb_axis_fix(cx, "take", axis, rank, &axis)) return NULL;
    if (cx && cx->check_indices && !in_range(cx, index, a->shape.dim[axis]))
        return NULL;
    d.start_index_map = d.collapsed_slice_dims = (lb_axes){1, {axis}};
    for (int k = 0; k < rank; k++) {
        d.slice_sizes[k] = a->shape.dim[k];
        if (k != axis)
            d.offset_dims.axis[d.offset_dims.n++] =
                k < axis ? k : k - 1 + batch;
    }
    d.slice_sizes[axis] = lb_min_i64(a->shape.dim[axis], 1);
    return lb_bind(cx, &lb_prim_gather, 2, (lb_array *[]){a, index}, &d);
}

lb_array *lb_embedding(lb_ctx *cx, lb_array *table, lb_array *index)
{
    return lb_take(cx, table, index, 0);
}
