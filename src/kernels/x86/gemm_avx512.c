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
#include "kernels/x86/lanes_avx512.h"
#include "kernels/x86/turn_avx512.h"

enum { MR = 14, NR = 32 };

LB_TARGET("avx512f")
LB_INLINE void put(float *c, __mmask16 mask, __m512 sum, bool first)
{
    if (!first) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, c), sum);
    _mm512_mask_storeu_ps(c, mask, sum);
}

/* rows is a constant where this is inlined. */
LB_TARGET("avx512f")
LB_INLINE void tile_rows(const int rows, int64_t k, const float *a,
                         const float *b, int64_t ldb, float *c, int64_t ldc,
                         int n, bool first)
{
    __m512 r[MR][2];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        r[i][0] = _mm512_setzero_ps();
        r[i][1] = _mm512_setzero_ps();
    }
    for (int64_t kk = 0; kk < k; kk++) {
        const __m512 b0 = _mm512_loadu_ps(b);
        const __m512 b1 = _mm512_loadu_ps(b + 16);
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m512 x = _mm512_set1_ps(a[i]);
            r[i][0] = _mm512_fmadd_ps(x, b0, r[i][0]);
            r[i][1] = _mm512_fmadd_ps(x, b1, r[i][1]);
        }
        a += rows;
        b += ldb;
    }
    const __mmask16 mask0 = lb_first_lanes(n), mask1 = lb_first_lanes(n - 16);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        put(c + i * ldc, mask0, r[i][0], first);
        put(c + i * ldc + 16, mask1, r[i][1], first);
    }
}

/* One function for each height. */
#define ROWS(h)                                                                \
    LB_TARGET("avx512f")                                                       \
    static void rows##h(int64_t k, const float *a, const float *b,             \
                        int64_t ldb, float *c, int64_t ldc, int n, bool first) \
    {                                                                          \
        tile_rows(h, k, a, b, ldb, c, ldc, n, first);                          \
    }
ROWS(1)
ROWS(2)
ROWS(3)
ROWS(4)
ROWS(5)
ROWS(6)
ROWS(7)
ROWS(8)
ROWS(9)
ROWS(10)
ROWS(11)
ROWS(12)
ROWS(13)
ROWS(14)
#undef ROWS

static void tile(int64_t k, const float *a, const float *b, int64_t ldb,
                 float *c, int64_t ldc, int m, int n, bool first)
{
    static void (*const rows[MR])(int64_t, const float *, const float *,
                                  int64_t, float *, int64_t, int, bool) = {
        rows1, rows2, rows3,  rows4,  rows5,  rows6,  rows7,
        rows8, rows9, rows10, rows11, rows12, rows13, rows14};
    rows[m - 1](k, a, b, ldb, c, ldc, n, first);
}

/* Sixteen rows of a panel, a line of each at a time, which is also asked for of
 * the row that has its place in the next panel: rows are short runs on pages of
 * their own. */
LB_TARGET("avx512f")
LB_INLINE void pack_16(const float *src, int64_t row_stride, int64_t k,
                       float *dst)
{
    for (int64_t kk = 0; kk < k; kk += 16) {
        const int n = k - kk < 16 ? (int)(k - kk) : 16;
        const __mmask16 some = lb_first_lanes(n);
        __m512i r[16];
        LB_UNROLL
        for (int i = 0; i < 16; i++) {
            const float *const p = src + i * row_stride + kk;
            r[i] = _mm512_maskz_loadu_epi32(some, (const void *)p);
            LB_FETCH_L2(p, NR * row_stride);
        }
        lb_turn_16(r);
        for (int i = 0; i < n; i++)
            _mm512_storeu_ps(dst + (kk + i) * NR, _mm512_castsi512_ps(r[i]));
    }
}

LB_TARGET("avx512f")
static void pack(const float *src, int64_t row_stride, int64_t k, float *dst)
{
    for (int j = 0; j < NR; j += 16)
        pack_16(src + j * row_stride, row_stride, k, dst + j);
}

const lb_gemm_kernel lb_gemm_avx512 = {.name = "gemm avx512 14x32",
                                       .mr = MR,
                                       .nr = NR,
                                       .tile = tile,
                                       .pack = pack};
#endif
