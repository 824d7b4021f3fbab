/* conv_dims.h - a convolution's dimension numbers, validated and normalized. */
#ifndef LB_CONV_DIMS_H
#define LB_CONV_DIMS_H

#include "lowbit_ext.h"

/* A spatial axis. For output o, kernel element k (counted from the other end if
 * reversed) reads position o*stride + k*rhs_dilation - pad_lo of the dilated,
 * padded input; input element x is at position x*lhs_dilation. */
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
    int64_t groups;       /* feature or batch groups */
    bool by_batch;        /* batch groups */
    int64_t batch;        /* per group */
    int64_t in_features;  /* per group */
    int64_t out_features; /* per group */
    int64_t positions;    /* spatial positions of the result */
    int64_t volume;       /* elements of the kernel's spatial axes */
} lb_conv;

/* Parses labels, sizes and groups; false and an error on failure. */
bool lb_conv_read(lb_ctx *cx, const lb_shape *lhs, const lb_shape *rhs,
                  const lb_conv_dims *d, lb_conv *out);
/* The shape of the result. */
lb_shape lb_conv_shape(const lb_conv *v);

/* conv_vjp.c: lb_prim.vjp. */
lb_array *lb_conv_vjp(lb_ctx *, const lb_call *, int operand, lb_array *out,
                      lb_array *dout);

#endif
