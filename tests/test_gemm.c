/* test_gemm.c - packed panels, tiles and blocks, for every kernel.
 *
 * Each tile is compared with double precision, and bit for bit with the order
 * of operations documented in gemm.h, with guard pages next to all inputs.
 *
 * Levels that the machine lacks are tested when the sources are compiled with
 * SIMDe (LB_SIMDE, see kernels/x86/intrin.h), from the root:
 *
 *   cc -std=c11 -O2 -ffp-contract=off -D_GNU_SOURCE -DLB_SIMDE -Wno-psabi \
 *      -Iinclude -Isrc -Itests tests/test_gemm.c src/kernels/gemm*.c \
 *      src/kernels/x86/gemm*.c src/base/cpu.c -lm
 */
/* ctest: simde bochs skip-tsan skip-ref */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "check.h"
#include "kernels/gemm.h"

#define UNIT (1.0 / (1 << 24)) /* half an ulp of 1 */

typedef struct subject {
    const lb_gemm_kernel *kernel;
    lb_level level;
    bool fused;
} subject;

/* SIMDe has fused operations only if the compiler may use them. */
#if defined(LB_SIMDE) && !defined(__FMA__)
enum { FUSED = false };
#else
enum { FUSED = true };
#endif

static const subject subjects[] = {
    {&lb_gemm_ref, LB_LEVEL_REF, false},
#if defined(__x86_64__)
    {&lb_gemm_avx2, LB_LEVEL_AVX2, FUSED},
    {&lb_gemm_avx512, LB_LEVEL_AVX512, FUSED},
#elif defined(__aarch64__)
    {&lb_gemm_neon, LB_LEVEL_NEON, true},
#endif
};
enum { N_SUBJECTS = sizeof subjects / sizeof *subjects };

static bool runs_here(lb_level level)
{
#if defined(LB_SIMDE)
    (void)level;
    return true;
#else
    return lb_level_available(level);
#endif
}

/* ---- memory between guard pages ----------------------------------------- */

typedef struct fence {
    char *map;
    size_t size, page; /* sizes: of the memory; of each guard page */
} fence;

static fence fence_open(size_t bytes)
{
    fence f = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    f.size = (bytes / f.page + 1) * f.page;
    f.map = mmap(NULL, f.size + 2 * f.page, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f.map == MAP_FAILED || mprotect(f.map, f.page, PROT_NONE) != 0 ||
        mprotect(f.map + f.page + f.size, f.page, PROT_NONE) != 0) {
        perror("mmap");
        exit(1);
    }
    return f;
}

static void fence_close(fence *f)
{
    munmap(f->map, f->size + 2 * f->page);
}

/* n floats that end or begin at a guard page. */
static float *fence_at(const fence *f, size_t n, bool end)
{
    char *const room = f->map + f->page;
    return (float *)(void *)(end ? room + f->size - n * sizeof(float) : room);
}

/* ---- numbers ------------------------------------------------------------ */

static float random_float(void) /* in [-1, 1), 24 bits */
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (float)(int32_t)((uint32_t)(x >> 32) & ~0xffu) / 2147483648.0f;
}

static void fill(float *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = random_float();
}

static uint32_t bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* ---- tiles -------------------------------------------------------------- */

static const int64_t depths[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 255, 256, 257};
enum { N_DEPTHS = sizeof depths / sizeof *depths, MAX_DEPTH = 257 };
enum { MAX_TILE = LB_GEMM_MAX_MR * LB_GEMM_MAX_NR, GAP = 3 };
static const float canary = 1234.5f;

/* Expected value of a tile: c (+)= a (mr,k) x b (k,nr) in the documented order,
 * rows of b ldb apart, and no further from the product in double than the sum
 * of the roundings: one for each of the k terms and one for the addition to c.
 */
static void expect_tile(const subject *s, int64_t k, const float *a,
                        const float *b, int64_t ldb, const float *c, bool first,
                        float *want)
{
    const int mr = s->kernel->mr, nr = s->kernel->nr;
    for (int i = 0; i < mr; i++) {
        for (int j = 0; j < nr; j++) {
            float sum = 0;
            double exact = 0, size = 0;
            for (int64_t kk = 0; kk < k; kk++) {
                const float x = a[kk * mr + i], y = b[kk * ldb + j];
                const double xy = (double)x * (double)y;
                sum = s->fused ? fmaf(x, y, sum) : sum + x * y;
                exact += xy;
                size += fabs(xy);
            }
            const int e = i * nr + j;
            want[e] = first ? sum : c[e] + sum;
            if (!first) {
                exact += (double)c[e];
                size += fabs((double)c[e]);
            }
            CHECK_NEAR((double)want[e], exact,
                       (double)(k + 1) * UNIT * size * 1.01);
        }
    }
}

