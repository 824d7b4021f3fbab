/* test_grad_edges.c - gradients in unusual cases: empty arrays, functions that
 * ignore their arguments, gradients of intermediate results, a format from
 * outside the library, bf16, several threads, empty argument lists. */
#include <limits.h>
#include <pthread.h>

#include "check.h"
#include "e4m3.h"
#include "lowbit_ext.h"

static lb_array *normal(lb_ctx *cx, uint64_t seed, lb_dtype d, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){seed, 0}, d, shape);
}

static bool same(lb_ctx *cx, lb_array *a, lb_array *b)
{
    lb_enter(cx);
    const bool like =
        a && b && lb_dtype_of(a) == lb_dtype_of(b) && lb_rank(a) == lb_rank(b);
    lb_array *all = like ? lb_reduce_and(cx, lb_eq(cx, a, b), NULL) : NULL;
    const bool ok = all && lb_item_int(cx, all) == 1;
    lb_leave(cx);
    return ok;
}

static bool is(const lb_array *a, lb_dtype d, lb_shape s)
{
    bool ok = a && lb_dtype_of(a) == d && lb_rank(a) == s.rank &&
              !strcmp(lb_format_of(a), "dense");
    for (int i = 0; i < s.rank && ok; i++)
        ok = lb_dim(a, i) == s.dim[i];
    return ok;
}

#define REFUSED(CALL, STATUS, WORDS)                                           \
    do {                                                                       \
        CHECK(!(CALL));                                                        \
        CHECK_EQ_I(lb_error_status(cx), STATUS);                               \
        if (check_fails(strstr(lb_error(cx), WORDS) != NULL))                  \
            fprintf(stderr, "%s\n", lb_error(cx));                             \
        lb_clear(cx);                                                          \
    } while (0)

/* ---- little or nothing --------------------------------------------------- */

/* sum(x @ straight_through(w)), or without that where user is NULL */
static lb_array *product(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n;
    lb_array *w = user ? lb_straight_through(cx, a[1], user) : a[1];
    return lb_reduce_sum(cx, lb_matmul(cx, a[0], w), NULL);
}

static lb_array *squares(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n;
    lb_array *w = user ? lb_straight_through(cx, a[0], user) : a[0];
    return lb_reduce_sum(cx, lb_mul(cx, w, a[0]), NULL);
}

/* Arrays without elements: their sums are 0, gradients have their shapes. */
static void empty(lb_ctx *cx)
{
    static const int64_t size[][3] = {{0, 64, 3}, {2, 0, 3}, {2, 64, 0}};
    const lb_format *f;
    lb_array *g[2];
    for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
        const lb_shape xs = LB_SHAPE(size[k][0], size[k][1]);
        const lb_shape ws = LB_SHAPE(size[k][1], size[k][2]);
        lb_array *a[2] = {normal(cx, 1, LB_F32, xs), normal(cx, 2, LB_F32, ws)};
        for (int i = -1; i < 0 || (f = lb_format_at(cx, i)); i++) {
            lb_quant_config c = {.format = i < 0 ? "dense" : f->name};
            if (i >= 0 && (!lb_is_encodable(f) || !lb_quantize(cx, a[1], &c))) {
                lb_clear(cx); /* some require rows of whole blocks */
                continue;
            }
            lb_array *y =
                lb_value_and_grad(cx, product, a, 2, i < 0 ? NULL : &c, g, 2);
            CHECK(y && lb_item(cx, y) == 0);
            CHECK(is(g[0], LB_F32, xs) && is(g[1], LB_F32, ws));
            /* existing elements have a gradient of 0 */
            for (int p = 0; p < 2 && g[p]; p++) {
                lb_array *z = lb_zeros(cx, LB_F32, lb_shape_of(g[p]));
                CHECK(lb_size(g[p]) == 0 || same(cx, g[p], z));
            }
        }
    }
    CHECK_EQ_S(lb_error(cx), "");
}

/* The mean cross entropy of logits and labels. */
static lb_array *entropy(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    return lb_mean(cx, lb_cross_entropy(cx, a[0], a[1]), NULL, false);
}

/* The last batch of an epoch may be empty: its mean is NaN, its gradient has no
 * elements. */
