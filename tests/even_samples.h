/* even_samples.h - calls whose axes can be cut among ranks: small powers of two
 * times something. */
#ifndef LB_EVEN_SAMPLES_H
#define LB_EVEN_SAMPLES_H

#include "samples.h"

/* Samples of the primitive of that name; none if there are none. */
sample_list even_samples_of(const char *prim);

#endif
