/* gemm_avx512.c - the 14x32 micro-kernel for AVX-512F.
 *
 *            b: 32 columns          28 accumulators, two loads of b, one
 *          +--------+--------+      broadcast of a at a time: 31 of the 32
 *   a: 14  | r[i][0]| r[i][1]|      registers. 28 FMAs against 16 loads per
 *   rows   +--------+--------+      step keep both FMA units busy.
 *
 * Fewer rows run in the same order over kk, so their bits are the same.
 */
#include "kernels/gemm.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

enum { MR = 14, NR = 32 };

/* The first n of 16 lanes. */
LB_INLINE __mmask16 lanes(int n)
{
    return (__mmask16)(n <= 0 ? 0 : n >= 16 ? 0xffff : (1 << n) - 1);
}

LB_TARGET("avx512f")
LB_INLINE void put(float *c, __mmask16 mask, __m512 sum, bool first)
{
    if (!first) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, c), sum);
    _mm512_mask_storeu_ps(c, mask, sum);
}

/* rows is a constant where this is inlined; m <= rows. */
LB_TARGET("avx512f")
LB_INLINE void tile_rows(const int rows, int64_t k, const float *a,
                         const float *b, float *c, int64_t ldc, int m, int n,
                         bool first)
{
    __m512 r[MR][2];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        r[i][0] = _mm512_setzero_ps();
        r[i][1] = _mm512_setzero_ps();
    }
    for (int64_t kk = 0; kk < k; kk++) {
        const __m512 b0 = _mm512_load_ps(b);
        const __m512 b1 = _mm512_load_ps(b + 16);
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m512 x = _mm512_set1_ps(a[i]);
            r[i][0] = _mm512_fmadd_ps(x, b0, r[i][0]);
            r[i][1] = _mm512_fmadd_ps(x, b1, r[i][1]);
        }
        a += MR;
        b += NR;
    }
    const __mmask16 mask0 = lanes(n), mask1 = lanes(n - 16);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        if (i >= m) continue;
        put(c + i * ldc, mask0, r[i][0], first);
        put(c + i * ldc + 16, mask1, r[i][1], first);
    }
}

LB_TARGET("avx512f")
static void tile(int64_t k, const float *a, const float *b, float *c,
                 int64_t ldc, int m, int n, bool first)
{
    if (m > 8) {
        tile_rows(14, k, a, b, c, ldc, m, n, first);
    } else if (m > 4) {
        tile_rows(8, k, a, b, c, ldc, m, n, first);
    } else {
        tile_rows(4, k, a, b, c, ldc, m, n, first);
    }
}

const lb_gemm_kernel lb_gemm_avx512 = {
    .name = "gemm avx512 14x32", .mr = MR, .nr = NR, .tile = tile};
#endif
