/* gemm.c - choosing a micro-kernel, packing panels, walking over tiles.
 *
 * Packing moves every number once and is soon bound by memory, so there is one
 * version of it, with the four-float vectors that every machine has. What
 * counts is the order of the reads.
 */
#include "kernels/gemm.h"

#include <string.h>

const lb_gemm_kernel *lb_gemm_kernel_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_gemm_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_gemm_avx2;
#elif defined(__aarch64__)
    if (cpu->level == LB_LEVEL_NEON) return &lb_gemm_neon;
#else
    (void)cpu;
#endif
    return &lb_gemm_ref;
}

/* ---- packing ------------------------------------------------------------ */

typedef float v2f __attribute__((vector_size(8)));
typedef float v4f __attribute__((vector_size(16)));

enum {
    LINE = 16, /* floats in a cache line */
    AHEAD = 16 /* rows of what is adjacent: these lie on pages of their own */
};

/* Brings a line to L2. It may lie past the end of the array, so its address is
 * never a pointer that C looks at. */
static inline void fetch(const float *p, int64_t offset)
{
    const uintptr_t byte = (uintptr_t)offset * sizeof *p;
    __builtin_prefetch((const void *)((uintptr_t)p + byte), 0, 2);
}

static inline v4f load4(const float *p)
{
    v4f v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store4(float *p, v4f v)
{
    memcpy(p, &v, sizeof v);
}

static inline void store2(float *p, v2f v)
{
    memcpy(p, &v, sizeof v);
}

/* Each row is a short run on a page of its own, too short for the hardware to
 * see it coming: asks for the lines of the same n rows in the next panel. */
static inline void fetch_rows(const float *p, int64_t row_stride, int n, int r)
{
    for (int i = 0; i < n; i++)
        fetch(p, (r + i) * row_stride);
}

/* Four rows, unit stride along k: 4x4 blocks are turned. */
static void pack_4_rows(const float *src, int64_t row_stride, int64_t k, int r,
                        float *dst)
{
    const float *const s0 = src, *const s1 = s0 + row_stride;
    const float *const s2 = s1 + row_stride, *const s3 = s2 + row_stride;
    int64_t kk = 0;
    for (; kk + 4 <= k; kk += 4, dst += 4 * r) {
        if (kk % LINE == 0) fetch_rows(s0 + kk, row_stride, 4, r);
        const v4f a = load4(s0 + kk), b = load4(s1 + kk);
        const v4f c = load4(s2 + kk), d = load4(s3 + kk);
        const v4f ab01 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        const v4f cd01 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
        const v4f ab23 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
        const v4f cd23 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        store4(dst, __builtin_shufflevector(ab01, cd01, 0, 1, 4, 5));
        store4(dst + r, __builtin_shufflevector(ab01, cd01, 2, 3, 6, 7));
        store4(dst + 2 * r, __builtin_shufflevector(ab23, cd23, 0, 1, 4, 5));
        store4(dst + 3 * r, __builtin_shufflevector(ab23, cd23, 2, 3, 6, 7));
    }
    for (; kk < k; kk++, dst += r) {
        dst[0] = s0[kk];
        dst[1] = s1[kk];
        dst[2] = s2[kk];
        dst[3] = s3[kk];
    }
}

/* Two rows: what panels of 6 and 14 have left. */
static void pack_2_rows(const float *src, int64_t row_stride, int64_t k, int r,
                        float *dst)
{
    const float *const s0 = src, *const s1 = s0 + row_stride;
    int64_t kk = 0;
    for (; kk + 4 <= k; kk += 4, dst += 4 * r) {
        if (kk % LINE == 0) fetch_rows(s0 + kk, row_stride, 2, r);
        const v4f a = load4(s0 + kk), b = load4(s1 + kk);
        store2(dst, __builtin_shufflevector(a, b, 0, 4));
        store2(dst + r, __builtin_shufflevector(a, b, 1, 5));
        store2(dst + 2 * r, __builtin_shufflevector(a, b, 2, 6));
        store2(dst + 3 * r, __builtin_shufflevector(a, b, 3, 7));
    }
    for (; kk < k; kk++, dst += r) {
        dst[0] = s0[kk];
        dst[1] = s1[kk];
    }
}

/* One panel, any strides. Rows come one after the other, for the panel fits in
 * L1 and the source may not. */
static void pack_panel(const float *src, int64_t row_stride, int64_t col_stride,
                       int64_t rows, int64_t k, int r, float *dst)
{
    int64_t i = 0;
    if (col_stride == 1) {
        for (; i + 4 <= rows; i += 4)
            pack_4_rows(src + i * row_stride, row_stride, k, r, dst + i);
        for (; i + 2 <= rows; i += 2)
            pack_2_rows(src + i * row_stride, row_stride, k, r, dst + i);
    }
    for (; i < rows; i++) {
        const float *const s = src + i * row_stride;
        for (int64_t kk = 0; kk < k; kk++)
            dst[kk * r + i] = s[kk * col_stride];
    }
    for (; i < r; i++) {
        for (int64_t kk = 0; kk < k; kk++)
            dst[kk * r + i] = 0;
    }
}

/* Steps of a whole panel whose rows are adjacent. Where this is inlined with a
 * constant r, a copy is a few moves. */
static inline void copy_steps(const float *src, int64_t col_stride, int64_t k,
                              int r, float *dst)
{
    for (int64_t kk = 0; kk < k; kk++) {
        fetch(src + kk * col_stride, AHEAD * col_stride);
        memcpy(dst + kk * r, src + kk * col_stride, (size_t)r * sizeof *dst);
    }
}

static void pack_steps(const float *src, int64_t col_stride, int rows,
                       int64_t k, int r, float *dst)
{
    if (rows < r) {
        for (int64_t kk = 0; kk < k; kk++, dst += r) {
            memcpy(dst, src + kk * col_stride, (size_t)rows * sizeof *dst);
            memset(dst + rows, 0, (size_t)(r - rows) * sizeof *dst);
        }
        return;
    }
    switch (r) { /* the kernels' */
    case 6:
        copy_steps(src, col_stride, k, 6, dst);
        break;
    case 14:
        copy_steps(src, col_stride, k, 14, dst);
        break;
    case 16:
        copy_steps(src, col_stride, k, 16, dst);
        break;
    case 32:
        copy_steps(src, col_stride, k, 32, dst);
        break;
    default:
        copy_steps(src, col_stride, k, r, dst);
    }
}

/* Adjacent rows: a few steps of all panels before the next few, so that reads
 * run along memory and writes still come in runs. */
static void pack_adjacent(const float *src, int64_t col_stride, int64_t m,
                          int64_t k, int r, float *dst, int64_t step)
{
    enum { STEPS = 4 }; /* 8 and more were slower */
    for (int64_t k0 = 0; k0 < k; k0 += STEPS) {
        const int64_t steps = k - k0 < STEPS ? k - k0 : STEPS;
        for (int64_t i = 0; i < m; i += r) {
            const int rows = m - i < r ? (int)(m - i) : r;
            pack_steps(src + k0 * col_stride + i, col_stride, rows, steps, r,
                       dst + i * step + k0 * r);
        }
    }
}

void lb_gemm_pack(const float *src, int64_t row_stride, int64_t col_stride,
                  int64_t m, int64_t k, int r, float *dst, int64_t step)
{
    if (row_stride == 1 && col_stride != 1) {
        pack_adjacent(src, col_stride, m, k, r, dst, step);
        return;
    }
    for (int64_t i = 0; i < m; i += r) {
        pack_panel(src + i * row_stride, row_stride, col_stride,
                   m - i < r ? m - i : r, k, r, dst + i * step);
    }
}

void lb_gemm_pack_rows(const float *src, int64_t row_stride, int64_t col_stride,
                       int64_t m, int64_t k, int mr, float *dst)
{
    for (int64_t i = 0, h; i < m; i += h) {
        h = lb_gemm_height(m - i, mr);
        lb_gemm_pack(src + i * row_stride, row_stride, col_stride, h, k, (int)h,
                     dst + i * k, k);
    }
}

/* ---- tiles -------------------------------------------------------------- */

/* Lines that are asked for a share at a time, before each tile. */
typedef struct {
    uintptr_t at;
    int64_t step, rows, lines, share;
    int64_t row, line; /* the next one */
} asking;

static asking asking_of(uintptr_t at, int64_t step, int64_t rows, int64_t lines,
                        int64_t tiles)
{
    enum { MOST = 16 }; /* more in a row hold up the tile */
    const int64_t share = rows * lines / tiles + 1;
    return (asking){at, step, rows, lines, share < MOST ? share : MOST, 0, 0};
}

static void ask(asking *s)
{
    for (int64_t n = s->share; n > 0 && s->row < s->rows; n--) {
        const uintptr_t row = s->at + (uintptr_t)(s->row * s->step);
        __builtin_prefetch((const void *)(row + (uintptr_t)s->line * 64), 0, 2);
        if (++s->line < s->lines) continue;
        s->line = 0;
        s->row++;
    }
}

/* A panel of b stays in L1 while all of a, which should fit in L2, passes by;
 * meanwhile what is next comes in from further away. */
void lb_gemm_block(const lb_gemm_kernel *kernel, int64_t m, int64_t n,
                   int64_t k, const float *a, const float *b, int64_t ldb,
                   int64_t step, float *c, int64_t ldc, bool first,
                   const lb_gemm_soon *soon)
{
    const lb_gemm_soon none = {.panel = true};
    const int mr = kernel->mr, nr = kernel->nr;
    const int64_t tiles = m > mr ? (m + mr - 1) / mr : 1;
    const int64_t lines = k * nr / LINE;
    if (!soon) soon = &none;
    for (int64_t j = 0; j < n; j += nr) {
        const int tn = n - j < nr ? (int)(n - j) : nr;
        const bool last = j + nr >= n, more = !last || soon->panel;
        asking panel =
            asking_of((uintptr_t)b, 0, more && ldb == nr, lines, tiles);
        asking rows = asking_of(soon->at, soon->step, last ? soon->rows : 0,
                                soon->lines, tiles);
        panel.at += (uintptr_t)((j + nr) * step) * sizeof *b;
        for (int64_t i = 0, h; i < m; i += h) {
            h = lb_gemm_height(m - i, mr);
            ask(&panel);
            ask(&rows);
            int64_t kk = 0;
            do { /* once, where there is no depth */
                const int64_t kc = k - kk < LB_GEMM_KC ? k - kk : LB_GEMM_KC;
                kernel->tile(kc, a + i * k + kk * h, b + j * step + kk * ldb,
                             ldb, c + i * ldc + j, ldc, (int)h, tn,
                             first && kk == 0);
                kk += kc;
            } while (kk < k);
        }
    }
}
