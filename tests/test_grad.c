/* test_grad.c - the tape, lb_value_and_grad, stop_gradient and
 * straight-through: guarantees that law 6 does not cover. */
#include "check.h"
#include "lowbit_ext.h"

static lb_array *row(lb_ctx *cx, int n, const float *x)
{
    return lb_from(cx, LB_F32, LB_SHAPE(n), x);
}
#define ROW(...)                                                               \
    row(cx, (int)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)),             \
        (const float[]){__VA_ARGS__})

static float at(const lb_array *a, int i)
{
    const float *x = lb_data(a);
    return x ? x[i] : NAN;
}

static lb_array *normal(lb_ctx *cx, uint64_t seed, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){seed, 0}, LB_F32, shape);
}

static bool same(lb_ctx *cx, lb_array *a, lb_array *b)
{
    lb_enter(cx);
    lb_array *all = a && b ? lb_reduce_and(cx, lb_eq(cx, a, b), NULL) : NULL;
    const bool ok = all && lb_item_int(cx, all) == 1;
    lb_leave(cx);
    return ok;
}

#define REFUSED(CALL, STATUS, WORDS)                                           \
    do {                                                                       \
        CHECK(!(CALL));                                                        \
        CHECK_EQ_I(lb_error_status(cx), STATUS);                               \
        CHECK(strstr(lb_error(cx), WORDS) != NULL);                            \
        if (!strstr(lb_error(cx), WORDS))                                      \
            fprintf(stderr, "%s\n", lb_error(cx));                             \
        lb_clear(cx);                                                          \
    } while (0)

/* ---- values and gradients ------------------------------------------------ */

/* sum(x^3) */
static lb_array *cubes(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)n, (void)user;
    return lb_reduce_sum(cx, lb_integer_pow(cx, x[0], 3), NULL);
}

/* x y, summed */
static lb_array *dot(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)n, (void)user;
    return lb_reduce_sum(cx, lb_mul(cx, x[0], x[1]), NULL);
}

static lb_array *slope(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    lb_array *g;
    (void)user;
    lb_value_and_grad(cx, cubes, x, n, NULL, &g, 1);
    return lb_reduce_sum(cx, g, NULL);
}

static void values(lb_ctx *cx)
{
    lb_array *x = ROW(1, -2, 3), *g[2];
    lb_array *y = lb_value_and_grad(cx, cubes, &x, 1, NULL, g, 1);
    CHECK(lb_item(cx, y) == 1 - 8 + 27);
    CHECK(at(g[0], 0) == 3 && at(g[0], 1) == 12 && at(g[0], 2) == 27);
    /* a gradient of gradients: sum(3 x^2) has 6 x */
    y = lb_value_and_grad(cx, slope, &x, 1, NULL, g, 1);
    CHECK(lb_item(cx, y) == 3 * 14);
    CHECK(at(g[0], 0) == 6 && at(g[0], 1) == -12 && at(g[0], 2) == 18);
    /* the same array twice is two arguments */
    y = lb_value_and_grad(cx, dot, (lb_array *[]){x, x}, 2, NULL, g, 2);
    CHECK(lb_item(cx, y) == 14 && same(cx, g[0], x) && same(cx, g[1], x));
    /* only the first */
    y = lb_value_and_grad(cx, dot, (lb_array *[]){x, lb_neg(cx, x)}, 2, NULL, g,
                          1);
    CHECK(lb_item(cx, y) == -14 && at(g[0], 1) == 2);
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
}

static lb_array *constant(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)n, (void)user;
    return lb_reduce_sum(cx, lb_stop_gradient(cx, x[0]), NULL);
}

static lb_array *given(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)cx, (void)x, (void)n;
    return user;
}

static lb_array *itself(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)cx, (void)n, (void)user;
    return x[0];
}

/* x[argmax x], through an index without gradient, and a comparison */
static lb_array *largest(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)n, (void)user;
    lb_array *i = lb_argmax(cx, x[0], 0, LB_I32);
    lb_array *up = lb_convert(cx, lb_gt(cx, x[0], lb_scalar(cx, 0)), LB_F32);
    return lb_add(cx, lb_take(cx, x[0], i, 0), lb_reduce_sum(cx, up, NULL));
}