static void empty_batch(lb_ctx *cx)
{
    static const int64_t dim[][3] = {{0, 5}, {2, 0, 5}, {0, 0}};
    for (int k = 0; k < 3; k++) {
        const int lead = k == 1 ? 2 : 1;
        const lb_shape s = lb_shape_make(lead + 1, dim[k]);
        lb_array *g, *a[] = {lb_zeros(cx, LB_F32, s),
                             lb_zeros(cx, LB_I32, lb_shape_make(lead, dim[k]))};
        lb_array *y = lb_value_and_grad(cx, entropy, a, 2, NULL, &g, 1);
        CHECK(y && isnan(lb_item(cx, y)) && is(g, LB_F32, s));
    }
    CHECK_EQ_S(lb_error(cx), "");
}

/* A single value, with any number of axes. */
static void single(lb_ctx *cx)
{
    const lb_shape shape[] = {{0}, {1, {1}}, {3, {1, 1, 1}}};
    const lb_quant_config int8 = {.format = "int8"};
    for (int k = 0; k < 3; k++) {
        lb_array *x = lb_full(cx, LB_F32, shape[k], 3), *g;
        lb_array *y = lb_value_and_grad(cx, squares, &x, 1, NULL, &g, 1);
        CHECK(y && lb_item(cx, y) == 9 && is(g, LB_F32, shape[k]));
        CHECK(g && lb_item(cx, g) == 6);
        if (!k) continue; /* a scalar has no axis for a scale */
        lb_quant_config c = int8;
        y = lb_value_and_grad(cx, squares, &x, 1, &c, &g, 1);
        CHECK(y && g);
        CHECK_NEAR(lb_item(cx, y), 9, 1e-5);
        CHECK_NEAR(lb_item(cx, g), 6, 1e-5);
    }
    CHECK_EQ_S(lb_error(cx), "");
}

/* x^user */
static lb_array *power(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n;
    return lb_integer_pow(cx, a[0], *(const int *)user);
}

/* An exponent without a next lower one, of a base so close to 1 that the sign
 * of the exponent matters. */
static void lowest_power(lb_ctx *cx)
{
    int least = INT_MIN;
    lb_array *x = lb_full(cx, LB_F64, lb_shape_make(0, NULL), 1 + 0x1p-33), *g;
    lb_array *y = lb_value_and_grad(cx, power, &x, 1, &least, &g, 1);
    CHECK(y && g);
    CHECK_NEAR(lb_item(cx, y), exp(-0.25), 1e-6);
    CHECK_NEAR(lb_item(cx, g) * 0x1p-31, -exp(-0.25), 1e-6);
}

/* Only the first is used. */
static lb_array *first(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    return lb_reduce_sum(cx, a[0], NULL);
}

static lb_array *seven(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)a, (void)user;
    return lb_full(cx, LB_F32, (lb_shape){0}, 7 + n);
}

static void ignored(lb_ctx *cx)
{
    lb_array *w = normal(cx, 3, LB_F32, LB_SHAPE(4, 64)), *g[3];
    lb_array *a[3] = {w, NULL, lb_convert(cx, w, LB_BF16)};
    a[1] = lb_quantize(cx, w, &(lb_quant_config){.format = "nf4"});
    CHECK(lb_value_and_grad(cx, first, a, 3, NULL, g, 3) != NULL);
    CHECK(same(cx, g[0], lb_full(cx, LB_F32, LB_SHAPE(4, 64), 1)));
    CHECK(same(cx, g[1], lb_zeros(cx, LB_F32, LB_SHAPE(4, 64))));
    CHECK(same(cx, g[2], lb_zeros(cx, LB_BF16, LB_SHAPE(4, 64))));
    CHECK(is(g[1], LB_F32, LB_SHAPE(4, 64)));
    /* no arguments */
    lb_array *y = lb_value_and_grad(cx, seven, NULL, 0, NULL, NULL, 0);
    CHECK(y && lb_item(cx, y) == 7);
    CHECK_EQ_S(lb_error(cx), "");
}

/* ---- tapes --------------------------------------------------------------- */

