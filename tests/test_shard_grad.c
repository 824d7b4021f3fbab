/* test_shard_grad.c - gradients of sharded programs equal the shards of the
 * gradients of a single process, and the volume of communication is at most
 * that of a formula.
 *
 * Each program is a function of some arrays, reduced to a weighted sum. On
 * every mesh all gradients are computed twice, for sharded and for replicated
 * arguments. Without sums over ranks the bits are equal; products and sums over
 * ranks are within 64 f32 roundings of the largest gradient.
 */
/* ctest: skip-tsan skip-asan skip-ref */
#include <pthread.h>
#include <stdlib.h>

#include "check.h"
#include "core/core.h"
#include "ranks.h"
#include "samples.h"

static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;

static void say(bool ok, const char *what, const char *more, const char *why)
{
    pthread_mutex_lock(&checking);
    if (check_fails(ok)) fprintf(stderr, "%s: %s: %s\n", what, more, why);
    pthread_mutex_unlock(&checking);
}

enum { MAX_ARGS = 6, DP = 1, TP = 2, DOT = 4 };

/* The sizes that matter for a mesh: the ranks along its axes. */
typedef struct {
    int dp, tp;
} sizes;

typedef struct program {
    const char *name;
    lb_fn fn;
    int n; /* arguments that have gradients */
    struct {
        lb_shape shape;
        const char *spec; /* NULL: replicated */
        int off;          /* error of its gradient: sums over DP, TP, or a
                           * product, which has other kernels for slices */
    } arg[MAX_ARGS];
    int value_off;
    /* Communication of the value and the gradients, where a and b are the ranks
     * of the axes. */
    lb_traffic (*cost)(sizes s);
} program;

/* A sum over n ranks, of that many elements on each; none for one rank. */
static void adds(lb_traffic *t, int n, int64_t elements)
{
    if (n == 1) return;
    t->reduces++;
    t->reduce_bytes += elements * 4;
}

static void gathers(lb_traffic *t, int n, int64_t bytes)
{
    if (n == 1) return;
    t->gathers++;
    t->gather_bytes += bytes * (n - 1);
}

/* ---- the programs ------------------------------------------------------- */

/* The sum of y * c, where c is arbitrary. */
static lb_array *weighed(lb_ctx *cx, lb_array *y)
{
    if (!y) return NULL;
    lb_array *c = lb_random_normal(cx, (lb_key){99, 1}, LB_F32, lb_shape_of(y));
    return lb_reduce_sum(cx, lb_mul(cx, y, c), NULL);
}

static lb_array *product(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    return weighed(cx, lb_matmul(cx, a[0], a[1]));
}

/* x (8, 64) by P(dp), w (64, 128) by P(None, tp): columns. Forward only the
 * value is summed up; dx is over columns, dw over the batch. */
static lb_traffic column_cost(sizes s)
{
    lb_traffic t = {0};
    adds(&t, s.dp * s.tp, 1);
    adds(&t, s.tp, 8 / s.dp * 64);
    adds(&t, s.dp, 64 * 128 / s.tp);
    return t;
}

/* x (8, 128) by P(dp, tp), w (128, 64) by P(tp): rows. */
static lb_traffic row_cost(sizes s)
{
    lb_traffic t = {0};
    adds(&t, s.tp, 8 / s.dp * 64);
    adds(&t, s.dp, 1);
    adds(&t, s.dp, 128 / s.tp * 64);
    return t;
}

/* x (16, 64) by P((dp, tp)), w on every rank: one sum of dw over all. */
static lb_traffic data_cost(sizes s)
{
    lb_traffic t = {0};
    adds(&t, s.dp * s.tp, 1);
    adds(&t, s.dp * s.tp, 64 * 32);
    return t;
}

/* x (8, 16), a row of it, a column of it, and a scalar. */
static lb_array *elements(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *y = lb_add(cx, lb_mul(cx, a[0], a[2]), a[1]);
    y = lb_mul(cx, lb_tanh(cx, y), lb_sub(cx, a[0], a[3]));
    return weighed(cx, y);
}

static lb_traffic elements_cost(sizes s)
{
    lb_traffic t = {0};
    adds(&t, s.dp * s.tp, 1);
    adds(&t, s.dp, 16 / s.tp);
    adds(&t, s.tp, 8 / s.dp);
    adds(&t, s.dp * s.tp, 1);
    return t;
}

