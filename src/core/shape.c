/* shape.c - shapes and axes: validation, normalization, text for messages. */
#include <stdio.h>
#include <string.h>

#include "core/core.h"

lb_shape lb_shape_make(int rank, const int64_t *dim)
{
    lb_shape s = {.rank = rank};
    if (rank >= 0 && rank <= LB_MAX_RANK && dim)
        memcpy(s.dim, dim, (size_t)rank * sizeof *dim);
    return s;
}

int64_t lb_shape_size(const lb_shape *s)
{
    int64_t n = 1;
    for (int k = 0; k < s->rank; k++)
        n *= s->dim[k];
    return n;
}

bool lb_shape_equal(const lb_shape *a, const lb_shape *b)
{
    return a->rank == b->rank &&
           !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]);
}

bool lb_shape_check(lb_ctx *cx, const char *who, const lb_shape *s)
{
    if (s->rank < 0 || s->rank > LB_MAX_RANK)
        return lb_fail(cx, LB_E_SHAPE, "%s: rank %d is not in 0..%d", who,
                       s->rank, LB_MAX_RANK);
    int64_t words = 1, dim;
    bool empty = false, fits = true;
    for (int k = 0; k < s->rank; k++) {
        if (s->dim[k] < 0)
            return lb_fail(cx, LB_E_SHAPE,
                           "%s: negative size %lld of axis %d in %s", who,
                           (long long)s->dim[k], k, LB_SHOW(s));
        /* The other axes of an empty array must not overflow either. */
        dim = lb_max_i64(s->dim[k], 1);
        empty |= s->dim[k] == 0;
        fits = fits && lb_mul_i64(words, dim, &words);
    }
    int64_t bytes;
    if (fits && lb_mul_i64(words, 16, &bytes)) return true;
    return lb_fail(cx, LB_E_SIZE, "%s: shape %s has too many elements%s", who,
                   LB_SHOW(s), empty ? " along its other axes" : "");
}

void lb_row_major(const lb_shape *s, int64_t *stride)
{
    int64_t step = 1;
    for (int k = s->rank - 1; k >= 0; k--) {
        stride[k] = step;
        step *= s->dim[k];
    }
}

bool lb_is_row_major(const lb_array *a)
{
    int64_t step = 1;
    for (int k = a->shape.rank - 1; k >= 0; k--) {
        if (a->shape.dim[k] != 1 && a->stride[k] != step) return false;
        step *= a->shape.dim[k];
    }
    return true;
}

lb_text lb_shape_text(const lb_shape *s)
{
    lb_text t = {"("};
    size_t at = 1;
    const int rank = s->rank < 0 || s->rank > LB_MAX_RANK ? 0 : s->rank;
    for (int k = 0; k < rank; k++)
        at += (size_t)snprintf(t.s + at, sizeof t.s - at, "%s%lld",
                               k ? "," : "", (long long)s->dim[k]);
    snprintf(t.s + at, sizeof t.s - at, ")");
    return t;
}

bool lb_axis_fix(lb_ctx *cx, const char *who, int axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank)
        return lb_fail(cx, LB_E_AXIS,
                       "%s: axis %d is out of range for an array of rank %d",
                       who, axis, rank);
    *out = axis < 0 ? axis + rank : axis;
    return true;
}

bool lb_axes_has(const lb_axes *axes, int axis)
{
    for (int i = 0; i < axes->n; i++)
        if (axes->axis[i] == axis) return true;
    return false;
}

bool lb_axes_fix(lb_ctx *cx, const char *who, const lb_axes *in, int rank,
                 lb_axes *out)
{
    lb_axes r = {0};
    if (!in) {
        for (r.n = 0; r.n < rank; r.n++)
            r.axis[r.n] = r.n;
        *out = r;
        return true;
    }
    if (in->n < 0 || in->n > LB_MAX_RANK)
        return lb_fail(cx, LB_E_AXIS, "%s: %d axes for an array of rank %d",
                       who, in->n, rank);
    for (int i = 0; i < in->n; i++) {
        int axis = 0;
        if (!lb_axis_fix(cx, who, in->axis[i], rank, &axis)) return false;
        if (lb_axes_has(&r, axis))
            return lb_fail(cx, LB_E_AXIS, "%s: axis %d is repeated", who, axis);
        r.axis[r.n++] = axis;
    }
    *out = r;
    return true;
}

bool lb_axes_check(lb_ctx *cx, const char *who, const char *what,
                   const lb_axes *axes, int rank)
{
    if (axes->n < 0 || axes->n > LB_MAX_RANK)
        return lb_fail(cx, LB_E_AXIS, "%s: %d %s for an array of rank %d", who,
                       axes->n, what, rank);
    for (int i = 0; i < axes->n; i++) {
        const int axis = axes->axis[i];
        if (axis < 0 || axis >= rank)
            return lb_fail(cx, LB_E_AXIS,
                           "%s: axis %d in %s, but the rank is %d", who, axis,
                           what, rank);
        for (int j = 0; j < i; j++)
            if (axes->axis[j] == axis)
                return lb_fail(cx, LB_E_AXIS, "%s: axis %d is repeated in %s",
                               who, axis, what);
    }
    return true;
}

/* Contiguous old axes form a group; each group is split into new axes. Axes of
 * size 1 have arbitrary strides and are ignored. */
bool lb_restride(const lb_array *a, const lb_shape *shape, int64_t *stride)
{
    int64_t n[LB_MAX_RANK], st[LB_MAX_RANK];
    int rank = 0;
    for (int k = 0; k < a->shape.rank; k++) {
        if (a->shape.dim[k] == 1) continue;
        n[rank] = a->shape.dim[k];
        st[rank++] = a->stride[k];
    }
    lb_row_major(shape, stride);
    if (!lb_shape_size(shape)) return true;
    for (int i = 0, j = 0; i < rank || j < shape->rank;) {
        const int i0 = i, j0 = j;
        int64_t old = i < rank ? n[i++] : 1;
        int64_t new = j < shape->rank ? shape->dim[j++] : 1;
        while (old != new) {
            if (old < new)
                old *= n[i++];
            else
                new *= shape->dim[j++];
        }
        for (int k = i0; k + 1 < i; k++)
            if (st[k] != n[k + 1] * st[k + 1]) return false;
        int64_t step = i > i0 ? st[i - 1] : 1;
        for (int k = j - 1; k >= j0; k--) {
            stride[k] = step;
            step *= shape->dim[k];
        }
    }
    return true;
}
