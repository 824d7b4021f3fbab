/* gemm_avx2.c - the 6x16 micro-kernel for AVX2 with FMA.
 *
 *            b: 16 columns          12 accumulators, two loads of b, one
 *          +--------+--------+      broadcast of a at a time: 15 of the 16
 *   a: 6   | r[i][0]| r[i][1]|      registers. 12 FMAs against 8 loads per
 *   rows   +--------+--------+      step keep both FMA units busy.
 *
 * Fewer rows run in the same order over kk, so their bits are the same.
 *
 * Four steps at a time are written in assembler: compilers copy sums and spill
 * them when they unroll this, and a loop of single steps counts, which is an
 * eighth of what it starts. A core has room for that, but half a core has not,
 * where somebody else uses the other half. Sanitizers would not see its reads.
 */
#include "kernels/gemm.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

enum { MR = 6, NR = 16 };

/* The first n of 8 lanes. */
LB_TARGET("avx2,fma") LB_INLINE __m256i lanes(int n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane);
}

LB_TARGET("avx2,fma")
LB_INLINE void put(float *c, __m256 sum, bool first)
{
    if (!first) sum = _mm256_add_ps(_mm256_loadu_ps(c), sum);
    _mm256_storeu_ps(c, sum);
}

LB_TARGET("avx2,fma")
LB_INLINE void put_some(float *c, __m256i mask, __m256 sum, bool first)
{
    if (!first) sum = _mm256_add_ps(_mm256_maskload_ps(c, mask), sum);
    _mm256_maskstore_ps(c, mask, sum);
}

/* ---- four steps --------------------------------------------------------- */

#if LB_OF_EACH
#define LB_ROW(rows, step, i)                                                  \
    "vbroadcastss 4*(" #rows "*" #step "+" #i ")(%[a]), %[x]\n\t"              \
    "vfmadd231ps %[b0], %[x], %[s" #i "0]\n\t"                                 \
    "vfmadd231ps %[b1], %[x], %[s" #i "1]\n\t"
#define LB_ROWS_4(rows, step)                                                  \
    LB_ROW(rows, step, 0)                                                      \
    LB_ROW(rows, step, 1) LB_ROW(rows, step, 2) LB_ROW(rows, step, 3)
#define LB_ROWS_5(rows, step) LB_ROWS_4(rows, step) LB_ROW(rows, step, 4)
#define LB_ROWS_6(rows, step) LB_ROWS_5(rows, step) LB_ROW(rows, step, 5)
#define LB_STEP(rows, step)                                                    \
    "vmovups 64*" #step "(%[b]), %[b0]\n\t"                                    \
    "vmovups 64*" #step "+32(%[b]), %[b1]\n\t" LB_ROWS_##rows(rows, step)

#define LB_ZERO(i)                                                             \
    "vxorps %[s" #i "0], %[s" #i "0], %[s" #i "0]\n\t"                         \
    "vxorps %[s" #i "1], %[s" #i "1], %[s" #i "1]\n\t"
#define LB_ZEROS_4 LB_ZERO(0) LB_ZERO(1) LB_ZERO(2) LB_ZERO(3)
#define LB_ZEROS_5 LB_ZEROS_4 LB_ZERO(4)
#define LB_ZEROS_6 LB_ZEROS_5 LB_ZERO(5)

#define LB_SUM(i) [s##i##0] "=&x"(r[i][0]), [s##i##1] "=&x"(r[i][1])
#define LB_SUMS_4 LB_SUM(0), LB_SUM(1), LB_SUM(2), LB_SUM(3)
#define LB_SUMS_5 LB_SUMS_4, LB_SUM(4)
#define LB_SUMS_6 LB_SUMS_5, LB_SUM(5)

/* r of 4 * times steps, from zero; times > 0. */
#define LB_FOUR_STEPS(rows)                                                    \
    LB_TARGET("avx2,fma")                                                      \
    LB_INLINE void four_steps_##rows(int64_t times, const float *a,            \
                                     const float *b, __m256(*r)[2])            \
    {                                                                          \
        __m256 b0, b1, x;                                                      \
        __asm__(LB_ZEROS_##rows                                                \
                ".p2align 5\n"                                                 \
                "1:\n\t" LB_STEP(rows, 0) LB_STEP(rows, 1) LB_STEP(rows, 2)    \
                    LB_STEP(rows, 3) "add $16*" #rows ", %[a]\n\t"             \
                                     "add $256, %[b]\n\t"                      \
                                     "dec %[times]\n\t"                        \
                                     "jnz 1b"                                  \
                : LB_SUMS_##rows, [b0] "=&x"(b0), [b1] "=&x"(b1),              \
                  [x] "=&x"(x), [a] "+r"(a), [b] "+r"(b), [times] "+r"(times)  \
                :                                                              \
                : "memory", "cc");                                             \
    }

LB_FOUR_STEPS(4)
LB_FOUR_STEPS(5)
LB_FOUR_STEPS(6)
#endif

