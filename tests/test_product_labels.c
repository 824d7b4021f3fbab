/* test_product_labels.c - products with packed arrays of dtype bf16 or f16.
 *
 * The dtype of a packed array rounds reads, not products: these take codes and
 * scales as stored. Against double precision, for every format with samples,
 * both orientations, each operand, few and many rows, every level:
 *
 *   - errors of each precision are those of the same array with dtype f32
 *   - HIGHEST is no less exact than FAST and FASTEST
 *   - p(q) and p(materialize(q)) differ by the rounding of w to its dtype, at
 *     most 2^-9 (bf16) or 2^-12 (f16) of |x| |w|, and that of sums
 */
/* ctest: simde skip-tsan skip-ref */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "check.h"
#include "lowbit.h"

static const lb_quant_config configs[] = {
    {.format = "int8"},
    {.format = "int8", .block_size = 64},
    {.format = "int8", .axes = {1, {0}}},
    {.format = "int8", .meaning = LB_MEANS_INVERSE},
    {.format = "nf4"},
    {.format = "nf4", .block_size = 48},
    {.format = "nf4", .double_quant = true},
    {.format = "ternary", .scale = LB_SCALE_ROW},
    {.format = "binary", .scale = LB_SCALE_BLOCK, .block_size = 128},
    {.format = "q8_0"},
    {.format = "q4_0"},
    {.format = "int5"},
    {.format = "dynamic8"},
    {.format = "fp8_e4m3"},
};
enum { CONFIGS = sizeof configs / sizeof *configs };

typedef struct {
    const lb_quant_config *config;
    lb_dtype label;
    int64_t m, n, k;
    bool along, left; /* K contiguous; the weights are the left operand */
} product;

static void complain(lb_ctx *cx, const product *p, const char *what, double got,
                     double bound)
{
    fprintf(stderr, "%s %s %s, %lldx%lldx%lld %s%s: %s %.3g, not %.3g\n",
            lb_isa(cx), p->config->format, lb_dtype_name(p->label),
            (long long)p->m, (long long)p->n, (long long)p->k,
            p->along ? "along" : "across", p->left ? ", left" : "", what, got,
            bound);
}

static lb_array *normal(lb_ctx *cx, uint64_t key, int64_t rows, int64_t cols)
{
    return lb_random_normal(cx, (lb_key){key, 5}, LB_F32, LB_SHAPE(rows, cols));
}

/* The result (m,n) in f32. */
static float *multiply(lb_ctx *cx, const product *p, lb_precision precision,
                       lb_array *x, lb_array *w)
{
    const lb_axes last = {1, {1}}, of_w = {1, {p->along ? 1 : 0}};
    const lb_dot_dims d = {.lhs_contract = p->left ? of_w : last,
                           .rhs_contract = p->left ? last : of_w,
                           .precision = precision,
                           .preferred = LB_F32};
    lb_array *y = lb_dot_general(cx, p->left ? w : x, p->left ? x : w, &d);
    if (p->left) y = lb_transpose(cx, y, (int[]){1, 0});
    float *to = malloc((size_t)(p->m * p->n) * sizeof *to);
    if (!to) exit(1);
    CHECK(lb_read(cx, lb_materialize(cx, y), to,
                  (size_t)(p->m * p->n) * sizeof *to));
    return to;
}

/* Sums in double precision, and those of magnitudes. */
static void expect(const product *p, const float *x, const float *w,
                   double *sum, double *size)
{
    const int64_t rs = p->along ? p->k : 1, ks = p->along ? 1 : p->n;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double s = 0, all = 0;
            for (int64_t k = 0; k < p->k; k++) {
                const double v =
                    (double)x[i * p->k + k] * (double)w[j * rs + k * ks];
                s += v;
                all += fabs(v);
            }
            sum[i * p->n + j] = s;
            size[i * p->n + j] = all;
        }
}

