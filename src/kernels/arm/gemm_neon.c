/* gemm_neon.c - the 6x16 micro-kernel for NEON, which every aarch64 has.
 *
 *            b: 16 columns              24 accumulators, four loads of b and
 *          +-----+-----+-----+-----+    two of a: 30 of the 32 registers. A
 *   a: 6   | r[i][0] ..    r[i][3] |    lane of a is multiplied as it lies, so
 *   rows   +-----+-----+-----+-----+    there are no broadcasts.
 *
 * The shape is that of AVX2, and so are the panels. Fewer rows run in the same
 * order over kk, so their bits are the same.
 */
#include "kernels/gemm.h"

#if defined(__aarch64__)
#include "kernels/arm/neon.h"

enum { MR = 6, NR = 16, VECTORS = NR / 4 };

/* Row i of the accumulators; FMA multiplies by a lane of x. */
#define STEP(i, FMA, x, lane)                                                  \
    r[i][0] = FMA(r[i][0], b0, x, lane);                                       \
    r[i][1] = FMA(r[i][1], b1, x, lane);                                       \
    r[i][2] = FMA(r[i][2], b2, x, lane);                                       \
    r[i][3] = FMA(r[i][3], b3, x, lane)

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

/* rows is a constant where this is inlined, 2 or 6; m <= rows. */
LB_INLINE void tile_rows(const int rows, int64_t k, const float *a,
                         const float *b, float *c, int64_t ldc, int m, int n,
                         bool first)
{
    float32x4_t r[MR][VECTORS];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        LB_UNROLL
        for (int v = 0; v < VECTORS; v++)
            r[i][v] = vdupq_n_f32(0);
    }
    for (int64_t kk = 0; kk < k; kk++, a += MR, b += NR) {
        const float32x4_t b0 = vld1q_f32(b), b1 = vld1q_f32(b + 4);
        const float32x4_t b2 = vld1q_f32(b + 8), b3 = vld1q_f32(b + 12);
        const float32x4_t x = vld1q_f32(a); /* a panel has 6: 4 are there */
        STEP(0, vfmaq_laneq_f32, x, 0);
        STEP(1, vfmaq_laneq_f32, x, 1);
        if (rows > 2) {
            const float32x2_t y = vld1_f32(a + 4);
            STEP(2, vfmaq_laneq_f32, x, 2);
            STEP(3, vfmaq_laneq_f32, x, 3);
            STEP(4, vfmaq_lane_f32, y, 0);
            STEP(5, vfmaq_lane_f32, y, 1);
        }
    }
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        if (i < m) put(c + i * ldc, r[i], n, first);
}

static void tile(int64_t k, const float *a, const float *b, float *c,
                 int64_t ldc, int m, int n, bool first)
{
    if (m > 2)
        tile_rows(6, k, a, b, c, ldc, m, n, first);
    else
        tile_rows(2, k, a, b, c, ldc, m, n, first);
}

const lb_gemm_kernel lb_gemm_neon = {
    .name = "gemm neon 6x16", .mr = MR, .nr = NR, .tile = tile};
#endif
