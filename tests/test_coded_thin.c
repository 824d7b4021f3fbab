/* test_coded_thin.c - lb_matmul of a vector with packed weights, against double
 * precision.
 *
 * Formats and scale layouts, x @ W^T and x @ W, dtypes of x, precisions,
 * levels, odd shapes, views and batches. Each result is compared with double
 * precision on the values from lb_materialize, has the same bits on 1, 2 and 7
 * threads, and was computed on the packed codes where that is expected.
 */
/* ctest: simde skip-tsan skip-ref */
#include <stdlib.h>

#include "base/cpu.h"
#include "check.h"
#include "lowbit.h"

typedef struct {
    const char *name;
    lb_quant_config config;
    bool decoded; /* no algorithm multiplies these as stored */
    bool wide;    /* nor these if there are very many columns */
} storage;

static const storage storages[] = {
    {"int8 rows", {.format = "int8"}, false, true},
    {"int8 columns", {.format = "int8", .axes = {1, {0}}}, false, false},
    {"int8 all", {.format = "int8", .axes = {2, {0, 1}}}, false, false},
    {"int8 inverse",
     {.format = "int8", .meaning = LB_MEANS_INVERSE},
     false,
     false},
    {"int8 absmax",
     {.format = "int8", .meaning = LB_MEANS_ABSMAX},
     false,
     false},
    {"nf4", {.format = "nf4"}, false, true},
    {"nf4 16", {.format = "nf4", .block_size = 16}, false, false},
    {"nf4 32", {.format = "nf4", .block_size = 32}, false, false},
    {"nf4 48", {.format = "nf4", .block_size = 48}, false, false},
    {"nf4 128", {.format = "nf4", .block_size = 128}, false, false},
    {"nf4 192", {.format = "nf4", .block_size = 192}, false, false},
    {"nf4 4096", {.format = "nf4", .block_size = 4096}, false, false},
    {"nf4 10", {.format = "nf4", .block_size = 10}, true, false},
    {"nf4 double", {.format = "nf4", .double_quant = true}, false, true},
    {"nf4 poly", {.format = "nf4", .decode = LB_DECODE_POLY}, false, false},
    {"ternary", {.format = "ternary"}, false, false},
    {"ternary rows", {.format = "ternary", .scale = LB_SCALE_ROW}, false, true},
    {"ternary none",
     {.format = "ternary", .scale = LB_SCALE_NONE},
     false,
     false},
    {"ternary blocks",
     {.format = "ternary", .scale = LB_SCALE_BLOCK, .block_size = 64},
     false,
     false},
    {"ternary inverse",
     {.format = "ternary", .scale = LB_SCALE_ROW, .meaning = LB_MEANS_INVERSE},
     false,
     false},
    {"binary", {.format = "binary"}, false, false},
    {"binary rows", {.format = "binary", .scale = LB_SCALE_ROW}, false, true},
    {"binary blocks",
     {.format = "binary", .scale = LB_SCALE_BLOCK, .block_size = 96},
     false,
     false},
};
enum { STORAGES = sizeof storages / sizeof *storages };

static const char *const threads_of[] = {"1", "2", "7"};
static lb_ctx *contexts[3]; /* 1, 2 and 7 threads */

static const lb_precision precisions[] = {
    LB_PRECISION_HIGHEST, LB_PRECISION_FAST, LB_PRECISION_FASTEST};

/* ---- one product -------------------------------------------------------- */

static float *read_f32(lb_ctx *cx, lb_array *a)
{
    float *x = malloc((size_t)lb_size(a) * sizeof *x + 1);
    if (!x) exit(1);
    CHECK(lb_read(cx, lb_materialize(cx, lb_convert(cx, a, LB_F32)), x,
                  (size_t)lb_size(a) * sizeof *x));
    return x;
}

/* The product of x (batch, k) and w (batch, k, n), and the sum of magnitudes.
 */
typedef struct {
    double error, size; /* squares, summed */
    bool within;
} verdict;

static verdict judge(const float *x, const float *w, const float *y,
                     int64_t batch, int64_t k, int64_t n, double each)
{
    verdict v = {.within = true};
    for (int64_t b = 0; b < batch; b++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int64_t i = 0; i < k; i++) {
                const double p =
                    (double)x[b * k + i] * (double)w[(b * k + i) * n + j];
                sum += p;
                size += fabs(p);
            }
            const double off = fabs((double)y[b * n + j] - sum);
            v.error += off * off;
            v.size += sum * sum;
            v.within = v.within && off <= each * size + 1e-42;
        }
    return v;
}

