/* scatter_add.c - scatter_add: the operand, with updates added where gather
 * with the same dims would read.
 *
 * Windows may overlap, so they are added one after the other, in order. Threads
 * share the work by ranges of one axis of the operand: each visits all windows
 * and adds what falls into its range, so that sums do not depend on the number
 * of threads. 16-bit floats are summed in f32 and rounded once at the end.
 */
#include <string.h>

#include "prims/cuts.h"
#include "prims/dims.h"
#include "prims/place.h"
#include "prims/windows.h"

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_array *a = c->in[0], *u = c->in[2];
    lb_shape want;
    if (u->dtype != a->dtype)
        return lb_fail(cx, LB_E_DTYPE,
                       "scatter_add: the updates are %s, but the array is %s",
                       lb_dtype_name(u->dtype), lb_dtype_name(a->dtype));
    if (!lb_windows_infer(cx, "scatter_add", a, c->in[1], c->params, &want))
        return false;
    if (!lb_shape_equal(&u->shape, &want))
        return lb_fail(cx, LB_E_SHAPE,
                       "scatter_add: updates of shape %s, but the windows "
                       "have %s",
                       LB_SHOW(&u->shape), LB_SHOW(&want));
    c->dtype = a->dtype;
    c->shape = a->shape;
    return true;
}

/* Whether sums are in a separate buffer. */
static bool apart(lb_dtype d)
{
    return d == LB_F16 || d == LB_BF16;
}

/* The axis whose ranges are shared among threads: preferably one along which
 * all windows start at the same position, because then all are cut alike. */
static int shared_axis(const lb_call *c, const lb_windows *ws)
{
    const lb_gather_dims *d = c->params;
    int best = -1;
    bool best_free = false;
    for (int k = 0; k < ws->rank; k++) {
        const bool free = !lb_axes_has(&d->start_index_map, k);
        const int64_t n = c->shape.dim[k];
        if (n < 2 || (best_free && !free)) continue;
        if (best >= 0 && best_free == free && n <= c->shape.dim[best]) continue;
        best = k;
        best_free = free;
    }
    return best;
}

static int64_t ranges(const lb_call *c, const lb_windows *ws)
{
    /* Elements; and those of a window in each range: every thread visits every
     * window, and parts of windows that are contiguous may not be. */
    enum { WORTH = 32 << 10, PART = 2048 };
    const int axis = shared_axis(c, ws);
    const int64_t size = lb_shape_size(&c->in[2]->shape);
    if (!size) return 0;
    if (axis < 0 || size < WORTH) return 1;
    const int64_t parts = lb_max_i64(lb_shape_size(&ws->window) / PART, 1);
    return lb_min_i64(lb_min_i64(c->threads, c->shape.dim[axis]), parts);
}

static void plan(const lb_call *c, lb_plan *plan)
{
    const lb_windows ws = lb_windows_make(c->in[0], c->in[1], c->params);
    const int64_t size = lb_shape_size(&c->shape);
    const int64_t tiles = lb_ceil_div(size, LB_RUN);
    lb_place p;
    lb_place_plan(&p, c->in[0], &c->shape, NULL, NULL);
    const int64_t parts = ranges(c, &ws);
    const int64_t copies = apart(c->dtype) ? tiles : p.units;
    /* What one thread will add to, it copies as well, into its own cache. */
    *plan = (lb_plan){
        .shared = apart(c->dtype) ? (size_t)size * sizeof(float) : 0,
        .per_thread = LB_WINDOWS * sizeof(lb_window) + LB_TILE * 8,
        .phases = apart(c->dtype) ? 3 : 2,
        .units = {parts == 1 ? 1 : copies, parts, parts == 1 ? 1 : tiles},
        .kernel = apart(c->dtype) ? "sums in f32" : "sums in place",
    };
}

/* ---- adding ------------------------------------------------------------- */

