/* limits.h - measured peak performance of this machine, by number of threads.
 */
#ifndef LB_BENCH_LIMITS_H
#define LB_BENCH_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench_options.h"
#include "cell.h"
#include "limit_kernels.h"

enum { LIMIT_SIZES = 48 }; /* powers of two */

/* The best of several samples: a limit, not an average. */
typedef struct limits {
    int threads;
    double seconds; /* maximum time for one figure */
    limit_kernels kernels;
    double fma, dot16, dot8; /* Gop/s */
    double lookup;           /* G bytes of tables a second */
    double dram;             /* GB/s read, with the best of several patterns */
    double stream;           /* GB/s of non-temporal stores */
    char *memory;
    double read[LIMIT_SIZES]; /* GB/s for a working set of 2^i bytes; 0: not
                               * measured yet */
} limits;

/* False after a message. level: see lb_isa. */
bool limits_open(limits *l, int threads, const char *level, double seconds);
void limits_close(limits *l);

/* Read bandwidth in GB/s for a working set of that size, whichever cache it
 * fits in. Measured on first use. */
double limits_read(limits *l, double bytes);

/* Upper bound for a product: arithmetic or table lookups of the kernel's kind,
 * or the bandwidth of its weights. */
typedef struct limit {
    double gflops;
    const char *name; /* "fma", "dot16", "dot8", "lookup", "dram", "read" */
} limit;
limit limits_product(limits *l, const cell *c);

/* --limits */
bool limits_run(const bench_options *o);
void limits_print(const limits *l);

#endif