static void ends(lb_ctx *cx)
{
    lb_array *x = ROW(1, -2, 3), *g,
             *one = lb_full(cx, LB_F32, (lb_shape){0}, 5);
    CHECK(lb_item(cx, lb_value_and_grad(cx, constant, &x, 1, NULL, &g, 1)) ==
          2);
    CHECK(at(g, 0) == 0 && at(g, 1) == 0 && at(g, 2) == 0);
    CHECK(lb_value_and_grad(cx, given, &x, 1, one, &g, 1) == one);
    CHECK(at(g, 0) == 0 && at(g, 2) == 0);
    CHECK(lb_value_and_grad(cx, itself, &one, 1, NULL, &g, 1) != NULL);
    CHECK(at(g, 0) == 1);
    CHECK(lb_item(cx, lb_value_and_grad(cx, largest, &x, 1, NULL, &g, 1)) == 5);
    CHECK(at(g, 0) == 0 && at(g, 1) == 0 && at(g, 2) == 1);
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
}

static void tapes(lb_ctx *cx)
{
    lb_array *x = ROW(1, -2, 3), *w = ROW(2, 2, 2), *g[2];
    lb_tape *t = lb_tape_open(cx);
    CHECK(lb_tape_watch(t, x) && lb_tape_watch(t, w) && lb_tape_watch(t, x));
    lb_array *y = lb_mul(cx, lb_exp(cx, x), w), *dy = ROW(1, 0, 2);
    CHECK(lb_tape_grad(t, y, dy, (lb_array *[]){w, x}, 2, g));
    CHECK_NEAR((double)at(g[0], 0), exp(1), 1e-6);
    CHECK(at(g[0], 1) == 0);
    CHECK_NEAR((double)at(g[1], 2), 4 * exp(3), 1e-5);
    /* the recorded operations are gone, and the tape is empty */
    CHECK(lb_tape_watch(t, w));
    y = lb_reduce_sum(cx, lb_mul(cx, w, x), NULL);
    CHECK(lb_tape_grad(t, y, NULL, &w, 1, g) && same(cx, g[0], x));
    REFUSED(lb_tape_grad(t, y, NULL, &w, 1, g), LB_E_ARG, "array 0 of 1");
    REFUSED(lb_tape_watch(t, lb_argmax(cx, x, 0, LB_I32)), LB_E_DTYPE, "i32");
    REFUSED(lb_tape_watch(t, NULL), LB_E_NULL, "NULL");
    CHECK(lb_tape_watch(t, x));
    y = lb_exp(cx, x);
    REFUSED(lb_tape_grad(t, y, NULL, &x, 1, g), LB_E_SHAPE,
            "f32(3), not a scalar");
    CHECK(lb_tape_watch(t, x));
    REFUSED(lb_tape_grad(t, lb_exp(cx, x), lb_scalar(cx, 1), &x, 1, g),
            LB_E_SHAPE, "f64(), but the value is f32(3)");
    REFUSED(lb_tape_grad(t, NULL, NULL, &x, 1, g), LB_E_NULL, "NULL");
    lb_tape_close(t);
    lb_tape_close(NULL);
    CHECK(!lb_tape_open(NULL) && !lb_tape_watch(NULL, x));
    CHECK(!lb_tape_grad(NULL, y, NULL, &x, 1, g));
    lb_exp(cx, x); /* it is not recorded */
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
}

/* ---- errors -------------------------------------------------------------- */

static lb_array *nothing(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)cx, (void)x, (void)n, (void)user;
    return NULL;
}

static lb_array *by_name(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    const lb_prim *p = lb_find_primitive(cx, user);
    (void)n;
    return lb_reduce_sum(cx, lb_bind(cx, p, 1, x, NULL), NULL);
}

static lb_array *index_of(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)n, (void)user;
    return lb_argmax(cx, x[0], 0, LB_I32);
}