/* sum[i*step] += tile[i]; sum is of dtype, or f32 for 16-bit floats. */
static void add_run(lb_dtype dtype, void *sum, int64_t step, const void *tile,
                    int64_t n)
{
    const lb_ctype c = lb_ctype_of(dtype);
    if (c == LB_C_F32) {
        for (int64_t i = 0; i < n; i++)
            ((float *)sum)[i * step] += ((const float *)tile)[i];
    } else if (c == LB_C_F64) {
        for (int64_t i = 0; i < n; i++)
            ((double *)sum)[i * step] += ((const double *)tile)[i];
    } else if (c == LB_C_BOOL) {
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)sum)[i * step] |= ((const uint8_t *)tile)[i];
    } else { /* i64 and u64: sums wrap, and low bits depend only on low bits */
        const uint64_t *t = tile;
        for (int64_t i = 0; i < n; i++) {
            switch (lb_dtype_size(dtype)) {
            case 1:
                ((uint8_t *)sum)[i * step] += (uint8_t)t[i];
                break;
            case 2:
                ((uint16_t *)sum)[i * step] += (uint16_t)t[i];
                break;
            case 4:
                ((uint32_t *)sum)[i * step] += (uint32_t)t[i];
                break;
            default:
                ((uint64_t *)sum)[i * step] += t[i];
            }
        }
    }
}

typedef struct {
    const lb_work *w;
    lb_windows ws;
    char *sums; /* elements of elem bytes, in the result's order */
    size_t elem;
    int64_t in[LB_MAX_RANK];     /* strides of the sums along offset axes */
    int64_t stride[LB_MAX_RANK]; /* strides of the sums along all axes */
    int axis;                    /* this thread's range along it is [lo, hi) */
    int64_t lo, hi;
    lb_array view; /* a window of the updates, at their origin */
    bool flat;     /* windows are contiguous in the updates */
    bool beside;   /* or elements of adjacent windows are closer together than
                    * those of one window, and a window's offset depends only on
                    * its number */
} scatter_job;

/* Windows cover whole axes of the operand, so that pieces of different windows
 * are separate, and are interleaved in the updates. */
static bool lies_beside(const lb_windows *ws, const lb_array *u)
{
    if (!ws->n_batch) return false;
    const int64_t between =
        lb_distance(u->stride[ws->batch_out[ws->n_batch - 1]]);
    for (int i = 0; i < ws->window.rank; i++) {
        if (ws->last[ws->offset_in[i]] != 0) return false;
        if (ws->window.dim[i] > 1 &&
            lb_distance(u->stride[ws->offset_out[i]]) <= between)
            return false;
    }
    return ws->window.rank > 0;
}

static scatter_job prepare(const lb_work *w)
{
    const lb_call *c = w->call;
    const lb_array *u = c->in[2];
    scatter_job j = {
        .w = w,
        .ws = lb_windows_make(c->in[0], c->in[1], c->params),
        .sums = apart(c->dtype) ? w->shared : w->out->store->data,
        .elem = apart(c->dtype) ? sizeof(float) : lb_dtype_size(c->dtype),
        .view = *u,
    };
    lb_row_major(&c->shape, j.stride);
    j.axis = shared_axis(c, &j.ws);
    j.view.shape = j.ws.window;
    j.flat = lb_shape_size(&j.ws.window) * LB_WINDOWS <= LB_RUN;
    for (int i = 0; i < j.ws.window.rank; i++) {
        j.view.stride[i] = u->stride[j.ws.offset_out[i]];
        j.in[i] = j.stride[j.ws.offset_in[i]];
        j.flat = j.flat && j.ws.offset_out[i] >= j.ws.n_batch;
    }
    j.beside = !j.flat && lies_beside(&j.ws, u);
    return j;
}

