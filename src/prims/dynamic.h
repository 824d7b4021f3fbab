/* dynamic.h - starts of dynamic slices, and updates that move blocks.
 */
#ifndef LB_DYNAMIC_H
#define LB_DYNAMIC_H

#include "core/core.h"

/* For infer: operands first, first + 1, ... must be integer scalars, one per
 * axis of operand 0. */
bool lb_starts_check(lb_ctx *cx, const lb_call *c, int first);
/* The box [lo, hi) of these sizes in operand 0, its start clamped. */
void lb_starts_box(const lb_call *c, int first, const int64_t *sizes,
                   int64_t *lo, int64_t *hi);

/* update_blocks.c: packed a with packed u at lo, without decoding either.
 * lb_update_join makes a new array. lb_update_blocks overwrites a's blocks,
 * which nobody else can see, and has nothing to undo when it declines. */
lb_verdict lb_update_join(lb_ctx *cx, lb_array *a, lb_array *u,
                          const int64_t *lo, lb_array **out);
bool lb_update_blocks(const lb_call *c, lb_array *a, const lb_array *u,
                      const int64_t *lo);

#endif
