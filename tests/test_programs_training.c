/* test_programs_training.c - gradients and training steps inside compiled
 * functions: parameters, losses and optimizer states have the same bits as
 * eagerly, and a run that fails changes no state.
 */
#include "check.h"
#include "core/core.h"
#include "refused.h"
#include "samples.h"

enum { PARAMS = 3, STEPS = 20, IN = 24, HIDDEN = 33, OUT = 5, BATCH = 8 };

static bool equal(lb_array *a, lb_array *b)
{
    lb_text why = {""};
    const bool same = sample_same(a, b, &why);
    if (!same) fprintf(stderr, "%s\n", why.s);
    return same;
}

/* ---- a training step ----------------------------------------------------- */

typedef struct training {
    const char *name;
    lb_optimizer_config c;
    const char *state; /* the format of its moments, or NULL */
    lb_dtype dtype;    /* of the parameters; 0: f32 */
    const char *quant; /* straight-through quantization of the weights */
    int at_once;       /* steps in one call of the function; 0: 1 */
    double scale;      /* of the loss; 0: 1 */
    lb_optimizer *o;
} training;

static lb_array *loss(lb_ctx *cx, lb_array *const *p, int n, void *user)
{
    (void)n;
    const training *t = user;
    lb_array *w[2] = {p[0], p[1]};
    for (int i = 0; i < 2 && t->quant; i++)
        w[i] = lb_straight_through(
            cx, w[i],
            &(lb_quant_config){.format = t->quant, .dtype = p[0]->dtype});
    lb_array *h = lb_gelu(cx, lb_add(cx, lb_matmul(cx, p[3], w[0]), p[2]));
    h = lb_convert(cx, lb_matmul(cx, h, w[1]), LB_F32);
    h = lb_mean(cx, lb_cross_entropy(cx, h, p[4]), NULL, false);
    return lb_mul(cx, h, lb_scalar(cx, t->scale != 0 ? t->scale : 1));
}

/* args: parameters, x, labels. out: the loss, and the next parameters. */
static bool plain_step(lb_ctx *cx, lb_array *const *args, int n, lb_array **out,
                       int n_out, void *user)
{
    training *t = user;
    lb_array *grad[PARAMS];
    (void)n_out;
    memcpy(out + 1, args, PARAMS * sizeof *out);
    out[0] = lb_value_and_grad(cx, loss, args, n, t, grad, PARAMS);
    return out[0] && lb_optimizer_step(t->o, out + 1, grad);
}

/* One or several such steps, as the test requests. */
static bool step(lb_ctx *cx, lb_array *const *args, int n, lb_array **out,
                 int n_out, void *user)
{
    training *t = user;
    lb_array *p[PARAMS + 2], *g[PARAMS];
    memcpy(p, args, sizeof p);
    if (!t->at_once) return plain_step(cx, args, n, out, n_out, user);
    for (int i = 0; i < t->at_once; i++) {
        out[0] = lb_value_and_grad(cx, loss, p, n, t, g, PARAMS);
        if (!out[0] || !lb_optimizer_step(t->o, p, g)) return false;
    }
    for (int i = 1; i < n_out; i++)
        out[i] = p[i - 1];
    return true;
}

static bool begin(lb_ctx *cx, training *t, lb_array **p)
{
    const lb_shape shape[PARAMS] = {LB_SHAPE(IN, HIDDEN), LB_SHAPE(HIDDEN, OUT),
                                    LB_SHAPE(HIDDEN)};
    for (int i = 0; i < PARAMS; i++) {
        p[i] = lb_random_normal(cx, (lb_key){1, (uint64_t)i}, LB_F32, shape[i]);
        p[i] = lb_mul(cx, p[i], lb_scalar(cx, 0.25));
        if (t->dtype) p[i] = lb_convert(cx, p[i], t->dtype);
        p[i] = lb_materialize(cx, p[i]);
    }
    const lb_quant_config state = {.format = t->state, .block_size = 64};
    t->c.state = t->state ? &state : NULL;
    t->o = lb_optimizer_open(cx, &t->c, p, PARAMS);
    t->c.state = NULL;
    return t->o != NULL;
}

