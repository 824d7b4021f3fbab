/* test_coded_block.c - products with packed weights, at every precision,
 * against double precision on the decoded weights.
 *
 * Formats and scale layouts, both orientations, either operand, many shapes,
 * dtypes of x, batches, levels; x normally distributed, with outliers, tiny,
 * zero and not finite. Errors are Frobenius norms, relative to the norm of a
 * product with random signs, which is not reduced by cancellation.
 */
/* ctest: simde skip-tsan skip-ref */
#include <float.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "check.h"
#include "lowbit_ext.h"
#include "lowbit_params.h"

#define HIGHEST  1e-6
#define FAST     3e-4
#define FASTEST  1e-2
#define OUTLIERS 1e-3

static const struct config {
    const char *name;
    lb_quant_config c;
} configs[] = {
    {"int8", {.format = "int8"}},
    {"int8 block 32", {.format = "int8", .block_size = 32}},
    {"int8 block 1024", {.format = "int8", .block_size = 1024}},
    {"int8 block 6", {.format = "int8", .block_size = 6}},
    {"int8 axis 0", {.format = "int8", .axes = {1, {0}}}},
    {"int8 tensor", {.format = "int8", .axes = {2, {0, 1}}}},
    {"int8 absmax", {.format = "int8", .meaning = LB_MEANS_ABSMAX}},
    {"int8 inverse", {.format = "int8", .meaning = LB_MEANS_INVERSE}},
    {"nf4", {.format = "nf4"}},
    {"nf4 block 2", {.format = "nf4", .block_size = 2}},
    {"nf4 block 6", {.format = "nf4", .block_size = 6}},
    {"nf4 block 32", {.format = "nf4", .block_size = 32}},
    {"nf4 block 96", {.format = "nf4", .block_size = 96}},
    {"nf4 block 128", {.format = "nf4", .block_size = 128}},
    {"nf4 block 1024", {.format = "nf4", .block_size = 1024}},
    {"nf4 double", {.format = "nf4", .double_quant = true}},
    {"nf4 poly", {.format = "nf4", .decode = LB_DECODE_POLY}},
    {"ternary none", {.format = "ternary", .scale = LB_SCALE_NONE}},
    {"ternary tensor", {.format = "ternary", .scale = LB_SCALE_TENSOR}},
    {"ternary row", {.format = "ternary", .scale = LB_SCALE_ROW}},
    {"ternary block",
     {.format = "ternary", .scale = LB_SCALE_BLOCK, .block_size = 64}},
    {"ternary inverse",
     {.format = "ternary", .scale = LB_SCALE_ROW, .meaning = LB_MEANS_INVERSE}},
    {"binary none", {.format = "binary", .scale = LB_SCALE_NONE}},
    {"binary row", {.format = "binary", .scale = LB_SCALE_ROW}},
    {"binary block",
     {.format = "binary", .scale = LB_SCALE_BLOCK, .block_size = 24}},
};
enum { N_CONFIGS = sizeof configs / sizeof *configs };

/* ---- one product --------------------------------------------------------- */

typedef struct {
    const struct config *config;
    int64_t batch, m, n, k; /* x (m,k), w (n,k) */
    bool along;             /* w is stored as (n,k), else as (k,n) */
    bool swapped;           /* w comes first */
    bool turned;            /* x is stored as (k,m) */
    lb_dtype dtype;         /* of x */
    lb_precision precision;
} product;

typedef struct {
    lb_array *x, *w; /* as given */
    float *xs, *ws;  /* their values, (batch,m,k) and (batch,n,k) */
} operands;

static const char *describe(const product *p)
{
    static char s[200];
    snprintf(s, sizeof s, "%s: (%lld) %lldx%lldx%lld%s%s%s, x %s, precision %d",
             p->config->name, (long long)p->batch, (long long)p->m,
             (long long)p->n, (long long)p->k, p->along ? "" : ", W (in, out)",
             p->swapped ? ", W first" : "", p->turned ? ", x turned" : "",
             lb_dtype_name(p->dtype), (int)p->precision);
    return s;
}

static lb_shape with_batch(int64_t batch, int64_t a, int64_t b)
{
    return batch ? LB_SHAPE(batch, a, b) : LB_SHAPE(a, b);
}

