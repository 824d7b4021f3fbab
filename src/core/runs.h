/* runs.h - reads evenly spaced elements of a view's store as a compute type. */
#ifndef LB_RUNS_H
#define LB_RUNS_H

#include "core/core.h"

/* Reads n elements of a's store, first, first + stride, ..., to out[0], out[1],
 * ... of ctype c, rounded to a's logical dtype. Any n; stride may be 0 or
 * negative. */
void lb_run_read(const lb_cpu *cpu, const lb_array *a, int64_t first,
                 int64_t stride, int64_t n, lb_ctype c, void *out);

#endif
