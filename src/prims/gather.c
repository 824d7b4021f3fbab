/* gather.c - gather: windows of the operand, one for each index vector.
 *
 * A small window is moved whole, and a unit is many of them; a large one is
 * cut, and a unit is a piece. Dense operands move as bytes.
 */
#include <math.h>
#include <string.h>

#include "kernels/convert.h"
#include "prims/move_bytes.h"
#include "prims/windows.h"

static bool infer(lb_ctx *cx, lb_call *c)
{
    c->dtype = c->in[0]->dtype;
    return lb_windows_infer(cx, "gather", c->in[0], c->in[1], c->params,
                            &c->shape);
}

typedef struct {
    lb_windows ws;
    int64_t stride[LB_MAX_RANK]; /* of the result */
    lb_array view;               /* a window at the operand's origin */
    bool raw;
    lb_move move, fill;       /* raw */
    lb_tiling tiling;         /* else */
    int64_t pieces, together; /* of a window; windows in a unit */
} job;

static job prepare(const lb_call *c)
{
    enum { BYTES = 32 << 10 }; /* of a unit, about */
    const lb_array *a = c->in[0];
    const size_t size = lb_dtype_size(a->dtype);
    job j = {.ws = lb_windows_make(a, c->in[1], c->params), .view = *a};
    int64_t dst[LB_MAX_RANK], none[LB_MAX_RANK] = {0};
    lb_row_major(&c->shape, j.stride);
    j.view.shape = j.ws.window;
    for (int i = 0; i < j.ws.window.rank; i++) {
        j.view.stride[i] = a->stride[j.ws.offset_in[i]];
        dst[i] = j.stride[j.ws.offset_out[i]];
    }
    j.raw = a->store->data && a->store->elem == a->dtype;
    const int64_t *n = j.ws.window.dim;
    const size_t total = (size_t)lb_shape_size(&c->shape) * size;
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
    const int64_t bytes = lb_shape_size(&j.ws.window) * (int64_t)size;
    j.together = j.pieces > 1 ? 1 : BYTES / lb_max_i64(bytes, 1) + 1;
    return j;
}

static void plan(const lb_call *c, lb_plan *plan)
{
    const job j = prepare(c);
    *plan = (lb_plan){
        .per_thread =
            LB_WINDOWS * sizeof(lb_window) + (j.raw ? 0 : LB_TILE * 8),
        .phases = 1,
        .units = {lb_ceil_div(j.ws.count, j.together) * j.pieces},
        .kernel = j.raw ? "copy bytes" : "copy tiles",
    };
}

/* What stands where a window does not fit. */
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

static void read_tile(const job *j, const lb_work *w, const lb_window *win,
                      int64_t piece, void *tile)
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

static void move_window(const job *j, const lb_work *w, const lb_window *win,
                        int64_t piece, const void *fill, void *tile)
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
    int64_t e = a->offset;
    for (int k = 0; k < j->ws.rank; k++)
        e += win->start[k] * a->stride[k];
    lb_move_run(&j->move, (const char *)a->store->data + (size_t)e * size, to,
                piece, piece + 1);
}

static void eval(const lb_work *w)
{
    const job j = prepare(w->call);
    lb_window *win = w->scratch;
    void *tile = win + LB_WINDOWS;
    uint64_t fill = 0;
    fill_value(w->call->params, w->call->dtype, &fill);
    if (j.pieces > 1) {
        for (int64_t u = w->lo; u < w->hi; u++) {
            lb_windows_look(&j.ws, w->call, j.stride, u / j.pieces, 1, win);
            move_window(&j, w, win, u % j.pieces, &fill, tile);
        }
    } else {
        const int64_t end = lb_min_i64(w->hi * j.together, j.ws.count);
        for (int64_t i = w->lo * j.together, n; i < end; i += n) {
            n = lb_min_i64(end - i, LB_WINDOWS);
            lb_windows_look(&j.ws, w->call, j.stride, i, n, win);
            for (int64_t k = 0; k < n; k++)
                move_window(&j, w, &win[k], 0, &fill, tile);
        }
    }
    lb_move_end();
}

/* The axis along which the call takes whole slices, one for each index, as
 * lb_take does; -1 if it does something else. */
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

const lb_prim lb_prim_gather = {
    .struct_size = sizeof(lb_prim),
    .name = "gather",
    .params_size = sizeof(lb_gather_dims),
    .n_in = 2,
    .infer = infer,
    .move = move,
    .plan = plan,
    .eval = eval,
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

lb_array *lb_take(lb_ctx *cx, lb_array *a, lb_array *index, int axis)
{
    if (!a || !index)
        return lb_bind(cx, &lb_prim_gather, 2, (lb_array *[]){a, index}, NULL);
    const int rank = a->shape.rank, batch = index->shape.rank;
    lb_gather_dims d = {.index_vector_dim = batch};
    if (!lb_axis_fix(cx, "take", axis, rank, &axis)) return NULL;
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