static lb_array *codes(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)n, (void)user;
    lb_array *q = lb_quantize(
        cx, x[0], &(lb_quant_config){.format = "ternary", .dtype = LB_I8});
    return lb_reduce_sum(cx, lb_convert(cx, q, LB_F32), NULL);
}

static bool twin_infer(lb_ctx *cx, lb_call *c)
{
    (void)cx;
    c->shape = c->in[0]->shape;
    c->dtype = c->in[0]->dtype;
    return true;
}

static lb_verdict twin_move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    *out = lb_view(cx, c->in[0]);
    return *out ? LB_DONE : LB_FAILED;
}

static lb_array *wrong_vjp(lb_ctx *cx, const lb_call *c, int operand,
                           lb_array *out, lb_array *dout)
{
    (void)c, (void)operand, (void)out;
    return lb_reduce_sum(cx, dout, NULL);
}

static const lb_prim twin = {.struct_size = sizeof(lb_prim),
                             .name = "twin",
                             .n_in = 1,
                             .infer = twin_infer,
                             .move = twin_move};
static const lb_prim wrong = {.struct_size = sizeof(lb_prim),
                              .name = "wrong",
                              .n_in = 1,
                              .infer = twin_infer,
                              .move = twin_move,
                              .vjp = wrong_vjp};

static void errors(lb_ctx *cx)
{
    lb_array *x = ROW(1, -2, 3), *g, *i = lb_argmax(cx, x, 0, LB_I32);
    CHECK(lb_add_primitive(cx, &twin) && lb_add_primitive(cx, &wrong));
#define GRAD(FN, ARGS, USER) lb_value_and_grad(cx, FN, ARGS, 1, USER, &g, 1)
    REFUSED(GRAD(NULL, &x, NULL), LB_E_NULL, "function is NULL");
    REFUSED(GRAD(cubes, NULL, NULL), LB_E_NULL, "list of arguments");
    REFUSED(GRAD(cubes, &i, NULL), LB_E_DTYPE, "argument 0 is i32()");
    REFUSED(GRAD(cubes, &(lb_array *){NULL}, NULL), LB_E_NULL, "argument 0");
    lb_array *two[2];
    REFUSED(lb_value_and_grad(cx, cubes, &x, 1, NULL, two, 2), LB_E_ARG,
            "n_grad is 2, not in 0..1");
    CHECK(!two[0] && !two[1]);
    REFUSED(lb_value_and_grad(cx, cubes, &x, 1, NULL, NULL, 1), LB_E_NULL,
            "list of gradients");
    REFUSED(GRAD(nothing, &x, NULL), LB_E_NULL, "returned NULL");
    REFUSED(GRAD(itself, &x, NULL), LB_E_SHAPE, "f32(3), not a scalar");
    REFUSED(GRAD(index_of, &x, NULL), LB_E_DTYPE, "the value is i32()");
    char twin_name[] = "twin", wrong_name[] = "wrong";
    REFUSED(GRAD(by_name, &x, twin_name), LB_E_UNSUPPORTED,
            "twin has no gradient (its result is f32(3))");
    REFUSED(
        GRAD(by_name, &x, wrong_name), LB_E_ARG,
        "wrong: the gradient of operand 0 is f32(), but the operand f32(3)");
    REFUSED(GRAD(codes, &x, NULL), LB_E_DTYPE, "no gradient flows through i8");
    CHECK(!lb_value_and_grad(NULL, cubes, &x, 1, NULL, &g, 1));
    /* A previous error neither hides one of these nor is lost. */
    lb_fail(cx, LB_E_FILE, "the first");
    CHECK(!GRAD(by_name, &x, twin_name));
    CHECK(GRAD(cubes, &x, NULL) && at(g, 1) == 12);
    CHECK_EQ_S(lb_error(cx), "the first");
    lb_clear(cx);
    REFUSED(lb_ste(cx, NULL, x, NULL), LB_E_NULL, "function is NULL");
    REFUSED(lb_ste(cx, itself, NULL, NULL), LB_E_NULL, "array is NULL");
    REFUSED(lb_ste(cx, nothing, x, NULL), LB_E_NULL, "returned NULL");
    REFUSED(lb_ste(cx, index_of, x, NULL), LB_E_SHAPE,
            "result () of operand (3)");
    CHECK(!lb_ste(NULL, itself, x, NULL));
    REFUSED(lb_stop_gradient(cx, NULL), LB_E_NULL, "NULL");
}