static void data_of(lb_ctx *cx, int k, const training *t, lb_array **p)
{
    const lb_key key = {2, (uint64_t)k};
    p[PARAMS] = lb_random_normal(cx, key, t->dtype ? t->dtype : LB_F32,
                                 LB_SHAPE(BATCH, IN));
    lb_array *z = lb_random_bits(cx, key, LB_U8, LB_SHAPE(BATCH));
    z = lb_rem(cx, z, lb_scalar_int(cx, OUT));
    p[PARAMS + 1] = lb_convert(cx, z, LB_I32);
}

static void same_state(lb_optimizer *a, lb_optimizer *b, const char *what)
{
    CHECK_EQ_I(lb_optimizer_steps(a), lb_optimizer_steps(b));
    for (int i = 0; i < lb_optimizer_count(a); i++)
        if (check_fails(equal(lb_optimizer_state(a, i, NULL, 0),
                              lb_optimizer_state(b, i, NULL, 0))))
            fprintf(stderr, "%s: state %d\n", what, i);
}

static void trains(lb_ctx *cx, const training *row, bool check)
{
    training a = *row, b = *row;
    lb_array *p[PARAMS + 2], *q[PARAMS + 2], *want[PARAMS + 1],
        *got[PARAMS + 1];
    lb_enter(cx);
    lb_compiled *f = lb_compile_many(cx, step, PARAMS + 1, &b,
                                     &(lb_compile_options){.check = check});
    const int calls = STEPS / (row->at_once ? row->at_once : 1);
    bool ok = begin(cx, &a, p) && begin(cx, &b, q) && f;
    for (int k = 0; k < calls && ok; k++) {
        data_of(cx, k, &a, p);
        data_of(cx, k, &b, q);
        ok = step(cx, p, PARAMS + 2, want, PARAMS + 1, &a) &&
             lb_run_many(f, q, PARAMS + 2, got);
        for (int i = 0; i <= PARAMS && ok; i++) {
            ok = equal(got[i], want[i]);
            if (!ok) fprintf(stderr, "step %d, result %d\n", k, i);
        }
        memcpy(p, want + 1, PARAMS * sizeof *p);
        memcpy(q, got + 1, PARAMS * sizeof *q);
    }
    if (check_fails(ok)) fprintf(stderr, "%s: %s\n", row->name, lb_error(cx));
    lb_clear(cx);
    same_state(a.o, b.o, row->name);
    CHECK_EQ_I(lb_optimizer_steps(b.o), STEPS);
    const lb_compiled_stats s = lb_compiled_stats_of(f);
    CHECK_EQ_I(s.traces, check ? calls : 1);
    CHECK_EQ_I(s.runs, calls);
    lb_compiled_close(f);
    lb_optimizer_close(a.o);
    lb_optimizer_close(b.o);
    lb_leave(cx);
}

#define ADAMW .c.method = LB_ADAMW, .c.decay = 0.1
static const training rows[] = {
    {.name = "sgd", .c.method = LB_SGD},
    {.name = "sgd with decay and clipping", .c.decay = 0.1, .c.clip_norm = 0.5},
    {.name = "momentum", .c.momentum = 0.9},
    {.name = "nesterov", .c.momentum = 0.9, .c.nesterov = true},
    {.name = "adam", .c.method = LB_ADAM},
    {.name = "adam with decay", .c.method = LB_ADAM, .c.decay = 0.1},
    {.name = "adamw", ADAMW},
    {.name = "adamw with warmup and a schedule",
     ADAMW,
     .c.schedule = LB_COSINE,
     .c.warmup = 4,
     .c.steps = 15,
     .c.least = 0.1},
    {.name = "clipping", .c.method = LB_ADAM, .c.clip_norm = 1e-3},
    {.name = "no clipping", .c.method = LB_ADAM, .c.clip_norm = 1e3},
    {.name = "clipping of an infinite norm", .c.clip_norm = 1, .scale = 1e25},
    {.name = "adam in 8 bits", .c.method = LB_ADAM, .state = "dynamic8"},
    {.name = "adamw in 8 bits, clipping",
     ADAMW,
     .c.clip_norm = 0.1,
     .state = "dynamic8"},
    {.name = "momentum in 8 bits", .c.momentum = 0.9, .state = "dynamic8"},
    {.name = "two steps at once", ADAMW, .at_once = 2},
    {.name = "two steps in 8 bits, schedule, clipping",
     ADAMW,
     .at_once = 2,
     .state = "dynamic8",
     .c.schedule = LB_COSINE,
     .c.warmup = 4,
     .c.steps = 15,
     .c.clip_norm = 0.1},
    {.name = "bf16", ADAMW, .dtype = LB_BF16},
    {.name = "f64", ADAMW, .dtype = LB_F64, .c.clip_norm = 0.1},
    {.name = "f16 with momentum", .dtype = LB_F16, .c.momentum = 0.5},
    {.name = "through nf4", ADAMW, .quant = "nf4"},
    {.name = "through int8, bf16", ADAMW, .quant = "int8", .dtype = LB_BF16},
    {.name = "through ternary", .c.momentum = 0.9, .quant = "ternary"},
};

