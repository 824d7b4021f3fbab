/* bench_programs.c - compiled functions compared with eager ones.
 *
 *   bench_programs [rounds [threads [elements]]]
 *
 * Elementwise functions, softmax and norms of dense and of nf4 operands; and
 * the overhead per node in a chain of 20 additions and multiplications of small
 * arrays. Eager and compiled calls alternate; a ratio above 1 means that the
 * compiled function is faster.
 */
#include <string.h>

#include "bench.h"
#include "lowbit.h"

enum { COLS = 1024, CHAIN = 20, FUNCTIONS = 6 };

static lb_array *square_plus(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    return lb_add(cx, lb_mul(cx, a[0], a[0]), a[0]);
}

static lb_array *gelu(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    return lb_gelu_tanh(cx, a[0]);
}

static lb_array *gate(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    return lb_mul(cx, lb_silu(cx, a[0]), a[1]);
}

static lb_array *number(lb_ctx *cx, double x)
{
    return lb_scalar(cx, x);
}

/* Of rows, kept as a column. */
static lb_array *column(lb_ctx *cx, lb_array *reduced)
{
    return lb_reshape(cx, reduced, LB_SHAPE(lb_dim(reduced, 0), 1));
}

static lb_array *mean_of(lb_ctx *cx, lb_array *x)
{
    const lb_axes last = {1, {1}};
    return lb_div(cx, column(cx, lb_reduce_sum(cx, x, &last)),
                  number(cx, COLS));
}

static lb_array *softmax(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    const lb_axes last = {1, {1}};
    (void)n, (void)user;
    lb_array *top = column(cx, lb_reduce_max(cx, a[0], &last));
    lb_array *e = lb_exp(cx, lb_sub(cx, a[0], top));
    return lb_div(cx, e, column(cx, lb_reduce_sum(cx, e, &last)));
}

static lb_array *rms_norm(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *square = mean_of(cx, lb_mul(cx, a[0], a[0]));
    return lb_mul(cx, a[0], lb_rsqrt(cx, lb_add(cx, square, number(cx, 1e-5))));
}

static lb_array *layer_norm(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    lb_array *centred = lb_sub(cx, a[0], mean_of(cx, a[0]));
    return rms_norm(cx, &centred, n, user);
}

/* ((x + x) * x + x) * x ...: results stay finite for |x| < 1/2 */
static lb_array *chain(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *y = a[0];
    for (int i = 0; i < CHAIN; i++)
        y = i % 2 ? lb_mul(cx, y, a[0]) : lb_add(cx, y, a[0]);
    return y;
}

static const struct {
    const char *name;
    lb_fn fn;
} function[FUNCTIONS] = {
    {"x*x+x", square_plus}, {"gelu_tanh", gelu},    {"silu(a)*b", gate},
    {"softmax", softmax},   {"rms_norm", rms_norm}, {"layer_norm", layer_norm},
};

typedef struct run {
    lb_ctx *cx;
    lb_fn fn;
    lb_compiled *f; /* NULL: eager */
    lb_array *args[2];
    int times;
} run;

static double round_of(void *arg)
{
    const run *r = arg;
    const double from = bench_now();
    for (int i = 0; i < r->times; i++) {
        lb_enter(r->cx);
        if (r->f)
            lb_run(r->f, r->args, 2);
        else
            r->fn(r->cx, r->args, 2, NULL);
        lb_leave(r->cx);
    }
    return (bench_now() - from) / r->times;
}

static size_t peak_of(run *r)
{
    const size_t before = lb_bytes_in_use(r->cx);
    r->times = 1;
    round_of(r);
    return lb_bytes_peak(r->cx) - before;
}

