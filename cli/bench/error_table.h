/* error_table.h - errors of products, compared with their documented bounds. */
#ifndef LB_BENCH_ERROR_TABLE_H
#define LB_BENCH_ERROR_TABLE_H

#include "bench_options.h"

/* False if an error exceeds its bound, or if something could not be measured.
 */
bool error_table_run(const bench_options *o);

#endif