/* ---- states -------------------------------------------------------------- */

/* The state may be restored between runs; other formats of it, or another
 * optimizer, are not the same program. */
static void restores(lb_ctx *cx)
{
    training t = {.name = "restored", .c.method = LB_ADAM}, u = t;
    lb_array *p[PARAMS + 2], *out[PARAMS + 1], *again[PARAMS + 1],
        *state[2 * PARAMS + 1];
    CHECK(begin(cx, &t, p));
    data_of(cx, 0, &t, p);
    lb_compiled *f = lb_compile_many(cx, step, PARAMS + 1, &t,
                                     &(lb_compile_options){.check = true});
    for (int i = 0; i < lb_optimizer_count(t.o); i++)
        state[i] = lb_optimizer_state(t.o, i, NULL, 0);
    CHECK(lb_run_many(f, p, PARAMS + 2, out));
    CHECK(lb_run_many(f, p, PARAMS + 2, again));
    CHECK_EQ_I(lb_optimizer_steps(t.o), 2);
    CHECK(lb_optimizer_restore(t.o, state, 2 * PARAMS + 1));
    CHECK_EQ_I(lb_optimizer_steps(t.o), 0);
    CHECK(lb_run_many(f, p, PARAMS + 2, again));
    for (int i = 0; i <= PARAMS; i++)
        CHECK(equal(again[i], out[i]));
    lb_optimizer *first = t.o;
    CHECK(begin(cx, &u, p));
    t.o = u.o;
    REFUSED(lb_run_many(f, p, PARAMS + 2, out), LB_E_ARG, "differs from call");
    CHECK_EQ_I(lb_optimizer_steps(u.o), 0);
    lb_compiled_close(f);
    lb_optimizer_close(u.o);
    lb_optimizer_close(first);
}

/* A bad index is only found when its elements are read. */
static bool fails_late(lb_ctx *cx, lb_array *const *args, int n, lb_array **out,
                       int n_out, void *user)
{
    if (!step(cx, args, n - 1, out, n_out, user)) return false;
    out[0] = lb_bind(cx, lb_find_primitive(cx, "fails"), 1, &out[0], NULL);
    return out[0] != NULL;
}

static bool fails_now;

static bool same_infer(lb_ctx *cx, lb_call *c)
{
    (void)cx;
    c->shape = c->in[0]->shape;
    c->dtype = c->in[0]->dtype;
    return true;
}

static lb_verdict fails_move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    if (fails_now) {
        lb_fail(cx, LB_E_ARG, "fails: as the test wants it");
        return LB_FAILED;
    }
    *out = lb_view(cx, c->in[0]);
    return *out ? LB_DONE : LB_FAILED;
}

static const lb_prim fails_prim = {
    .struct_size = sizeof(lb_prim),
    .name = "fails",
    .n_in = 1,
    .infer = same_infer,
    .move = fails_move,
};

