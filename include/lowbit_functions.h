/* lowbit_functions.h - functions of arrays: gradients, training, compiled
 * functions.
 *
 * Part of lowbit.h, which includes it.
 */
/* Before the guard: lowbit.h includes this header, then others that need it. */
#include "lowbit.h"

#ifndef LOWBIT_FUNCTIONS_H
#define LOWBIT_FUNCTIONS_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- gradients ---------------------------------------------------------- */

/* A function of arrays composed of the operations in this header. Its arrays
 * belong to the scope that is open when it is called; it may open others. */
typedef lb_array *(*lb_fn)(lb_ctx *cx, lb_array *const *args, int n,
                           void *user);
/* The same with n_out results, which it writes to out. False: it failed. */
typedef bool (*lb_fn_many)(lb_ctx *cx, lb_array *const *args, int n,
                           lb_array **out, int n_out, void *user);

/* Returns fn(args), which must be a float scalar, and writes the gradients of
 * the first n_grad arguments to grad. These arguments are floats in any format;
 * their gradients are dense, with the same shape and dtype, and zero if the
 * value does not depend on them. Value and gradients belong to the open scope;
 * intermediate arrays are freed. On error, including an operation without a
 * gradient, returns NULL and fills grad with NULLs. Integers, bools and arrays
 * that fn does not receive through args are constants. Calls nest: fn may
 * compute gradients itself. */
LB_API lb_array *lb_value_and_grad(lb_ctx *cx, lb_fn fn, lb_array *const *args,
                                   int n, void *user, lb_array **grad,
                                   int n_grad);
/* a, treated as a constant. */
LB_API lb_array *lb_stop_gradient(lb_ctx *cx, lb_array *a);
/* fn(x), which must have x's shape and a float dtype, with the identity as its
 * derivative: the straight-through estimator for any function (for lb_quantize
 * see lb_straight_through). */
LB_API lb_array *lb_ste(lb_ctx *cx, lb_fn fn, lb_array *x, void *user);

/* The same with an explicit tape. Between lb_tape_open and lb_tape_close, calls
 * on the context that depend on watched arrays are recorded. Tapes close in
 * reverse order, and before their context. */
typedef struct lb_tape lb_tape;
LB_API lb_tape *lb_tape_open(lb_ctx *cx);
/* Marks a, this array only and not other views of it, for gradients from now
 * on. a may be an intermediate result of recorded calls. */
LB_API bool lb_tape_watch(lb_tape *tape, lb_array *a);
/* Gradients of y with respect to `of` (n watched arrays), given the gradient dy
 * of y (NULL: 1, if y is a scalar), in the open scope. Discards the recorded
 * calls and the watched arrays. On error returns false, and NULLs in grad. */
LB_API bool lb_tape_grad(lb_tape *tape, lb_array *y, lb_array *dy,
                         lb_array *const *of, int n, lb_array **grad);
LB_API void lb_tape_close(lb_tape *tape);

/* ---- reductions --------------------------------------------------------- */

/* XLA's reduce: n operands of one shape are reduced together, over axes (NULL:
 * all), by any associative function. body gets 2n arrays of one shape, n
 * accumulators and then n elements, and returns n new accumulators with the
 * dtypes of the old ones. It works on whole slices, so it must be elementwise,
 * and is called about 2 log2(size) times per axis. For argmax with values:
 *
 *     lb_array *keep = lb_ge(cx, args[0], args[2]);
 *     out[0] = lb_select(cx, keep, args[0], args[2]);
 *     out[1] = lb_select(cx, keep, args[1], args[3]);
 *
 * init: n scalars. Each is promoted with its operand; the accumulators have the
 * common dtype, to which every step is rounded. It comes first, once per
 * result, and alone is the result if an axis is empty. Elements are combined in
 * row-major order, in a tree that depends only on the shape, so body need not
 * be commutative. Results have a gradient if body's operations have one. They
 * are n arrays in out, in the open scope; or NULLs, and false, on error.
 * lb_reduce_sum and its relatives are faster, and sum 16-bit floats in f32. */
LB_API bool lb_reduce(lb_ctx *cx, lb_array *const *in, lb_array *const *init,
                      int n, const lb_axes *axes, lb_fn_many body, void *user,
                      lb_array **out);

/* ---- training ----------------------------------------------------------- */

typedef enum lb_method { LB_SGD = 0, LB_ADAM = 1, LB_ADAMW = 2 } lb_method;
typedef enum lb_schedule { LB_CONSTANT = 0, LB_COSINE = 1 } lb_schedule;

typedef struct lb_optimizer_config {
    size_t struct_size;
    lb_method method;
    double rate;     /* 0: 1e-2 for sgd, else 1e-3 */
    double momentum; /* sgd only */
    bool nesterov;
    double beta1, beta2, eps; /* adam; 0: 0.9, 0.999, 1e-8 */
    double decay;             /* of weights; adamw: decoupled */
    double clip_norm; /* limit of the norm of all gradients together; 0: none */
    lb_schedule schedule; /* of the rate; cosine: decays to least * rate over
                           * `steps` steps */
    int64_t warmup; /* steps in which the rate rises, from rate / warmup */
    int64_t steps;
    double least;
    const lb_quant_config *state; /* format of the moments between steps; copied
                                   * except for its strings; NULL: f32. For 8
                                   * bits use {.format = "dynamic8"} */
} lb_optimizer_config;

