/* distance.h - how far one array is from another; see kernels/apart.h. */
#ifndef LB_DISTANCE_H
#define LB_DISTANCE_H

#include "core/core.h"
#include "kernels/apart.h"

enum { LB_DISTANCE_MOST = 1 << 22 }; /* elements */

/* Adds what is between two vectors of float dtypes, of the same length, which
 * is no more than that, in f32 or f64. The same bits for every level and number
 * of threads. For use inside of a scope: what is sharded is gathered there.
 * False on error. */
LB_API bool lb_distance_add(lb_ctx *cx, lb_array *a, lb_array *b, lb_ctype c,
                            lb_apart *to);

#endif
