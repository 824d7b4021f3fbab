/* calls.h - what the smallest products cost. */
#ifndef LB_BENCH_CALLS_H
#define LB_BENCH_CALLS_H

#include "bench_options.h"

/* False if something could not be measured, after saying what. */
bool calls_run(const bench_options *o);

#endif