/* Adds the box [lo, lo + n) of a window from a tile with these strides. */
static void add_box(const scatter_job *j, const lb_window *win,
                    const int64_t *lo, const int64_t *n, const char *tile,
                    const int64_t *step)
{
    const lb_dtype dtype = j->w->call->dtype;
    const size_t size = lb_ctype_size(lb_ctype_of(dtype));
    const int last = j->ws.window.rank - 1;
    int64_t at = 0, from = 0, i[LB_MAX_RANK] = {0};
    for (int k = 0; k < j->ws.rank; k++)
        at += win->start[k] * j->stride[k];
    for (int k = 0; k <= last; k++)
        at += lo[k] * j->in[k];
    for (;;) {
        add_run(dtype, j->sums + (size_t)at * j->elem,
                last < 0 ? 1 : j->in[last], tile + (size_t)from * size,
                last < 0 ? 1 : n[last]);
        int k = last - 1;
        for (; k >= 0; k--) {
            at += j->in[k];
            from += step[k];
            if (++i[k] < n[k]) break;
            at -= n[k] * j->in[k];
            from -= n[k] * step[k];
            i[k] = 0;
        }
        if (k < 0) return;
    }
}

/* Clips a window to this thread's range; false if nothing remains. */
static bool limit(const scatter_job *j, const lb_window *win, int64_t *lo,
                  int64_t *n)
{
    if (!win->fits) return false; /* its start is arbitrary */
    const int64_t start = j->axis < 0 ? 0 : win->start[j->axis];
    bool offset = j->axis < 0;
    for (int i = 0; i < j->ws.window.rank; i++) {
        lo[i] = 0;
        n[i] = j->ws.window.dim[i];
        if (j->ws.offset_in[i] != j->axis) continue;
        offset = true;
        lo[i] = lb_max_i64(j->lo - start, 0);
        n[i] = lb_min_i64(j->hi - start, n[i]) - lo[i];
        if (n[i] <= 0) return false;
    }
    return offset || (start >= j->lo && start < j->hi);
}

/* Adds one window, in as many tiles as necessary. */
static void add_window(const scatter_job *j, const lb_window *win,
                       const int64_t *lo, const int64_t *n, void *tile)
{
    const lb_cpu *cpu = j->w->call->cpu;
    const lb_ctype c = lb_ctype_of(j->w->call->dtype);
    lb_array v = j->view;
    v.offset += win->result;
    lb_shape box = lb_shape_make(v.shape.rank, n);
    const lb_array *in = &v;
    const lb_tiling t = lb_tiling_for(&box, &in, 1);
    for (int64_t u = 0; u < t.tiles; u++) {
        int64_t at[LB_MAX_RANK], m[LB_MAX_RANK], step[LB_MAX_RANK];
        lb_tiling_box(&t, u, at, m);
        for (int k = 0; k < box.rank; k++)
            at[k] += lo[k];
        const lb_shape got = lb_shape_make(box.rank, m);
        lb_row_major(&got, step);
        add_box(j, win, at, m, lb_tile_peek(cpu, &v, at, m, c, tile), step);
    }
}

/* Small windows: reads the updates of many at once. */
static void add_flat(const scatter_job *j, const lb_window *win, int64_t first,
                     int64_t count, void *tile)
{
    const lb_call *c = j->w->call;
    const lb_ctype ctype = lb_ctype_of(c->dtype);
    const int64_t size = lb_shape_size(&j->ws.window);
    int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK], step[LB_MAX_RANK];
    lb_row_major(&j->ws.window, step);
    lb_tile_read_flat(c->cpu, c->in[2], first * size, count * size, ctype,
                      tile);
    for (int64_t w = 0; w < count; w++) {
        if (!limit(j, &win[w], lo, n)) continue;
        int64_t from = w * size;
        for (int k = 0; k < j->ws.window.rank; k++)
            from += lo[k] * step[k];
        add_box(j, &win[w], lo, n,
                (char *)tile + (size_t)from * lb_ctype_size(ctype), step);
    }
}

