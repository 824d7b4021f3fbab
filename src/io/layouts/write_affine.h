/* write_affine.h - arrays of the affine formats in the tensors of other
 * programs: facts about a planned array, and its parts packed as they are. */
#ifndef LB_WRITE_AFFINE_H
#define LB_WRITE_AFFINE_H

#include "io/arrays/saver.h"
#include "io/jobs/move_array.h"

typedef struct lb_packed_facts {
    int bits;
    int64_t rows, row, group; /* of the last two axes; elements per scale */
    int64_t groups;           /* of a row */
    int64_t columns;          /* of a tile of fp8; its rows are group */
    lb_dtype scale;           /* none: nested */
    bool zero, bias, listed;
} lb_packed_facts;

/* False: not an affine array, or not by rows, or empty. */
bool lb_packed_facts_of(const lb_described *d, lb_packed_facts *f);

/* A plan for moving m to `bits` bits: of a format, with groups of `group`
 * (0: a row), and scales of that dtype. What quantizes again is set as well. */
void lb_packed_target(const lb_moving *m, int bits, int64_t group,
                      lb_dtype scale, lb_move_plan *to);
/* The bits that the codes of m need; 0: they are not integers. */
int lb_packed_bits(const lb_moving *m);
/* Elements of m that share a scale; the row, if all do. */
int64_t lb_packed_group(const lb_moving *m);
/* The dtype in which the scales of m are exact. */
lb_dtype lb_packed_scale(const lb_moving *m);
/* Whether all zero points of m are 2^(bits - 1) above the least code. */
bool lb_packed_symmetric(const lb_moving *m, int bits);

/* The codes of a as words (rows, words): element i of a row is at bit i * bits.
 */
lb_array *lb_packed_words(lb_ctx *cx, lb_array *a);
/* A scale or zero point per group, (rows, groups), of that dtype. zero NULL in
 * a: 2^(bits - 1). An error if a zero point has more bits than the codes. */
lb_array *lb_packed_entries(lb_ctx *cx, lb_array *a, const char *part,
                            const lb_packed_facts *f, lb_dtype dtype);
/* Zero points (rows, groups), packed along rows: (rows * bits / 32, groups). */
lb_array *lb_packed_zeros(lb_ctx *cx, lb_array *a, const lb_packed_facts *f);

#endif
