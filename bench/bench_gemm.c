/* bench_gemm.c - the f32 kernels in a whole product, compared with OpenBLAS.
 *
 * C (S,S) = A (S,S) x B (S,S), row-major, packing included, on one and two
 * threads. A unit is a block of rows and columns of C:
 *
 *   for each depth of LB_GEMM_KC:         packed B: 1 MiB at most, from L3
 *     pack B (KC, columns)                packed A: 192 KiB at most, from L2
 *     for each PIECE of the unit's rows:
 *       pack A (PIECE, KC); all tiles
 *
 * OpenBLAS chooses its kernels by OPENBLAS_CORETYPE when it is loaded, so each
 * level runs in a process of its own. Prints GFLOP/s and the ratio of lowbit to
 * OpenBLAS.
 *
 *   bench_gemm [ref | avx2 | avx512]      no level: every vector level here
 */
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif

#include "base/cpu.h"
#include "base/threads.h"
#include "bench.h"
#include "kernels/gemm.h"

enum {
    COLUMNS = 1024, /* of a unit */
    PIECE = 192,    /* rows of A packed together */
    ROWS_MIN = 256, /* of a unit; with fewer, packing B takes noticeable time */
    UNITS = 2,      /* per thread, if ROWS_MIN allows it */
    MAX_THREADS = 2,
    ROUNDS = 9
};

typedef struct product {
    const lb_gemm_kernel *kernel;
    lb_pool *pool;
    int64_t size, rows, units_n; /* rows of a unit; units along N */
    float *a, *b, *c;
    float *scratch[MAX_THREADS];
} product;

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* ---- ours --------------------------------------------------------------- */

static void run_unit(const product *p, int64_t unit, float *scratch)
{
    const lb_gemm_kernel *const kernel = p->kernel;
    const int64_t s = p->size;
    const int64_t i0 = unit / p->units_n * p->rows;
    const int64_t j0 = unit % p->units_n * COLUMNS;
    const int64_t m = min_i64(p->rows, s - i0), n = min_i64(COLUMNS, s - j0);
    const int64_t piece = PIECE / kernel->mr * kernel->mr;
    float *const b = scratch, *const a = b + COLUMNS * LB_GEMM_KC;
    for (int64_t k0 = 0; k0 < s; k0 += LB_GEMM_KC) {
        const int64_t k = min_i64(LB_GEMM_KC, s - k0);
        lb_gemm_pack(p->b + k0 * s + j0, 1, s, n, k, kernel->nr, b, k);
        for (int64_t i = i0; i < i0 + m; i += piece) {
            const int64_t rows = min_i64(piece, i0 + m - i);
            lb_gemm_pack_rows(p->a + i * s + k0, s, 1, rows, k, kernel->mr, a);
            lb_gemm_block(kernel, rows, n, k, a, b, kernel->nr, k,
                          p->c + i * s + j0, s, k0 == 0, NULL);
        }
    }
}

static void run_units(void *arg, int64_t lo, int64_t hi, int thread)
{
    const product *const p = arg;
    for (int64_t u = lo; u < hi; u++)
        run_unit(p, u, p->scratch[thread]);
}

static void ours(product *p)
{
    const int threads = lb_pool_threads(p->pool);
    p->units_n = (p->size + COLUMNS - 1) / COLUMNS;
    const int64_t want = threads > 1 ? UNITS * threads : 1;
    const int64_t down = (want + p->units_n - 1) / p->units_n;
    p->rows = round_up((p->size + down - 1) / down, p->kernel->mr);
    if (p->rows < ROWS_MIN) p->rows = round_up(ROWS_MIN, p->kernel->mr);
    lb_pool_run(p->pool, (p->size + p->rows - 1) / p->rows * p->units_n,
                run_units, p);
}

/* ---- theirs ------------------------------------------------------------- */

#ifdef HAVE_OPENBLAS
static void theirs(product *p)
{
    const int s = (int)p->size;
    openblas_set_num_threads(lb_pool_threads(p->pool));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, s, s, s, 1, p->a, s,
                p->b, s, 0, p->c, s);
}
#endif

/* ---- both --------------------------------------------------------------- */

typedef struct side {
    product *p;
    void (*run)(product *p);
} side;

/* The pause lets the spinning workers of the other side fall asleep; the first
 * run wakes up those of this side. */
