/* gemm_ref.c - the micro-kernel in portable C: the specification.
 *
 * Multiplications and additions, each rounded once; the compiler may put the
 * columns of a row into one vector, which changes no bit.
 */
#include "kernels/gemm.h"

enum { MR = 4, NR = 8 };

static void tile(int64_t k, const float *a, const float *b, int64_t ldb,
                 float *c, int64_t ldc, int m, int n, bool first)
{
    float sum[MR][NR] = {{0}};
    for (int64_t kk = 0; kk < k; kk++) {
        for (int i = 0; i < m; i++) {
            for (int j = 0; j < NR; j++) {
                sum[i][j] += a[kk * m + i] * b[kk * ldb + j];
            }
        }
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            float *const to = c + i * ldc + j;
            *to = first ? sum[i][j] : *to + sum[i][j];
        }
    }
}

const lb_gemm_kernel lb_gemm_ref = {
    .name = "gemm ref 4x8", .mr = MR, .nr = NR, .tile = tile};
