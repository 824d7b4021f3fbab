/* test_optimizer.c - optimizers against their formulas in double precision,
 * schedules, clipping, 8-bit states, and restoring states. */
#include "check.h"
#include "lowbit_ext.h"

enum { N = 300, STEPS = 20 };

/* ---- the formulas -------------------------------------------------------- */

typedef struct model {
    double w[2][N], m[2][N], s[2][N];
} model;

/* The gradient of a quadratic with a different curvature for each element. */
static double slope(int p, int i, double w)
{
    return (1 + i % 7) * (w - 0.25 * p) + 0.1 * sin(i);
}

static void model_step(model *x, const lb_optimizer_config *c, int t)
{
    double g[2][N], norm = 0;
    const double rate = lb_schedule_rate(c, t);
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < N; i++) {
            g[p][i] = slope(p, i, x->w[p][i]);
            norm += g[p][i] * g[p][i];
        }
    const double clip =
        c->clip_norm > 0 ? fmin(1, c->clip_norm / sqrt(norm)) : 1;
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < N; i++) {
            double *w = &x->w[p][i], *m = &x->m[p][i], *s = &x->s[p][i];
            double d = g[p][i] * clip, by;
            if (c->method != LB_ADAMW) d += c->decay * *w;
            if (c->method == LB_SGD) {
                *m = c->momentum * *m + d;
                by = c->nesterov ? d + c->momentum * *m : *m;
            } else {
                *m = c->beta1 * *m + (1 - c->beta1) * d;
                *s = c->beta2 * *s + (1 - c->beta2) * d * d;
                by = *m / (1 - pow(c->beta1, t + 1)) /
                     (sqrt(*s / (1 - pow(c->beta2, t + 1))) + c->eps);
            }
            if (c->method == LB_ADAMW) by += c->decay * *w;
            *w -= rate * by;
        }
}

/* ---- the library --------------------------------------------------------- */

static lb_array *slopes(lb_ctx *cx, int p, lb_array *w)
{
    float g[N];
    lb_array *x = lb_convert(cx, w, LB_F32);
    const float *v = lb_data(x);
    for (int i = 0; i < N; i++)
        g[i] = (float)slope(p, i, (double)v[i]);
    return lb_convert(cx, lb_from(cx, LB_F32, lb_shape_of(w), g),
                      lb_dtype_of(w));
}

static bool one_step(lb_ctx *cx, lb_optimizer *o, lb_array **w)
{
    lb_array *g[2] = {slopes(cx, 0, w[0]), slopes(cx, 1, w[1])};
    return lb_optimizer_step(o, w, g);
}

static void start(lb_ctx *cx, lb_dtype d, model *x, lb_array **w)
{
    *x = (model){{{0}}, {{0}}, {{0}}};
    for (int p = 0; p < 2; p++) {
        float v[N];
        for (int i = 0; i < N; i++)
            x->w[p][i] = (double)(v[i] = (float)(i % 16) / 16 - 0.5f);
        w[p] = lb_from(cx, LB_F32, p ? LB_SHAPE(3, 100) : LB_SHAPE(N), v);
        w[p] = lb_convert(cx, w[p], d);
    }
}

static double off_by(lb_ctx *cx, lb_array *const *w, const model *x)
{
    double off = 0;
    for (int p = 0; p < 2; p++) {
        float v[N];
        CHECK(lb_read(cx, lb_convert(cx, w[p], LB_F32), v, sizeof v));
        for (int i = 0; i < N; i++) {
            const double d = fabs((double)v[i] - x->w[p][i]);
            if (isnan(d)) return d;
            if (d > off) off = d;
        }
    }
    return off;
}

