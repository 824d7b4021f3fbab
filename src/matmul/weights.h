/* weights.h - products with weights that stay packed (coded.h).
 *
 * One operand, the weights, has n rows of codes; the other, x, has m rows and
 * is read as f32 from any format. The algorithms, and where the table in
 * select.c uses them:
 *
 *   coded thin     gemv: codes are decoded in registers; memory decides
 *   integer rows   gemv of formats whose values are integers times scales
 *   gemm           FAST, FASTEST: x as one or two 8-bit digits and codes as
 *                  bytes, or both as 16-bit integers (panels.h)
 *   coded exact    HIGHEST, K along memory, up to 8 or 12 rows: codes become
 *                  f32 in registers
 *   gemm f32       HIGHEST, for all others: codes become panels of f32
 *
 * All others are decoded, and multiplied as any other f32 matrix.
 */
#ifndef LB_WEIGHTS_H
#define LB_WEIGHTS_H

#include "matmul/coded.h"
#include "matmul/product.h"

typedef struct lb_weights {
    const lb_source *x, *w;
    int64_t m, n; /* rows of x, rows of w */
    bool swapped; /* w is A of the product: its result is (n, m) */
    lb_coded coded;
} lb_weights;

/* Finds the operand; false: neither has codes that can be used, and none is
 * packed that could be decoded to less than f32. coded.bits is 0 if it is to be
 * decoded; coded.along then says how. */
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

/* A way to multiply; select.c says when it is used. */
typedef struct lb_algorithm {
    const char *name;
    /* Fills p->grid, which run finds, and p->tile. */
    void (*plan)(lb_product *p, const lb_weights *w, const lb_call *c,
                 lb_plan *plan);
    void (*run)(const lb_product *p, const lb_work *w);
} lb_algorithm;

extern const lb_algorithm lb_coded_thin, lb_integer_rows, lb_gemm,
    lb_coded_exact;
/* Those for whatever else comes (product.h); they look at no weights. */
extern const lb_algorithm lb_gemm_f32, lb_few, lb_thin, lb_plain;

#endif
