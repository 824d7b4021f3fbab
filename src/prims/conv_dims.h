/* conv_dims.h - a convolution's dimension numbers, read and checked. */
#ifndef LB_CONV_DIMS_H
#define LB_CONV_DIMS_H

#include "lowbit_ext.h"

/* One axis of space. Kernel element k at output o reads the input, dilated and
 * padded, at o*stride + k*rhs_dilation - pad_lo (k from the other end where it
 * is reversed); the element x of the input stands at x*lhs_dilation. */
typedef struct lb_conv_space {
    int lhs, rhs, out; /* axes of the arrays */
    int64_t in, kernel, size;
    int64_t stride, pad_lo, pad_hi, lhs_dilation, rhs_dilation;
    bool reversed;
} lb_conv_space;

typedef struct lb_conv {
    int lhs_b, lhs_f, rhs_o, rhs_i, out_b, out_f; /* axes */
    int spaces;
    lb_conv_space space[LB_MAX_SPATIAL];
    int64_t groups;       /* of features or of the batch */
    bool by_batch;        /* of the batch */
    int64_t batch;        /* of the result */
    int64_t in_features;  /* of one group */
    int64_t out_features; /* of one group */
    int64_t positions;    /* in space, of the result */
    int64_t volume;       /* of the kernel */
} lb_conv;

/* Labels, sizes and groups; on failure the context has the sentence. */
bool lb_conv_read(lb_ctx *cx, const lb_shape *lhs, const lb_shape *rhs,
                  const lb_conv_dims *d, lb_conv *out);
/* The shape of the result. */
lb_shape lb_conv_shape(const lb_conv *v);

/* conv_vjp.c: lb_prim.vjp. */
lb_array *lb_conv_vjp(lb_ctx *, const lb_call *, int operand, lb_array *out,
                      lb_array *dout);

#endif
