/* error_table.h - errors of products, next to what is promised. */
#ifndef LB_BENCH_ERROR_TABLE_H
#define LB_BENCH_ERROR_TABLE_H

#include "bench_options.h"

/* False if an error is above its bound, or something could not be measured. */
bool error_table_run(const bench_options *o);

#endif
