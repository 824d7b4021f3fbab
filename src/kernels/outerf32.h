/* outerf32.h - a few rows of f32 times some columns of codes, whose depth runs
 * from line to line.
 *
 *   number[k][j] = level(code[k][j]) * scale of k, j, rounded to a dtype
 *   c[i][j] (+)= sum over lines k of x[k][i] * number[k][j]
 *
 * Codes are decoded in registers as they are multiplied, to the bits that
 * decoding gives, and kept as well: that is a panel of B of gemm.h, for the
 * tiles of further rows. Sums are formed as there. Raw pointers only.
 */
#ifndef LB_OUTERF32_H
#define LB_OUTERF32_H

#include <stdbool.h>
#include <stdint.h>

#include "lowbit_ext.h"

enum { LB_OUTERF32_MAX_MR = 8, LB_OUTERF32_MAX_NR = 32 };

/* What codes stand for. */
typedef struct lb_outerf32_table {
    int bits;        /* of a code: 8, 4, 2 or 1 */
    bool high_first; /* the first code of a byte has its high bits */
    float level[16]; /* of 8 bits none: the code is one; repeated if there are
                      * fewer */
    uint8_t plane[4][16];              /* byte b of each */
    int32_t shift[LB_OUTERF32_MAX_NR]; /* but of 8 bits: where code j is in the
                                        * four bytes that it is among, lowest
                                        * first */
} lb_outerf32_table;

/* nr columns of k lines. */
typedef struct lb_outerf32_lines {
    const lb_outerf32_table *table;
    const uint8_t *codes; /* of 1 bit four bytes of a line are read */
    int64_t step;         /* bytes from line to line */
    /* One for each line, scale_step apart; or, each, one for each column of
     * all lines, of 8 bits only. */
    const float *scale;
    int64_t scale_step;
    bool each;
    lb_dtype rounds; /* f16 or bf16: numbers are rounded to it */
    int64_t k;
    /* What will be wanted next, and may lie anywhere: with line i, what is at
     * ask + (i >> ask_shift) * ask_step. Bursts would hold up what is read. */
    uintptr_t ask;
    int64_t ask_step;
    int ask_shift;
} lb_outerf32_lines;

typedef struct lb_outerf32 {
    const char *name; /* "dot f32 avx2 4x16" */
    int mr, nr;       /* nr is that of the level's tiles */
    int kc;           /* lines of a panel that suit it; at most LB_GEMM_KC */
    int most;         /* rows of x: with more, panels of all of w are faster */
    bool asks;        /* tile does */
    /* rows <= mr of x, x[k*rows + i], and n <= nr columns of c; first: these
     * are set, not added to. keep[k*nr + j], aligned to 32 bytes. */
    void (*tile)(const lb_outerf32_lines *w, int rows, const float *x,
                 bool first, int n, float *c, int64_t ldc, float *keep);
} lb_outerf32;

void lb_outerf32_table_of(lb_outerf32_table *t, int bits, bool high_first,
                          const float *level);
/* What a level has, or NULL. */
const lb_outerf32 *lb_outerf32_for(const lb_cpu *cpu);

extern const lb_outerf32 lb_outerf32_ref;
#if defined(__x86_64__)
extern const lb_outerf32 lb_outerf32_avx2, lb_outerf32_avx512;
#endif

#endif
