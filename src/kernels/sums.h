/* sums.h - statistics of runs of numbers, with the same bits everywhere.
 *
 * f64 throughout, in eight lanes: element i goes to lane i % 8, and the lanes
 * are added as ((0+4)+(2+6)) + ((1+5)+(3+7)). Whoever has longer rows cuts them
 * into chunks of LB_CHUNK elements and joins the chunks in their order.
 */
#ifndef LB_SUMS_H
#define LB_SUMS_H

#include "lowbit_ext.h"

enum { LB_CHUNK = 256 };

/* How many, and their sum; or how many, their mean and the sum of squared
 * distances from it. Zeros: of no element. */
typedef struct lb_total {
    double n, sum;
} lb_total;
typedef struct lb_moments {
    double n, mean, m2;
} lb_moments;

/* Of a chunk, n <= LB_CHUNK: of |x| where that is above least, which below 0
 * leaves out nothing. */
lb_total lb_total_above(const float *x, int64_t n, float least);
lb_total lb_total_join(lb_total a, lb_total b);
/* Twice through the chunk, so that a large mean does not cancel the rest. */
lb_moments lb_moments_of(const float *x, int64_t n);
lb_moments lb_moments_join(lb_moments a, lb_moments b);
/* The largest |x|; 0 for none. Needs no order. */
float lb_largest_abs(const float *x, int64_t n);

#endif
