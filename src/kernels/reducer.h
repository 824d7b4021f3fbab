/* reducer.h - the inner loops of a reduction, for a type, an operation and a
 * level.
 *
 * The lanes and their order are those of the header of prims/reduce.c: every
 * level has the same bits.
 */
#ifndef LB_REDUCER_H
#define LB_REDUCER_H

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

#if defined(__x86_64__)
/* By operation; NULL: the level has none. */
extern const lb_reducer *const lb_reducers_f32_avx2[LB_REDUCE_OR + 1],
    *const lb_reducers_f32_avx512[LB_REDUCE_OR + 1];
#endif

#endif
