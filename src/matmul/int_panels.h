/* int_panels.h - a product with packed weights as panels of whole numbers.
 *
 * What is multiplied are the panels of kernels/dotint.h. Where the scale of a
 * weight goes depends on what it depends on:
 *
 *   on the row of w      to the scale of that row in the result
 *   on the depth         to x, before it is rounded
 *   on both              into the weight: a ratio to the largest scale of the
 *                        row's panel, and that one to the result
 *
 * In the last case, and where levels are not whole numbers, weights are fine:
 * rounded, to 2^13 steps each way.
 */
#ifndef LB_INT_PANELS_H
#define LB_INT_PANELS_H

#include "kernels/dotint.h"
#include "matmul/coded_scales.h"
#include "matmul/product.h"
#include "matmul/row_slab.h"

typedef struct lb_int_panels {
    const lb_dotint *kernel;
    const lb_cpu *cpu;
    bool fine; /* see above */
    lb_scales_way scales;
    bool by_level; /* bytes are codes of these levels, else numbers */
    int16_t level[16];
    int8_t number[16]; /* what codes of fewer than 8 bits become as bytes, */
    int least, slope;  /* and if these are on a line, least + slope * code */
    bool line;
    float unit; /* what 1 in a panel of w stands for, without scales */
    int fields; /* the depth comes in the order of so many fields of a byte;
                 * 1: as it is */
    bool high_first;
    int64_t kc;    /* depth of a panel, */
    int64_t step;  /* and what it is filled up to a multiple of */
    int64_t strip; /* rows of w that become bytes together, */
    int64_t sub;   /* and panels, which stay in L1 */
    bool packs;    /* they do; else codes are multiplied as they are */
    /* How many of the depth share a ratio, for kernels, and how far apart the
     * ratios of rows are. */
    int64_t share, ratio_apart;
} lb_int_panels;

/* For m rows of x. False: the codes stand for numbers that this cannot hold. */
bool lb_int_panels_of(const lb_cpu *cpu, const lb_coded *c, int64_t m,
                      lb_int_panels *p);

/* ---- x: int_rows.c ------------------------------------------------------- */

/* What the scales of weights are multiplied with, and those of x divided by:
 * see int_rows.c. */
#define LB_INT_DOWN 0x1p-14f

/* How large whole numbers may be, and their sums in a lane; 0: any. */
typedef struct lb_int_bound {
    float one, lane;
} lb_int_bound;

/* A row that is x * factor, rounded, times the scale. If a number is not
 * finite, there are zeros, and the scale is NaN. */
typedef struct lb_int_row {
    const float *x;
    float factor, scale;
} lb_int_row;

/* As lb_dotint.largest, which says what a lane is. */
typedef float lb_int_largest(int64_t n, const float *x, float *lane);
/* The same where one lane has all numbers. */
lb_int_largest lb_int_largest_and_sum;

/* n numbers; tmp has room for as many. */
lb_int_row lb_int_row_of(lb_int_largest *largest, lb_int_bound bound, int64_t n,
                         const float *x, float *tmp);

/* n numbers that are step apart, side by side and times their factors, if
 * there are any: at tmp, or where they lie. */
const float *lb_line_up(const float *x, int64_t step, int64_t n,
                        const float *factor, float *tmp);

/* Floats of tmp, below. */
int64_t lb_int_rows_room(const lb_int_panels *p);
/* Rows [i, i + rows) of x, rows <= mr, from k on n <= kc of the depth: their
 * scales, sums and vectors. factor: what each number of the depth
 * is multiplied with first, if in_x. A row that is not finite has the scale
 * NaN. */
void lb_int_rows_pack(const lb_int_panels *p, lb_row_slab *x, int64_t i,
                      int rows, int64_t k, int64_t n, const float *factor,
                      lb_dotint_head *head, int16_t *to, float *tmp);

/* ---- w: int_weights.c ---------------------------------------------------- */

typedef struct lb_int_weights {
    const lb_int_panels *p;
    lb_scales s;
    float *largest; /* in_w: the largest scale of each row of a strip or, if
                     * rows run along memory, of each block of them, */
    int16_t *ratio; /* and those that belong to it */
    float *scales;
    int8_t *bytes, *lines;
    int64_t at, k, depth;    /* the strip that was brought here, */
    int64_t next_at, next_k; /* and the one after it */
} lb_int_weights;

/* Places what `most` rows of a depth need at room, if that is given; returns
 * the bytes. */
size_t lb_int_weights_room(const lb_int_panels *p, const lb_coded *c,
                           int64_t most, int64_t depth, lb_int_weights *w,
                           char *room);
/* Which strip will follow the next one: its codes are asked for. */
void lb_int_weights_next(lb_int_weights *w, int64_t j, int64_t k);
/* Rows [j, j + p->strip), as far as there are, as bytes. */
void lb_int_weights_strip(lb_int_weights *w, int64_t j, int64_t k, int64_t n);
/* Rows [j, j + p->sub) of the strip as panels, and their scales; there are
 * zeros for rows that are not. If these are packed. */
void lb_int_weights_pack(lb_int_weights *w, int64_t j, int16_t *to, float *ws);
/* If not: the scales of all rows of the strip, and their products with
 * a group of rows of x: c[r*ldc + i]. ask: for the codes of the strip after
 * it, meanwhile. */
void lb_int_weights_scales(const lb_int_weights *w, float *ws);
void lb_int_weights_dots(const lb_int_weights *w, bool ask, const float *ws,
                         int rows, const int16_t *x, const lb_dotint_head *head,
                         bool first, float *c, int64_t ldc);

/* ---- scales in w: int_ratios.c ------------------------------------------- */

enum {
    LB_INT_BLOCKS = 16
}; /* of scales across a strip; one more if they do
    * not begin with it */

/* The ratios of a strip. */
void lb_int_ratios(lb_int_weights *w, int64_t rows);

#endif