static double error_of(const product *p, const float *y, const double *sum)
{
    double e = 0, all = 0;
    for (int64_t i = 0; i < p->m * p->n; i++) {
        const double off = (double)y[i] - sum[i];
        e += off * off;
        all += sum[i] * sum[i];
    }
    return sqrt(e / all);
}

static void check_materialized(lb_ctx *cx, const product *p, const float *y,
                               const float *dense, const double *size)
{
    const double unit = p->label == LB_BF16 ? 0x1p-9 : 0x1p-12;
    for (int64_t i = 0; i < p->m * p->n; i++) {
        const double may = (unit + 0x1p-18) * size[i] + 0x1p-24 * (double)p->k;
        const double off = fabs((double)y[i] - (double)dense[i]);
        if (!check_fails(off <= may)) continue;
        complain(cx, p, "off the product of decoded values by", off, may);
        return;
    }
}

static void check_product(lb_ctx *cx, const product *p)
{
    static const double bounds[] = {0, 1e-6, 3e-4, 1.2e-2};
    if (check_thins_by(3)) return;
    lb_enter(cx);
    lb_quant_config c = *p->config;
    c.struct_size = sizeof c;
    c.dtype = p->label;
    lb_array *w =
        p->along ? normal(cx, 11, p->n, p->k) : normal(cx, 11, p->k, p->n);
    lb_array *x = normal(cx, 3, p->m, p->k), *q = lb_quantize(cx, w, &c);
    lb_array *stored = lb_materialize(cx, lb_convert(cx, q, LB_F32));
    if (check_fails(x && stored)) {
        fprintf(stderr, "%s: %s\n", p->config->format, lb_error(cx));
    } else {
        const size_t n = (size_t)(p->m * p->n);
        double e[4] = {0}, *const sum = calloc(2 * n, sizeof *sum);
        if (!sum) exit(1);
        double *const size = sum + n;
        expect(p, lb_data(x), lb_data(stored), sum, size);
        float *dense =
            multiply(cx, p, LB_PRECISION_HIGHEST, x, lb_materialize(cx, q));
        for (int way = LB_PRECISION_HIGHEST; way <= LB_PRECISION_FASTEST;
             way++) {
            float *y = multiply(cx, p, (lb_precision)way, x, q);
            e[way] = error_of(p, y, sum);
            if (check_fails(e[way] <= bounds[way]))
                complain(cx, p, "error", e[way], bounds[way]);
            /* Where none of them rounds x, all are as exact as f32. */
            if (check_fails(e[way] + 2e-7 >= e[LB_PRECISION_HIGHEST]))
                complain(cx, p, "HIGHEST is less exact",
                         e[LB_PRECISION_HIGHEST], e[way]);
            if (way == LB_PRECISION_HIGHEST)
                check_materialized(cx, p, y, dense, size);
            free(y);
        }
        free(dense);
        free(sum);
    }
    lb_leave(cx);
    lb_clear(cx);
}

static void check_level(const char *level)
{
    static const int64_t rows[] = {1, 2, 3, 8, 13, 33};
    lb_ctx *cx = lb_open(&(lb_options){
        .threads = 2, .isa = level, .struct_size = sizeof(lb_options)});
    if (check_fails(cx != NULL)) return;
    int turn = 0;
    for (int i = 0; i < CONFIGS; i++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (int side = 0; side < 4; side++, turn++) {
                const product p = {
                    .config = &configs[i],
                    .label = turn % 3 ? LB_BF16 : LB_F16,
                    .m = rows[r],
                    .n = 160,
                    .k = turn % 5 ? 352 : 96,
                    .along = side % 2,
                    .left = side / 2,
                };
                check_product(cx, &p);
            }
    lb_close(cx);
}

int main(void)
{
    for (int l = LB_LEVEL_REF; l <= LB_LEVEL_AMX; l++)
        if (lb_level_available((lb_level)l))
            check_level(lb_level_name((lb_level)l));
    return check_report("products and dtypes of packed arrays");
}
