/* cell.h - one measured product, and how it is printed. */
#ifndef LB_BENCH_CELL_H
#define LB_BENCH_CELL_H

#include "bench_options.h"

typedef struct cell {
    const char *format; /* not owned */
    lb_precision precision;
    bench_orient orient;
    bench_place place;
    lb_dtype act;
    int threads;
    int64_t m, n, k;
    double gflops, best; /* for the median and for the best sample */
    double weight_bytes;
    double error;
    int samples;
    bool clean;
    double limit; /* GFLOP/s; 0: not measured */
    const char *limit_name;
    char kernel[40]; /* kernel name, from lb_explain */
    const char *isa; /* level of the context, not owned */
} cell;

double cell_flops(const cell *c);
double cell_weight_rate(const cell *c); /* GB/s of weights */

void cell_print_head(void);
void cell_print(const cell *c);
void cell_print_json(const cell *c);

#endif
