/* test_tree.c - trees of parameters: names and order, quantizing with a report,
 * gradients by name, optimizers, compiled functions, failed allocations. */
/* ctest: skip-tsan */
#include "check.h"
#include "lowbit.h"
#include "meter.h"
#include "refused.h"

static lb_ctx *cx;

static lb_array *values(uint64_t seed, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){seed, 0}, LB_F32, shape);
}

/* ---- names --------------------------------------------------------------- */

static void check_names(void)
{
    enum { MANY = 1000 };
    char name[32];
    lb_tree *t = lb_tree_open(cx);
    CHECK_EQ_I(lb_tree_count(t), 0);
    CHECK(!lb_tree_find(t, "a") && !lb_error_status(cx));
    REFUSED(lb_tree_get(t, "a"), LB_E_ARG, "no array 'a': it is empty");
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "layers.%d.weight", i);
        lb_enter(cx); /* the tree's references outlive the scope */
        CHECK(lb_tree_set(t, name, lb_full(cx, LB_F32, LB_SHAPE(2), i)));
        lb_leave(cx);
    }
    CHECK_EQ_I(lb_tree_count(t), MANY);
    /* lb_full stores one element. */
    CHECK_EQ_I(lb_tree_nbytes(t), MANY * sizeof(float));
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "layers.%d.weight", i);
        CHECK_EQ_S(lb_tree_name(t, i), name);
        CHECK(lb_tree_at(t, i) && lb_tree_get(t, name) == lb_tree_at(t, i));
        CHECK_NEAR(lb_item(cx, lb_reduce_max(cx, lb_tree_at(t, i), NULL)), i,
                   0);
    }
    /* Replaced in place, removed in the middle, appended at the end. */
    CHECK(
        lb_tree_set(t, "layers.3.weight", lb_full(cx, LB_I8, LB_SHAPE(1), 7)));
    CHECK_EQ_I(lb_tree_count(t), MANY);
    CHECK_EQ_S(lb_tree_name(t, 3), "layers.3.weight");
    CHECK_EQ_I(lb_item_int(cx, lb_tree_at(t, 3)), 7);
    for (int i = 0; i < MANY; i += 2) {
        snprintf(name, sizeof name, "layers.%d.weight", i);
        CHECK(lb_tree_has(t, name) && lb_tree_remove(t, name));
        CHECK(!lb_tree_has(t, name));
    }
    CHECK_EQ_I(lb_tree_count(t), MANY / 2);
    CHECK_EQ_S(lb_tree_name(t, 0), "layers.1.weight");
    CHECK_EQ_S(lb_tree_name(t, MANY / 2 - 1), "layers.999.weight");
    CHECK_EQ_I(lb_item_int(cx, lb_tree_get(t, "layers.3.weight")), 7);
    REFUSED(lb_tree_remove(t, "layers.4.weight"), LB_E_ARG,
            "'layers.4.weight' (500 arrays, e.g. 'layers.1.weight')");
    CHECK(!lb_tree_name(t, -1) && !lb_tree_at(t, MANY / 2));
    REFUSED(lb_tree_set(t, "x", NULL), LB_E_NULL, "'x' is NULL");
    REFUSED(lb_tree_set(t, NULL, lb_tree_at(t, 0)), LB_E_NULL,
            "the name is NULL");
    lb_tree_clear(t);
    CHECK_EQ_I(lb_tree_count(t), 0);
    CHECK(lb_tree_set(t, "", lb_zeros(cx, LB_F32, LB_SHAPE(1))));
    CHECK(lb_tree_has(t, ""));
    lb_tree_close(t);
    lb_tree_close(NULL);
    CHECK(!lb_tree_open(NULL) && !lb_tree_copy(NULL));
    CHECK(!lb_tree_set(NULL, "x", NULL) && !lb_tree_count(NULL));
}

