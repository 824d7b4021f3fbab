/* test_pool.c - the thread pool: every unit runs exactly once, on any thread.
 *
 * Nothing here depends on time or on the number of workers that wake up: the
 * properties hold for every schedule. The thread sanitizer checks for races.
 */
/* ctest: skip-ref never-arm64 */
/* qemu 7.2 fails an assertion of its own when a threaded program forks */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/threads.h"
#include "check.h"

#ifdef __has_feature
#define FEATURE(x) __has_feature(x)
#else
#define FEATURE(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || FEATURE(thread_sanitizer)
#define HAVE_TSAN 1
#endif
#if defined(HAVE_TSAN) || defined(__SANITIZE_ADDRESS__) ||                     \
    FEATURE(address_sanitizer)
#define HAVE_SANITIZER 1
#endif

#define MAX_UNITS 10000
#define MAX_T     300

typedef struct board {
    int threads;
    int64_t units;
    atomic_int inside[MAX_T]; /* calls under way, by thread number */
    atomic_int bad_thread, bad_range, not_exclusive;
    /* Plain memory, so that a unit run twice or a result not yet visible is a
     * data race as well as a wrong count. */
    int done[MAX_UNITS];
    int by[MAX_UNITS];
} board;

static void mark(void *arg, int64_t lo, int64_t hi, int thread)
{
    board *b = arg;
    if (thread < 0 || thread >= b->threads) {
        b->bad_thread++;
        return;
    }
    if (b->inside[thread]++ != 0) b->not_exclusive++;
    if (lo < 0 || lo >= hi || hi > b->units) {
        b->bad_range++;
    } else {
        for (int64_t u = lo; u < hi; u++) {
            b->done[u]++;
            b->by[u] = thread;
        }
    }
    b->inside[thread]--;
}

static void check_run(lb_pool *pool, board *b, int threads, int64_t units,
                      bool offer)
{
    memset(b, 0, sizeof *b);
    b->threads = threads;
    b->units = units;
    if (offer)
        lb_pool_offer(pool, units, mark, b);
    else
        lb_pool_run(pool, units, mark, b);
    int64_t once = 0, in_range = 0;
    for (int64_t u = 0; u < units; u++) {
        once += b->done[u] == 1;
        in_range += b->by[u] >= 0 && b->by[u] < threads;
    }
    CHECK_EQ_I(once, units);
    CHECK_EQ_I(in_range, units);
    CHECK_EQ_I(b->bad_thread, 0);
    CHECK_EQ_I(b->bad_range, 0);
    CHECK_EQ_I(b->not_exclusive, 0);
    if (units < MAX_UNITS) CHECK_EQ_I(b->done[units], 0);
}

static const int thread_counts[] = {1, 2, 3, 7, 16};
static const int64_t unit_counts[] = {0, 1, 2, 3, 100, MAX_UNITS};

static void test_every_unit_once(lb_heap *heap, board *b)
{
    for (int t = 0; t < 5; t++) {
        const int threads = thread_counts[t];
        lb_pool *pool = lb_pool_open(heap, threads);
        CHECK(pool != NULL);
        CHECK_EQ_I(lb_pool_threads(pool), threads);
        for (int round = 0; round < 20; round++)
            for (int u = 0; u < 6; u++)
                check_run(pool, b, threads, unit_counts[u], round % 2);
        lb_pool_close(pool);
    }
}

/* ---- threads of others --------------------------------------------------- */

enum { TEAM = 16 };
typedef struct team_call {
    void (*body)(void *arg, int k);
    void *arg;
    int k;
} team_call;

static void *call_body(void *arg)
{
    const team_call *c = arg;
    c->body(c->arg, c->k);
    return NULL;
}

/* user: how many of the n calls are made at most, as an int. */
static void run_team(void *user, int n, void (*body)(void *arg, int k),
                     void *arg)
{
    pthread_t id[TEAM];
    team_call call[TEAM];
    const int most = *(const int *)user < n ? *(const int *)user : n;
    int started = 1;
    CHECK(n >= 2 && n <= TEAM);
    for (; started < most; started++) {
        call[started] = (team_call){body, arg, started};
        if (pthread_create(&id[started], NULL, call_body, &call[started]))
            break;
    }
    body(arg, 0);
    while (--started > 0)
        pthread_join(id[started], NULL);
}