static lb_array *product(lb_ctx *cx, lb_array *x, lb_array *w,
                         lb_precision precision)
{
    const int r = lb_rank(w);
    lb_dot_dims d = {.lhs_contract = {1, {lb_rank(x) - 1}},
                     .rhs_contract = {1, {r - 2}},
                     .precision = precision,
                     .preferred = LB_F32};
    if (r == 3) {
        d.lhs_batch = (lb_axes){1, {0}};
        d.rhs_batch = (lb_axes){1, {0}};
    }
    return lb_dot_general(cx, x, w, &d);
}

static lb_array *swapped(lb_ctx *cx, lb_array *x, lb_array *w,
                         lb_precision precision)
{
    const lb_dot_dims d = {.lhs_contract = {1, {0}},
                           .rhs_contract = {1, {lb_rank(x) - 1}},
                           .precision = precision,
                           .preferred = LB_F32};
    return lb_dot_general(cx, w, x, &d);
}

static bool taken_as_it_lies(lb_ctx *cx, lb_array *x, lb_array *w,
                             lb_precision precision)
{
    lb_array *in[2] = {x, w};
    const int r = lb_rank(w);
    lb_dot_dims d = {.lhs_contract = {1, {lb_rank(x) - 1}},
                     .rhs_contract = {1, {r - 2}},
                     .precision = precision};
    if (r == 3) {
        d.lhs_batch = (lb_axes){1, {0}};
        d.rhs_batch = (lb_axes){1, {0}};
    }
    const char *s = lb_explain(cx, "dot_general", in, 2, &d);
    return s && (strstr(s, "tiles, gemv q") || strstr(s, "dot pairs"));
}

/* Bits do not depend on threads; returns the results. */
static float *run_all(lb_array *x, lb_array *w, lb_precision precision,
                      const char *what)
{
    float *y = NULL;
    for (int t = 0; t < 3; t++) {
        lb_ctx *cx = contexts[t];
        lb_enter(cx);
        lb_array *out = product(cx, x, w, precision);
        CHECK(out != NULL);
        float *again = out ? read_f32(cx, out) : NULL;
        const size_t size = out ? (size_t)lb_size(out) * sizeof *y : 0;
        if (y && again && check_fails(memcmp(y, again, size) == 0))
            fprintf(stderr, "%s: different bits on %s threads\n", what,
                    threads_of[t]);
        if (y)
            free(again);
        else
            y = again;
        lb_leave(cx);
    }
    return y;
}

/* Relative errors, and errors per element relative to the sum of magnitudes, of
 * a precision. Integer x is checked in detail in test_gemvq.c. */
static void check_product(lb_array *x, lb_array *w, lb_precision precision,
                          bool decoded, bool outliers, const char *what)
{
    lb_ctx *cx = contexts[0];
    const int r = lb_rank(w);
    const int64_t batch = r == 3 ? lb_dim(w, 0) : 1;
    const int64_t k = lb_dim(w, r - 2), n = lb_dim(w, r - 1);
    const double each = precision == LB_PRECISION_HIGHEST ? 3e-5 : 1;
    const double whole = precision == LB_PRECISION_HIGHEST ? 1e-6
                         : precision == LB_PRECISION_FAST
                             ? (outliers ? 1e-3 : 3e-4)
                             : (outliers ? 0.2 : 1e-2);
    float *px = read_f32(cx, x), *pw = read_f32(cx, w);
    float *y = run_all(x, w, precision, what);
    if (y) {
        const verdict v = judge(px, pw, y, batch, k, n, each);
        /* Short sums that cancel are not meaningful. */
        const double slack = k < 400 ? 8 : k < 2000 ? 2 : 1;
        if (check_fails(v.within &&
                        sqrt(v.error) <= slack * whole * sqrt(v.size) + 1e-42))
            fprintf(stderr,
                    "%s %s: (%lld,%lld), precision %d: off by %.3g of it\n",
                    lb_isa(cx), what, (long long)k, (long long)n,
                    (int)precision, sqrt(v.error / v.size));
    }
    if (check_fails(taken_as_it_lies(cx, x, w, precision) != decoded))
        fprintf(stderr, "%s: (%lld,%lld) %s\n", what, (long long)k,
                (long long)n, decoded ? "was not decoded" : "was decoded");
    free(px);
    free(pw);
    free(y);
}

/* ---- cases -------------------------------------------------------------- */

static lb_array *normal(lb_ctx *cx, uint64_t key, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){key, 5}, LB_F32, shape);
}

