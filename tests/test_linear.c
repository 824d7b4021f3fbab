/* test_linear.c - lb_linear against dot_general and add: both orders of w, with
 * and without a bias, dtypes, formats, gradients; and integer sums. */
#include "lowbit_ext.h"
#include "refused.h"

static const lb_linear_options in_out = {.in_out = true};

static bool same(lb_ctx *cx, lb_array *x, lb_array *y)
{
    if (!x || !y || x->dtype != y->dtype ||
        !lb_shape_equal(&x->shape, &y->shape))
        return false;
    return lb_item_int(cx, lb_reduce_and(cx, lb_eq(cx, x, y), NULL)) == 1;
}

static lb_array *normal(lb_ctx *cx, uint64_t seed, lb_dtype d, lb_shape s)
{
    return lb_random_normal(cx, (lb_key){seed, 1}, d, s);
}

static void check_values(lb_ctx *cx)
{
    const float x[] = {1, 2, 3, 4}, w[] = {1, 0, 2, 1, 3, 3},
                b[] = {10, 20, 30};
    const float want[] = {11, 24, 39, 13, 30, 51};
    lb_array *ax = lb_from(cx, LB_F32, LB_SHAPE(2, 2), x);
    lb_array *aw = lb_from(cx, LB_F32, LB_SHAPE(3, 2), w);
    lb_array *ab = lb_from(cx, LB_F32, LB_SHAPE(3), b);
    lb_array *y = lb_linear(cx, ax, aw, ab, NULL);
    lb_array *z = lb_from(cx, LB_F32, LB_SHAPE(2, 3), want);
    CHECK(same(cx, y, z));
    lb_array *t = lb_transpose(cx, aw, NULL);
    CHECK(same(cx, lb_linear(cx, ax, t, ab, &in_out), z));
    CHECK(same(cx, lb_linear(cx, ax, t, NULL, &in_out), lb_sub(cx, z, ab)));
}

/* Leading axes, packed weights and every precision: the product's own bits. */
static void check_products(lb_ctx *cx)
{
    const lb_format *f;
    for (int k = 0; (f = lb_format_at(cx, k)); k++) {
        lb_array *w = normal(cx, 3, LB_F32, LB_SHAPE(48, 64));
        lb_array *x = normal(cx, 4, LB_F32, LB_SHAPE(2, 3, 64));
        lb_array *b = normal(cx, 5, LB_F32, LB_SHAPE(48));
        if (lb_is_encodable(f))
            w = lb_quantize(cx, w, &(lb_quant_config){.format = f->name});
        for (int p = 0; p <= LB_PRECISION_FASTEST; p++) {
            const lb_linear_options o = {.precision = (lb_precision)p};
            const lb_dot_dims d = {.lhs_contract = {1, {2}},
                                   .rhs_contract = {1, {1}},
                                   .precision = (lb_precision)p};
            lb_array *y = lb_dot_general(cx, x, w, &d);
            CHECK(same(cx, lb_linear(cx, x, w, NULL, &o), y));
            CHECK(same(cx, lb_linear(cx, x, w, b, &o), lb_add(cx, y, b)));
        }
        lb_array *one =
            lb_linear(cx, normal(cx, 6, LB_F32, LB_SHAPE(64)), w, b, NULL);
        CHECK(lb_rank(one) == 1 && lb_dim(one, 0) == 48);
    }
}

/* The result's dtype, and a single rounding. */
static void check_dtypes(lb_ctx *cx)
{
    lb_array *x = normal(cx, 7, LB_BF16, LB_SHAPE(4, 64));
    lb_array *w = normal(cx, 8, LB_F32, LB_SHAPE(8, 64));
    lb_array *q = lb_quantize(cx, w, &(lb_quant_config){.format = "int8"});
    lb_array *b = normal(cx, 9, LB_F32, LB_SHAPE(8));
    CHECK_EQ_I(lb_dtype_of(lb_linear(cx, x, q, NULL, NULL)), LB_F32);
    CHECK_EQ_I(
        lb_dtype_of(lb_linear(cx, x, lb_convert(cx, w, LB_BF16), b, NULL)),
        LB_BF16);
    const lb_linear_options o = {.dtype = LB_BF16}, f32 = {.dtype = LB_F32};
    lb_array *fine = lb_linear(cx, x, q, b, &f32);
    CHECK(same(cx, lb_linear(cx, x, q, b, &o), lb_convert(cx, fine, LB_BF16)));
    const lb_linear_options f64 = {.dtype = LB_F64};
    CHECK_EQ_I(lb_dtype_of(lb_linear(cx, x, q, b, &f64)), LB_F64);
    lb_array *i = lb_full(cx, LB_I32, LB_SHAPE(4, 64), 2);
    lb_array *v = lb_full(cx, LB_I32, LB_SHAPE(8, 64), 3);
    lb_array *c = lb_full(cx, LB_I8, LB_SHAPE(8), 1);
    CHECK(same(cx, lb_linear(cx, i, v, c, NULL),
               lb_full(cx, LB_I32, LB_SHAPE(4, 8), 385)));
    REFUSED(lb_linear(cx, i, v, b, NULL), LB_E_DTYPE, "bias is f32");
    REFUSED(lb_linear(cx, x, b, NULL, NULL), LB_E_SHAPE, "w (8)");
    REFUSED(lb_linear(cx, lb_scalar(cx, 1), w, NULL, NULL), LB_E_SHAPE, "()");
    REFUSED(lb_linear(cx, x, w, NULL, &in_out), LB_E_SHAPE,
            "64 features, but w (8,64) is (in, out) with 8");
    REFUSED(lb_linear(cx, x, w, x, NULL), LB_E_SHAPE, "bias has shape (4,64)");
    REFUSED(lb_linear(cx, x, NULL, b, NULL), LB_E_NULL, "w is NULL");
    REFUSED(lb_linear(cx, NULL, w, b, NULL), LB_E_NULL, "x is NULL");
    REFUSED(lb_linear(cx, x, w, b, &(lb_linear_options){.struct_size = 3}),
            LB_E_ARG, "struct_size is 3");
    REFUSED(lb_linear(cx, x, w, b, &(lb_linear_options){.precision = 9}),
            LB_E_DTYPE | LB_E_ARG, "9");
}