static void test_team(lb_heap *heap, board *b)
{
    static const int mosts[] = {1, 2, TEAM};
    for (int t = 0; t < 5; t++)
        for (int m = 0; m < 3; m++) {
            int most = mosts[m];
            const lb_team team = {run_team, &most};
            lb_pool *pool = lb_pool_open(heap, thread_counts[t]);
            lb_pool_use(pool, &team);
            for (int round = 0; round < 4; round++)
                for (int u = 0; u < 6; u++)
                    check_run(pool, b, thread_counts[t], unit_counts[u],
                              round % 2);
            lb_pool_close(pool);
        }
    const lb_options none = {.struct_size = sizeof none, .team = &(lb_team){0}};
    char why[128];
    CHECK(!lb_open(&none));
    CHECK_EQ_S(lb_open_why(&none, why, sizeof why), "options.team lacks run");
}

static void test_thread_counts(lb_heap *heap)
{
    lb_pool *pool = lb_pool_open(heap, 0);
    const int all = lb_pool_threads(pool);
    CHECK(all >= 1 && all <= sysconf(_SC_NPROCESSORS_CONF));
    lb_pool_close(pool);

    cpu_set_t old, one;
    CPU_ZERO(&old); /* stays empty with more than 1024 CPUs */
    if (sched_getaffinity(0, sizeof old, &old)) CPU_ZERO(&old);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &old)) CPU_SET(i, &one);
    if (CPU_COUNT(&one) && !sched_setaffinity(0, sizeof one, &one)) {
        pool = lb_pool_open(heap, 0);
        CHECK_EQ_I(lb_pool_threads(pool), 1);
        lb_pool_close(pool);
        CHECK_EQ_I(sched_setaffinity(0, sizeof old, &old), 0);
    }

    pool = lb_pool_open(heap, 100000);
    CHECK(lb_pool_threads(pool) >= 16 && lb_pool_threads(pool) < MAX_T);
    lb_pool_close(pool); /* never ran: no thread was started */
    lb_pool_close(NULL);
}

/* ---- visibility of writes ------------------------------------------------ */

typedef struct pipe_job {
    const int64_t *src;
    int64_t *dst;
    int64_t units;
} pipe_job;

/* dst[u] = src[u] + src[units-1-u], so that runs read what others wrote */
static void fold(void *arg, int64_t lo, int64_t hi, int thread)
{
    const pipe_job *j = arg;
    (void)thread;
    for (int64_t u = lo; u < hi; u++)
        j->dst[u] = j->src[u] + j->src[j->units - 1 - u];
}

/* From x[u] = u, the first fold gives n-1 everywhere, each next doubles it. */
static void test_visibility(lb_heap *heap)
{
    enum { N = 257, ROUNDS = 40 };
    static int64_t x[2][N];
    for (int t = 0; t < 5; t++) {
        lb_pool *pool = lb_pool_open(heap, thread_counts[t]);
        for (int repeat = 0; repeat < 25; repeat++) {
            for (int64_t u = 0; u < N; u++)
                x[0][u] = u;
            for (int r = 0; r < ROUNDS; r++) {
                pipe_job j = {x[r % 2], x[(r + 1) % 2], N};
                lb_pool_run(pool, N, fold, &j);
            }
            int64_t right = 0;
            for (int u = 0; u < N; u++)
                right += x[ROUNDS % 2][u] == (int64_t)(N - 1) << (ROUNDS - 1);
            CHECK_EQ_I(right, N);
        }
        lb_pool_close(pool);
    }
}

static void count_units(void *arg, int64_t lo, int64_t hi, int thread)
{
    int64_t(*sums)[8] = arg; /* a cache line each */
    sums[thread][0] += hi - lo;
}

static int64_t total(int64_t sums[][8], int threads)
{
    int64_t n = 0;
    for (int t = 0; t < threads; t++)
        n += sums[t][0];
    return n;
}

static void test_many_tiny_runs(lb_heap *heap)
{
    for (int threads = 2; threads <= 5; threads++) {
        int64_t sums[8][8] = {{0}}, expected = 0;
        lb_pool *pool = lb_pool_open(heap, threads);
        for (int i = 0; i < 5000; i++) {
            const int64_t units = 2 + i % 5;
            lb_pool_run(pool, units, count_units, sums);
            expected += units;
            if (i % 512 == 0) CHECK_EQ_I(total(sums, threads), expected);
        }
        CHECK_EQ_I(total(sums, threads), expected);
        lb_pool_close(pool);
    }
}