static void on_the_way(lb_ctx *cx)
{
    lb_array *x = lb_full(cx, LB_F32, LB_SHAPE(3), 2), *g[3];
    lb_tape *t = lb_tape_open(cx);
    CHECK(lb_tape_watch(t, x));
    lb_array *h = lb_mul(cx, x, x);
    CHECK(lb_tape_watch(t, h) && lb_tape_watch(t, h));
    lb_array *y = lb_reduce_sum(cx, lb_mul(cx, h, h), NULL);
    CHECK(lb_tape_watch(t, y));
    CHECK(lb_tape_grad(t, y, NULL, (lb_array *[]){x, h, y}, 3, g));
    CHECK(same(cx, g[0], lb_full(cx, LB_F32, LB_SHAPE(3), 4 * 8)));
    CHECK(same(cx, g[1], lb_full(cx, LB_F32, LB_SHAPE(3), 2 * 4)));
    CHECK(g[2] && lb_item(cx, g[2]) == 1);
    /* one that was recorded, but not watched */
    CHECK(lb_tape_watch(t, x));
    h = lb_mul(cx, x, x);
    y = lb_reduce_sum(cx, h, NULL);
    REFUSED(lb_tape_grad(t, y, NULL, &h, 1, g), LB_E_ARG,
            "array 0 of 1, f32(3), is not watched");
    /* with an initial gradient that does not fit, whether or not anything
     * depends on it */
    for (int watched = 0; watched < 2; watched++) {
        if (watched) CHECK(lb_tape_watch(t, x));
        y = watched ? lb_neg(cx, x) : x;
        REFUSED(lb_tape_grad(t, y, NULL, NULL, 0, NULL), LB_E_SHAPE,
                "f32(3), not a scalar");
        REFUSED(lb_tape_grad(t, y, lb_scalar(cx, 1), NULL, 0, NULL), LB_E_SHAPE,
                "f64(), but the value is f32(3)");
    }
    CHECK(lb_tape_watch(t, x));
    y = lb_reduce_sum(cx, x, NULL);
    REFUSED(lb_tape_grad(t, y, NULL, NULL, 1, g), LB_E_NULL, "list of arrays");
    REFUSED(lb_tape_grad(t, y, NULL, &x, 1, NULL), LB_E_NULL,
            "list of gradients");
    REFUSED(lb_tape_grad(t, y, NULL, &x, -1, g), LB_E_ARG,
            "number of arrays is -1");
    lb_tape_close(t);
}

/* Tapes closed in another order than opened, and nested ones. */
static void crossed(lb_ctx *cx)
{
    lb_array *x = lb_full(cx, LB_F32, LB_SHAPE(2), 3), *g, *h;
    lb_tape *outer = lb_tape_open(cx), *inner = lb_tape_open(cx);
    CHECK(lb_tape_watch(outer, x) && lb_tape_watch(inner, x));
    lb_array *y = lb_reduce_sum(cx, lb_mul(cx, x, x), NULL);
    CHECK(lb_tape_grad(outer, y, NULL, &x, 1, &g));
    CHECK(lb_tape_grad(inner, y, NULL, &x, 1, &h) && same(cx, g, h));
    lb_tape_close(outer);
    CHECK(lb_tape_watch(inner, x));
    y = lb_reduce_sum(cx, x, NULL);
    CHECK(lb_tape_grad(inner, y, NULL, &x, 1, &g));
    CHECK(same(cx, g, lb_full(cx, LB_F32, LB_SHAPE(2), 1)));
    lb_tape_close(inner);
    CHECK_EQ_S(lb_error(cx), "");
}

/* ---- a format from outside, and bf16 ------------------------------------- */

/* Weights in a format, with any float dtype: the gradient of w is x^T dy, as
 * for dense weights; that of x is dy q^T, without a dense copy. */
