/* golden_functions.c - see golden_functions.h. */
#include "golden_functions.h"

#include <math.h>

typedef const lb_quant_config *how;

static lb_array *sum(lb_ctx *cx, lb_array *x)
{
    return lb_sum(cx, x, NULL, false);
}

static lb_array *mean(lb_ctx *cx, lb_array *x)
{
    return lb_mean(cx, x, NULL, false);
}

static lb_array *sum_of(lb_ctx *cx, lb_array *c, lb_array *x)
{
    return sum(cx, lb_mul(cx, c, x));
}

static lb_array *square(lb_ctx *cx, lb_array *x)
{
    return lb_mul(cx, x, x);
}

static lb_array *times(lb_ctx *cx, lb_array *x, double by)
{
    return lb_mul(cx, x, lb_scalar(cx, by));
}

static lb_array *entropy(lb_ctx *cx, lb_array *z, lb_array *labels)
{
    return mean(cx, lb_cross_entropy(cx, z, labels));
}

static lb_array *turned(lb_ctx *cx, lb_array *x)
{
    return lb_transpose(cx, x, NULL);
}

/* ---- networks ------------------------------------------------------------ */

static lb_array *mlp(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    lb_array *h = lb_gelu(cx, lb_add(cx, lb_matmul(cx, a[0], a[1]), a[2]));
    return entropy(cx, lb_add(cx, lb_matmul(cx, h, a[3]), a[4]), a[5]);
}

static lb_array *conv_net(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    lb_conv_dims d = {.lhs = "b01f",
                      .rhs = "01io",
                      .out = "b01f",
                      .stride = {2, 1},
                      .pad_lo = {1, 1},
                      .pad_hi = {1, 0}};
    lb_array *y = lb_conv_general_dilated(cx, a[0], a[1], &d);
    y = lb_silu(cx, lb_add(cx, y, a[2]));
    d.stride[1] = 2;
    d.pad_lo[0] = 0;
    d.pad_hi[1] = 1;
    y = lb_tanh(cx, lb_conv_general_dilated(cx, y, a[3], &d));
    y = lb_mean(cx, y, LB_AXES(1, 2), false);
    return entropy(cx, lb_matmul(cx, y, a[4]), a[5]);
}

static lb_array *conv_strides(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    const lb_conv_dims d = {
        .stride = {3, 2}, .pad_lo = {2, 0}, .pad_hi = {1, 2}};
    lb_array *y = lb_conv_general_dilated(cx, a[0], a[1], &d);
    return sum_of(cx, a[2], square(cx, y));
}

static lb_array *conv_groups(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    const lb_conv_dims d = {.stride = {1, 2},
                            .pad_lo = {1, 0},
                            .pad_hi = {1, 0},
                            .rhs_dilation = {2, 1},
                            .feature_groups = 2};
    lb_array *y = lb_conv_general_dilated(cx, a[0], a[1], &d);
    return sum(cx, square(cx, lb_mul(cx, a[2], y)));
}

enum { HEADS = 2 };

/* (batch, time, wide) -> (batch, heads, time, wide / heads) */
static lb_array *split_heads(lb_ctx *cx, lb_array *x)
{
    const int perm[] = {0, 2, 1, 3};
    const lb_shape s = {4, {lb_dim(x, 0), lb_dim(x, 1), HEADS, -1}};
    return lb_transpose(cx, lb_reshape(cx, x, s), perm);
}

static lb_array *attend(lb_ctx *cx, lb_array *const *qkv)
{
    const int turn[] = {0, 1, 3, 2};
    const int64_t time = lb_dim(qkv[0], 2), head = lb_dim(qkv[0], 3);
    lb_array *s = lb_matmul(cx, qkv[0], lb_transpose(cx, qkv[1], turn));
    s = times(cx, s, 1 / sqrt((double)head));
    lb_array *i = lb_iota(cx, LB_I32, LB_SHAPE(time, time), 0);
    lb_array *j = lb_iota(cx, LB_I32, LB_SHAPE(time, time), 1);
    s = lb_select(cx, lb_ge(cx, i, j), s, lb_scalar(cx, -1e9));
    return lb_matmul(cx, lb_softmax(cx, s, -1), qkv[2]);
}

static lb_array *attention(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    return sum_of(cx, a[3], attend(cx, a));
}

/* a: x, weights of query, key, value, output, up, down, then norms */
static lb_array *block(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    const int perm[] = {0, 2, 1, 3};
    lb_array *x = a[0], *h = lb_rms_norm(cx, x, a[7], 1e-6), *qkv[3];
    for (int k = 0; k < 3; k++)
        qkv[k] = split_heads(cx, lb_matmul(cx, h, a[1 + k]));
    h = lb_reshape_permuted(cx, attend(cx, qkv), perm, lb_shape_of(x));
    x = lb_add(cx, x, lb_matmul(cx, h, a[4]));
    h = lb_layer_norm(cx, x, a[8], a[9], 1e-5);
    h = lb_gelu_tanh(cx, lb_matmul(cx, h, a[5]));
    return mean(cx, square(cx, lb_add(cx, x, lb_matmul(cx, h, a[6]))));
}

