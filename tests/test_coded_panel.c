/* test_coded_panel.c - f32 products with packed weights that have more rows
 * than gemv handles and become panels of f32 (kernels/gemm_codes.h).
 *
 * Formats and scale layouts, both orientations, odd shapes, views and batches.
 * With more than 32 rows the bits equal those of the product with decoded
 * weights, where these are level times scale; with fewer the result is close to
 * double precision. All have the same bits on 1, 2 and 7 threads.
 */
/* ctest: simde skip-tsan skip-ref */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "check.h"
#include "lowbit.h"

typedef struct {
    const char *name;
    lb_quant_config config;
    bool along, across; /* where the level has panels of them */
} storage;

static const storage storages[] = {
    {"int8 rows", {.format = "int8"}, true, true},
    {"int8 16", {.format = "int8", .block_size = 16}, true, true},
    {"int8 columns", {.format = "int8", .axes = {1, {0}}}, false, true},
    {"int8 all", {.format = "int8", .axes = {2, {0, 1}}}, true, true},
    {"int8 inverse",
     {.format = "int8", .meaning = LB_MEANS_INVERSE},
     true,
     true},
    {"int8 absmax", {.format = "int8", .meaning = LB_MEANS_ABSMAX}, true, true},
    {"nf4", {.format = "nf4"}, true, true},
    {"nf4 16", {.format = "nf4", .block_size = 16}, true, true},
    {"nf4 48", {.format = "nf4", .block_size = 48}, false, true},
    {"nf4 512", {.format = "nf4", .block_size = 512}, true, true},
    {"nf4 double", {.format = "nf4", .double_quant = true}, true, true},
    {"nf4 poly", {.format = "nf4", .decode = LB_DECODE_POLY}, true, true},
    {"ternary", {.format = "ternary"}, true, true},
    {"ternary rows", {.format = "ternary", .scale = LB_SCALE_ROW}, true, true},
    {"ternary none", {.format = "ternary", .scale = LB_SCALE_NONE}, true, true},
    {"ternary blocks",
     {.format = "ternary", .scale = LB_SCALE_BLOCK, .block_size = 64},
     true,
     true},
    {"ternary inverse",
     {.format = "ternary", .scale = LB_SCALE_ROW, .meaning = LB_MEANS_INVERSE},
     true,
     true},
    {"binary rows", {.format = "binary", .scale = LB_SCALE_ROW}, true, true},
    {"binary blocks",
     {.format = "binary", .scale = LB_SCALE_BLOCK, .block_size = 32},
     true,
     true},
};
enum { STORAGES = sizeof storages / sizeof *storages, CONTEXTS = 3 };

static lb_ctx *contexts[CONTEXTS]; /* 1, 2 and 7 threads */

/* ---- one product --------------------------------------------------------- */

static lb_dot_dims dims_of(lb_array *w)
{
    const int r = lb_rank(w);
    lb_dot_dims d = {.lhs_contract = {1, {r - 1}},
                     .rhs_contract = {1, {r - 1}},
                     .precision = LB_PRECISION_HIGHEST,
                     .preferred = LB_F32};
    if (r == 3) d.lhs_batch = d.rhs_batch = (lb_axes){1, {0}};
    return d;
}

static float *read_f32(lb_ctx *cx, lb_array *a)
{
    const size_t size = (size_t)lb_size(a) * sizeof(float);
    float *x = malloc(size + 1);
    if (!x) exit(1);
    CHECK(lb_read(cx, lb_convert(cx, lb_materialize(cx, a), LB_F32), x, size));
    return x;
}

static float *product(lb_ctx *cx, lb_array *x, lb_array *w)
{
    const lb_dot_dims d = dims_of(w);
    lb_enter(cx);
    lb_array *y = lb_dot_general(cx, x, w, &d);
    CHECK(y != NULL);
    float *p = y ? read_f32(cx, y) : calloc(1, 1);
    lb_leave(cx);
    return p;
}

/* y (batch, m, n) of x (batch, m, k) and w (batch, n, k). */
static bool is_close(lb_ctx *cx, lb_array *x, lb_array *w, const float *y)
{
    const int r = lb_rank(w);
    const int64_t m = lb_dim(x, r - 2), n = lb_dim(w, r - 2);
    const int64_t k = lb_dim(w, r - 1), batch = r == 3 ? lb_dim(w, 0) : 1;
    float *const px = read_f32(cx, x), *const pw = read_f32(cx, w);
    bool close = true;
    for (int64_t at = 0; at < batch * m * n; at++) {
        const float *a = px + at / n * k;
        const float *b = pw + (at / (m * n) * n + at % n) * k;
        double sum = 0, size = 0;
        for (int64_t i = 0; i < k; i++) {
            const double p = (double)a[i] * (double)b[i];
            sum += p;
            size += fabs(p);
        }
        const double terms = 256 + (double)k / 256;
        close = close && fabs((double)y[at] - sum) <= terms * 0x1p-24 * size;
    }
    free(px);
    free(pw);
    return close;
}

