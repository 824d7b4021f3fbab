/* bench_gemv.c - a vector times packed weights that come from DRAM.
 *
 * W is 4096 x 4096 (out, in for x @ W^T; in, out for x @ W). Copies of it, 640
 * MiB in total, are used in turn, so that none is in a cache. Each round also
 * measures the bandwidth of reading 64 MiB of other memory. Prints the median
 * of the rounds, and the best:
 *
 *   GFLOP/s = 2*N*K / time;  GB/s = bytes of codes and scales / time
 *
 *   bench_gemv [format [threads]]      no format: all of them
 */
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
#include "bench.h"
#include "lowbit_ext.h"

enum {
    SIZE = 4096,
    CYCLE = 640 << 20,
    COPIES_MAX = 320,
    PER_ROUND = 12,
    ROUNDS = 15,
    READ_BYTES = 64 << 20,
    READ_UNITS = 64
};

typedef struct {
    const char *name, *format;
    lb_quant_config config;
    lb_precision precision;
    lb_dtype x;
} subject;

typedef struct {
    lb_ctx *cx;
    lb_array *x, *w[COPIES_MAX];
    int copies, next;
    double best;
} product;

typedef struct {
    lb_pool *pool;
    const uint64_t *data;
    size_t at; /* offset of the next part, in words */
    uint64_t sums[READ_UNITS];
    double best;
} reader;

_Noreturn static void die(lb_ctx *cx)
{
    fprintf(stderr, "bench_gemv: %s\n", cx ? lb_error(cx) : "out of memory");
    exit(1);
}

/* ---- arrays ------------------------------------------------------------- */

static lb_array *copy_dense(lb_ctx *cx, const lb_array *a)
{
    lb_array *to = lb_dense(cx, a->dtype, &a->shape);
    if (!to) die(cx);
    memcpy(to->store->data, a->store->data, a->store->data_size);
    return to;
}

/* A copy in memory of its own; adds its bytes. */
static lb_array *copy_packed(lb_ctx *cx, const lb_array *a, size_t *bytes)
{
    lb_part table[LB_MAX_PARTS];
    memcpy(table, a->store->part, sizeof table);
    *bytes = 0;
    for (int i = 0; i < LB_MAX_PARTS; i++)
        if (table[i].a) {
            table[i].a = copy_dense(cx, table[i].a);
            *bytes += table[i].a->store->data_size;
        }
    lb_array *to = lb_make(cx, a->store->fmt, a->dtype, a->store->meaning,
                           &a->store->shape, table);
    if (!to) die(cx);
    return to;
}

static size_t make_copies(product *p, const subject *s, bool along)
{
    lb_ctx *cx = p->cx;
    lb_quant_config config = s->config;
    config.format = s->format;
    size_t bytes = 0;
    lb_array *w =
        lb_random_normal(cx, (lb_key){1, 0}, LB_F32, LB_SHAPE(SIZE, SIZE));
    lb_array *q = lb_quantize(cx, w, &config);
    if (!q) die(cx);
    p->copies = 1;
    for (int i = 0; i < p->copies; i++) {
        lb_array *a = copy_packed(cx, q, &bytes);
        p->w[i] = along ? lb_transpose(cx, a, NULL) : a;
        p->copies = (int)(CYCLE / bytes);
        if (p->copies > COPIES_MAX) p->copies = COPIES_MAX;
    }
    lb_array *x =
        lb_random_normal(cx, (lb_key){2, 0}, LB_F32, LB_SHAPE(1, SIZE));
    p->x = lb_convert(cx, x, s->x);
    if (!p->x) die(cx);
    return bytes;
}

/* ---- rounds ------------------------------------------------------------- */

static double multiply(void *arg)
{
    product *p = arg;
    const double start = bench_now();
    for (int i = 0; i < PER_ROUND; i++) {
        lb_drop(p->cx, lb_matmul(p->cx, p->x, p->w[p->next]));
        p->next = (p->next + 1) % p->copies;
    }
    const double ns = (bench_now() - start) / PER_ROUND;
    p->best = p->best > 0 && p->best < ns ? p->best : ns;
    return ns;
}

