/* test_grad_nets.c - gradients of whole networks (a perceptron, a convolutional
 * net and a transformer block): in f64 against central differences, and in f32
 * and bf16 against the f64 gradients. */
#include "check.h"
#include "lowbit.h"

enum { MAX_PARAMS = 8 };

typedef struct net {
    const char *name;
    int n;
    lb_shape shape[MAX_PARAMS];
    lb_shape input;
    lb_array *(*run)(lb_ctx *cx, lb_array *const *p, lb_array *x);
} net;

/* ---- the networks -------------------------------------------------------- */

static lb_array *mlp(lb_ctx *cx, lb_array *const *p, lb_array *x)
{
    lb_array *h = lb_add(cx, lb_matmul(cx, x, p[0]), p[1]);
    return lb_add(cx, lb_matmul(cx, lb_gelu(cx, h), p[2]), p[3]);
}

/* NHWC, a step of two, then a mean over space */
static lb_array *cnn(lb_ctx *cx, lb_array *const *p, lb_array *x)
{
    const lb_conv_dims d = {.lhs = "b01f",
                            .rhs = "01io",
                            .out = "b01f",
                            .stride = {2, 1},
                            .pad_lo = {1, 1},
                            .pad_hi = {1, 0}};
    lb_array *y = lb_conv_general_dilated(cx, x, p[0], &d);
    y = lb_silu(cx, lb_add(cx, y, p[1]));
    return lb_matmul(cx, lb_mean(cx, y, LB_AXES(1, 2), false), p[2]);
}

enum { TIME = 5, WIDE = 8, HEADS = 2, HEAD = WIDE / HEADS };

/* (batch, time, wide) -> (batch, heads, time, head) */
static lb_array *heads(lb_ctx *cx, lb_array *x)
{
    const int perm[] = {0, 2, 1, 3};
    const lb_shape s = {4, {lb_dim(x, 0), TIME, HEADS, HEAD}};
    return lb_transpose(cx, lb_reshape(cx, x, s), perm);
}

/* Later positions get a score far below all others. */
static lb_array *causal(lb_ctx *cx, lb_array *scores)
{
    lb_array *i = lb_iota(cx, LB_I32, LB_SHAPE(TIME, TIME), 0);
    lb_array *j = lb_iota(cx, LB_I32, LB_SHAPE(TIME, TIME), 1);
    return lb_select(cx, lb_ge(cx, i, j), scores, lb_scalar(cx, -1e9));
}

/* x + attention(norm x), and then y + mlp(norm y); p: q k v o up down and the
 * two norms */
static lb_array *block(lb_ctx *cx, lb_array *const *p, lb_array *x)
{
    const int perm[] = {0, 2, 1, 3}, turn[] = {0, 1, 3, 2};
    lb_array *h = lb_rms_norm(cx, x, p[6], 1e-6);
    lb_array *q = heads(cx, lb_matmul(cx, h, p[0]));
    lb_array *k = heads(cx, lb_matmul(cx, h, p[1]));
    lb_array *v = heads(cx, lb_matmul(cx, h, p[2]));
    lb_array *s = lb_matmul(cx, q, lb_transpose(cx, k, turn));
    s = lb_mul(cx, s, lb_scalar(cx, 1 / sqrt(HEAD)));
    lb_array *a = lb_matmul(cx, lb_softmax(cx, causal(cx, s), -1), v);
    a = lb_reshape_permuted(cx, a, perm, lb_shape_of(x));
    x = lb_add(cx, x, lb_matmul(cx, a, p[3]));
    h = lb_layer_norm(cx, x, p[7], NULL, 1e-6);
    h = lb_gelu_tanh(cx, lb_matmul(cx, h, p[4]));
    return lb_add(cx, x, lb_matmul(cx, h, p[5]));
}

