/* fashion_net.c - a multilayer perceptron and a small convolutional net.
 *
 * Weights are (outputs, inputs), so the blocks and scales of a row belong to
 * one output. The inputs of a convolution kernel are rows, columns and
 * features, in this order; a reshape of the packed weights separates them.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fashion.h"

/* A parameter of a layer, such as "mlp.0". */
static lb_array *param(lb_tree *p, const char *layer, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", layer, what);
    return lb_tree_get(p, name);
}

static lb_array *dense(lb_ctx *cx, lb_tree *p, const char *layer, lb_array *x)
{
    lb_array *w = lb_transpose(cx, param(p, layer, "weight"), NULL);
    return lb_add(cx, lb_matmul(cx, x, w), param(p, layer, "bias"));
}

static lb_array *run_mlp(lb_ctx *cx, lb_tree *p, lb_array *x)
{
    x = lb_relu(cx, dense(cx, p, "mlp.0", x));
    x = lb_relu(cx, dense(cx, p, "mlp.1", x));
    return dense(cx, p, "mlp.2", x);
}

const net net_mlp = {
    "mlp",
    1e-3,
    128,
    6,
    {{2, {512, PIXELS}},
     {1, {512}},
     {2, {256, 512}},
     {1, {256}},
     {2, {CLASSES, 256}},
     {1, {CLASSES}}},
    run_mlp,
};

enum { ONE = 64, TWO = 128, HALF = SIDE / 2, SMALL = SIDE / 4 };

/* Space to depth: each 2 x 2 patch becomes one position with four times the
 * features; x (batch, side, side, features). */
static lb_array *merge(lb_ctx *cx, lb_array *x, int64_t side, int64_t features)
{
    const int64_t n = lb_dim(x, 0), half = side / 2;
    const int perm[] = {0, 1, 3, 2, 4, 5};
    x = lb_reshape(cx, x, LB_SHAPE(n, half, 2, half, 2, features));
    return lb_reshape_permuted(cx, x, perm, LB_SHAPE(n, half, half, -1));
}

/* 3 x 3 with padding 1. */
static lb_array *conv(lb_ctx *cx, lb_tree *p, const char *layer, lb_array *x)
{
    const lb_conv_dims d = {.lhs = "b01f",
                            .rhs = "o01i",
                            .out = "b01f",
                            .pad_lo = {1, 1},
                            .pad_hi = {1, 1}};
    lb_array *w = param(p, layer, "weight"), *b = param(p, layer, "bias");
    w = lb_reshape(cx, w, LB_SHAPE(lb_dim(w, 0), 3, 3, lb_dim(x, 3)));
    return lb_relu(cx, lb_add(cx, lb_conv_general_dilated(cx, x, w, &d), b));
}

/* 3 x 3; then 2 x 2 with stride 2, as a product after space to depth; then a
 * dense layer. */
static lb_array *run_cnn(lb_ctx *cx, lb_tree *p, lb_array *x)
{
    x = conv(cx, p, "cnn.0", merge(cx, x, SIDE, 1));
    x = lb_relu(cx, dense(cx, p, "cnn.1", merge(cx, x, HALF, ONE)));
    x = lb_reshape(cx, x, LB_SHAPE(lb_dim(x, 0), SMALL * SMALL * TWO));
    return dense(cx, p, "cnn.2", x);
}

const net net_cnn = {
    "cnn",
    3e-3,
    64,
    6,
    {{2, {ONE, 9 * 4}},
     {1, {ONE}},
     {2, {TWO, 4 * ONE}},
     {1, {TWO}},
     {2, {CLASSES, SMALL *SMALL *TWO}},
     {1, {CLASSES}}},
    run_cnn,
};

/* He initialization: deviation sqrt(2 / inputs), biases 0. */
lb_tree *net_init(lb_ctx *cx, const net *n, lb_key key)
{
    lb_tree *p = lb_tree_open(cx);
    lb_enter(cx);
    for (int i = 0; i < n->n_params; i++) {
        char name[64];
        const lb_shape s = n->shape[i];
        const double deviation = s.rank > 1 ? sqrt(2.0 / (double)s.dim[1]) : 0;
        lb_array *w =
            lb_random_normal(cx, lb_key_fold(key, (uint64_t)i), LB_F32, s);
        snprintf(name, sizeof name, "%s.%d.%s", n->name, i / 2,
                 i % 2 ? "bias" : "weight");
        lb_tree_set(p, name, lb_mul(cx, w, lb_scalar(cx, deviation)));
    }
    lb_leave(cx);
    if (!lb_error_status(cx)) return p;
    lb_tree_close(p);
    return NULL;
}

static const lb_quant_config *rule(const char *name, lb_array *a, void *config)
{
    (void)a;
    return strstr(name, ".weight") ? config : NULL;
}

bool net_quantize(lb_tree *params, const lb_quant_config *config)
{
    lb_quant_config c = config ? *config : (lb_quant_config){0};
    return lb_tree_quantize(params, rule, config ? &c : NULL, NULL);
}