/* How many steps it has added up; r is zero. */
LB_TARGET("avx2,fma")
LB_INLINE int64_t most_steps(const int rows, int64_t k, const float *a,
                             const float *b, int64_t ldb, __m256 (*r)[2])
{
#if LB_OF_EACH
    const int64_t times = k / 4;
    if (ldb != NR || times == 0 || rows < 4) return 0;
    if (rows == 6)
        four_steps_6(times, a, b, r);
    else if (rows == 5)
        four_steps_5(times, a, b, r);
    else
        four_steps_4(times, a, b, r);
    return 4 * times;
#else
    (void)rows, (void)k, (void)a, (void)b, (void)ldb, (void)r;
    return 0;
#endif
}

/* ---- a tile ------------------------------------------------------------- */

/* rows is a constant where this is inlined. */
LB_TARGET("avx2,fma")
LB_INLINE void tile_rows(const int rows, int64_t k, const float *a,
                         const float *b, int64_t ldb, float *c, int64_t ldc,
                         int n, bool first)
{
    __m256 r[MR][2];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        __builtin_prefetch(c + i * ldc, 1);
        r[i][0] = _mm256_setzero_ps();
        r[i][1] = _mm256_setzero_ps();
    }
    const int64_t done = most_steps(rows, k, a, b, ldb, r);
    a += done * rows;
    b += done * ldb;
    for (int64_t kk = done; kk < k; kk++) {
        const __m256 b0 = _mm256_loadu_ps(b);
        const __m256 b1 = _mm256_loadu_ps(b + 8);
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m256 x = _mm256_broadcast_ss(a + i);
            r[i][0] = _mm256_fmadd_ps(x, b0, r[i][0]);
            r[i][1] = _mm256_fmadd_ps(x, b1, r[i][1]);
        }
        a += rows;
        b += ldb;
    }
    if (n == NR) {
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            put(c + i * ldc, r[i][0], first);
            put(c + i * ldc + 8, r[i][1], first);
        }
    } else {
        const __m256i mask0 = lanes(n), mask1 = lanes(n - 8);
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            put_some(c + i * ldc, mask0, r[i][0], first);
            put_some(c + i * ldc + 8, mask1, r[i][1], first);
        }
    }
}

LB_TARGET("avx2,fma")
static void tile(int64_t k, const float *a, const float *b, int64_t ldb,
                 float *c, int64_t ldc, int m, int n, bool first)
{
    switch (m) {
    case 6:
        tile_rows(6, k, a, b, ldb, c, ldc, n, first);
        return;
    case 5:
        tile_rows(5, k, a, b, ldb, c, ldc, n, first);
        return;
    case 4:
        tile_rows(4, k, a, b, ldb, c, ldc, n, first);
        return;
    case 3:
        tile_rows(3, k, a, b, ldb, c, ldc, n, first);
        return;
    case 2:
        tile_rows(2, k, a, b, ldb, c, ldc, n, first);
        return;
    default:
        tile_rows(1, k, a, b, ldb, c, ldc, n, first);
    }
}

/* ---- packing ------------------------------------------------------------ */

/* Four numbers of two rows. */
LB_TARGET("avx2,fma")
LB_INLINE __m256 two_rows(const float *a, const float *b)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a)),
                                _mm_loadu_ps(b), 1);
}

/* Eight rows, all of the depth: rows often lie such that they fall on the same
 * places of L1, which has room for eight. Four steps at a time are turned, rows
 * 0 to 3 in the lower halves and 4 to 7 in the upper ones. */
LB_TARGET("avx2,fma")
LB_INLINE void pack_8(const float *src, int64_t row_stride, int64_t k,
                      float *dst)
{
    int64_t kk = 0;
    for (; kk + 4 <= k; kk += 4) {
        __m256 r[4];
        LB_UNROLL
        for (int i = 0; i < 4; i++)
            r[i] = two_rows(src + i * row_stride + kk,
                            src + (i + 4) * row_stride + kk);
        const __m256 a = _mm256_unpacklo_ps(r[0], r[1]);
        const __m256 b = _mm256_unpackhi_ps(r[0], r[1]);
        const __m256 c = _mm256_unpacklo_ps(r[2], r[3]);
        const __m256 d = _mm256_unpackhi_ps(r[2], r[3]);
        float *const to = dst + kk * NR;
        _mm256_storeu_ps(to, _mm256_shuffle_ps(a, c, 0x44));
        _mm256_storeu_ps(to + NR, _mm256_shuffle_ps(a, c, 0xee));
        _mm256_storeu_ps(to + 2 * NR, _mm256_shuffle_ps(b, d, 0x44));
        _mm256_storeu_ps(to + 3 * NR, _mm256_shuffle_ps(b, d, 0xee));
    }
    for (; kk < k; kk++)
        for (int i = 0; i < 8; i++)
            dst[kk * NR + i] = src[i * row_stride + kk];
}

LB_TARGET("avx2,fma")
static void pack(const float *src, int64_t row_stride, int64_t k, float *dst)
{
    pack_8(src, row_stride, k, dst);
    pack_8(src + 8 * row_stride, row_stride, k, dst + 8);
}

const lb_gemm_kernel lb_gemm_avx2 = {
    .name = "gemm avx2 6x16", .mr = MR, .nr = NR, .tile = tile, .pack = pack};
#endif
