/* dotbyte_ask.h - how tiles ask for what comes next (lb_dotbyte_ask). */
#ifndef LB_DOTBYTE_ASK_H
#define LB_DOTBYTE_ASK_H

#include "kernels/dotbyte.h"

/* Quads with which lines of the same column are asked for; without any more of
 * these it is w that is, where it is read. */
typedef struct {
    uintptr_t at;
    int64_t step;
} lb_tile_asking;

/* So many of `quads`. */
static inline int64_t lb_tile_ask_next(lb_dotbyte_ask *ask, const uint8_t *w,
                                       int64_t quads, lb_tile_asking *a)
{
    *a = (lb_tile_asking){(uintptr_t)w, 0};
    if (!ask || !ask->columns) return quads;
    if (ask->left < quads) quads = ask->left;
    *a = (lb_tile_asking){ask->at, ask->step};
    ask->at += (uintptr_t)(quads * ask->step);
    ask->left -= quads;
    if (ask->left > 0) return quads;
    ask->at += (uintptr_t)(ask->column - ask->rows * ask->step);
    ask->left = ask->rows;
    ask->columns--;
    return quads;
}

#endif
