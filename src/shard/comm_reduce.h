/* comm_reduce.h - elementwise reduction of two runs of elements.
 *
 * For engines without a reduction of their own, and for sums in rank order.
 */
#ifndef LB_COMM_REDUCE_H
#define LB_COMM_REDUCE_H

#include "lowbit_mesh.h"

/* to[i] = op(to[i], from[i]) for n elements of f32, f64 or an integer dtype. */
void lb_comm_combine(lb_comm_op op, lb_dtype dtype, int64_t n, const void *from,
                     void *to);

#endif
