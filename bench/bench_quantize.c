/* bench_quantize.c - speed of lb_quantize for sources of 256 MiB.
 *
 *   bench_quantize [rounds [substring of a row's name]]
 *
 * One thread. Rows alternate within each round, every other round in reverse
 * order. Prints GB/s of the source, best and median of the rounds. Results are
 * freed at once, so that the next one reuses the same memory.
 */
#include <string.h>

#include "bench.h"
#include "lowbit.h"

enum { SIDE = 8192, MOST_ROUNDS = 64, WARM = 1 };

typedef struct {
    const char *name;
    lb_dtype from;
    lb_quant_config config;
    double rate[MOST_ROUNDS];
} row;

static row rows[] = {
    {"int8", LB_F32, {.format = "int8"}, {0}},
    {"int8, axis 0", LB_F32, {.format = "int8", .axes = {1, {0}}}, {0}},
    {"int8, both axes", LB_F32, {.format = "int8", .axes = {2, {0, 1}}}, {0}},
    {"int8, blocks of 64", LB_F32, {.format = "int8", .block_size = 64}, {0}},
    {"nf4", LB_F32, {.format = "nf4"}, {0}},
    {"nf4, bnb-cuda",
     LB_F32,
     {.format = "nf4", .compat = LB_COMPAT_BNB_CUDA},
     {0}},
    {"ternary", LB_F32, {.format = "ternary"}, {0}},
    {"ternary, absmean",
     LB_F32,
     {.format = "ternary", .threshold = LB_THRESHOLD_ABSMEAN},
     {0}},
    {"ternary, rows",
     LB_F32,
     {.format = "ternary", .scale = LB_SCALE_ROW},
     {0}},
    {"binary", LB_F32, {.format = "binary"}, {0}},
    {"dynamic8", LB_F32, {.format = "dynamic8"}, {0}},
    {"q8_0", LB_F32, {.format = "q8_0"}, {0}},
    {"q4_0", LB_F32, {.format = "q4_0"}, {0}},
    {"iq4_nl", LB_F32, {.format = "iq4_nl"}, {0}},
    {"tq1_0", LB_F32, {.format = "tq1_0"}, {0}},
    {"tq2_0", LB_F32, {.format = "tq2_0"}, {0}},
    {"int8 from bf16", LB_BF16, {.format = "int8"}, {0}},
    {"int8 from f16", LB_F16, {.format = "int8"}, {0}},
    {"nf4 from bf16", LB_BF16, {.format = "nf4"}, {0}},
    {"nf4 from f16", LB_F16, {.format = "nf4"}, {0}},
    {"nf4, eformer, from bf16",
     LB_BF16,
     {.format = "nf4", .compat = LB_COMPAT_EFORMER},
     {0}},
};
enum { ROWS = sizeof rows / sizeof *rows };

static double seconds(lb_ctx *cx, lb_array *a, const lb_quant_config *config)
{
    const double start = bench_now();
    lb_array *q = lb_quantize(cx, a, config);
    const double t = bench_now() - start;
    if (!q) {
        fprintf(stderr, "%s\n", lb_error(cx));
        exit(1);
    }
    lb_drop(cx, q);
    return t * 1e-9;
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 9;
    const char *only = argc > 2 ? argv[2] : "";
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    const lb_shape shape = LB_SHAPE(SIDE, SIDE);
    lb_array *source[LB_F64 + 1] = {NULL};
    if (rounds < 1 || rounds > MOST_ROUNDS) return 2;
    source[LB_F32] = lb_random_normal(cx, (lb_key){1, 0}, LB_F32, shape);
    source[LB_F16] = lb_convert(cx, source[LB_F32], LB_F16);
    source[LB_BF16] = lb_convert(cx, source[LB_F32], LB_BF16);
    if (!source[LB_BF16] || !source[LB_F16]) {
        fprintf(stderr, "%s\n", lb_error(cx));
        return 1;
    }
    for (int r = -WARM; r < rounds; r++)
        for (int i = 0; i < ROWS; i++) {
            row *it = &rows[r % 2 ? ROWS - 1 - i : i];
            if (!strstr(it->name, only)) continue;
            lb_array *a = source[it->from];
            const double bytes =
                (double)SIDE * SIDE * (double)lb_dtype_size(it->from);
            const double t = seconds(cx, a, &it->config);
            if (r >= 0) it->rate[r] = bytes * 1e-9 / t;
        }
    printf("%-24s %8s %8s %8s\n", "GB/s read", "best", "median", "ns/elem");
    for (int i = 0; i < ROWS; i++) {
        if (!strstr(rows[i].name, only)) continue;
        const double median = bench_median(rows[i].rate, rounds);
        const double best = rows[i].rate[rounds - 1];
        printf("%-24s %8.2f %8.2f %8.3f\n", rows[i].name, best, median,
               (double)lb_dtype_size(rows[i].from) / median);
    }
    lb_close(cx);
    return 0;
}