/* A mean over a sharded axis, a maximum over another. */
static lb_array *sums(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *m = lb_mean(cx, lb_mul(cx, a[0], a[0]), LB_AXES(1), true);
    lb_array *top = lb_reduce_max(cx, a[0], LB_AXES(2));
    return weighed(cx, lb_mul(cx, lb_expand(cx, top, 2), m));
}

static lb_traffic sums_cost(sizes s)
{
    lb_traffic t = {0};
    adds(&t, s.tp, 8 / s.dp * 4); /* the mean, (8, 1, 4) */
    adds(&t, s.dp * s.tp, 1);
    adds(&t, s.tp, 8 / s.dp * 4); /* its gradient, on all ranks along tp */
    return t;
}

/* Rows of a table (64, 32) by P(tp), some twice; indices by P(dp). */
static lb_array *rows(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n;
    static const int32_t index[] = {63, 0, 17, 17, 5, 40, 33, 17};
    lb_array *i = lb_from(cx, LB_I32, LB_SHAPE(8), index);
    if (user) i = lb_shard(cx, user, i, "P(dp)");
    return weighed(cx, lb_embedding(cx, a[0], i));
}

static lb_traffic rows_cost(sizes s)
{
    lb_traffic t = {0};
    adds(&t, s.tp, 8 / s.dp * 32); /* rows of all ranks */
    adds(&t, s.dp, 1);
    gathers(&t, s.dp, 8 / s.dp * 4);      /* indices */
    gathers(&t, s.dp, 8 / s.dp * 32 * 4); /* added to the rows */
    return t;
}

/* (8, 4, 16) to (16, 8, 4) to (16, 32), with the same sharding throughout. */
static lb_array *turned(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *t = lb_transpose(cx, a[0], (int[]){2, 0, 1});
    lb_array *y = lb_reshape(cx, t, LB_SHAPE(16, 32));
    return weighed(cx, lb_exp(cx, y));
}

static lb_traffic value_cost(sizes s)
{
    lb_traffic t = {0};
    adds(&t, s.dp * s.tp, 1);
    return t;
}

/* x (8, 4, 6, 5) by P(dp), kernels (8, 4, 3, 3) by P(tp): output features. */
static lb_array *convolved(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    const lb_conv_dims d = {.stride = {2, 1}, .pad_lo = {1, 1}};
    return weighed(cx, lb_conv_general_dilated(cx, a[0], a[1], &d));
}

static lb_traffic conv_cost(sizes s)
{
    lb_traffic t = {0};
    adds(&t, s.dp * s.tp, 1);
    adds(&t, s.tp, 8 / s.dp * 4 * 3 * 5); /* rows, by steps of two */
    adds(&t, s.tp, 8 / s.dp * 4 * 3 * 5);
    adds(&t, s.dp, 8 / s.tp * 4 * 3 * 3);
    return t;
}

/* No sharded array depends on it. */
static lb_array *alone(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    return lb_reduce_sum(cx, lb_mul(cx, a[1], a[1]), NULL);
}

static lb_traffic no_cost(sizes s)
{
    (void)s;
    return (lb_traffic){0};
}

/* x (16, 64) by P(dp); up (64, 256) by P(None, tp), its bias by P(tp); down
 * (256, 64) by P(tp), its bias whole: weights in four bits, mean entropy. */
static lb_array *mlp(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    static const int32_t label[16] = {1,  60, 7, 33, 2,  19, 0,  63,
                                      40, 41, 5, 5,  12, 30, 22, 9};
    const lb_quant_config nf4 = {.format = "nf4", .block_size = 16};
    lb_array *up = lb_straight_through(cx, a[0], &nf4);
    lb_array *down = lb_straight_through(cx, a[2], &nf4);
    lb_array *h = lb_gelu(cx, lb_add(cx, lb_matmul(cx, a[4], up), a[1]));
    lb_array *y = lb_add(cx, lb_matmul(cx, h, down), a[3]);
    lb_array *labels = lb_from(cx, LB_I32, LB_SHAPE(16), label);
    /* About 1, because the exponential amplifies a rounding of y. */
    y = lb_mul(cx, y, lb_scalar(cx, 0x1p-6));
    return lb_mean(cx, lb_cross_entropy(cx, y, labels), NULL, false);
}

