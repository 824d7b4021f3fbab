/* low_rank.h - a user-defined format: base + A B, an array whose parts are
 * arrays. Products never form the sum. */
#ifndef LOW_RANK_H
#define LOW_RANK_H

#include <lowbit_ext.h>

extern const lb_format low_rank_format;

/* base (M,N) + a (M,R) b (R,N), of base's dtype. All three are f32, f16 or
 * bf16, in any format and view, and stay packed; R is at least 1. The result
 * belongs to the open scope. Gradients flow to all three. */
lb_array *low_rank_make(lb_ctx *cx, lb_array *base, lb_array *a, lb_array *b);

#endif
