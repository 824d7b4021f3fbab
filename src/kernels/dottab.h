/* dottab.h - products of whole numbers with single bits, by tables.
 *
 *   c[i][j] += xs[i] * ws[j] * (base[i] + slope * sum of x[i][kk] * bit[j][kk])
 *
 * Four numbers have sixteen sums with four bits. A shuffle of bytes looks one
 * up for 32 rows of w at once, and what it replaces are 128 multiplications.
 * Sums are made positive, by adding the opposite of the negative numbers among
 * the four, and have 16 bits: a table has first the lower bytes of all sixteen,
 * then the higher ones.
 *
 *   x       tables [table][row of x][32 bytes], two for each byte of codes
 *   codes   turned (dotturn.h): [byte][32 rows of w]
 */
#ifndef LB_DOTTAB_H
#define LB_DOTTAB_H

#include <stdint.h>

#include "lowbit_ext.h"

enum {
    LB_DOTTAB_COLUMNS = 32, /* rows of w at once */
    LB_DOTTAB_MR = 2,       /* rows of x */
    LB_DOTTAB_TABLE = 32,   /* bytes */
    LB_DOTTAB_KC = 1024,    /* the most of a depth: 256 bytes of at most 255 are
                             * a sum of 16 bits */
    LB_DOTTAB_MOST_X = 16383 /* so are four numbers */
};

/* What rows of x bring. */
typedef struct lb_dottab_head {
    float scale[LB_DOTTAB_MR], base[LB_DOTTAB_MR];
} lb_dottab_head;

/* Memory that is wanted soon, in lines of a cache, `step` bytes apart; it may
 * lie anywhere. */
typedef struct lb_dottab_ahead {
    uintptr_t at;
    int64_t lines, step;
} lb_dottab_ahead;

typedef struct lb_dottab {
    const char *name; /* "dot tables avx2" */
    /* Tables of n numbers times factor, rounded to nearest even; zeros up to a
     * multiple of 8. Tables are written `apart` bytes apart. high_first: the
     * first number belongs to the highest bit of a byte. sum: of all numbers,
     * low: of the negative ones. */
    void (*tables)(int64_t n, const float *x, float factor, bool high_first,
                   uint8_t *to, int64_t apart, int32_t *sum, int32_t *low);
    /* c[i*ldc + j] = fma((base[i] + slope * t) * ws[j], scale[i], c or, if
     * first, 0), where t is the sum of what tables say, for rows <= MR and all
     * columns. Tables and codes are aligned to 32 bytes. ahead: this is asked
     * for meanwhile. */
    void (*dots)(int rows, int64_t bytes, const uint8_t *tables,
                 const uint8_t *codes, float slope, const lb_dottab_head *head,
                 const float *ws, bool first, lb_dottab_ahead ahead, float *c,
                 int64_t ldc);
} lb_dottab;

/* NULL: this level has none. */
const lb_dottab *lb_dottab_for(const lb_cpu *cpu);

#if defined(__x86_64__)
extern const lb_dottab lb_dottab_avx2;
#endif

#endif
