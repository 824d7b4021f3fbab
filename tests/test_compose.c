/* test_compose.c - primitives that are shortcuts for other calls (compose): a
 * plain call runs eval; layers, rules and unsuitable calls get the composed
 * form. The primitive here is f(x, y) = x^2 + y^2, with an eval that counts.
 */
#include "programs.h"

static int evals;

static bool squares_infer(lb_ctx *cx, lb_call *c)
{
    if (!lb_shape_equal(&c->in[0]->shape, &c->in[1]->shape))
        return lb_fail(cx, LB_E_SHAPE, "squares: %s with %s",
                       LB_SHOW(&c->in[0]->shape), LB_SHOW(&c->in[1]->shape));
    c->shape = c->in[0]->shape;
    c->dtype = LB_F32;
    return true;
}

static bool squares_suits(const lb_call *c)
{
    return lb_shape_size(&c->shape) <= 100;
}

static lb_array *squares_compose(lb_ctx *cx, const lb_call *c)
{
    lb_array *x = c->in[0], *y = c->in[1];
    return lb_add(cx, lb_mul(cx, x, x), lb_mul(cx, y, y));
}

static void squares_plan(const lb_call *c, lb_plan *p)
{
    (void)c;
    p->phases = 1;
    p->units[0] = 1;
    p->per_thread = 200 * sizeof(float);
    p->kernel = "by the test";
}

static void squares_eval(const lb_work *w)
{
    const lb_call *c = w->call;
    float *x = w->scratch, *y = x + 100;
    const int64_t n = lb_shape_size(&c->shape);
    evals++;
    lb_tile_read_flat(c->cpu, c->in[0], 0, n, LB_C_F32, x);
    lb_tile_read_flat(c->cpu, c->in[1], 0, n, LB_C_F32, y);
    for (int64_t i = 0; i < n; i++) {
        const float a = x[i] * x[i], b = y[i] * y[i];
        x[i] = a + b;
    }
    lb_tile_write_flat(c->cpu, w->out, 0, n, LB_C_F32, x);
}

static const lb_prim squares = {
    .struct_size = sizeof(lb_prim),
    .name = "squares",
    .n_in = 2,
    .infer = squares_infer,
    .plan = squares_plan,
    .eval = squares_eval,
    .compose = squares_compose,
    .suits = squares_suits,
};

static lb_array *call(lb_ctx *cx, lb_array *x, lb_array *y)
{
    evals = 0;
    return lb_bind(cx, &squares, 2, (lb_array *[]){x, y}, NULL);
}

static lb_array *function(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    return call(cx, a[0], a[1]);
}

static lb_array *value_of(lb_ctx *cx, lb_array *x, lb_array *y)
{
    return lb_add(cx, lb_mul(cx, x, x), lb_mul(cx, y, y));
}

static void plain(lb_ctx *cx, lb_array *x, lb_array *y, lb_array *want)
{
    CHECK(equal(call(cx, x, y), want));
    CHECK_EQ_I(evals, 1);
    CHECK_EQ_S(lb_explain(cx, "squares", (lb_array *[]){x, y}, 2, NULL),
               "squares f32(4,5) f32(4,5) -> f32(4,5): tiles, by the test, "
               "1 unit on 1 thread, scratch 0 + 800 each");
    lb_array *big = lb_full(cx, LB_F32, LB_SHAPE(101), 2);
    CHECK(equal(call(cx, big, big), lb_full(cx, LB_F32, LB_SHAPE(101), 8)));
    CHECK_EQ_I(evals, 0);
    CHECK_EQ_S(lb_explain(cx, "squares", (lb_array *[]){big, big}, 2, NULL),
               "squares f32(101) f32(101) -> f32(101): composed");
    CHECK(!call(cx, x, big));
    CHECK_EQ_S(lb_error(cx), "squares: (4,5) with (101)");
    lb_clear(cx);
}

/* ---- layers -------------------------------------------------------------- */

typedef struct counter {
    lb_layer layer;
    int calls;
    const lb_prim *last;
} counter;

static lb_array *count(lb_ctx *cx, lb_layer *self, const lb_prim *prim, int n,
                       lb_array *const *in, const void *params)
{
    counter *t = (counter *)(void *)self;
    t->calls++;
    t->last = prim;
    return lb_bind(cx, prim, n, in, params);
}

static bool takes_all(const lb_layer *self, const lb_prim *prim, int n,
                      lb_array *const *in)
{
    (void)self, (void)prim, (void)n, (void)in;
    return true;
}