static const net nets[] = {
    {"mlp",
     4,
     {{2, {6, 9}}, {1, {9}}, {2, {9, 4}}, {1, {4}}},
     {2, {5, 6}},
     mlp},
    {"cnn",
     3,
     {{4, {3, 3, 2, 4}}, {1, {4}}, {2, {4, 3}}},
     {4, {2, 6, 5, 2}},
     cnn},
    {"block",
     8,
     {{2, {WIDE, WIDE}},
      {2, {WIDE, WIDE}},
      {2, {WIDE, WIDE}},
      {2, {WIDE, WIDE}},
      {2, {WIDE, 12}},
      {2, {12, WIDE}},
      {1, {WIDE}},
      {1, {WIDE}}},
     {3, {2, TIME, WIDE}},
     block},
};

/* ---- gradients ----------------------------------------------------------- */

/* mean(y^2): args are the parameters, then x; all have gradients */
static lb_array *loss(lb_ctx *cx, lb_array *const *args, int n, void *user)
{
    const net *of = user;
    lb_array *y = of->run(cx, args, args[n - 1]);
    return lb_mean(cx, lb_mul(cx, y, y), NULL, false);
}

static lb_array *normal(lb_ctx *cx, uint64_t seed, lb_shape shape)
{
    lb_array *a = lb_random_normal(cx, (lb_key){seed, 3}, LB_BF16, shape);
    return lb_convert(cx, a, LB_F64); /* representable in all dtypes */
}

static lb_array *inputs(lb_ctx *cx, const net *of, lb_array **args)
{
    for (int i = 0; i <= of->n; i++)
        args[i] = normal(cx, (uint64_t)i, i < of->n ? of->shape[i] : of->input);
    return args[of->n];
}

/* Along a random direction, of one argument. */
static double difference(lb_ctx *cx, const net *of, lb_array *const *args,
                         int i, lb_array *d)
{
    const double h = 1e-5;
    double y[2];
    net copy = *of;
    for (int side = 0; side < 2; side++) {
        lb_array *moved[MAX_PARAMS + 1];
        memcpy(moved, args, sizeof(lb_array *) * (size_t)(of->n + 1));
        moved[i] =
            lb_add(cx, args[i], lb_mul(cx, d, lb_scalar(cx, side ? h : -h)));
        y[side] = lb_item(cx, loss(cx, moved, of->n + 1, &copy));
    }
    return (y[1] - y[0]) / (2 * h);
}

static void check_net(lb_ctx *cx, const net *of)
{
    const lb_dtype dtype[] = {LB_F64, LB_F32, LB_BF16};
    const double off[] = {1e-7, 1e-5, 5e-2};
    lb_array *args[MAX_PARAMS + 1], *grad[MAX_PARAMS + 1];
    inputs(cx, of, args);
    for (int k = 0; k < 3; k++) {
        lb_array *in[MAX_PARAMS + 1];
        net copy = *of;
        for (int i = 0; i <= of->n; i++)
            in[i] = lb_convert(cx, args[i], dtype[k]);
        CHECK(lb_value_and_grad(cx, loss, in, of->n + 1, &copy, grad,
                                of->n + 1) != NULL);
        for (int i = 0; i <= of->n; i++) {
            lb_array *d = normal(cx, 50 + (uint64_t)i, lb_shape_of(args[i]));
            lb_array *g = lb_convert(cx, grad[i], LB_F64);
            const double want = difference(cx, of, args, i, d);
            const double got =
                lb_item(cx, lb_reduce_sum(cx, lb_mul(cx, g, d), NULL));
            const double size =
                sqrt(lb_item(cx, lb_reduce_sum(cx, lb_mul(cx, g, g), NULL)) *
                     (double)lb_size(d));
            CHECK(lb_dtype_of(grad[i]) == dtype[k]);
            if (check_fails(fabs(got - want) <= off[k] * size))
                fprintf(stderr, "%s, %s, argument %d: %g, not %g\n", of->name,
                        lb_dtype_name(dtype[k]), i, got, want);
        }
    }
    CHECK_EQ_S(lb_error(cx), "");
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    CHECK(cx != NULL);
    for (size_t k = 0; k < sizeof nets / sizeof *nets; k++)
        check_net(cx, &nets[k]);
    lb_close(cx);
    return check_report("gradients of networks");
}
