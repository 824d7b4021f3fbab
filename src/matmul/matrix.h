/* matrix.h - an operand of a product as a batch of matrices, rows x depth.
 *
 * Both operands of a product lie with the summed axes inside: C[i][j] is the
 * sum over kk of A[i][kk] * B[j][kk]. Which of the two axes runs along memory
 * is the view's affair: blocks come with their strides.
 */
#ifndef LB_MATRIX_H
#define LB_MATRIX_H

#include "lowbit_ext.h"
#include "prims/dims.h"

typedef struct lb_block {
    const void *p;
    int64_t rs, ks; /* from row to row and along the depth, in elements */
} lb_block;

/* Where a product gets its blocks from: rows [r, r + m) and depth [k, k + kc)
 * of matrix number `batch`, in the type that is computed in: f32, f64 or, for
 * the bits of integers, u64. tmp has room for m * kc elements. */
typedef struct lb_source lb_source;
struct lb_source {
    lb_block (*get)(const lb_source *, const lb_cpu *, int64_t batch, int64_t r,
                    int64_t m, int64_t k, int64_t kc, void *tmp);
    lb_ctype type;
    bool across;   /* rows of a block are side by side: rs is 1, or would be if
                    * they were */
    bool in_place; /* blocks are where they lie, with rs and ks; no tmp */
    int64_t rs, ks;
    const struct lb_matrix *matrix; /* NULL: it is not the view of an array */
};

typedef struct lb_matrix lb_matrix;
struct lb_matrix {
    lb_source source; /* first: get casts */
    const lb_array *a;
    lb_dims batch, row, depth;
};

/* After a, type and the dims (ended) are set. */
void lb_matrix_end(lb_matrix *m);

/* n elements of a from one on, counted from its first, stride apart, in the
 * type. */
void lb_line_read(const lb_cpu *cpu, const lb_array *a, int64_t at,
                  int64_t stride, int64_t n, lb_ctype type, void *to);

#endif
