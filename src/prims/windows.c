/* windows.c - see windows.h. */
#include "prims/windows.h"

/* ---- validation ---------------------------------------------------------- */

/* Arguments of the checks of axis lists. */
typedef struct {
    lb_ctx *cx;
    const char *who;
    const lb_shape *a, *starts;
    const lb_gather_dims *d;
} window_subject;

static bool sorted(const window_subject *s, const char *what,
                   const lb_axes *axes, int rank)
{
    if (!lb_axes_check(s->cx, s->who, what, axes, rank)) return false;
    for (int i = 1; i < axes->n; i++)
        if (axes->axis[i] < axes->axis[i - 1])
            return lb_fail(s->cx, LB_E_AXIS,
                           "%s: %s is not sorted: %d comes before %d", s->who,
                           what, axes->axis[i - 1], axes->axis[i]);
    return true;
}

static bool disjoint(const window_subject *s, const char *what,
                     const lb_axes *axes, const char *other_what,
                     const lb_axes *other)
{
    for (int i = 0; i < axes->n; i++)
        if (lb_axes_has(other, axes->axis[i]))
            return lb_fail(s->cx, LB_E_AXIS, "%s: axis %d is in %s and in %s",
                           s->who, axes->axis[i], what, other_what);
    return true;
}

static bool check_starts(const window_subject *s)
{
    const lb_gather_dims *d = s->d;
    const int at = d->index_vector_dim, rank = s->starts->rank;
    if (at < 0 || at > rank)
        return lb_fail(s->cx, LB_E_AXIS,
                       "%s: index_vector_dim %d for starts of rank %d", s->who,
                       at, rank);
    const int64_t n = at < rank ? s->starts->dim[at] : 1;
    if (n != d->start_index_map.n)
        return lb_fail(s->cx, LB_E_SHAPE,
                       "%s: index vectors of %lld (starts %s, "
                       "index_vector_dim %d), but %d axes in start_index_map",
                       s->who, (long long)n, LB_SHOW(s->starts), at,
                       d->start_index_map.n);
    return true;
}

static bool check_lists(const window_subject *s)
{
    const lb_gather_dims *d = s->d;
    const int rank = s->a->rank, batching = d->operand_batching_dims.n;
    const lb_axes *own = &d->operand_batching_dims;
    const lb_axes *theirs = &d->start_indices_batching_dims;
    if (!sorted(s, "collapsed_slice_dims", &d->collapsed_slice_dims, rank) ||
        !sorted(s, "operand_batching_dims", own, rank) ||
        !lb_axes_check(s->cx, s->who, "start_index_map", &d->start_index_map,
                       rank) ||
        !lb_axes_check(s->cx, s->who, "start_indices_batching_dims", theirs,
                       s->starts->rank) ||
        !disjoint(s, "collapsed_slice_dims", &d->collapsed_slice_dims,
                  "operand_batching_dims", own) ||
        !disjoint(s, "start_index_map", &d->start_index_map,
                  "operand_batching_dims", own) ||
        !check_starts(s))
        return false;
    if (batching != theirs->n)
        return lb_fail(s->cx, LB_E_AXIS,
                       "%s: %d operand_batching_dims, but %d "
                       "start_indices_batching_dims",
                       s->who, batching, theirs->n);
    if (lb_axes_has(theirs, d->index_vector_dim))
        return lb_fail(s->cx, LB_E_AXIS,
                       "%s: index_vector_dim %d is in "
                       "start_indices_batching_dims",
                       s->who, d->index_vector_dim);
    for (int i = 0; i < batching; i++) {
        const int64_t n = s->a->dim[own->axis[i]];
        const int64_t m = s->starts->dim[theirs->axis[i]];
        if (n != m)
            return lb_fail(s->cx, LB_E_SHAPE,
                           "%s: batching axis %d of %s has size %lld, axis "
                           "%d of starts %s has %lld",
                           s->who, own->axis[i], LB_SHOW(s->a), (long long)n,
                           theirs->axis[i], LB_SHOW(s->starts), (long long)m);
    }
    return true;
}

static bool vanishes(const lb_gather_dims *d, int axis)
{
    return lb_axes_has(&d->collapsed_slice_dims, axis) ||
           lb_axes_has(&d->operand_batching_dims, axis);
}

static bool check_sizes(const window_subject *s)
{
    for (int k = 0; k < s->a->rank; k++) {
        const int64_t n = s->d->slice_sizes[k], dim = s->a->dim[k];
        if (n < 0 || n > dim)
            return lb_fail(s->cx, LB_E_SHAPE,
                           "%s: invalid slice size %lld of axis %d of %s",
                           s->who, (long long)n, k, LB_SHOW(s->a));
        /* A slice of 0 may be taken of an empty axis: it is never read. */
        if (vanishes(s->d, k) && n != 1 && dim > 0)
            return lb_fail(s->cx, LB_E_SHAPE,
                           "%s: axis %d of %s is collapsed or batching, but "
                           "its slice size is %lld",
                           s->who, k, LB_SHOW(s->a), (long long)n);
    }
    return true;
}

