/* product.h - products of matrices, by one of several algorithms.
 *
 *   C[i][j] = sum over kk < k of A[i][kk] * B[j][kk], for each of a batch
 *
 * gemm    f32: blocks of the result over panels and a micro-kernel
 *         (kernels/gemm.h). A sum is formed in panels of LB_GEMM_KC.
 * few     f32 where A or B has at most LB_FEW rows: the other is not packed
 *         (kernels/few.h). A sum is formed in panels of LB_FEW_KC.
 * thin    f32 where A or B has at most LB_THIN rows: the other is read as it
 *         lies (kernels/gemv.h). A sum is formed in panels of LB_GEMV_KC.
 * plain   f64 and integers (wrapping): packed, in portable C.
 *
 * The algorithm is chosen by a table (select.c) from type, shape and level
 * alone and fixes the order of each sum; the grid of blocks, which may depend
 * on the threads, does not touch it. So bits depend on shape and level, never
 * on threads or strides, and on the format only where codes are multiplied
 * without being decoded to memory first (weights.h), which orders sums in its
 * own way.
 *
 * An f32 element is within (256 + k/256) * 2^-24 of the sum of its products'
 * magnitudes, before its one rounding to the result's dtype (test_dot.c).
 */
#ifndef LB_PRODUCT_H
#define LB_PRODUCT_H

#include "core/core.h"
#include "matmul/matrix.h"

enum { LB_THIN = 1, LB_FEW = 32 };
enum { LB_GRID = 1536 }; /* bytes; the ways assert that theirs fit */

/* T: what an inner loop multiplies. Integer types multiply x rounded to digits
 * of 8 bits, or to 16 bits, by weights that are rounded only if T cannot hold
 * them; products and the sums of a panel are exact. */
typedef enum lb_operand_type {
    LB_T_F64,
    LB_T_U64,
    LB_T_F32,
    LB_T_I16,
    LB_T_I8
} lb_operand_type;

typedef struct lb_choice {
    lb_operand_type type;
    int digits; /* of x, 8 bits each; 0 for floats and u64 */
    const struct lb_algorithm *algorithm;
} lb_choice;

/* For lb_explain: rows of x and of w in a tile of the result, and the depth
 * that is summed before it is added to the result; 0: not in tiles. */
typedef struct lb_tile_sizes {
    int64_t mr, nr, kc;
} lb_tile_sizes;

typedef struct lb_product lb_product;
struct lb_product {
    const lb_source *a, *b; /* (m,k) and (n,k), of the same type */
    int64_t batch, m, n, k;
    bool in_place; /* the result is (batch, m, n) as it lies, in the type */
    /* Else this writes block (m,n) at (i,j), n elements to a row. */
    void (*put)(const lb_product *, const lb_work *, int64_t batch, int64_t i,
                int64_t m, int64_t j, int64_t n, const void *tile);
    const void *user;       /* for put */
    lb_precision precision; /* asked for; not DEFAULT */
    /* What planning finds out: the algorithm, and in LB_GRID bytes, aligned as
     * for any type, how it divides the product. */
    lb_choice choice;
    lb_tile_sizes tile;
    void *grid;
};

/* p stays where it is, with what it points to, until it has run. */
void lb_product_plan(lb_product *p, const lb_call *c, lb_plan *plan);
void lb_product_run(const lb_product *p, const lb_work *w);

/* The dtype of a result, or the sentence. Floats of any dtypes may meet;
 * everything else must be equal. */
bool lb_product_dtype(lb_ctx *cx, const char *who, lb_dtype x, lb_dtype y,
                      lb_dtype preferred, lb_precision precision,
                      lb_dtype *out);
/* What a call asks for, where its params have this. */
lb_precision lb_product_precision(const lb_call *c, lb_precision own);
/* Two operands as users give them may meet as they are. */
bool lb_product_meets(lb_array *const *in);
/* What products and sums are formed in: f64 if an operand or the result is,
 * f32 for other floats, the bits of integers as u64. */
lb_ctype lb_product_type(const lb_call *c);
/* The type in which put hands tiles to lb_tile_write. */
lb_ctype lb_product_tile(const lb_call *c);
/* The result's elements are of the type themselves. */
bool lb_product_direct(const lb_call *c);

static inline int64_t lb_round_up(int64_t n, int64_t unit)
{
    return lb_ceil_div(n, unit) * unit;
}

/* n floats in whole cache lines. */
static inline int64_t lb_line_floats(int64_t n)
{
    return lb_round_up(n, 16);
}

#endif
