/* mlp_mesh.c - a two-layer block sharded over a mesh, forward and backward,
 * with nf4 weights; the first layer is split by columns, the second by rows.
 * Compares with one process. See docs/sharding.md.
 *
 *     x (m, width)   not split          up   (4 width, width)  P(tp, None)
 *     y (m, width)   not split          down (width, 4 width)  P(None, tp)
 *
 * Each rank has a share of the hidden layer: it multiplies by its rows of up
 * and its columns of down. The partial y are summed, and backward so are the
 * partial gradients of x:
 *
 *     bytes per step = 2 sums * m * width * 4
 *
 * Ranks are threads; compiled with WITH_MPI (mlp_mesh_mpi), MPI processes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef WITH_MPI
#include <lowbit_mpi.h>
#else
#include <lowbit_mesh.h>
#endif

enum { X, UP, DOWN, TARGET, ARRAYS, GRADS = TARGET, MOST_ROUNDS = 101 };

typedef struct {
    int ranks, rounds;
    int64_t m, width;
} options;

/* x (m, width); weights are (out, in) */
static lb_array *loss(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *h = lb_matmul(cx, a[X], lb_transpose(cx, a[UP], NULL));
    h = lb_gelu_tanh(cx, h);
    lb_array *y = lb_matmul(cx, h, lb_transpose(cx, a[DOWN], NULL));
    return lb_squared_error(cx, y, a[TARGET]);
}

/* The unsharded arrays, the same on every rank. */
static bool make(lb_ctx *cx, const options *o, lb_array **a)
{
    const lb_shape shape[ARRAYS] = {{2, {o->m, o->width}},
                                    {2, {4 * o->width, o->width}},
                                    {2, {o->width, 4 * o->width}},
                                    {2, {o->m, o->width}}};
    for (int i = 0; i < ARRAYS; i++) {
        const lb_key key = {1, (uint64_t)i};
        a[i] = lb_random_normal(cx, key, LB_F32, shape[i]);
        if (i != UP && i != DOWN) continue;
        const double size = 1 / sqrt((double)lb_dim(a[i], 1));
        a[i] = lb_mul(cx, a[i], lb_scalar(cx, size));
        a[i] = lb_quantize(cx, a[i], &(lb_quant_config){.format = "nf4"});
    }
    return a[ARRAYS - 1] != NULL;
}

/* ---- time --------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One step, forward and backward; its scope frees the gradients. */
static double step(lb_ctx *cx, lb_array *const *a)
{
    lb_array *grad[GRADS];
    lb_enter(cx);
    const double begin = seconds();
    lb_value_and_grad(cx, loss, a, ARRAYS, NULL, grad, GRADS);
    const double took = seconds() - begin;
    lb_leave(cx);
    return took;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *t, int n)
{
    qsort(t, (size_t)n, sizeof *t, compare);
    return t[n / 2];
}

/* ---- one rank ----------------------------------------------------------- */

/* The largest difference, relative to the largest value. */
static double apart(lb_ctx *cx, lb_array *got, lb_array *want)
{
    const lb_axes *all = NULL;
    lb_array *d = lb_abs(cx, lb_sub(cx, got, want));
    const double off = lb_item(cx, lb_reduce_max(cx, d, all));
    return off / lb_item(cx, lb_reduce_max(cx, lb_abs(cx, want), all));
}

/* True (on all ranks) if gradients equal those of one process. */
static bool same(lb_ctx *cx, lb_mesh *mesh, lb_array *const *cut,
                 lb_array *const *whole)
{
    static const char *const name[] = {"x", "up", "down"};
    lb_array *got[GRADS], *want[GRADS];
    bool ok = true;
    lb_array *u = lb_value_and_grad(cx, loss, cut, ARRAYS, NULL, got, GRADS);
    lb_array *v = lb_value_and_grad(cx, loss, whole, ARRAYS, NULL, want, GRADS);
    double off = fabs(lb_item(cx, u) / lb_item(cx, v) - 1);
    if (lb_mesh_rank(mesh) == 0)
        printf("relative differences: value %.1e", off);
    for (int i = 0; i < GRADS; i++) {
        ok = ok && off <= 1e-5; /* false for NaN */
        off = apart(cx, got[i], want[i]);
        if (lb_mesh_rank(mesh) == 0)
            printf(", gradient of %s %.1e", name[i], off);
    }
    if (lb_mesh_rank(mesh) == 0) printf("\n");
    return ok && off <= 1e-5;
}

