/* dotpair.h - products of whole numbers with codes of one or two bits, by
 * tables of which half is left out.
 *
 *   c[i][j] += xs[i] * ws[j] * (base[i] + slope * sum of x[i][kk] * s[j][kk])
 *
 * where s is 1 or -1, of two bits also 0. Half a byte of codes and the numbers
 * that belong to it are a sum; of the sums that there can be, half are the
 * opposites of the others. So codes become an index of a table, and a sign: 1,
 * -1, or 0, so that no table needs an entry for nothing.
 *
 *   four numbers, 1 bit     d - c - b - a and so on, 8 sums
 *   two numbers, 2 bits     a, b, a + b, a - b
 *
 * Eight numbers then have 16 sums either way, which one shuffle of bytes looks
 * up; and as its bytes may belong to several groups of numbers, two next to
 * each other are of one row of w, and are multiplied with their signs and added
 * to 16 bits in one operation.
 *
 *   x       tables [8 numbers][row of x][32 bytes]: of 16 sums the lower bytes,
 *           then the higher ones. So that bytes are not negative, the sums are
 *           LB_DOTPAIR_OFFSET larger than they are.
 *   codes   a head, then [byte][two times 16 rows of w][32 indices, 32 signs].
 *           The head has what a sum of bytes, which are 128 too large, begins
 *           with, in 16 bits. Rows lie as unpacking leaves them: 0 to 7 and 16
 *           to 23, then 8 to 15 and 24 to 31.
 */
#ifndef LB_DOTPAIR_H
#define LB_DOTPAIR_H

#include <stdint.h>

#include "lowbit_ext.h"

enum {
    LB_DOTPAIR_COLUMNS = 32,             /* rows of w at once */
    LB_DOTPAIR_MR = 2,                   /* rows of x */
    LB_DOTPAIR_EACH = 8,                 /* numbers of a table, */
    LB_DOTPAIR_TABLE = 32,               /* and its bytes */
    LB_DOTPAIR_OFFSET = 128 * 256 + 128, /* of sums: 128 of each byte */
    LB_DOTPAIR_HEAD = 64,                /* bytes of the head of codes, */
    LB_DOTPAIR_BYTE = 128, /* and of what a byte of them becomes */
    LB_DOTPAIR_BYTES = 64, /* the most of a depth: a line of a cache for each
                            * row. 128 sums of bytes of at most 128 have 16
                            * bits; half as many again gained 2 % */
    /* Of the magnitudes of two or four numbers; 3 for their roundings. */
    LB_DOTPAIR_MOST = 65535 - LB_DOTPAIR_OFFSET - 3
};

/* What codes stand for. */
typedef enum lb_dotpair_kind {
    LB_DOTPAIR_SIGNS, /* 1 bit: -1, 1 */
    LB_DOTPAIR_TRITS  /* 2 bits: -1, 0, 1; there is no fourth */
} lb_dotpair_kind;

/* Of a kind: bits of a code, and bytes of codes that share a table. */
static inline int lb_dotpair_bits(lb_dotpair_kind kind)
{
    return kind == LB_DOTPAIR_SIGNS ? 1 : 2;
}

/* What rows of x bring. */
typedef struct lb_dotpair_head {
    float scale[LB_DOTPAIR_MR], base[LB_DOTPAIR_MR];
} lb_dotpair_head;

typedef struct lb_dotpair {
    const char *name; /* "dot pairs avx2" */
    /* Of signs and of trits: the largest magnitude of n numbers; inf or a NaN
     * if one is not finite. lane: the largest sum of the magnitudes of four, or
     * of two, that meet in a table. */
    float (*largest[2])(int64_t n, const float *x, float *lane);
    /* Tables of n numbers times factor, rounded to nearest even; zeros up to a
     * multiple of 8. Tables are written `apart` bytes apart. high_first: the
     * first number belongs to the highest bits of a byte. Returns the sum. */
    int32_t (*tables)(lb_dotpair_kind kind, int64_t n, const float *x,
                      float factor, bool high_first, uint8_t *to,
                      int64_t apart);
    /* From turned codes, [byte][32 rows], as dotturn.h makes them; bytes is a
     * multiple of bits. All memory is aligned to 32 bytes. */
    void (*index)(lb_dotpair_kind kind, int64_t bytes, const uint8_t *turned,
                  uint8_t *to);
    /* c[i*ldc + j] = fma((base[i] + slope * t) * ws[j], scale[i], c or, if
     * first, 0), where t is the sum of what tables say, for rows <= MR and all
     * columns. */
    void (*dots)(lb_dotpair_kind kind, int rows, int64_t bytes,
                 const uint8_t *tables, const uint8_t *codes, float slope,
                 const lb_dotpair_head *head, const float *ws, bool first,
                 float *c, int64_t ldc);
} lb_dotpair;

/* NULL: this level has none. */
const lb_dotpair *lb_dotpair_for(const lb_cpu *cpu);

#if defined(__x86_64__)
extern const lb_dotpair lb_dotpair_avx2;
#endif

#endif
