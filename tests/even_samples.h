/* even_samples.h - calls whose axes can be split among ranks: their sizes are
 * multiples of small powers of two. */
#ifndef LB_EVEN_SAMPLES_H
#define LB_EVEN_SAMPLES_H

#include "samples.h"

/* Samples of the primitive of that name; none if there are none. */
sample_list even_samples_of(const char *prim);

#endif