static void read_units(void *arg, int64_t lo, int64_t hi, int thread)
{
    enum { WORDS = READ_BYTES / READ_UNITS / 8, QUARTER = WORDS / 4 };
    reader *r = arg;
    (void)thread;
    for (int64_t u = lo; u < hi; u++) {
        const uint64_t *d = r->data + r->at + u * WORDS;
        uint64_t a = 0, b = 0, c = 0, e = 0;
        for (int i = 0; i < QUARTER; i += 8) { /* one word per cache line */
            a += d[i];
            b += d[i + QUARTER];
            c += d[i + 2 * QUARTER];
            e += d[i + 3 * QUARTER];
        }
        r->sums[u] = a + b + c + e;
    }
}

static double read_memory(void *arg)
{
    reader *r = arg;
    const double start = bench_now();
    lb_pool_run(r->pool, READ_UNITS, read_units, r);
    const double ns = bench_now() - start;
    r->at = (r->at + READ_BYTES / 8) % (CYCLE / 8);
    r->best = r->best > 0 && r->best < ns ? r->best : ns;
    return ns;
}

static void measure(const subject *s, bool along, int threads, reader *r)
{
    product p = {.cx = lb_open(&(lb_options){.threads = threads,
                                             .precision = s->precision})};
    if (!p.cx) die(NULL);
    lb_enter(p.cx);
    const size_t bytes = make_copies(&p, s, along);
    bench_side sides[2] = {{.round = multiply, .arg = &p},
                           {.round = read_memory, .arg = r}};
    multiply(&p);
    p.best = r->best = 0;
    bench_alternate(sides, 2, ROUNDS);
    const double flop = 2.0 * SIZE * SIZE;
    printf("%-22s %-7s %7d %8.1f %8.1f %8.1f %8.1f %8.1f\n", s->name,
           along ? "x @ W^T" : "x @ W", threads, flop / sides[0].figure,
           flop / p.best, (double)bytes / sides[0].figure,
           READ_BYTES / sides[1].figure, READ_BYTES / r->best);
    fflush(stdout);
    lb_leave(p.cx);
    lb_close(p.cx);
}

static const subject subjects[] = {
    {"int8 highest", "int8", {0}, LB_PRECISION_HIGHEST, LB_F32},
    {"nf4 highest", "nf4", {0}, LB_PRECISION_HIGHEST, LB_F32},
    {"nf4 fast", "nf4", {0}, LB_PRECISION_FAST, LB_F32},
    {"nf4 fast bf16", "nf4", {0}, LB_PRECISION_FAST, LB_BF16},
    {"nf4 fast, block 32",
     "nf4",
     {.block_size = 32},
     LB_PRECISION_FAST,
     LB_F32},
    {"nf4 fast, block 128",
     "nf4",
     {.block_size = 128},
     LB_PRECISION_FAST,
     LB_F32},
    {"ternary highest", "ternary", {0}, LB_PRECISION_HIGHEST, LB_F32},
    {"ternary fast", "ternary", {0}, LB_PRECISION_FAST, LB_F32},
    {"ternary fastest", "ternary", {0}, LB_PRECISION_FASTEST, LB_F32},
    {"binary highest", "binary", {0}, LB_PRECISION_HIGHEST, LB_F32},
    {"binary fast", "binary", {0}, LB_PRECISION_FAST, LB_F32},
    {"binary fastest", "binary", {0}, LB_PRECISION_FASTEST, LB_F32},
};

int main(int argc, char **argv)
{
    lb_heap *heap = lb_heap_open(NULL, 0);
    uint64_t *data = malloc((size_t)CYCLE);
    if (!heap || !data) die(NULL);
    memset(data, 1, (size_t)CYCLE);
    printf("%-22s %-7s %7s %8s %8s %8s %8s %8s\n", "", "", "threads", "GFLOP/s",
           "best", "GB/s", "memory", "best");
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        if (argc > 1 && !strstr(subjects[i].name, argv[1])) continue;
        for (int threads = 1; threads <= 2; threads++) {
            if (argc > 2 && atoi(argv[2]) != threads) continue;
            reader r = {.pool = lb_pool_open(heap, threads), .data = data};
            measure(&subjects[i], true, threads, &r);
            measure(&subjects[i], false, threads, &r);
            lb_pool_close(r.pool);
        }
    }
    free(data);
    lb_heap_close(heap);
    return 0;
}