/* The values of a in order, as (batch, rows, K) in either orientation. */
static float *numbers(lb_ctx *cx, lb_array *a, int64_t batch, int64_t rows,
                      int64_t depth, bool turned)
{
    const size_t size = (size_t)(batch * rows * depth);
    float *v = malloc((size + 1) * sizeof *v), *r = v;
    if (!lb_read(cx, lb_convert(cx, lb_materialize(cx, a), LB_F32), v,
                 size * sizeof *v))
        memset(v, 0, size * sizeof *v);
    if (!turned) return v;
    r = malloc((size + 1) * sizeof *v);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = 0; k < depth; k++)
                r[(b * rows + i) * depth + k] = v[(b * depth + k) * rows + i];
    free(v);
    return r;
}

/* The same normal values for every product, from an offset chosen by `key`:
 * generating them took most of the time. */
static const float *normal_numbers(lb_ctx *cx, int64_t n, int key)
{
    enum { MANY = 1 << 21 };
    static float *all;
    if (!all) {
        all = malloc(MANY * sizeof *all);
        lb_array *a =
            lb_random_normal(cx, (lb_key){11, 0}, LB_F32, LB_SHAPE(MANY));
        if (!all || !lb_read(cx, a, all, MANY * sizeof *all)) exit(1);
    }
    CHECK(n <= MANY - key);
    return all + key;
}

/* change: modifies x before it is rounded to its dtype. */
static operands make_operands(lb_ctx *cx, const product *p,
                              void (*change)(const product *, float *))
{
    operands o;
    const int64_t b = p->batch ? p->batch : 1;
    const size_t size = (size_t)(b * p->m * p->k);
    float *x = malloc((size + 1) * sizeof *x);
    const lb_shape xs = p->turned ? with_batch(p->batch, p->k, p->m)
                                  : with_batch(p->batch, p->m, p->k);
    const lb_shape ws = p->along ? with_batch(p->batch, p->n, p->k)
                                 : with_batch(p->batch, p->k, p->n);
    memcpy(x, normal_numbers(cx, (int64_t)size, 0), size * sizeof *x);
    if (change) change(p, x);
    o.x = lb_convert(cx, lb_from(cx, LB_F32, xs, x), p->dtype);
    free(x);
    lb_quant_config c = p->config->c;
    for (int i = 0; i < c.axes.n; i++)
        c.axes.axis[i] += p->batch ? 1 : 0;
    const float *w = normal_numbers(cx, b * p->n * p->k, 1009);
    o.w = lb_quantize(cx, lb_from(cx, LB_F32, ws, w), &c);
    o.xs = numbers(cx, o.x, b, p->m, p->k, p->turned);
    o.ws = numbers(cx, o.w, b, p->n, p->k, !p->along);
    return o;
}

static void free_operands(operands *o)
{
    free(o->xs);
    free(o->ws);
}

static lb_dot_dims dims_of(const product *p)
{
    const int first = p->batch ? 1 : 0;
    const int x = first + (p->turned ? 0 : 1), w = first + (p->along ? 1 : 0);
    lb_dot_dims d = {.precision = p->precision, .preferred = LB_F32};
    d.lhs_contract = (lb_axes){1, {p->swapped ? w : x}};
    d.rhs_contract = (lb_axes){1, {p->swapped ? x : w}};
    if (p->batch) d.lhs_batch = d.rhs_batch = (lb_axes){1, {0}};
    return d;
}

/* The result as (batch,m,n), or NULL. */
static float *run(lb_ctx *cx, const product *p, const operands *o)
{
    const lb_dot_dims d = dims_of(p);
    lb_array *y = p->swapped ? lb_dot_general(cx, o->w, o->x, &d)
                             : lb_dot_general(cx, o->x, o->w, &d);
    if (check_fails(y != NULL)) {
        fprintf(stderr, "%s: %s\n", describe(p), lb_error(cx));
        return NULL;
    }
    return numbers(cx, y, p->batch ? p->batch : 1, p->m, p->n, p->swapped);
}

/* The exact value of each element, and the sum of its squared products. */
static void exact(const product *p, const operands *o, double *sum,
                  double *square)
{
    const int64_t b = p->batch ? p->batch : 1;
    for (int64_t e = 0; e < b * p->m * p->n; e++) {
        const int64_t at = e / (p->m * p->n), i = e / p->n % p->m;
        const float *x = o->xs + (at * p->m + i) * p->k;
        const float *w = o->ws + (at * p->n + e % p->n) * p->k;
        double s[2] = {0, 0}, q[2] = {0, 0};
        for (int64_t k = 0; k < p->k; k++) {
            const double v = (double)x[k] * (double)w[k];
            s[k % 2] += v;
            q[k % 2] += v * v;
        }
        sum[e] = s[0] + s[1];
        square[e] = q[0] + q[1];
    }
}

