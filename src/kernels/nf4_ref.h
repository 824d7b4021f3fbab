/* nf4_ref.h - the sixteen levels of nf4; blocks to codes, codes to numbers.
 *
 * Two codes lie in a byte, the first in the high half. Raw pointers only.
 */
#ifndef LB_NF4_REF_H
#define LB_NF4_REF_H

#include "kernels/encode.h"
#include "lowbit_ext.h"

/* The quantiles of a normal distribution that bitsandbytes uses, ascending. */
extern const float lb_nf4_levels[16];
/* What eformer's polynomial makes of the codes. */
extern const float lb_nf4_poly[16];

/* Where one code ends and the next begins: fifteen numbers, and a quotient v
 * has the code #{j : v > edge[j]}. All take the nearest level; they differ, by
 * one unit in the last place, in what is just between two of them. */
const float *lb_nf4_edges(lb_compat compat);

/* What the numbers of n blocks are to be divided by, or multiplied with, given
 * their largest |x|, which become the absmax to be stored. d: the input's
 * dtype, f32, f16 or bf16, which only the seed asks for. whole: the blocks are
 * not short. */
lb_quotient lb_nf4_norms(lb_compat compat, lb_dtype d, bool whole, int64_t n,
                         float *absmax, float *by);
/* #{j : v > edge[j]} in (n + 1) / 2 bytes; one `by` for each `block` (even)
 * numbers, of which v is the quotient or product and lies, but for products,
 * between -1 and 1. An odd place gets the code of 0. */
typedef void lb_nf4_encoder(const float *edge, lb_quotient how, const float *x,
                            int64_t n, int64_t block, const float *by,
                            uint8_t *byte);
lb_nf4_encoder *lb_nf4_encoder_for(const lb_cpu *cpu);

extern lb_nf4_encoder lb_nf4_encode_ref;
#if defined(__x86_64__)
extern lb_nf4_encoder lb_nf4_encode_avx2, lb_nf4_encode_avx512;
#elif defined(__aarch64__)
extern lb_nf4_encoder lb_nf4_encode_neon;
#endif

#endif
