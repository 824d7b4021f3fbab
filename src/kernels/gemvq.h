/* gemvq.h - a vector times a matrix of codes, decoded in registers.
 *
 * Codes are read in groups of as many as 32 or 64 bytes hold, and come out of
 * a register in an order of their own: the SLOTS. What meets them is put into
 * that order beforehand, so kernels neither know where a code stands in its
 * byte, nor see the end of a line: callers hand them whole groups, the last
 * one copied and filled up.
 *
 *   rows   y[i] = sum over k of x[k] * W[i][k], codes lie along k: x is put
 *          in order of the slots; four lines at a time
 *   cols   y[j] = sum over k of x[k] * W[k][j], codes lie along j: y is in
 *          order of the slots; eight lines at a time
 *
 * x is f32, or whole numbers with a scale for each panel:
 *
 *   F32    products are exact (levels of f32), sums in lanes of f32; or levels
 *          times scales are rounded to a dtype of 16 bits first
 *   I16    levels of 14 bits, or codes of 8, x of 16 bits (cols with scales:
 *          14): sums are exact until a block's scale is applied
 *   I8X2   x = 256*high + low, two bytes; codes are multiplied as they are, and
 *          level = least + step*code is put right by the sum of x
 *   I8     x is one byte
 *
 * The sums of I8X2 and I8 have the same bits on every level; those of F32 and
 * I16 depend on the level, and none depends on the order of memory accesses.
 */
#ifndef LB_GEMVQ_H
#define LB_GEMVQ_H

#include <stdbool.h>
#include <stdint.h>

#include "lowbit_ext.h"

enum {
    LB_GEMVQ_ROWS = 4,
    LB_GEMVQ_COLS = 8,
    LB_GEMVQ_FEW = 4,      /* most rows of x at once, in cols */
    LB_GEMVQ_PANEL = 4096, /* elements of a line between two folds of lanes */
    LB_GEMVQ_BYTES = 64,   /* most bytes of a group */
    LB_GEMVQ_GROUP = 512,  /* most elements of a group */
    LB_GEMVQ_I16_PANEL = 512 /* elements that share a scale of x in rows */,
    LB_GEMVQ_I8_PANEL = 1024,
    LB_GEMVQ_LINES = 64,       /* I16: lines that share a scale of x in cols, */
    LB_GEMVQ_MOST_LINES = 256, /* and at most, as always in I8; F32: that are
                                * read as one panel */
    LB_GEMVQ_LEVEL = 8191,
    LB_GEMVQ_X16 = 32767,     /* rows: 8 * 32767 * 8191 < 2^31; cols of 8 bits:
                               * 256 * 32767 * 128 */
    LB_GEMVQ_X16_COLS = 8191, /* 32 * 8191 * 8191 < 2^31, */
    LB_GEMVQ_X16_LINES = 32,  /* which is why sums are flushed after so many */
    LB_GEMVQ_X8X2 = 32639,    /* 127 * 256 + 127 */
    LB_GEMVQ_X8 = 127
};

typedef enum lb_gemvq_kind {
    LB_GEMVQ_F32,
    LB_GEMVQ_I16,
    LB_GEMVQ_I8X2,
    LB_GEMVQ_I8
} lb_gemvq_kind;

/* The levels of codes, as kernels want them. */
typedef struct lb_gemvq_table {
    float level[16];     /* repeated if there are fewer */
    uint8_t byte[4][16]; /* byte b of each */
    uint8_t half[2][16]; /* byte b of the level as a number of 14 bits */
    float half_unit;     /* and what 1 stands for */
    int least, step;     /* level = least + step*code */
    bool linear;         /* it is so, in small numbers */
    bool finite;         /* all levels are */
} lb_gemvq_table;

void lb_gemvq_table_init(lb_gemvq_table *t, const float *level, int bits);
/* Only what follows the bytes, by which kernels are chosen. */
void lb_gemvq_table_look(lb_gemvq_table *t, const float *level, int bits);

typedef struct lb_gemvq_rows {
    int64_t groups; /* of each line */
    const uint8_t *codes[LB_GEMVQ_ROWS];
    /* One for each unit elements, or for 2^shift groups. */
    const float *scale[LB_GEMVQ_ROWS];
    int shift;
    const void *x;        /* in slots */
    const float *x_scale; /* of each panel, from this one on */
    const int32_t *x_sum; /* I8: of each panel */
    const lb_gemvq_table *table;
    int64_t ahead; /* bytes that are asked for ahead */
} lb_gemvq_rows;

typedef struct lb_gemvq_cols {
    int64_t groups;
    const uint8_t *codes[LB_GEMVQ_COLS];
    /* F32: numbers; one to a line, or with scales one for each unit elements,
     * or 2^shift groups.
     * I16: pairs of int16, lines 2i and 2i+1, for each of those or, without
     * scales, one.
     * I8: pairs of bytes for lines 2i and 2i+1, x[i]: high, x[i + 4]: low;
     * those of each four lines follow each other. */
    const void *x[LB_GEMVQ_COLS];
    int shift;
    void *sum; /* F32: y; else whole numbers; in slots, aligned */
    /* few: from row to row of x, and of sums, in numbers of either. */
    int64_t x_apart, sum_apart;
    bool first; /* whole numbers are set, not added to */
    const lb_gemvq_table *table;
    int64_t ahead;
} lb_gemvq_cols;

/* How whole numbers of the lines that share a scale of x (I16 with scales: of
 * 32, I8: of a kernel's) go to y. */
