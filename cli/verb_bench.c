/* verb_bench.c - `lowbit bench`: how fast formats are on this machine.
 *
 * x (M,K) times W (K,N) in each format, and W quantized and decoded. For a
 * closer look, against what the machine can do, there is lowbit-bench.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verb.h"

typedef struct task {
    lb_ctx *cx;
    lb_array *x, *w, *q; /* q: w in the format */
    lb_quant_config config;
} task;

/* One call; false if it failed. */
typedef bool work(const task *t);

static bool multiply(const task *t)
{
    return lb_matmul(t->cx, t->x, t->q) != NULL;
}

static bool encode(const task *t)
{
    return lb_quantize(t->cx, t->w, &t->config) != NULL;
}

static bool decode(const task *t)
{
    return lb_materialize(t->cx, t->q) != NULL;
}

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* The fastest call, after a first one, within so many seconds; 0 if it failed.
 * What else the machine does only ever makes calls slower. */
static double fastest(work *f, const task *t, double seconds)
{
    double best = 0;
    const double end = now() + seconds;
    for (int i = 0; i < 2 || now() < end; i++) {
        lb_enter(t->cx);
        const double start = now();
        const bool ok = f(t);
        const double took = now() - start;
        lb_leave(t->cx);
        if (!ok) return 0;
        if (i && (best == 0 || took < best)) best = took;
    }
    return best;
}

/* ---- what is printed ----------------------------------------------------- */

typedef struct figures {
    const char *format;
    double bytes, product, encode, decode; /* seconds; 0: not measured */
} figures;

static double rate(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds * 1e-9 : 0;
}

static void print_row(const figures *f, const figures *first, double flops,
                      double numbers)
{
    printf("%-10s %10s %10.1f %7.2fx", f->format,
           show_bytes((uint64_t)f->bytes).s, rate(flops, f->product),
           f->product > 0 ? first->product / f->product : 0);
    if (f->encode > 0)
        printf(" %12.2f %12.2f", rate(4 * numbers, f->encode),
               rate(4 * numbers, f->decode));
    putchar('\n');
}

static void json_row(json *j, const figures *f, double flops, double numbers)
{
    const struct {
        const char *key;
        double value;
    } row[] = {{"bytes", f->bytes},
               {"gflops", rate(flops, f->product)},
               {"quantize_gb_s", rate(4 * numbers, f->encode)},
               {"dequantize_gb_s", rate(4 * numbers, f->decode)}};
    json_open(j, '{');
    json_string(json_key(j, "format"), f->format);
    for (int i = 0; i < 4; i++) {
        json_key(j, row[i].key);
        if (i < 2 || f->encode > 0)
            json_double(j, row[i].value);
        else
            json_null(j);
    }
    json_close(j, '}');
}

/* ---- the verb ------------------------------------------------------------ */

typedef struct sizes {
    int64_t m, k, n;
} sizes;

static bool read_shape(const arguments *a, sizes *s)
{
    const char *text = a->value[OPTION_SHAPE];
    int64_t *to[] = {&s->m, &s->k, &s->n};
    char *end = (char *)(uintptr_t)text;
    for (int i = 0; text && i < 3; i++) {
        *to[i] = strtoll(text, &end, 10);
        if (end == text || *to[i] < 1 || *to[i] > 1 << 20 ||
            *end != (i < 2 ? 'x' : 0)) {
            complain(USAGE,
                     "--shape takes MxKxN, each from 1 to 1048576, not '%.64s'",
                     a->value[OPTION_SHAPE]);
            return false;
        }
        text = end + 1;
    }
    return true;
}

static bool is_format(const lb_ctx *cx, const char *name)
{
    const char *format;
    for (int k = 1; name && (format = lb_format_name(cx, k)); k++)
        if (strcmp(name, format) == 0) return true;
    return !name;
}

