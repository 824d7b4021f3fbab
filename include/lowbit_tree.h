/* lowbit_tree.h - trees of parameters: arrays by name, in memory.
 *
 *     lb_tree *p = lb_tree_open(cx);
 *     lb_tree_set(p, "up.weight", lb_random_normal(cx, key, LB_F32, shape));
 *     lb_array *y = lb_matmul(cx, x, lb_tree_get(p, "up.weight"));
 *     lb_tree_close(p);
 *
 * Part of lowbit.h, which includes it. Loading, saving and quantizing by
 * patterns of names are in lowbit_io.h.
 */
#ifndef LOWBIT_TREE_H
#define LOWBIT_TREE_H

#include "lowbit_functions.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A list of arrays with unique names, in the order in which they were added. A
 * tree holds references: its arrays do not depend on scopes and stay valid
 * until they are replaced or removed, or the tree is closed. It belongs to its
 * context, is used by one thread at a time, and must be closed before the
 * context. Functions given a NULL tree return NULL, 0 or false. */
typedef struct lb_tree lb_tree;

LB_API lb_tree *lb_tree_open(lb_ctx *cx);
/* The same names and arrays (not copies of them) as a new tree. */
LB_API lb_tree *lb_tree_copy(const lb_tree *t);
LB_API void lb_tree_close(lb_tree *t);
LB_API lb_ctx *lb_tree_context(const lb_tree *t);

/* Adds an array, or replaces the one of this name. a NULL is an error. */
LB_API bool lb_tree_set(lb_tree *t, const char *name, lb_array *a);
/* The array of this name, which the tree holds. lb_tree_get: a missing name is
 * an error; lb_tree_find: it gives NULL. */
LB_API lb_array *lb_tree_get(lb_tree *t, const char *name);
LB_API lb_array *lb_tree_find(const lb_tree *t, const char *name);
LB_API bool lb_tree_has(const lb_tree *t, const char *name);
/* A missing name is an error. */
LB_API bool lb_tree_remove(lb_tree *t, const char *name);
/* Removes all arrays. */
LB_API void lb_tree_clear(lb_tree *t);

/* The number of arrays, and the i-th one and its name; NULL past the end. A
 * name is valid until its array is removed. */
LB_API int lb_tree_count(const lb_tree *t);
LB_API lb_array *lb_tree_at(const lb_tree *t, int i);
LB_API const char *lb_tree_name(const lb_tree *t, int i);
/* Bytes of storage behind all arrays. */
LB_API size_t lb_tree_nbytes(const lb_tree *t);

/* The arrays as a list, for functions that take lists (lb_run, for instance): n
 * must be lb_tree_count(t). They also belong to the open scope then, so that
 * they outlive the tree. lb_tree_replace sets all arrays, in the same order; on
 * error it changes none. */
LB_API bool lb_tree_arrays(lb_tree *t, lb_array **list, int n);
LB_API bool lb_tree_replace(lb_tree *t, lb_array *const *list, int n);

/* ---- quantizing ---------------------------------------------------------- */

/* What became of an array. */
typedef struct lb_tree_change {
    const char *name;   /* valid as the tree's name is */
    const char *before; /* format before ... */
    const char *after;  /* ... and after */
    size_t bytes_before, bytes_after;
    double nrmse;     /* |after - before| / |before|, 2-norms over finite
                       * values; 0 if it was left unchanged; NaN while a
                       * function is being compiled */
    const char *kept; /* why it was left unchanged; NULL: it was quantized */
} lb_tree_change;

/* How to quantize an array; NULL: leave it unchanged. */
typedef const lb_quant_config *(*lb_tree_choose)(const char *name, lb_array *a,
                                                 void *user);
/* Replaces arrays by quantized ones, one at a time, so that no more than one
 * exists in both forms. Gradients pass, as in lb_quantize. report: NULL, or
 * lb_tree_count(t) entries to fill; errors are measured only then. On error,
 * arrays before the one that failed are quantized. */
LB_API bool lb_tree_quantize(lb_tree *t, lb_tree_choose choose, void *user,
                             lb_tree_change *report);
/* The same for the i-th array. config NULL: all defaults. */
LB_API bool lb_tree_quantize_at(lb_tree *t, int i,
                                const lb_quant_config *config,
                                lb_tree_change *report);

/* ---- gradients and training ---------------------------------------------- */

/* A function of parameters by name and of other arrays. params is a copy for
 * this call, which fn may change: quantize it, for instance. */
typedef lb_array *(*lb_tree_fn)(lb_ctx *cx, lb_tree *params,
                                lb_array *const *args, int n, void *user);
/* Returns fn(params, args), a float scalar in the open scope, and replaces the
 * content of grads by the gradients of all float arrays of params, under the
 * same names. Other arrays, and args, are constants. grads may not be params.
 * On error returns NULL and clears grads. See lb_value_and_grad. */
LB_API lb_array *lb_tree_value_and_grad(lb_tree *params, lb_tree_fn fn,
                                        lb_array *const *args, int n,
                                        void *user, lb_tree *grads);

/* An optimizer of the float arrays of params, in their order. */
LB_API lb_optimizer *lb_tree_optimizer_open(lb_tree *params,
                                            const lb_optimizer_config *config);
/* Replaces the float arrays of params, given a gradient for each in grads. On
 * error nothing changes. */
LB_API bool lb_tree_optimizer_step(lb_optimizer *o, lb_tree *params,
                                   lb_tree *grads);
/* Adds the arrays of the optimizer's state to `to`, under the names that
 * lb_optimizer_state gives them; restores the state from such a tree. */
LB_API bool lb_tree_optimizer_save(lb_optimizer *o, lb_tree *to);
LB_API bool lb_tree_optimizer_restore(lb_optimizer *o, lb_tree *from);

#ifdef __cplusplus
}
#endif
#endif
