/* train.c - train a network with ternary weights; docs/training.md explains it.
 */
#include <lowbit.h>
#include <math.h>
#include <stdio.h>

enum { IN = 64, HIDDEN = 96, OUT = 10, BATCH = 64, STEPS = 300 };
enum { W1, B1, W2, B2, PARAMS };

/* ---- the network --------------------------------------------------------- */

/* x (batch, in), w (out, in), b (out) */
static lb_array *layer(lb_ctx *cx, lb_array *x, lb_array *w, lb_array *b,
                       const lb_quant_config *how)
{
    if (how) w = lb_straight_through(cx, w, how); /* packed from here on */
    return lb_add(cx, lb_matmul(cx, x, lb_transpose(cx, w, NULL)), b);
}

static lb_array *network(lb_ctx *cx, lb_array *const *p, lb_array *x,
                         const lb_quant_config *how)
{
    x = lb_relu(cx, layer(cx, x, p[W1], p[B1], how));
    return layer(cx, x, p[W2], p[B2], how);
}

/* args: the parameters, then x and labels */
static lb_array *loss(lb_ctx *cx, lb_array *const *args, int n, void *user)
{
    lb_array *z = network(cx, args, args[n - 2], user);
    return lb_mean(cx, lb_cross_entropy(cx, z, args[n - 1]), NULL, false);
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

static void start(lb_ctx *cx, lb_array **p)
{
    const lb_shape shape[] = {
        {2, {HIDDEN, IN}}, {1, {HIDDEN}}, {2, {OUT, HIDDEN}}, {1, {OUT}}};
    for (int i = 0; i < PARAMS; i++) {
        const lb_key key = {4, (uint64_t)i};
        const double size = i == B1 || i == B2 ? 0 : sqrt(2.0 / IN);
        p[i] = lb_mul(cx, lb_random_normal(cx, key, LB_F32, shape[i]),
                      lb_scalar(cx, size));
    }
}

/* One step, which replaces p. Returns the loss, or NaN on error. */
static double step(lb_ctx *cx, lb_optimizer *o, lb_array **p,
                   lb_quant_config *how)
{
    lb_array *args[PARAMS + 2], *grad[PARAMS];
    double value = NAN;
    lb_enter(cx);
    for (int i = 0; i < PARAMS; i++)
        args[i] = p[i];
    batch(cx, (uint64_t)lb_optimizer_steps(o), &args[PARAMS],
          &args[PARAMS + 1]);
    lb_array *l =
        lb_value_and_grad(cx, loss, args, PARAMS + 2, how, grad, PARAMS);
    if (l && lb_optimizer_step(o, args, grad)) {
        value = lb_item(cx, l);
        for (int i = 0; i < PARAMS; i++) {
            lb_drop(cx, p[i]);           /* free the old parameters */
            p[i] = lb_keep(cx, args[i]); /* keep the new ones */
        }
    }
    lb_leave(cx); /* frees all other arrays of the step */
    return value;
}

static double accuracy(lb_ctx *cx, lb_array *const *p,
                       const lb_quant_config *how)
{
    lb_array *x, *labels;
    double right = 0;
    for (uint64_t i = 0; i < 20; i++) {
        lb_enter(cx);
        batch(cx, 1000000 + i, &x, &labels);
        lb_array *best = lb_argmax(cx, network(cx, p, x, how), 1, LB_I32);
        lb_array *hit = lb_convert(cx, lb_eq(cx, best, labels), LB_F32);
        right += lb_item(cx, lb_mean(cx, hit, NULL, false));
        lb_leave(cx);
    }
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
        lb_array *p[PARAMS];
        lb_quant_config *how = qat ? &ternary : NULL;
        start(cx, p);
        lb_optimizer *o = lb_optimizer_open(cx, &adam, p, PARAMS);
        double value = 0;
        for (int i = 0; i < STEPS && o && !isnan(value); i++)
            value = step(cx, o, p, how);
        lb_optimizer_close(o);
        printf("trained as %s: loss %.3f; as f32 %.1f %%, as ternary %.1f %%\n",
               qat ? "ternary" : "f32", value, accuracy(cx, p, NULL),
               accuracy(cx, p, &ternary));
    }
    const bool ok = cx && !lb_error_status(cx);
    if (!ok) fprintf(stderr, "train: %s\n", lb_error(cx));
    lb_close(cx);
    return !ok;
}