/* Interleaved windows: reads pieces of all of them together. */
static void add_beside(const scatter_job *j, const lb_window *win,
                       int64_t count, void *tile)
{
    const lb_cpu *cpu = j->w->call->cpu;
    const lb_ctype c = lb_ctype_of(j->w->call->dtype);
    const int rank = j->ws.window.rank;
    int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK], step[LB_MAX_RANK];
    bool in[LB_WINDOWS], any = false;
    for (int64_t w = 0; w < count; w++) { /* lo and n are the same for all */
        int64_t first[LB_MAX_RANK], m[LB_MAX_RANK];
        in[w] = limit(j, &win[w], first, m);
        if (!in[w]) continue;
        memcpy(lo, first, sizeof lo);
        memcpy(n, m, sizeof n);
        any = true;
    }
    if (!any) return;
    lb_array v = j->view;
    v.offset += win[0].result;
    v.shape.rank = rank + 1;
    v.shape.dim[0] = count;
    v.stride[0] = j->w->call->in[2]->stride[j->ws.batch_out[j->ws.n_batch - 1]];
    for (int k = 0; k < rank; k++) {
        v.shape.dim[k + 1] = n[k];
        v.stride[k + 1] = j->view.stride[k];
        v.offset += lo[k] * j->view.stride[k];
    }
    const lb_array *of = &v;
    const lb_tiling t = lb_tiling_for(&v.shape, &of, 1);
    for (int64_t u = 0; u < t.tiles; u++) {
        int64_t at[LB_MAX_RANK], m[LB_MAX_RANK], size = 1;
        lb_tiling_box(&t, u, at, m);
        lb_tile_read(cpu, &v, at, m, c, tile);
        for (int k = rank - 1; k >= 0; k--) {
            step[k] = size;
            size *= m[k + 1];
            at[k + 1] += lo[k];
        }
        for (int64_t w = 0; w < m[0]; w++)
            if (in[at[0] + w])
                add_box(j, &win[at[0] + w], at + 1, m + 1,
                        (char *)tile + (size_t)(w * size) * lb_ctype_size(c),
                        step);
    }
}

static void add_range(scatter_job *j, int64_t range, int64_t of)
{
    const lb_call *c = j->w->call;
    lb_window *win = j->w->scratch;
    void *tile = win + LB_WINDOWS;
    const int64_t dim = j->axis < 0 ? 1 : c->shape.dim[j->axis];
    /* Divides evenly, without computing range * dim. */
    j->lo = dim / of * range + lb_min_i64(dim % of, range);
    j->hi = dim / of * (range + 1) + lb_min_i64(dim % of, range + 1);
    for (int64_t i = 0, n; i < j->ws.count; i += n) {
        n = lb_min_i64(j->ws.count - i, LB_WINDOWS);
        lb_windows_look(&j->ws, c, c->in[2]->stride, i, n, win);
        if (j->flat) {
            add_flat(j, win, i, n, tile);
            continue;
        }
        if (j->beside) {
            const int64_t row = j->ws.batch[j->ws.n_batch - 1];
            for (int64_t w = 0, m; w < n; w += m) {
                m = lb_min_i64(n - w, row - (i + w) % row);
                add_beside(j, win + w, m, tile);
            }
            continue;
        }
        for (int64_t w = 0; w < n; w++) {
            int64_t lo[LB_MAX_RANK], m[LB_MAX_RANK];
            if (limit(j, &win[w], lo, m)) add_window(j, &win[w], lo, m, tile);
        }
    }
}

/* ---- phases ------------------------------------------------------------- */

static void eval(const lb_work *w)
{
    const lb_call *c = w->call;
    if (w->phase == 1) {
        scatter_job j = prepare(w);
        for (int64_t u = w->lo; u < w->hi; u++)
            add_range(&j, u, w->plan->units[1]);
        return;
    }
    const bool one = w->plan->units[1] == 1; /* unit, for all copies */
    if (!apart(c->dtype)) {
        lb_place p;
        lb_place_plan(&p, c->in[0], &c->shape, NULL, NULL);
        lb_place_run(&p, w, one ? 0 : w->lo, one ? p.units : w->hi);
        return;
    }
    const int64_t size = lb_shape_size(&c->shape);
    const int64_t end = one ? lb_ceil_div(size, LB_RUN) : w->hi;
    for (int64_t u = one ? 0 : w->lo; u < end; u++) {
        const int64_t first = u * LB_RUN;
        const int64_t n = lb_min_i64(LB_RUN, size - first);
        float *sums = (float *)w->shared + first;
        if (w->phase == 0)
            lb_tile_read_flat(c->cpu, c->in[0], first, n, LB_C_F32, sums);
        else
            lb_tile_write_flat(c->cpu, w->out, first, n, LB_C_F32, sums);
    }
}