static void failing(lb_ctx *cx)
{
    training t = {.name = "fails", ADAMW, .c.clip_norm = 1}, u = t;
    lb_array *p[PARAMS + 3], *q[PARAMS + 3], *out[PARAMS + 1];
    CHECK(lb_add_primitive(cx, &fails_prim));
    CHECK(begin(cx, &t, p) && begin(cx, &u, q));
    data_of(cx, 0, &t, p);
    p[PARAMS + 2] = p[0];
    lb_compiled *f = lb_compile_many(cx, fails_late, PARAMS + 1, &t, NULL);
    CHECK(lb_run_many(f, p, PARAMS + 3, out));
    CHECK(step(cx, p, PARAMS + 2, out, PARAMS + 1, &u));
    for (int i = 0; i < 3; i++) {
        fails_now = true;
        REFUSED(lb_run_many(f, p, PARAMS + 3, out), LB_E_ARG, "as the test");
        for (int k = 0; k <= PARAMS; k++)
            CHECK(!out[k]);
        fails_now = false;
    }
    CHECK_EQ_I(lb_optimizer_steps(t.o), 1);
    same_state(t.o, u.o, "failed");
    CHECK(lb_run_many(f, p, PARAMS + 3, out));
    CHECK_EQ_I(lb_optimizer_steps(t.o), 2);
    lb_compiled_close(f);
    lb_optimizer_close(t.o);
    lb_optimizer_close(u.o);
}

/* What only lb_optimizer_step may do while a function is compiled. */
static lb_array *misuses(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    training *t = user;
    lb_array *w = a[0], *state[1] = {a[0]};
    (void)n;
    switch (t->at_once) {
    case 0:
        t->o = lb_optimizer_open(cx, NULL, &w, 1);
        return t->o ? a[0] : NULL;
    case 1:
        return lb_optimizer_state(t->o, 1, NULL, 0);
    default:
        return lb_optimizer_restore(t->o, state, 1) ? a[0] : NULL;
    }
}

static void misused(lb_ctx *cx)
{
    static const char *const say[] = {"opened", "state is read", "restored"};
    training t = {.name = "misused", .c.method = LB_ADAM}, u = {.name = "new"};
    lb_array *p[PARAMS + 2];
    CHECK(begin(cx, &t, p));
    for (int k = 0; k < 3; k++) {
        training *of = k ? &t : &u;
        of->at_once = k;
        lb_compiled *f = lb_compile(cx, misuses, of, NULL);
        REFUSED(lb_run(f, p, 1), LB_E_UNSUPPORTED, say[k]);
        lb_compiled_close(f);
    }
    lb_optimizer_close(t.o);
}

/* ---- gradients ----------------------------------------------------------- */

static lb_array *cube(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *y = lb_mul(cx, lb_tanh(cx, a[0]), lb_integer_pow(cx, a[0], 3));
    return lb_reduce_sum(cx, y, NULL);
}

/* The squared norm of a gradient: its own gradient needs the second. */
static lb_array *norm(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    lb_array *g;
    if (!lb_value_and_grad(cx, cube, a, n, user, &g, 1)) return NULL;
    return lb_reduce_sum(cx, lb_mul(cx, g, g), NULL);
}

static bool second(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                   int n_out, void *user)
{
    (void)n_out;
    out[0] = lb_value_and_grad(cx, norm, a, n, user, &out[1], 1);
    lb_tape *t = lb_tape_open(cx);
    bool ok = t && lb_tape_watch(t, a[0]);
    lb_array *y = ok ? cube(cx, a, n, user) : NULL;
    ok = y && lb_tape_grad(t, y, NULL, a, 1, &out[2]);
    lb_tape_close(t);
    return ok && out[0];
}

static void gradients(lb_ctx *cx)
{
    lb_array *x = lb_random_normal(cx, (lb_key){3, 4}, LB_F32, LB_SHAPE(7, 9));
    lb_array *want[3], *got[3];
    lb_compiled *f = lb_compile_many(cx, second, 3, NULL,
                                     &(lb_compile_options){.check = true});
    CHECK(second(cx, &x, 1, want, 3, NULL));
    for (int i = 0; i < 2; i++) {
        CHECK(lb_run_many(f, &x, 1, got));
        for (int k = 0; k < 3; k++)
            CHECK(equal(got[k], want[k]));
    }
    CHECK_EQ_I(lb_compiled_stats_of(f).eager, 0);
    lb_compiled_close(f);
}

int main(void)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        lb_ctx *cx = lb_open(&(lb_options){.threads = threads});
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            trains(cx, &rows[i], i % 3 == 0);
        restores(cx);
        failing(cx);
        misused(cx);
        gradients(cx);
        CHECK_EQ_S(lb_error(cx), "");
        lb_close(cx);
    }
    return check_report("training steps as compiled functions");
}
