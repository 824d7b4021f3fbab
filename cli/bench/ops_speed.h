/* ops_speed.h - operations other than products, on packed and dense operands.
 */
#ifndef LB_BENCH_OPS_SPEED_H
#define LB_BENCH_OPS_SPEED_H

#include "bench_options.h"

/* --ops */
bool ops_speed_run(const bench_options *o);

#endif
