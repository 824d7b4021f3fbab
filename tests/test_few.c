/* test_few.c - small-M products, for every kernel and both layouts.
 *
 * Bit for bit against the order of operations documented in few.h, and against
 * double precision, with guard pages after all inputs.
 */
/* ctest: simde bochs skip-tsan skip-ref */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "check.h"
#include "kernels/few.h"

typedef struct subject {
    const lb_few_kernel *kernel;
    const lb_gemm_kernel *tiles;
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
    {&lb_few_ref, &lb_gemm_ref, LB_LEVEL_REF, false},
#if defined(__x86_64__)
    {&lb_few_avx2, &lb_gemm_avx2, LB_LEVEL_AVX2, FUSED},
    {&lb_few_avx512, &lb_gemm_avx512, LB_LEVEL_AVX512, FUSED},
#elif defined(__aarch64__)
    {&lb_few_neon, &lb_gemm_neon, LB_LEVEL_NEON, true},
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

static void unfence(fenced *f)
{
    munmap(f->map, f->size);
}

static uint32_t seed = 1;
static float rough(void)
{
    seed = seed * 1664525u + 1013904223u;
    return ldexpf((float)(seed >> 8) - 0x1p23f, (int)(seed & 7) - 26);
}

static void fill(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = rough();
}

/* ---- documented results -------------------------------------------------- */

/* A panel of one element: x[kk] * w[kk * at]. */
static float promised(const subject *s, int64_t k, const float *x,
                      const float *w, int64_t at)
{
    float lane[1 << LB_FEW_LEVELS] = {0};
    const int lanes = s->kernel->lanes;
    for (int64_t kk = 0; kk < k; kk++) {
        float *const l = lane + kk % lanes;
        *l = s->fused ? fmaf(x[kk], w[kk * at], *l) : *l + x[kk] * w[kk * at];
    }
    for (int half = lanes / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

/* Whether got, which was `old` before, has the documented bits and is accurate:
 * k/lanes terms per lane, the lanes, and old. */
static bool right(const subject *s, int64_t k, const float *x, const float *w,
                  int64_t at, float old, bool first, float got)
{
    const float sum = promised(s, k, x, w, at);
    const float want = first ? sum : old + sum;
    double exact = first ? 0 : (double)old, size = fabs(exact);
    for (int64_t kk = 0; kk < k; kk++) {
        const double p = (double)x[kk] * (double)w[kk * at];
        exact += p;
        size += fabs(p);
    }
    const double terms = (double)k / s->kernel->lanes + 8;
    return memcmp(&want, &got, sizeof want) == 0 &&
           fabs((double)got - exact) <= terms * 0x1p-24 * size;
}

static void say(const subject *s, const char *what, int64_t m, int64_t n,
                int64_t k, bool first)
{
    fprintf(stderr, "%s %s: m %d, n %d, k %d, first %d\n", s->kernel->name,
            what, (int)m, (int)n, (int)k, first);
}

/* ---- along the depth ---------------------------------------------------- */

static void check_along(const subject *s, int64_t m, int64_t n, int64_t k,
                        bool first)
{
    if (check_thins_short()) return;
    const int64_t ldw = k + 3, ldx = k + 1, ldt = (n + 1) * LB_FEW_ROWS;
    const int64_t groups = (m + LB_FEW_ROWS - 1) / LB_FEW_ROWS;
    fenced x = fence((m - 1) * ldx + k), w = fence((n - 1) * ldw + k);
    fenced p = fence(lb_few_floats(s->kernel, m, k)), t = fence(groups * ldt);
    float *const old = malloc((size_t)(m * n) * sizeof *old);
    float *const got = malloc((size_t)n * 2 * sizeof *got);
    if (!old || !got) exit(1);
    fill(x.x, (m - 1) * ldx + k);
    fill(w.x, (n - 1) * ldw + k);
    fill(t.x, groups * ldt);
    for (int64_t i = 0; i < m; i++)
        lb_few_row(t.x, ldt, m, i, n, old + i * n, 1);
    lb_few_pack(s->kernel, x.x, ldx, 1, m, k, p.x);
    lb_few_next next = {0};
    if (n % 2) next = (lb_few_next){(uintptr_t)w.x, 4 * ldw, n};
    lb_few_along(s->kernel, m, k, p.x, w.x, ldw, n, t.x, ldt, first, next);
    bool ok = true;
    for (int64_t i = 0; i < m; i++) {
        lb_few_row(t.x, ldt, m, i, n, got, 2);
        for (int64_t j = 0; j < n; j++)
            ok = ok && right(s, k, x.x + i * ldx, w.x + j * ldw, 1,
                             old[i * n + j], first, got[2 * j]);
    }
    if (!ok) say(s, "along", m, n, k, first);
    CHECK(ok);
    free(old);
    free(got);
    unfence(&x);
    unfence(&w);
    unfence(&p);
    unfence(&t);
}

/* Strides of x do not matter: it is packed. */
static void check_pack(const subject *s)
{
    enum { M = 7, K = 45 };
    float x[M * K], y[M * K], p[2][M * (K + 16)];
    fill(x, M * K);
    for (int i = 0; i < M; i++)
        for (int kk = 0; kk < K; kk++)
            y[kk * M + i] = x[i * K + kk];
    lb_few_pack(s->kernel, x, K, 1, M, K, p[0]);
    lb_few_pack(s->kernel, y, 1, M, M, K, p[1]);
    CHECK(memcmp(p[0], p[1],
                 (size_t)lb_few_floats(s->kernel, M, K) * sizeof(float)) == 0);
}

/* ---- across it ---------------------------------------------------------- */

static bool check_sums(const subject *s, int64_t m, int64_t n, int64_t k,
                       const float *x, const float *w, int64_t ldw,
                       const float *old, bool first, const float *c)
{
    bool ok = true;
    for (int64_t e = 0; e < m * n; e++)
        ok = ok &&
             right(s, k, x + e / n * k, w + e % n, ldw, old[e], first, c[e]);
    return ok;
}

/* A copy of all of w; or part by part, as if decoded. */
static void copy_all(const subject *s, const float *w, lb_few_copy *c)
{
    const int64_t part = lb_few_part(s->kernel);
    for (c->at = 0; c->at < c->k; c->at += part) {
        const int64_t kc = c->k - c->at < part ? c->k - c->at : part;
        fenced some = fence((kc - 1) * c->ldw + c->n);
        memcpy(some.x, w + c->at * c->ldw,
               (size_t)((kc - 1) * c->ldw + c->n) * sizeof *w);
        c->from = some.x;
        lb_few_copy_some(s->kernel, s->tiles, c, kc * c->n);
        unfence(&some);
    }
}

static void check_across(const subject *s, int64_t m, int64_t n, int64_t k,
                         bool first)
{
    if (check_thins_short()) return;
    const int nr = s->tiles->nr;
    const int64_t ldw = n + 5, size = k ? (k - 1) * ldw + n : 0;
    const int64_t room = lb_few_copy_floats(s->kernel, s->tiles, k, n);
    fenced x = fence(m * k), w = fence(size), p = fence(m * k);
    fenced c = fence(m * n), tmp = fence((int64_t)LB_FEW_LEVELS * m * nr);
    fenced to[2] = {fence(room), fence(room)};
    float *const old = malloc((size_t)(m * n) * sizeof *old);
    if (!old) exit(1);
    fill(x.x, m * k);
    fill(w.x, size);
    fill(old, m * n);
    lb_few_pack_across(s->kernel, s->tiles, x.x, k, 1, m, k, p.x);
    lb_few_copy a = {.ldw = ldw, .k = k, .n = n, .to = to[0].x};
    lb_few_copy b = {w.x, ldw, 0, k, n, to[1].x, 0, 0};
    copy_all(s, w.x, &a);
    for (int i = 0; i < 2; i++) { /* b is copied while a is worked with */
        memcpy(c.x, old, (size_t)(m * n) * sizeof *old);
        lb_few_across(s->kernel, s->tiles, m, p.x, i ? &b : &a, c.x, n, first,
                      tmp.x, i ? NULL : &b);
        const bool ok = check_sums(s, m, n, k, x.x, w.x, ldw, old, first, c.x);
        if (!ok)
            say(s, i ? "across, copied at once" : "across", m, n, k, first);
        CHECK(ok);
    }
    free(old);
    unfence(&x);
    unfence(&w);
    unfence(&p);
    unfence(&c);
    unfence(&tmp);
    unfence(&to[0]);
    unfence(&to[1]);
}

int main(void)
{
    static const int64_t ms[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 17};
    static const int64_t ns[] = {1, 2, 3, 5, 6, 7, 12, 16, 33, 64, 75};
    static const int64_t ks[] = {0,  1,  7,  8,  9,   15,  16,
                                 17, 31, 33, 64, 250, 511, LB_FEW_KC};
    enum {
        MS = sizeof ms / sizeof *ms,
        NS = sizeof ns / sizeof *ns,
        KS = sizeof ks / sizeof *ks
    };
    for (int s = 0; s < N_SUBJECTS; s++) {
        const subject *const f = &subjects[s];
        if (!runs_here(f->level)) {
            printf("test_few: %s cannot run here\n", f->kernel->name);
            continue;
        }
        CHECK(lb_few_kernel_for(&(lb_cpu){.level = f->level}) == f->kernel);
        check_pack(f);
        for (int e = 0; e < MS * NS * KS; e++) {
            const int64_t m = ms[e % MS], n = ns[e / MS % NS];
            const int64_t k = ks[e / MS / NS];
            if (k) check_along(f, m, n, k, e % 2);
            if (k) check_along(f, m, n, k, (e + 1) % 2);
            check_across(f, m, n, k, (e / 3) % 2);
        }
    }
    return check_report("few");
}
