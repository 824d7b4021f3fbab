/* cuts.h - sharding rules shared by several primitives; see lb_cuts.
 */
#ifndef LB_CUTS_H
#define LB_CUTS_H

#include "core/core.h"

/* For elementwise primitives: axis k of the result and of all operands of the
 * same rank are cut alike. */
bool lb_cuts_same(const lb_call *c, lb_cuts *to);
/* Gives axis k of operand i and axis `out` of the result (-1: none) the label
 * `label`. */
static inline void lb_cuts_pair(lb_cuts *to, int label, int i, int k, int out)
{
    to->in[i][k] = label;
    if (out >= 0) to->out[out] = label;
}
static inline bool lb_is_16_bits(lb_dtype d)
{
    return d == LB_F16 || d == LB_BF16;
}

#endif