static void formulas(lb_ctx *cx)
{
    const lb_quant_config bytes = {.format = "dynamic8"};
    const lb_quant_config scaled = {.format = "int8"};
    const struct {
        lb_optimizer_config c;
        lb_dtype dtype;
        double off;
    } of[] = {
        {{.method = LB_SGD, .rate = 0.05}, LB_F32, 1e-6},
        {{.method = LB_SGD, .rate = 0.02, .momentum = 0.9, .decay = 0.1},
         LB_F32,
         1e-6},
        {{.rate = 0.02, .momentum = 0.9, .nesterov = true}, LB_F64, 1e-6},
        {{.method = LB_ADAM, .rate = 0.01, .decay = 0.1}, LB_F32, 2e-5},
        {{.method = LB_ADAM, .rate = 0.01, .beta1 = 0.8, .beta2 = 0.9},
         LB_F64,
         2e-5},
        {{.method = LB_ADAMW, .rate = 0.01, .decay = 0.1}, LB_F32, 2e-5},
        {{.method = LB_ADAMW,
          .rate = 0.02,
          .clip_norm = 0.5,
          .schedule = LB_COSINE,
          .warmup = 3,
          .steps = 15,
          .least = 0.1},
         LB_F32,
         2e-5},
        {{.method = LB_SGD, .rate = 0.05, .clip_norm = 1}, LB_F32, 1e-6},
        {{.method = LB_ADAM, .rate = 0.01}, LB_BF16, 4e-2},
        /* 8 bits, over a distance of 0.2 */
        {{.method = LB_ADAM, .rate = 0.01, .state = &bytes}, LB_F32, 4e-2},
        {{.method = LB_SGD, .rate = 0.02, .momentum = 0.9, .state = &scaled},
         LB_F32,
         2e-2},
    };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        model x;
        lb_array *w[2];
        lb_optimizer_config c = of[k].c;
        lb_enter(cx);
        start(cx, of[k].dtype, &x, w);
        lb_optimizer *o = lb_optimizer_open(cx, &c, w, 2);
        CHECK(o != NULL);
        if (c.beta1 == 0) c.beta1 = 0.9, c.beta2 = 0.999;
        c.eps = 1e-8;
        for (int t = 0; t < STEPS; t++) {
            CHECK(one_step(cx, o, w));
            model_step(&x, &c, t);
        }
        CHECK_EQ_I(lb_optimizer_steps(o), STEPS);
        CHECK(lb_dtype_of(w[0]) == of[k].dtype);
        const double off = off_by(cx, w, &x);
        if (check_fails(off <= of[k].off))
            fprintf(stderr, "config %zu: off by %g\n", k, off);
        lb_optimizer_close(o);
        lb_leave(cx);
    }
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
}

static void schedules(void)
{
    lb_optimizer_config c = {.rate = 2, .warmup = 4};
    CHECK(lb_schedule_rate(&c, 0) == 0.5 && lb_schedule_rate(&c, 3) == 2);
    CHECK(lb_schedule_rate(&c, 1000000) == 2);
    c.schedule = LB_COSINE;
    c.steps = 14;
    c.least = 0.25;
    CHECK(lb_schedule_rate(&c, 1) == 1 && lb_schedule_rate(&c, 4) == 2);
    CHECK_NEAR(lb_schedule_rate(&c, 9), 1.25, 1e-12);
    CHECK_NEAR(lb_schedule_rate(&c, 14), 0.5, 1e-12);
    CHECK(lb_schedule_rate(&c, 99) == lb_schedule_rate(&c, 14));
    CHECK(isnan(lb_schedule_rate(NULL, 0)));
}