static double error_of(const float *y, const double *sum, const double *square,
                       int64_t n)
{
    double e = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        e += ((double)y[i] - sum[i]) * ((double)y[i] - sum[i]);
        norm += square[i];
    }
    return e == 0 ? 0 : sqrt(e / norm);
}

static void check_error(lb_ctx *cx, const product *p, double bound,
                        void (*change)(const product *, float *))
{
    if (check_thins()) return;
    lb_enter(cx);
    operands o = make_operands(cx, p, change);
    const int64_t b = p->batch ? p->batch : 1, size = b * p->m * p->n;
    double *sum = malloc((size_t)size * 2 * sizeof *sum);
    float *y = run(cx, p, &o);
    if (y) {
        exact(p, &o, sum, sum + size);
        const double e = error_of(y, sum, sum + size, size);
        if (check_fails(e <= bound))
            fprintf(stderr, "%s, %s: error %.2e > %.2e\n", lb_isa(cx),
                    describe(p), e, bound);
    }
    free(y);
    free(sum);
    free_operands(&o);
    lb_leave(cx);
    lb_clear(cx);
}

static double bound_of(lb_precision precision)
{
    return precision == LB_PRECISION_FASTEST ? FASTEST : FAST;
}

/* ---- shapes -------------------------------------------------------------- */

static void check_shapes(lb_ctx *cx, const struct config *config)
{
    static const int64_t rows[] = {2, 3, 5, 6, 7, 8, 12, 13, 33};
    static const int64_t depths[] = {
        1,   2,   3,   7,   16,  31,  32,   33,   63,   64,   65,
        70,  127, 129, 159, 160, 161, 320,  321,  255,  256,  257,
        258, 511, 512, 513, 514, 640, 1000, 1023, 1024, 1025, 2100};
    enum { ROWS = sizeof rows / sizeof *rows };
    enum { DEPTHS = sizeof depths / sizeof *depths };
    for (int i = 0; i < DEPTHS; i++) {
        for (int along = 0; along < 2; along++) {
            product p = {
                .config = config,
                .m = rows[(i + along) % ROWS],
                .n = 1 + (i % 4 ? 2 : 5) * ((i * 7 + along) % 29),
                .k = depths[i],
                .along = along,
                .swapped = i / 2 % 2,
                .turned = i / 3 % 2,
                .dtype = i % 5 == 3   ? LB_BF16
                         : i % 5 == 4 ? LB_F16
                                      : LB_F32,
                .precision = i % 3 ? LB_PRECISION_FAST : LB_PRECISION_FASTEST,
            };
            check_error(cx, &p, bound_of(p.precision), NULL);
            p.precision = LB_PRECISION_HIGHEST;
            check_error(cx, &p, HIGHEST, NULL);
        }
    }
}

/* Every number of rows of a tile, and a block of them; full and partial strips
 * of weights. */
static void check_rows(lb_ctx *cx, const struct config *config)
{
    static const int64_t m[] = {2,  3,  4,  5,  6,  7,   8,   9,
                                11, 12, 13, 25, 33, 141, 256, 257};
    static const int64_t n[] = {1, 2, 15, 16, 17, 33, 255, 257};
    for (size_t i = 0; i < sizeof m / sizeof *m; i++)
        for (int along = 0; along < 2; along++) {
            product p = {
                .config = config,
                .m = m[i],
                .n = n[i % (sizeof n / sizeof *n)],
                .k = 130,
                .along = along,
                .swapped = i % 2,
                .dtype = LB_F32,
                .precision = LB_PRECISION_FAST,
            };
            check_error(cx, &p, FAST, NULL);
            p.precision = LB_PRECISION_HIGHEST;
            check_error(cx, &p, HIGHEST, NULL);
            p.precision = LB_PRECISION_FASTEST;
            p.k = 135;
            /* With few elements, one may have a larger error than most do. */
            check_error(cx, &p, p.m * p.n < 16 ? 2 * FASTEST : FASTEST, NULL);
        }
}