static void check_lists(void)
{
    lb_array *list[2], *other[2] = {NULL, NULL};
    lb_tree *t = lb_tree_open(cx);
    lb_tree_set(t, "a", values(1, LB_SHAPE(3)));
    lb_tree_set(t, "b", values(2, LB_SHAPE(4)));
    lb_tree *u = lb_tree_copy(t);
    CHECK(lb_tree_arrays(t, list, 2));
    CHECK(list[0] == lb_tree_get(u, "a") && list[1] == lb_tree_get(u, "b"));
    REFUSED(lb_tree_arrays(t, list, 3), LB_E_ARG, "a list of 3 for 2 arrays");
    other[0] = values(3, LB_SHAPE(5));
    REFUSED(lb_tree_replace(t, other, 2), LB_E_NULL, "'b' is NULL");
    CHECK(lb_tree_at(t, 0) == list[0]); /* none was replaced */
    other[1] = list[0];
    CHECK(lb_tree_replace(t, other, 2));
    CHECK(lb_tree_at(t, 0) == other[0] && lb_tree_at(t, 1) == list[0]);
    CHECK(lb_tree_at(u, 0) == list[0] && lb_tree_at(u, 1) == list[1]);
    lb_tree_close(t);
    lb_tree_close(u);
}

/* ---- quantizing ---------------------------------------------------------- */

static const lb_quant_config nf4 = {.format = "nf4", .block_size = 32};
static const lb_quant_config q4_0 = {.format = "q4_0"};

static const lb_quant_config *weights_only(const char *name, lb_array *a,
                                           void *user)
{
    (void)user;
    CHECK(a != NULL);
    return strstr(name, "weight") ? &nf4 : NULL;
}

static const lb_quant_config *all_q4_0(const char *name, lb_array *a,
                                       void *user)
{
    (void)name, (void)a, (void)user;
    return &q4_0;
}

/* |b - a| / |a|, in double precision. */
static double error_of(lb_array *a, lb_array *b)
{
    double d = 0, s = 0;
    lb_array *x = lb_materialize(cx, a), *y = lb_materialize(cx, b);
    const float *p = lb_data(x), *q = lb_data(y);
    for (int64_t i = 0; p && q && i < lb_size(a); i++) {
        d += ((double)q[i] - (double)p[i]) * ((double)q[i] - (double)p[i]);
        s += (double)p[i] * (double)p[i];
    }
    return sqrt(d / s);
}

static void check_quantize(void)
{
    lb_tree_change report[3];
    lb_array *w = values(4, LB_SHAPE(64, 96)), *b = values(5, LB_SHAPE(64));
    lb_tree *t = lb_tree_open(cx);
    lb_tree_set(t, "up.weight", w);
    lb_tree_set(t, "up.bias", b);
    lb_tree_set(t, "steps", lb_full_int(cx, LB_I64, LB_SHAPE(1), 3));
    lb_tree *u = lb_tree_copy(t);
    CHECK(lb_tree_quantize(t, weights_only, NULL, report));
    lb_array *q = lb_tree_get(t, "up.weight");
    CHECK_EQ_S(lb_format_of(q), "nf4");
    CHECK(lb_tree_get(t, "up.bias") == b);
    CHECK(lb_tree_get(u, "up.weight") == w); /* the copy is independent */
    CHECK_EQ_S(report[0].name, "up.weight");
    CHECK_EQ_S(report[0].before, "dense");
    CHECK_EQ_S(report[0].after, "nf4");
    CHECK_EQ_I(report[0].bytes_before, 64 * 96 * 4);
    CHECK_EQ_I(report[0].bytes_after, lb_nbytes(q));
    CHECK(!report[0].kept && report[0].nrmse > 0.05);
    CHECK_NEAR(report[0].nrmse, error_of(w, q), 1e-6);
    CHECK_EQ_S(report[1].name, "up.bias");
    CHECK_EQ_S(report[1].after, "dense");
    CHECK(report[1].kept && report[1].nrmse == 0);
    CHECK_EQ_I(report[2].bytes_after, 8);
    lb_tree_close(t);

    /* Errors name the array; those before it are done. */
    REFUSED(lb_tree_quantize(u, NULL, NULL, NULL), LB_E_NULL,
            "chooses is NULL");
    REFUSED(lb_tree_quantize(u, all_q4_0, NULL, report), LB_E_DTYPE,
            "'steps': quantize");
    CHECK_EQ_S(lb_format_of(lb_tree_get(u, "up.bias")), "q4_0");
    REFUSED(lb_tree_quantize_at(u, 3, NULL, NULL), LB_E_ARG,
            "array 3 of 3 does not exist");
    lb_tree_close(u);

    /* More elements than are compared at a time, in f64. */
    t = lb_tree_open(cx);
    w = lb_convert(cx, values(6, LB_SHAPE(1030, 4096)), LB_F64);
    lb_tree_set(t, "w", w);
    CHECK(lb_tree_quantize_at(t, 0, &nf4, report));
    lb_array *d = lb_sub(cx, w, lb_tree_at(t, 0));
    const double sums[] = {
        lb_item(cx, lb_reduce_sum(cx, lb_mul(cx, d, d), NULL)),
        lb_item(cx, lb_reduce_sum(cx, lb_mul(cx, w, w), NULL))};
    CHECK_NEAR(report[0].nrmse, sqrt(sums[0] / sums[1]), 1e-6);
    lb_tree_close(t);
}