/* Training continued from its state ends with the same bits. */
static void resumed(lb_ctx *cx)
{
    const lb_quant_config bytes = {.format = "dynamic8"};
    const lb_optimizer_config of[] = {
        {.method = LB_SGD, .momentum = 0.9},
        {.method = LB_ADAMW, .decay = 0.1, .clip_norm = 1},
        {.method = LB_ADAM, .state = &bytes}};
    for (int k = 0; k < 3; k++) {
        model x;
        lb_array *w[2], *v[2], *state[8];
        char name[64];
        start(cx, LB_F32, &x, w);
        lb_optimizer *o = lb_optimizer_open(cx, &of[k], w, 2), *p;
        for (int t = 0; t < 7; t++)
            CHECK(one_step(cx, o, w));
        v[0] = w[0];
        v[1] = w[1];
        const int n = lb_optimizer_count(o);
        CHECK_EQ_I(n, k ? 5 : 3);
        for (int i = 0; i < n; i++)
            CHECK((state[i] = lb_optimizer_state(o, i, name, sizeof name)));
        CHECK_EQ_S(name, k == 0   ? "optimizer.1.momentum"
                         : k == 1 ? "optimizer.1.square"
                                  : "optimizer.1.root");
        CHECK_EQ_S(lb_format_of(state[n - 1]), k < 2 ? "dense" : "dynamic8");
        p = lb_optimizer_open(cx, &of[k], w, 2);
        CHECK(lb_optimizer_restore(p, state, n));
        CHECK_EQ_I(lb_optimizer_steps(p), 7);
        for (int t = 0; t < 5; t++)
            CHECK(one_step(cx, o, w) && one_step(cx, p, v));
        for (int i = 0; i < 2; i++)
            CHECK(!memcmp(lb_data(w[i]), lb_data(v[i]), N * sizeof(float)));
        CHECK(!lb_optimizer_restore(p, state, n - 1));
        CHECK(strstr(lb_error(cx), "for a state of") != NULL);
        lb_clear(cx);
        state[1] = lb_convert(cx, state[1], LB_BF16);
        CHECK(!lb_optimizer_restore(p, state, n));
        CHECK(strstr(lb_error(cx), "array 1 of the state is") != NULL);
        lb_clear(cx);
        lb_optimizer_close(o);
        lb_optimizer_close(p);
    }
}

#define REFUSED(CALL, WORDS)                                                   \
    do {                                                                       \
        CHECK(!(CALL));                                                        \
        CHECK(strstr(lb_error(cx), WORDS) != NULL);                            \
        lb_clear(cx);                                                          \
    } while (0)
#define OPEN(...)                                                              \
    lb_optimizer_open(cx, &(lb_optimizer_config){__VA_ARGS__}, &w, 1)

static void errors(lb_ctx *cx)
{
    lb_array *w = lb_zeros(cx, LB_F32, LB_SHAPE(3)), *was = w;
    lb_array *i = lb_zeros(cx, LB_I32, LB_SHAPE(3));
    lb_array *row = lb_zeros(cx, LB_F32, LB_SHAPE(1));
    REFUSED(OPEN(.rate = -1), "rate is -1");
    REFUSED(OPEN(.momentum = 1), "momentum is 1");
    REFUSED(OPEN(.beta2 = NAN), "beta2 is nan");
    REFUSED(OPEN(.method = (lb_method)7), "method 7");
    REFUSED(OPEN(.schedule = LB_COSINE), "steps 0");
    REFUSED(OPEN(.warmup = -3), "warmup is -3");
    REFUSED(OPEN(.struct_size = 3), "struct_size is 3");
    REFUSED(OPEN(.method = LB_ADAM, .state = &(lb_quant_config){.format = "x"}),
            "unknown format \"x\"");
    REFUSED(lb_optimizer_open(cx, NULL, &i, 1), "parameter 0 is i32(3)");
    REFUSED(lb_optimizer_open(cx, NULL, NULL, 1), "parameters is 0");
    CHECK(!lb_optimizer_open(NULL, NULL, &w, 1));
    lb_optimizer *o = OPEN(.method = LB_ADAM);
    REFUSED(lb_optimizer_step(o, &w, &row), "its gradient f32(1)");
    lb_array *other = lb_zeros(cx, LB_F64, LB_SHAPE(3));
    REFUSED(lb_optimizer_step(o, &other, &other),
            "parameter 0 is f64(3), its gradient f64(3), its state "
            "f32(3)");
    REFUSED(lb_optimizer_step(o, &row, &row), "its state f32(3)");
    REFUSED(lb_optimizer_step(o, &w, &(lb_array *){NULL}),
            "gradient 0 is NULL");
    REFUSED(lb_optimizer_step(o, NULL, &w), "parameters is NULL");
    REFUSED(lb_optimizer_state(o, 3, NULL, 0), "array 3 of 3");
    CHECK(w == was && lb_optimizer_steps(o) == 0);
    lb_optimizer_close(o);
    lb_optimizer_close(NULL);
    CHECK(!lb_optimizer_step(NULL, &w, &w) && lb_optimizer_steps(NULL) == -1);
    /* Values that cannot be quantized change nothing. */
    const lb_quant_config bytes = {.format = "dynamic8"};
    lb_array *bad = lb_full(cx, LB_F32, LB_SHAPE(3), INFINITY);
    o = OPEN(.method = LB_ADAM, .state = &bytes);
    REFUSED(lb_optimizer_step(o, &w, &bad), "inf");
    CHECK(w == was && lb_optimizer_steps(o) == 0);
    lb_optimizer_close(o);
}

