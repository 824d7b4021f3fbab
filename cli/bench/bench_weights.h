/* bench_weights.h - the arrays that products are measured with. */
#ifndef LB_BENCH_WEIGHTS_H
#define LB_BENCH_WEIGHTS_H

#include "bench_options.h"

/* Replaces "all" by the formats there are and refuses those there are not. */
bool weights_check(lb_ctx *cx, name_list *formats);

/* "f32", "bf16", "f16": the dtype, for weights that are not quantized;
 * LB_NO_DTYPE for all others. */
lb_dtype weights_dense(const char *format);

/* How a user would quantize such weights: a scale for each output where the
 * format allows it; labelled f32. */
lb_quant_config weights_config(const char *format, bench_orient orient);

/* (n, k) for x @ W^T, (k, n) for x @ W; numbers are N(0, 1). NULL and an error
 * in the context on failure. */
lb_array *weights_make(lb_ctx *cx, const char *format, bench_orient orient,
                       int64_t n, int64_t k, lb_key key);
/* The same numbers in memory of its own. */
lb_array *weights_copy(lb_ctx *cx, lb_array *w, const char *format,
                       bench_orient orient);

/* What is done with them. x is (m, k). */
lb_array *weights_product(lb_ctx *cx, lb_array *x, lb_array *w,
                          bench_orient orient, lb_precision precision);
/* The kernel that it takes. */
bool weights_explain(lb_ctx *cx, lb_array *x, lb_array *w, bench_orient orient,
                     lb_precision precision, char *to, size_t size);

#endif
