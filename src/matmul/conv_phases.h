/* conv_phases.h - convolution of a dilated input without multiplying zeros. */
#ifndef LB_CONV_PHASES_H
#define LB_CONV_PHASES_H

#include "lowbit_ext.h"

/* conv_general_dilated, `prim`, of in[0] and in[1]: computed by phases if that
 * avoids zeros, otherwise as one call. To be called inside a scope, in which it
 * leaves intermediate arrays. */
lb_array *lb_conv_by_phases(lb_ctx *cx, const lb_prim *prim, lb_array **in,
                            const lb_conv_dims *dims);

#endif
