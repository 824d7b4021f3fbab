/* dotlut.h - products with codes of 1 bit by lookup tables, in the panels of
 * dotbyte.h: x as 16-bit integers, weights 1 and -1.
 *
 * Four codes and the numbers of x that belong to them are a sum; of the 16
 * sums that there can be, half are the opposites of the others. So four codes
 * become the index of a table and a sign, and eight numbers of x a table of 16
 * sums, which one shuffle of bytes looks up. Two indices next to each other
 * are of one row of w, and are multiplied by their signs and added in one
 * operation.
 *
 *   x   tables [8 numbers][row][32 bytes]: the lower bytes of the sums, then
 *       the higher ones: entries 0 to 7 are of the first four numbers, 8 to 15
 *       of the last. The last of the four is added, the first three as the
 *       bits of the entry say. Sums are 128 * 256 + 128 larger than they are,
 *       so that bytes are not negative.
 *   w   a head, then [byte of codes][two times 16 rows][32 indices, 32 signs].
 *       The head has what sums of bytes, 128 too large, begin with, as 16 bits:
 *       [two times 16 rows][16 sums, 32 bytes of nothing].
 *
 * Bytes of w, as dotbyte.h has them, are 0 for -1 and 2 for 1, or the other way
 * round. A panel has one block of x.
 */
#ifndef LB_DOTLUT_H
#define LB_DOTLUT_H

#include "kernels/dotbyte.h"

enum {
    LB_DOTLUT_NR = 32,
    LB_DOTLUT_EACH = 8,   /* numbers of a table, */
    LB_DOTLUT_TABLE = 32, /* and its bytes */
    LB_DOTLUT_OFFSET = 128 * 256 + 128,
    LB_DOTLUT_BYTE = 128, /* bytes of a panel of w, for a byte of codes, */
    LB_DOTLUT_HEAD = 128, /* and of its head */
    /* Sums of four are at most 65535 - OFFSET. 2 * KC / 8 bytes of at most 128
     * have 16 bits. */
    LB_DOTLUT_MOST_X = (65535 - LB_DOTLUT_OFFSET) / 4
};

/* By four codes: the entry of a table, and the sign. */
typedef struct lb_dotlut_index {
    uint8_t entry[16];
    int8_t sign[16];
} lb_dotlut_index;

/* reversed: the first code is the highest bit. */
static inline lb_dotlut_index lb_dotlut_index_of(const lb_dotbyte_codes *c,
                                                 bool reversed)
{
    lb_dotlut_index t;
    const int flip = c->number[0] > c->number[1] ? 15 : 0;
    for (int v = 0; v < 16; v++) {
        const int order =
            reversed ? (v & 1) << 3 | (v & 2) << 1 | (v & 4) >> 1 | (v & 8) >> 3
                     : v;
        const int u = order ^ flip;
        t.entry[v] = (uint8_t)(u < 8 ? 7 - u : u - 8);
        t.sign[v] = (int8_t)(u < 8 ? -1 : 1);
    }
    return t;
}

extern const lb_dotbyte lb_dotlut_ref;
#if defined(__x86_64__)
extern const lb_dotbyte lb_dotlut_avx2;
#endif

#endif
