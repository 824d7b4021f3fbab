/* context.h - a context of the library, as the user's flags want it. */
#ifndef LB_BENCH_CONTEXT_H
#define LB_BENCH_CONTEXT_H

#include "arguments.h"

/* threads 0: as many as the library takes by itself. NULL after saying why
 * not. */
lb_ctx *context_open(const bench_options *o, int threads);

#endif
