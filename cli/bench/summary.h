/* summary.h - `lowbit bench`: one line for each type. */
#ifndef BENCH_SUMMARY_H
#define BENCH_SUMMARY_H

#include "bench_options.h"

bool summary_run(const bench_options *o);

#endif