/* ---- straight through ---------------------------------------------------- */

static lb_array *steps(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)n, (void)user;
    return lb_floor(cx, x[0]);
}

static lb_array *weighted_steps(lb_ctx *cx, lb_array *const *x, int n,
                                void *user)
{
    (void)n;
    lb_array *y = lb_ste(cx, steps, x[0], NULL);
    return lb_reduce_sum(cx, lb_mul(cx, y, user), NULL);
}

/* sum(c quantized(w)): user is c, then the config */
typedef struct quantized {
    lb_array *c;
    lb_quant_config config;
} quantized;

static lb_array *weighted(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    const quantized *q = user;
    (void)n;
    lb_array *w = lb_straight_through(cx, x[0], &q->config);
    return lb_reduce_sum(cx, lb_mul(cx, w, q->c), NULL);
}

static void straight(lb_ctx *cx)
{
    lb_array *x = ROW(1.5f, -2.25f, 3), *c = ROW(1, 10, 100), *g;
    lb_array *y = lb_value_and_grad(cx, weighted_steps, &x, 1, c, &g, 1);
    CHECK(lb_item(cx, y) == 1 - 30 + 300 && same(cx, g, c));
    lb_array *w = normal(cx, 1, LB_SHAPE(8, 96));
    quantized q = {.c = normal(cx, 2, LB_SHAPE(8, 96))};
    const lb_format *f;
    for (int k = 0; (f = lb_format_at(cx, k)); k++)
        for (int how = 0; how < 4; how++) {
            if (!lb_is_encodable(f) ||
                (how == 3 && !strstr("nf4 int8", f->name)))
                continue;
            q.config = (lb_quant_config){.format = f->name,
                                         .simulate = how == 1,
                                         .dtype = how == 2 ? LB_BF16 : LB_F32,
                                         .double_quant = how == 3};
            lb_array *v = lb_straight_through(cx, w, &q.config);
            v = lb_reduce_sum(cx, lb_mul(cx, v, q.c), NULL);
            if (!v) lb_clear(cx); /* 96 is not a multiple of some blocks */
            if (!v) continue;
            y = lb_value_and_grad(cx, weighted, &w, 1, &q, &g, 1);
            CHECK(y && lb_item(cx, y) == lb_item(cx, v));
            lb_array *want = q.c;
            if (how == 2)
                want = lb_convert(cx, lb_convert(cx, q.c, LB_BF16), LB_F32);
            CHECK(lb_dtype_of(g) == LB_F32 && same(cx, g, want));
        }
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
}

/* Where |w| is above the scale (the largest code), the gradient is zero; in
 * formats where it cannot be, all gradients pass. */
static void clipped(lb_ctx *cx)
{
    static const char *const name[] = {"ternary", "binary", "int8", "nf4"};
    lb_array *w = normal(cx, 3, LB_SHAPE(6, 64)), *g;
    quantized q = {.c = normal(cx, 4, LB_SHAPE(6, 64))};
    for (int k = 0; k < 4; k++) {
        q.config = (lb_quant_config){.format = name[k], .clip_gradient = true};
        if (k < 2) q.config.scale = LB_SCALE_ROW;
        CHECK(lb_value_and_grad(cx, weighted, &w, 1, &q, &g, 1) != NULL);
        lb_array *v = lb_abs(cx, lb_quantize(cx, w, &q.config));
        lb_array *most = lb_reduce_max(cx, v, LB_AXES(1));
        const float *x = lb_data(w), *m = lb_data(most), *c = lb_data(q.c);
        const float *d = lb_data(g);
        int off = 0;
        for (int i = 0; i < 6 * 64 && d; i++) {
            const bool out = k < 2 && fabsf(x[i]) > m[i / 64] * 1.01f;
            const bool near =
                k < 2 && fabsf(fabsf(x[i]) / m[i / 64] - 1) < .01f;
            if (!near) CHECK(d[i] == (out ? 0 : c[i]));
            off += out;
        }
        CHECK(k < 2 ? off > 50 && off < 300 : off == 0);
    }
    q.config = (lb_quant_config){.format = "q8_0", .clip_gradient = true};
    REFUSED(lb_value_and_grad(cx, weighted, &w, 1, &q, &g, 1), LB_E_UNSUPPORTED,
            "q8_0 cannot be clipped");
}

