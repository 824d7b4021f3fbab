/* gemm_neon.c - the 6x16 micro-kernel for NEON, which every aarch64 has.
 *
 *            b: 16 columns              24 accumulators and four loads of b
 *          +-----+-----+-----+-----+    leave four of the 32 registers for
 *   a: 6   | r[i][0] ..    r[i][3] |    numbers of a, which are multiplied as
 *   rows   +-----+-----+-----+-----+    the lane of a register they lie in.
 *
 * The shape is that of AVX2. Fewer rows run in the same order over kk, so
 * their bits are the same.
 */
#include "kernels/gemm.h"

#if defined(__aarch64__)
#include "kernels/arm/neon.h"

enum { MR = 6, NR = 16, VECTORS = NR / 4 };

LB_INLINE void put(float *c, const float32x4_t *sum, int n, bool first)
{
    if (n == NR) {
        LB_UNROLL
        for (int v = 0; v < VECTORS; v++)
            vst1q_f32(c + 4 * v,
                      first ? sum[v] : vaddq_f32(vld1q_f32(c + 4 * v), sum[v]));
        return;
    }
    float s[NR];
    LB_UNROLL
    for (int v = 0; v < VECTORS; v++)
        vst1q_f32(s + 4 * v, sum[v]);
    for (int j = 0; j < n; j++)
        c[j] = first ? s[j] : c[j] + s[j];
}

/* rows is a constant where this is inlined. */
LB_INLINE void tile_rows(const int rows, int64_t k, const float *a,
                         const float *b, int64_t ldb, float *c, int64_t ldc,
                         int n, bool first)
{
    float32x4_t r[MR][VECTORS];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        LB_UNROLL
        for (int v = 0; v < VECTORS; v++)
            r[i][v] = vdupq_n_f32(0);
    }
    for (int64_t kk = 0; kk < k; kk++, a += rows, b += ldb) {
        const float32x4_t b0 = vld1q_f32(b), b1 = vld1q_f32(b + 4);
        const float32x4_t b2 = vld1q_f32(b + 8), b3 = vld1q_f32(b + 12);
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            float x = a[i];
            LB_KEEP(x);
            r[i][0] = vfmaq_n_f32(r[i][0], b0, x);
            r[i][1] = vfmaq_n_f32(r[i][1], b1, x);
            r[i][2] = vfmaq_n_f32(r[i][2], b2, x);
            r[i][3] = vfmaq_n_f32(r[i][3], b3, x);
        }
    }
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        put(c + i * ldc, r[i], n, first);
}

static void tile(int64_t k, const float *a, const float *b, int64_t ldb,
                 float *c, int64_t ldc, int m, int n, bool first)
{
    switch (m) {
    case 1:
        tile_rows(1, k, a, b, ldb, c, ldc, n, first);
        break;
    case 2:
        tile_rows(2, k, a, b, ldb, c, ldc, n, first);
        break;
    case 3:
        tile_rows(3, k, a, b, ldb, c, ldc, n, first);
        break;
    case 4:
        tile_rows(4, k, a, b, ldb, c, ldc, n, first);
        break;
    case 5:
        tile_rows(5, k, a, b, ldb, c, ldc, n, first);
        break;
    default:
        tile_rows(6, k, a, b, ldb, c, ldc, n, first);
    }
}

const lb_gemm_kernel lb_gemm_neon = {
    .name = "gemm neon 6x16", .mr = MR, .nr = NR, .tile = tile};
#endif
