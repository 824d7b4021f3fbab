/* magnitude.h - the largest magnitude of a run of floats, which decides by what
 * they are divided before they are rounded to integers. The same bits on every
 * level. */
#ifndef LB_MAGNITUDE_H
#define LB_MAGNITUDE_H

#include <stdint.h>

/* inf or a NaN if a number is not finite. sum: that of all magnitudes. */
float lb_largest_and_sum(int64_t n, const float *x, float *sum);

#endif
