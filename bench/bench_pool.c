/* bench_pool.c - overhead of a parallel run.
 *
 * Compared with pthreadpool, if it was found at build time:
 *   empty   one unit per thread, each returns at once
 *   meet    one unit per thread, each waits until all threads are in one: the
 *           time until the last thread has started
 * back to back (hot: workers spin), and after a pause of 2 ms. During the
 * pause, workers of pthreadpool either sleep, by its option (asleep), or spin,
 * its default (idle). Prints: name, lowbit, pthreadpool, ratio.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#ifdef HAVE_PTHREADPOOL
#include <pthreadpool.h>
#endif

#include "base/threads.h"
#include "bench.h"

#define PAUSE_US    2000
#define HOT_RUNS    500
#define PAUSED_RUNS 15
#define ROUNDS      15

typedef struct setup {
    int threads;
    int pause_us; /* between runs; 0: hot */
    bool meet;
    bool yield; /* pthreadpool: workers sleep after each run */
    lb_heap *heap;
    atomic_int here;
    int target; /* value of `here` when all have arrived */
} setup;

static void unit(setup *s)
{
    if (!s->meet) return;
    atomic_fetch_add(&s->here, 1);
    /* yields occasionally: there may be fewer CPUs than threads */
    for (int i = 1; atomic_load(&s->here) < s->target; i++)
        if (i % 1024 == 0) sched_yield();
}

typedef void run_once(void *pool, setup *s);

static double measure(setup *s, run_once *run, void *pool)
{
    static double x[HOT_RUNS];
    const int n = s->pause_us ? PAUSED_RUNS : HOT_RUNS;
    for (int i = -20; i < n; i++) {
        if (i >= 0 && s->pause_us) usleep((useconds_t)s->pause_us);
        atomic_store(&s->here, 0);
        s->target = s->threads;
        const double start = bench_now();
        run(pool, s);
        if (i >= 0) x[i] = bench_now() - start;
    }
    return bench_median(x, n);
}

static void our_task(void *arg, int64_t lo, int64_t hi, int thread)
{
    (void)thread;
    for (int64_t u = lo; u < hi; u++)
        unit(arg);
}

static void our_run(void *pool, setup *s)
{
    lb_pool_run(pool, s->threads, our_task, s);
}

/* A new pool for each round: idle workers of one would slow down the other. */
static double our_round(void *arg)
{
    setup *s = arg;
    lb_pool *pool = lb_pool_open(s->heap, s->threads);
    if (!pool) return NAN;
    const double ns = measure(s, our_run, pool);
    lb_pool_close(pool);
    return ns;
}

#ifdef HAVE_PTHREADPOOL
static void their_task(void *arg, size_t u)
{
    (void)u;
    unit(arg);
}

static void their_run(void *pool, setup *s)
{
    pthreadpool_parallelize_1d(pool, their_task, s, (size_t)s->threads,
                               s->yield ? PTHREADPOOL_FLAG_YIELD_WORKERS : 0);
}

static double their_round(void *arg)
{
    setup *s = arg;
    pthreadpool_t pool = pthreadpool_create((size_t)s->threads);
    if (!pool) return NAN;
    const double ns = measure(s, their_run, pool);
    pthreadpool_destroy(pool);
    return ns;
}
#define THEIR_ROUND their_round
#else
#define THEIR_ROUND NULL
#endif

static void compare(lb_heap *heap, int threads, bool meet, const char *when,
                    int pause_us, bool yield)
{
    setup s = {.threads = threads,
               .pause_us = pause_us,
               .meet = meet,
               .yield = yield,
               .heap = heap};
    bench_side sides[] = {{.round = our_round, .arg = &s},
                          {.round = THEIR_ROUND, .arg = &s}};
    bench_alternate(sides, 2, ROUNDS);
    char name[64];
    snprintf(name, sizeof name, "pool %s, %s, %d threads",
             meet ? "meet" : "empty", when, threads);
    printf("%-36s ours %8.0f ns  pthreadpool %8.0f ns  ratio %.2f\n", name,
           sides[0].figure, sides[1].figure, sides[0].figure / sides[1].figure);
    fflush(stdout);
}

int main(void)
{
    lb_heap *heap = lb_heap_open(NULL, 0);
    lb_pool *probe = heap ? lb_pool_open(heap, 0) : NULL;
    if (!probe) return 1;
    const int all = lb_pool_threads(probe);
    lb_pool_close(probe);
    const int counts[] = {2, all};
    for (int i = 0; i < (all > 2 ? 2 : 1); i++) {
        for (int meet = 0; meet < 2; meet++) {
            compare(heap, counts[i], meet, "hot", 0, false);
            compare(heap, counts[i], meet, "asleep", PAUSE_US, true);
            compare(heap, counts[i], meet, "idle", PAUSE_US, false);
        }
    }
    lb_heap_close(heap);
    return 0;
}
