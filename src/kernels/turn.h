/* turn.h - transposes a block of elements, both sides in the first cache. */
#ifndef LB_TURN_H
#define LB_TURN_H

#include <stddef.h>
#include <stdint.h>

/* dst[c][r] = src[r][c] for r < rows, c < cols; src and dst are the bytes from
 * one row to the next, size those of an element: 1, 2, 4 or 8. */
void lb_turn(size_t size, const char *s, int64_t src, char *d, int64_t dst,
             int64_t rows, int64_t cols);

#endif