/* True if a step communicates as many bytes as the formula. */
static bool counted(lb_ctx *cx, lb_mesh *mesh, const options *o,
                    lb_array *const *cut)
{
    const lb_traffic before = lb_mesh_traffic(mesh);
    step(cx, cut);
    const lb_traffic now = lb_mesh_traffic(mesh);
    const long long sums = now.reduces - before.reduces;
    const long long bytes = now.reduce_bytes - before.reduce_bytes;
    const long long more = now.gather_bytes - before.gather_bytes;
    const long long formula =
        lb_mesh_size(mesh) > 1 ? 2LL * o->m * o->width * 4 : 0;
    if (lb_mesh_rank(mesh) == 0)
        printf("communicated per step: %lld sums, %lld bytes; %lld bytes "
               "gathered; expected 2 * m * width * 4 = %lld\n",
               sums, bytes, more, formula);
    return bytes == formula && !more;
}

/* Alternates: the mesh, and rank 0 alone with as many threads. */
static void measure(lb_ctx *cx, lb_mesh *mesh, const options *o,
                    lb_array *const *cut)
{
    double together[MOST_ROUNDS], alone[MOST_ROUNDS];
    const int n = lb_mesh_size(mesh);
    lb_array *whole[ARRAYS];
    lb_ctx *single = NULL;
    if (lb_mesh_rank(mesh) == 0) {
        single = lb_open(&(lb_options){.threads = n});
        if (single && make(single, o, whole)) step(single, whole);
    }
    for (int i = 0; i < o->rounds; i++) {
        lb_mesh_agree(mesh); /* all start together */
        together[i] = step(cx, cut);
        lb_mesh_agree(mesh);
        if (single) alone[i] = step(single, whole);
    }
    if (single) {
        const double a = median(together, o->rounds);
        const double b = median(alone, o->rounds);
        printf(
            "time per step: %d ranks with one thread %.2f ms, one process with "
            "%d threads %.2f ms, ratio %.3f (medians of %d rounds)\n",
            n, a * 1e3, n, b * 1e3, a / b, o->rounds);
    }
    lb_close(single);
}

static int main_of_rank(lb_comm *comm, void *user)
{
    const options *o = user;
    char axes[32];
    lb_array *whole[ARRAYS], *cut[ARRAYS];
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    snprintf(axes, sizeof axes, "tp=%d", comm->size);
    lb_mesh *mesh = lb_mesh_open(cx, comm, axes, NULL);
    if (mesh && comm->rank == 0)
        printf("mesh %s of %s: m %lld, width %lld, nf4\n", axes, comm->engine,
               (long long)o->m, (long long)o->width);
    bool ok = mesh && make(cx, o, whole);
    if (ok) {
        memcpy(cut, whole, sizeof cut);
        cut[UP] = lb_shard(cx, mesh, whole[UP], "P(tp, None)");
        cut[DOWN] = lb_shard(cx, mesh, whole[DOWN], "P(None, tp)");
        ok = same(cx, mesh, cut, whole);
        ok = counted(cx, mesh, o, cut) && ok;
        measure(cx, mesh, o, cut);
    }
    ok = lb_mesh_close(mesh) && ok;
    if (lb_error_status(cx) && comm->rank == 0)
        fprintf(stderr, "mlp_mesh: %s\n", lb_error(cx));
    lb_close(cx);
    return ok ? 0 : 1;
}

/* ---- options ------------------------------------------------------------ */

static bool read_options(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i += 2) {
        char *end = NULL;
        const long v = i + 1 < argc ? strtol(argv[i + 1], &end, 10) : 0;
        if (!end || *end || v < 1 || v > 1 << 20) return false;
        if (!strcmp(argv[i], "--ranks"))
            o->ranks = (int)v;
        else if (!strcmp(argv[i], "--rounds") && v <= MOST_ROUNDS)
            o->rounds = (int)v;
        else if (!strcmp(argv[i], "--m"))
            o->m = v;
        else if (!strcmp(argv[i], "--width"))
            o->width = v;
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    options o = {.ranks = 2, .rounds = 3, .m = 32, .width = 256};
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr,
                "usage: %s [--ranks 2] [--m 32] [--width 256] [--rounds 3]\n"
                "ranks are threads; with MPI: mpirun -np 2 %s\n",
                argv[0], argv[0]);
        return 2;
    }
#ifdef WITH_MPI
    return lb_mpi_run(&argc, &argv, main_of_rank, &o);
#else
    return lb_mesh_run(o.ranks, main_of_rank, &o);
#endif
}