/* A gradient whose squared norm overflows f32 is clipped like any other; an
 * infinite or NaN gradient is not hidden. */
static void long_gradients(lb_ctx *cx)
{
    const float size[] = {1e-30f, 1, 1e19f, 1e25f, 1e38f};
    for (size_t k = 0; k < sizeof size / sizeof *size; k++)
        for (int two = 0; two < 2; two++) {
            lb_array *w[] = {lb_zeros(cx, LB_F32, LB_SHAPE(4)),
                             lb_zeros(cx, LB_BF16, LB_SHAPE(12))};
            lb_array *g[] = {
                lb_full(cx, LB_F32, LB_SHAPE(4), (double)size[k]),
                lb_full(cx, LB_BF16, LB_SHAPE(12), (double)size[k])};
            const lb_optimizer_config c = {.rate = 1, .clip_norm = 2};
            lb_optimizer *o = lb_optimizer_open(cx, &c, w, 1 + two);
            CHECK(lb_optimizer_step(o, w, g));
            const double norm = (two ? 4 : 2) * (double)size[k];
            const double want = -(double)size[k] * fmin(1, 2 / norm);
            const double got = lb_item(cx, lb_mean(cx, w[0], NULL, false));
            CHECK_NEAR(got, want, (two ? 4e-3 : 1e-6) * fabs(want));
            lb_optimizer_close(o);
        }
    const double bad[] = {(double)INFINITY, (double)NAN};
    for (int k = 0; k < 2; k++) {
        lb_array *w = lb_zeros(cx, LB_F32, LB_SHAPE(4));
        lb_array *g = lb_full(cx, LB_F32, LB_SHAPE(4), bad[k]);
        lb_optimizer *o = OPEN(.clip_norm = 1);
        CHECK(lb_optimizer_step(o, &w, &g));
        CHECK(isnan(lb_item(cx, lb_reduce_sum(cx, w, NULL))));
        lb_optimizer_close(o);
    }
    CHECK_EQ_S(lb_error(cx), "");
}

/* Parameters with no or one element, in f32 or 8 bits: two steps of Adam along
 * a constant gradient are twice the rate. */
static void few_elements(lb_ctx *cx)
{
    static const lb_quant_config in8 = {.format = "dynamic8"};
    const lb_shape shape[] = {
        {0}, {1, {1}}, {1, {0}}, {2, {0, 5}}, {2, {3, 0}}};
    for (size_t k = 0; k < sizeof shape / sizeof *shape; k++)
        for (int how = 0; how < 4; how++) {
            const lb_dtype d = how & 1 ? LB_BF16 : LB_F32;
            lb_array *w = lb_full(cx, d, shape[k], 2);
            lb_array *g = lb_full(cx, d, shape[k], 1);
            lb_optimizer *o =
                OPEN(.method = LB_ADAM, .rate = 0.1, .clip_norm = 3,
                     .state = how & 2 ? &in8 : NULL);
            CHECK(lb_optimizer_step(o, &w, &g) && lb_optimizer_step(o, &w, &g));
            CHECK(lb_dtype_of(w) == d && lb_rank(w) == shape[k].rank);
            if (lb_size(w) == 1)
                CHECK_NEAR(lb_item(cx, w), 1.8, how & 1 ? 2e-2 : 1e-5);
            lb_optimizer_close(o);
        }
    CHECK_EQ_S(lb_error(cx), "");
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    CHECK(cx != NULL);
    formulas(cx);
    schedules();
    resumed(cx);
    errors(cx);
    long_gradients(cx);
    few_elements(cx);
    lb_close(cx);
    return check_report("optimizer");
}
