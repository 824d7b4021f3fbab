/* bench_ways.c - one product in three variants: x @ W^T with W (out, in), the
 * baseline; x @ W with W (in, out); and x @ W^T with x in bf16.
 *
 *   bench_ways [threads [format [size]]]
 *
 * Weights are size x size (4096). The variants alternate call by call, so that
 * other load of the machine affects all of them. One row is also multiplied
 * with weights from DRAM: up to 512 copies, if these exceed the caches. Figures
 * are medians of GFLOP/s, and ratios to the baseline.
 */
#include <string.h>

#include "bench.h"
#include "lowbit.h"

enum { ALONG, ACROSS, BF16, WAYS };
enum { MOST_COPIES = 512, FROM_DRAM = 320 << 20, LEAST_ROUNDS = 11 };
static const double seconds = 0.5; /* per cell, approximately */

typedef struct weights {
    lb_array *w[MOST_COPIES];
    int n;
} weights;

typedef struct way {
    lb_ctx *cx;
    lb_array *x;
    const weights *of;
    lb_dot_dims dims;
    int at; /* index of the next copy of the weights */
} way;

/* A single copy of the weights is brought into the caches by an untimed call,
 * because the other variants may have evicted it. */
static double call(void *arg)
{
    way *y = arg;
    lb_enter(y->cx);
    if (y->of->n == 1) lb_dot_general(y->cx, y->x, y->of->w[0], &y->dims);
    const double begin = bench_now();
    lb_dot_general(y->cx, y->x, y->of->w[y->at], &y->dims);
    const double ns = bench_now() - begin;
    lb_leave(y->cx);
    y->at = (y->at + 1) % y->of->n;
    return ns;
}

static lb_quant_config config_of(const char *format, bool across)
{
    lb_quant_config c = {.format = format};
    if (!strcmp(format, "ternary") || !strcmp(format, "binary"))
        c.scale = LB_SCALE_ROW;
    if (!strcmp(format, "int8")) c.axes = (lb_axes){1, {across ? 0 : 1}};
    return c;
}

/* Makes copies of that many bytes in total, at least one; false if there would
 * be more than MOST. */
static bool make_weights(lb_ctx *cx, const char *format, bool across,
                         int64_t size, size_t bytes, weights *to)
{
    const lb_quant_config config = config_of(format, across);
    size_t sum = 0;
    lb_array *w =
        lb_random_normal(cx, (lb_key){1, 0}, LB_F32, LB_SHAPE(size, size));
    for (to->n = 0; to->n < MOST_COPIES && (sum < bytes || !to->n); to->n++) {
        lb_array *q = lb_quantize(cx, w, &config);
        if (!q) break;
        to->w[to->n] = q;
        sum += lb_nbytes(q);
    }
    lb_drop(cx, w);
    return to->n && sum >= bytes;
}

static void show(const char *name, lb_precision precision, int64_t m,
                 const char *from, double flop, const bench_side *side)
{
    static const char *const precisions[] = {"", "highest", "fast", "fastest"};
    printf("%-8s %-8s %4lld %-5s %8.1f %8.1f %8.1f %8.2f %8.2f\n", name,
           precisions[precision], (long long)m, from, flop / side[ALONG].figure,
           flop / side[ACROSS].figure, flop / side[BF16].figure,
           side[ALONG].figure / side[ACROSS].figure,
           side[ALONG].figure / side[BF16].figure);
}

static void measure(lb_ctx *cx, const char *name, const weights *of,
                    lb_precision precision, int64_t m, int64_t size,
                    const char *from)
{
    way y[WAYS];
    bench_side side[WAYS];
    double ns = 0;
    lb_enter(cx);
    for (int k = 0; k < WAYS; k++) {
        y[k] = (way){.cx = cx, .of = &of[k == ACROSS]};
        y[k].x =
            lb_random_normal(cx, (lb_key){2, 0}, k == BF16 ? LB_BF16 : LB_F32,
                             LB_SHAPE(m, size));
        y[k].dims = (lb_dot_dims){.lhs_contract = {1, {1}},
                                  .rhs_contract = {1, {k == ACROSS ? 0 : 1}},
                                  .precision = precision};
        ns += call(&y[k]);
        side[k] = (bench_side){call, &y[k], 0};
    }
    if (!lb_error_status(cx)) {
        const double rounds = fmin(seconds * 1e9 / ns, BENCH_ROUNDS_MAX);
        bench_alternate(side, WAYS, (int)fmax(rounds, LEAST_ROUNDS));
        show(name, precision, m, from, 2.0 * (double)m * (double)(size * size),
             side);
    }
    lb_leave(cx);
}

static void measure_format(lb_ctx *cx, const char *name, int64_t size)
{
    static const int64_t rows[] = {1, 2, 4, 8, 16, 32, 128, 512};
    static weights of[2];
    for (int dram = 0; dram < 2; dram++) {
        const size_t bytes = dram ? FROM_DRAM : 0;
        bool enough = true; /* false also after an error */
        lb_enter(cx);
        for (int across = 0; enough && across < 2; across++)
            enough = make_weights(cx, name, across, size, bytes, &of[across]);
        for (int p = LB_PRECISION_HIGHEST; enough && p <= LB_PRECISION_FASTEST;
             p++)
            for (size_t i = 0; i < (dram ? 1 : sizeof rows / sizeof *rows); i++)
                measure(cx, name, of, (lb_precision)p, rows[i], size,
                        dram ? "dram" : "warm");
        lb_leave(cx);
    }
}

static const char *const formats[] = {"int8", "nf4", "ternary", "binary"};
enum { FORMATS = sizeof formats / sizeof *formats };

static bool is_format(const char *name)
{
    bool found = !strcmp(name, "all");
    for (int i = 0; i < FORMATS; i++)
        found = found || !strcmp(name, formats[i]);
    return found;
}

/* An integer from 1 to most; otherwise 0. */
static int64_t number_of(const char *text, int64_t most)
{
    char *end;
    const long long n = strtoll(text, &end, 10);
    return *end || n < 1 || n > most ? 0 : n;
}

int main(int argc, char **argv)
{
    const int64_t threads = argc > 1 ? number_of(argv[1], 256) : 0;
    const int64_t size = argc > 3 ? number_of(argv[3], 1 << 15) : 4096;
    const lb_options options = {.struct_size = sizeof options,
                                .threads = (int)threads};
    const bool bad = argc > 4 || (argc > 1 && !threads) || !size ||
                     (argc > 2 && !is_format(argv[2]));
    lb_ctx *cx = bad ? NULL : lb_open(&options);
    if (!cx) {
        fprintf(stderr, "usage: bench_ways [threads [format|all [size]]]\n");
        return 2;
    }
    printf("level %s, %d threads, W %lld x %lld\n\n"
           "format   x rounded   M from   x @ W^T    x @ W     bf16  x @ W of"
           "  bf16 of\n",
           lb_isa(cx), lb_threads(cx), (long long)size, (long long)size);
    for (int i = 0; i < FORMATS; i++)
        if (argc < 3 || !strcmp(argv[2], "all") || !strcmp(argv[2], formats[i]))
            measure_format(cx, formats[i], size);
    bool failed = lb_error_status(cx) != 0;
    if (failed) fprintf(stderr, "bench_ways: %s\n", lb_error(cx));
    if (ferror(stdout) || fflush(stdout)) {
        fprintf(stderr, "bench_ways: cannot write to stdout\n");
        failed = true;
    }
    lb_close(cx);
    return failed;
}
