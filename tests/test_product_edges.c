/* test_product_edges.c - products with packed weights at the ends of blocks and
 * of the range of values, against the product with decoded weights. */
/* ctest: simde skip-tsan */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "lowbit.h"

static lb_array *normals(lb_ctx *cx, uint32_t seed, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){seed, 7}, LB_F32, shape);
}

/* The relative error of a product with w as stored. */
static double error_of(lb_ctx *cx, lb_array *x, lb_array *w, lb_dot_dims d)
{
    lb_array *y = lb_dot_general(cx, x, w, &d);
    d.precision = LB_PRECISION_HIGHEST;
    lb_array *z = lb_dot_general(cx, x, lb_materialize(cx, w), &d);
    lb_array *e = lb_sub(cx, y, z);
    const double off = lb_item(cx, lb_sum(cx, lb_mul(cx, e, e), NULL, false));
    const double all = lb_item(cx, lb_sum(cx, lb_mul(cx, z, z), NULL, false));
    CHECK(lb_error_status(cx) == LB_OK);
    return sqrt(off / all);
}

/* A batch whose rows cross an axis with different scales. */
static void check_batches(lb_ctx *cx)
{
    for (int m = 1; m <= 40; m += 13) {
        lb_enter(cx);
        lb_array *big = lb_mul(
            cx, normals(cx, 1, LB_SHAPE(2, 3, 128)),
            lb_reshape(cx, lb_from(cx, LB_F32, LB_SHAPE(2), (float[]){1, 100}),
                       LB_SHAPE(2, 1, 1)));
        lb_array *q = lb_quantize(
            cx, big, &(lb_quant_config){.format = "int8", .axes = {2, {1, 2}}});
        lb_array *w = lb_reshape(cx, q, LB_SHAPE(3, 2, 128));
        lb_array *x = normals(cx, 2, LB_SHAPE(3, m, 128));
        lb_dot_dims d = {.lhs_contract = {1, {2}},
                         .rhs_contract = {1, {2}},
                         .lhs_batch = {1, {0}},
                         .rhs_batch = {1, {0}}};
        for (int p = LB_PRECISION_HIGHEST; p <= LB_PRECISION_FASTEST; p++) {
            d.precision = (lb_precision)p;
            CHECK(error_of(cx, x, w, d) < 2e-2);
        }
        lb_leave(cx);
    }
}

/* Scales that must be read, more of them than are cached, but few in the last
 * block of rows: one thread takes 640 rows, and then 460. */
static void check_many_scales(void)
{
    enum { N = 1100, K = 26180 };
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_array *w =
        lb_quantize(cx, normals(cx, 3, LB_SHAPE(N, K)),
                    &(lb_quant_config){.format = "nf4", .double_quant = true});
    lb_array *x = normals(cx, 4, LB_SHAPE(8, K));
    const lb_dot_dims d = {.lhs_contract = {1, {1}},
                           .rhs_contract = {1, {1}},
                           .precision = LB_PRECISION_FAST};
    CHECK(error_of(cx, x, w, d) < 3e-4);
    lb_close(cx);
}

/* K = 0. Each in its own context, whose scratch no earlier product has made
 * larger than this one needs. */
static void check_nothing(const lb_quant_config *config)
{
    enum { N = 64, K = 128 };
    const int64_t from[] = {0, 0}, rows[] = {N, 0}, cols[] = {0, K};
    for (int m = 1; m <= 64; m *= 4)
        for (int i = 0; i < 6; i++) {
            const bool along = i % 2;
            const lb_dot_dims d = {.lhs_contract = {1, {1}},
                                   .rhs_contract = {1, {along}},
                                   .precision = (lb_precision)(1 + i / 2)};
            lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
            lb_array *w = normals(cx, 5, LB_SHAPE(N, K));
            w = lb_slice(cx, lb_quantize(cx, w, config), from,
                         along ? rows : cols, NULL);
            lb_array *x = lb_zeros(cx, LB_F32, LB_SHAPE(m, 0));
            lb_array *y = lb_dot_general(cx, x, w, &d);
            y = lb_reduce_max(cx, lb_abs(cx, y), NULL);
            CHECK(lb_item(cx, y) == 0 && lb_error_status(cx) == LB_OK);
            lb_close(cx);
        }
}

/* Columns that end inside a group of columns, with scales per column and along
 * K: one block, or a part of one, of four. Contexts as above. */
static void check_narrow(void)
{
    enum { K = 70 };
    for (int n = 8; n <= 168; n += 32) {
        lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
        lb_array *w =
            lb_quantize(cx, normals(cx, 6, LB_SHAPE(K, n)),
                        &(lb_quant_config){.format = "nf4", .block_size = 32});
        lb_array *x = normals(cx, 7, LB_SHAPE(3, K));
        const lb_dot_dims d = {.lhs_contract = {1, {1}},
                               .rhs_contract = {1, {0}},
                               .precision = LB_PRECISION_FAST};
        CHECK(error_of(cx, x, w, d) < 3e-4);
        lb_close(cx);
    }
}

/* Rows that are all the same one (stride 0). */
static void check_same_lines(lb_ctx *cx, const lb_quant_config *config)
{
    enum { N = 6, K = 256 };
    for (int i = 0; i < 6; i++) {
        lb_enter(cx);
        const bool along = i % 2;
        const lb_dot_dims d = {.lhs_contract = {1, {1}},
                               .rhs_contract = {1, {along}},
                               .precision = (lb_precision)(1 + i / 2)};
        lb_array *w = normals(cx, 8, LB_SHAPE(1, K));
        w = lb_broadcast_to(cx, lb_quantize(cx, w, config), LB_SHAPE(N, K));
        for (int m = 1; m <= 16; m *= 4) {
            lb_array *x = normals(cx, 9, LB_SHAPE(m, along ? K : N));
            CHECK(error_of(cx, x, w, d) < 2e-2);
        }
        lb_leave(cx);
    }
}

