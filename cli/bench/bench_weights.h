/* bench_weights.h - the weight arrays of the benchmarks. */
#ifndef LB_BENCH_WEIGHTS_H
#define LB_BENCH_WEIGHTS_H

#include "bench_options.h"

/* Replaces "all" by the formats that can be encoded and rejects unknown ones.
 * read_only: others may be named. */
bool weights_check(lb_ctx *cx, name_list *formats, bool read_only);

/* "f32", "bf16", "f16": the dtype, for weights that are not quantized;
 * LB_NO_DTYPE for all others. */
lb_dtype weights_dense(const char *format);

/* The usual config for weights of that format: a scale per output where
 * possible; dtype f32. */
lb_quant_config weights_config(const char *format, bench_orient orient);

/* Shape (n, k) for x @ W^T, (k, n) for x @ W; values are N(0, 1). NULL and an
 * error in the context on failure. */
lb_array *weights_make(lb_ctx *cx, const char *format, bench_orient orient,
                       int64_t n, int64_t k, lb_key key);
/* A copy in memory of its own. */
lb_array *weights_copy(lb_ctx *cx, lb_array *w, const char *format,
                       bench_orient orient);

/* Computes the product. x is (m, k). */
lb_array *weights_product(lb_ctx *cx, lb_array *x, lb_array *w,
                          bench_orient orient, lb_precision precision);
/* The name of the kernel that the product uses. */
bool weights_explain(lb_ctx *cx, lb_array *x, lb_array *w, bench_orient orient,
                     lb_precision precision, char *to, size_t size);

#endif