typedef struct lb_optimizer lb_optimizer;

/* params: n float parameters; only their shapes and dtypes are used here. */
LB_API lb_optimizer *lb_optimizer_open(lb_ctx *cx,
                                       const lb_optimizer_config *config,
                                       lb_array *const *params, int n);
/* Must be called before the context is closed. NULL is allowed. */
LB_API void lb_optimizer_close(lb_optimizer *o);
/* Replaces params with the updated parameters, which belong to the open scope
 * and have the same dtypes. On error nothing changes. */
LB_API bool lb_optimizer_step(lb_optimizer *o, lb_array **params,
                              lb_array *const *grads);
LB_API int64_t lb_optimizer_steps(const lb_optimizer *o); /* completed so far */
/* The rate of a step (counted from 0) for exactly this config: zeros are not
 * replaced by defaults. */
LB_API double lb_schedule_rate(const lb_optimizer_config *config, int64_t step);
/* The arrays of the optimizer state, to be saved in a checkpoint: their number,
 * and each one in the open scope, with its name in name (size bytes; may be
 * NULL). After restoring them in this order training continues with the same
 * bits. */
LB_API int lb_optimizer_count(const lb_optimizer *o);
LB_API lb_array *lb_optimizer_state(lb_optimizer *o, int i, char *name,
                                    size_t size);
LB_API bool lb_optimizer_restore(lb_optimizer *o, lb_array *const *state,
                                 int n);

/* ---- compiled functions ------------------------------------------------- */

typedef struct lb_compile_options {
    size_t struct_size;
    bool check; /* trace on every call and compare: finds functions that depend
                 * on anything but their arguments' signature */
    int cache;  /* programs kept, one per signature (default: 16) */
    int64_t fold_bytes; /* largest result of a call on constants that is
                         * computed while tracing (default: 1 MiB; -1: none) */
} lb_compile_options;

typedef struct lb_compiled lb_compiled;

/* fn as a compiled function; nothing runs yet. The first lb_run with a new
 * signature (shapes, dtypes, formats of the arguments; the context's precision)
 * traces fn: fn runs once on arrays without elements, and its calls become a
 * program. Calls without use and repeated calls are removed, and elementwise
 * operations with their reductions run fused. Results have the same bits as
 * those of fn.
 *
 * Arrays that fn reaches otherwise than through args are constants, held by the
 * program, like the numbers that fn computes with. Reading elements of a traced
 * array (lb_item, lb_read, lb_component) is an error. fn may contain
 * lb_optimizer_step: each run advances the state, and a run that fails changes
 * nothing. Close the compiled function before the optimizer.
 * While a gradient tape is open outside, lb_run calls fn eagerly; gradients
 * inside of fn are compiled. LOWBIT_COMPILE=off in the environment, read by
 * lb_compile, makes every lb_run eager.
 *
 * A compiled function belongs to its context and is used by one thread at a
 * time, as the context itself. options: NULL for the defaults. */
LB_API lb_compiled *lb_compile(lb_ctx *cx, lb_fn fn, void *user,
                               const lb_compile_options *options);
LB_API lb_compiled *lb_compile_many(lb_ctx *cx, lb_fn_many fn, int n_out,
                                    void *user,
                                    const lb_compile_options *options);
/* The result belongs to the open scope; NULL on error.
 *
 * If fn passes an argument to lb_update_in_place and returns the result, the
 * run overwrites the argument's storage, provided that its caller is the only
 * holder; the result is then the same array, which stays in its scope. If not,
 * the result takes the argument's place there. Either way, the caller uses the
 * result from then on. A run that fails may have updated such an argument.
 *
 * These are errors, except where fn runs eagerly: fn does not return an
 * argument that it updates in place; it updates an array that it reaches
 * otherwise than through args; an updated argument is passed twice. */
LB_API lb_array *lb_run(lb_compiled *f, lb_array *const *args, int n);
/* The same for any number of results: n_out arrays in out, or NULLs and false
 * on error. */
LB_API bool lb_run_many(lb_compiled *f, lb_array *const *args, int n,
                        lb_array **out);
/* Frees all programs. Before the context is closed. NULL is fine. */
LB_API void lb_compiled_close(lb_compiled *f);

typedef struct lb_compiled_stats {
    int programs;   /* in the cache */
    int64_t traces; /* times fn was traced */
    int64_t runs;   /* of programs */
    int64_t eager;  /* calls of fn itself */
} lb_compiled_stats;
LB_API lb_compiled_stats lb_compiled_stats_of(const lb_compiled *f);

typedef enum lb_explain_form {
    LB_EXPLAIN_TEXT = 0, /* a line per step: shapes, bytes, operations */
    LB_EXPLAIN_JSON = 1,
    LB_EXPLAIN_DOT = 2 /* a drawing for Graphviz */
} lb_explain_form;
/* The k-th program, the one used last first. The text is valid until the next
 * call for f. NULL on error. */
LB_API const char *lb_compiled_explain(lb_compiled *f, int k,
                                       lb_explain_form form);

#ifdef __cplusplus
}
#endif
#endif