/* ---- gradients and training ---------------------------------------------- */

enum { IN = 8, OUT = 4, ROWS = 16 };

/* A layer with quantized weights; args: x, y */
static lb_array *loss(lb_ctx *c, lb_tree *p, lb_array *const *args, int n,
                      void *user)
{
    CHECK_EQ_I(n, 2);
    if (user && !lb_tree_quantize(p, weights_only, NULL, NULL)) return NULL;
    lb_array *y = lb_matmul(c, args[0], lb_tree_get(p, "weight"));
    y = lb_add(c, y, lb_tree_get(p, "bias"));
    return lb_squared_error(c, y, args[1]);
}

/* The same as a function of a list. */
static lb_array *flat_loss(lb_ctx *c, lb_array *const *args, int n, void *user)
{
    lb_array *w = args[0];
    (void)n;
    if (user) w = lb_quantize(c, w, &nf4);
    lb_array *y = lb_add(c, lb_matmul(c, args[2], w), args[1]);
    return lb_squared_error(c, y, args[3]);
}

static lb_tree *make_params(void)
{
    lb_tree *t = lb_tree_open(cx);
    lb_tree_set(t, "weight", values(7, LB_SHAPE(IN, OUT)));
    lb_tree_set(t, "count", lb_full_int(cx, LB_I32, LB_SHAPE(1), 5));
    lb_tree_set(t, "bias", values(8, LB_SHAPE(OUT)));
    return t;
}

static bool same(lb_array *a, lb_array *b)
{
    const void *p = lb_data(lb_materialize(cx, a));
    const void *q = lb_data(lb_materialize(cx, b));
    return p && q && lb_size(a) == lb_size(b) &&
           memcmp(p, q, (size_t)lb_size(a) * lb_dtype_size(lb_dtype_of(a))) ==
               0;
}

static void check_gradients(void)
{
    lb_array *data[] = {values(9, LB_SHAPE(ROWS, IN)),
                        values(10, LB_SHAPE(ROWS, OUT))};
    lb_tree *p = make_params(), *g = lb_tree_open(cx);
    lb_tree_set(g, "stale", data[0]);
    for (int quantized = 0; quantized < 2; quantized++) {
        int flag = 0;
        void *user = quantized ? &flag : NULL;
        lb_array *list[] = {lb_tree_get(p, "weight"), lb_tree_get(p, "bias"),
                            data[0], data[1]};
        lb_array *want[2];
        lb_array *l = lb_tree_value_and_grad(p, loss, data, 2, user, g);
        lb_array *m = lb_value_and_grad(cx, flat_loss, list, 4, user, want, 2);
        CHECK(l && m && same(l, m));
        CHECK_EQ_I(lb_tree_count(g), 2); /* not of the count */
        CHECK(same(lb_tree_get(g, "weight"), want[0]));
        CHECK(same(lb_tree_get(g, "bias"), want[1]));
        CHECK_EQ_S(lb_format_of(lb_tree_get(p, "weight")), "dense");
    }
    REFUSED(lb_tree_value_and_grad(p, loss, data, 2, NULL, p), LB_E_ARG,
            "is that of the parameters");
    REFUSED(lb_tree_value_and_grad(p, NULL, data, 2, NULL, g), LB_E_NULL,
            "the function is NULL");
    data[1] = NULL;
    REFUSED(lb_tree_value_and_grad(p, loss, data, 2, NULL, g), LB_E_NULL,
            "argument 3 is NULL");
    CHECK_EQ_I(lb_tree_count(g), 0);
    lb_tree_close(p);
    lb_tree_close(g);
}

static const lb_optimizer_config adam = {.method = LB_ADAM, .rate = 1e-2};