/* One call for m rows and n columns, with c next to a guard page and canaries
 * around the tile. */
static void try_tile(const subject *s, const fence *room, int64_t k,
                     const float *a, const float *b, int64_t ldb,
                     const float *c, bool first, int m, int n, bool end,
                     const float *want)
{
    const int nr = s->kernel->nr, ldc = n + GAP;
    const size_t len = (size_t)(m - 1) * (size_t)ldc + (size_t)n;
    float *const got = fence_at(room, len, end);
    for (size_t i = 0; i < len; i++)
        got[i] = canary;
    for (int i = 0; i < m; i++)
        memcpy(got + i * ldc, c + i * nr, (size_t)n * sizeof *c);
    s->kernel->tile(k, a, b, ldb, got, ldc, m, n, first);
    int wrong = 0, spoilt = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++)
            wrong += bits(got[i * ldc + j]) != bits(want[i * nr + j]);
        for (int j = n; j < ldc && i < m - 1; j++)
            spoilt += bits(got[i * ldc + j]) != bits(canary);
    }
    if (wrong || spoilt)
        fprintf(stderr, "%s: k %d, m %d, n %d, first %d\n", s->kernel->name,
                (int)k, m, n, first);
    CHECK_EQ_I(wrong, 0);
    CHECK_EQ_I(spoilt, 0);
}

static void test_tiles(const subject *s)
{
    const int mr = s->kernel->mr, nr = s->kernel->nr;
    fence fa = fence_open(sizeof(float) * MAX_DEPTH * LB_GEMM_MAX_MR);
    fence fb = fence_open(sizeof(float) * MAX_DEPTH * (LB_GEMM_MAX_NR + GAP));
    fence fc = fence_open(sizeof(float) * 2 * MAX_TILE);
    static float all[MAX_DEPTH * LB_GEMM_MAX_MR], c[MAX_TILE], want[MAX_TILE];
    for (int d = 0; d < 2 * N_DEPTHS; d++) {
        const int64_t k = depths[d / 2], ldb = nr + d % 3 / 2 * GAP;
        const bool first = d % 2;
        const size_t na = (size_t)(k * mr);
        const size_t nb = k ? (size_t)((k - 1) * ldb + nr) : 0;
        float *const b = fence_at(&fb, nb, true);
        fill(all, na);
        fill(b, nb);
        fill(c, MAX_TILE);
        expect_tile(s, k, all, b, ldb, c, first, want);
        for (int m = 1; m <= mr; m++) {
            float *const a = fence_at(&fa, (size_t)(k * m), true);
            for (int64_t e = 0; e < k * m; e++)
                a[e] = all[e / m * mr + e % m];
            for (int n = 1; n <= nr; n++)
                try_tile(s, &fc, k, a, b, ldb, c, first, m, n, (m + n) % 2,
                         want);
        }
    }
    fence_close(&fa);
    fence_close(&fb);
    fence_close(&fc);
}

/* Equal rows times equal columns: all elements have the same bits. */
static void test_places(const subject *s)
{
    enum { K = 100 };
    const int mr = s->kernel->mr, nr = s->kernel->nr;
    static _Alignas(64) float b[K * LB_GEMM_MAX_NR];
    static float a[K * LB_GEMM_MAX_MR], c[MAX_TILE];
    for (int kk = 0; kk < K; kk++) {
        const float x = random_float(), y = random_float();
        for (int i = 0; i < mr; i++)
            a[kk * mr + i] = x;
        for (int j = 0; j < nr; j++)
            b[kk * nr + j] = y;
    }
    s->kernel->tile(K, a, b, nr, c, nr, mr, nr, true);
    for (int e = 1; e < mr * nr; e++)
        CHECK_EQ_I(bits(c[e]), bits(c[0]));
    /* values that are not finite stay in their row */
    a[7 * (mr - 1) + 1] = NAN;
    s->kernel->tile(K, a, b, nr, c + nr, nr, mr - 1, nr, true);
    for (int e = 0; e < mr * nr; e++)
        CHECK_EQ_I(isnan(c[e]) != 0, e / nr == 2);
}

/* ---- packing ------------------------------------------------------------ */

