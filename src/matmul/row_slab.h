/* row_slab.h - rows of a source that come side by side, one after the other.
 *
 * Ways that round x want a few whole rows at a time. Windows of a convolution,
 * and operands that are turned, come across: a few rows of those are short
 * runs, each as dear as a long one. So a slab of more rows is read, turned, and
 * given out in parts.
 */
#ifndef LB_ROW_SLAB_H
#define LB_ROW_SLAB_H

#include "matmul/matrix.h"

typedef struct lb_row_slab {
    const lb_source *x;
    const lb_cpu *cpu;
    int64_t batch, end;        /* rows below `end` may be read */
    float *room;               /* NULL: it is not needed */
    int64_t first, rows, k, n; /* what is in it */
} lb_row_slab;

/* Room for depths up to n; 0: x is read without. */
int64_t lb_row_slab_floats(const lb_source *x, int64_t n);
lb_row_slab lb_row_slab_of(const lb_source *x, const lb_cpu *cpu, int64_t batch,
                           int64_t end, void *room);

/* Rows [i, i + rows), depth [k, k + n). tmp: room for rows * n floats. */
lb_block lb_row_slab_get(lb_row_slab *s, int64_t i, int64_t rows, int64_t k,
                         int64_t n, float *tmp);

#endif
