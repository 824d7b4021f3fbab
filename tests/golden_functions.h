/* golden_functions.h - the functions whose gradients are in
 * golden/gradients.txt, as in tools/golden_functions.py for jax. */
#ifndef LB_GOLDEN_FUNCTIONS_H
#define LB_GOLDEN_FUNCTIONS_H

#include "lowbit.h"

typedef struct golden_function {
    const char *name;
    int n; /* of arguments */
    /* Returns a scalar; config is for functions that quantize. */
    lb_array *(*run)(lb_ctx *cx, lb_array *const *a,
                     const lb_quant_config *config);
} golden_function;

extern const golden_function golden_functions[];
extern const int golden_functions_n;

#endif
