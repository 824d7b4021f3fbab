/* float_groups.h - floats of 8 and 4 bits with a scale per group.
 *
 *   codes  u8, E4M3 or E5M2; or two E2M1 in a byte, the first in the low half
 *   scale  one per group; in fp8 it may be absent (1). Any floats:
 *
 *                            group                 scale
 *     fp8_e4m3, fp8_e5m2     tile, row or array    f32, f16, bf16 or e8m0
 *     mxfp8, mxfp4           32 of a row           e8m0
 *     nvfp4                  16 of a row           fp8_e4m3 that has one scale
 *                                                  for the array
 *     fp4_e2m1               as fp8                none, or any
 *
 *   meaning scale    w = code * scale
 *           inverse  w = code / scale
 *
 * Products and quotients are f32.
 */
#ifndef LB_FLOAT_GROUPS_H
#define LB_FLOAT_GROUPS_H

#include "kernels/small_float.h"
#include "lowbit_ext.h"

enum { LB_SMALL_CODES, LB_SMALL_SCALE };

typedef struct lb_small_type {
    lb_small kind;
    int block;    /* elements of a group; 0: fp8, whose groups vary */
    double bound; /* as in lb_format, before rounding to the logical dtype */
} lb_small_type;

/* How the groups of fp8 are shaped. */
lb_scale lb_small_scale(const lb_quant *q);

/* small_float_encode.c */
void lb_small_prepare(const lb_quant *q, lb_store *to);
void lb_small_plan(const lb_call *c, lb_plan *to);
void lb_small_encode_phases(const lb_work *w);
void lb_small_encode_run(const lb_cpu *cpu, const lb_quant *q, lb_store *to,
                         int64_t first, int64_t n, const float *x);
#endif
