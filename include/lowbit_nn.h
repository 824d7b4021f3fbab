/* lowbit_nn.h - more operations of neural networks: what inference engines
 * need besides lowbit.h.
 *
 * Part of lowbit.h, which includes it. All conventions of that header apply.
 */
/* Before the guard: lowbit.h includes this header after its declarations. */
#include "lowbit.h"

#ifndef LOWBIT_NN_H
#define LOWBIT_NN_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- activations --------------------------------------------------------- */

/* lb_silu(gate) * up in one pass, rounded once to the common dtype; they
 * broadcast. The gate is the operand whose logistic function is computed. */
LB_API lb_array *lb_swiglu(lb_ctx *cx, lb_array *gate, lb_array *up);

/* ---- rotary position embedding ------------------------------------------- */

typedef enum lb_rope_scaling {
    LB_ROPE_NONE = 0,
    LB_ROPE_LINEAR = 1, /* all frequencies divided by factor */
    LB_ROPE_LLAMA3 = 2, /* Llama 3.1: only low frequencies, with a transition */
    LB_ROPE_YARN = 3    /* YaRN: a ramp over the pairs, and a magnitude */
} lb_rope_scaling;

/* Names in config.json are in parentheses. */
typedef struct lb_rope_options {
    size_t struct_size;
    int axis;         /* of x that counts positions (default: -2). 0 is the
                         * default: the first axis is -rank, e.g. -3 of
                         * (positions, heads, size) */
    bool interleaved; /* pairs (2i, 2i+1), as GPT-J, Llama's own code and most
                         * GGUF files; default: (i, i + dims/2), as GPT-NeoX and
                         * Hugging Face's Llama */
    int64_t dims;     /* of the last axis that are rotated, the first ones
                         * (default: all) */
    double base;      /* (rope_theta) default: 10000 */
    int64_t offset;   /* position of the first row, if positions is NULL */
    lb_array *positions; /* integers: one per row, or a scalar, the position of
                          * the first row. Compiled functions take it as an
                          * argument; offset is a constant there */
    lb_rope_scaling scaling; /* (rope_scaling.rope_type) */
    double factor;           /* (factor) default: 1 */
    double low, high; /* llama3: (low_freq_factor, high_freq_factor) default:
                         * 1 and 4. yarn: (beta_slow, beta_fast) 1 and 32 */
    int64_t original; /* (original_max_position_embeddings) default: 8192 */
    double magnitude; /* (attention_factor) of sines and cosines; default: 1,
                         * yarn: 0.1 ln(factor) + 1 */
} lb_rope_options;

/* Rotates pairs of the last axis of x by angles that grow with the position:
 * angle = position * base^(-2i/dims). x is (..., positions, ..., head size),
 * for instance (heads, positions, 128), or (positions, heads, 128) with axis
 * -3.
 * Angles are computed in f64, rotations in f32 (f64 for f64), rounded once.
 * options may be NULL. */
LB_API lb_array *lb_rope(lb_ctx *cx, lb_array *x,
                         const lb_rope_options *options);

/* ---- attention ----------------------------------------------------------- */

/* Query i of n, of which the last is at the last valid key, is at position
 * valid - n + i. */
typedef struct lb_attention_options {
    size_t struct_size;
    bool causal;     /* a query sees the keys up to its own position */
    int64_t window;  /* with causal: only the last `window` of these, its own
                     * among them (default: all) */
    double scale;    /* of q k^T (default: 1/sqrt(size)) */
    double soft_cap; /* scores become soft_cap tanh(score / soft_cap)
                      * (default: they do not). Both must be normal f32 numbers
                      * unless an operand is f64 */
    bool q_positions_first;  /* q and the result are (queries, heads, size), not
                              * (heads, queries, size) */
    bool kv_positions_first; /* k and v are (keys, heads, size), not (heads,
                              * keys, size) */
    lb_array *valid; /* integers: only the first `valid` keys exist, a scalar
                      * or one for each batch (default: all) */
} lb_attention_options;

