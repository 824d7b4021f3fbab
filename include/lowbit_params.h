/* lowbit_params.h - the params of every primitive, for lb_bind and lb_explain.
 *
 * Plain values without defaults: axes count from 0 to rank - 1. A primitive
 * that is not listed here has no params. Array members beyond the operand's
 * rank are ignored.
 */
#ifndef LOWBIT_PARAMS_H
#define LOWBIT_PARAMS_H

#include "lowbit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- elementwise --------------------------------------------------------- */

/* "convert_element_type" (a) */
typedef struct lb_convert_params {
    lb_dtype dtype;
} lb_convert_params;

/* "bitcast_convert" (a) */
typedef struct lb_bitcast_params {
    lb_dtype dtype;
} lb_bitcast_params;

/* "integer_pow" (x) */
typedef struct lb_integer_pow_params {
    int exponent;
} lb_integer_pow_params;

/* ---- structure ----------------------------------------------------------- */

/* "transpose" (a): axis k of the result is axis perm[k] of a. */
typedef struct lb_transpose_params {
    int perm[LB_MAX_RANK];
} lb_transpose_params;

/* "reshape" (a): of a, or with permute of a transposed by perm. */
typedef struct lb_reshape_params {
    lb_shape shape;
    bool permute;
    int perm[LB_MAX_RANK];
} lb_reshape_params;

/* "broadcast_in_dim" (a): axis k of a becomes axis dims[k] of shape. */
typedef struct lb_broadcast_params {
    lb_shape shape;
    int dims[LB_MAX_RANK];
} lb_broadcast_params;

/* "slice" (a): elements start, start + stride, ... below limit. */
typedef struct lb_slice_params {
    int64_t start[LB_MAX_RANK];
    int64_t limit[LB_MAX_RANK];
    int64_t stride[LB_MAX_RANK];
} lb_slice_params;

/* "reverse" (a) */
typedef struct lb_reverse_params {
    lb_axes axes;
} lb_reverse_params;

/* "concatenate" (a, b, ...) */
typedef struct lb_concatenate_params {
    int axis;
} lb_concatenate_params;

/* "pad" (a, value): value is a scalar. Element i moves to lo + i*(interior+1),
 * if that is inside the result. */
typedef struct lb_pad_params {
    int64_t lo[LB_MAX_RANK];
    int64_t hi[LB_MAX_RANK];
    int64_t interior[LB_MAX_RANK];
} lb_pad_params;

/* "dynamic_slice" (a, start of axis 0, start of axis 1, ...): integer scalars.
 * "dynamic_update_slice" (a, update, start of axis 0, ...) has no params. */
typedef struct lb_dynamic_slice_params {
    int64_t sizes[LB_MAX_RANK];
} lb_dynamic_slice_params;

/* "iota" (): the index along axis. */
typedef struct lb_iota_params {
    lb_shape shape;
    lb_dtype dtype;
    int axis;
} lb_iota_params;

/* "copy" (a) has no params: a, dense and row-major. "gather" (a, starts) and
 * "scatter_add" (a, starts, updates) take lb_gather_dims. */

/* ---- reductions and products --------------------------------------------- */

/* "reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and",
 * "reduce_or" (a) */
typedef struct lb_reduce_params {
    lb_axes axes;
} lb_reduce_params;

/* "argmax", "argmin" (a): dtype of the index. */
typedef struct lb_argminmax_params {
    int axis;
    lb_dtype dtype;
} lb_argminmax_params;

/* "dot_general" (lhs, rhs) takes lb_dot_dims; preferred LB_NO_DTYPE means the
 * promoted dtype. "conv_general_dilated" (lhs, rhs) takes lb_conv_dims. */

/* ---- networks ------------------------------------------------------------ */

/* "rope" (x, positions): positions are a scalar, that of the first row, or one
 * per index of x's axis `axis`. See lb_rope_options; low and high are
 * beta_slow and beta_fast of yarn. Sines and cosines are multiplied by
 * magnitude. inverse: rotates backward. */
typedef struct lb_rope_params {
    double base, factor, low, high, original, magnitude;
    int64_t dims;
    int axis;
    lb_rope_scaling scaling;
    bool interleaved, inverse;
} lb_rope_params;

/* "softmax", "log_softmax" (x) */
typedef struct lb_softmax_params {
    int axis;
} lb_softmax_params;

/* "rms_norm" (x, weight), "layer_norm" (x, weight, bias), along the last axis.
 * Missing operands are omitted; rms_norm has no bias. */
typedef struct lb_norm_params {
    double eps;
    bool weight, bias;
} lb_norm_params;

/* "attention" (q, k, v, valid): see lb_attention_options. valid is an integer
 * scalar or, with batches, one integer for each. */
typedef struct lb_attention_params {
    double scale, soft_cap;
    int64_t window; /* 0: none */
    bool causal, q_positions_first, kv_positions_first;
} lb_attention_params;

/* ---- quantizing ---------------------------------------------------------- */

/* "quantize" (a) takes lb_quant (lowbit_ext.h). */

/* "quantize_scales" (a): arithmetic to reproduce; eformer's is the native
 * one. */
typedef struct lb_quantize_scales_params {
    lb_compat compat;
} lb_quantize_scales_params;

/* ---- random numbers ------------------------------------------------------ */

/* "random_bits", "random_normal" () */
typedef struct lb_random_params {
    lb_key key;
    lb_dtype dtype;
    lb_shape shape;
} lb_random_params;

/* "random_uniform" (): lo <= x < hi. */
typedef struct lb_random_uniform_params {
    lb_random_params of;
    double lo, hi;
} lb_random_uniform_params;

/* "random_permutation" (): of 0 to n-1. */
typedef struct lb_random_permutation_params {
    lb_key key;
    int64_t n;
} lb_random_permutation_params;

#ifdef __cplusplus
}
#endif
#endif