static lb_array *layer_norm(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    return sum_of(cx, a[3], lb_layer_norm(cx, a[0], a[1], a[2], 1e-5));
}

static lb_array *cross_entropy(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    return entropy(cx, a[0], a[1]);
}

static lb_array *language(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    lb_array *x = lb_tanh(cx, lb_add(cx, lb_embedding(cx, a[0], a[2]), a[1]));
    return entropy(cx, lb_matmul(cx, x, turned(cx, a[0])), a[3]);
}

/* ---- structure ----------------------------------------------------------- */

static lb_array *joined(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    lb_array *t = turned(cx, a[0]);
    lb_array *y =
        lb_concatenate(cx, (lb_array *[]){t, a[1], lb_mul(cx, t, a[1])}, 3, 1);
    y = lb_reshape(cx, y, LB_SHAPE(2, -1));
    return sum_of(cx, a[2], lb_mul(cx, y, lb_reverse(cx, y, LB_AXES(0))));
}

static lb_array *views(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    const int perm[] = {2, 0, 1}, dims[] = {0, 2};
    lb_array *t = lb_reshape(cx, a[0], LB_SHAPE(2, 3, 4));
    lb_array *y = lb_broadcast_in_dim(cx, a[1], LB_SHAPE(4, 2, 3), dims);
    t = lb_mul(cx, lb_transpose(cx, t, perm), y);
    t = lb_slice(cx, lb_reverse(cx, t, LB_AXES(0)), (int64_t[]){0, 0, 0},
                 (int64_t[]){4, 2, 3}, (int64_t[]){1, 1, 2});
    t = lb_pad(cx, t, lb_scalar(cx, 0), (int64_t[]){1, 0, -1},
               (int64_t[]){0, 1, 1}, (int64_t[]){1, 0, 1});
    return sum_of(cx, a[2], lb_exp(cx, lb_reshape(cx, t, LB_SHAPE(8, -1))));
}

static lb_array *dynamic(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    lb_array *at[] = {lb_scalar_int(cx, 1), lb_scalar_int(cx, 2)};
    lb_array *from[] = {lb_scalar_int(cx, 0), lb_scalar_int(cx, 1)};
    lb_array *y = lb_dynamic_update_slice(cx, a[0], square(cx, a[1]), at);
    lb_array *z = lb_dynamic_slice(cx, y, from, (int64_t[]){3, 3});
    return sum_of(cx, a[2], square(cx, z));
}

static lb_array *scattered(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    const lb_gather_dims d = {.offset_dims = {1, {1}},
                              .collapsed_slice_dims = {1, {0}},
                              .start_index_map = {1, {0}},
                              .index_vector_dim = 1,
                              .slice_sizes = {1, lb_dim(a[0], 1)}};
    lb_array *y =
        lb_scatter_add(cx, a[0], lb_expand(cx, a[2], 1), square(cx, a[1]), &d);
    return sum(cx, lb_integer_pow(cx, y, 3));
}

/* ---- elementwise and reductions ------------------------------------------ */

static lb_array *smooth(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    lb_array *x = a[0], *p = a[1];
    lb_array *y = lb_exp(cx, lb_neg(cx, square(cx, x)));
    y = lb_add(cx, y, lb_mul(cx, lb_log(cx, p), lb_logistic(cx, x)));
    y = lb_add(cx, y, lb_rsqrt(cx, p));
    y = lb_add(cx, y, lb_mul(cx, lb_erf(cx, x), lb_sin(cx, p)));
    y = lb_sub(cx, y, lb_div(cx, lb_cos(cx, x), p));
    y = lb_add(cx, y, lb_mul(cx, lb_sqrt(cx, p), lb_integer_pow(cx, x, 3)));
    y = lb_mul(cx, y, lb_pow(cx, p, x));
    return sum(cx, lb_add(cx, y, lb_mul(cx, lb_log1p(cx, p), lb_expm1(cx, x))));
}

static lb_array *corners(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    lb_array *x = a[0], *y = a[1];
    lb_array *u = lb_mul(cx, lb_max(cx, x, y), lb_abs(cx, x));
    u = lb_add(cx, u, lb_min(cx, x, times(cx, y, 0.5)));
    lb_array *v = lb_clamp(cx, lb_scalar(cx, -0.5), x, lb_scalar(cx, 0.7));
    u = lb_select(cx, lb_lt(cx, x, y), u, lb_mul(cx, v, y));
    return sum_of(cx, u, lb_floor(cx, times(cx, x, 3)));
}