static bool check_result(const window_subject *s, const lb_windows *ws,
                         lb_shape *result)
{
    *result = (lb_shape){.rank = ws->n_batch + ws->window.rank};
    for (int i = 0; i < ws->n_batch; i++)
        result->dim[ws->batch_out[i]] = ws->batch[i];
    for (int i = 0; i < ws->window.rank; i++)
        result->dim[ws->offset_out[i]] = ws->window.dim[i];
    if (!lb_shape_check(s->cx, s->who, result)) return false;
    if (s->d->bounds == LB_BOUNDS_FILL || !lb_shape_size(result)) return true;
    for (int k = 0; k < ws->rank; k++)
        if (ws->last[k] < 0)
            return lb_fail(s->cx, LB_E_SHAPE,
                           "%s: axis %d of %s is empty: cannot clamp the "
                           "starts",
                           s->who, k, LB_SHOW(s->a));
    return true;
}

bool lb_windows_infer(lb_ctx *cx, const char *who, const lb_array *a,
                      const lb_array *starts, const lb_gather_dims *d,
                      lb_shape *result)
{
    const window_subject s = {cx, who, &a->shape, &starts->shape, d};
    if (!lb_dtype_is_int(starts->dtype))
        return lb_fail(cx, LB_E_DTYPE, "%s: starts are %s, not integers", who,
                       lb_dtype_name(starts->dtype));
    if (d->bounds != LB_BOUNDS_CLAMP && d->bounds != LB_BOUNDS_FILL)
        return lb_fail(cx, LB_E_ARG,
                       "%s: bounds is %d, which is not a valid value", who,
                       (int)d->bounds);
    if (!check_lists(&s) || !check_sizes(&s)) return false;
    const int gone = d->collapsed_slice_dims.n + d->operand_batching_dims.n;
    if (d->offset_dims.n != a->shape.rank - gone)
        return lb_fail(cx, LB_E_AXIS,
                       "%s: %d offset_dims, but %d of %d axes of the operand "
                       "are neither collapsed nor batching",
                       who, d->offset_dims.n, a->shape.rank - gone,
                       a->shape.rank);
    const int batch =
        starts->shape.rank - (d->index_vector_dim < starts->shape.rank);
    if (batch + d->offset_dims.n > LB_MAX_RANK)
        return lb_fail(cx, LB_E_SHAPE,
                       "%s: %d batch axes and %d offset_dims make rank %d, "
                       "more than %d",
                       who, batch, d->offset_dims.n, batch + d->offset_dims.n,
                       LB_MAX_RANK);
    if (!sorted(&s, "offset_dims", &d->offset_dims, batch + d->offset_dims.n))
        return false;
    const lb_windows ws = lb_windows_make(a, starts, d);
    return check_result(&s, &ws, result);
}

bool lb_windows_fix(lb_ctx *cx, const char *who, const lb_array *a,
                    const lb_array *starts, const lb_gather_dims *dims,
                    lb_gather_dims *out)
{
    const int rank = starts->shape.rank;
    *out = *dims;
    if (out->index_vector_dim < 0) out->index_vector_dim += rank;
    const int batch = rank - (out->index_vector_dim < rank);
    return lb_axes_fix(cx, who, &dims->offset_dims, batch + dims->offset_dims.n,
                       &out->offset_dims) &&
           lb_axes_fix(cx, who, &dims->collapsed_slice_dims, a->shape.rank,
                       &out->collapsed_slice_dims) &&
           lb_axes_fix(cx, who, &dims->operand_batching_dims, a->shape.rank,
                       &out->operand_batching_dims) &&
           lb_axes_fix(cx, who, &dims->start_indices_batching_dims, rank,
                       &out->start_indices_batching_dims) &&
           lb_axes_fix(cx, who, &dims->start_index_map, a->shape.rank,
                       &out->start_index_map);
}

/* ---- the windows -------------------------------------------------------- */

