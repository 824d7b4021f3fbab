/* sampling.c - see sampling.h. */
#include "sampling.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { ENOUGH = 15, MOST = 512 };

#define SHORTEST 0.002 /* length of a sample in s */
#define LONG_RUN 0.05  /* s: such a run needs no separate warm-up */

/* When sides take turns, a rest lets the other's idle threads fall asleep:
 * OpenBLAS spins for up to about 20 ms. */
#define SHARED_REST 0.025
#define LEAST_REST  0.001
#define MOST_REST   0.2

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static long preemptions(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

static void rest(double after, double least)
{
    double s = after / 2;
    if (s > MOST_REST) s = MOST_REST;
    if (s < least) s = least;
    nanosleep(&(struct timespec){.tv_nsec = (long)(s * 1e9)}, NULL);
}

void sample_rest(double after)
{
    rest(after, LEAST_REST);
}

typedef struct sample_tally {
    double clean[MOST], all[MOST];
    int n_clean, n;
    long runs;   /* runs per sample */
    double once; /* approximate seconds of one run */
} sample_tally;

static double timed(const sample_side *side, long runs)
{
    const double start = now();
    for (long i = 0; i < runs; i++)
        side->run(side->arg);
    return now() - start;
}

static void begin(sample_tally *t, const sample_side *side)
{
    t->n = t->n_clean = 0;
    t->once = timed(side, 1);
    if (t->once < LONG_RUN) t->once = timed(side, 1);
    t->runs = t->once < SHORTEST ? (long)(SHORTEST / (t->once + 1e-9)) + 1 : 1;
}

static void take(sample_tally *t, const sample_side *side, double least_rest)
{
    const double start = now();
    if (t->once < LONG_RUN) side->run(side->arg);
    const long before = preemptions();
    const double s = timed(side, t->runs);
    if (preemptions() == before) t->clean[t->n_clean++] = s / (double)t->runs;
    t->all[t->n++] = s / (double)t->runs;
    rest(now() - start, least_rest);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void conclude(sample_tally *t, sample_side *side)
{
    side->clean = t->n_clean >= 3;
    double *const x = side->clean ? t->clean : t->all;
    const int n = side->samples = side->clean ? t->n_clean : t->n;
    qsort(x, (size_t)n, sizeof *x, compare);
    side->median = n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
    side->best = x[0];
}

void sample(sample_side *sides, int n, double seconds)
{
    static sample_tally tallies[SAMPLE_SIDES];
    const double least = n > 1 ? SHARED_REST : LEAST_REST;
    for (int s = 0; s < n; s++) {
        begin(&tallies[s], &sides[s]);
        rest(tallies[s].once, least);
    }
    const double end = now() + seconds * n;
    double once = 0;
    for (int s = 0; s < n; s++)
        once = tallies[s].once > once ? tallies[s].once : once;
    const int few = once < seconds ? 3 : 1;
    for (int round = 0; round < MOST; round++) {
        bool enough = true;
        for (int s = 0; s < n; s++)
            enough = enough && tallies[s].n_clean >= ENOUGH;
        if (enough || (round >= few && now() >= end)) break;
        for (int i = 0; i < n; i++) {
            const int s = round % 2 ? n - 1 - i : i;
            take(&tallies[s], &sides[s], least);
        }
    }
    for (int s = 0; s < n; s++)
        conclude(&tallies[s], &sides[s]);
}
