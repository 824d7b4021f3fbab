/* test_coded_labels.c - products with packed weights of dtype bf16 or f16,
 * against double precision.
 *
 * HIGHEST multiplies the decoded values: level times scale, rounded to the
 * logical dtype; the reference does so in double precision. FAST and FASTEST
 * may skip that rounding. Formats and scale layouts, both orientations, few and
 * many rows of x, odd sizes, dtypes of x, levels.
 */
/* ctest: simde skip-tsan skip-ref */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "check.h"
#include "label_model.h"
#include "lowbit.h"

typedef struct {
    const char *name;
    lb_quant_config config;
    bool signs; /* values are rounded at any precision */
    /* Multiplied as stored at HIGHEST, if the level has kernels: K contiguous,
     * K strided. */
    bool along, across;
} storage;

static const storage storages[] = {
    {"int8 rows", {.format = "int8"}, false, true, true},
    {"int8 64", {.format = "int8", .block_size = 64}, false, true, true},
    {"int8 6", {.format = "int8", .block_size = 6}, false, false, false},
    {"int8 columns", {.format = "int8", .axes = {1, {0}}}, false, false, true},
    {"int8 all", {.format = "int8", .axes = {2, {0, 1}}}, false, true, true},
    {"int8 inverse",
     {.format = "int8", .meaning = LB_MEANS_INVERSE},
     false,
     false,
     false},
    {"int8 absmax",
     {.format = "int8", .meaning = LB_MEANS_ABSMAX},
     false,
     false,
     false},
    {"nf4", {.format = "nf4"}, false, true, true},
    {"nf4 32", {.format = "nf4", .block_size = 32}, false, true, true},
    {"nf4 48", {.format = "nf4", .block_size = 48}, false, false, false},
    {"nf4 128", {.format = "nf4", .block_size = 128}, false, true, true},
    {"nf4 double", {.format = "nf4", .double_quant = true}, false, true, true},
    {"nf4 poly",
     {.format = "nf4", .decode = LB_DECODE_POLY},
     false,
     true,
     true},
    {"ternary", {.format = "ternary", .scale = LB_SCALE_ROW}, true, true, true},
    {"binary",
     {.format = "binary", .scale = LB_SCALE_BLOCK, .block_size = 128},
     true,
     true,
     true},
};
enum { STORAGES = sizeof storages / sizeof *storages };

static const lb_dtype labels[] = {LB_BF16, LB_F16};

typedef struct {
    const storage *s;
    lb_dtype label, x;
    int64_t m, n, k;
    bool along;
    float by; /* what weights are multiplied by */
    lb_precision precision;
} product;

static const char *describe(lb_ctx *cx, const product *p)
{
    static char s[200];
    snprintf(s, sizeof s, "%s %s, %s, x %s, %lldx%lldx%lld %s, times %g, %d",
             lb_isa(cx), p->s->name, lb_dtype_name(p->label),
             lb_dtype_name(p->x), (long long)p->m, (long long)p->n,
             (long long)p->k, p->along ? "along" : "across", (double)p->by,
             (int)p->precision);
    return s;
}

/* ---- expected values ----------------------------------------------------- */

static float *read_f32(lb_ctx *cx, lb_array *a)
{
    float *x = malloc((size_t)lb_size(a) * sizeof *x + 1);
    if (!x) exit(1);
    CHECK(lb_read(cx, lb_materialize(cx, lb_convert(cx, a, LB_F32)), x,
                  (size_t)lb_size(a) * sizeof *x));
    return x;
}

/* The relative error of y, for sums of values with random signs. */
static double error_of(const product *p, const float *x, const double *w,
                       const float *y)
{
    double e = 0, all = 0;
    const int64_t rs = p->along ? p->k : 1, ks = p->along ? 1 : p->n;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < p->k; k++) {
                const double v = (double)x[i * p->k + k] * w[j * rs + k * ks];
                sum += v;
                all += v * v;
            }
            const double off = (double)y[i * p->n + j] - sum;
            e += off * off;
        }
    return e == 0 ? 0 : sqrt(e / all);
}

/* Relative to whichever of the two values it may have used. */
static double least_error(const product *p, const float *x, const float *w,
                          const float *y)
{
    const int64_t size = p->n * p->k;
    double *v = calloc((size_t)size, sizeof *v);
    if (!v) exit(1);
    for (int64_t i = 0; i < size; i++)
        v[i] = label_rounded(p->label, (double)w[i]);
    double e = error_of(p, x, v, y);
    for (int64_t i = 0; i < size; i++)
        v[i] = (double)w[i];
    if (p->precision > LB_PRECISION_HIGHEST && !p->s->signs)
        e = fmin(e, error_of(p, x, v, y));
    free(v);
    return e;
}

/* ---- one product --------------------------------------------------------- */

static lb_array *normal(lb_ctx *cx, uint64_t key, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){key, 5}, LB_F32, shape);
}

static lb_array *weights(lb_ctx *cx, const product *p)
{
    const lb_shape shape =
        p->along ? LB_SHAPE(p->n, p->k) : LB_SHAPE(p->k, p->n);
    lb_quant_config c = p->s->config;
    c.dtype = p->label;
    lb_array *by = lb_scalar(cx, (double)p->by);
    return lb_quantize(cx, lb_mul(cx, normal(cx, 11, shape), by), &c);
}

static lb_dot_dims dims_of(const product *p)
{
    return (lb_dot_dims){.lhs_contract = {1, {1}},
                         .rhs_contract = {1, {p->along ? 1 : 0}},
                         .precision = p->precision,
                         .preferred = LB_F32};
}