lb_windows lb_windows_make(const lb_array *a, const lb_array *starts,
                           const lb_gather_dims *d)
{
    lb_windows ws = {.dims = d, .rank = a->shape.rank, .count = 1};
    for (int k = 0; k < ws.rank; k++) {
        const bool gone = vanishes(d, k);
        ws.follows[k] = -1;
        ws.last[k] = a->shape.dim[k] - (gone ? 1 : d->slice_sizes[k]);
        if (gone) continue;
        const int i = ws.window.rank++;
        ws.window.dim[i] = d->slice_sizes[k];
        ws.offset_in[i] = k;
        ws.offset_out[i] = d->offset_dims.axis[i];
    }
    for (int k = 0, out = 0; k < starts->shape.rank; k++) {
        if (k == d->index_vector_dim) continue;
        while (lb_axes_has(&d->offset_dims, out))
            out++;
        const int i = ws.n_batch++;
        ws.batch[i] = starts->shape.dim[k];
        ws.batch_out[i] = out++;
        ws.count *= ws.batch[i];
        for (int j = 0; j < d->start_indices_batching_dims.n; j++)
            if (d->start_indices_batching_dims.axis[j] == k)
                ws.follows[d->operand_batching_dims.axis[j]] = i;
    }
    return ws;
}

/* Reads index vectors lo <= w < lo + n. */
static void read_vectors(const lb_call *c, int at, int64_t lo, int64_t n,
                         int64_t length, int64_t *out)
{
    const lb_array *s = c->in[1];
    lb_array v = *s;
    if (!length) return;
    for (int k = 0, j = 0; k < s->shape.rank && at < s->shape.rank; k++) {
        if (k == at) continue;
        v.shape.dim[j] = s->shape.dim[k];
        v.stride[j++] = s->stride[k];
    }
    if (at < s->shape.rank) {
        v.shape.dim[s->shape.rank - 1] = length;
        v.stride[s->shape.rank - 1] = s->stride[at];
    }
    lb_tile_read_flat(c->cpu, &v, lo * length, n * length,
                      lb_ctype_of(s->dtype), out);
    if (!lb_dtype_is_unsigned(s->dtype)) return;
    for (int64_t i = 0; i < n * length; i++)
        if (out[i] < 0) out[i] = INT64_MAX; /* unsigned above 2^63 */
}

/* Clamps start, or returns whether it is inside. */
static bool settle(lb_bounds bounds, int64_t last, int64_t *start)
{
    const bool inside = *start >= 0 && *start <= last;
    if (bounds == LB_BOUNDS_CLAMP)
        *start = lb_max_i64(lb_min_i64(*start, last), 0);
    return inside || bounds == LB_BOUNDS_CLAMP;
}

void lb_windows_look(const lb_windows *ws, const lb_call *c,
                     const int64_t *stride, int64_t lo, int64_t n,
                     lb_window *out)
{
    const lb_axes *map = &ws->dims->start_index_map;
    int64_t vector[LB_WINDOWS * LB_MAX_RANK], index[LB_MAX_RANK];
    read_vectors(c, ws->dims->index_vector_dim, lo, n, map->n, vector);
    int64_t rest = lo, result = 0;
    for (int i = ws->n_batch - 1; i >= 0; i--) {
        index[i] = rest % ws->batch[i];
        rest /= ws->batch[i];
        result += index[i] * stride[ws->batch_out[i]];
    }
    for (int64_t w = 0; w < n; w++) {
        lb_window *o = &out[w];
        o->fits = true;
        o->result = result;
        for (int k = 0; k < ws->rank; k++)
            o->start[k] = ws->follows[k] < 0 ? 0 : index[ws->follows[k]];
        for (int i = 0; i < map->n; i++)
            o->start[map->axis[i]] = vector[w * map->n + i];
        for (int k = 0; k < ws->rank; k++)
            o->fits &= settle(ws->dims->bounds, ws->last[k], &o->start[k]);
        for (int i = ws->n_batch - 1; i >= 0; i--) {
            result += stride[ws->batch_out[i]];
            if (++index[i] < ws->batch[i]) break;
            result -= ws->batch[i] * stride[ws->batch_out[i]];
            index[i] = 0;
        }
    }
}

/* ---- sharding ------------------------------------------------------------ */

int lb_picked_axis(const lb_gather_dims *dims)
{
    if (dims->start_index_map.n != 1) return -1;
    const int axis = dims->start_index_map.axis[0];
    return dims->slice_sizes[axis] == 1 &&
                   lb_axes_has(&dims->collapsed_slice_dims, axis)
               ? axis
               : -1;
}

lb_array *lb_picked_here(lb_ctx *cx, const lb_gather_dims *dims,
                         lb_array *index, int64_t lo, int64_t entries)
{
    const lb_shape scalar = {0};
    lb_array *i = lb_as(cx, index, LB_I64);
    if (i && dims->bounds == LB_BOUNDS_CLAMP)
        i = lb_clamp(cx, lb_full_int(cx, LB_I64, scalar, 0), i,
                     lb_full_int(cx, LB_I64, scalar, entries - 1));
    return lb_sub(cx, i, lb_full_int(cx, LB_I64, scalar, lo));
}
