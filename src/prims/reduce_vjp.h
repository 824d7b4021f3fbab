/* reduce_vjp.h - gradients of the reductions: lb_prim.vjp of each. */
#ifndef LB_REDUCE_VJP_H
#define LB_REDUCE_VJP_H

#include "lowbit_ext.h"

lb_array *lb_vjp_reduce_sum(lb_ctx *, const lb_call *, int operand,
                            lb_array *out, lb_array *dout);
lb_array *lb_vjp_reduce_prod(lb_ctx *, const lb_call *, int operand,
                             lb_array *out, lb_array *dout);
/* For reduce_max and reduce_min: both compare elements with the result. */
lb_array *lb_vjp_reduce_extreme(lb_ctx *, const lb_call *, int operand,
                                lb_array *out, lb_array *dout);

#endif
