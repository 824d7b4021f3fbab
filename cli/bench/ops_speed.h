/* ops_speed.h - what is no product, on packed operands next to dense ones. */
#ifndef LB_BENCH_OPS_SPEED_H
#define LB_BENCH_OPS_SPEED_H

#include "bench_options.h"

/* --ops */
bool ops_speed_run(const bench_options *o);

#endif
