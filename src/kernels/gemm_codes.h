/* gemm_codes.h - panels of B (gemm.h) straight from codes.
 *
 *   dst[kk*nr + j] = number kk of row j, or number j of line kk
 *
 * for j < n <= nr and kk < depth. Rows run along the depth, so a panel of them
 * is a transposed block: codes are turned while they are still bytes. Lines run
 * across it. Either way codes become numbers where these belong; there is no
 * block of floats between. Columns from n on hold numbers too, any ones.
 */
#ifndef LB_GEMM_CODES_H
#define LB_GEMM_CODES_H

#include <stdint.h>

#include "lowbit_ext.h"

enum {
    LB_GEMM_CODES_UNIT = 16 /* a scale is that of a multiple of so many numbers
                             * of a row */
};

/* number = level(code) * scale, rounded once. */
typedef struct lb_gemm_rows {
    int bits;           /* of a code: 8, 4, 2 or 1 */
    bool high_first;    /* the first code of a byte has its high bits */
    const float *level; /* 2^bits; of 8 bits none: the code is one */
    const uint8_t *codes;
    int64_t step; /* bytes from row to row, or from line to line */
    const float *scale;
    int64_t scale_step;
    int64_t g; /* rows: how many numbers share one; 0: all of a row */
    bool each; /* lines: a scale for each column, n of them, else one for all;
                 * scale_step further on is that of the next line */
    int64_t n, depth;
    uintptr_t ahead; /* rows, if the kernel asks, as it reads them, for what is
                      * next: this is added to their addresses; 0: nothing.
                      * Lines: where what is next begins */
    int64_t asks, ask_step; /* lines: so many addresses, so far apart */
} lb_gemm_rows;

typedef struct lb_gemm_codes {
    const char *name; /* of a product that decodes so: "dot f32 avx2 6x16" */
    int nr;           /* that of the level's tiles */
    bool asks; /* for rows that are next, while it decodes; else they are asked
                * for between tiles (lb_gemm_soon) */
    void (*decode)(const lb_gemm_rows *w, float *dst);
    void (*lines)(const lb_gemm_rows *w, float *dst);
} lb_gemm_codes;

/* The kernels of a level, or NULL. */
const lb_gemm_codes *lb_gemm_codes_for(const lb_cpu *cpu);

extern const lb_gemm_codes lb_gemm_codes_ref;
#if defined(__x86_64__)
extern const lb_gemm_codes lb_gemm_codes_avx2, lb_gemm_codes_avx512;
#endif

#endif
