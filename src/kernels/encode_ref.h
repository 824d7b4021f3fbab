/* encode_ref.h - what the portable encoders share. */
#ifndef LB_ENCODE_REF_H
#define LB_ENCODE_REF_H

#include "kernels/encode.h"

/* v = x / by or x * by, as lb_quotient says. */
void lb_quotients_ref(lb_quotient how, const float *x, int64_t n, float by,
                      float *v);

#endif
