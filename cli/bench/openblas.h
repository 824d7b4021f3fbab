/* openblas.h - f32 products compared with OpenBLAS. */
#ifndef LB_BENCH_OPENBLAS_H
#define LB_BENCH_OPENBLAS_H

#include "bench_options.h"

/* False after a message if something could not be measured. */
bool openblas_run(const bench_options *o);

#endif