static void layers(lb_ctx *cx, lb_array *x, lb_array *y, lb_array *want)
{
    counter t = {.layer = {.bind = count}};
    lb_push_layer(cx, &t.layer);
    CHECK(equal(call(cx, x, y), want));
    CHECK(t.calls == 3 && evals == 0);
    CHECK_EQ_S(t.last->name, "add");
    CHECK_EQ_S(lb_explain(cx, "squares", (lb_array *[]){x, y}, 2, NULL),
               "squares f32(4,5) f32(4,5) -> f32(4,5): composed");
    lb_array *wrong = lb_zeros(cx, LB_F32, LB_SHAPE(3));
    CHECK(!call(cx, x, wrong));
    CHECK_EQ_S(lb_error(cx), "squares: (4,5) with (3)");
    lb_clear(cx);
    t.layer.whole = takes_all;
    t.calls = 0;
    CHECK(equal(call(cx, x, y), want));
    CHECK(t.calls == 1 && evals == 1 && t.last == &squares);
    lb_pop_layer(cx);
}

/* The primitive has no vjp: the tape records what it is composed of, unless no
 * gradient passes. */
static void gradients(lb_ctx *cx, lb_array *x, lb_array *y)
{
    lb_array *dx;
    lb_tape *t = lb_tape_open(cx);
    CHECK(lb_tape_watch(t, x));
    CHECK(call(cx, y, y) && evals == 1);
    lb_array *sum = lb_reduce_sum(cx, call(cx, x, y), NULL);
    CHECK_EQ_I(evals, 0);
    CHECK(lb_tape_grad(t, sum, NULL, &x, 1, &dx));
    lb_tape_close(t);
    CHECK(equal(dx, lb_add(cx, x, x)));
}

static void compiled(lb_ctx *cx, lb_array *x, lb_array *y, lb_array *want)
{
    lb_compiled *f = lb_compile(cx, function, NULL, NULL);
    lb_array *in[] = {x, y};
    CHECK(equal(lb_run(f, in, 2), want) && equal(lb_run(f, in, 2), want));
    CHECK_EQ_I(evals, 0);
    const char *s = lb_compiled_explain(f, 0, LB_EXPLAIN_TEXT);
    CHECK(s && strstr(s, "mul") && !strstr(s, "squares"));
    lb_compiled_close(f);
}

/* ---- rules --------------------------------------------------------------- */

static int muls, own;

static lb_verdict see_mul(lb_ctx *cx, const lb_call *c, int operand,
                          lb_array **out)
{
    (void)cx, (void)c, (void)operand, (void)out;
    muls++;
    return LB_DECLINED;
}

static lb_verdict see_squares(lb_ctx *cx, const lb_call *c, int operand,
                              lb_array **out)
{
    (void)operand;
    own++;
    *out = squares_compose(cx, c);
    return *out ? LB_DONE : LB_FAILED;
}

static void rules(lb_ctx *cx, lb_array *x, lb_array *y, lb_array *want)
{
    lb_array *q = lb_quantize(cx, x, &(lb_quant_config){.format = "int8"});
    lb_array *d = lb_materialize(cx, q);
    lb_array *of_q = value_of(cx, d, y);
    CHECK(lb_add_rule(cx, "nf4", "mul", see_mul));
    CHECK(equal(call(cx, q, y), of_q)); /* no rule for int8 */
    CHECK_EQ_I(evals, 1);
    CHECK(lb_add_rule(cx, "int8", "mul", see_mul));
    CHECK(equal(call(cx, q, y), of_q));
    CHECK(evals == 0 && muls > 0);
    CHECK(equal(call(cx, x, y), want)); /* dense operands have none */
    CHECK_EQ_I(evals, 1);
    CHECK(lb_add_rule(cx, NULL, "squares", see_squares));
    CHECK(equal(call(cx, x, y), want));
    CHECK(evals == 0 && own == 1);
}

/* ---- one that breaks its contract ---------------------------------------- */

static lb_array *other_shape(lb_ctx *cx, const lb_call *c)
{
    (void)c;
    return lb_zeros(cx, LB_F32, LB_SHAPE(3));
}

static bool never(const lb_call *c)
{
    (void)c;
    return false;
}

static void broken(lb_ctx *cx, lb_array *x, lb_array *y)
{
    lb_prim p = squares;
    p.compose = other_shape;
    p.suits = never;
    CHECK(!lb_bind(cx, &p, 2, (lb_array *[]){x, y}, NULL));
    CHECK_EQ_S(lb_error(cx), "squares: composed, it is f32(3), not f32(4,5)");
    lb_clear(cx);
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_array *x = iota(cx, LB_F32, LB_SHAPE(4, 5));
    lb_array *y = lb_exp(cx, x), *want = value_of(cx, x, y);
    CHECK(lb_add_primitive(cx, &squares));
    plain(cx, x, y, want);
    layers(cx, x, y, want);
    gradients(cx, x, y);
    compiled(cx, x, y, want);
    broken(cx, x, y);
    rules(cx, x, y, want);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    return check_report("test_compose");
}