static lb_traffic mlp_cost(sizes s)
{
    lb_traffic t = {0};
    adds(&t, s.tp, 16 / s.dp * 64); /* y */
    adds(&t, s.dp, 1);              /* the value */
    adds(&t, s.dp, 64);             /* of the second bias */
    adds(&t, s.dp, 256 / s.tp * 64);
    adds(&t, s.dp, 256 / s.tp);
    adds(&t, s.tp, 16 / s.dp * 64); /* of x */
    adds(&t, s.dp, 64 * 256 / s.tp);
    return t;
}

/* clang-format off */
static const program programs[] = {
    {"columns", product, 2,
     {{{2, {8, 64}}, "P(dp)", DOT}, {{2, {64, 128}}, "P(None, tp)", DOT}},
     DOT, column_cost},
    {"rows", product, 2,
     {{{2, {8, 128}}, "P(dp, tp)", DOT}, {{2, {128, 64}}, "P(tp)", DOT}},
     DOT, row_cost},
    {"batch", product, 2,
     {{{2, {16, 64}}, "P((dp, tp))", DOT}, {{2, {64, 32}}, NULL, DOT}},
     DOT, data_cost},
    {"elements", elements, 4,
     {{{2, {8, 16}}, "P(dp, tp)", 0}, {{1, {16}}, "P(tp)", DP},
      {{2, {8, 1}}, "P(dp)", TP}, {{0, {0}}, NULL, DP | TP}},
     DP | TP, elements_cost},
    {"sums", sums, 1,
     {{{3, {8, 16, 4}}, "P(dp, tp)", TP}},
     DP | TP, sums_cost},
    {"table", rows, 1,
     {{{2, {64, 32}}, "P(tp)", 0}},
     DP, rows_cost},
    {"turned", turned, 1,
     {{{3, {8, 4, 16}}, "P(dp, None, tp)", 0}},
     DP | TP, value_cost},
    {"convolution", convolved, 2,
     {{{4, {8, 4, 6, 5}}, "P(dp)", DOT}, {{4, {8, 4, 3, 3}}, "P(tp)", DOT}},
     DOT, conv_cost},
    {"alone", alone, 2,
     {{{2, {8, 16}}, "P(dp, tp)", 0}, {{1, {16}}, NULL, 0}},
     0, no_cost},
    {"mlp", mlp, 5,
     {{{2, {64, 256}}, "P(None, tp)", DOT}, {{1, {256}}, "P(tp)", DOT},
      {{2, {256, 64}}, "P(tp)", DOT}, {{1, {64}}, NULL, DOT},
      {{2, {16, 64}}, "P(dp)", DOT}},
     DOT, mlp_cost},
};
/* clang-format on */
enum { PROGRAMS = sizeof programs / sizeof *programs };

/* ---- comparing ---------------------------------------------------------- */

static int axis_size(const lb_mesh *mesh, const char *name)
{
    const lb_grid *g = lb_mesh_grid(mesh);
    for (int k = 0; k < g->n; k++)
        if (!strcmp(g->axis[k].name, name)) return g->axis[k].size;
    return 1;
}

static bool near(lb_ctx *cx, lb_array *got, lb_array *want, lb_text *why)
{
    lb_array *x = lb_materialize(cx, lb_convert(cx, got, LB_F64));
    lb_array *y = lb_materialize(cx, lb_convert(cx, want, LB_F64));
    if (!x || !y) return false;
    const double *g = lb_data(x), *w = lb_data(y);
    double most = 0;
    for (int64_t i = 0; i < lb_size(y); i++)
        most = fmax(most, fabs(w[i]));
    for (int64_t i = 0; i < lb_size(y); i++) {
        if (fabs(g[i] - w[i]) <= 64 * 0x1p-24 * most) continue;
        snprintf(why->s, sizeof why->s, "element %lld is %.9g, not %.9g",
                 (long long)i, g[i], w[i]);
        return false;
    }
    return true;
}

