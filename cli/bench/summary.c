/* summary.c - see summary.h. */
#include "summary.h"

#include <math.h>
#include <string.h>

#include "bench_rows.h"
#include "bench_weights.h"
#include "sampling.h"
#include "verb.h"

typedef struct summary_task {
    const bench_options *o;
    lb_ctx *cx;
    lb_array *x, *w, *q; /* q: w in that format */
    lb_quant_config config;
} summary_task;

static void multiply(void *arg)
{
    const summary_task *t = arg;
    lb_drop(t->cx, weights_product(t->cx, t->x, t->q,
                                   (bench_orient)t->o->orients.at[0],
                                   LB_PRECISION_DEFAULT));
}

static void encode(void *arg)
{
    const summary_task *t = arg;
    lb_drop(t->cx, lb_quantize(t->cx, t->w, &t->config));
}

static void decode(void *arg)
{
    const summary_task *t = arg;
    lb_drop(t->cx, lb_materialize(t->cx, t->q));
}

/* 1e9 units per second, of the fastest call; NAN if not measured. */
static double rate(summary_task *t, void (*f)(void *), double units)
{
    sample_side side = {.run = f, .arg = t};
    sample(&side, 1, t->o->seconds);
    return side.best > 0 ? units / side.best * 1e-9 : NAN;
}

typedef struct summary_row {
    const char *format;
    double bytes, gflops, quantize, dequantize;
} summary_row;

static bool measure(summary_task *t, summary_row *r)
{
    const double flops = 2 * (double)t->o->m.at[0] *
                         (double)t->o->shapes.at[0].n *
                         (double)t->o->shapes.at[0].k;
    const bool dense = weights_dense(r->format) != LB_NO_DTYPE;
    lb_enter(t->cx);
    t->config = weights_config(r->format, (bench_orient)t->o->orients.at[0]);
    t->q = dense ? lb_convert(t->cx, t->w, weights_dense(r->format))
                 : lb_quantize(t->cx, t->w, &t->config);
    r->quantize = r->dequantize = NAN;
    if (t->q) {
        const double nbytes = (double)lb_nbytes(t->w);
        r->bytes = (double)lb_nbytes(t->q);
        r->gflops = rate(t, multiply, flops);
        if (!dense) r->quantize = rate(t, encode, nbytes);
        if (!dense) r->dequantize = rate(t, decode, nbytes);
    }
    const bool ok = lb_error_status(t->cx) == LB_OK;
    if (!ok) bench_fail("%s: %s", r->format, lb_error(t->cx));
    lb_leave(t->cx);
    return ok;
}

static void print_row(const bench_options *o, const summary_row *r,
                      const summary_row *first)
{
    if (o->json) {
        row_begin();
        row_text("format", r->format);
        row_integer("bytes", (int64_t)r->bytes);
        row_number("gflops", r->gflops);
        row_number("quantize_gb_s", r->quantize);
        row_number("dequantize_gb_s", r->dequantize);
        row_end();
        return;
    }
    printf("%-10s %10s %8.1f %7.2fx", r->format,
           show_bytes((uint64_t)r->bytes).s, r->gflops,
           r->gflops / first->gflops);
    if (isfinite(r->quantize))
        printf(" %13.2f %15.2f", r->quantize, r->dequantize);
    putchar('\n');
    fflush(stdout);
}

static bool run_formats(summary_task *t)
{
    const bench_options *o = t->o;
    summary_row first = {.format = "f32"};
    if (!measure(t, &first)) return false;
    print_row(o, &first, &first);
    for (int i = 0; i < o->formats.n; i++) {
        summary_row r = {.format = o->formats.at[i]};
        if (strcmp(r.format, "f32") == 0) continue;
        if (!measure(t, &r)) return false;
        print_row(o, &r, &first);
    }
    return true;
}

bool summary_run(const bench_options *o)
{
    const int64_t m = o->m.at[0], n = o->shapes.at[0].n, k = o->shapes.at[0].k;
    const bool wt = o->orients.at[0] == ORIENT_WT;
    const lb_key key = {1, 0};
    summary_task t = {.o = o, .cx = bench_context(o, (int)o->threads.at[0])};
    if (!t.cx) return false;
    if (!o->json)
        printf("x (%lld,%lld) @ W (%lld,%lld)%s, %d thread%s, %s\n\n%-10s %10s "
               "%8s %8s %13s %15s\n",
               (long long)m, (long long)k, (long long)(wt ? n : k),
               (long long)(wt ? k : n), wt ? " transposed" : "",
               lb_threads(t.cx), lb_threads(t.cx) == 1 ? "" : "s", lb_isa(t.cx),
               "type", "size of W", "GFLOP/s", "vs. f32", "quantize GB/s",
               "dequantize GB/s");
    t.x = lb_random_normal(t.cx, key, LB_F32, LB_SHAPE(m, k));
    t.w = lb_random_normal(t.cx, lb_key_fold(key, 1), LB_F32,
                           wt ? LB_SHAPE(n, k) : LB_SHAPE(k, n));
    const bool ok =
        t.x && t.w ? run_formats(&t) : bench_fail("%s", lb_error(t.cx));
    lb_close(t.cx);
    return ok;
}