/* W stored (out, in), or (in, out), as (in, out). */
static lb_array *weights(lb_ctx *cx, const storage *s, int64_t k, int64_t n,
                         bool along)
{
    lb_array *w = normal(cx, 11, along ? LB_SHAPE(n, k) : LB_SHAPE(k, n));
    lb_array *q = lb_quantize(cx, w, &s->config);
    return along ? lb_transpose(cx, q, NULL) : q;
}

/* Blocks at least as long as the row give it a single scale. */
static bool is_decoded(const storage *s, int64_t length)
{
    return s->decoded && s->config.block_size < length;
}

static void check_shapes(const storage *s)
{
    static const int64_t shapes[][2] = {{1, 1},    {3, 5},    {64, 16},
                                        {65, 33},  {127, 7},  {128, 130},
                                        {259, 61}, {515, 97}, {1030, 21}};
    static const lb_dtype dtypes[] = {LB_F32, LB_BF16, LB_F16};
    lb_ctx *cx = contexts[0];
    int turn = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int along = 0; along < 2; along++)
            for (int p = 0; p < 3; p++, turn++) {
                const int64_t k = shapes[i][0], n = shapes[i][1];
                if (check_thins()) continue;
                lb_enter(cx);
                lb_array *w = weights(cx, s, k, n, along);
                lb_array *x = lb_convert(cx, normal(cx, 3, LB_SHAPE(1, k)),
                                         dtypes[turn % 3]);
                CHECK(w && x);
                /* A single row or column counts as either orientation. */
                const bool one = k == 1 || n == 1;
                if (w && x && !(one && s->decoded))
                    check_product(x, w, precisions[p],
                                  is_decoded(s, along ? k : n), false, s->name);
                lb_leave(cx);
            }
}

/* x @ W with more columns than there are accumulators, one or several rows of
 * x. */
static void check_wide(const storage *s)
{
    static const int64_t shapes[][2] = {{257, 16900}, {20, 33000}};
    lb_ctx *cx = contexts[0];
    for (int i = 0; i < 2; i++)
        for (int64_t m = 1; m <= 4; m += 3)
            for (int p = 0; p < 3; p++) {
                const int64_t k = shapes[i][0], n = shapes[i][1];
                if (check_thins()) continue;
                lb_enter(cx);
                lb_array *w = weights(cx, s, k, n, false);
                lb_array *x = lb_materialize(cx, normal(cx, 3, LB_SHAPE(m, k)));
                CHECK(w && x);
                float *px = read_f32(cx, x), *pw = read_f32(cx, w);
                float *y = run_all(x, w, precisions[p], s->name);
                for (int64_t r = 0; r < m && y; r++) {
                    const verdict v =
                        judge(px + r * k, pw, y + r * n, 1, k, n, 1);
                    static const double whole[] = {1e-6, 3e-4, 1e-2};
                    CHECK(sqrt(v.error) <= whole[p] * sqrt(v.size));
                }
                free(px);
                free(pw);
                free(y);
                lb_leave(cx);
            }
}

/* Errors are within the documented bounds for long sums. */
static void check_errors(const storage *s, int64_t k, int64_t n)
{
    lb_ctx *cx = contexts[0];
    for (int along = 0; along < 2; along++)
        for (int outliers = 0; outliers < 2; outliers++)
            for (int p = 0; p < 3; p++) {
                if (check_thins()) continue;
                lb_enter(cx);
                lb_array *w = weights(cx, s, k, n, along);
                lb_array *x = lb_materialize(cx, normal(cx, 3, LB_SHAPE(1, k)));
                CHECK(w && x);
                if (!w || !x) continue;
                float *px = read_f32(cx, x);
                for (uint32_t i = 0; i < 8 && outliers; i++)
                    px[(i * 2654435761u + 77u) % (uint32_t)k] *= 100;
                x = lb_from(cx, LB_F32, LB_SHAPE(1, k), px);
                check_product(x, w, precisions[p], is_decoded(s, along ? k : n),
                              outliers, s->name);
                free(px);
                lb_leave(cx);
            }
}

