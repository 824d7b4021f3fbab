/* reduce_ops.h - what a reduction does to numbers, for each type it computes
 * in.
 *
 * The order in which it does it is reduce.c's.
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

/* The strongest of a level; NULL: not defined for this type. */
const lb_reducer *lb_reducer_for(const lb_cpu *cpu, lb_reduce_op op,
                                 lb_ctype ctype);
/* What an empty reduction gives. */
lb_value lb_reduce_identity(lb_reduce_op op, lb_dtype dtype);

#endif