static void compare(lb_ctx *cx, lb_fn fn, lb_array *a, lb_array *b, int rounds,
                    int times, double figure[2])
{
    lb_compiled *f = lb_compile(cx, fn, NULL, NULL);
    run eager = {cx, fn, NULL, {a, b}, times};
    run compiled = {cx, fn, f, {a, b}, times};
    bench_side side[2] = {{round_of, &eager, 0}, {round_of, &compiled, 0}};
    round_of(&eager);
    round_of(&compiled);
    bench_alternate(side, 2, rounds);
    figure[0] = side[0].figure;
    figure[1] = side[1].figure;
    lb_compiled_close(f);
}

static size_t peak(lb_fn fn, bool compile, int threads, lb_shape shape)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = threads});
    lb_array *a = lb_random_normal(cx, (lb_key){1, 0}, LB_F32, shape);
    run r = {
        cx, fn, compile ? lb_compile(cx, fn, NULL, NULL) : NULL, {a, a}, 1};
    const size_t bytes = peak_of(&r);
    lb_compiled_close(r.f);
    lb_close(cx);
    return bytes;
}

static void of_functions(lb_ctx *cx, int rounds, int threads, int64_t size)
{
    const lb_shape shape = LB_SHAPE(size / COLS, COLS);
    lb_array *a = lb_random_normal(cx, (lb_key){1, 0}, LB_F32, shape);
    lb_array *b = lb_random_normal(cx, (lb_key){2, 0}, LB_F32, shape);
    const lb_quant_config nf4 = {.format = "nf4"};
    lb_array *q = lb_quantize(cx, a, &nf4), *r = lb_quantize(cx, b, &nf4);
    printf("%lld elements in rows of %d, %d threads, medians of %d rounds\n",
           (long long)size, COLS, threads, rounds);
    printf("%-12s %10s %10s %6s %10s %10s %6s %17s\n", "function", "eager ms",
           "compiled", "ratio", "nf4 eager", "compiled", "ratio", "peak MB");
    for (int i = 0; i < FUNCTIONS; i++) {
        double f32[2], packed[2];
        compare(cx, function[i].fn, a, b, rounds, 1, f32);
        compare(cx, function[i].fn, q, r, rounds, 1, packed);
        printf("%-12s %10.2f %10.2f %6.2f %10.2f %10.2f %6.2f %7.0f -> %6.0f\n",
               function[i].name, f32[0] / 1e6, f32[1] / 1e6, f32[0] / f32[1],
               packed[0] / 1e6, packed[1] / 1e6, packed[0] / packed[1],
               (double)peak(function[i].fn, false, threads, shape) / 1e6,
               (double)peak(function[i].fn, true, threads, shape) / 1e6);
    }
}

static void of_nodes(int rounds)
{
    static const int64_t side[2][2] = {{1, 8}, {64, 64}};
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    printf("\n%d additions and multiplications, 1 thread\n", CHAIN);
    printf("%-12s %10s %10s\n", "shape", "eager ns", "compiled, per node");
    for (int i = 0; i < 2; i++) {
        double ns[2];
        lb_array *a =
            lb_random_uniform(cx, (lb_key){1, 0}, LB_F32,
                              LB_SHAPE(side[i][0], side[i][1]), -0.5, 0.5);
        compare(cx, chain, a, a, rounds, 2000, ns);
        printf("(%lld,%lld) %15.0f %10.0f\n", (long long)side[i][0],
               (long long)side[i][1], ns[0] / CHAIN, ns[1] / CHAIN);
    }
    lb_close(cx);
}

/* ---- a training step ----------------------------------------------------- */

enum { BATCH = 128, LAYERS = 3, PARAMS = 2 * LAYERS };
static const int64_t width[LAYERS + 1] = {784, 512, 256, 10};

static lb_array *loss(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    lb_array *x = a[n - 2];
    (void)user;
    for (int k = 0; k < LAYERS; k++) {
        x = lb_matmul(cx, x, lb_transpose(cx, a[2 * k], NULL));
        x = lb_add(cx, x, a[2 * k + 1]);
        if (k < LAYERS - 1) x = lb_relu(cx, x);
    }
    return lb_mean(cx, lb_cross_entropy(cx, x, a[n - 1]), NULL, false);
}