/* The definition, element by element; src and dst between guard pages. */
static void try_pack(int64_t m, int64_t k, int r, int64_t rs, int64_t cs,
                     bool end)
{
    const int64_t last_row = m > 0 ? (m - 1) * rs : 0;
    const int64_t last_col = k > 0 ? (k - 1) * cs : 0;
    const int64_t low =
        (last_row < 0 ? last_row : 0) + (last_col < 0 ? last_col : 0);
    const int64_t high =
        (last_row > 0 ? last_row : 0) + (last_col > 0 ? last_col : 0);
    const size_t span = m > 0 && k > 0 ? (size_t)(high - low + 1) : 0;
    const int64_t panels = (m + r - 1) / r;
    const int64_t step = k + (m + k) % 3; /* the others are unchanged */
    const size_t len = (size_t)(panels * step * r);
    fence fs = fence_open(span * sizeof(float));
    fence fd = fence_open(len * sizeof(float));
    float *const base = fence_at(&fs, span, end);
    fill(base, span);
    const float *const src = base - low;
    float *const dst = fence_at(&fd, len, end);
    for (size_t i = 0; i < len; i++)
        dst[i] = canary;
    lb_gemm_pack(src, rs, cs, m, k, r, dst, step);
    int wrong = 0;
    for (int64_t i = 0; i < panels * r; i++) {
        for (int64_t kk = 0; kk < step; kk++) {
            float want = i < m && kk < k ? src[i * rs + kk * cs] : 0;
            if (kk >= k) want = canary;
            wrong += bits(dst[(i / r * step + kk) * r + i % r]) != bits(want);
        }
    }
    if (wrong)
        fprintf(stderr, "pack: m %d, k %d, r %d, strides %d, %d\n", (int)m,
                (int)k, r, (int)rs, (int)cs);
    CHECK_EQ_I(wrong, 0);
    fence_close(&fs);
    fence_close(&fd);
}

static void test_pack(void)
{
    static const int rs[] = {1, 4, 5, 6, 8, 14, 16, 32, 64};
    static const int64_t ks[] = {0, 1, 3, 4, 5, 16, 37};
    for (size_t q = 0; q < sizeof rs / sizeof *rs; q++) {
        const int r = rs[q];
        const int64_t ms[] = {0, 1, 2, 3, r - 1, r, r + 1, 2 * r + 3, 3 * r};
        for (size_t x = 0; x < sizeof ms / sizeof *ms; x++) {
            for (size_t y = 0; y < sizeof ks / sizeof *ks; y++) {
                const int64_t m = ms[x], k = ks[y];
                /* row-major, column-major; gaps; every second; reversed;
                 * one row or one column repeated */
                const int64_t s[][2] = {
                    {k, 1},     {1, m},  {k + 5, 1}, {1, m + 7}, {2 * k, 2},
                    {3, 3 * m}, {-k, 1}, {1, -m},    {k, -1},    {-1, m},
                    {-k, -1},   {0, 1},  {1, 0},     {0, 0},     {1, 1},
                };
                for (size_t z = 0; z < sizeof s / sizeof *s; z++)
                    try_pack(m, k, r, s[z][0], s[z][1], (x + y + z) % 2);
            }
        }
    }
}

/* ---- blocks ------------------------------------------------------------- */

/* (m,k) x (k,n) from row-major matrices, in two panels along K. */
static void try_block(const subject *s, int64_t m, int64_t n, int64_t k)
{
    enum { SIDE = 100, DEPTH = 80, LDC = SIDE + GAP };
    static float a[SIDE * DEPTH], b[DEPTH * SIDE], c[(SIDE + 1) * LDC];
    static _Alignas(64) float pb[DEPTH * (SIDE + LB_GEMM_MAX_NR)];
    static float pa[DEPTH * (SIDE + LB_GEMM_MAX_MR)];
    const lb_gemm_kernel *const kernel = s->kernel;
    fill(a, SIDE * DEPTH);
    fill(b, DEPTH * SIDE);
    for (size_t i = 0; i < sizeof c / sizeof *c; i++)
        c[i] = canary;
    for (int64_t k0 = 0; k0 < k; k0 += k / 2 + 1) {
        const int64_t depth = k - k0 < k / 2 + 1 ? k - k0 : k / 2 + 1;
        lb_gemm_pack_rows(a + k0, k, 1, m, depth, kernel->mr, pa);
        lb_gemm_pack(b + k0 * n, 1, n, n, depth, kernel->nr, pb, depth);
        lb_gemm_block(kernel, m, n, depth, pa, pb, kernel->nr, depth, c, LDC,
                      k0 == 0, NULL);
    }
    for (int64_t i = 0; i <= SIDE; i++) {
        for (int64_t j = 0; j < LDC; j++) {
            double exact = 0, size = 0;
            for (int64_t kk = 0; i < m && j < n && kk < k; kk++) {
                const double xy = (double)a[i * k + kk] * (double)b[kk * n + j];
                exact += xy;
                size += fabs(xy);
            }
            if (i < m && j < n)
                CHECK_NEAR((double)c[i * LDC + j], exact,
                           (double)(k + 1) * UNIT * size * 1.01);
            else
                CHECK_EQ_I(bits(c[i * LDC + j]), bits(canary));
        }
    }
}

