/* sweep.h - products over everything that was asked for. */
#ifndef LB_BENCH_SWEEP_H
#define LB_BENCH_SWEEP_H

#include "bench_options.h"

/* False if something could not be measured, after saying what. */
bool sweep_run(const bench_options *o);

#endif
