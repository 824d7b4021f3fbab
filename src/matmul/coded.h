/* coded.h - an operand of a product whose codes are multiplied as they lie.
 *
 *   number = level(code) * scale
 *
 * Codes lie in lines: stored rows, or pieces of a single one, that begin with a
 * byte and a scale. A matrix is one line after the other, either way round:
 *
 *   along   the depth runs along lines: x @ W^T with W (out, in)
 *   else    its rows do, and the depth from line to line: x @ W, W (in, out)
 */
#ifndef LB_CODED_H
#define LB_CODED_H

#include "core/core.h"
#include "matmul/matrix.h"

/* A store as lines. */
typedef struct lb_lines {
    int64_t length, bytes; /* of a line: elements, bytes of codes */
    int64_t g;             /* elements that share a scale; 0: the whole line */
} lb_lines;

typedef struct lb_coded {
    const lb_store *store;
    int bits;        /* of a code: 8, 4, 2 or 1 */
    bool high_first; /* the first code of a byte has its high bits */
    bool along;
    lb_levels numbers;
    lb_lines lines;
    const uint8_t *bytes; /* of line 0, position 0 */
    int64_t first;        /* scale of line 0, position 0 */
    /* From a line of the matrix to its next; 0 or negative in some views. */
    int64_t byte_step, scale_step;
    const float *scale; /* where scale 0 lies, as it is to be used; NULL: it
                         * must be read, or there is none */
} lb_coded;

/* False: the source is no such matrix, and is to be decoded. Codes and scales
 * are taken as they are stored: the array's dtype rounds reads, not products.
 */
bool lb_coded_of(const lb_cpu *cpu, const lb_source *s, lb_coded *c);
/* Matrix number `batch`; c is number 0. */
lb_coded lb_coded_at(const lb_coded *c, const lb_source *s, int64_t batch);

/* Where the code of a place of a line is, which a byte begins with; and the
 * bytes of n places. */
static inline const uint8_t *lb_coded_codes(const lb_coded *c, int64_t line,
                                            int64_t place)
{
    return c->bytes + line * c->byte_step + place * c->bits / 8;
}
static inline int64_t lb_coded_line_bytes(const lb_coded *c, int64_t n)
{
    return lb_ceil_div(n * c->bits, 8);
}

/* Scales [block, block + n) of a line, as factors of levels: where they lie, or
 * read to tmp. There is one for all positions if lines.g is 0, and 1 if
 * there are none. */
const float *lb_coded_scales(const lb_coded *c, const lb_cpu *cpu, int64_t line,
                             int64_t block, int64_t n, float *tmp);

/* Asks for the codes of n positions from `at` on, of some lines, to be in L2.
 */
void lb_coded_fetch(const lb_coded *c, int64_t line, int64_t lines, int64_t at,
                    int64_t n);

#endif
