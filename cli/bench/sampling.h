/* sampling.h - timing on a machine that others use too.
 *
 * Samples are short (2 ms, or one run), each after an untimed warm run and
 * followed by a rest of half its length, so that others get on and real-time
 * processes are not throttled. Samples in which no thread of the process was
 * preempted are preferred. Several sides take turns, every other round in
 * reverse order, so that what the machine does meanwhile falls on all.
 */
#ifndef LB_BENCH_SAMPLING_H
#define LB_BENCH_SAMPLING_H

#include <stdbool.h>

typedef struct sample_side {
    void (*run)(void *arg);
    void *arg;
    double median, best; /* out: seconds of one run */
    int samples;         /* out: that these come from */
    bool clean;          /* out: none of them was preempted */
} sample_side;

/* About `seconds` for each side at most, but at least 3 samples, or 1 where a
 * run takes longer than that. At most SAMPLE_SIDES sides. */
enum { SAMPLE_SIDES = 2 };
void sample(sample_side *sides, int n, double seconds);

double now(void);               /* seconds, monotonic */
void sample_rest(double after); /* the rest after so many seconds of work */

#endif
