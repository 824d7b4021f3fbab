/* transformer.c - train a transformer block with quantized weights.
 *
 * It learns to output the token three positions back, which requires attention:
 * one block, two heads, in f32 and then with quantized weights. Activations can
 * pass through a function of your own with a straight-through gradient
 * (lb_ste): here, rounding to sixteenths. A step is one compiled function;
 * LOWBIT_COMPILE=off runs it eagerly, with the same results.
 */
/* ctest: skip-tsan skip-asan skip-ref */
#include <lowbit.h>
#include <math.h>
#include <stdio.h>

enum { TOKENS = 16, TIME = 12, WIDE = 32, HEADS = 2, BACK = 3, BATCH = 32 };

/* ---- the network --------------------------------------------------------- */

static const struct {
    const char *name;
    lb_shape shape;
} params[] = {
    {"table", {2, {TOKENS, WIDE}}}, {"places", {2, {TIME, WIDE}}},
    {"q", {2, {WIDE, WIDE}}},       {"k", {2, {WIDE, WIDE}}},
    {"v", {2, {WIDE, WIDE}}},       {"o", {2, {WIDE, WIDE}}},
    {"up", {2, {WIDE, 4 * WIDE}}},  {"down", {2, {4 * WIDE, WIDE}}},
    {"norm1", {1, {WIDE}}},         {"norm2", {1, {WIDE}}},
};
enum { PARAMS = sizeof params / sizeof *params };

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
static lb_array *run(lb_ctx *cx, const plan *p, lb_tree *w, lb_array *tokens)
{
    const int perm[] = {0, 2, 1, 3};
    lb_array *x = lb_embedding(cx, lb_tree_get(w, "table"), tokens);
    x = lb_add(cx, x, lb_tree_get(w, "places"));
    lb_array *h = lb_rms_norm(cx, x, lb_tree_get(w, "norm1"), 1e-6);
    lb_array *a = attend(cx, split(cx, times(cx, p, h, lb_tree_get(w, "q"))),
                         split(cx, times(cx, p, h, lb_tree_get(w, "k"))),
                         split(cx, times(cx, p, h, lb_tree_get(w, "v"))));
    a = lb_reshape_permuted(cx, a, perm, lb_shape_of(x));
    x = lb_add(cx, x, times(cx, p, a, lb_tree_get(w, "o")));
    h = lb_rms_norm(cx, x, lb_tree_get(w, "norm2"), 1e-6);
    h = lb_silu(cx, times(cx, p, h, lb_tree_get(w, "up")));
    x = lb_add(cx, x, times(cx, p, h, lb_tree_get(w, "down")));
    return lb_matmul(cx, x, lb_transpose(cx, lb_tree_get(w, "table"), NULL));
}

/* ---- training ------------------------------------------------------------ */

/* The mean cross entropy of positions that have such a token. */
static lb_array *loss(lb_ctx *cx, lb_tree *w, lb_array *const *args, int n,
                      void *user)
{
    lb_array *tokens = args[0], *z = run(cx, user, w, tokens);
    (void)n;
    const int64_t rows = lb_dim(tokens, 0);
    z = lb_slice(cx, z, (int64_t[]){0, BACK, 0},
                 (int64_t[]){rows, TIME, TOKENS}, NULL);
    lb_array *want = lb_slice(cx, tokens, (int64_t[]){0, 0},
                              (int64_t[]){rows, TIME - BACK}, NULL);
    return lb_mean(cx, lb_cross_entropy(cx, z, want), NULL, false);
}

static lb_tree *start(lb_ctx *cx)
{
    lb_tree *w = lb_tree_open(cx);
    for (int i = 0; i < PARAMS; i++) {
        const lb_key key = {1, (uint64_t)i};
        const lb_shape s = params[i].shape;
        lb_array *a = lb_mul(cx, lb_random_normal(cx, key, LB_F32, s),
                             lb_scalar(cx, 1 / sqrt((double)WIDE)));
        if (s.rank == 1) a = lb_full(cx, LB_F32, s, 1);
        lb_tree_set(w, params[i].name, a);
    }
    return w;
}

typedef struct training {
    lb_tree *w;
    lb_optimizer *o;
    plan *plan;
} training;

/* A step; args: the tokens, then the parameters; out: the loss, then the next
 * parameters. */
static bool step(lb_ctx *cx, lb_array *const *args, int n, lb_array **out,
                 int n_out, void *user)
{
    const training *t = user;
    lb_tree *w = lb_tree_copy(t->w), *grad = lb_tree_open(cx);
    bool ok = lb_tree_replace(w, args + 1, n - 1);
    out[0] = lb_tree_value_and_grad(w, loss, args, 1, t->plan, grad);
    ok = ok && lb_tree_optimizer_step(t->o, w, grad) &&
         lb_tree_arrays(w, out + 1, n_out - 1);
    lb_tree_close(grad);
    lb_tree_close(w);
    return ok;
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
    double last = 0;
    lb_enter(cx);
    training t = {.w = start(cx), .plan = p};
    t.o = lb_tree_optimizer_open(t.w, &how);
    lb_compiled *f = lb_compile_many(cx, step, PARAMS + 1, &t, NULL);
    for (int i = 0; i < STEPS && !isnan(last); i++) {
        lb_array *args[PARAMS + 1], *out[PARAMS + 1];
        lb_enter(cx); /* frees the arrays of a step, except the parameters */
        lb_array *bits = lb_random_bits(cx, (lb_key){2, (uint64_t)i}, LB_U8,
                                        LB_SHAPE(BATCH, TIME));
        args[0] =
            lb_convert(cx, lb_rem(cx, bits, lb_scalar_int(cx, TOKENS)), LB_I32);
        const bool ok = lb_tree_arrays(t.w, args + 1, PARAMS) &&
                        lb_run_many(f, args, PARAMS + 1, out) &&
                        lb_tree_replace(t.w, out + 1, PARAMS);
        last = ok ? lb_item(cx, out[0]) : NAN;
        if (!i) *first = last;
        lb_leave(cx);
    }
    lb_compiled_close(f);
    lb_optimizer_close(t.o);
    lb_tree_close(t.w);
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
