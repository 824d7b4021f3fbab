/* threads.h - a pool of worker threads that process numbered units.
 *
 * Independent of arrays. The caller is one of the threads. Which thread runs
 * which unit is unspecified; results must not depend on it.
 */
#ifndef LB_THREADS_H
#define LB_THREADS_H

#include <stdint.h>

#include "memory.h"

typedef struct lb_pool lb_pool;

/* Processes units lo <= u < hi. thread is 0 ... threads - 1; concurrent calls
 * have different thread numbers. */
typedef void lb_task(void *arg, int64_t lo, int64_t hi, int thread);

enum { LB_POOL_MAX = 256 }; /* threads */

/* threads: 0 for all CPUs that the process may use. Workers start with the
 * first run that needs them; if the system refuses some, fewer run. Returns
 * NULL when out of memory. Not thread-safe: one caller at a time. */
lb_pool *lb_pool_open(lb_heap *heap, int threads);
/* Before the first run: use these threads instead of own ones. NULL: no. */
void lb_pool_use(lb_pool *pool, const lb_team *team);
void lb_pool_close(lb_pool *pool); /* accepts NULL */
int lb_pool_threads(const lb_pool *pool);
/* Runs all units in chunks and returns when all are done; their writes are
 * visible to the caller. Exported for liblowbit-io. */
LB_API void lb_pool_run(lb_pool *pool, int64_t units, lb_task *task, void *arg);
/* The same, but workers that sleep (or were not started yet) are not woken for
 * small work: it begins on the calling thread, and they join after 0.1 ms of
 * work in such runs. */
void lb_pool_offer(lb_pool *pool, int64_t units, lb_task *task, void *arg);

#endif
