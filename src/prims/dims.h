/* dims.h - some axes of a view, merged where they lie end to end.
 *
 * Most views, whatever their rank, are one or two long axes to those who read
 * them. Row-major numbering of the elements does not change.
 */
#ifndef LB_DIMS_H
#define LB_DIMS_H

#include "lowbit_ext.h"

typedef struct lb_dims {
    int n; /* at least 1, once ended */
    int64_t dim[LB_MAX_RANK];
    int64_t stride[LB_MAX_RANK];
} lb_dims;

/* The next axis, inside those before. */
static inline void lb_dims_add(lb_dims *d, int64_t dim, int64_t stride)
{
    const int last = d->n - 1;
    if (dim == 1) return;
    if (last >= 0 && d->stride[last] == dim * stride) {
        d->dim[last] *= dim;
        d->stride[last] = stride;
        return;
    }
    d->dim[d->n] = dim;
    d->stride[d->n++] = stride;
}

/* After the last: if there was none, one of size 1. */
static inline void lb_dims_end(lb_dims *d)
{
    if (d->n) return;
    d->n = 1;
    d->dim[0] = 1;
    d->stride[0] = 0;
}

/* Where element i of the row-major numbering lies. */
static inline int64_t lb_dims_offset(const lb_dims *d, int64_t i)
{
    int64_t at = 0;
    for (int k = d->n - 1; k > 0; i /= d->dim[k--])
        at += i % d->dim[k] * d->stride[k];
    return at + i * d->stride[0];
}

/* How near neighbours are in memory. */
static inline int64_t lb_distance(int64_t stride)
{
    return stride == 0 ? INT64_MAX : stride < 0 ? -stride : stride;
}

/* A view of rank 2 at an element of a, counted from its first. */
static inline lb_array lb_plane(const lb_array *a, int64_t at, int64_t rows,
                                int64_t row_stride, int64_t n, int64_t stride)
{
    lb_array v = *a;
    v.shape = (lb_shape){2, {rows, n}};
    v.stride[0] = row_stride;
    v.stride[1] = stride;
    v.offset += at;
    return v;
}

#endif
