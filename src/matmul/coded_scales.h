/* coded_scales.h - where the scales of packed weights go, in products that
 * round x to whole numbers.
 *
 * Scales that depend on the row alone are multiplied with its results. If they
 * depend on the depth alone, x takes them before it is rounded. If they depend
 * on both, it is up to the panels (panels.h): blocks of the depth are summed
 * one by one, or weights of 16 bits take ratios of scales.
 */
#ifndef LB_CODED_SCALES_H
#define LB_CODED_SCALES_H

#include "matmul/coded.h"

typedef struct lb_scales_way {
    bool in_x; /* they depend on the depth alone, */
    bool in_w; /* or also on it */
} lb_scales_way;

lb_scales_way lb_scales_way_of(const lb_coded *c);

/* Of a block of rows. */
typedef struct lb_scales {
    const lb_cpu *cpu;
    lb_scales_way way;
    lb_coded c;       /* of the batch; knows where scales are that were read */
    int64_t first, n; /* rows */
    float *row;       /* their scales, if not in_w */
    float shrink;     /* in_x: what these are multiplied with, */
    float *factor;    /* the scales of a panel, */
    int64_t kc;       /* and its depth */
    float *read;      /* in_w: those that had to be read, */
    bool reads;       /* if there is room for all */
} lb_scales;

/* Places what `most` rows of a depth need at room, if that is given; returns
 * the bytes. kc: depth of a panel. */
size_t lb_scales_room(const lb_cpu *cpu, const lb_coded *c, int64_t kc,
                      int64_t most, int64_t depth, lb_scales *s, char *room);
/* Rows [j, j + n), of all of the depth, are what follows is about. */
void lb_scales_rows(lb_scales *s, int64_t j, int64_t n, int64_t depth);
/* The scales of depth [k, k + n), if in_x. */
const float *lb_scales_factor(const lb_scales *s, int64_t k, int64_t n);

/* Lines of a cache for so many bytes: where they are, if there is room. */
static inline void *lb_carve(char *room, size_t *used, int64_t bytes)
{
    void *const at = room ? room + *used : NULL;
    *used += (size_t)lb_ceil_div(bytes, 64) * 64;
    return at;
}

#endif