static void compare(lb_ctx *cx, const lb_mesh *mesh, lb_array *got,
                    lb_array *want, int off, const char *what, const char *more)
{
    lb_text why = {""};
    lb_array *all = lb_unshard(cx, got);
    int sums = 0;
    if (axis_size(mesh, "dp") > 1) sums |= DP | DOT;
    if (axis_size(mesh, "tp") > 1) sums |= TP | DOT;
    const bool ok =
        all && want &&
        (sample_same(sample_plain(cx, all), sample_plain(cx, want), &why) ||
         ((off & sums) && near(cx, all, want, &why)));
    say(ok, what, more, lb_error_status(cx) ? lb_error(cx) : why.s);
}

/* Sharded like its array. */
static void keeps_cut(const lb_mesh *mesh, const lb_array *g, const lb_array *a,
                      const char *what, const char *more)
{
    const lb_spec of = lb_sharding_of(a), is = lb_sharding_of(g);
    say(g && lb_is_sharded(g) == lb_is_sharded(a) &&
            lb_spec_equal(lb_mesh_grid(mesh), &of, &is),
        what, more, "the gradient is not cut as the array is");
}

static void costs(const lb_mesh *mesh, lb_traffic before, lb_traffic want,
                  const char *what, const char *more)
{
    const lb_traffic now = lb_mesh_traffic(mesh);
    lb_text why;
    snprintf(why.s, sizeof why.s,
             "%lld sums of %lld bytes and %lld gathers of %lld; not %lld of "
             "%lld and %lld of %lld",
             (long long)(now.reduces - before.reduces),
             (long long)(now.reduce_bytes - before.reduce_bytes),
             (long long)(now.gathers - before.gathers),
             (long long)(now.gather_bytes - before.gather_bytes),
             (long long)want.reduces, (long long)want.reduce_bytes,
             (long long)want.gathers, (long long)want.gather_bytes);
    say(now.reduces - before.reduces == want.reduces &&
            now.reduce_bytes - before.reduce_bytes == want.reduce_bytes &&
            now.gathers - before.gathers == want.gathers &&
            now.gather_bytes - before.gather_bytes == want.gather_bytes,
        what, more, why.s);
}

/* ---- gradients ---------------------------------------------------------- */

static void one_program(lb_ctx *cx, lb_mesh *mesh, const program *p,
                        const char *grid)
{
    lb_array *whole[MAX_ARGS], *cut[MAX_ARGS], *want[MAX_ARGS], *got[MAX_ARGS];
    const sizes s = {axis_size(mesh, "dp"), axis_size(mesh, "tp")};
    char what[64];
    lb_enter(cx);
    for (int i = 0; i < p->n; i++) {
        whole[i] = lb_random_normal(cx, (lb_key){3, (uint64_t)i}, LB_F32,
                                    p->arg[i].shape);
        cut[i] = p->arg[i].spec ? lb_shard(cx, mesh, whole[i], p->arg[i].spec)
                                : whole[i];
    }
    lb_array *v = lb_value_and_grad(cx, p->fn, whole, p->n, NULL, want, p->n);
    const lb_traffic before = lb_mesh_traffic(mesh);
    lb_array *u = lb_value_and_grad(cx, p->fn, cut, p->n, mesh, got, p->n);
    snprintf(what, sizeof what, "%s, cost", p->name);
    costs(mesh, before, p->cost(s), what, grid);
    snprintf(what, sizeof what, "%s, value", p->name);
    compare(cx, mesh, u, v, p->value_off, what, grid);
    for (int i = 0; i < p->n; i++) {
        snprintf(what, sizeof what, "%s, gradient %d", p->name, i);
        keeps_cut(mesh, got[i], cut[i], what, grid);
        compare(cx, mesh, got[i], want[i], p->arg[i].off, what, grid);
    }
    lb_mesh_agree(mesh);
    lb_clear(cx);
    lb_leave(cx);
}

/* ---- quantized on the way ----------------------------------------------- */

typedef struct {
    lb_quant_config config;
} coded;

static lb_array *through(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    const coded *c = user;
    (void)n;
    lb_array *q = lb_straight_through(cx, a[0], &c->config);
    return weighed(cx, q);
}

static lb_array *multiplied(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    const coded *c = user;
    (void)n;
    lb_array *q = lb_straight_through(cx, a[0], &c->config);
    return weighed(cx, lb_matmul(cx, a[1], lb_transpose(cx, q, NULL)));
}

