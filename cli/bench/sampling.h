/* sampling.h - timing on a shared machine.
 *
 * Samples are short (2 ms, or one run). Each follows an untimed warm-up run and
 * is followed by a pause of half its length, so that other processes make
 * progress and real-time processes are not throttled. Samples in which no
 * thread of the process was preempted are preferred. Several sides alternate,
 * every other round in reverse order, so that disturbances affect all of them.
 */
#ifndef LB_BENCH_SAMPLING_H
#define LB_BENCH_SAMPLING_H

#include <stdbool.h>

typedef struct sample_side {
    void (*run)(void *arg);
    void *arg;
    double median, best; /* output: seconds of one run */
    int samples;         /* output: number of samples used */
    bool clean;          /* output: none of them was preempted */
} sample_side;

/* Takes up to about `seconds` per side, but at least 3 samples, or 1 if a run
 * takes longer than that. At most SAMPLE_SIDES sides. */
enum { SAMPLE_SIDES = 2 };
void sample(sample_side *sides, int n, double seconds);

double now(void);               /* seconds, from a monotonic clock */
void sample_rest(double after); /* pauses after that many seconds of work */

#endif
