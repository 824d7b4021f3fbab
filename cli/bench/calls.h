/* calls.h - overhead of the smallest products. */
#ifndef LB_BENCH_CALLS_H
#define LB_BENCH_CALLS_H

#include "bench_options.h"

/* False after a message if something could not be measured. */
bool calls_run(const bench_options *o);

#endif