/* W @ x, batches of matrices, and slices of one. */
static void check_views(const storage *s)
{
    enum { K = 256, N = 70 };
    lb_ctx *cx = contexts[0];
    lb_enter(cx);
    for (int along = 0; along < 2; along++) {
        lb_array *w = weights(cx, s, K, N, along);
        lb_array *x = normal(cx, 3, LB_SHAPE(1, K));
        const bool decoded = is_decoded(s, along ? K : N);
        lb_array *y = product(cx, x, w, LB_PRECISION_FAST);
        lb_array *z = swapped(cx, x, w, LB_PRECISION_FAST);
        CHECK(y && z && lb_dim(z, 0) == N);
        float *py = read_f32(cx, y), *pz = read_f32(cx, z);
        CHECK(memcmp(py, pz, N * sizeof *py) == 0);
        free(py);
        free(pz);
        /* Every second output from 3 to 60, and then in reverse: all begin
         * where whole rows do. */
        const int64_t first[2] = {along ? 0 : 3, along ? 3 : 0};
        const int64_t last[2] = {along ? K : 61, along ? 61 : N};
        const int64_t step[2] = {along ? 1 : 2, along ? 2 : 1};
        lb_array *part = lb_slice(cx, w, first, last, step);
        lb_array *px = normal(cx, 4, LB_SHAPE(1, lb_dim(part, 0)));
        check_product(px, part, LB_PRECISION_HIGHEST, decoded, false, s->name);
        lb_array *back = lb_reverse(cx, part, &(lb_axes){1, {along ? 1 : 0}});
        check_product(px, back, LB_PRECISION_FAST, decoded, false, s->name);
    }
    lb_leave(cx);
}

static void check_batch(const storage *s)
{
    enum { B = 3, K = 200, N = 35 };
    lb_ctx *cx = contexts[0];
    lb_enter(cx);
    for (int along = 0; along < 2; along++) {
        lb_quant_config config = s->config;
        for (int i = 0; i < config.axes.n; i++)
            config.axes.axis[i]++; /* those of the matrix */
        lb_array *w =
            normal(cx, 12, along ? LB_SHAPE(B, N, K) : LB_SHAPE(B, K, N));
        w = lb_quantize(cx, w, &config);
        if (along) w = lb_transpose(cx, w, (int[]){0, 2, 1});
        lb_array *x = normal(cx, 3, LB_SHAPE(B, 1, K));
        CHECK(w && x);
        for (int p = 0; p < 3 && w && x; p++)
            check_product(x, w, precisions[p], is_decoded(s, along ? K : N),
                          false, s->name);
    }
    lb_leave(cx);
}

/* Values at the ends of f32's range, and beyond. */
static void check_extremes(const storage *s)
{
    enum { K = 300, N = 40 };
    static const float by[] = {0x1p119f, 0x1p-135f, INFINITY};
    lb_ctx *cx = contexts[0];
    for (int along = 0; along < 2; along++)
        for (int p = 0; p < 3; p++)
            for (int e = 0; e < 3; e++) {
                if (check_thins()) continue;
                lb_enter(cx);
                lb_array *w = weights(cx, s, K, N, along);
                lb_array *x = normal(cx, 3, LB_SHAPE(1, K));
                float *px = read_f32(cx, x);
                for (int i = 0; i < K && isfinite(by[e]); i++)
                    px[i] *= by[e];
                if (!isfinite(by[e])) px[K / 3] = INFINITY;
                x = lb_from(cx, LB_F32, LB_SHAPE(1, K), px);
                if (isfinite(by[e]) && !s->decoded) {
                    check_product(x, w, precisions[p], false, false, s->name);
                } else if (!isfinite(by[e])) {
                    float *y = read_f32(cx, product(cx, x, w, precisions[p]));
                    for (int j = 0; j < N; j++)
                        CHECK(!isfinite(y[j]));
                    free(y);
                }
                free(px);
                lb_leave(cx);
            }
}

static void check_level(const char *level, bool vast)
{
    for (int t = 0; t < 3; t++) {
        contexts[t] = lb_open(
            &(lb_options){.threads = atoi(threads_of[t]), .isa = level});
        CHECK(contexts[t] != NULL);
        if (!contexts[t]) return;
    }
    for (int i = 0; i < STORAGES; i++) {
        const storage *s = &storages[i];
        check_shapes(s);
        check_views(s);
        check_batch(s);
        check_extremes(s);
        if (vast && s->wide) check_wide(s);
        check_errors(s, 4096, 24);
        if (vast) check_errors(s, 16384, 40);
    }
    for (int t = 0; t < 3; t++)
        lb_close(contexts[t]);
}

int main(void)
{
    for (int l = LB_LEVEL_REF; l <= LB_LEVEL_AMX; l++)
        if (lb_level_available((lb_level)l))
            check_level(lb_level_name((lb_level)l), l == (int)lb_cpu_best());
    return check_report("coded thin");
}