/* softmax(scale q k^T + mask) v: q (heads, queries, size), k (kv heads, keys,
 * size), v (kv heads, keys, value size), or all with an axis of batches in
 * front. Heads are a multiple of kv heads: each group shares keys and values. k
 * and v may be packed, and of any float dtype; the result has q's dtype. A
 * query that sees no key has a result of zeros, and what it does not see, even
 * a NaN, does not reach its result. options may be NULL.
 *
 * Sums and exponentials are f32 (f64 if an operand is). Memory does not grow
 * with queries times keys, also not for the gradient, which computes the scores
 * again. */
LB_API lb_array *lb_attention(lb_ctx *cx, lb_array *q, lb_array *k, lb_array *v,
                              const lb_attention_options *options);

/* ---- choosing ------------------------------------------------------------ */

/* The k largest elements along the last axis, the largest first, of equal ones
 * the lowest index first; NaN is the largest. x is f32, f16 or bf16. Their
 * indices, i32, go to *indices (may be NULL). Gradients pass the values. The
 * choice reads elements: inside a function that is compiled it is an error. */
LB_API lb_array *lb_top_k(lb_ctx *cx, lb_array *x, int64_t k,
                          lb_array **indices);

typedef struct lb_sample_options {
    size_t struct_size;
    double temperature; /* logits are divided by it. There is no default: 0,
                         * also in a struct of zeros, is greedy: the largest
                         * logit, of equal ones the first */
    int64_t top_k;      /* only the k most likely tokens; 0: all */
    double top_p;       /* only the most likely ones whose probabilities reach
                         * top_p together; 0 and 1: all */
    double min_p;       /* only tokens of at least min_p times the probability
                         * of the most likely one */
} lb_sample_options;

/* A token per row of logits (..., vocabulary), as i32: row i uses number i of
 * key, so use another key for each step (lb_key_fold). Filters apply in the
 * order of the options. options NULL: temperature 1, all tokens. Equal logits
 * give equal tokens on every machine. A NaN, or a row of -inf, is an error.
 * Inside a function that is compiled it is an error. */
LB_API lb_array *lb_sample(lb_ctx *cx, lb_key key, lb_array *logits,
                           const lb_sample_options *options);

/* ---- slices -------------------------------------------------------------- */

/* a[..., start:limit, ...] along one axis: negative indices count from the end,
 * and both are clamped, as in numpy. */
LB_API lb_array *lb_slice_axis(lb_ctx *cx, lb_array *a, int axis, int64_t start,
                               int64_t limit);

/* ---- caches -------------------------------------------------------------- */

/* *a becomes lb_dynamic_update_slice(cx, *a, update, starts): starts are
 * clamped so that the update fits. The update is converted to *a's dtype;
 * floats into integers are an error. Returns the new *a.
 *
 * If the array is not shared (no other reference, no view, not memory of
 * lb_wrap or of a file), only the slice is written, and *a stays the same
 * pointer. Otherwise the array is copied, and *a becomes a new array that
 * replaces the old one: in the scope that held it or, if no scope does, as a
 * reference that lb_unref releases. It always does while a function is being
 * compiled: go on with *a, not with a copy of the old pointer. An array that
 * belongs to a scope and was also passed to lb_ref has two holders; lb_drop
 * ends the first. With LB_DENSE_LOG, each copy and its reason are logged.
 *
 * A packed array keeps its format if the update is in the same format and
 * replaces whole blocks. Otherwise the result is dense, which is subject to
 * the dense policy: nothing is quantized here.
 *
 * Under a gradient tape that depends on the array or the update, it is copied.
 * A compiled function may update its arguments: see lb_run. On failure *a is
 * unchanged. */
LB_API lb_array *lb_update_in_place(lb_ctx *cx, lb_array **a, lb_array *update,
                                    lb_array *const *starts);

#ifdef __cplusplus
}
#endif
#endif
