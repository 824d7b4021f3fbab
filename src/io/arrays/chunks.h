/* chunks.h - an array of any size, looked at in pieces of a few megabytes. */
#ifndef LB_CHUNKS_H
#define LB_CHUNKS_H

#include "lowbit_io.h"

enum { LB_PIECE = 1 << 18 }; /* elements: two pieces of f32 stay in L2 */

/* The dtype in which numbers of d are what they are: f32 or f64. */
lb_dtype lb_piece_dtype(lb_dtype d);
/* Elements lo <= i < hi of a vector, dense; valid while the open scope is.
 * NULL and an error. */
const void *lb_piece(lb_ctx *cx, lb_array *a, lb_dtype as, int64_t lo,
                     int64_t hi);

#endif