static void through(lb_ctx *cx, const char *name, lb_dtype d)
{
    enum { M = 5, K = 64, N = 128 };
    lb_quant_config c = {.format = name};
    lb_array *x = normal(cx, 4, d, LB_SHAPE(M, K)), *g[2];
    lb_array *w = normal(cx, 5, d, LB_SHAPE(K, N));
    CHECK(lb_value_and_grad(cx, product, (lb_array *[]){x, w}, 2, &c, g, 2) !=
          NULL);
    CHECK(is(g[0], d, LB_SHAPE(M, K)) && is(g[1], d, LB_SHAPE(K, N)));
    /* Products take what is stored, which the dtype does not round. */
    lb_array *q = lb_convert(cx, lb_quantize(cx, w, &c), LB_F32);
    double xs[M * K], qs[K * N], gx[M * K], gw[K * N];
    CHECK(lb_read(cx, lb_convert(cx, x, LB_F64), xs, sizeof xs));
    CHECK(lb_read(cx, lb_convert(cx, q, LB_F64), qs, sizeof qs));
    CHECK(lb_read(cx, lb_convert(cx, g[0], LB_F64), gx, sizeof gx));
    CHECK(lb_read(cx, lb_convert(cx, g[1], LB_F64), gw, sizeof gw));
    /* half a step of bf16, once; f32 sums */
    const double part = d == LB_BF16 ? 1.0 / 256 : 1e-6;
    for (int i = 0; i < M * K; i++) {
        double sum = 0, size = 0;
        for (int j = 0; j < N; j++)
            sum += qs[i % K * N + j], size += fabs(qs[i % K * N + j]);
        CHECK_NEAR(gx[i], sum, part * fabs(sum) + 1e-6 * size);
    }
    for (int i = 0; i < K * N; i++) {
        double sum = 0, size = 0;
        for (int m = 0; m < M; m++)
            sum += xs[m * K + i / N], size += fabs(xs[m * K + i / N]);
        CHECK_NEAR(gw[i], sum, part * fabs(sum) + 1e-6 * size);
    }
}

static void formats(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.dense = LB_DENSE_DENY});
    CHECK(cx && lb_add_format(cx, &e4m3_format));
    static const char *const name[] = {"e4m3", "int8", "nf4", "ternary",
                                       "binary"};
    for (int k = 0; k < 5; k++) {
        through(cx, name[k], LB_F32);
        through(cx, name[k], LB_BF16);
        CHECK_EQ_S(lb_error(cx), "");
    }
    lb_array *w = normal(cx, 6, LB_F32, LB_SHAPE(2, 64)), *g;
    lb_quant_config c = {.format = "e4m3", .clip_gradient = true};
    REFUSED(lb_value_and_grad(cx, squares, &w, 1, &c, &g, 1), LB_E_UNSUPPORTED,
            "e4m3 cannot be clipped");
    lb_close(cx);
}

/* ---- threads ------------------------------------------------------------- */

enum { CREWS = 3, TURNS = 20 };

typedef struct crew {
    lb_array *const *a; /* x and w, which all of them have */
    lb_array *g[2];     /* references */
    bool ok;
} crew;

/* A context and its tapes belong to one thread; arrays to any. */
static void *work(void *arg)
{
    crew *of = arg;
    lb_quant_config c = {.format = "nf4"};
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    of->ok = cx != NULL;
    for (int i = 0; i < TURNS && of->ok; i++) {
        lb_array *g[2];
        lb_enter(cx);
        of->ok = lb_value_and_grad(cx, product, of->a, 2, &c, g, 2) != NULL;
        for (int k = 0; k < 2 && of->ok; k++) {
            if (i)
                of->ok = same(cx, of->g[k], g[k]);
            else
                of->g[k] = lb_ref(g[k]);
        }
        lb_leave(cx);
    }
    lb_close(cx);
    return NULL;
}

static void crews(lb_ctx *cx)
{
    lb_array *a[2] = {normal(cx, 7, LB_F32, LB_SHAPE(9, 96)),
                      normal(cx, 8, LB_F32, LB_SHAPE(96, 33))};
    crew of[CREWS];
    pthread_t thread[CREWS];
    for (int i = 0; i < CREWS; i++) {
        of[i] = (crew){.a = a};
        CHECK(!pthread_create(&thread[i], NULL, work, &of[i]));
    }
    for (int i = 0; i < CREWS; i++) {
        CHECK(!pthread_join(thread[i], NULL) && of[i].ok);
        for (int k = 0; k < 2; k++)
            CHECK(same(cx, of[0].g[k], of[i].g[k]));
    }
    for (int i = 0; i < CREWS; i++)
        for (int k = 0; k < 2; k++)
            lb_unref(of[i].g[k]);
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    CHECK(cx != NULL);
    empty(cx);
    empty_batch(cx);
    single(cx);
    lowest_power(cx);
    ignored(cx);
    on_the_way(cx);
    crossed(cx);
    formats();
    crews(cx);
    lb_close(cx);
    return check_report("edges of gradients");
}
