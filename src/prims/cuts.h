/* cuts.h - rules for cutting calls among ranks that primitives share: see
 * lb_cuts.
 */
#ifndef LB_CUTS_H
#define LB_CUTS_H

#include "core/core.h"

/* Axis k of the result and of each operand of its rank are cut alike: all that
 * is done element by element. */
bool lb_cuts_same(const lb_call *c, lb_cuts *to);
/* Axis k of operand i, and axis `out` of the result (-1: none), share a label
 * of their own: label. */
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
