/* threads.c - the thread pool: one atomic word holds its state, and workers
 * join a run when they are awake.
 *
 * A run is open while units may be left. The caller opens it, takes chunks of
 * units from a shared counter as the workers do, closes it, and waits for the
 * workers that joined (`active` counts them). It never waits for a worker that
 * has not woken up yet, so a small run costs no more than the wake-up call, and
 * a run without workers (none could be started, or after a fork) is serial. The
 * job is written only while `active` is 0 and read only after joining; joining
 * acquires and leaving releases.
 *
 * state:  | epoch 20 | quit 1 | waiting 1 | open 1 | active 9 |
 */
#include "base/threads.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ACTIVE      0x1ffu
#define OPEN        0x200u
#define WAITING     0x400u /* the caller sleeps until active is 0 */
#define QUIT        0x800u
#define EPOCH_SHIFT 12

/* Pauses before sleeping, 40 to 100 us: longer than the gaps between operations
 * of a busy program, and about the cost of a sleep and wake-up. */
#define SPIN 2048
/* Pauses between calls of sched_yield. On a busy machine the thread waited for
 * may be queued behind the waiting one. */
#define SPIN_YIELD 128
/* A chunk is this part of the units left, divided by the number of threads:
 * large chunks first, single units at the end, so that a slow thread causes
 * little delay. */
#define CHUNK_PART 2

/* Waking a worker costs the caller 9 us and takes 24 us (AMD Zen 5, virtual):
 * it has to work for so many ns without help first, of which that is a tenth.
 * It looks at the clock so many times. */
#define WORTH_WAKING 100e3
#define OFFER_STEPS  64
/* Threads of a team are taken to be awake for so many ns after a run: OpenMP's
 * spin for some ms, or sleep at once if told so. */
#define TEAM_AWAKE 1e6

/* The caller and the workers sleep on `state`, distinguished by futex bits. */
#define WAKE_WORKER 1u
#define WAKE_CALLER 2u

typedef struct worker {
    pthread_t id;
    lb_pool *pool;
    int thread;
} worker;

struct lb_pool {
    lb_heap *heap;
    size_t size;
    int threads;
    int started; /* workers running, at most `limit` */
    int limit;
    int spin;
    pid_t pid; /* the workers' process */
    uint32_t epoch;

    double missed;   /* ns that the caller worked while workers slept */
    lb_team team;    /* run is NULL: own workers */
    double team_ran; /* ns: the end of its last run */

    lb_task *task;
    void *arg;
    uint64_t units, parts;

    alignas(64) _Atomic uint32_t state;
    _Atomic int sleepers;
    alignas(64) _Atomic uint64_t next; /* the first unit not taken yet */
    alignas(64) worker workers[];
};

/* The i-th step of spinning. */
static void relax(int i)
{
    if (i % SPIN_YIELD == SPIN_YIELD - 1) sched_yield();
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* yield is a no-op on most cores */
#endif
}

/* Returns when woken, on a signal, or at once if *word is not `expected`. */
static void futex_wait(_Atomic uint32_t *word, uint32_t expected, uint32_t bit)
{
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, NULL, NULL,
            bit);
}

static void futex_wake(_Atomic uint32_t *word, int n, uint32_t bit)
{
    syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, n, NULL, NULL, bit);
}

/* ---- number of threads -------------------------------------------------- */

static bool read_text(const char *path, char *buf, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t n = read(fd, buf, size - 1);
    close(fd);
    buf[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* The CPU quota of the container in CPUs, rounded up; LB_POOL_MAX if there is
 * none. Reads only the root control group that this process sees, where a
 * container finds its own limit. */
static int quota_cpus(void)
{
    char text[64], period_text[64];
    long long quota = -1, period = 0;
    if (read_text("/sys/fs/cgroup/cpu.max", text, sizeof text)) {
        char *end = text; /* "max 100000" or "150000 100000" */
        if (strncmp(text, "max", 3) != 0) {
            quota = strtoll(text, &end, 10);
            period = strtoll(end, NULL, 10);
        }
    } else if (read_text("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", text,
                         sizeof text) &&
               read_text("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period_text,
                         sizeof period_text)) {
        quota = strtoll(text, NULL, 10); /* -1: none */
        period = strtoll(period_text, NULL, 10);
    }
    if (quota <= 0 || period <= 0) return LB_POOL_MAX;
    const long long cpus = (quota - 1) / period + 1;
    return cpus < LB_POOL_MAX ? (int)cpus : LB_POOL_MAX;
}

static int usable_cpus(void)
{
    long n;
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set))
        n = CPU_COUNT(&set);
    else /* more CPUs than cpu_set_t holds */
        n = sysconf(_SC_NPROCESSORS_ONLN);
    const int quota = quota_cpus();
    if (n > quota) n = quota;
    return n > 1 ? (int)n : 1;
}

