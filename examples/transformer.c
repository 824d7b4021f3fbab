/* transformer.c - train a transformer block with quantized weights.
 *
 * It learns to output the token three positions back, which requires attention:
 * one block, two heads, in f32 and then with quantized weights. Activations can
 * pass through a function of your own with a straight-through gradient
 * (lb_ste): here, rounding to sixteenths.
 */
/* ctest: skip-tsan skip-asan skip-ref */
#include <lowbit.h>
#include <math.h>
#include <stdio.h>

enum { TOKENS = 16, TIME = 12, WIDE = 32, HEADS = 2, BACK = 3, BATCH = 32 };

/* ---- the network --------------------------------------------------------- */

enum { TABLE, PLACES, Q, K, V, O, UP, DOWN, NORM1, NORM2, PARAMS };

static const lb_shape shapes[PARAMS] = {
    {2, {TOKENS, WIDE}},   {2, {TIME, WIDE}},     {2, {WIDE, WIDE}},
    {2, {WIDE, WIDE}},     {2, {WIDE, WIDE}},     {2, {WIDE, WIDE}},
    {2, {WIDE, 4 * WIDE}}, {2, {4 * WIDE, WIDE}}, {1, {WIDE}},
    {1, {WIDE}},
};

/* Quantization of weights, rounding of activations. */
typedef struct plan {
    const char *name;
    const lb_quant_config *weights; /* NULL: f32 */
    bool steps;
} plan;

static lb_array *sixteenths(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)n, (void)user;
    lb_array *r = lb_round(cx, lb_mul(cx, x[0], lb_scalar(cx, 16)));
    return lb_mul(cx, r, lb_scalar(cx, 1.0 / 16));
}

/* x @ w */
static lb_array *times(lb_ctx *cx, const plan *p, lb_array *x, lb_array *w)
{
    if (p->weights) w = lb_straight_through(cx, w, p->weights);
    if (p->steps) x = lb_ste(cx, sixteenths, x, NULL);
    return lb_matmul(cx, x, w);
}

/* (batch, time, wide) -> (batch, heads, time, wide / heads) */
static lb_array *split(lb_ctx *cx, lb_array *x)
{
    const int perm[] = {0, 2, 1, 3};
    const lb_shape s = {4, {lb_dim(x, 0), TIME, HEADS, WIDE / HEADS}};
    return lb_transpose(cx, lb_reshape(cx, x, s), perm);
}

/* Causal attention. */
static lb_array *attend(lb_ctx *cx, lb_array *q, lb_array *k, lb_array *v)
{
    const int turn[] = {0, 1, 3, 2};
    lb_array *i = lb_iota(cx, LB_I32, LB_SHAPE(TIME, TIME), 0);
    lb_array *j = lb_iota(cx, LB_I32, LB_SHAPE(TIME, TIME), 1);
    lb_array *s = lb_matmul(cx, q, lb_transpose(cx, k, turn));
    s = lb_mul(cx, s, lb_scalar(cx, 1 / sqrt((double)WIDE / HEADS)));
    s = lb_select(cx, lb_ge(cx, i, j), s, lb_scalar(cx, -1e9));
    return lb_matmul(cx, lb_softmax(cx, s, -1), v);
}

/* tokens (batch, time) -> logits (batch, time, tokens) */
static lb_array *run(lb_ctx *cx, const plan *p, lb_array *const *w,
                     lb_array *tokens)
{
    const int perm[] = {0, 2, 1, 3};
    lb_array *x = lb_embedding(cx, w[TABLE], tokens);
    x = lb_add(cx, x, w[PLACES]);
    lb_array *h = lb_rms_norm(cx, x, w[NORM1], 1e-6);
    lb_array *a = attend(cx, split(cx, times(cx, p, h, w[Q])),
                         split(cx, times(cx, p, h, w[K])),
                         split(cx, times(cx, p, h, w[V])));
    a = lb_reshape_permuted(cx, a, perm, lb_shape_of(x));
    x = lb_add(cx, x, times(cx, p, a, w[O]));
    h = lb_rms_norm(cx, x, w[NORM2], 1e-6);
    h = lb_silu(cx, times(cx, p, h, w[UP]));
    x = lb_add(cx, x, times(cx, p, h, w[DOWN]));
    return lb_matmul(cx, x, lb_transpose(cx, w[TABLE], NULL));
}

