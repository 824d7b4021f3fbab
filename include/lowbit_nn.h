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

/* ---- activations -------------------------------------------------------- */

/* lb_silu(gate) * up in one pass, rounded once to the common dtype; they
 * broadcast. The gate is the operand whose logistic function is computed. */
LB_API lb_array *lb_swiglu(lb_ctx *cx, lb_array *gate, lb_array *up);

#ifdef __cplusplus
}
#endif
#endif
