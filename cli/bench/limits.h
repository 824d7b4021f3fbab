/* limits.h - what this machine can do on so many threads, measured. */
#ifndef LB_BENCH_LIMITS_H
#define LB_BENCH_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench_options.h"
#include "cell.h"
#include "limit_kernels.h"

enum { LIMIT_SIZES = 48 }; /* powers of two */

/* The best of several samples: a roof is not a median. */
typedef struct limits {
    int threads;
    double seconds; /* most to spend on one figure */
    limit_kernels kernels;
    double fma, dot16, dot8; /* Gop/s */
    double lookup;           /* G bytes of tables a second */
    double dram;             /* GB/s read, in the best of some patterns */
    double stream;           /* GB/s stored past the caches */
    char *memory;
    double read[LIMIT_SIZES]; /* GB/s of 2^i bytes, again and again; 0: not
                               * measured yet */
} limits;

/* False after saying why. level: as lb_isa gives it. */
bool limits_open(limits *l, int threads, const char *level, double seconds);
void limits_close(limits *l);

/* GB/s at which so many bytes can be read again and again, wherever they come
 * to lie. Measured when first asked for. */
double limits_read(limits *l, double bytes);

/* The most that a product can reach: what the cores can multiply, or look up,
 * in the way of the kernel, or what the weights can be read at. */
typedef struct limit {
    double gflops;
    const char *name; /* "fma", "dot16", "dot8", "lookup", "dram", "read" */
} limit;
limit limits_product(limits *l, const cell *c);

/* --limits */
bool limits_run(const bench_options *o);
void limits_print(const limits *l);

#endif
