/* test_gemv.c - vector times matrix, for every kernel and both layouts.
 *
 * Bit for bit against the order of operations documented in gemv.h, and against
 * double precision, with guard pages after matrix, vector and results.
 */
/* ctest: simde bochs skip-tsan skip-ref */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "check.h"
#include "kernels/gemv.h"

typedef struct subject {
    const lb_gemv_kernel *kernel;
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
    {&lb_gemv_ref, LB_LEVEL_REF, false},
#if defined(__x86_64__)
    {&lb_gemv_avx2, LB_LEVEL_AVX2, FUSED},
#elif defined(__aarch64__)
    {&lb_gemv_neon, LB_LEVEL_NEON, true},
#endif
};

static bool runs_here(lb_level level)
{
#if defined(LB_SIMDE)
    (void)level;
    return true;
#else
    return lb_level_available(level);
#endif
}

/* n floats before a guard page. */
typedef struct {
    char *map;
    size_t size;
    float *x;
} fenced;

static fenced fence(int64_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t bytes = (size_t)n * sizeof(float);
    fenced f = {.size = (bytes / page + 2) * page};
    f.map = mmap(NULL, f.size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f.map == MAP_FAILED ||
        mprotect(f.map + f.size - page, page, PROT_NONE) != 0) {
        perror("mmap");
        exit(1);
    }
    f.x = (float *)(void *)(f.map + f.size - page - bytes);
    return f;
}

static uint32_t seed = 1;
static float rough(void)
{
    seed = seed * 1664525u + 1013904223u;
    return ldexpf((float)(seed >> 8) - 0x1p23f, (int)(seed & 7) - 26);
}

/* One element in the documented order. at: from one product of the matrix to
 * the next. */
static float promised(bool fused, int64_t k, const float *x, const float *b,
                      int64_t at, float y, bool first)
{
    for (int64_t p = 0; p < k; p += 1024) {
        float lane[8] = {0};
        for (int64_t i = p; i < k && i < p + 1024; i++)
            lane[i % 8] = fused ? fmaf(x[i], b[i * at], lane[i % 8])
                                : lane[i % 8] + x[i] * b[i * at];
        for (int half = 4; half; half /= 2)
            for (int l = 0; l < half; l++)
                lane[l] += lane[l + half];
        y = first && p == 0 ? lane[0] : y + lane[0];
    }
    return first && k == 0 ? 0 : y;
}

static void check(const subject *s, int64_t k, int64_t n, bool cols, bool first)
{
    if (check_thins_short()) return;
    static _Alignas(64) float acc[LB_GEMV_LANES * LB_GEMV_NB];
    const int64_t in = cols ? n : k, out = cols ? k : n, ld = in + 3;
    fenced x = fence(k), y = fence(n);
    /* no gap after the last row */
    fenced b = fence(out ? (out - 1) * ld + in : 0);
    float *old = malloc((size_t)n * sizeof *old + 1);
    if (!old) exit(1);
    for (int64_t i = 0; i < k; i++)
        x.x[i] = rough();
    for (int64_t i = 0; i < (out ? (out - 1) * ld + in : 0); i++)
        b.x[i] = rough();
    for (int64_t j = 0; j < n; j++)
        old[j] = y.x[j] = rough();
    if (cols)
        s->kernel->cols(k, x.x, b.x, ld, n, y.x, first, acc);
    else
        s->kernel->rows(k, x.x, b.x, ld, n, y.x, first);
    bool same = true, close = true;
    for (int64_t j = 0; j < n; j++) {
        const float *col = b.x + (cols ? j : j * ld);
        const int64_t at = cols ? ld : 1;
        const float want = promised(s->fused, k, x.x, col, at, old[j], first);
        same = same && memcmp(&want, &y.x[j], sizeof want) == 0;
        double sum = first ? 0 : (double)old[j], size = fabs(sum);
        for (int64_t i = 0; i < k; i++) {
            const double p = (double)x.x[i] * (double)col[i * at];
            sum += p;
            size += fabs(p);
        }
        close = close && fabs((double)y.x[j] - sum) <=
                             (double)(135 + k / 1024) * 0x1p-24 * size;
    }
    if (!same || !close)
        fprintf(stderr, "%s %s: k %lld, n %lld, first %d\n", s->kernel->name,
                cols ? "cols" : "rows", (long long)k, (long long)n, first);
    CHECK(same);
    CHECK(close);
    munmap(x.map, x.size);
    munmap(y.map, y.size);
    munmap(b.map, b.size);
    free(old);
}

int main(void)
{
    static const int64_t ks[] = {0,  1,  7,   8,    9,    16,   63,  64,
                                 65, 71, 250, 1023, 1024, 1025, 2100};
    static const int64_t ns[] = {1, 2,  3,  4,  5,  7,  8,
                                 9, 16, 63, 64, 65, 77, 300};
    for (size_t s = 0; s < sizeof subjects / sizeof *subjects; s++) {
        if (!runs_here(subjects[s].level)) continue;
        for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
            for (size_t j = 0; j < sizeof ns / sizeof *ns; j++)
                for (int how = 0; how < 4; how++)
                    check(&subjects[s], ks[i], ns[j], how & 1, how & 2);
        check(&subjects[s], 20, LB_GEMV_NB, true, true);
    }
    return check_report("gemv");
}