/* One step of training; the loss. */
static double step(lb_optimizer *o, lb_tree *p, lb_tree *g,
                   lb_array *const *data)
{
    lb_enter(cx);
    lb_array *l = lb_tree_value_and_grad(p, loss, data, 2, NULL, g);
    const double value =
        l && lb_tree_optimizer_step(o, p, g) ? lb_item(cx, l) : NAN;
    lb_leave(cx);
    return value;
}

static void check_training(void)
{
    enum { STEPS = 20 };
    lb_array *data[] = {values(9, LB_SHAPE(ROWS, IN)),
                        values(10, LB_SHAPE(ROWS, OUT))};
    lb_tree *p = make_params(), *g = lb_tree_open(cx), *s = lb_tree_open(cx);
    lb_array *w[] = {lb_tree_get(p, "weight"), lb_tree_get(p, "bias")};
    lb_optimizer *o = lb_tree_optimizer_open(p, &adam);
    lb_optimizer *r = lb_optimizer_open(cx, &adam, w, 2);
    double last = 0;
    for (int i = 0; i < STEPS; i++) {
        lb_array *args[] = {w[0], w[1], data[0], data[1]}, *grad[2];
        lb_array *l = lb_value_and_grad(cx, flat_loss, args, 4, NULL, grad, 2);
        CHECK(lb_optimizer_step(r, w, grad));
        last = step(o, p, g, data);
        CHECK_NEAR(last, lb_item(cx, l), 0);
    }
    CHECK(same(lb_tree_get(p, "weight"), w[0]));
    CHECK(same(lb_tree_get(p, "bias"), w[1]));
    CHECK_EQ_I(lb_item_int(cx, lb_tree_get(p, "count")), 5);

    /* The memory of a step is that of the one before. */
    step(o, p, g, data);
    const size_t before = lb_bytes_in_use(cx);
    step(o, p, g, data);
    CHECK_EQ_I(lb_bytes_in_use(cx), before);

    /* A restored state continues with the same bits. */
    CHECK(lb_tree_optimizer_save(o, s));
    CHECK_EQ_I(lb_tree_count(s), lb_optimizer_count(o));
    CHECK(lb_tree_has(s, "optimizer.1.mean"));
    lb_tree *q = lb_tree_copy(p);
    const double next = step(o, p, g, data), after = step(o, p, g, data);
    lb_optimizer *again = lb_tree_optimizer_open(q, &adam);
    CHECK(lb_tree_optimizer_restore(again, s));
    CHECK_EQ_I(lb_optimizer_steps(again), STEPS + 2);
    CHECK_NEAR(step(again, q, g, data), next, 0);
    CHECK_NEAR(step(again, q, g, data), after, 0);
    lb_tree_remove(s, "optimizer.0.square");
    REFUSED(lb_tree_optimizer_restore(again, s), LB_E_ARG,
            "no array 'optimizer.0.square'");

    lb_tree_remove(g, "bias");
    REFUSED(lb_tree_optimizer_step(o, p, g), LB_E_ARG, "no gradient of 'bias'");
    lb_tree_set(p, "more", data[0]);
    REFUSED(lb_tree_optimizer_step(o, p, g), LB_E_ARG,
            "3 float arrays in the tree, 2 when");
    lb_optimizer_close(o);
    lb_optimizer_close(r);
    lb_optimizer_close(again);
    lb_tree_close(p);
    lb_tree_close(q);
    lb_tree_close(g);
    lb_tree_close(s);
}

/* ---- compiled functions -------------------------------------------------- */

enum { PARAMS = 3 };

typedef struct job {
    lb_tree *like; /* the names */
    lb_optimizer *o;
} job;

/* args: the parameters, x, y; out: the new parameters and the loss. */
static bool train_step(lb_ctx *c, lb_array *const *args, int n, lb_array **out,
                       int n_out, void *user)
{
    const job *j = user;
    lb_tree *p = lb_tree_copy(j->like), *g = lb_tree_open(c);
    lb_tree_change report[PARAMS];
    bool ok = lb_tree_replace(p, args, PARAMS);
    lb_array *l =
        ok ? lb_tree_value_and_grad(p, loss, args + PARAMS, n - PARAMS, user, g)
           : NULL;
    out[n_out - 1] = l;
    ok = l && lb_tree_optimizer_step(j->o, p, g) &&
         lb_tree_arrays(p, out, PARAMS);
    if (ok) {
        ok = lb_tree_quantize(p, weights_only, NULL, report);
        CHECK_EQ_S(report[0].after, "nf4");
    }
    lb_tree_close(p);
    lb_tree_close(g);
    return ok;
}

