/* bench.h - shared by benchmarks: a clock, medians, and alternating rounds.
 *
 * Programs are compared in alternating rounds of one process, so that other
 * load of the machine affects all of them. Figures are medians over rounds; a
 * ratio below 1 means that lowbit takes less time.
 */
#ifndef LB_BENCH_H
#define LB_BENCH_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double bench_now(void) /* ns, monotonic */
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline int bench_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts x; NaN if n is 0. */
static inline double bench_median(double *x, int n)
{
    if (n <= 0) return NAN;
    qsort(x, (size_t)n, sizeof *x, bench_compare);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* Runs one round; returns its figure, usually ns per operation. */
typedef double bench_round(void *arg);

typedef struct bench_side {
    bench_round *round; /* NULL: not available */
    void *arg;
    double figure; /* out: the median of the rounds; NaN if not available */
} bench_side;

#define BENCH_SIDES_MAX  8
#define BENCH_ROUNDS_MAX 256

/* Runs all sides in turn, `rounds` times; every other round in reverse order,
 * so that no side always follows the same one. */
static inline void bench_alternate(bench_side *sides, int n, int rounds)
{
    static double x[BENCH_SIDES_MAX][BENCH_ROUNDS_MAX];
    if (n > BENCH_SIDES_MAX) n = BENCH_SIDES_MAX;
    if (rounds > BENCH_ROUNDS_MAX) rounds = BENCH_ROUNDS_MAX;
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < n; i++) {
            const int s = r % 2 ? n - 1 - i : i;
            if (sides[s].round) x[s][r] = sides[s].round(sides[s].arg);
        }
    }
    for (int s = 0; s < n; s++)
        sides[s].figure = sides[s].round ? bench_median(x[s], rounds) : NAN;
}

#endif
