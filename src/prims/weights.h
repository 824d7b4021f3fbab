/* weights.h - products with weights that stay packed (coded.h).
 *
 * One operand, the weights, has n rows of codes; the other, x, has m rows of
 * numbers and is read as f32 from whatever it is stored in. Ten ways:
 *
 *   coded thin     m is 1, or so small that rows are faster one by one or,
 *                  across, two or at HIGHEST a few at once, and not coded
 *                  table: codes are decoded in registers, and memory decides
 *   coded exact    HIGHEST, where the depth runs along memory: codes become f32
 *                  in registers, next to a few rows of x at a time
 *   coded panel    the same for more rows, up to LB_FEW: codes become panels of
 *                  f32 first (product_packed.c), which are used more often
 *   coded across   HIGHEST, where it runs across: codes become f32 in L1
 *   coded block    FAST and FASTEST: x becomes whole numbers and a scale for
 *                  each panel of a row, codes become whole numbers too, and
 *                  their products are summed as such
 *   coded table    the same for codes of one bit and a row or two: sums of four
 *                  are looked up; another where the depth runs across
 *   coded pairs    the same for more rows, and for trits: two such sums, or of
 *                  two numbers, are looked up next to each other
 *   coded outer    the same for some rows, where the depth runs across
 *   coded byte     the same in bytes: FASTEST where a level multiplies them
 *                  faster, and FAST where two bytes are faster than 16 bits
 *
 * What fits none is decoded, and multiplied as any other f32 matrix.
 */
#ifndef LB_WEIGHTS_H
#define LB_WEIGHTS_H

#include "prims/coded.h"
#include "prims/product.h"

typedef struct lb_weights {
    const lb_source *x, *w;
    int64_t m, n; /* rows of x, rows of w */
    bool swapped; /* w is A of the product: its result is (n, m) */
    lb_coded coded;
} lb_weights;

/* Finds the operand; false: neither has codes that can be used. */
bool lb_weights_of(const lb_product *p, const lb_cpu *cpu, lb_weights *w);

/* Writes x-rows [i, i + m) by w-rows [j, j + n) of a result: tile[i*ld + j].
 * turned: room for m * n floats, used if the result lies the other way. */
void lb_weights_put(const lb_product *p, const lb_weights *w, const lb_work *to,
                    int64_t batch, int64_t i, int64_t m, int64_t j, int64_t n,
                    const float *tile, int64_t ld, float *turned);

/* Floats from row to row of such a tile of n columns: a power of 2 would make
 * rows fall together in the cache. */
static inline int64_t lb_put_apart(int64_t n)
{
    return n + 16;
}

/* m rows of x in groups of sizes that differ by one at most: the first row of
 * group number `at`. */
static inline int64_t lb_group_row(int64_t m, int64_t groups, int64_t at)
{
    return at * m / groups;
}

/* A way to multiply; the first of the list in product.c that fits is taken. */
typedef struct lb_weights_way {
    /* Whether it is one for this product, and has a kernel at the level. */
    bool (*fits)(const lb_product *p, const lb_weights *w, const lb_cpu *cpu);
    /* Fills p->grid, too, which run finds. */
    void (*plan)(const lb_product *p, const lb_weights *w, const lb_call *c,
                 lb_plan *plan);
    void (*run)(const lb_product *p, const lb_work *w);
} lb_weights_way;

extern const lb_weights_way lb_coded_table, lb_coded_table_across,
    lb_coded_pairs, lb_coded_thin, lb_coded_byte, lb_coded_outer,
    lb_coded_block, lb_coded_panel, lb_coded_exact, lb_coded_across;
/* Those for whatever else comes (product.h); they look at no weights. */
extern const lb_weights_way lb_packed, lb_few, lb_thin, lb_plain;

#endif
