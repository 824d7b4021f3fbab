/* conv_phases.h - convolutions of a dilated input, without its zeros. */
#ifndef LB_CONV_PHASES_H
#define LB_CONV_PHASES_H

#include "lowbit_ext.h"

/* conv_general_dilated, `prim`, of in[0] and in[1], computed by phases where
 * that saves zeros, as one call where it does not. For use inside of a scope:
 * what it makes on the way stays there. */
lb_array *lb_conv_by_phases(lb_ctx *cx, const lb_prim *prim, lb_array **in,
                            const lb_conv_dims *dims);

#endif