static lb_array *loss(lb_ctx *cx, lb_array *const *in, int n, void *user)
{
    (void)n;
    lb_array *y = lb_linear(cx, in[0], in[1], in[2], user);
    return lb_reduce_sum(cx, lb_mul(cx, y, y), NULL);
}

/* y = x w^T + b, L = sum y^2: dx = 2 y w, dw = 2 y^T x, db = 2 sum y. */
static void check_gradients(lb_ctx *cx)
{
    lb_array *in[] = {normal(cx, 10, LB_F64, LB_SHAPE(3, 5)),
                      normal(cx, 11, LB_F64, LB_SHAPE(4, 5)),
                      normal(cx, 12, LB_F64, LB_SHAPE(4))};
    lb_array *g[3];
    CHECK(lb_value_and_grad(cx, loss, in, 3, NULL, g, 3) != NULL);
    lb_array *y = lb_linear(cx, in[0], in[1], in[2], NULL);
    y = lb_mul(cx, y, lb_scalar(cx, 2));
    lb_array *want[] = {lb_matmul(cx, y, in[1]),
                        lb_matmul(cx, lb_transpose(cx, y, NULL), in[0]),
                        lb_reduce_sum(cx, y, LB_AXES(0))};
    for (int k = 0; k < 3; k++) {
        lb_array *e = lb_abs(cx, lb_sub(cx, g[k], want[k]));
        CHECK(lb_item(cx, lb_reduce_max(cx, e, NULL)) < 1e-12);
    }
}

/* ---- sums of integers ---------------------------------------------------- */

static void check_sum(lb_ctx *cx, lb_dtype from, lb_dtype to, double value)
{
    lb_array *a =
        lb_convert(cx, lb_full(cx, LB_F64, LB_SHAPE(2, 300), value), from);
    lb_array *s = lb_sum(cx, a, NULL, false);
    const double each = from == LB_BOOL ? 1 : value;
    CHECK_EQ_I(lb_dtype_of(s), to);
    CHECK(lb_item(cx, s) == 600 * each);
    CHECK_EQ_I(lb_dtype_of(lb_mean(cx, a, NULL, false)), LB_F32);
    CHECK(lb_item(cx, lb_mean(cx, a, NULL, false)) == each);
    lb_array *rows = lb_sum(cx, a, LB_AXES(-1), true);
    CHECK(lb_rank(rows) == 2 && lb_dim(rows, 1) == 1);
    CHECK_EQ_I(lb_dtype_of(rows), to);
    if (from == LB_BOOL)
        REFUSED(lb_reduce_sum(cx, a, NULL), LB_E_DTYPE, "bool");
    else
        CHECK_EQ_I(lb_dtype_of(lb_reduce_sum(cx, a, NULL)), from);
}

static void check_sums(lb_ctx *cx)
{
    check_sum(cx, LB_I8, LB_I32, -100);
    check_sum(cx, LB_I16, LB_I32, -30000);
    check_sum(cx, LB_I32, LB_I32, 5);
    check_sum(cx, LB_I64, LB_I64, 5);
    check_sum(cx, LB_U8, LB_U32, 200);
    check_sum(cx, LB_U16, LB_U32, 60000);
    check_sum(cx, LB_U32, LB_U32, 5);
    check_sum(cx, LB_U64, LB_U64, 5);
    check_sum(cx, LB_BOOL, LB_I32, 3);
    lb_array *x = lb_full(cx, LB_F32, LB_SHAPE(40, 64), -2);
    const lb_quant_config c = {.format = "ternary",
                               .scale = LB_SCALE_NONE,
                               .dtype = LB_I8,
                               .threshold = LB_THRESHOLD_ABSMEAN};
    lb_array *s = lb_sum(cx, lb_quantize(cx, x, &c), NULL, false);
    CHECK_EQ_I(lb_dtype_of(s), LB_I32);
    CHECK_EQ_I(lb_item_int(cx, s), -2560);
    CHECK_EQ_I(lb_dtype_of(lb_sum(cx, lb_convert(cx, x, LB_BF16), NULL, false)),
               LB_BF16);
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    check_values(cx);
    check_products(cx);
    check_dtypes(cx);
    check_gradients(cx);
    check_sums(cx);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    return check_report("linear");
}