static void check_long(lb_ctx *cx, const struct config *config)
{
    static const int64_t depths[] = {4097, 16384};
    for (int i = 0; i < 2; i++)
        for (int along = 0; along < 2; along++) {
            product p = {.config = config,
                         .m = 7,
                         .n = 9,
                         .k = depths[i],
                         .along = along,
                         .dtype = LB_F32,
                         .precision = LB_PRECISION_FAST};
            check_error(cx, &p, FAST, NULL);
            p.precision = LB_PRECISION_FASTEST;
            check_error(cx, &p, FASTEST, NULL);
            p.precision = LB_PRECISION_HIGHEST;
            check_error(cx, &p, HIGHEST, NULL);
        }
}

/* More rows of w than a unit has. */
static void check_wide(lb_ctx *cx, const struct config *config)
{
    for (int along = 0; along < 2; along++) {
        product p = {.config = config,
                     .m = 9,
                     .n = 1111,
                     .k = 140,
                     .along = along,
                     .dtype = LB_F32,
                     .precision = LB_PRECISION_HIGHEST};
        check_error(cx, &p, HIGHEST, NULL);
        p.precision = LB_PRECISION_FAST;
        check_error(cx, &p, FAST, NULL);
        for (p.m = 1; p.m < 4; p.m++) {
            p.n = 561 + 100 * p.m;
            p.k = 1100 + p.m;
            p.swapped = p.m == 3;
            check_error(cx, &p, FAST, NULL);
        }
    }
}

/* Enough rows of w that scales along K are applied to 8-bit x. */
static void check_many(lb_ctx *cx, const struct config *config)
{
    for (int along = 0; along < 2; along++) {
        product p = {.config = config,
                     .m = 5,
                     .n = 65,
                     .k = 1031,
                     .along = along,
                     .dtype = LB_F32,
                     .precision = LB_PRECISION_FASTEST};
        check_error(cx, &p, FASTEST, NULL);
    }
}

static void check_batches(lb_ctx *cx, const struct config *config)
{
    for (int along = 0; along < 2; along++) {
        product p = {.config = config,
                     .batch = 3,
                     .m = 5,
                     .n = 19,
                     .k = 140,
                     .along = along,
                     .swapped = along,
                     .dtype = LB_F32,
                     .precision = LB_PRECISION_FAST};
        check_error(cx, &p, FAST, NULL);
        p.precision = LB_PRECISION_FASTEST;
        check_error(cx, &p, FASTEST, NULL);
        p.precision = LB_PRECISION_HIGHEST;
        check_error(cx, &p, HIGHEST, NULL);
    }
}

/* ---- other distributions of x -------------------------------------------- */

/* Eight values of each row a hundred times as large. */
static void with_outliers(const product *p, float *x)
{
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t o = 0; o < 8; o++)
            x[i * p->k + (o * 37 + i) % p->k] *= 100;
}

/* Some values subnormal; row 1 is so small that its scale would be. */
static void with_tiny(const product *p, float *x)
{
    for (int64_t e = 0; e < p->m * p->k; e += 3)
        x[e] *= 0x1p-130f;
    for (int64_t k = 0; k < p->k; k++)
        x[p->k + k] *= 0x1p-104f;
}

/* All rows small in one panel, and huge in another. */
static void with_range(const product *p, float *x)
{
    for (int64_t e = 0; e < p->m * p->k; e++)
        x[e] *= e % p->k < 512 ? 0x1p-120f : 0x1p100f;
}

static void check_numbers(lb_ctx *cx, const struct config *config)
{
    for (int along = 0; along < 2; along++) {
        product p = {.config = config,
                     .m = 6,
                     .n = 130,
                     .k = 1100,
                     .along = along,
                     .dtype = LB_F32,
                     .precision = LB_PRECISION_FAST};
        check_error(cx, &p, OUTLIERS, with_outliers);
        check_error(cx, &p, FAST, with_tiny);
        check_error(cx, &p, FAST, with_range);
        p.k = 300;
        check_error(cx, &p, OUTLIERS, with_outliers);
        p.precision = LB_PRECISION_FASTEST;
        p.k = 1100;
        check_error(cx, &p, FASTEST, with_tiny);
        check_error(cx, &p, FASTEST, with_range);
        p.precision = LB_PRECISION_HIGHEST;
        for (p.m = 2; p.m < 8; p.m++) {
            check_error(cx, &p, HIGHEST, with_outliers);
            check_error(cx, &p, HIGHEST, with_range);
        }
    }
}

