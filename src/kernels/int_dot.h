/* int_dot.h - a row of integers with scales (lb_integers in lowbit_ext.h) times
 * a row of x that is rounded to digits of 8 bits.
 *
 *   y = sum over k of x[k] * (scale[run of k] * code[k] + bias[run of k])
 *
 * Rows come in panels of 256 values, filled up with zeros. x has one scale to a
 * panel and one digit (FASTEST) or two, x = 254*high + low. Products and sums
 * of four are exact; 16 lanes, each of which takes four neighbouring codes of
 * 64, sum them in f32 in an order that is the same on every level, and so are
 * the bits.
 */
#ifndef LB_INT_DOT_H
#define LB_INT_DOT_H

#include <stdbool.h>

#include "lowbit_ext.h"

enum {
    LB_INT_PANEL = 256,
    LB_INT_CHUNK = 64, /* codes that are multiplied at once */
    LB_INT_LANES = 16,
    LB_INT_ROWS = 4,   /* of x at once, at most */
    LB_INT_BASE = 254, /* 4 * 128 * MOST < 2^24: exact in f32 */
    LB_INT_MOST = 127 * LB_INT_BASE + 126 /* high is at most 127 */
};

typedef struct lb_int_digit {
    int8_t code[LB_INT_PANEL];
    /* -128 times the sum of four: what products of x and code + 128, which is
     * unsigned, begin with. */
    int32_t start[LB_INT_PANEL / 4];
} lb_int_digit;

/* A panel of x, aligned to 64. */
typedef struct lb_int_x {
    lb_int_digit digit[2];   /* high, low */
    float sum[LB_INT_LANES]; /* of 16 values each */
    float scale, fill[LB_INT_LANES - 1];
} lb_int_x;

/* A row of a matrix. */
typedef struct lb_int_dot_row {
    const int8_t *code;
    const float *scale, *bias; /* of each run; bias may be NULL */
    int run;                   /* values: 16 or 32 */
} lb_int_dot_row;

typedef struct lb_int_dot {
    const char *name;
    /* Rounds k values; one that is not finite makes the scale of its panel NaN.
     */
    void (*round)(const float *x, int64_t k, int digits, lb_int_x *to);
    /* Adds panels of a row of w to the sums of rows of x: those of row i of x
     * are x + i * x_step, and its lanes sum + i * sum_step. */
    void (*dot)(const lb_int_x *x, int64_t x_step, int64_t rows, int64_t panels,
                const lb_int_dot_row *w, int digits, float *sum,
                int64_t sum_step);
    /* The sums of n such lanes, which follow each other. */
    void (*fold)(const float *sum, int64_t n, float *y);
} lb_int_dot;

/* NULL: the CPU has no products of bytes. */
const lb_int_dot *lb_int_dot_for(const lb_cpu *cpu);

static inline int64_t lb_int_dot_panels(int64_t k)
{
    return (k + LB_INT_PANEL - 1) / LB_INT_PANEL;
}

extern const lb_int_dot lb_int_dot_ref;
#if defined(__x86_64__)
extern const lb_int_dot lb_int_dot_avx2, lb_int_dot_avx512, lb_int_dot_vnni;
#elif defined(__aarch64__)
extern const lb_int_dot lb_int_dot_dotprod;
#endif
#endif