static void test_huge_counts(lb_heap *heap)
{
    int64_t sums[16][8] = {{0}};
    lb_pool *pool = lb_pool_open(heap, 16);
    lb_pool_run(pool, INT64_MAX, count_units, sums);
    CHECK(total(sums, 16) == INT64_MAX);
    lb_pool_run(pool, INT64_MIN, count_units, sums);
    CHECK(total(sums, 16) == INT64_MAX);
    lb_pool_close(pool);
}

static void test_open_close(lb_heap *heap)
{
    for (int i = 0; i < 200; i++) {
        int64_t sums[8][8] = {{0}};
        const int threads = 1 + i % 5;
        lb_pool *pool = lb_pool_open(heap, threads);
        /* 0: closed unused; 1: closed while workers are still starting */
        for (int run = 0; run < i % 3; run++)
            lb_pool_run(pool, 8, count_units, sums);
        CHECK_EQ_I(total(sums, threads), 8 * (i % 3));
        lb_pool_close(pool);
    }
}

/* Both pools' workers should be asleep by then; if not, the checks hold as
 * well. */
static void test_after_sleep(lb_heap *heap)
{
    lb_pool *few = lb_pool_open(heap, 2), *many = lb_pool_open(heap, 7);
    for (int i = 0; i < 5; i++) {
        int64_t a[2][8] = {{0}}, b[7][8] = {{0}};
        lb_pool_run(few, 1000, count_units, a);
        lb_pool_run(many, 1000, count_units, b);
        CHECK_EQ_I(total(a, 2), 1000);
        CHECK_EQ_I(total(b, 7), 1000);
        usleep(30000);
    }
    lb_pool_close(few);
    lb_pool_close(many);
}

/* ---- more than one thread really runs ----------------------------------- */

typedef struct meeting {
    atomic_int here;
    int wanted;
    atomic_int seats[MAX_T]; /* by thread number; all are in at once */
    atomic_int unmasked;
} meeting;

/* Returns only when `wanted` threads are inside at once: hangs (and the test is
 * killed) if wake-ups are lost or workers do not start. */
static void meet(void *arg, int64_t lo, int64_t hi, int thread)
{
    meeting *m = arg;
    (void)lo, (void)hi;
    m->seats[thread]++;
    m->here++;
    while (m->here < m->wanted)
        sched_yield();
}

static void test_all_threads_come(lb_heap *heap)
{
    for (int threads = 2; threads <= 4; threads++) {
        lb_pool *pool = lb_pool_open(heap, threads);
        for (int i = 0; i < 300; i++) {
            meeting m = {.wanted = threads};
            lb_pool_run(pool, threads, meet, &m);
            int taken = 0;
            for (int t = 0; t < threads; t++)
                taken += m.seats[t] == 1;
            CHECK_EQ_I(taken, threads);
            if (i % 100 == 0) usleep(20000);
        }
        lb_pool_close(pool);
    }
}

/* ---- signals and forks --------------------------------------------------- */

static _Atomic(pthread_t) signalled;

static void on_signal(int sig)
{
    (void)sig;
    signalled = pthread_self();
}

static void masked(void *arg, int64_t lo, int64_t hi, int thread)
{
    meet(arg, lo, hi, thread);
    if (thread == 0) return;
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    if (!sigismember(&set, SIGUSR1) || !sigismember(&set, SIGINT))
        ((meeting *)arg)->unmasked++;
}