static void check_product(lb_array *x, lb_array *w, const storage *s)
{
    if (check_thins_by(3)) return;
    lb_ctx *cx = contexts[0];
    const int r = lb_rank(w);
    const int64_t m = lb_dim(x, r - 2), n = lb_dim(w, r - 2);
    const size_t size =
        (size_t)(m * n * (r == 3 ? lb_dim(w, 0) : 1)) * sizeof(float);
    float *y = product(cx, x, w);
    bool ok = is_close(cx, x, w, y);
    for (int t = 1; t < CONTEXTS; t++) {
        float *again = product(contexts[t], x, w);
        ok = ok && memcmp(y, again, size) == 0;
        free(again);
    }
    /* Of int8 other meanings are no product of a code and a factor. */
    const bool is_product =
        s->config.meaning == 0 || strcmp(s->config.format, "int8") != 0;
    if (m > 32 && n > 32 && is_product) {
        float *dense = product(cx, x, lb_materialize(cx, w));
        ok = ok && memcmp(y, dense, size) == 0;
        free(dense);
    }
    if (check_fails(ok))
        fprintf(stderr, "%s %s: %lld rows by %lld of %lld\n", lb_isa(cx),
                s->name, (long long)m, (long long)n,
                (long long)lb_dim(w, r - 1));
    free(y);
}

/* ---- cases --------------------------------------------------------------- */

static lb_array *normal(lb_ctx *cx, uint64_t key, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){key, 5}, LB_F32, shape);
}

static void check_shapes(const storage *s)
{
    static const int64_t shapes[][3] = {
        {9, 130, 300}, {17, 37, 300},  {31, 16, 1},   {32, 50, 2100},
        {33, 37, 300}, {40, 600, 400}, {200, 70, 530}};
    lb_ctx *cx = contexts[0];
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t *at = shapes[i];
        lb_enter(cx);
        lb_array *w = normal(cx, 11, LB_SHAPE(at[1], at[2]));
        lb_array *x = normal(cx, 3, LB_SHAPE(at[0], at[2]));
        check_product(x, lb_quantize(cx, w, &s->config), s);
        w = lb_quantize(cx, normal(cx, 7, LB_SHAPE(at[2], at[1])), &s->config);
        check_product(x, lb_transpose(cx, w, (int[]){1, 0}), s);
        lb_leave(cx);
    }
}

/* Every second row, reversed, and a later part of K. */
static void check_views(const storage *s)
{
    enum { M = 34, N = 90, K = 1024 };
    lb_ctx *cx = contexts[0];
    lb_enter(cx);
    lb_array *w = lb_quantize(cx, normal(cx, 12, LB_SHAPE(N, K)), &s->config);
    w = lb_slice(cx, w, (int64_t[]){3, 512}, (int64_t[]){N, K - 30},
                 (int64_t[]){2, 1});
    w = lb_reverse(cx, w, &(lb_axes){1, {0}});
    check_product(normal(cx, 4, LB_SHAPE(M, K - 512 - 30)), w, s);
    lb_leave(cx);
}

static void check_batch(const storage *s)
{
    enum { B = 3, M = 20, N = 35, K = 520 };
    lb_ctx *cx = contexts[0];
    lb_quant_config config = s->config;
    for (int i = 0; i < config.axes.n; i++)
        config.axes.axis[i]++; /* those of the matrix */
    lb_enter(cx);
    lb_array *w = lb_quantize(cx, normal(cx, 13, LB_SHAPE(B, N, K)), &config);
    for (int64_t m = M; m <= 2 * M; m += M)
        check_product(normal(cx, 3, LB_SHAPE(B, m, K)), w, s);
    lb_leave(cx);
}

/* Checks that panels are used where expected. */
static void check_way(const storage *s)
{
    lb_ctx *cx = contexts[0];
    const bool level = strcmp(lb_isa(cx), "avx2") == 0;
    lb_enter(cx);
    for (int across = 0; across < 2; across++) {
        lb_array *w =
            normal(cx, 1, across ? LB_SHAPE(600, 96) : LB_SHAPE(96, 600));
        w = lb_quantize(cx, w, &s->config);
        if (across) w = lb_transpose(cx, w, (int[]){1, 0});
        lb_array *in[2] = {normal(cx, 2, LB_SHAPE(32, 600)), w};
        lb_dot_dims d = dims_of(w);
        const char *text = lb_explain(cx, "dot_general", in, 2, &d);
        const bool is = text && strstr(text, "tiles, dot f32 avx2 6x16");
        if (check_fails(is == (level && (across ? s->across : s->along))))
            fprintf(stderr, "%s: %s\n", s->name, text ? text : "no text");
    }
    lb_leave(cx);
}

static void check_level(lb_level level)
{
    static const int threads[CONTEXTS] = {1, 2, 7};
    for (int t = 0; t < CONTEXTS; t++) {
        lb_options o = {.struct_size = sizeof o, .threads = threads[t]};
        for (int l = (int)level + 1; l <= LB_LEVEL_AMX; l++)
            o.cpu_off |= UINT64_C(1) << l;
        contexts[t] = lb_open(&o);
        CHECK(contexts[t] != NULL);
        if (!contexts[t]) exit(check_report("coded_panel"));
    }
    for (int s = 0; s < STORAGES; s++) {
        check_way(&storages[s]);
        check_shapes(&storages[s]);
        check_views(&storages[s]);
        check_batch(&storages[s]);
    }
    for (int t = 0; t < CONTEXTS; t++)
        lb_close(contexts[t]);
}

int main(void)
{
    static const lb_level levels[] = {LB_LEVEL_REF, LB_LEVEL_AVX2,
                                      LB_LEVEL_AVX512VNNI};
    for (int i = 0; i < 3; i++)
        if (lb_level_available(levels[i])) check_level(levels[i]);
    return check_report("coded_panel");
}