static double bound_of(const product *p)
{
    static const double bounds[] = {0, 1e-6, 3e-4, 1e-2};
    return bounds[p->precision];
}

static void check_product(lb_ctx *cx, const product *p)
{
    if (check_thins_by(3)) return;
    const lb_dot_dims d = dims_of(p);
    lb_enter(cx);
    lb_array *w = weights(cx, p);
    lb_array *x = lb_convert(cx, normal(cx, 3, LB_SHAPE(p->m, p->k)), p->x);
    lb_array *y = lb_dot_general(cx, x, w, &d);
    if (check_fails(y != NULL)) {
        fprintf(stderr, "%s: %s\n", describe(cx, p), lb_error(cx));
    } else {
        float *px = read_f32(cx, x), *pw = read_f32(cx, w);
        float *py = read_f32(cx, y);
        const double e = least_error(p, px, pw, py);
        if (check_fails(e <= bound_of(p)))
            fprintf(stderr, "%s: off by %.3g\n", describe(cx, p), e);
        free(px);
        free(pw);
        free(py);
    }
    lb_leave(cx);
    lb_clear(cx);
}

/* ---- cases --------------------------------------------------------------- */

static void check_shapes(lb_ctx *cx, const storage *s)
{
    static const int64_t rows[] = {1, 2, 3, 8, 29, 33};
    static const int64_t sizes[][2] = {{67, 515}, {131, 77}, {33, 1}};
    static const lb_dtype dtypes[] = {LB_F32, LB_BF16, LB_F16};
    int turn = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int l = 0; l < 2; l++)
            for (int q = 0; q < 6; q++, turn++) {
                const int64_t *size = sizes[turn % 7 == 6 ? 2 : turn % 2];
                product p = {
                    .s = s,
                    .label = labels[l],
                    .x = dtypes[(turn + l) % 3],
                    .m = rows[i],
                    .n = size[0],
                    .k = size[1],
                    .along = q % 2,
                    .by = 1,
                    .precision = (lb_precision)(1 + q / 2),
                };
                check_product(cx, &p);
            }
}

/* Values that are subnormal, or nearly overflow, in 16 bits. */
static void check_range(lb_ctx *cx, const storage *s)
{
    static const float by[2][2] = {{0x1p-128f, 0x1p120f}, {0x1p-20f, 0x1p12f}};
    for (int m = 1; m <= 9; m += 4)
        for (int i = 0; i < 8; i++) {
            const product p = {
                .s = s,
                .label = labels[i / 4],
                .x = LB_F32,
                .m = m,
                .n = 35,
                .k = 200,
                .along = i % 2,
                .by = by[i / 4][i / 2 % 2],
                .precision = LB_PRECISION_HIGHEST,
            };
            /* Sums of subnormal values have no more bits than these. */
            if (p.by > 0x1p-100f || s->signs) check_product(cx, &p);
        }
}

/* The name of the kernel in lb_explain. */
static void kernel_of(lb_ctx *cx, const product *p, lb_array *x, lb_array *w,
                      char *to, size_t size)
{
    lb_dot_dims d = dims_of(p);
    d.preferred = LB_NO_DTYPE;
    const char *text =
        lb_explain(cx, "dot_general", (lb_array *[]){x, w}, 2, &d);
    const char *name = text ? strstr(text, "tiles, ") : NULL;
    snprintf(to, size, "%s", name ? name + strlen("tiles, ") : "none");
    to[strcspn(to, ",")] = 0;
}

/* The same algorithm as with dtype f32, for any x and result. */
static void check_way(lb_ctx *cx, const storage *s)
{
    static const int64_t rows[] = {1, 2, 8, 29};
    const bool level = strcmp(lb_isa(cx), "avx2") == 0;
    for (int i = 0; i < 48; i++) {
        const product p = {
            .s = s,
            .label = labels[i % 2],
            .x = labels[i % 2],
            .m = rows[i / 4 % 4],
            .n = 192,
            .k = 256,
            .along = i / 2 % 2,
            .by = 1,
            .precision = (lb_precision)(1 + i / 16),
        };
        char way[2][80];
        lb_enter(cx);
        lb_array *w = weights(cx, &p);
        lb_array *x = lb_convert(cx, normal(cx, 3, LB_SHAPE(p.m, p.k)), p.x);
        kernel_of(cx, &p, x, w, way[0], sizeof *way);
        kernel_of(cx, &p, x, lb_convert(cx, w, LB_F32), way[1], sizeof *way);
        const bool coded = level && (p.along ? s->along : s->across);
        if ((p.precision > LB_PRECISION_HIGHEST || coded) &&
            check_fails(!strcmp(way[0], way[1]) || strstr(way[0], "gemv q") ||
                        strstr(way[0], "dot f32 ")))
            fprintf(stderr, "%s: %s, not %s\n", describe(cx, &p), way[0],
                    way[1]);
        lb_leave(cx);
    }
}

static void check_level(const char *level)
{
    lb_ctx *cx = lb_open(
        &(lb_options){.threads = 2, .isa = level, .dense = LB_DENSE_DENY});
    if (check_fails(cx != NULL)) return;
    for (int i = 0; i < STORAGES; i++) {
        check_shapes(cx, &storages[i]);
        check_range(cx, &storages[i]);
        check_way(cx, &storages[i]);
    }
    lb_close(cx);
}

int main(void)
{
    for (int l = LB_LEVEL_REF; l <= LB_LEVEL_AMX; l++)
        if (lb_level_available((lb_level)l))
            check_level(lb_level_name((lb_level)l));
    return check_report("coded labels");
}