/* args: parameters, x, labels; out: the loss, the next parameters */
static bool step(lb_ctx *cx, lb_array *const *args, int n, lb_array **out,
                 int n_out, void *optimizer)
{
    lb_array *grad[PARAMS];
    (void)n_out;
    for (int i = 0; i < PARAMS; i++)
        out[i + 1] = args[i];
    out[0] = lb_value_and_grad(cx, loss, args, n, NULL, grad, PARAMS);
    return out[0] && lb_optimizer_step(optimizer, out + 1, grad);
}

typedef struct training {
    lb_ctx *cx;
    lb_optimizer *o;
    lb_compiled *f; /* NULL: eagerly */
    lb_array *args[PARAMS + 2];
} training;

static double round_of_steps(void *arg)
{
    enum { STEPS = 10 };
    training *t = arg;
    const double from = bench_now();
    for (int i = 0; i < STEPS; i++) {
        lb_array *out[PARAMS + 1];
        lb_enter(t->cx);
        if (t->f)
            lb_run_many(t->f, t->args, PARAMS + 2, out);
        else
            step(t->cx, t->args, PARAMS + 2, out, PARAMS + 1, t->o);
        lb_leave(t->cx);
    }
    return (bench_now() - from) / STEPS;
}

static void start(training *t, lb_ctx *cx, bool compile)
{
    t->cx = cx;
    for (int k = 0; k < LAYERS; k++) {
        lb_array *w = lb_random_normal(cx, (lb_key){1, (uint64_t)k}, LB_F32,
                                       LB_SHAPE(width[k + 1], width[k]));
        t->args[2 * k] = lb_mul(cx, w, number(cx, 0.05));
        t->args[2 * k + 1] = lb_zeros(cx, LB_F32, LB_SHAPE(width[k + 1]));
    }
    t->args[PARAMS] = lb_random_uniform(cx, (lb_key){2, 0}, LB_F32,
                                        LB_SHAPE(BATCH, width[0]), 0, 1);
    t->args[PARAMS + 1] = lb_zeros(cx, LB_I32, LB_SHAPE(BATCH));
    t->o = lb_optimizer_open(cx, &(lb_optimizer_config){.method = LB_ADAM},
                             t->args, PARAMS);
    if (compile) t->f = lb_compile_many(cx, step, PARAMS + 1, t->o, NULL);
    round_of_steps(t);
}

static void of_steps(lb_ctx *cx, int rounds)
{
    training eager = {0}, compiled = {0};
    start(&eager, cx, false);
    start(&compiled, cx, true);
    bench_side side[2] = {{round_of_steps, &eager, 0},
                          {round_of_steps, &compiled, 0}};
    bench_alternate(side, 2, rounds);
    printf("\ntraining step of %d-%d-%d-%d, batch %d, Adam\n", (int)width[0],
           (int)width[1], (int)width[2], (int)width[3], BATCH);
    printf("%-12s %10s %10s %6s\n", "", "eager ms", "compiled", "ratio");
    printf("%-12s %10.3f %10.3f %6.2f\n", "mlp", side[0].figure / 1e6,
           side[1].figure / 1e6, side[0].figure / side[1].figure);
    lb_compiled_close(compiled.f);
    lb_optimizer_close(compiled.o);
    lb_optimizer_close(eager.o);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 7;
    const int threads = argc > 2 ? atoi(argv[2]) : 2;
    const int64_t size = argc > 3 ? atoll(argv[3]) : 16 << 20;
    lb_ctx *cx = lb_open(&(lb_options){.threads = threads});
    if (!cx || rounds < 1 || size < COLS) {
        fprintf(stderr,
                "usage: bench_programs [rounds [threads [elements]]]\n");
        return 2;
    }
    of_functions(cx, rounds, threads, size);
    of_nodes(rounds);
    of_steps(cx, rounds);
    const bool ok = !lb_error_status(cx);
    if (!ok) fprintf(stderr, "bench_programs: %s\n", lb_error(cx));
    lb_close(cx);
    return !ok;
}
