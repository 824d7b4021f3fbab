/* nf4_ref.h - the sixteen levels of nf4; blocks to codes, codes to numbers.
 *
 * Two codes lie in a byte, the first in the high half. Raw pointers only.
 */
#ifndef LB_NF4_REF_H
#define LB_NF4_REF_H

#include "lowbit_ext.h"

/* The quantiles of a normal distribution that bitsandbytes uses, ascending. */
extern const float lb_nf4_levels[16];
/* What eformer's polynomial makes of the codes. */
extern const float lb_nf4_poly[16];

/* Where one code ends and the next begins: fifteen numbers, and a quotient v
 * has the code #{j : v > edge[j]}. All take the nearest level; they differ, by
 * one unit in the last place, in what is just between two of them. */
const float *lb_nf4_edges(lb_compat compat);

/* n numbers of a block to (n + 1) / 2 bytes; returns the absmax to be stored.
 * d: the input's dtype, f32, f16 or bf16, which only the seed asks for. whole:
 * the block is not short. */
float lb_nf4_encode_ref(lb_compat compat, lb_dtype d, const float *x, int64_t n,
                        bool whole, uint8_t *byte);

#endif
