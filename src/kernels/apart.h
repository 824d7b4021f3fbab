/* apart.h - how far numbers are from others: sums of squares and products.
 *
 * Runs are taken in blocks of 128, in sixteen lanes of f32 that eight numbers
 * are added to each; then lanes are added to lanes of f64, and these to each
 * other at the end of the run, the first first. No product is fused with its
 * sum. So all levels give the same bits. Blocks whose squares leave f32's
 * range, or that hold what is not finite, are added up one number at a time.
 */
#ifndef LB_APART_H
#define LB_APART_H

#include "lowbit_ext.h"

enum { LB_APART_LANES = 16, LB_APART_BLOCK = 8 * LB_APART_LANES };

typedef struct lb_apart {
    int64_t apart;         /* pairs that are not the same number */
    int64_t nonfinite;     /* of them, those that are in none of the sums */
    double aa, bb, ab, dd; /* sums of a*a, b*b, a*b and (a-b)*(a-b) */
    double max;            /* the largest |a-b| */
} lb_apart;

/* Adds n pairs, whole blocks. */
typedef void lb_apart_fn(const float *a, const float *b, int64_t n,
                         lb_apart *to);
lb_apart_fn lb_apart_ref;
#if defined(__x86_64__)
lb_apart_fn lb_apart_avx2, lb_apart_avx512;
#endif
lb_apart_fn *lb_apart_for(const lb_cpu *cpu);

/* One after the other, any n. */
void lb_apart_plain(const float *a, const float *b, int64_t n, lb_apart *to);
void lb_apart_plain_f64(const double *a, const double *b, int64_t n,
                        lb_apart *to);
/* A block whose sums of f32 say nothing. */
void lb_apart_wild(const float *a, const float *b, lb_apart *to);

/* Lanes that are too large or not finite are wild, and blocks in which none is
 * large enough. */
#define LB_APART_LEAST 1e-20f
#define LB_APART_MOST  1e30f

#endif
