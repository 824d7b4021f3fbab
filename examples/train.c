/* train.c - train a network with ternary weights; docs/training.md explains it.
 */
#include <lowbit.h>
#include <math.h>
#include <stdio.h>

enum { IN = 64, HIDDEN = 96, OUT = 10, BATCH = 64, STEPS = 300 };

/* ---- the network --------------------------------------------------------- */

/* x (batch, in), w (out, in), b (out) */
static lb_array *layer(lb_ctx *cx, lb_array *x, lb_array *w, lb_array *b)
{
    return lb_add(cx, lb_matmul(cx, x, lb_transpose(cx, w, NULL)), b);
}

static lb_array *network(lb_ctx *cx, lb_tree *p, lb_array *x)
{
    x = layer(cx, x, lb_tree_get(p, "w1"), lb_tree_get(p, "b1"));
    x = lb_relu(cx, x);
    return layer(cx, x, lb_tree_get(p, "w2"), lb_tree_get(p, "b2"));
}

/* How to quantize a parameter: weights as `how`, biases not at all. */
static const lb_quant_config *rule(const char *name, lb_array *a, void *how)
{
    (void)a;
    return name[0] == 'w' ? how : NULL;
}

/* args: x and labels */
static lb_array *loss(lb_ctx *cx, lb_tree *p, lb_array *const *args, int n,
                      void *how)
{
    (void)n;
    lb_tree_quantize(p, rule, how, NULL); /* packed from here on */
    lb_array *z = network(cx, p, args[0]);
    return lb_mean(cx, lb_cross_entropy(cx, z, args[1]), NULL, false);
}

/* ---- data ---------------------------------------------------------------- */

/* Each row is one of ten patterns plus noise of twice its magnitude. */
static void batch(lb_ctx *cx, uint64_t i, lb_array **x, lb_array **labels)
{
    const lb_key key = {2, i}, noise = {3, i};
    lb_array *of =
        lb_random_normal(cx, (lb_key){1, 0}, LB_F32, LB_SHAPE(OUT, IN));
    lb_array *bits = lb_random_bits(cx, key, LB_U32, LB_SHAPE(BATCH));
    lb_array *k = lb_rem(cx, bits, lb_scalar_int(cx, OUT));
    *labels = lb_convert(cx, k, LB_I32);
    *x = lb_random_normal(cx, noise, LB_F32, LB_SHAPE(BATCH, IN));
    *x = lb_add(cx, lb_mul(cx, *x, lb_scalar(cx, 2)),
                lb_embedding(cx, of, *labels));
}

/* ---- training ------------------------------------------------------------ */

static lb_tree *start(lb_ctx *cx)
{
    static const struct {
        const char *name;
        lb_shape shape;
    } of[] = {{"w1", {2, {HIDDEN, IN}}},
              {"b1", {1, {HIDDEN}}},
              {"w2", {2, {OUT, HIDDEN}}},
              {"b2", {1, {OUT}}}};
    lb_tree *p = lb_tree_open(cx);
    for (int i = 0; i < 4; i++) {
        const lb_key key = {4, (uint64_t)i};
        lb_array *a = lb_random_normal(cx, key, LB_F32, of[i].shape);
        const double size = of[i].name[0] == 'w' ? sqrt(2.0 / IN) : 0;
        lb_tree_set(p, of[i].name, lb_mul(cx, a, lb_scalar(cx, size)));
    }
    return p;
}

/* One step, which replaces the arrays of p. Returns the loss, or NaN on
 * error. */
static double step(lb_ctx *cx, lb_optimizer *o, lb_tree *p, lb_tree *grad,
                   lb_quant_config *how)
{
    lb_array *data[2];
    double value = NAN;
    lb_enter(cx);
    batch(cx, (uint64_t)lb_optimizer_steps(o), &data[0], &data[1]);
    lb_array *l = lb_tree_value_and_grad(p, loss, data, 2, how, grad);
    if (l && lb_tree_optimizer_step(o, p, grad)) value = lb_item(cx, l);
    lb_leave(cx); /* frees all arrays of the step, except those of the trees */
    return value;
}

static double accuracy(lb_ctx *cx, const lb_tree *p, lb_quant_config *how)
{
    lb_array *x, *labels;
    double right = 0;
    lb_tree *q = lb_tree_copy(p);
    lb_tree_quantize(q, rule, how, NULL);
    for (uint64_t i = 0; i < 20; i++) {
        lb_enter(cx);
        batch(cx, 1000000 + i, &x, &labels);
        lb_array *best = lb_argmax(cx, network(cx, q, x), 1, LB_I32);
        lb_array *hit = lb_convert(cx, lb_eq(cx, best, labels), LB_F32);
        right += lb_item(cx, lb_mean(cx, hit, NULL, false));
        lb_leave(cx);
    }
    lb_tree_close(q);
    return 100 * right / 20;
}

int main(void)
{
    lb_quant_config ternary = {.format = "ternary", .scale = LB_SCALE_ROW};
    const lb_optimizer_config adam = {.method = LB_ADAM,
                                      .rate = 3e-3,
                                      .schedule = LB_COSINE,
                                      .warmup = 20,
                                      .steps = STEPS};
    lb_ctx *cx = lb_open(NULL);
    for (int qat = 0; qat < 2; qat++) {
        lb_quant_config *how = qat ? &ternary : NULL;
        lb_tree *p = start(cx), *grad = lb_tree_open(cx);
        lb_optimizer *o = lb_tree_optimizer_open(p, &adam);
        double value = 0;
        for (int i = 0; i < STEPS && o && !isnan(value); i++)
            value = step(cx, o, p, grad, how);
        lb_optimizer_close(o);
        printf("trained as %s: loss %.3f; as f32 %.1f %%, as ternary %.1f %%\n",
               qat ? "ternary" : "f32", value, accuracy(cx, p, NULL),
               accuracy(cx, p, &ternary));
        lb_tree_close(p);
        lb_tree_close(grad);
    }
    const bool ok = cx && !lb_error_status(cx);
    if (!ok) fprintf(stderr, "train: %s\n", lb_error(cx));
    lb_close(cx);
    return !ok;
}
