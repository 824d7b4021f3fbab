/* distance.h - error statistics of two arrays; see kernels/apart.h. */
#ifndef LB_DISTANCE_H
#define LB_DISTANCE_H

#include "core/core.h"
#include "kernels/apart.h"

enum { LB_DISTANCE_MOST = 1 << 22 }; /* maximum number of elements */

/* Adds the error statistics of two float vectors of the same length (at most
 * LB_DISTANCE_MOST) in f32 or f64. Same bits for every level and number of
 * threads. To be used inside a scope, because sharded arrays are gathered.
 * False on error. */
LB_API bool lb_distance_add(lb_ctx *cx, lb_array *a, lb_array *b, lb_ctype c,
                            lb_apart *to);

#endif
