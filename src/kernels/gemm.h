/* gemm.h - f32 matrix products on packed panels.
 *
 * C (m,n) += A (m,k) x B (k,n), with A and B first packed into panels that the
 * micro-kernel reads in order. Whoever packs may decode on the way: that is
 * how every format is multiplied. Raw pointers only, no allocation.
 *
 *   A panel: h rows,     a[kk*h + i]       B panel: nr columns, b[kk*nr + j]
 *
 * Rows are shared out evenly: each panel of A has h of them, at most mr, as
 * lb_gemm_height says, so that 8 rows are 4 and 4, not 6 and 2. Columns of B
 * past the edge are zeros and are not stored.
 */
#ifndef LB_GEMM_H
#define LB_GEMM_H

#include <stdint.h>

#include "lowbit_ext.h"

enum {
    LB_GEMM_MAX_MR = 16,
    LB_GEMM_MAX_NR = 64,
    LB_GEMM_KC = 256, /* depth of a panel: sums are formed panel by panel, in
                       * the same order on every level and thread count */
    LB_GEMM_REST = 64 /* of depth, that is packed with the panel before it: a
                       * tile is added to c once more while it is in L1 */
};

typedef struct lb_gemm_kernel {
    const char *name; /* "gemm avx2 6x16" */
    int mr, nr;
    /* c[i*ldc + j] (+)= sum over kk < k of a[kk*m + i] * b[kk*ldb + j], for
     * i < m <= mr, j < n <= nr; first: c is set, not added to. All nr floats
     * of a row of b are read, whatever n is. Each sum is formed over
     * kk in order from zero, with fused multiply-adds on levels that have
     * them, and then added to c: the bits of an element do not depend on m, n,
     * i or j. */
    void (*tile)(int64_t k, const float *a, const float *b, int64_t ldb,
                 float *c, int64_t ldc, int m, int n, bool first);
    /* Packs a whole panel of B as lb_gemm_pack does, of nr rows that run along
     * the depth; NULL: nothing is faster than that. */
    void (*pack)(const float *src, int64_t row_stride, int64_t k, float *dst);
} lb_gemm_kernel;

/* The strongest kernel of a level. */
const lb_gemm_kernel *lb_gemm_kernel_for(const lb_cpu *cpu);

extern const lb_gemm_kernel lb_gemm_ref;
#if defined(__x86_64__)
extern const lb_gemm_kernel lb_gemm_avx2, lb_gemm_avx512;
#elif defined(__aarch64__)
extern const lb_gemm_kernel lb_gemm_neon;
#endif

/* The rows of the first panel where m > 0 are left and panels have at most mr:
 * as even as can be. */
static inline int lb_gemm_height(int64_t m, int mr)
{
    const int64_t panels = (m + mr - 1) / mr;
    return (int)((m + panels - 1) / panels);
}

/* Packs rows [0, m) x depth [0, k) of a matrix at src with the given strides
 * (in floats) into ceil(m/r) panels of r rows: dst[p*r*step + kk*r + i], zeros
 * past m. step is k, or more where this is some of the depth of panels. This is
 * B, whose rows here are columns of the product. */
void lb_gemm_pack(const float *src, int64_t row_stride, int64_t col_stride,
                  int64_t m, int64_t k, int r, float *dst, int64_t step);
/* The same into panels of even heights, without zeros: A. The panel of row i
 * begins at dst + i*k. */
void lb_gemm_pack_rows(const float *src, int64_t row_stride, int64_t col_stride,
                       int64_t m, int64_t k, int mr, float *dst);

/* What will be read, or written, when all tiles are done: the panel of b behind
 * the last, and `lines` lines of memory of each of some rows. They may lie past
 * the end of what there is. */
typedef struct lb_gemm_soon {
    bool panel;
    uintptr_t at;
    int64_t step; /* bytes from row to row */
    int64_t rows, lines;
} lb_gemm_soon;

/* The depth that is packed together where `left` is left of it: a panel, or
 * two, the last of which is short. */
static inline int64_t lb_gemm_depth(int64_t left)
{
    return left <= LB_GEMM_KC + LB_GEMM_REST ? left : LB_GEMM_KC;
}
/* How many times that is, for all of a depth. */
static inline int64_t lb_gemm_depths(int64_t k)
{
    const int64_t most = k - LB_GEMM_REST;
    return most > LB_GEMM_KC ? (most + LB_GEMM_KC - 1) / LB_GEMM_KC : 1;
}

/* All tiles of packed A (m rows) and B (n columns), depth k, into c, each panel
 * by panel where k is more than one. Column j,
 * a multiple of nr, of B begins at b + j*step: packed panels have ldb = nr and
 * step = k; of a block that lies row by row, ldb floats to a row, step is 1,
 * and up to nr floats past its end are read. soon is asked for meanwhile, a few
 * lines before each tile, where that holds up nothing; NULL: the panel. */
void lb_gemm_block(const lb_gemm_kernel *kernel, int64_t m, int64_t n,
                   int64_t k, const float *a, const float *b, int64_t ldb,
                   int64_t step, float *c, int64_t ldc, bool first,
                   const lb_gemm_soon *soon);

#endif
