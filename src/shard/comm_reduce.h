/* comm_reduce.h - what reducing does to two runs of elements.
 *
 * For engines that have no such thing themselves, and for sums in the order of
 * ranks.
 */
#ifndef LB_COMM_REDUCE_H
#define LB_COMM_REDUCE_H

#include "lowbit_mesh.h"

/* to[i] = op(to[i], from[i]) for n elements of f32, f64 or an integer dtype. */
void lb_comm_combine(lb_comm_op op, lb_dtype dtype, int64_t n, const void *from,
                     void *to);

#endif