/* ---- packed weights and memory ------------------------------------------- */

static lb_array *forward(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    lb_array *const *w = user;
    (void)n;
    lb_array *h = lb_relu(cx, lb_matmul(cx, x[0], w[0]));
    lb_array *y = lb_matmul(cx, h, lb_transpose(cx, w[1], NULL));
    return lb_reduce_sum(cx, lb_mul(cx, y, y), NULL);
}

/* Not fmax: gcc 12 for aarch64 stops at a loop that takes two of them. */
static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The gradient of activations through packed weights equals that through the
 * same values stored densely, without a dense copy. */
static void packed(lb_ctx *cx)
{
    enum { K = 1024, N = 2048 };
    static const char *const name[] = {"nf4", "ternary", "int8", "binary"};
    lb_array *x = normal(cx, 5, LB_SHAPE(3, K));
    for (int k = 0; k < 4; k++) {
        const lb_quant_config c = {.format = name[k]};
        lb_array *q[2] = {lb_quantize(cx, normal(cx, 6, LB_SHAPE(K, N)), &c),
                          lb_quantize(cx, normal(cx, 7, LB_SHAPE(K, N)), &c)};
        lb_array *d[2] = {lb_materialize(cx, q[0]), lb_materialize(cx, q[1])};
        lb_array *g[2];
        lb_trim(cx);
        const size_t before = lb_bytes_in_use(cx);
        lb_ctx *own = lb_open(&(lb_options){.dense = LB_DENSE_DENY});
        lb_enter(own);
        lb_array *y = lb_value_and_grad(own, forward, &x, 1, q, g, 1);
        CHECK(y != NULL);
        /* scratch and three activations; a dense copy would be 8 MiB */
        CHECK(lb_bytes_peak(own) < (size_t)K * N * sizeof(float));
        CHECK_EQ_I(lb_bytes_in_use(cx), before);
        lb_array *z = lb_value_and_grad(cx, forward, &x, 1, d, g + 1, 1);
        CHECK_NEAR(lb_item(own, y) / lb_item(cx, z), 1, 1e-5);
        const float *a = lb_data(g[0]), *b = lb_data(g[1]);
        double off = 0, size = 0;
        for (int i = 0; i < 3 * K && a && b; i++) {
            off = larger(off, fabs((double)a[i] - (double)b[i]));
            size = larger(size, fabs((double)b[i]));
        }
        CHECK(a && b && size > 0 && off < 1e-5 * size);
        lb_close(own);
    }
}

/* Arrays made by fn are freed during backward: ten steps need no more memory
 * than one. */
static void flat(lb_ctx *cx)
{
    lb_array *w[2] = {normal(cx, 6, LB_SHAPE(64, 32)),
                      normal(cx, 7, LB_SHAPE(64, 32))};
    lb_array *x = normal(cx, 8, LB_SHAPE(16, 64)), *g;
    size_t first = 0;
    for (int i = 0; i < 1000; i++) {
        lb_enter(cx);
        CHECK(lb_value_and_grad(cx, forward, &x, 1, w, &g, 1) != NULL);
        lb_leave(cx);
        if (!i) first = lb_bytes_in_use(cx);
        CHECK_EQ_I(lb_bytes_in_use(cx), first);
    }
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    CHECK(cx != NULL);
    values(cx);
    ends(cx);
    tapes(cx);
    errors(cx);
    straight(cx);
    clipped(cx);
    packed(cx);
    flat(cx);
    lb_close(cx);
    return check_report("grad");
}
