/* toy_formats.h - three external formats for tests of packed formats: blocks,
 * scales along axes, and nested arrays. */
#ifndef LB_TOY_FORMATS_H
#define LB_TOY_FORMATS_H

#include "lowbit_ext.h"

/* 4-bit codes, two in a byte, and a scale per block of the last axis:
 * w = (code - 8) * scale. Parts "codes" (raw) and "scale". */
extern const lb_format toy_block;
/* 8-bit codes and a scale shared along some axes: w = code * scale. */
extern const lb_format toy_scale;
/* w = base + a b with (m,n) base in any format, (m,1,r) a and (1,n,r) b. */
extern const lb_format toy_sum;

/* Quantized from pseudorandom values. block: of toy_block; shared: a bit for
 * each axis along which toy_scale's scale is shared. */
lb_array *toy_block_make(lb_ctx *cx, const lb_shape *shape, int64_t block,
                         uint32_t seed);
lb_array *toy_scale_make(lb_ctx *cx, const lb_shape *shape, unsigned shared,
                         uint32_t seed);
lb_array *toy_sum_make(lb_ctx *cx, lb_array *base, int64_t r, uint32_t seed);

#endif
