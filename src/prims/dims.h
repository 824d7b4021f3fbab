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

#endif
