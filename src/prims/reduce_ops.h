/* reduce_ops.h - the operation of a reduction for each compute type.
 *
 * reduce.c determines the order.
 */
#ifndef LB_REDUCE_OPS_H
#define LB_REDUCE_OPS_H

#include "kernels/reducer.h"
#include "lowbit_ext.h"

typedef union lb_value {
    float f32;
    double f64;
    int64_t i64;
    uint64_t u64;
    uint8_t u8;
} lb_value;

/* The function of the highest level; NULL: not defined for this type. */
const lb_reducer *lb_reducer_for(const lb_cpu *cpu, lb_reduce_op op,
                                 lb_ctype ctype);
/* The result of an empty reduction. */
lb_value lb_reduce_identity(lb_reduce_op op, lb_dtype dtype);

#endif
