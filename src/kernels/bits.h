/* bits.h - numbers of 1 or 2 bits in bytes, the first in the lowest bits.
 *
 *   2 bits   byte 0:  3 3 2 2 1 1 0 0   byte 1:  7 7 6 6 ..
 *   1 bit    byte 0:  7 6 5 4 3 2 1 0
 */
#ifndef LB_BITS_H
#define LB_BITS_H

#include "lowbit_ext.h"

/* Numbers at, at + 1, .. of a row of bytes. */
void lb_bits_get(int bits, const uint8_t *row, int64_t at, int64_t n,
                 uint8_t *out);
/* Writes them. A byte that is begun is filled up with fillers, so numbers that
 * share one are to be written in their order. */
void lb_bits_put(int bits, uint8_t filler, const uint8_t *in, int64_t n,
                 uint8_t *row, int64_t at);

#endif