/* The gradient of a weight passes the quantizer of any format unchanged: here
 * it is the weights of the sum, bit by bit. */
static void one_format(lb_ctx *cx, lb_mesh *mesh, const sample_format *f,
                       const char *spec, const char *grid)
{
    coded c;
    char more[128];
    lb_text why = {""};
    const lb_shape shape = LB_SHAPE(16, 2048);
    lb_array *got[2] = {0}, *want[2] = {0};
    sample_config(f, 2, LB_NO_DTYPE, &c.config);
    c.config.dtype = LB_NO_DTYPE;
    snprintf(more, sizeof more, "%s, %s, %s", f->name, spec, grid);
    lb_enter(cx);
    lb_array *w = lb_random_normal(cx, (lb_key){5, 0}, LB_F32, shape);
    lb_array *x =
        lb_random_normal(cx, (lb_key){5, 1}, LB_F32, LB_SHAPE(4, 2048));
    lb_array *whole[2] = {w, x}, *cut[2] = {lb_shard(cx, mesh, w, spec), x};
    lb_array *v = lb_value_and_grad(cx, through, cut, 1, &c, got, 1);
    if (!v && lb_error_status(cx) == LB_E_SHAPE &&
        strstr(lb_error(cx), "block")) { /* never cut: test_shard has it */
        lb_mesh_agree(mesh);
        lb_clear(cx);
        lb_leave(cx);
        return;
    }
    lb_array *weights = lb_random_normal(cx, (lb_key){99, 1}, LB_F32, shape);
    lb_array *all = lb_unshard(cx, got[0]);
    say(v && all &&
            sample_same(sample_plain(cx, all), sample_plain(cx, weights), &why),
        "through a quantizer", more,
        lb_error_status(cx) ? lb_error(cx) : why.s);
    if (v) keeps_cut(mesh, got[0], cut[0], "through a quantizer", more);
    lb_value_and_grad(cx, multiplied, whole, 2, &c, want, 2);
    lb_value_and_grad(cx, multiplied, cut, 2, &c, got, 2);
    for (int i = 0; i < 2; i++) {
        compare(cx, mesh, got[i], want[i], DOT, "times a quantized one", more);
        keeps_cut(mesh, got[i], cut[i], "times a quantized one", more);
    }
    lb_mesh_agree(mesh);
    lb_clear(cx);
    lb_leave(cx);
}

/* ---- optimizers --------------------------------------------------------- */

enum { PARAMS = 3, STEPS = 3 };
static const lb_shape param_shape[PARAMS] = {
    {2, {64, 1024}}, {2, {1024, 64}}, {1, {64}}};
static const char *const param_spec[PARAMS] = {"P(None, tp)", "P((tp, dp))",
                                               NULL};

/* Steps of an optimizer; halfway its state moves to another, unsharded, as if
 * loaded from a file. */
static bool train(lb_ctx *cx, lb_mesh *mesh, const lb_optimizer_config *c,
                  lb_array **w)
{
    lb_optimizer *o = lb_optimizer_open(cx, c, w, PARAMS);
    bool ok = o != NULL;
    for (int step = 0; step < STEPS && ok; step++) {
        lb_array *g[PARAMS], *state[1 + 2 * PARAMS];
        for (int i = 0; i < PARAMS; i++) {
            g[i] =
                lb_random_normal(cx, (lb_key){7, (uint64_t)(step * PARAMS + i)},
                                 LB_F32, param_shape[i]);
            /* Gradients with another sharding are resharded like the array. */
            if (mesh && i != 1) g[i] = lb_shard(cx, mesh, g[i], "P()");
        }
        ok = lb_optimizer_step(o, w, g);
        const int n = lb_optimizer_count(o);
        for (int i = 0; i < n && ok && step == 1; i++) {
            state[i] = lb_optimizer_state(o, i, NULL, 0);
            if (mesh && i) {
                const int m = (n - 1) / PARAMS;
                keeps_cut(mesh, state[i], w[(i - 1) / m], "optimizer", "state");
            }
            state[i] = lb_unshard(cx, state[i]);
            ok = state[i] != NULL;
        }
        if (step != 1 || !ok) continue;
        lb_optimizer *next = lb_optimizer_open(cx, c, w, PARAMS);
        ok = next && lb_optimizer_restore(next, state, n);
        lb_optimizer_close(o);
        o = next;
    }
    lb_optimizer_close(o);
    return ok;
}

