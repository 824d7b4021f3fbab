/* openblas.h - f32 products next to OpenBLAS. */
#ifndef LB_BENCH_OPENBLAS_H
#define LB_BENCH_OPENBLAS_H

#include "bench_options.h"

/* False if something could not be measured, after saying what. */
bool openblas_run(const bench_options *o);

#endif