typedef struct lb_gemvq_flush {
    int64_t groups;
    const void *sum;
    const float *x_scale; /* I16: one for each 2^shift groups; I8: one */
    int shift;
    int32_t x_sum; /* of all lines; not of I16 with scales */
    const lb_gemvq_table *table;
    /* I8, sums modulo 2^16: what those of high and of low are near to. */
    int32_t middle[2];
    /* I8, of kernels that have fewer lines than share a scale: whole numbers
     * of lines before, in slots; there are none, or the last have come. */
    int32_t *whole;
    bool begins, ends;
    float *y;
} lb_gemvq_flush;

/* Where slot s stands in its group: digits of s, the lowest first, each times
 * a stride, are its place, counted in codes from the low bits of byte 0. */
typedef struct lb_gemvq_order {
    int n[5], stride[5];
} lb_gemvq_order;

typedef struct lb_gemvq_kernel {
    const char *name; /* "gemv q4 i16 avx2" */
    int bits;
    lb_gemvq_kind kind;
    int group;    /* elements; a multiple of LB_RUN's divisors */
    int unit;     /* elements that a scale serves; 0: there are no scales */
    float factor; /* what sums are to be multiplied by; a power of two */
    lb_gemvq_order order;
    /* Sets y[i] for LB_GEMVQ_ROWS lines. */
    void (*rows)(const lb_gemvq_rows *r, float *y);
    /* Adds LB_GEMVQ_COLS lines to sum. */
    void (*cols)(const lb_gemvq_cols *c);
    /* The same, for 2 to LB_GEMVQ_FEW rows of x, or only 2; NULL: only one by
     * one. */
    void (*few)(const lb_gemvq_cols *c, int rows);
    void (*flush)(const lb_gemvq_flush *f); /* NULL: F32 */
    size_t sum_size;                        /* bytes of sum for an element */
    int lines; /* cols. I16: that share a scale of x; I8: that sums have room
                * for; 0: LINES */
    bool only_two; /* rows, for few */
    bool modulo;   /* cols, I8: sums are modulo 2^16, and have room for more
                    * lines where they are known to be near to a number */
    bool together; /* cols: the eight lines follow each other in memory */
} lb_gemvq_kernel;

/* What is asked for. */
typedef struct lb_gemvq_need {
    int bits;
    bool along; /* rows, else cols */
    lb_gemvq_kind kind;
    int64_t g; /* elements of a line that share a scale; 0: no scales */
} lb_gemvq_need;

/* The kernel of a level; NULL: there is none for this. */
const lb_gemvq_kernel *lb_gemvq_kernel_for(const lb_cpu *cpu,
                                           const lb_gemvq_need *need);
/* The k-th kernel that any level may choose, for tests; NULL at the end. */
const lb_gemvq_kernel *lb_gemvq_kernel_at(int k, lb_level *level);

/* ---- x ------------------------------------------------------------------ */

/* x as kernels want it: the header of a block of memory that follows it. */
typedef struct lb_gemvq_x {
    int64_t k, groups;
    double unit;    /* results are to be multiplied by this */
    float *number;  /* natural order, filled up with zeros */
    void *slots;    /* rows: in slots; I8X2: a vector of high, one of low */
    float *x_scale; /* rows: of each panel */
    int32_t *x_sum; /* rows, I8: of each panel */
} lb_gemvq_x;

/* Bytes of memory for x of k elements. */
size_t lb_gemvq_x_size(const lb_gemvq_kernel *q, int64_t k);
/* Places the parts; memory is aligned to 64. number is to be filled then. */
void lb_gemvq_x_place(const lb_gemvq_kernel *q, int64_t k, void *memory,
                      lb_gemvq_x *x);
/* Where numbers are so large or small that sums of their products with codes
 * may leave f32's range, brings them nearer to 1; unit says how far. */
void lb_gemvq_x_range(const lb_cpu *cpu, lb_gemvq_x *x);
/* rows: the numbers in slots. */
void lb_gemvq_x_order(const lb_cpu *cpu, const lb_gemvq_kernel *q,
                      bool high_first, lb_gemvq_x *x);

/* ---- lines -------------------------------------------------------------- */

/* Lines of codes; of scales there is one for each g elements, or none (g 0). */
typedef struct lb_gemvq_lines {
    const uint8_t *codes;
    int64_t step; /* bytes from line to line */
    const float *scale;
    int64_t scale_step, g;
    int64_t n; /* elements of a line */
    bool high_first;
    const lb_gemvq_table *table;
    int64_t ahead;
    const lb_cpu *cpu; /* cols: whose loops prepare x */
} lb_gemvq_lines;

/* y[i] = the product with line i, for i < n; four lines at a time that are
 * `apart` lines from each other. */
void lb_gemvq_run_rows(const lb_gemvq_kernel *q, const lb_gemvq_lines *w,
                       const lb_gemvq_x *x, int64_t n, int64_t apart, float *y);

/* Rows of x that a kernel takes at once, at most. */
int lb_gemvq_cols_rows(const lb_gemvq_kernel *q);
/* Bytes of scratch, aligned to 64, for n columns, g of which share a scale. */
size_t lb_gemvq_cols_size(const lb_gemvq_kernel *q, int64_t n, int64_t g);
/* The sum over lines of x[line] * W[line][j], for all columns j of whole
 * groups, in slots, aligned to 64; x in natural order. And so for each of some
 * rows, x and slots of which are so many numbers apart. */
void lb_gemvq_run_cols(const lb_gemvq_kernel *q, const lb_gemvq_lines *w,
                       int rows, const float *x, int64_t x_apart, int64_t lines,
                       float *slots, int64_t slots_apart, void *scratch);
/* n such sums in the order of columns. */
void lb_gemvq_cols_order(const lb_gemvq_kernel *q, bool high_first,
                         const float *slots, int64_t n, float *y);

#endif
