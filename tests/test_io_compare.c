/* test_io_compare.c - lb_compare against sequential sums in f64.
 *
 * Views, formats and dtypes, sizes around a block and a chunk, values whose
 * squares overflow or underflow f32, and values that are not finite.
 */
#include <math.h>
#include <string.h>

#include "check.h"
#include "lowbit_io.h"
#include "lowbit_mesh.h"

static void near(double got, double want)
{
    CHECK_NEAR(got, want, 2e-6 * fabs(want) + 1e-300);
}

static void read_f64(lb_ctx *cx, lb_array *a, double *to)
{
    CHECK(lb_read(cx, lb_convert(cx, lb_materialize(cx, a), LB_F64), to,
                  (size_t)lb_size(a) * sizeof *to));
}

static void check_pair(lb_ctx *cx, lb_array *a, lb_array *b)
{
    static double x[600000], y[600000];
    lb_difference d = {0}, want = {0};
    CHECK(lb_compare(cx, a, b, &d));
    read_f64(cx, a, x);
    read_f64(cx, b, y);
    for (int64_t i = 0; i < lb_size(a); i++) {
        const double e = fabs(x[i] - y[i]);
        want.aa += x[i] * x[i];
        want.bb += y[i] * y[i];
        want.ab += x[i] * y[i];
        want.dd += e * e;
        want.apart += x[i] != y[i];
        want.max = e > want.max ? e : want.max;
    }
    CHECK(d.n == lb_size(a) && d.apart == want.apart && !d.nonfinite);
    near(d.aa, want.aa);
    near(d.bb, want.bb);
    near(d.dd, want.dd);
    near(d.max, want.max);
    CHECK(fabs(d.ab - want.ab) <= 2e-6 * sqrt(want.aa * want.bb));
    near(lb_difference_nrmse(&d), sqrt(want.dd / want.aa));
}

static void test_formats(lb_ctx *cx)
{
    static const char *const format[] = {"nf4", "int8", "ternary", "binary"};
    static const lb_dtype dtype[] = {LB_F32, LB_F16, LB_BF16, LB_F64};
    static const int64_t rows[] = {1, 3, 2300};
    for (int f = 0; f < 4; f++)
        for (int t = 0; t < 4; t++)
            for (int r = 0; r < 3; r++) {
                lb_enter(cx);
                const lb_key key = {7, (uint64_t)(f * 16 + t)};
                lb_array *a =
                    lb_random_normal(cx, key, dtype[t], LB_SHAPE(rows[r], 250));
                check_pair(cx, a,
                           lb_quantize(
                               cx, a, &(lb_quant_config){.format = format[f]}));
                check_pair(cx, lb_transpose(cx, a, NULL),
                           lb_transpose(cx, lb_neg(cx, a), NULL));
                lb_leave(cx);
            }
}

/* Squares of these overflow or underflow f32. */
static void test_range(lb_ctx *cx)
{
    static const double scale[] = {1e-30, 1e-12, 1e12, 1e25};
    for (int i = 0; i < 4; i++) {
        lb_array *a =
            lb_random_normal(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(1000));
        lb_array *b =
            lb_random_normal(cx, (lb_key){1, 3}, LB_F32, LB_SHAPE(1000));
        check_pair(cx, lb_mul(cx, a, lb_scalar(cx, scale[i])),
                   lb_mul(cx, b, lb_scalar(cx, scale[i])));
    }
}