static lb_array *reductions(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    const lb_axes *one = LB_AXES(1);
    lb_array *x = a[0];
    lb_array *y =
        lb_mul(cx, lb_reduce_max(cx, x, one), lb_reduce_min(cx, x, one));
    y = lb_add(cx, y, lb_reduce_prod(cx, x, one));
    y = sum_of(cx, a[1], lb_add(cx, y, lb_var(cx, x, one, false)));
    lb_array *s = lb_sum(cx, x, LB_AXES(0), false);
    return lb_add(cx, y, mean(cx, square(cx, s)));
}

static lb_array *batched(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    return sum(cx, lb_tanh(cx, lb_matmul(cx, lb_matmul(cx, a[0], a[1]), a[2])));
}

static lb_array *stopped(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    lb_array *x = a[0], *y = a[1], *s = lb_stop_gradient(cx, x);
    lb_array *r = lb_mul(cx, lb_mul(cx, x, s), y);
    r = lb_add(cx, r, square(cx, s));
    return sum(cx, lb_add(cx, r, lb_stop_gradient(cx, lb_mul(cx, x, y))));
}

static lb_array *steps(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)n, (void)user;
    return times(cx, lb_round(cx, times(cx, x[0], 4)), 0.25);
}

static lb_array *own_steps(lb_ctx *cx, lb_array *const *a, how q)
{
    (void)q;
    lb_array *s = lb_ste(cx, steps, lb_mul(cx, a[0], a[1]), NULL);
    return sum_of(cx, a[1], square(cx, s));
}

/* ---- through quantizers -------------------------------------------------- */

static lb_array *straight_rows(lb_ctx *cx, lb_array *const *a, how q)
{
    lb_array *w = lb_straight_through(cx, a[0], q);
    return lb_squared_error(cx, lb_matmul(cx, a[1], turned(cx, w)), a[2]);
}

static lb_array *straight_two(lb_ctx *cx, lb_array *const *a, how q)
{
    lb_array *w = lb_straight_through(cx, a[0], q);
    lb_array *h = lb_tanh(cx, lb_matmul(cx, a[2], turned(cx, w)));
    w = lb_straight_through(cx, a[1], q);
    return entropy(cx, lb_matmul(cx, h, w), a[3]);
}

static lb_array *straight_conv(lb_ctx *cx, lb_array *const *a, how q)
{
    const lb_conv_dims d = {
        .lhs = "b01f", .rhs = "o01i", .out = "b01f", .stride = {2, 2}};
    lb_array *w = lb_straight_through(cx, a[0], q);
    w = lb_reshape(cx, w, LB_SHAPE(4, 2, 2, 4));
    lb_array *y = lb_conv_general_dilated(cx, a[1], w, &d);
    return mean(cx, lb_mul(cx, a[2], square(cx, y)));
}

static lb_array *straight_mixed(lb_ctx *cx, lb_array *const *a, how q)
{
    lb_array *w = lb_straight_through(cx, a[0], q);
    lb_array *some =
        lb_slice(cx, w, (int64_t[]){1, 0}, (int64_t[]){3, lb_dim(w, 1)}, NULL);
    lb_array *most = lb_reduce_max(cx, w, LB_AXES(1));
    return lb_add(cx, sum(cx, lb_exp(cx, times(cx, some, 0.1))),
                  sum_of(cx, a[1], most));
}

static lb_array *adapter(lb_ctx *cx, lb_array *const *a, how q)
{
    lb_array *w = lb_straight_through(cx, lb_stop_gradient(cx, a[0]), q);
    lb_array *y = lb_matmul(cx, a[3], turned(cx, w));
    y = lb_add(cx, y, lb_matmul(cx, lb_matmul(cx, a[3], a[1]), a[2]));
    return lb_squared_error(cx, y, a[4]);
}

const golden_function golden_functions[] = {
    {"mlp", 6, mlp},
    {"conv_net", 6, conv_net},
    {"conv_strides", 3, conv_strides},
    {"conv_groups", 3, conv_groups},
    {"attention", 4, attention},
    {"block", 10, block},
    {"layer_norm", 4, layer_norm},
    {"cross_entropy", 2, cross_entropy},
    {"language", 4, language},
    {"joined", 3, joined},
    {"views", 3, views},
    {"dynamic", 3, dynamic},
    {"scattered", 3, scattered},
    {"smooth", 2, smooth},
    {"corners", 2, corners},
    {"reductions", 2, reductions},
    {"batched", 3, batched},
    {"stopped", 2, stopped},
    {"own_steps", 2, own_steps},
    {"straight_rows", 3, straight_rows},
    {"straight_two", 4, straight_two},
    {"straight_conv", 3, straight_conv},
    {"straight_mixed", 2, straight_mixed},
    {"adapter", 5, adapter},
};
const int golden_functions_n =
    (int)(sizeof golden_functions / sizeof *golden_functions);
