/* bench_attention.c - lb_attention compared with the same made of other calls.
 *
 *   bench_attention [--rounds R] [--threads N] [--markdown]
 *
 * 8 heads of 128, 1,000 cached positions in a cache of 2,048 or of exactly
 * 1,000, for 1 query and for 128, causal. Composed: softmax(mask(q k^T)) v over
 * the whole cache, eagerly and as a compiled function. Calls alternate; a ratio
 * above 1 means that lb_attention is faster. The last columns are what it
 * reaches: GB/s of keys and values, and GFLOP/s.
 */
#include <stdbool.h>
#include <string.h>

#include "bench.h"
#include "lowbit.h"

enum { HEADS = 8, SIZE = 128, VALID = 1000, ROUNDS = 15 };

typedef struct setting {
    lb_ctx *cx;
    lb_array *in[4]; /* q, k, v, valid */
    lb_compiled *f;
    lb_fn fn; /* NULL: the compiled one */
    int times;
} setting;

static lb_array *attention(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    return lb_attention(cx, a[0], a[1], a[2],
                        &(lb_attention_options){.causal = true, .valid = a[3]});
}

/* Keys that a query sees: key <= valid - queries + query. A single query of a
 * full cache sees all of them. */
static lb_array *masked(lb_ctx *cx, lb_array *s, lb_array *valid)
{
    const int64_t n = lb_dim(s, 1), keys = lb_dim(s, 2);
    if (n == 1 && keys == VALID) return s;
    const lb_shape shape = LB_SHAPE(1, n, keys);
    lb_array *at = lb_add(cx, lb_iota(cx, LB_I32, shape, 1), valid);
    at = lb_sub(cx, at, lb_scalar_int(cx, n));
    lb_array *seen = lb_le(cx, lb_iota(cx, LB_I32, shape, 2), at);
    return lb_select(cx, seen, s, lb_scalar(cx, -1e30));
}

static lb_array *composed(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *kt = lb_transpose(cx, a[1], (int[]){0, 2, 1});
    lb_array *q = lb_mul(cx, a[0], lb_scalar(cx, 1 / sqrt((double)SIZE)));
    lb_array *s = masked(cx, lb_matmul(cx, q, kt), a[3]);
    return lb_matmul(cx, lb_softmax(cx, s, -1), a[2]);
}

static double round_of(void *arg)
{
    setting *s = arg;
    const double from = bench_now();
    for (int i = 0; i < s->times; i++) {
        lb_enter(s->cx);
        if (s->fn)
            s->fn(s->cx, s->in, 4, NULL);
        else
            lb_run(s->f, s->in, 4);
        lb_leave(s->cx);
    }
    return (bench_now() - from) / s->times;
}

/* A cache of that format, which is quantized along the last axis. */
static lb_array *cache_of(lb_ctx *cx, const char *format, int64_t positions,
                          uint64_t seed)
{
    lb_array *x = lb_random_normal(cx, (lb_key){1, seed}, LB_F32,
                                   LB_SHAPE(HEADS, positions, SIZE));
    if (strcmp(format, "f32") == 0) return x;
    if (strcmp(format, "bf16") == 0) return lb_convert(cx, x, LB_BF16);
    return lb_quantize(cx, x,
                       &(lb_quant_config){.format = format, .axes = {1, {-1}}});
}

static bool line(lb_ctx *cx, const char *format, int64_t positions,
                 int64_t queries, int rounds, bool markdown)
{
    lb_enter(cx);
    lb_array *q = lb_random_normal(cx, (lb_key){1, 1}, LB_F32,
                                   LB_SHAPE(HEADS, queries, SIZE));
    lb_array *k = cache_of(cx, format, positions, 2);
    lb_array *v = cache_of(cx, format, positions, 3);
    setting s = {.cx = cx,
                 .in = {q, k, v, lb_full_int(cx, LB_I32, (lb_shape){0}, VALID)},
                 .f = lb_compile(cx, composed, NULL, NULL),
                 .times = queries == 1 ? 10 : 1};
    setting one = s, other = s;
    one.fn = attention;
    other.fn = composed;
    bench_side side[] = {
        {round_of, &one, 0}, {round_of, &other, 0}, {round_of, &s, 0}};
    for (int i = 0; i < 3; i++) /* traces, and touches memory */
        round_of(side[i].arg);
    const bool ok = !lb_error_status(cx);
    if (ok) {
        const char *form =
            markdown
                ? "| %s | %lld | %lld | %.0f | %.2f | %.2f | %.1f | %.0f |\n"
                : "%-6s %7lld %8lld %12.0f %9.2f %9.2f %9.1f %9.0f\n";
        bench_alternate(side, 3, rounds);
        const double ns = side[0].figure;
        const double bytes = (double)(lb_nbytes(k) + lb_nbytes(v)) *
                             (double)VALID / (double)positions;
        printf(form, format, (long long)positions, (long long)queries, ns / 1e3,
               side[1].figure / ns, side[2].figure / ns, bytes / ns,
               4.0 * HEADS * SIZE * VALID * (double)queries / ns);
        fflush(stdout);
    }
    lb_compiled_close(s.f);
    lb_leave(cx);
    return ok;
}

int main(int argc, char **argv)
{
    static const char *const format[] = {"f32", "bf16", "int8"};
    int rounds = ROUNDS, threads = 0;
    bool markdown = false;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--markdown") == 0)
            markdown = true;
        else if (strcmp(argv[i], "--rounds") == 0 && (rounds = atoi(value)) > 0)
            i++;
        else if (strcmp(argv[i], "--threads") == 0 &&
                 (threads = atoi(value)) > 0)
            i++;
        else {
            fprintf(stderr, "usage: bench_attention [--rounds R] [--threads N] "
                            "[--markdown]\n");
            return 2;
        }
    }
    lb_ctx *cx = lb_open(&(lb_options){.threads = threads});
    bool ok = cx != NULL;
    puts(markdown ? "| keys and values | positions | queries | us | composed, "
                    "eager | composed, compiled | GB/s | GFLOP/s |\n"
                    "|---|---|---|---|---|---|---|---|"
                  : "cache  positions queries       us     eager  compiled"
                    "      GB/s   GFLOP/s");
    for (int f = 0; f < 3 && ok; f++)
        for (int c = 0; c < 2 && ok; c++)
            for (int q = 0; q < 2 && ok; q++)
                ok = line(cx, format[f], c ? VALID : 2048, q ? 128 : 1, rounds,
                          markdown);
    if (!ok) fprintf(stderr, "bench_attention: %s\n", cx ? lb_error(cx) : "");
    lb_close(cx);
    return !ok;
}
