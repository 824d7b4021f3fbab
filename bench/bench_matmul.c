/* bench_matmul.c - lb_matmul against OpenBLAS, and what a call costs.
 *
 * f32, M = N = K = 1024 and 2048, on 1 and 2 threads, on every level that this
 * machine has, in alternating rounds. OpenBLAS reads OPENBLAS_CORETYPE (Haswell
 * for AVX2, SkylakeX for AVX-512) when a process begins, so this program runs
 * itself once for each level with that set. Prints GFLOP/s and the ratio of
 * rates, ours to theirs (above 1: ours is faster). Then, on one thread, the
 * median time of lb_matmul 1x64x64 next to its kernel called directly: the
 * difference is what infer, the tiers, scratch and the result cost.
 */
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cpu.h"
#include "bench.h"
#include "kernels/gemv.h"
#include "lowbit.h"

#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif

enum { ROUNDS = 9, SMALL_ROUNDS = 41, SMALL_RUNS = 2000 };

typedef struct {
    lb_ctx *cx;
    lb_array *a, *b;
    const float *pa, *pb;
    float *pc;
    int n;
} square;

static double ours(void *arg)
{
    square *s = arg;
    const double start = bench_now();
    lb_drop(s->cx, lb_matmul(s->cx, s->a, s->b));
    return bench_now() - start;
}

#ifdef HAVE_OPENBLAS
static double theirs(void *arg)
{
    square *s = arg;
    const int n = s->n;
    const double start = bench_now();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, s->pa, n,
                s->pb, n, 0, s->pc, n);
    return bench_now() - start;
}
#endif

static int bench_square(lb_ctx *cx, int n)
{
    const lb_shape shape = LB_SHAPE(n, n);
    square s = {.cx = cx, .n = n};
    lb_enter(cx);
    s.a = lb_random_normal(cx, (lb_key){1, 0}, LB_F32, shape);
    s.b = lb_random_normal(cx, (lb_key){2, 0}, LB_F32, shape);
    lb_array *c = lb_materialize(cx, lb_zeros(cx, LB_F32, shape));
    if (!c) {
        fprintf(stderr, "%s\n", lb_error(cx));
        return 1;
    }
    s.pa = lb_data(s.a);
    s.pb = lb_data(s.b);
    s.pc = (float *)(uintptr_t)lb_data(c);
    bench_side sides[2] = {{.round = ours, .arg = &s}, {.arg = &s}};
#ifdef HAVE_OPENBLAS
    openblas_set_num_threads(lb_threads(cx));
    sides[1].round = theirs;
    theirs(&s);
#endif
    ours(&s);
    bench_alternate(sides, 2, ROUNDS);
    const double flop = 2.0 * n * n * n;
    printf("%-10s %5d %8d %10.1f %10.1f %7.2f\n", lb_isa(cx), n, lb_threads(cx),
           flop / sides[0].figure, flop / sides[1].figure,
           sides[1].figure / sides[0].figure);
    lb_leave(cx);
    return 0;
}

/* ---- what a call costs -------------------------------------------------- */

static double bound(void *arg)
{
    square *s = arg;
    const double start = bench_now();
    for (int i = 0; i < SMALL_RUNS; i++)
        lb_drop(s->cx, lb_matmul(s->cx, s->a, s->b));
    return (bench_now() - start) / SMALL_RUNS;
}

static double direct(void *arg)
{
    static _Alignas(64) float acc[LB_GEMV_LANES * LB_GEMV_NB];
    square *s = arg;
    lb_level level = LB_LEVEL_REF;
    lb_level_parse(lb_isa(s->cx), &level);
    const lb_gemv_kernel *kernel =
        lb_gemv_kernel_for(&(lb_cpu){.level = level});
    const double start = bench_now();
    for (int i = 0; i < SMALL_RUNS; i++)
        kernel->cols(64, s->pa, s->pb, 64, 64, s->pc, true, acc);
    return (bench_now() - start) / SMALL_RUNS;
}

static int bench_bind(const char *level)
{
    float c[64];
    square s = {.cx = lb_open(&(lb_options){.threads = 1, .isa = level})};
    s.a = lb_random_normal(s.cx, (lb_key){1, 0}, LB_F32, LB_SHAPE(1, 64));
    s.b = lb_random_normal(s.cx, (lb_key){2, 0}, LB_F32, LB_SHAPE(64, 64));
    if (!s.b) {
        fprintf(stderr, "%s\n", lb_error(s.cx));
        return 1;
    }
    s.pa = lb_data(s.a);
    s.pb = lb_data(s.b);
    s.pc = c;
    bench_side sides[2] = {{.round = bound, .arg = &s},
                           {.round = direct, .arg = &s}};
    bench_alternate(sides, 2, SMALL_ROUNDS);
    printf("%-10s 1x64x64: lb_matmul %.0f ns, its kernel %.0f ns, the call "
           "%.0f ns\n",
           level, sides[0].figure, sides[1].figure,
           sides[0].figure - sides[1].figure);
    lb_close(s.cx);
    return 0;
}

/* ---- levels ------------------------------------------------------------- */

static int bench_level(const char *level)
{
    int bad = 0;
#ifdef HAVE_OPENBLAS
    printf("OpenBLAS runs as %s\n", openblas_get_corename());
#endif
    for (int threads = 1; threads <= 2; threads++) {
        lb_ctx *cx = lb_open(&(lb_options){.threads = threads, .isa = level});
        if (!cx) return 1;
        for (int n = 1024; n <= 2048; n *= 2)
            bad |= bench_square(cx, n);
        lb_close(cx);
    }
    return bad | bench_bind(level);
}

int main(int argc, char **argv)
{
    static const struct {
        lb_level level;
        const char *core;
    } levels[] = {{LB_LEVEL_AVX2, "Haswell"}, {LB_LEVEL_AVX512, "SkylakeX"}};
    if (argc > 1) return bench_level(argv[1]);
    int bad = 0;
    printf("%-10s %5s %8s %10s %10s %7s\n", "level", "n", "threads", "GFLOP/s",
           "OpenBLAS", "ratio");
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (!lb_level_available(levels[i].level)) continue;
        const char *name = lb_level_name(levels[i].level);
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            setenv("OPENBLAS_CORETYPE", levels[i].core, 1);
            execl("/proc/self/exe", argv[0], name, (char *)NULL);
            _exit(127);
        }
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) < 0 || status) bad = 1;
    }
    return bad;
}