static void test_special(lb_ctx *cx)
{
    float x[300], y[300];
    lb_difference d = {0};
    for (int i = 0; i < 300; i++)
        x[i] = y[i] = (float)i;
    lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(300), x);
    CHECK(lb_compare(cx, a, a, &d) && d.apart == 0 && d.dd == 0);
    CHECK(lb_difference_nrmse(&d) == 0 && lb_difference_cosine(&d) == 1);
    x[5] = y[5] = INFINITY; /* the same */
    x[6] = y[6] = NAN;
    x[200] = NAN;
    y[201] = -INFINITY;
    d = (lb_difference){0};
    CHECK(lb_compare(cx, lb_from(cx, LB_F32, LB_SHAPE(300), x),
                     lb_from(cx, LB_F32, LB_SHAPE(300), y), &d));
    CHECK(d.apart == 2 && d.nonfinite == 2 && d.n == 300);
    /* Such pairs are counted and excluded from the errors. */
    CHECK(lb_difference_nrmse(&d) == 0 && lb_difference_cosine(&d) == 1);
    y[7] = 14;
    d = (lb_difference){0};
    CHECK(lb_compare(cx, lb_from(cx, LB_F32, LB_SHAPE(300), x),
                     lb_from(cx, LB_F32, LB_SHAPE(300), y), &d));
    CHECK(d.apart == 3 && d.nonfinite == 2 && d.dd == 49 && d.max == 7);
    CHECK_NEAR(lb_difference_nrmse(&d), 7 / sqrt(d.aa), 1e-12);
    d = (lb_difference){0};
    CHECK(lb_compare(cx, lb_full(cx, LB_F32, LB_SHAPE(3), (double)NAN),
                     lb_zeros(cx, LB_F32, LB_SHAPE(3)), &d));
    CHECK(isnan(lb_difference_nrmse(&d)) && isnan(lb_difference_cosine(&d)));
    d = (lb_difference){0};
    CHECK(lb_compare(cx, lb_zeros(cx, LB_F32, LB_SHAPE(9)),
                     lb_full(cx, LB_F32, LB_SHAPE(9), 2), &d));
    CHECK(isinf(lb_difference_nrmse(&d)) && lb_difference_cosine(&d) == 0);
    CHECK(d.max == 2);
    /* Integers that f32 cannot represent. */
    const int64_t big[] = {(int64_t)1 << 40, 5};
    const int64_t next[] = {((int64_t)1 << 40) + 1, 5};
    d = (lb_difference){0};
    CHECK(lb_compare(cx, lb_from(cx, LB_I64, LB_SHAPE(2), big),
                     lb_from(cx, LB_I64, LB_SHAPE(2), next), &d));
    CHECK(d.apart == 1 && d.max == 1);
    d = (lb_difference){0};
    CHECK(!lb_compare(cx, a, lb_zeros(cx, LB_F32, LB_SHAPE(3, 100)), &d));
    CHECK(strstr(lb_error(cx), "300 and 300 elements have different shapes"));
    CHECK(lb_error_status(cx) == LB_E_SHAPE && d.n == 0);
    lb_clear(cx);
    CHECK(!lb_compare(cx, NULL, a, &d));
}

/* The same bits for every number of threads and every level. */
static void test_threads(void)
{
    static const char *const isa[] = {"ref", "avx2", NULL};
    static const char *const format[] = {"nf4", "int8", "binary"};
    for (int f = 0; f < 3; f++) {
        lb_difference want = {0};
        for (int t = 0; t < 9; t++) {
            lb_difference d = {0};
            lb_ctx *cx =
                lb_open(&(lb_options){.threads = 1 + t % 3, .isa = isa[t / 3]});
            if (!cx) continue; /* a level that this machine lacks */
            lb_array *a = lb_random_normal(cx, (lb_key){4, 4}, LB_BF16,
                                           LB_SHAPE(2300, 2111));
            CHECK(lb_compare(
                cx, a,
                lb_quantize(cx, a, &(lb_quant_config){.format = format[f]}),
                &d));
            lb_close(cx);
            if (!want.n) want = d;
            CHECK(memcmp(&d, &want, sizeof d) == 0);
        }
    }
}

/* Two ranks with half of each array, against both halves in one process. */
static int rank_of_two(lb_comm *comm, void *user)
{
    lb_difference whole = {0}, *d = user;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_mesh *mesh = lb_mesh_open(cx, comm, "x=2", NULL);
    lb_array *a =
        lb_random_normal(cx, (lb_key){5, 5}, LB_F32, LB_SHAPE(64, 128));
    lb_array *b = lb_quantize(cx, a, NULL);
    lb_array *c = lb_shard(cx, mesh, a, "P(x)");
    d += lb_mesh_rank(mesh);
    const bool ok = lb_compare(cx, a, b, &whole) && whole.dd > 0 &&
                    lb_compare(cx, c, lb_shard(cx, mesh, b, "P(None, x)"), d) &&
                    memcmp(d, &whole, sizeof whole) == 0;
    const bool closed = lb_mesh_close(mesh);
    lb_close(cx);
    return ok && closed ? 0 : 1;
}

static void test_ranks(void)
{
    lb_difference d[2] = {{0}, {0}};
    CHECK_EQ_I(lb_mesh_run(2, rank_of_two, d), 0);
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    test_formats(cx);
    test_range(cx);
    test_special(cx);
    CHECK(lb_error_status(cx) == LB_OK);
    lb_close(cx);
    test_threads();
    test_ranks();
    return check_report("differences of arrays");
}