/* Rows of x, small or large: scales of their integers are finite as long as all
 * of a row is below 2^125, so a power of 2 goes through to the result. */
static void check_rows_of_x(lb_ctx *cx)
{
    enum { K = 600, N = 40, M = 33 };
    static const char *const formats[] = {"int8", "nf4", "binary"};
    for (int f = 0; f < 3; f++)
        for (int e = -126; e < 125; e += 5) {
            const lb_quant_config config = {.format = formats[f]};
            lb_dot_dims d = {.lhs_contract = {1, {1}},
                             .rhs_contract = {1, {1}},
                             .precision = e & 1 ? LB_PRECISION_FAST
                                                : LB_PRECISION_FASTEST};
            if (check_thins_by(3)) continue;
            lb_enter(cx);
            lb_array *x = normals(cx, 10, LB_SHAPE(M, K));
            x = lb_clamp(cx, lb_scalar(cx, -1), x, lb_scalar(cx, 1));
            /* Results stay normal numbers. */
            lb_array *w = lb_mul(cx, normals(cx, 11, LB_SHAPE(N, K)),
                                 lb_scalar(cx, e > 0 ? 0x1p-12 : 0x1p12));
            w = lb_quantize(cx, w, &config);
            lb_array *y = lb_dot_general(cx, x, w, &d);
            lb_array *z = lb_dot_general(
                cx, lb_mul(cx, x, lb_scalar(cx, ldexp(1, e))), w, &d);
            const int half = e / 2; /* 2^-e may not be a normal number */
            z = lb_mul(cx, z, lb_scalar(cx, ldexp(1, -half)));
            z = lb_mul(cx, z, lb_scalar(cx, ldexp(1, half - e)));
            const double most =
                lb_item(cx, lb_reduce_max(cx, lb_abs(cx, y), NULL));
            CHECK(lb_item(cx, lb_reduce_max(cx, lb_abs(cx, lb_sub(cx, y, z)),
                                            NULL)) <= 1e-4 * most);
            CHECK(lb_error_status(cx) == LB_OK);
            lb_leave(cx);
        }
}

/* The largest |a - b|. */
static double apart(lb_ctx *cx, lb_array *a, lb_array *b)
{
    return lb_item(cx, lb_reduce_max(cx, lb_abs(cx, lb_sub(cx, a, b)), NULL));
}

/* K slightly larger than a panel, with the remainder packed into the same
 * panel: the same bits as with decoded weights, on any thread, and as accurate
 * as sums of 256, against double precision. */
static void check_rests(lb_ctx *cx, const lb_quant_config *config)
{
    enum { N = 300 };
    static const int64_t depths[] = {256, 257, 320, 321, 519, 576, 577, 832};
    lb_ctx *one = lb_open(&(lb_options){.threads = 1});
    for (size_t i = 0; i < 2 * sizeof depths / sizeof *depths; i++) {
        const int64_t k = depths[i / 2], m = i % 2 ? 300 : 40;
        const lb_dot_dims d = {.lhs_contract = {1, {1}},
                               .rhs_contract = {1, {1}},
                               .precision = LB_PRECISION_HIGHEST};
        lb_ctx *const by[] = {one, cx};
        lb_array *y[2];
        if (check_thins_by(3)) continue;
        lb_enter(one);
        lb_enter(cx);
        for (int t = 0; t < 2; t++) {
            lb_ctx *c = by[t];
            lb_array *x = normals(c, 8, LB_SHAPE(m, k));
            lb_array *w = lb_quantize(c, normals(c, 9, LB_SHAPE(N, k)), config);
            lb_array *plain = lb_materialize(c, w);
            y[t] = lb_dot_general(c, x, w, &d);
            CHECK(apart(c, y[t], lb_dot_general(c, x, plain, &d)) == 0);
            if (t > 0) continue;
            lb_array *z = lb_dot_general(c, lb_convert(c, x, LB_F64),
                                         lb_convert(c, plain, LB_F64), &d);
            CHECK(apart(c, y[t], z) < 1e-6 * (double)k);
        }
        CHECK(memcmp(lb_data(y[0]), lb_data(y[1]),
                     (size_t)(m * N) * sizeof(float)) == 0);
        CHECK(lb_error_status(cx) == LB_OK && lb_error_status(one) == LB_OK);
        lb_leave(cx);
        lb_leave(one);
    }
    lb_close(one);
}

int main(void)
{
    static const lb_quant_config coarse = {.format = "nf4", .block_size = 512};
    static const lb_quant_config configs[] = {
        {.format = "int8"},
        {.format = "nf4"},
        {.format = "nf4", .double_quant = true},
        {.format = "ternary"},
        {.format = "ternary", .scale = LB_SCALE_NONE},
        {.format = "binary"},
        {.format = "q8_0"},
    };
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    check_batches(cx);
    check_many_scales();
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        check_nothing(&configs[i]);
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        check_same_lines(cx, &configs[i]);
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        check_rests(cx, &configs[i]);
    check_rests(cx, &coarse);
    check_narrow();
    check_rows_of_x(cx);
    lb_close(cx);
    return check_report("product edges");
}