static void test_signals(lb_heap *heap)
{
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    lb_pool *pool = lb_pool_open(heap, 3);
    meeting m = {.wanted = 3};
    lb_pool_run(pool, 3, masked, &m);
    CHECK_EQ_I(m.unmasked, 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    CHECK_EQ_I(sigismember(&before, SIGUSR1), sigismember(&after, SIGUSR1));

    struct sigaction act = {.sa_handler = on_signal}, old;
    sigaction(SIGUSR1, &act, &old);
    signalled = pthread_self();
    for (int i = 0; i < 20; i++) {
        kill(getpid(), SIGUSR1);
        CHECK(pthread_equal(signalled, pthread_self()));
    }
    sigaction(SIGUSR1, &old, NULL);
    lb_pool_close(pool);
}

/* The child has no workers: it runs alone, starts its own when it needs more
 * than there were, and closes without waiting for those that were not
 * inherited. */
static void test_fork(lb_heap *heap, bool grow)
{
    fflush(NULL);
    lb_pool *pool = lb_pool_open(heap, 3);
    int64_t sums[3][8] = {{0}};
    lb_pool_run(pool, 2, count_units, sums);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int64_t mine[3][8] = {{0}};
        lb_pool_run(pool, 2, count_units, mine);
        for (int i = 0; grow && i < 2; i++)
            lb_pool_run(pool, 50, count_units, mine);
        const int64_t n = total(mine, 3);
        lb_pool_close(pool);
        _exit(n == (grow ? 102 : 2) ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ_I(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    lb_pool_run(pool, 50, count_units, sums);
    CHECK_EQ_I(total(sums, 3), 52);
    lb_pool_close(pool);
}

/* ---- refusals ------------------------------------------------------- */

static void *refuse_second(void *user, size_t size, size_t align)
{
    int *calls = user;
    return ++*calls == 2 ? NULL : aligned_alloc(align, (size + 63) / 64 * 64);
}

static void give_back(void *user, void *ptr, size_t size)
{
    (void)user, (void)size;
    free(ptr);
}

static void test_no_memory(void)
{
    int calls = 0;
    const lb_allocator a = {refuse_second, give_back, &calls};
    lb_heap *heap = lb_heap_open(&a, 0);
    CHECK(heap != NULL);
    CHECK(lb_pool_open(heap, 4) == NULL);
    lb_heap_close(heap);
}

#ifndef HAVE_SANITIZER /* sanitizers need the address space themselves */
static int count_tasks(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *e = NULL; dir && (e = readdir(dir));)
        n += e->d_name[0] != '.';
    if (dir) closedir(dir);
    return n;
}

/* With address space for half of the threads' stacks, those threads do the
 * work. */
static void test_refused_threads(lb_heap *heap, board *b)
{
    enum { THREADS = 100 };
    const long before = count_tasks();
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    const bool known = f && fscanf(f, "%ld", &pages) == 1;
    if (f) fclose(f);
    struct rlimit old, tight;
    if (!known || before == 0 || getrlimit(RLIMIT_AS, &old)) return;
    pthread_attr_t attributes;
    size_t stack = 0;
    pthread_attr_init(&attributes);
    pthread_attr_getstacksize(&attributes, &stack); /* ulimit -s */
    pthread_attr_destroy(&attributes);
    const size_t room = THREADS / 2 * stack, most = (size_t)64 << 20;
    tight = old;
    tight.rlim_cur = (rlim_t)(pages * sysconf(_SC_PAGESIZE)) +
                     (rlim_t)(room < most ? room : most);
    lb_pool *pool = lb_pool_open(heap, THREADS);
    CHECK_EQ_I(setrlimit(RLIMIT_AS, &tight), 0);
    for (int i = 0; i < 20; i++)
        check_run(pool, b, THREADS, 1000, false);
    CHECK(count_tasks() < before + THREADS - 1);
    CHECK_EQ_I(setrlimit(RLIMIT_AS, &old), 0);
    CHECK_EQ_I(lb_pool_threads(pool), THREADS);
    check_run(pool, b, THREADS, 1000, false);
    lb_pool_close(pool);
}
#endif

int main(void)
{
    lb_heap *heap = lb_heap_open(NULL, 0);
    static board board_memory;
    board *b = &board_memory;
    if (!heap) return 1;
    test_every_unit_once(heap, b);
    test_team(heap, b);
    test_thread_counts(heap);
    test_visibility(heap);
    test_many_tiny_runs(heap);
    test_huge_counts(heap);
    test_open_close(heap);
    test_after_sleep(heap);
    test_all_threads_come(heap);
    test_signals(heap);
    test_fork(heap, false);
#ifndef HAVE_TSAN /* this forbids new threads in the child */
    test_fork(heap, true);
#endif
    test_no_memory();
#ifndef HAVE_SANITIZER
    test_refused_threads(heap, b);
#endif
    CHECK_EQ_I(lb_heap_in_use(heap), 0);
    lb_heap_close(heap);
    return check_report("pool");
}
