/* bench_elementwise.c - what is bound by memory, next to memcpy.
 *
 * lb_add of two f32 arrays of 64 MiB, lb_materialize of a transposed 4096x4096
 * array, and sums of a 4096x4096 array along rows, along columns and over all,
 * on 1 and 2 threads; memcpy of 64 MiB is shared out to as many threads. All
 * in alternating rounds after a warm-up. Prints GB/s, bytes read plus bytes
 * written, and the ratio of rates to memcpy's (above 1: more bytes a second).
 * Sums only read, so they may well be above it.
 */
#include <stdint.h>
#include <string.h>

#include "base/threads.h"
#include "bench.h"
#include "lowbit.h"

enum { ROUNDS = 15, WARM = 2, SIDE = 4096, MIB = 1 << 20 };
#define BYTES ((size_t)64 * MIB)

typedef struct {
    lb_ctx *cx;
    lb_array *a, *b;
    char *to;
    lb_pool *pool;
    int threads;
} setup;

/* Results go at once, so the next lands on the same memory. */
static double timed(setup *s, double start, lb_array *out)
{
    const double t = bench_now() - start;
    if (!out) {
        fprintf(stderr, "%s\n", lb_error(s->cx));
        exit(1);
    }
    lb_drop(s->cx, out);
    return t;
}

static double add(void *arg)
{
    setup *s = arg;
    const double start = bench_now();
    return timed(s, start, lb_add(s->cx, s->a, s->b));
}

static double transpose(void *arg)
{
    setup *s = arg;
    const double start = bench_now();
    lb_array *view = lb_transpose(s->cx, s->a, NULL);
    const double t = timed(s, start, lb_materialize(s->cx, view));
    lb_drop(s->cx, view);
    return t;
}

static double sum_rows(void *arg)
{
    setup *s = arg;
    const double start = bench_now();
    return timed(s, start, lb_reduce_sum(s->cx, s->a, LB_AXES(1)));
}

static double sum_columns(void *arg)
{
    setup *s = arg;
    const double start = bench_now();
    return timed(s, start, lb_reduce_sum(s->cx, s->a, LB_AXES(0)));
}

static double sum_all(void *arg)
{
    setup *s = arg;
    const double start = bench_now();
    return timed(s, start, lb_reduce_sum(s->cx, s->a, NULL));
}

static void copy_part(void *arg, int64_t lo, int64_t hi, int thread)
{
    (void)thread;
    setup *s = arg;
    const size_t each = BYTES / (size_t)s->threads;
    memcpy(s->to + (size_t)lo * each,
           (const char *)lb_data(s->a) + (size_t)lo * each,
           (size_t)(hi - lo) * each);
}

static double copy(void *arg)
{
    setup *s = arg;
    const double start = bench_now();
    lb_pool_run(s->pool, s->threads, copy_part, s);
    return bench_now() - start;
}

static int bench_threads(int threads)
{
    static const struct {
        const char *name;
        bench_round *round;
        double passes; /* over 64 MiB */
    } ours[] = {{"add", add, 3},           {"transpose", transpose, 2},
                {"sum rows", sum_rows, 1}, {"sum columns", sum_columns, 1},
                {"sum all", sum_all, 1},   {"memcpy", copy, 2}};
    enum { N = sizeof ours / sizeof *ours };
    setup s = {.cx = lb_open(&(lb_options){.threads = threads}),
               .threads = threads};
    const lb_shape shape = LB_SHAPE(SIDE, SIDE);
    lb_heap *heap = lb_heap_open(NULL, 0);
    size_t got;
    s.a = lb_random_uniform(s.cx, (lb_key){1, 0}, LB_F32, shape, -1, 1);
    s.b = lb_random_uniform(s.cx, (lb_key){2, 0}, LB_F32, shape, -1, 1);
    s.pool = heap ? lb_pool_open(heap, threads) : NULL;
    s.to = heap ? lb_heap_alloc(heap, BYTES, &got) : NULL;
    if (!s.b || !s.pool || !s.to) {
        fprintf(stderr, "%s\n", lb_error(s.cx));
        return 1;
    }
    bench_side sides[N];
    for (int i = 0; i < N; i++)
        sides[i] = (bench_side){.round = ours[i].round, .arg = &s};
    bench_alternate(sides, N, WARM);
    bench_alternate(sides, N, ROUNDS);
    const double memcpy_rate = 2 * (double)BYTES / sides[N - 1].figure;
    for (int i = 0; i < N; i++) {
        const double rate = ours[i].passes * (double)BYTES / sides[i].figure;
        printf("%-12s %8d %8.1f %8.2f\n", ours[i].name, threads, rate,
               rate / memcpy_rate);
    }
    lb_close(s.cx);
    lb_pool_close(s.pool);
    lb_heap_free(heap, s.to, got);
    lb_heap_close(heap);
    return 0;
}

int main(void)
{
    printf("%-12s %8s %8s %8s\n", "", "threads", "GB/s", "/ memcpy");
    return bench_threads(1) | bench_threads(2);
}
