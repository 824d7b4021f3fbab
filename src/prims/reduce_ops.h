/* reduce_ops.h - what a reduction does to numbers, for each type it computes
 * in.
 *
 * The order in which it does it is reduce.c's.
 */
#ifndef LB_REDUCE_OPS_H
#define LB_REDUCE_OPS_H

#include "lowbit_ext.h"

typedef enum lb_reduce_op {
    LB_REDUCE_SUM,
    LB_REDUCE_PROD,
    LB_REDUCE_MAX,
    LB_REDUCE_MIN,
    LB_REDUCE_AND,
    LB_REDUCE_OR
} lb_reduce_op;

/* Pointers are to elements of one type; strides count them. */
typedef struct lb_reducer {
    size_t size;   /* of an element */
    int64_t lanes; /* 64 bytes of them */
    /* to[r] = the one chunk from[r*stride + i], i < n */
    void (*rows)(const void *from, int64_t stride, int64_t rows, int64_t n,
                 const void *identity, void *to);
    /* Rows of w columns onto the lanes of each column, lanes[l*w + j]; the
     * first row belongs to lane. */
    void (*cols)(const void *from, int64_t stride, int64_t rows, int64_t w,
                 int64_t lane, void *lanes);
    /* to[i] = op(x[i], y[i]); to may be either. */
    void (*join)(const void *x, const void *y, int64_t n, void *to);
} lb_reducer;

typedef union lb_value {
    float f32;
    double f64;
    int64_t i64;
    uint64_t u64;
    uint8_t u8;
} lb_value;

/* NULL: not defined for this type. */
const lb_reducer *lb_reducer_for(lb_reduce_op op, lb_ctype ctype);
/* What an empty reduction gives. */
lb_value lb_reduce_identity(lb_reduce_op op, lb_dtype dtype);

#endif