/* Heights add up, none exceeds mr, and no two differ by more than one. */
static void test_heights(void)
{
    for (int mr = 1; mr <= LB_GEMM_MAX_MR; mr++)
        for (int64_t m = 1; m < 100; m++) {
            int low = mr, high = 0, panels = 0;
            for (int64_t i = 0; i < m; panels++) {
                const int h = lb_gemm_height(m - i, mr);
                low = h < low ? h : low;
                high = h > high ? h : high;
                i += h;
                CHECK(h >= 1 && h <= mr && i <= m);
            }
            CHECK(high - low <= 1 || m < mr);
            CHECK_EQ_I(panels, (m + mr - 1) / mr);
        }
}

/* Panels of equal heights are the rows, step by step. */
static void test_pack_rows(void)
{
    enum { K = 37, MAX = 60 };
    static float src[MAX * K], dst[MAX * K];
    fill(src, MAX * K);
    for (int mr = 1; mr <= LB_GEMM_MAX_MR; mr++)
        for (int64_t m = 1; m <= MAX; m++) {
            int wrong = 0;
            lb_gemm_pack_rows(src, K, 1, m, K, mr, dst);
            for (int64_t i = 0, h; i < m; i += h) {
                h = lb_gemm_height(m - i, mr);
                for (int64_t r = 0; r < h; r++)
                    for (int64_t kk = 0; kk < K; kk++)
                        wrong += bits(dst[i * K + kk * h + r]) !=
                                 bits(src[(i + r) * K + kk]);
            }
            CHECK_EQ_I(wrong, 0);
        }
}

/* A level's own packing of a panel, between guard pages. */
static void try_kernel_pack(const lb_gemm_kernel *kernel, int64_t k, int64_t rs,
                            bool end)
{
    const int nr = kernel->nr;
    const size_t span = (size_t)((nr - 1) * rs + k), len = (size_t)(nr * k);
    fence fs = fence_open(span * sizeof(float));
    fence fd = fence_open(len * sizeof(float));
    float *const src = fence_at(&fs, span, end);
    float *const dst = fence_at(&fd, len, end);
    int wrong = 0;
    fill(src, span);
    kernel->pack(src, rs, k, dst);
    for (int64_t kk = 0; kk < k; kk++)
        for (int64_t i = 0; i < nr; i++)
            wrong += bits(dst[kk * nr + i]) != bits(src[i * rs + kk]);
    CHECK_EQ_I(wrong, 0);
    fence_close(&fs);
    fence_close(&fd);
}

static void test_kernel_pack(const lb_gemm_kernel *kernel)
{
    if (!kernel->pack) return;
    for (int64_t k = 1; k <= 50; k++)
        for (int64_t gap = 0; gap < 4; gap++)
            try_kernel_pack(kernel, k, k + gap, (k + gap) % 2);
}

static void test_kernel_for(void)
{
#if defined(__aarch64__)
    const lb_level levels[] = {LB_LEVEL_REF, LB_LEVEL_NEON};
#else
    const lb_level levels[] = {LB_LEVEL_REF, LB_LEVEL_AVX2, LB_LEVEL_AVX512,
                               LB_LEVEL_AVX512VNNI};
#endif
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        const lb_gemm_kernel *want = &lb_gemm_ref;
        for (int i = 0; i < N_SUBJECTS; i++)
            if (subjects[i].level <= levels[l]) want = subjects[i].kernel;
        CHECK(lb_gemm_kernel_for(&(lb_cpu){.level = levels[l]}) == want);
        CHECK(want->mr <= LB_GEMM_MAX_MR && want->nr <= LB_GEMM_MAX_NR);
    }
}

int main(void)
{
    test_kernel_for();
    test_heights();
    test_pack();
    test_pack_rows();
    for (int i = 0; i < N_SUBJECTS; i++) {
        const subject *const s = &subjects[i];
        if (!runs_here(s->level)) {
            printf("test_gemm: %s cannot run here\n", s->kernel->name);
            continue;
        }
        test_tiles(s);
        test_places(s);
        test_kernel_pack(s->kernel);
        try_block(s, 100, 100, 80);
        try_block(s, 61, 77, 13);
        try_block(s, 1, 33, 1);
        try_block(s, 33, 1, 2);
        try_block(s, 0, 5, 3);
        try_block(s, 5, 0, 3);
    }
    return check_report("test_gemm");
}
