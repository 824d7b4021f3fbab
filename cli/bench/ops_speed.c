/* ops_speed.c - see ops_speed.h.
 *
 * Operands are 4096 x 4096 arrays. Packed operands are compared with the same
 * values in f32: reading fewer bytes should pay for decoding. Convolution
 * weights are quantized as a matrix with a row per output feature.
 */
#include "ops_speed.h"

#include <stdio.h>
#include <string.h>

#include "bench_rows.h"
#include "bench_weights.h"
#include "sampling.h"

enum {
    SIDE = 4096,
    BATCH = 4, /* number of images; features, size and kernel */
    FEATURES = 64,
    SPACE = 56,
    KERNEL = 3,
    DEPTH = FEATURES * KERNEL * KERNEL
};

typedef struct {
    lb_ctx *cx;
    lb_array *w, *other, *index, *kernel, *image;
} operands;

static lb_array *add(const operands *a)
{
    return lb_add(a->cx, a->w, a->other);
}

static lb_array *exponential(const operands *a)
{
    return lb_exp(a->cx, a->w);
}

static lb_array *sum_rows(const operands *a)
{
    return lb_reduce_sum(a->cx, a->w, LB_AXES(1));
}

static lb_array *sum_columns(const operands *a)
{
    return lb_reduce_sum(a->cx, a->w, LB_AXES(0));
}

static lb_array *turn(const operands *a)
{
    return lb_transpose(a->cx, a->w, NULL);
}

static lb_array *take_rows(const operands *a)
{
    return lb_take(a->cx, a->w, a->index, 0);
}

static lb_array *take_columns(const operands *a)
{
    return lb_take(a->cx, a->w, a->index, 1);
}

static lb_array *convolve(const operands *a, lb_precision precision)
{
    const lb_conv_dims d = {.pad_lo = {KERNEL / 2, KERNEL / 2},
                            .pad_hi = {KERNEL / 2, KERNEL / 2},
                            .precision = precision};
    return lb_conv_general_dilated(a->cx, a->image, a->kernel, &d);
}

static lb_array *conv_exact(const operands *a)
{
    return convolve(a, LB_PRECISION_HIGHEST);
}

static lb_array *conv_fast(const operands *a)
{
    return convolve(a, LB_PRECISION_FAST);
}

#define NUMBERS ((double)SIDE * SIDE)
#define FLOPS   (2.0 * BATCH * FEATURES * SPACE * SPACE * DEPTH)

static const struct op {
    const char *name, *unit;
    lb_array *(*make)(const operands *);
    double work;
} ops[] = {
    {"add", "Gelem/s", add, NUMBERS},
    {"exp", "Gelem/s", exponential, NUMBERS},
    {"sum of rows", "Gelem/s", sum_rows, NUMBERS},
    {"sum of columns", "Gelem/s", sum_columns, NUMBERS},
    {"transpose", "Gelem/s", turn, NUMBERS},
    {"take rows", "Gelem/s", take_rows, NUMBERS},
    {"take columns", "Gelem/s", take_columns, NUMBERS},
    {"conv 3x3", "GFLOP/s", conv_exact, FLOPS},
    {"conv 3x3 fast", "GFLOP/s", conv_fast, FLOPS},
};
enum { N_OPS = sizeof ops / sizeof *ops };

typedef struct {
    const struct op *op;
    operands *operands;
} one;

/* Results are dense and newly allocated each time, as in a program. */
static void run(void *arg)
{
    const one *o = arg;
    lb_ctx *const cx = o->operands->cx;
    lb_enter(cx);
    lb_materialize(cx, o->op->make(o->operands));
    lb_leave(cx);
}

static operands make(lb_ctx *cx, const char *format)
{
    const lb_key key = {1, 2};
    operands a = {
        .cx = cx,
        .w = lb_random_normal(cx, key, LB_F32, LB_SHAPE(SIDE, SIDE)),
        .other = lb_random_normal(cx, key, LB_F32, LB_SHAPE(SIDE, SIDE)),
        .kernel = lb_random_normal(cx, key, LB_F32, LB_SHAPE(FEATURES, DEPTH)),
        .image = lb_random_normal(cx, key, LB_F32,
                                  LB_SHAPE(BATCH, FEATURES, SPACE, SPACE)),
        .index = lb_random_permutation(cx, key, SIDE),
    };
    if (!weights_dense(format)) {
        const lb_quant_config config = weights_config(format, ORIENT_WT);
        a.w = lb_quantize(cx, a.w, &config);
        a.kernel = lb_quantize(cx, a.kernel, &config);
    }
    a.kernel =
        lb_reshape(cx, a.kernel, LB_SHAPE(FEATURES, FEATURES, KERNEL, KERNEL));
    return a;
}

static void show(const bench_options *o, const operands *a, const char *format,
                 const struct op *op, const sample_side *side)
{
    const double rate = op->work * 1e-9 / side->median;
    if (o->json) {
        row_begin();
        row_text("format", format);
        row_text("op", op->name);
        row_integer("threads", lb_threads(a->cx));
        row_number("rate", rate);
        row_number("best_rate", op->work * 1e-9 / side->best);
        row_text("unit", op->unit);
        row_end();
        return;
    }
    printf("%-8s %-15s %3d %8.3f %8.3f %8.2f %s%s\n", format, op->name,
           lb_threads(a->cx), side->median * 1e3, side->best * 1e3, rate,
           op->unit, side->clean ? "" : " ~");
    fflush(stdout);
}

static bool run_format(const bench_options *o, lb_ctx *cx, const char *format)
{
    lb_enter(cx);
    operands a = make(cx, format);
    for (int i = 0; i < N_OPS && lb_error_status(cx) == LB_OK; i++) {
        one what = {.op = &ops[i], .operands = &a};
        sample_side side = {.run = run, .arg = &what};
        sample(&side, 1, o->seconds);
        if (lb_error_status(cx) == LB_OK) show(o, &a, format, &ops[i], &side);
    }
    const bool ok = lb_error_status(cx) == LB_OK;
    if (!ok) bench_fail("%s: %s", format, lb_error(cx));
    lb_clear(cx);
    lb_leave(cx);
    return ok;
}

static bool run_threads(const bench_options *o, int threads, bool head)
{
    lb_ctx *const cx = bench_context(o, threads);
    if (!cx) return false;
    bool ok = true;
    if (head && !o->json)
        printf(
            "level %s; milliseconds, median and best sample; ~: samples were "
            "preempted\n\n%-8s %-15s "
            "%3s %8s %8s %8s\n",
            lb_isa(cx), "format", "op", "thr", "ms", "best", "rate");
    for (int f = 0; ok && f < o->formats.n; f++)
        ok = run_format(o, cx, o->formats.at[f]);
    lb_close(cx);
    return ok;
}

bool ops_speed_run(const bench_options *o)
{
    bool ok = true;
    for (int t = 0; t < o->threads.n; t++)
        ok = run_threads(o, (int)o->threads.at[t], t == 0) && ok;
    return ok;
}