/* Row 0 is zero, 1 has an infinity, 2 a NaN, 3 almost the largest value. */
static void with_specials(const product *p, float *x)
{
    memset(x, 0, (size_t)p->k * sizeof *x);
    x[p->k + p->k - 1] = -INFINITY;
    x[2 * p->k] = NAN;
    for (int64_t k = 0; k < p->k; k++)
        x[3 * p->k + k] = k == 5 ? 0.9f * FLT_MAX : 0;
}

static void check_specials(lb_ctx *cx, const struct config *config)
{
    product p = {.config = config, .m = 8, .n = 130, .k = 600, .dtype = LB_F32};
    for (int i = 0; i < 6; i++) {
        p.along = i & 1;
        p.precision = (lb_precision)(LB_PRECISION_HIGHEST + i / 2);
        if (check_thins()) continue;
        lb_enter(cx);
        operands o = make_operands(cx, &p, with_specials);
        double *sum = malloc((size_t)(p.m * p.n) * 2 * sizeof *sum);
        double *square = sum + p.m * p.n;
        float *y = run(cx, &p, &o);
        exact(&p, &o, sum, square);
        for (int64_t j = 0; y && j < p.n; j++) {
            CHECK(y[j] == 0);
            CHECK(!isfinite(y[p.n + j]));
            CHECK(!isfinite(y[2 * p.n + j]));
            const double one = sum[3 * p.n + j];
            const double off = fabs((double)y[3 * p.n + j] - one);
            if (check_fails(fabs(one) > (double)FLT_MAX ||
                            off <= 2 * bound_of(p.precision) * (double)FLT_MAX))
                fprintf(stderr, "%s: %g, not %g\n", describe(&p),
                        (double)y[3 * p.n + j], one);
        }
        if (y)
            CHECK(error_of(y + 4 * p.n, sum + 4 * p.n, square + 4 * p.n,
                           4 * p.n) <= bound_of(p.precision));
        free(y);
        free(sum);
        free_operands(&o);
        lb_leave(cx);
        lb_clear(cx);
    }
}

/* ---- threads, explanations ----------------------------------------------- */

/* The same bits for every number of threads. */
static void check_same(const char *isa, const product *p)
{
    static const int threads[] = {1, 2, 7};
    const int64_t size = (p->batch ? p->batch : 1) * p->m * p->n;
    float *y[3] = {0};
    for (int t = 0; t < 3; t++) {
        lb_ctx *cx = lb_open(&(lb_options){
            .threads = threads[t], .isa = isa, .dense = LB_DENSE_DENY});
        operands o = make_operands(cx, p, NULL);
        y[t] = run(cx, p, &o);
        free_operands(&o);
        lb_close(cx);
    }
    for (int t = 1; t < 3; t++)
        if (check_fails(y[0] && y[t] &&
                        !memcmp(y[0], y[t], (size_t)size * sizeof(float))))
            fprintf(stderr, "%s: %d threads differ\n", describe(p), threads[t]);
    for (int t = 0; t < 3; t++)
        free(y[t]);
}

static void check_threads(const char *isa)
{
    for (int i = 0; i < N_CONFIGS; i++) {
        for (int q = 0; q < 8; q++) {
            const product p = {.config = &configs[i],
                               .m = q & 4 ? 13 : 201,
                               .n = 517,
                               .k = 530,
                               .along = q & 1,
                               .dtype = LB_F32,
                               .precision = q & 2 ? LB_PRECISION_FASTEST
                                                  : LB_PRECISION_FAST};
            if (!check_thins()) check_same(isa, &p);
        }
    }
}

/* One or two rows, several blocks of w and several panels; also more panels
 * than a chunk has, a batch, and other layouts of x. */
static void check_few(lb_ctx *cx, const char *isa, const struct config *config)
{
    static const struct {
        int64_t batch, n, k;
        bool swapped, turned;
    } shapes[] = {{0, 700, 2100, false, false}, {0, 2400, 500, true, false},
                  {3, 530, 1030, false, true},  {2, 300, 1100, true, true},
                  {0, 70, 17500, false, false}, {40, 65, 64, false, false}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int q = 0; q < 4; q++) {
            const product p = {.config = config,
                               .batch = shapes[i].batch,
                               .m = q & 2 ? 2 : 1,
                               .n = shapes[i].n,
                               .k = shapes[i].k,
                               .along = q & 1,
                               .swapped = shapes[i].swapped,
                               .turned = shapes[i].turned,
                               .dtype = LB_F32,
                               .precision = LB_PRECISION_FAST};
            if (check_thins_by(3)) continue;
            check_error(cx, &p, FAST, NULL);
            check_same(isa, &p);
        }
}