static double one_round(void *arg)
{
    const side *const s = arg;
    usleep(60000);
    s->run(s->p);
    const double start = bench_now();
    s->run(s->p);
    return bench_now() - start;
}

/* Compares some elements with double precision, within the error bound of one
 * long sum. */
static void check(const product *p)
{
    const int64_t s = p->size;
    for (int64_t e = 0; e < s * s; e += s * s / 61) {
        double sum = 0, size = 0;
        for (int64_t k = 0; k < s; k++) {
            const float x = p->a[e / s * s + k], y = p->b[k * s + e % s];
            sum += (double)x * (double)y;
            size += fabs((double)x * (double)y);
        }
        if (fabs(sum - (double)p->c[e]) <= (double)s * 0x1p-24 * size) continue;
        fprintf(stderr, "bench_gemm: %s is wrong\n", p->kernel->name);
        exit(1);
    }
}

static void measure(product *p, const char *level)
{
    side mine = {p, ours};
    bench_side sides[2] = {{.round = one_round, .arg = &mine}};
#ifdef HAVE_OPENBLAS
    side other = {p, theirs};
    sides[1] = (bench_side){.round = one_round, .arg = &other};
#endif
    memset(p->c, 0, (size_t)(p->size * p->size) * sizeof *p->c);
    ours(p);
    check(p);
    bench_alternate(sides, 2, ROUNDS);
    const double s = (double)p->size, flop = 2 * s * s * s;
    const double x = flop / sides[0].figure, y = flop / sides[1].figure;
    printf("%-8s %6d %8d %10.1f %10.1f %8.2f\n", level, (int)p->size,
           lb_pool_threads(p->pool), x, y, x / y);
    fflush(stdout);
}

static void *must(void *ptr)
{
    if (ptr) return ptr;
    fprintf(stderr, "bench_gemm: out of memory\n");
    exit(1);
}

static float *floats(int64_t n) /* aligned, on touched pages */
{
    float *const x = must(aligned_alloc(64, (size_t)n * sizeof *x));
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i * 7919 % 1021) / 1021 - 0.5f;
    return x;
}

static void bench_level(lb_level level)
{
    static const int64_t sizes[] = {1024, 2048};
    lb_heap *const heap = must(lb_heap_open(NULL, 0));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t s = sizes[i];
        product p = {.kernel = lb_gemm_kernel_for(&(lb_cpu){.level = level}),
                     .size = s};
        p.a = floats(s * s);
        p.b = floats(s * s);
        p.c = floats(s * s);
        for (int t = 0; t < MAX_THREADS; t++)
            p.scratch[t] =
                floats((COLUMNS + PIECE + LB_GEMM_MAX_MR) * LB_GEMM_KC);
        for (int threads = 1; threads <= MAX_THREADS; threads++) {
            p.pool = must(lb_pool_open(heap, threads));
            measure(&p, lb_level_name(level));
            lb_pool_close(p.pool);
        }
        for (int t = 0; t < MAX_THREADS; t++)
            free(p.scratch[t]);
        free(p.a);
        free(p.b);
        free(p.c);
    }
    lb_heap_close(heap);
}

static int run_process(char *self, const char *level, const char *core)
{
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        char *const argv[] = {self, (char *)level, NULL};
        setenv("OPENBLAS_CORETYPE", core, 1);
        execv("/proc/self/exe", argv);
        _exit(127);
    }
    int status = -1;
    return pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0;
}

int main(int argc, char **argv)
{
    lb_level level;
    if (argc == 2 && lb_level_parse(argv[1], &level)) {
        if (!lb_level_available(level)) {
            fprintf(stderr, "bench_gemm: no %s here\n", argv[1]);
            return 1;
        }
        bench_level(level);
        return 0;
    }
    if (argc != 1) {
        fprintf(stderr, "usage: bench_gemm [ref | avx2 | avx512]\n");
        return 1;
    }
    printf("%-8s %6s %8s %10s %10s %8s\n", "level", "M=N=K", "threads",
           "GFLOP/s", "OpenBLAS", "ratio");
    int failed = 0;
    if (lb_level_available(LB_LEVEL_AVX2))
        failed |= run_process(argv[0], "avx2", "HASWELL");
    if (lb_level_available(LB_LEVEL_AVX512))
        failed |= run_process(argv[0], "avx512", "SKYLAKEX");
    if (!lb_level_available(LB_LEVEL_AVX2))
        failed |= run_process(argv[0], "ref", "PRESCOTT");
    return failed;
}