static void optimizes(lb_ctx *cx, lb_mesh *mesh, const char *name,
                      const lb_optimizer_config *c)
{
    lb_array *whole[PARAMS], *cut[PARAMS], *was[PARAMS];
    char what[64];
    lb_enter(cx);
    for (int i = 0; i < PARAMS; i++) {
        whole[i] = lb_random_normal(cx, (lb_key){6, (uint64_t)i}, LB_F32,
                                    param_shape[i]);
        was[i] = cut[i] = param_spec[i]
                              ? lb_shard(cx, mesh, whole[i], param_spec[i])
                              : whole[i];
    }
    say(train(cx, NULL, c, whole), "optimizer", name, lb_error(cx));
    say(train(cx, mesh, c, cut), "optimizer", name, lb_error(cx));
    for (int i = 0; i < PARAMS && !lb_error_status(cx); i++) {
        snprintf(what, sizeof what, "optimizer, parameter %d", i);
        keeps_cut(mesh, cut[i], was[i], what, name);
        /* The clipping norm is a sum over ranks; everything else is
         * elementwise. */
        compare(cx, mesh, cut[i], whole[i], c->clip_norm > 0 ? DP | TP : 0,
                what, name);
    }
    lb_mesh_agree(mesh);
    lb_clear(cx);
    lb_leave(cx);
}

static void optimizers(lb_ctx *cx, lb_mesh *mesh)
{
    const lb_quant_config bytes = {.format = "dynamic8", .block_size = 64};
    optimizes(cx, mesh, "sgd", &(lb_optimizer_config){.method = LB_SGD});
    optimizes(cx, mesh, "momentum",
              &(lb_optimizer_config){.momentum = 0.9, .nesterov = true});
    optimizes(cx, mesh, "adam",
              &(lb_optimizer_config){.method = LB_ADAM, .decay = 0.01});
    optimizes(cx, mesh, "adamw, clipped",
              &(lb_optimizer_config){
                  .method = LB_ADAMW, .decay = 0.01, .clip_norm = 1});
    optimizes(cx, mesh, "adam in 8 bits",
              &(lb_optimizer_config){.method = LB_ADAM, .state = &bytes});
}

/* ---- all of it ---------------------------------------------------------- */

typedef struct {
    const char *mesh;
    sample_format_list formats;
} plan;

static int ranks(lb_comm *comm, void *user)
{
    const plan *p = user;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_mesh *mesh = lb_mesh_open(cx, comm, p->mesh, NULL);
    for (int i = 0; i < PROGRAMS; i++)
        one_program(cx, mesh, &programs[i], p->mesh);
    for (int f = 0; f < p->formats.n; f++) {
        const sample_format *fmt = &p->formats.item[f];
        if (!fmt->fmt || !lb_is_encodable(fmt->fmt)) continue;
        one_format(cx, mesh, fmt, "P(tp)", p->mesh);
        one_format(cx, mesh, fmt, "P(dp, tp)", p->mesh);
    }
    optimizers(cx, mesh);
    say(lb_mesh_close(mesh), "close", p->mesh, lb_error(cx));
    lb_close(cx);
    return 0;
}

static int tests(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const struct {
        int ranks;
        const char *mesh;
    } of[] = {{1, "dp=1,tp=1"}, {2, "dp=1,tp=2"}, {2, "dp=2,tp=1"},
              {4, "dp=2,tp=2"}, {4, "dp=1,tp=4"}, {4, "dp=4,tp=1"},
              {8, "dp=2,tp=4"}};
    for (int m = 0; m < 7; m++) {
        if (!ranks_are(of[m].ranks)) continue;
        plan p = {of[m].mesh, sample_formats_of(NULL)};
        CHECK_EQ_I(ranks_on(of[m].ranks, ranks, &p), 0);
        sample_formats_free(&p.formats);
    }
    return check_report("gradients of sharded programs");
}

int main(int argc, char **argv)
{
    return ranks_main(argc, argv, tests);
}