/* The gradient of a skipped update is zero. */
static lb_array *vjp(lb_ctx *cx, const lb_call *c, int operand, lb_array *out,
                     lb_array *dout)
{
    lb_gather_dims d = *(const lb_gather_dims *)c->params;
    (void)out;
    d.has_fill = true;
    d.fill = 0;
    return operand ? lb_gather(cx, dout, c->in[1], &d) : dout;
}

static lb_array *share(lb_ctx *cx, const lb_share *p)
{
    const lb_call *c = p->whole;
    const lb_shape *all = &c->in[0]->shape, *here = &p->in[0]->shape;
    lb_gather_dims d = *(const lb_gather_dims *)c->params;
    lb_array *in[3] = {p->in[0], p->in[1], p->in[2]};
    const int axis = lb_picked_axis(&d);
    for (int k = 0; k < here->rank; k++)
        if (k != axis && d.slice_sizes[k] == all->dim[k])
            d.slice_sizes[k] = here->dim[k];
    if (axis >= 0 && here->dim[axis] < all->dim[axis]) {
        in[1] = lb_picked_here(cx, &d, in[1], p->lo[0][axis], all->dim[axis]);
        d.bounds = LB_BOUNDS_FILL; /* on other ranks */
    }
    return in[1] ? lb_bind(cx, c->prim, 3, in, &d) : NULL;
}

/* Cuts axes that windows take whole, batching axes, and the axis of picked
 * entries: each rank adds to the entries that it has. */
static bool shard(const lb_call *c, lb_cuts *to)
{
    const lb_gather_dims *d = c->params;
    const lb_windows ws = lb_windows_make(c->in[0], c->in[1], d);
    const int axis = lb_picked_axis(d);
    for (int j = 0; j < ws.window.rank; j++) {
        const int k = ws.offset_in[j];
        if (d->slice_sizes[k] != c->in[0]->shape.dim[k] ||
            lb_axes_has(&d->start_index_map, k))
            continue;
        lb_cuts_pair(to, j + 1, 0, k, k);
        lb_cuts_pair(to, j + 1, 2, ws.offset_out[j], k);
    }
    int label = ws.window.rank + 1;
    for (int k = 0, b = 0; k < c->in[1]->shape.rank; k++) {
        if (k == d->index_vector_dim) continue;
        for (int i = 0; i < ws.rank; i++) {
            if (ws.follows[i] != b) continue;
            lb_cuts_pair(to, label, 0, i, i);
            lb_cuts_pair(to, label, 1, k, i);
            lb_cuts_pair(to, label++, 2, ws.batch_out[b], i);
        }
        b++;
    }
    if (axis >= 0) lb_cuts_pair(to, label, 0, axis, axis);
    to->run = share;
    return true;
}

const lb_prim lb_prim_scatter_add = {
    .struct_size = sizeof(lb_prim),
    .name = "scatter_add",
    .element_ns = 1,
    .params_size = sizeof(lb_gather_dims),
    .params_exact = sizeof(int),
    .n_in = 3,
    .infer = infer,
    .plan = plan,
    .eval = eval,
    .vjp = vjp,
    .shard = shard,
};

lb_array *lb_scatter_add(lb_ctx *cx, lb_array *a, lb_array *starts,
                         lb_array *updates, const lb_gather_dims *dims)
{
    lb_gather_dims d = {.index_vector_dim = 0};
    lb_array *met[2] = {a, updates};
    if (a && starts && dims &&
        !lb_windows_fix(cx, "scatter_add", a, starts, dims, &d))
        return NULL;
    lb_enter(cx);
    lb_array *out =
        lb_meet_dtypes(cx, met, 2)
            ? lb_bind(cx, &lb_prim_scatter_add, 3,
                      (lb_array *[]){met[0], starts, met[1]}, dims ? &d : NULL)
            : NULL;
    return lb_leave_with(cx, out);
}
