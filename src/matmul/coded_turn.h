/* coded_turn.h - codes of one or two bits as kernels/dotturn.h turns them:
 * strips of 32 rows of w.
 *
 * Where the depth runs across memory, a strip has every eighth, or fourth, of
 * the rows of a band: those whose codes have the same place in the bytes of a
 * line. What was summed in the order of strips is sorted in the end.
 */
#ifndef LB_CODED_TURN_H
#define LB_CODED_TURN_H

#include "kernels/dotturn.h"
#include "matmul/coded.h"

/* Of some rows of w. */
typedef struct lb_turning {
    const lb_dotturn *kernel;
    lb_coded c;
    int64_t j0, n; /* rows */
    uint8_t *own;  /* room for what is not whole, which is copied */
} lb_turning;

/* Bytes of that room, for so much of the depth. */
int64_t lb_turn_room(const lb_coded *c, int64_t depth);

/* Rows that are turned at once. */
static inline int64_t lb_turn_band(const lb_coded *c)
{
    return c->along ? (int64_t)LB_DOTTURN_ROWS
                    : (int64_t)LB_DOTTURN_WIDE * 8 / c->bits;
}

/* Rows from j on, of the depth [k, k + n), filled up with zeros to a multiple
 * of eight; for rows that are not there, codes of no meaning. */

/* A strip. ahead: bytes from here to what is wanted next, or 0. */
void lb_turn_along(const lb_turning *t, int64_t j, int64_t k, int64_t n,
                   int64_t ahead, uint8_t *to);
/* The strips of so many rows, `apart` bytes apart; j is a multiple of a band,
 * and rows is if more follow. */
void lb_turn_across(const lb_turning *t, int64_t j, int64_t rows, int64_t k,
                    int64_t n, uint8_t *to, int64_t apart);

/* n numbers, of whole bands in the order of strips, in that of rows. */
void lb_turn_sort(const lb_coded *c, int64_t n, const float *from, float *to);
/* And back; zeros for those that are not. */
void lb_turn_strips(const lb_coded *c, int64_t n, const float *from,
                    int64_t room, float *to);

#endif