/* ---- a worker ----------------------------------------------------------- */

/* Takes the next chunk, of at least one unit. */
static bool take(lb_pool *pool, uint64_t *lo, uint64_t *hi)
{
    const uint64_t units = pool->units, parts = pool->parts;
    *lo = atomic_load_explicit(&pool->next, memory_order_relaxed);
    do {
        if (*lo >= units) return false;
        const uint64_t left = units - *lo;
        *hi = *lo + (left > parts ? left / parts : 1);
    } while (!atomic_compare_exchange_weak_explicit(
        &pool->next, lo, *hi, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void take_chunks(lb_pool *pool, int thread)
{
    uint64_t lo, hi;
    while (take(pool, &lo, &hi))
        pool->task(pool->arg, (int64_t)lo, (int64_t)hi, thread);
}

/* True if state s has work for a worker that last joined run `seen`. */
static bool calls(uint32_t s, uint32_t seen)
{
    return (s & QUIT) || ((s & OPEN) && s >> EPOCH_SHIFT != seen);
}

static uint32_t await_call(lb_pool *pool, uint32_t seen)
{
    for (;;) {
        uint32_t s;
        for (int i = 0; i <= pool->spin; i++) {
            s = atomic_load_explicit(&pool->state, memory_order_relaxed);
            if (calls(s, seen)) return s;
            relax(i);
        }
        /* Either the caller sees the sleeper, or the sleeper sees the new
         * state: both are sequentially consistent, see lb_pool_run. */
        atomic_fetch_add(&pool->sleepers, 1);
        s = atomic_load(&pool->state);
        if (!calls(s, seen)) futex_wait(&pool->state, s, WAKE_WORKER);
        atomic_fetch_sub(&pool->sleepers, 1);
    }
}

static bool join(lb_pool *pool, uint32_t s)
{
    const uint32_t epoch = s >> EPOCH_SHIFT;
    while ((s & OPEN) && s >> EPOCH_SHIFT == epoch) {
        if (atomic_compare_exchange_weak_explicit(&pool->state, &s, s + 1,
                                                  memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

static void leave(lb_pool *pool)
{
    const uint32_t s =
        atomic_fetch_sub_explicit(&pool->state, 1, memory_order_release);
    if ((s & ACTIVE) == 1 && (s & WAITING))
        futex_wake(&pool->state, 1, WAKE_CALLER);
}

static void *work(void *arg)
{
    const worker *w = arg;
    lb_pool *pool = w->pool;
    /* A worker misses a run if the epoch has wrapped around to the one it saw
     * last; the others do its share. */
    uint32_t seen = 0;
    for (;;) {
        const uint32_t s = await_call(pool, seen);
        if (s & QUIT) return NULL;
        seen = s >> EPOCH_SHIFT;
        if (!join(pool, s)) continue;
        take_chunks(pool, w->thread);
        leave(pool);
    }
}

/* ---- the caller --------------------------------------------------------- */

lb_pool *lb_pool_open(lb_heap *heap, int threads)
{
    const int cpus = usable_cpus();
    if (threads <= 0) threads = cpus;
    if (threads > LB_POOL_MAX) threads = LB_POOL_MAX;
    size_t size = sizeof(lb_pool) + (size_t)threads * sizeof(worker);
    lb_pool *pool = lb_heap_alloc(heap, size, &size);
    if (!pool) return NULL;
    *pool = (lb_pool){.heap = heap, .size = size, .threads = threads};
    pool->limit = threads - 1;
    /* with fewer CPUs than threads, spinning delays the others */
    pool->spin = threads <= cpus ? SPIN : 0;
    atomic_init(&pool->state, 0);
    atomic_init(&pool->sleepers, 0);
    atomic_init(&pool->next, 0);
    return pool;
}

void lb_pool_use(lb_pool *pool, const lb_team *team)
{
    if (team) pool->team = *team;
}

int lb_pool_threads(const lb_pool *pool)
{
    return pool->threads;
}

/* After a fork the child has the pool but no workers. */
static void forget_if_forked(lb_pool *pool)
{
    const pid_t pid = getpid();
    if (pool->pid == pid) return;
    pool->pid = pid;
    pool->started = 0;
    atomic_store(&pool->sleepers, 0);
}

static void start_workers(lb_pool *pool, int wanted)
{
    forget_if_forked(pool);
    /* Signals go to the program's own threads. */
    sigset_t all, old;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &old)) return;
    while (pool->started < wanted) {
        worker *w = &pool->workers[pool->started];
        *w = (worker){.pool = pool, .thread = pool->started + 1};
        if (pthread_create(&w->id, NULL, work, w)) {
            pool->limit = pool->started; /* refused: do not try again */
            break;
        }
        pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Of a closed run. */
static void await_workers(lb_pool *pool, uint32_t s)
{
    for (int i = 0; i < pool->spin && (s & ACTIVE); i++) {
        relax(i);
        s = atomic_load_explicit(&pool->state, memory_order_acquire);
    }
    if (!(s & ACTIVE)) return;
    s = atomic_fetch_or_explicit(&pool->state, WAITING, memory_order_acquire) |
        WAITING;
    while (s & ACTIVE) {
        futex_wait(&pool->state, s, WAKE_CALLER);
        s = atomic_load_explicit(&pool->state, memory_order_acquire);
    }
}

/* Workers that can have a unit each, beside the caller. */
static int helpers_for(const lb_pool *pool, int64_t units)
{
    return units - 1 < pool->limit ? (int)units - 1 : pool->limit;
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void run_in_team(void *pool, int thread)
{
    take_chunks(pool, thread);
}

void lb_pool_run(lb_pool *pool, int64_t units, lb_task *task, void *arg)
{
    if (units <= 0) return;
    if (units == 1 || pool->limit == 0) {
        task(arg, 0, units, 0);
        return;
    }
    const uint64_t n = (uint64_t)units;
    pool->task = task;
    pool->arg = arg;
    pool->units = n;
    pool->parts = (uint64_t)pool->threads * CHUNK_PART;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);

    const int helpers = helpers_for(pool, units);
    if (pool->team.run) {
        pool->team.run(pool->team.user, helpers + 1, run_in_team, pool);
        pool->team_ran = now_ns();
        return;
    }
    if (pool->started < helpers) start_workers(pool, helpers);

    pool->epoch++;
    atomic_store(&pool->state, pool->epoch << EPOCH_SHIFT | OPEN);
    if (atomic_load(&pool->sleepers) > 0)
        futex_wake(&pool->state, helpers, WAKE_WORKER);

    take_chunks(pool, 0);
    const uint32_t s =
        atomic_fetch_and_explicit(&pool->state, ~OPEN, memory_order_acquire);
    await_workers(pool, s);
}

/* Units of a task from `first` on. */
typedef struct later {
    lb_task *task;
    void *arg;
    int64_t first;
} later;

static void run_later(void *arg, int64_t lo, int64_t hi, int thread)
{
    const later *l = arg;
    l->task(l->arg, l->first + lo, l->first + hi, thread);
}

static bool is_awake(const lb_pool *pool, int64_t units)
{
    if (pool->team.run) return now_ns() - pool->team_ran < TEAM_AWAKE;
    const int asleep =
        atomic_load_explicit(&pool->sleepers, memory_order_relaxed);
    return pool->started - asleep >= helpers_for(pool, units);
}

void lb_pool_offer(lb_pool *pool, int64_t units, lb_task *task, void *arg)
{
    if (units > 1 && is_awake(pool, units)) {
        pool->missed = 0;
        lb_pool_run(pool, units, task, arg);
        return;
    }
    const int64_t step = units / OFFER_STEPS + 1;
    const double from = units > 1 ? now_ns() : 0, before = pool->missed;
    for (int64_t at = 0; at < units;) {
        const int64_t n = units - at < step ? units - at : step;
        task(arg, at, at + n, 0);
        at += n;
        if (units == 1) return;
        pool->missed = before + now_ns() - from;
        if (pool->missed < WORTH_WAKING || at == units) continue;
        pool->missed = 0;
        later rest = {task, arg, at};
        lb_pool_run(pool, units - at, run_later, &rest);
        return;
    }
}

void lb_pool_close(lb_pool *pool)
{
    if (!pool) return;
    if (pool->started) forget_if_forked(pool);
    atomic_store(&pool->state, QUIT);
    futex_wake(&pool->state, LB_POOL_MAX, WAKE_WORKER);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i].id, NULL);
    lb_heap_free(pool->heap, pool, pool->size);
}
