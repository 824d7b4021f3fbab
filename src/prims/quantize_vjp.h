/* quantize_vjp.h - the straight-through estimator: lb_prim.vjp of quantize. */
#ifndef LB_QUANTIZE_VJP_H
#define LB_QUANTIZE_VJP_H

#include "lowbit_ext.h"

lb_array *lb_quantize_vjp(lb_ctx *, const lb_call *, int operand, lb_array *out,
                          lb_array *dout);

#endif
