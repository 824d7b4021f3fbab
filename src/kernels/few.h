/* few.h - f32 products of a few rows with many rows, along the depth.
 *
 *   t[j][i] = sum over kk < k of x[i][kk] * w[j][kk]
 *
 * Both run along the depth in memory, so registers hold neighbours in depth
 * and nothing is transposed: w is read where it lies, or where it was decoded
 * to, and only x, which is small, is packed. A register is one of `lanes`
 * partial sums wide.
 *
 * The order of a sum: panels of LB_FEW_KC; in each of them lane l sums kk = l,
 * l + lanes, l + 2*lanes, ... from zero in order, and lanes fold in halves:
 * (l, l + lanes/2), ..., (l, l + 1). Panels are added in order. Where w runs
 * the other way, the tiles of gemm.h form the same sums lane by lane
 * (lb_few_across), so the bits do not depend on how w lies.
 */
#ifndef LB_FEW_H
#define LB_FEW_H

#include <stdint.h>

#include "kernels/gemm.h"
#include "lowbit_ext.h"

enum {
    LB_FEW_KC = 512,    /* 64 terms to a lane of 8 */
    LB_FEW_ROWS = 4,    /* most rows of a group of x, and the rows of t */
    LB_FEW_LEVELS = 4,  /* 2^LB_FEW_LEVELS: most lanes */
    LB_FEW_TOGETHER = 4 /* rows that are copied together */
};

/* What will be read next: rows of w, or the bytes they are decoded from. Lines
 * are asked for while other rows are worked with. */
typedef struct lb_few_next {
    uintptr_t at; /* 0: nothing. It may lie past the end of an array: such an
                   * address is never a pointer to C */
    int64_t ld;   /* bytes from row to row */
    int64_t step; /* and for each `lanes` numbers of one */
} lb_few_next;

typedef struct lb_few_kernel {
    const char *name; /* "few avx2 4x3" */
    int lanes;
    int many; /* rows of w that go together */
    /* t[j*LB_FEW_ROWS + i] (+)= the sums of one panel, k <= LB_FEW_KC, for
     * i < h <= LB_FEW_ROWS and j < n <= many, row j of w at w + j*ldw. x is a
     * group as packed by lb_few_pack. first: t is set, not added to. What is
     * left of a row of t may be written, too. next: n rows. */
    void (*dots)(int h, int64_t k, const float *x, const float *w, int64_t ldw,
                 int n, float *t, bool first, lb_few_next next);
    void (*add)(int64_t n, float *to, const float *from); /* to[i] += from[i] */
    /* Copies n pieces of nr floats of each of LB_FEW_TOGETHER rows, ld apart,
     * a piece of each at a time: those number i to to + i*step, one behind the
     * other. What lies ahead floats further on is asked for, if that is not
     * 0. nr is that of the level's tiles. */
    void (*copy)(const float *from, int64_t ld, int64_t n, int nr, float *to,
                 int64_t step, int64_t ahead);
} lb_few_kernel;

/* The strongest kernel of a level. */
const lb_few_kernel *lb_few_kernel_for(const lb_cpu *cpu);

extern const lb_few_kernel lb_few_ref;
#if defined(__x86_64__)
extern const lb_few_kernel lb_few_avx2, lb_few_avx512;
#elif defined(__aarch64__)
extern const lb_few_kernel lb_few_neon;
#endif

/* Floats of m packed rows of k. */
static inline int64_t lb_few_floats(const lb_few_kernel *kernel, int64_t m,
                                    int64_t k)
{
    return m * ((k + kernel->lanes - 1) / kernel->lanes * kernel->lanes);
}

/* Packs one panel of m rows of x, with the given strides in floats, into
 * groups of even heights h (lb_gemm_height), the group of row i at
 * dst + lb_few_floats(i): vector v of row r of a group at (v*h + r)*lanes,
 * zeros past k. */
void lb_few_pack(const lb_few_kernel *kernel, const float *x,
                 int64_t row_stride, int64_t col_stride, int64_t m, int64_t k,
                 float *dst);

/* All m rows of a packed panel with n rows of w: the sums of group g and of row
 * j of w at t + g*ldt + j*LB_FEW_ROWS, for ldt >= n*LB_FEW_ROWS. next: n rows
 * that come after. */
void lb_few_along(const lb_few_kernel *kernel, int64_t m, int64_t k,
                  const float *x, const float *w, int64_t ldw, int64_t n,
                  float *t, int64_t ldt, bool first, lb_few_next next);
/* Row i of the result out of such a t: n sums, step floats apart. */
void lb_few_row(const float *t, int64_t ldt, int64_t m, int64_t i, int64_t n,
                float *to, int64_t step);

/* The same sums where w lies the other way, w[kk*ldw + j]. x is packed by
 * lb_few_pack_across. */
void lb_few_pack_across(const lb_few_kernel *kernel,
                        const lb_gemm_kernel *tiles, const float *x,
                        int64_t row_stride, int64_t col_stride, int64_t m,
                        int64_t k, float *dst);

/* And one panel (k,n) of w is copied: nr columns after the other, in them lane
 * after lane. Such a copy can be made while another one is worked with, a
 * little at a time, so that it comes from memory while there is something to
 * do; or by and by, from parts of w. */
typedef struct lb_few_copy {
    const float *from; /* row `at` of w; at is a multiple of lb_few_part */
    int64_t ldw, at;
    int64_t k, n;
    float *to;
    int64_t row, column; /* where it goes on */
} lb_few_copy;

static inline int64_t lb_few_part(const lb_few_kernel *kernel)
{
    return (int64_t)LB_FEW_TOGETHER * kernel->lanes;
}

/* Floats of such a copy. */
int64_t lb_few_copy_floats(const lb_few_kernel *kernel,
                           const lb_gemm_kernel *tiles, int64_t k, int64_t n);
/* About n floats more, or all that are left. */
void lb_few_copy_some(const lb_few_kernel *kernel, const lb_gemm_kernel *tiles,
                      lb_few_copy *c, int64_t n);
/* c[i*ldc + j] (+)= the sums of a copy, while next is made, if it is not NULL.
 * tmp: LB_FEW_LEVELS * m * nr floats. */
void lb_few_across(const lb_few_kernel *kernel, const lb_gemm_kernel *tiles,
                   int64_t m, const float *x, const lb_few_copy *w, float *c,
                   int64_t ldc, bool first, float *tmp, lb_few_copy *next);

#endif