/* Products of digits have the bits of the reference on every level. */
static void check_bytes(lb_ctx *cx, lb_ctx *ref, const struct config *config)
{
    for (int i = 0; i < 8; i++) {
        const product p = {.config = config,
                           .m = i & 4 ? 13 : 8,
                           .n = 330,
                           .k = 1100,
                           .along = i & 1,
                           .dtype = LB_F32,
                           .precision = i & 2 ? LB_PRECISION_FASTEST
                                              : LB_PRECISION_FAST};
        const lb_dot_dims d = dims_of(&p);
        const size_t size = (size_t)(p.m * p.n) * sizeof(float);
        if (check_thins()) continue;
        lb_enter(cx);
        lb_enter(ref);
        operands o = make_operands(cx, &p, NULL);
        lb_array *in[2] = {o.x, o.w};
        const char *way = lb_explain(cx, "dot_general", in, 2, &d);
        if (way &&
            (strstr(way, "dot i8") || (p.precision == LB_PRECISION_FAST &&
                                       strstr(way, "dot i16 x u8")))) {
            float *a = run(cx, &p, &o), *b = run(ref, &p, &o);
            if (check_fails(a && b && !memcmp(a, b, size)))
                fprintf(stderr, "%s, %s: not the reference's bits\n",
                        lb_isa(cx), describe(&p));
            free(a);
            free(b);
        }
        free_operands(&o);
        lb_leave(ref);
        lb_leave(cx);
    }
}

/* Which products use integers: none at HIGHEST; else all of so many rows,
 * except where f32 is as fast. */
static void check_explained(lb_ctx *cx)
{
    const bool all = strcmp(lb_isa(cx), "avx512") && strcmp(lb_isa(cx), "neon");
    for (int i = 0; i < N_CONFIGS; i++) {
        for (int along = 0; along < 2; along++) {
            product p = {.config = &configs[i],
                         .m = 40,
                         .n = 64,
                         .k = 192,
                         .along = along,
                         .dtype = LB_F32};
            for (int q = LB_PRECISION_DEFAULT; q <= LB_PRECISION_FASTEST; q++) {
                p.precision = (lb_precision)q;
                lb_enter(cx);
                operands o = make_operands(cx, &p, NULL);
                const lb_dot_dims d = dims_of(&p);
                lb_array *in[2] = {o.x, o.w};
                const char *s = lb_explain(cx, "dot_general", in, 2, &d);
                bool is_wanted = q >= LB_PRECISION_FAST;
                const bool is =
                    s && (strstr(s, "dot i") || strstr(s, "dot pairs"));
                if (!all && q >= LB_PRECISION_FAST) is_wanted = is;
                if (check_fails(is == is_wanted))
                    fprintf(stderr, "%s: %s\n", describe(&p), s ? s : "");
                free_operands(&o);
                lb_leave(cx);
            }
        }
    }
}

/* ---- levels -------------------------------------------------------------- */

static void check_level(const char *isa)
{
    lb_ctx *cx = lb_open(
        &(lb_options){.threads = 1, .isa = isa, .dense = LB_DENSE_DENY});
    lb_ctx *ref = lb_open(
        &(lb_options){.threads = 1, .isa = "ref", .dense = LB_DENSE_DENY});
    for (int i = 0; i < N_CONFIGS; i++) {
        check_bytes(cx, ref, &configs[i]);
        check_shapes(cx, &configs[i]);
        check_rows(cx, &configs[i]);
        check_long(cx, &configs[i]);
        check_wide(cx, &configs[i]);
        check_many(cx, &configs[i]);
        check_batches(cx, &configs[i]);
        check_numbers(cx, &configs[i]);
        check_specials(cx, &configs[i]);
        if (!strcmp(configs[i].c.format, "binary"))
            check_few(cx, isa, &configs[i]);
    }
    check_explained(cx);
    lb_close(ref);
    lb_close(cx);
    check_threads(isa);
}

int main(void)
{
    for (int l = LB_LEVEL_REF; l <= LB_LEVEL_AMX; l++)
        if (lb_level_available((lb_level)l))
            check_level(lb_level_name((lb_level)l));
    return check_report("coded_block");
}
