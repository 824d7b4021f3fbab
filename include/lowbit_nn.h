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

/* ---- caches -------------------------------------------------------------- */

/* *a becomes lb_dynamic_update_slice(cx, *a, update, starts): starts are
 * clamped so that the update fits. The update is converted to *a's dtype;
 * floats into integers are an error. Returns the new *a.
 *
 * If nobody else can see the array (no other reference, no view, not memory of
 * lb_wrap or of a file), only the slice is written, and *a stays the same
 * pointer. Otherwise the array is copied and *a becomes a new one, which takes
 * the old one's place: in the scope that held it or, if no scope does, as a
 * reference that lb_unref releases. An array that belongs to a scope and was
 * also passed to lb_ref has two holders; lb_drop ends the first. With
 * LB_DENSE_LOG, a sentence reports each copy and its reason.
 *
 * A packed array keeps its format if the update is in the same format and
 * replaces whole blocks. Otherwise the result is dense, an event of the dense
 * policy: nothing is quantized here.
 *
 * Below a gradient tape that depends on the array or the update it is copied. A
 * function that is compiled may update its arguments: see lb_run. On failure *a
 * is unchanged. */
LB_API lb_array *lb_update_in_place(lb_ctx *cx, lb_array **a, lb_array *update,
                                    lb_array *const *starts);

#ifdef __cplusplus
}
#endif
#endif
