/* gemm.h - f32 matrix products on packed panels.
 *
 * C (m,n) += A (m,k) x B (k,n), with A and B first packed into panels that the
 * micro-kernel reads in order. Whoever packs may decode on the way: that is
 * how every format is multiplied. Raw pointers only, no allocation.
 *
 *   A panel: mr rows,    a[kk*mr + i]      B panel: nr columns, b[kk*nr + j]
 *
 * Rows and columns past the edge are zeros in the panels and are not stored.
 */
#ifndef LB_GEMM_H
#define LB_GEMM_H

#include <stdint.h>

#include "lowbit_ext.h"

enum {
    LB_GEMM_MAX_MR = 16,
    LB_GEMM_MAX_NR = 64,
    LB_GEMM_KC = 256 /* depth of a panel: sums are formed panel by panel, in
                      * the same order on every level and thread count */
};

typedef struct lb_gemm_kernel {
    const char *name; /* "gemm avx2 6x16" */
    int mr, nr;
    /* c[i*ldc + j] (+)= sum over kk < k of a[kk*mr + i] * b[kk*nr + j], for
     * i < m <= mr, j < n <= nr; first: c is set, not added to. b is
     * aligned to its nr floats, at most to 64 bytes. Each sum is formed over
     * kk in order from zero, with fused multiply-adds on levels that have
     * them, and then added to c: the bits of an element do not depend on m, n,
     * i or j. */
    void (*tile)(int64_t k, const float *a, const float *b, float *c,
                 int64_t ldc, int m, int n, bool first);
} lb_gemm_kernel;

/* The strongest kernel of a level. */
const lb_gemm_kernel *lb_gemm_kernel_for(const lb_cpu *cpu);

extern const lb_gemm_kernel lb_gemm_ref;
#if defined(__x86_64__)
extern const lb_gemm_kernel lb_gemm_avx2, lb_gemm_avx512;
#elif defined(__aarch64__)
extern const lb_gemm_kernel lb_gemm_neon;
#endif

/* Packs rows [0, m) x depth [0, k) of a matrix at src with the given strides
 * (in floats) into ceil(m/r) panels of r rows: dst[(p*k + kk)*r + i], zeros
 * past m. The same function packs A (row stride, column stride) and B (column
 * stride, row stride). */
void lb_gemm_pack(const float *src, int64_t row_stride, int64_t col_stride,
                  int64_t m, int64_t k, int r, float *dst);

/* All tiles of packed A (m rows) and packed B (n columns), depth k, into c. */
void lb_gemm_block(const lb_gemm_kernel *kernel, int64_t m, int64_t n,
                   int64_t k, const float *a, const float *b, float *c,
                   int64_t ldc, bool first);

#endif
