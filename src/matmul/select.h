/* select.h - which algorithm multiplies which operands.
 *
 * The choice is data, the table in select.c: {level, codes, orientation,
 * precision, M} -> {T, digits, algorithm}. Rows are tried in order; the first
 * that matches is used. tests/golden/selection.txt freezes what follows from it
 * for every level and format.
 */
#ifndef LB_SELECT_H
#define LB_SELECT_H

#include "matmul/weights.h"

/* w is set if the algorithm multiplies codes. */
lb_choice lb_algorithm_for(const lb_product *p, const lb_cpu *cpu,
                           lb_weights *w);

/* The most rows of x, of one orientation, precision and width of codes, for
 * which gemv is the fastest at a level. */
int64_t lb_gemv_rows(lb_level level, bool along, lb_precision precision,
                     int bits);

#endif
