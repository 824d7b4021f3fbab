/* calls.c - see calls.h.
 *
 * A 1x1x1 product multiplies next to nothing: what remains is the overhead of
 * every call: checks, dispatch, scratch memory, the result and, with several
 * threads, waking the pool.
 */
#include "calls.h"

#include <stdio.h>

#include "bench_rows.h"
#include "bench_weights.h"
#include "sampling.h"

typedef struct timed_call {
    lb_ctx *cx;
    lb_array *x, *w;
} timed_call;

static void multiply(void *arg)
{
    const timed_call *c = arg;
    lb_drop(c->cx, weights_product(c->cx, c->x, c->w, ORIENT_WT,
                                   LB_PRECISION_DEFAULT));
}

static bool measure(const bench_options *o, lb_ctx *cx, const char *format,
                    int64_t n)
{
    lb_enter(cx);
    timed_call c = {.cx = cx};
    c.x = lb_random_normal(cx, (lb_key){2, 0}, LB_F32, LB_SHAPE(1, n));
    c.w = weights_make(cx, format, ORIENT_WT, n, n, (lb_key){1, 0});
    sample_side side = {.run = multiply, .arg = &c};
    if (c.x && c.w) sample(&side, 1, o->seconds);
    const bool ok = lb_error_status(cx) == LB_OK;
    if (!ok) {
        bench_fail("%s: %s", format, lb_error(cx));
        lb_clear(cx);
    } else if (o->json) {
        row_begin();
        row_text("format", format);
        row_integer("n", n);
        row_integer("threads", lb_threads(cx));
        row_number("ns", side.median * 1e9);
        row_number("best_ns", side.best * 1e9);
        row_end();
    } else {
        char shape[48];
        snprintf(shape, sizeof shape, "1x%lldx%lld", (long long)n,
                 (long long)n);
        printf("%-8s %-8s %3d %9.0f %9.0f%s\n", format, shape, lb_threads(cx),
               side.median * 1e9, side.best * 1e9, side.clean ? "" : " ~");
        fflush(stdout);
    }
    lb_leave(cx);
    return ok;
}

static bool measure_formats(const bench_options *o, lb_ctx *cx)
{
    static const int64_t sizes[] = {1, 64};
    bool ok = true;
    for (int f = 0; f < o->formats.n; f++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            ok = measure(o, cx, o->formats.at[f], sizes[i]) && ok;
    return ok;
}

bool calls_run(const bench_options *o)
{
    bool ok = true;
    for (int t = 0; t < o->threads.n; t++) {
        lb_ctx *const cx = bench_context(o, (int)o->threads.at[t]);
        if (!cx) return false;
        if (t == 0 && !o->json)
            printf("level %s; ~: samples were preempted\n\n"
                   "%-8s %-8s %3s %9s %9s\n",
                   lb_isa(cx), "format", "MxNxK", "thr", "ns", "best");
        ok = measure_formats(o, cx) && ok;
        lb_close(cx);
    }
    return ok;
}
