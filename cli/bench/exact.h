/* exact.h - products in double precision from decoded weights.
 *
 * For large products, of some columns only: the first, the last and others
 * between them. Smaller x are prefixes of larger ones, so one reference serves
 * every M, precision and number of threads.
 */
#ifndef LB_BENCH_EXACT_H
#define LB_BENCH_EXACT_H

#include "bench_options.h"

typedef struct exact {
    int64_t m, n;    /* rows, columns of the product */
    int64_t columns; /* indices of the computed columns */
    int64_t *column;
    double *want; /* (m, columns) */
} exact;

/* False after a message. x: (m, k), any float dtype. */
bool exact_open(exact *e, lb_ctx *cx, lb_array *x, lb_array *w,
                bench_orient orient);
void exact_close(exact *e);
/* Relative error of y (Frobenius norm): (rows, n) with rows <= m. NaN if y
 * cannot be read. */
double exact_error(const exact *e, lb_ctx *cx, lb_array *y);

#endif
