/* label_model.h - rounding to 16-bit dtypes, in double precision. */
#ifndef LABEL_MODEL_H
#define LABEL_MODEL_H

#include <math.h>

#include "lowbit.h"

/* Rounds to 16-bit dtypes, including subnormals, ties to even; other dtypes
 * leave x unchanged. */
static inline double label_rounded(lb_dtype label, double x)
{
    const bool bf16 = label == LB_BF16;
    if ((!bf16 && label != LB_F16) || !isfinite(x) || x == 0) return x;
    const int bits = bf16 ? 8 : 11, least = bf16 ? -133 : -24;
    const double most = bf16 ? 0x1.fep127 : 65504;
    int e;
    (void)frexp(x, &e);
    const int unit = e - bits > least ? e - bits : least;
    const double r = copysign(ldexp(rint(ldexp(x, -unit)), unit), x);
    return fabs(r) > most ? copysign(INFINITY, x) : r;
}

#endif
