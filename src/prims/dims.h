/* dims.h - some axes of a view, with contiguous axes merged.
 *
 * Most views, of any rank, become one or two long axes. The row-major numbering
 * of the elements does not change.
 */
#ifndef LB_DIMS_H
#define LB_DIMS_H

#include "lowbit_ext.h"

typedef struct lb_dims {
    int n; /* at least 1 after lb_dims_end */
    int64_t dim[LB_MAX_RANK];
    int64_t stride[LB_MAX_RANK];
} lb_dims;

/* Appends an axis, inside the previous ones. */
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

/* To be called after the last axis: adds one of size 1 if there is none. */
static inline void lb_dims_end(lb_dims *d)
{
    if (d->n) return;
    d->n = 1;
    d->dim[0] = 1;
    d->stride[0] = 0;
}

/* Offset of element i of the row-major numbering. */
static inline int64_t lb_dims_offset(const lb_dims *d, int64_t i)
{
    int64_t at = 0;
    for (int k = d->n - 1; k > 0; i /= d->dim[k--])
        at += i % d->dim[k] * d->stride[k];
    return at + i * d->stride[0];
}

/* Distance of adjacent elements in memory. */
static inline int64_t lb_distance(int64_t stride)
{
    return stride == 0 ? INT64_MAX : stride < 0 ? -stride : stride;
}

/* A view of rank 2; at: offset from the first element of a. */
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