/* The first format, dense, is f32 as it is. False and an error. */
static bool measure(task *t, const char *format, double seconds, figures *f)
{
    const bool dense = strcmp(format, "dense") == 0;
    lb_enter(t->cx);
    t->config = (lb_quant_config){.format = format};
    t->q = dense ? t->w : lb_quantize(t->cx, t->w, &t->config);
    *f = (figures){.format = dense ? "f32" : format};
    if (t->q) {
        f->bytes = (double)lb_nbytes(t->q);
        f->product = fastest(multiply, t, seconds);
        if (!dense) f->encode = fastest(encode, t, seconds);
        if (!dense) f->decode = fastest(decode, t, seconds);
    }
    lb_leave(t->cx);
    return f->product > 0;
}

static verdict sweep(const arguments *a, task *t, sizes s)
{
    const double flops = 2 * (double)s.m * (double)s.k * (double)s.n;
    const double numbers = (double)s.k * (double)s.n;
    const double seconds = a->count[OPTION_QUICK] ? 0 : 0.25;
    const char *only = a->value[OPTION_TYPE], *format;
    json *j = a->count[OPTION_JSON] ? json_begin("bench") : NULL;
    figures first = {0}, f;
    if (j) {
        json_shape(json_key(j, "shape"), (int64_t[]){s.m, s.k, s.n}, 3);
        json_int(json_key(j, "threads"), lb_threads(t->cx));
        json_string(json_key(j, "level"), lb_isa(t->cx));
        json_open(json_key(j, "formats"), '[');
    } else
        printf("%lldx%lldx%lld on %d thread%s, %s\n%-10s %10s %10s %8s %12s "
               "%12s\n",
               (long long)s.m, (long long)s.k, (long long)s.n,
               lb_threads(t->cx), lb_threads(t->cx) == 1 ? "" : "s",
               lb_isa(t->cx), "format", "W", "GFLOPS", "of f32", "quant. GB/s",
               "deq. GB/s");
    bool ok = true;
    for (int k = 0; ok && (format = lb_format_name(t->cx, k)); k++) {
        if (k && only && strcmp(only, format) != 0) continue;
        ok = measure(t, format, seconds, &f);
        if (!k) first = f;
        if (ok && j)
            json_row(j, &f, flops, numbers);
        else if (ok)
            print_row(&f, &first, flops, numbers);
    }
    if (j) {
        json_close(j, ']');
        json_end(j);
    }
    return ok ? DONE : complain_of(t->cx);
}

static verdict run(const arguments *a)
{
    sizes s = {1, 4096, 4096};
    int64_t jobs = 0;
    if (!read_shape(a, &s) || !argument_number(a, OPTION_JOBS, 1, 256, &jobs))
        return USAGE;
    task t = {.cx = context_open((int)jobs)};
    if (!t.cx) return FAILED;
    if (!is_format(t.cx, a->value[OPTION_TYPE])) {
        lb_close(t.cx);
        return complain(USAGE, "no format '%.64s'; see lowbit formats",
                        a->value[OPTION_TYPE]);
    }
    const lb_key key = {1, 0};
    t.x = lb_random_normal(t.cx, key, LB_F32, LB_SHAPE(s.m, s.k));
    t.w =
        lb_random_normal(t.cx, lb_key_fold(key, 1), LB_F32, LB_SHAPE(s.k, s.n));
    const verdict v = t.x && t.w ? sweep(a, &t, s) : complain_of(t.cx);
    lb_close(t.cx);
    return v;
}

static const option_id options_taken[] = {OPTION_JOBS,  OPTION_JSON,
                                          OPTION_QUICK, OPTION_SHAPE,
                                          OPTION_TYPE,  N_OPTIONS};

const verb verb_bench = {
    .name = "bench",
    .operands = "",
    .summary = "Measures how fast formats are on this machine",
    .help = "x (M,K) times W (K,N), of normal numbers, in f32 and with W in "
            "each format, or in\nthat of --type; and W quantized and decoded, "
            "in GB of f32 a second. The fastest of\nthe calls that fit into a "
            "quarter of a second counts. LOWBIT_PRECISION=fast and\n"
            "LOWBIT_ISA=avx2 are obeyed.",
    .examples = "lowbit bench --shape 8x4096x4096 --type nf4\n"
                "LOWBIT_PRECISION=fast lowbit bench -j 1",
    .options = options_taken,
    .run = run,
};
