/* sweep.h - products over all requested combinations. */
#ifndef LB_BENCH_SWEEP_H
#define LB_BENCH_SWEEP_H

#include "bench_options.h"

/* False after a message if something could not be measured. */
bool sweep_run(const bench_options *o);

#endif
