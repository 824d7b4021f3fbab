/* dotturn.h - codes of one or two bits, turned: a byte has codes of one row of
 * w, one after the other in depth, and those of 32 rows lie side by side. That
 * is what dotpair.h looks up.
 *
 *   turned   [byte][32 rows of w]
 *
 * Where the depth runs along memory, bytes are turned as they are. Where it
 * runs across, a byte of a line has codes of several rows, and what is turned
 * are the fields of as many lines; a strip of 32 rows then has those of the
 * same place in 32 bytes of a line.
 */
#ifndef LB_DOTTURN_H
#define LB_DOTTURN_H

#include <stdint.h>

#include "lowbit_ext.h"

enum {
    LB_DOTTURN_ROWS = 32,  /* of w, at once */
    LB_DOTTURN_BYTES = 16, /* of a row, that `along` takes a multiple of; */
    LB_DOTTURN_WIDE = 32   /* of a line, across, which become 8 / bits strips */
};

typedef struct lb_dotturn {
    /* to[b*32 + r] = byte b of row r, for 32 rows that are `step` bytes apart.
     * ahead: this is added to the addresses of what is asked for meanwhile;
     * 0: nothing. */
    void (*along)(const uint8_t *from, int64_t step, int64_t bytes,
                  uintptr_t ahead, uint8_t *to);
    /* to[s*apart + b*32 + r] = of n = 8 / bits lines, n*b the first and the
     * lowest, field s % n of their byte s / n * 32 + r, for `wide` times n
     * strips; lines are `step` bytes apart, apart is a multiple of 32. */
    void (*across)(int bits, const uint8_t *from, int64_t step, int64_t bytes,
                   int64_t wide, uint8_t *to, int64_t apart);
} lb_dotturn;

/* NULL: this level has none. */
const lb_dotturn *lb_dotturn_for(const lb_cpu *cpu);

#if defined(__x86_64__)
extern const lb_dotturn lb_dotturn_avx2;
#endif

#endif
