/* conv_windows.h - the windows of a convolution as a matrix that is not stored.
 *
 * Rows are positions (batch, space...) of the result, the depth is (input
 * feature, kernel space...), both row-major. Blocks are computed on demand.
 */
#ifndef LB_CONV_WINDOWS_H
#define LB_CONV_WINDOWS_H

#include "matmul/conv_dims.h"
#include "matmul/matrix.h"

typedef struct lb_conv_windows {
    lb_source source; /* first member, to be cast back */
    const lb_array *a;
    const lb_conv *v;
    const char *elements; /* of a, if stored in the required type */
} lb_conv_windows;

/* The windows of a in a type. v has at least one spatial axis. */
void lb_conv_windows_make(lb_conv_windows *w, const lb_array *a,
                          const lb_conv *v, lb_ctype type);

#endif