/* Compiled and eager training have the same bits. */
static void check_compiled(void)
{
    enum { STEPS = 5 };
    lb_array *out[2][PARAMS + 1] = {{NULL}};
    for (int compiled = 0; compiled < 2; compiled++) {
        lb_tree *p = make_params();
        job j = {make_params(), lb_tree_optimizer_open(p, &adam)};
        lb_compiled *f = lb_compile_many(cx, train_step, PARAMS + 1, &j, NULL);
        lb_array **to = out[compiled];
        for (int i = 0; i < STEPS; i++) {
            lb_array *args[PARAMS + 2];
            CHECK(lb_tree_arrays(p, args, PARAMS));
            args[PARAMS] = values(20 + (uint64_t)i, LB_SHAPE(ROWS, IN));
            args[PARAMS + 1] = values(40 + (uint64_t)i, LB_SHAPE(ROWS, OUT));
            CHECK(compiled
                      ? lb_run_many(f, args, PARAMS + 2, to)
                      : train_step(cx, args, PARAMS + 2, to, PARAMS + 1, &j));
            CHECK(lb_tree_replace(p, to, PARAMS));
        }
        if (compiled) {
            CHECK_EQ_I(lb_compiled_stats_of(f).traces, 1);
            CHECK_EQ_I(lb_compiled_stats_of(f).runs, STEPS);
            CHECK_EQ_I(lb_optimizer_steps(j.o), STEPS);
        }
        lb_compiled_close(f);
        lb_optimizer_close(j.o);
        lb_tree_close(j.like);
        lb_tree_close(p);
    }
    for (int i = 0; i <= PARAMS; i++)
        CHECK(out[0][i] && out[1][i] && same(out[0][i], out[1][i]));
}

/* ---- law 9 --------------------------------------------------------------- */

/* Everything once; false if any of it failed. */
static bool all_of_it(void)
{
    char name[16];
    lb_tree_change report[2];
    bool ok = true;
    lb_enter(cx);
    lb_array *data[] = {values(9, LB_SHAPE(ROWS, IN)),
                        values(10, LB_SHAPE(ROWS, OUT))};
    lb_tree *p = lb_tree_open(cx), *g = lb_tree_open(cx), *many = NULL;
    ok = p && g && data[0] && data[1] &&
         lb_tree_set(p, "weight", values(7, LB_SHAPE(IN, OUT))) &&
         lb_tree_set(p, "bias", values(8, LB_SHAPE(OUT)));
    lb_optimizer *o = ok ? lb_tree_optimizer_open(p, &adam) : NULL;
    ok = o && lb_tree_value_and_grad(p, loss, data, 2, NULL, g) &&
         lb_tree_optimizer_step(o, p, g) && lb_tree_optimizer_save(o, g) &&
         lb_tree_optimizer_restore(o, g) && (many = lb_tree_copy(p)) &&
         lb_tree_quantize(many, weights_only, NULL, report);
    for (int i = 0; ok && i < 40; i++) {
        snprintf(name, sizeof name, "%d", i);
        ok = lb_tree_set(many, name, data[0]);
    }
    lb_optimizer_close(o);
    lb_tree_close(many);
    lb_tree_close(p);
    lb_tree_close(g);
    lb_leave(cx);
    return ok;
}

static void check_memory(void)
{
    meter m = {0};
    const lb_allocator a = {meter_alloc, meter_free, &m};
    cx =
        lb_open(&(lb_options){.threads = 1, .allocator = &a, .keep_bytes = -1});
    for (long k = 1;; k++) {
        const long blocks = m.blocks;
        m.failed = 0;
        m.fail_at = m.count + k;
        const bool ok = all_of_it();
        m.fail_at = 0;
        if (!m.failed) {
            CHECK(ok && k > 50);
            break;
        }
        if (!ok) REFUSED(ok, LB_E_NOMEM, "out of memory");
        lb_clear(cx);
        /* The lists of the context may have grown. */
        CHECK(m.blocks <= blocks + 2);
    }
    lb_close(cx);
    CHECK_EQ_I(m.blocks, 0);
}

int main(void)
{
    cx = lb_open(NULL);
    check_names();
    check_lists();
    check_quantize();
    check_gradients();
    check_training();
    check_compiled();
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    check_memory();
    return check_report("tree");
}
