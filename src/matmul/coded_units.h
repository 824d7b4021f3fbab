/* coded_units.h - how products with packed weights are cut into units.
 *
 * A unit is one block of the result: rows of x by rows of w. What a block holds
 * never decides in which order a sum is formed, so the number of threads may
 * decide how many there are.
 */
#ifndef LB_CODED_UNITS_H
#define LB_CODED_UNITS_H

#include "matmul/weights.h"

/* What a way of multiplying wants of its blocks. */
typedef struct lb_cut {
    int64_t most_m, most_n; /* rows of x and of w, at most */
    int64_t least_m;        /* no fewer rows of x, to have more blocks */
    int64_t grain;          /* blocks of w begin at multiples of this */
    int64_t shares;         /* blocks for each thread, if so many */
    int64_t work;           /* multiplications remain to each */
} lb_cut;

typedef struct lb_units {
    int64_t bm, bn, mb, nb; /* how many, and the sizes of one */
    int64_t n;              /* of all batches */
} lb_units;

typedef struct lb_unit {
    int64_t batch, i0, m, j0, n;
} lb_unit;

lb_units lb_units_of(const lb_product *p, const lb_call *c, const lb_weights *w,
                     const lb_cut *cut);
/* Which block a unit is. */
lb_unit lb_units_at(const lb_units *b, const lb_weights *w, int64_t unit);

#endif
