/* threads.h - a pool of worker threads that share out numbered units.
 *
 * Knows nothing of arrays. The caller is one of the threads. Which thread runs
 * which unit is not determined: callers write so that it does not matter.
 */
#ifndef LB_THREADS_H
#define LB_THREADS_H

#include <stdint.h>

#include "memory.h"

typedef struct lb_pool lb_pool;

/* Units lo <= u < hi; thread is 0 .. threads-1, at most one call at a time
 * has the same thread number. */
typedef void lb_task(void *arg, int64_t lo, int64_t hi, int thread);

enum { LB_POOL_MAX = 256 }; /* threads */

/* threads 0: as many as the process may run on. Workers start with the first
 * run that wants them; if the system refuses them, fewer serve. NULL when out
 * of memory. Not thread-safe: a pool serves one caller at a time. */
lb_pool *lb_pool_open(lb_heap *heap, int threads);
void lb_pool_close(lb_pool *pool); /* NULL is fine */
int lb_pool_threads(const lb_pool *pool);
/* Runs all units, in chunks, and returns when the last is done: what they
 * wrote is visible to the caller. liblowbit-io sees it, too. */
LB_API void lb_pool_run(lb_pool *pool, int64_t units, lb_task *task, void *arg);

#endif