/* ---- training ------------------------------------------------------------ */

/* The mean cross entropy of positions that have such a token; args: the
 * parameters, then the tokens. */
static lb_array *loss(lb_ctx *cx, lb_array *const *args, int n, void *user)
{
    lb_array *tokens = args[n - 1], *z = run(cx, user, args, tokens);
    const int64_t rows = lb_dim(tokens, 0);
    z = lb_slice(cx, z, (int64_t[]){0, BACK, 0},
                 (int64_t[]){rows, TIME, TOKENS}, NULL);
    lb_array *want = lb_slice(cx, tokens, (int64_t[]){0, 0},
                              (int64_t[]){rows, TIME - BACK}, NULL);
    return lb_mean(cx, lb_cross_entropy(cx, z, want), NULL, false);
}

static void start(lb_ctx *cx, lb_array **w)
{
    for (int i = 0; i < PARAMS; i++) {
        const lb_key key = {1, (uint64_t)i};
        lb_array *a = lb_random_normal(cx, key, LB_F32, shapes[i]);
        w[i] = i >= NORM1
                   ? lb_full(cx, LB_F32, shapes[i], 1)
                   : lb_mul(cx, a, lb_scalar(cx, 1 / sqrt((double)WIDE)));
    }
}

static double train(lb_ctx *cx, plan *p, double *first)
{
    enum { STEPS = 250 };
    const lb_optimizer_config how = {.method = LB_ADAMW,
                                     .rate = 1e-2,
                                     .decay = 1e-3,
                                     .clip_norm = 1,
                                     .schedule = LB_COSINE,
                                     .warmup = 20,
                                     .steps = STEPS};
    lb_array *w[PARAMS];
    double last = 0;
    lb_enter(cx);
    start(cx, w);
    lb_optimizer *o = lb_optimizer_open(cx, &how, w, PARAMS);
    for (int i = 0; i < STEPS && o; i++) {
        lb_array *args[PARAMS + 1], *grad[PARAMS];
        /* Frees the arrays of a step, except the parameters. */
        lb_enter(cx);
        lb_array *bits = lb_random_bits(cx, (lb_key){2, (uint64_t)i}, LB_U8,
                                        LB_SHAPE(BATCH, TIME));
        for (int k = 0; k < PARAMS; k++)
            args[k] = w[k];
        args[PARAMS] =
            lb_convert(cx, lb_rem(cx, bits, lb_scalar_int(cx, TOKENS)), LB_I32);
        lb_array *l =
            lb_value_and_grad(cx, loss, args, PARAMS + 1, p, grad, PARAMS);
        const bool ok = l && lb_optimizer_step(o, args, grad);
        last = ok ? lb_item(cx, l) : NAN;
        if (!i) *first = last;
        for (int k = 0; k < PARAMS && ok; k++) {
            lb_drop(cx, w[k]);
            w[k] = lb_keep(cx, args[k]);
        }
        lb_leave(cx);
        if (!ok) break;
    }
    lb_optimizer_close(o);
    lb_leave(cx);
    return last;
}

int main(void)
{
    static const lb_quant_config nf4 = {.format = "nf4", .block_size = 32};
    static const lb_quant_config ternary = {.format = "ternary",
                                            .scale = LB_SCALE_ROW};
    plan plans[] = {{"f32", NULL, false},
                    {"nf4", &nf4, false},
                    {"nf4, activations in sixteenths", &nf4, true},
                    {"ternary", &ternary, false}};
    lb_ctx *cx = lb_open(NULL);
    bool ok = cx != NULL;
    for (int k = 0; k < 4 && ok; k++) {
        double first = 0;
        const double last = train(cx, &plans[k], &first);
        ok = last < 0.2 * first;
        printf("%-31s loss %.2f, then %.3f\n", plans[k].name, first, last);
    }
    if (lb_error_status(cx)) fprintf(stderr, "transformer: %s\n", lb_error(cx));
    lb_close(cx);
    return !ok;
}
