/* test_rules.c - a format's own implementation of a primitive. The products of
 * low_rank (examples/) against doubles; that its rule is used where documented,
 * declines elsewhere and never decodes W; and the order in which rules are
 * tried. */
#include <stdlib.h>

#include "check.h"
#include "dense_log.h"
#include "e4m3.h"
#include "low_rank.h"

static lb_array *normal(lb_ctx *cx, uint64_t seed, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){seed, 0}, LB_F32, shape);
}

static bool takes_rule(lb_ctx *cx, lb_array *lhs, lb_array *rhs,
                       const lb_dot_dims *d)
{
    lb_array *in[] = {lhs, rhs};
    const char *how = lb_explain(cx, "dot_general", in, 2, d);
    CHECK(how != NULL);
    return how && strstr(how, ": rule") != NULL;
}

/* ---- W + A B ------------------------------------------------------------ */

enum { MOST = 64 * 64 };

/* A low-rank array and its exact values in doubles. */
typedef struct {
    lb_array *w;
    int64_t m, n, r;
    double value[MOST], size[MOST]; /* w, and |base| + |A| |B| */
} weights;

static weights make(lb_ctx *cx, lb_array *base, int64_t r)
{
    static float v[MOST], a[MOST], b[MOST];
    weights t = {.m = lb_dim(base, 0), .n = lb_dim(base, 1), .r = r};
    lb_array *fa = normal(cx, 21, LB_SHAPE(t.m, r));
    lb_array *fb = normal(cx, 22, LB_SHAPE(r, t.n));
    t.w = low_rank_make(cx, base, fa, fb);
    CHECK(lb_read(cx, lb_convert(cx, base, LB_F32), v,
                  (size_t)(t.m * t.n) * sizeof *v));
    CHECK(lb_read(cx, fa, a, (size_t)(t.m * r) * sizeof *a));
    CHECK(lb_read(cx, fb, b, (size_t)(r * t.n) * sizeof *b));
    for (int64_t i = 0; i < t.m; i++)
        for (int64_t j = 0; j < t.n; j++) {
            double sum = (double)v[i * t.n + j], size = fabs(sum);
            for (int64_t k = 0; k < r; k++) {
                const double ab = (double)a[i * r + k] * (double)b[k * t.n + j];
                sum += ab;
                size += fabs(ab);
            }
            t.value[i * t.n + j] = sum;
            t.size[i * t.n + j] = size;
        }
    return t;
}

static void decoding(lb_ctx *cx, const weights *t)
{
    static float got[MOST];
    CHECK(lb_read(cx, t->w, got, (size_t)(t->m * t->n) * sizeof *got));
    for (int64_t i = 0; i < t->m * t->n; i++)
        CHECK_NEAR((double)got[i], (double)(float)t->value[i], 0);
}

/* x (over its axis x_axis) with the stored axis w_axis of W, or of W given as
 * its transpose, at the side of operand. */
static void one_product(lb_ctx *cx, const weights *t, lb_array *x, int x_axis,
                        int w_axis, bool transposed, int operand)
{
    static float v[MOST], got[MOST];
    const int64_t k = lb_dim(x, x_axis), o = w_axis ? t->m : t->n;
    int64_t inner = 1;
    for (int i = x_axis + 1; i < lb_rank(x); i++)
        inner *= lb_dim(x, i);
    const int64_t f = lb_size(x) / k;
    lb_array *w = transposed ? lb_transpose(cx, t->w, NULL) : t->w;
    const lb_axes wa = {1, {transposed ? 1 - w_axis : w_axis}};
    const lb_axes xa = {1, {x_axis}};
    const lb_dot_dims d = {.lhs_contract = operand ? xa : wa,
                           .rhs_contract = operand ? wa : xa};
    lb_array *lhs = operand ? x : w, *rhs = operand ? w : x;
    CHECK(takes_rule(cx, lhs, rhs, &d));
    lb_array *y = lb_dot_general(cx, lhs, rhs, &d);
    CHECK_EQ_I(lb_dtype_of(y), LB_F32);
    CHECK(lb_read(cx, lb_convert(cx, x, LB_F32), v,
                  (size_t)lb_size(x) * sizeof *v));
    CHECK(lb_read(cx, y, got, (size_t)(f * o) * sizeof *got));
    CHECK_EQ_I(lb_rank(y), lb_rank(x));
    CHECK_EQ_I(lb_dim(y, operand ? lb_rank(y) - 1 : 0), o);
    for (int64_t i = 0; i < f; i++)
        for (int64_t j = 0; j < o; j++) {
            double sum = 0, size = 0;
            for (int64_t l = 0; l < k; l++) {
                const double xl =
                    (double)v[(i / inner * k + l) * inner + i % inner];
                const int64_t at = w_axis ? j * t->n + l : l * t->n + j;
                sum += xl * t->value[at];
                size += fabs(xl) * t->size[at];
            }
            const int64_t at = operand ? i * o + j : j * f + i;
            CHECK_NEAR((double)got[at], sum,
                       (double)(k + t->r + 4) * 0x1p-24 * size);
        }
}

static void all_products(lb_ctx *cx, const weights *t)
{
    for (int side = 0; side < 8; side++) {
        const int w_axis = side & 1, operand = side >> 1 & 1;
        const bool transposed = side >> 2;
        const int64_t k = w_axis ? t->n : t->m;
        lb_enter(cx);
        one_product(cx, t, normal(cx, 1, LB_SHAPE(k)), 0, w_axis, transposed,
                    operand);
        one_product(cx, t, normal(cx, 2, LB_SHAPE(5, k)), 1, w_axis, transposed,
                    operand);
        lb_array *x = lb_transpose(cx, normal(cx, 3, LB_SHAPE(k, 2, 3)),
                                   (const int[]){2, 0, 1});
        one_product(cx, t, x, 1, w_axis, transposed, operand);
        one_product(cx, t,
                    lb_convert(cx, normal(cx, 4, LB_SHAPE(k, 2)), LB_F16), 0,
                    w_axis, transposed, operand);
        lb_leave(cx);
    }
}

/* The base in every format that can be quantized to, and with a 16-bit dtype;
 * factors of several ranks. */
static void products(lb_ctx *cx)
{
    const lb_format *fmt;
    lb_array *v = normal(cx, 11, LB_SHAPE(33, 40));
    int formats = 0;
    for (int i = 0; (fmt = lb_format_at(cx, i)); i++) {
        if (!lb_is_encodable(fmt)) continue;
        lb_enter(cx);
        const lb_quant_config config = {.format = fmt->name};
        weights t = make(cx, lb_quantize(cx, v, &config), 3);
        decoding(cx, &t);
        all_products(cx, &t);
        CHECK_EQ_S(lb_error(cx), "");
        lb_clear(cx);
        lb_leave(cx);
        formats++;
    }
    CHECK(formats > 0);
    static const int64_t shape[][3] = {{33, 40, 1}, {40, 33, 70}, {1, 20, 2},
                                       {20, 1, 2},  {1, 1, 1},    {16, 16, 5}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (lb_dtype d = LB_F32; d <= LB_BF16; d++) {
            lb_enter(cx);
            lb_array *base = lb_convert(
                cx, normal(cx, 12, LB_SHAPE(shape[i][0], shape[i][1])), d);
            weights t = make(cx, base, shape[i][2]);
            CHECK_EQ_I(lb_dtype_of(t.w), d);
            t.w = lb_convert(cx, t.w, LB_F32);
            decoding(cx, &t);
            all_products(cx, &t);
            lb_leave(cx);
        }
    CHECK_EQ_S(lb_error(cx), "");
}

/* ---- where the rule declines ------------------------------------------- */

/* The values of an operand as stored: its dtype does not round products. */
static lb_array *stored(lb_ctx *cx, lb_array *a)
{
    const bool rounds = lb_dtype_of(a) == LB_BF16 || lb_dtype_of(a) == LB_F16;
    return lb_materialize(cx, rounds ? lb_convert(cx, a, LB_F32) : a);
}

/* Not by the rule, and still correct: W is decoded. */
static void declines(lb_ctx *cx, lb_array *lhs, lb_array *rhs,
                     const lb_dot_dims *d)
{
    CHECK(!takes_rule(cx, lhs, rhs, d));
    lb_array *got = lb_dot_general(cx, lhs, rhs, d);
    lb_array *want = lb_dot_general(cx, stored(cx, lhs), stored(cx, rhs), d);
    const size_t size =
        (size_t)lb_size(want) * lb_dtype_size(lb_dtype_of(want));
    char *a = calloc(1, size + 1), *b = calloc(1, size + 1);
    CHECK(a && b && lb_read(cx, got, a, size) && lb_read(cx, want, b, size) &&
          memcmp(a, b, size) == 0);
    free(a);
    free(b);
    CHECK_EQ_S(lb_error(cx), "");
    lb_clear(cx);
}

static void declining(lb_ctx *cx)
{
    enum { K = 24, N = 32 };
    lb_array *w = low_rank_make(
        cx,
        lb_quantize(cx, normal(cx, 1, LB_SHAPE(K, N)),
                    &(lb_quant_config){.format = "e4m3", .block_size = 8}),
        normal(cx, 2, LB_SHAPE(K, 4)), normal(cx, 3, LB_SHAPE(4, N)));
    lb_array *x = normal(cx, 4, LB_SHAPE(5, K));
    const lb_dot_dims d = {.lhs_contract = {1, {1}}, .rhs_contract = {1, {0}}};
    lb_dot_dims e = d;
    CHECK(takes_rule(cx, x, w, &d));

    /* Logical dtypes that round, and results of higher precision than f32. */
    declines(cx, x, lb_convert(cx, w, LB_BF16), &d);
    declines(cx, x, lb_convert(cx, w, LB_F16), &d);
    declines(cx, x, lb_convert(cx, w, LB_F64), &d);
    declines(cx, lb_convert(cx, x, LB_F64), w, &d);
    e.preferred = LB_F64;
    declines(cx, x, w, &e);
    e.preferred = LB_F32;
    declines(cx, lb_convert(cx, x, LB_F64), w, &e);
    /* A 16-bit result is one more rounding, of the f32 sum. */
    e.preferred = LB_BF16;
    CHECK(takes_rule(cx, x, w, &e));
    lb_array *y = lb_dot_general(cx, x, w, &e);
    CHECK_EQ_I(lb_dtype_of(y), LB_BF16);
    lb_array *same =
        lb_eq(cx, y, lb_convert(cx, lb_dot_general(cx, x, w, &d), LB_BF16));
    CHECK_EQ_I(lb_item_int(cx, lb_reduce_and(cx, same, NULL)), 1);

    /* Views of part of it. */
    const int64_t lo[] = {0, 0}, half[] = {K, N / 2}, all[] = {K, N};
    const int64_t by[] = {1, 2};
    declines(cx, x, lb_slice(cx, w, lo, half, NULL), &d);
    declines(cx, x, lb_slice(cx, w, lo, all, by), &d);
    declines(cx, x, lb_reverse(cx, w, LB_AXES(1)), &d);
    declines(cx, x, lb_reshape(cx, w, LB_SHAPE(K, 4, N / 4)), &d);
    declines(cx, x, lb_expand(cx, w, 2), &d);
    declines(cx, x, lb_expand(cx, w, 1), &d);
    declines(cx, x,
             lb_broadcast_in_dim(cx,
                                 lb_slice(cx, w, lo, (int64_t[]){1, N}, NULL),
                                 LB_SHAPE(K, N), (const int[]){0, 1}),
             &d);

    /* None, two, or batched axes. */
    declines(cx, normal(cx, 5, LB_SHAPE(3)), w, &(lb_dot_dims){.precision = 0});
    declines(cx, normal(cx, 6, LB_SHAPE(2, K, N)), w,
             &(lb_dot_dims){.lhs_contract = {2, {1, 2}},
                            .rhs_contract = {2, {0, 1}}});
    declines(cx, lb_transpose(cx, x, NULL), w,
             &(lb_dot_dims){.lhs_batch = {1, {0}}, .rhs_batch = {1, {0}}});
    declines(cx, normal(cx, 7, LB_SHAPE(K, N)), w,
             &(lb_dot_dims){.lhs_batch = {1, {0}},
                            .rhs_batch = {1, {0}},
                            .lhs_contract = {1, {1}},
                            .rhs_contract = {1, {1}}});

    /* If x is not finite, W is decoded. */
    static float v[5 * K];
    CHECK(lb_read(cx, x, v, sizeof v));
    v[K + 3] = INFINITY;
    v[3 * K] = NAN;
    declines(cx, lb_from(cx, LB_F32, LB_SHAPE(5, K), v), w, &d);
}

/* ---- several, moved, refused -------------------------------------------- */

/* Both operands, and a base that is low-rank itself: nested rules. */
static void nested(lb_ctx *cx)
{
    static float got[MOST];
    const weights p = make(cx, normal(cx, 1, LB_SHAPE(20, 24)), 3);
    weights q = make(cx, normal(cx, 2, LB_SHAPE(24, 30)), 2);
    for (int deeper = 0; deeper < 2; deeper++) {
        lb_array *y = lb_matmul(cx, p.w, q.w);
        CHECK(lb_read(cx, y, got, sizeof(float) * 20 * 30));
        for (int64_t i = 0; i < 20; i++)
            for (int64_t j = 0; j < 30; j++) {
                double sum = 0, size = 0;
                for (int64_t k = 0; k < 24; k++) {
                    sum += p.value[i * 24 + k] * q.value[k * 30 + j];
                    size += p.size[i * 24 + k] * q.size[k * 30 + j];
                }
                CHECK_NEAR((double)got[i * 30 + j], sum, 40 * 0x1p-24 * size);
            }
        q = make(cx, q.w, 2);
    }
    CHECK_EQ_S(lb_error(cx), "");
}

static void moving(lb_ctx *cx)
{
    enum { K = 24, N = 32 };
    static float plain[K * N], got[K * N];
    lb_array *base =
        lb_quantize(cx, normal(cx, 1, LB_SHAPE(K, N)),
                    &(lb_quant_config){.format = "nf4", .block_size = 8});
    lb_array *w = low_rank_make(cx, base, normal(cx, 2, LB_SHAPE(K, 4)),
                                normal(cx, 3, LB_SHAPE(4, N)));
    CHECK(lb_read(cx, w, plain, sizeof plain));
    CHECK_EQ_S(lb_format_of(lb_component(cx, w, "base")), "nf4");
    /* Gathered rows take their rows of base and A along. */
    const int32_t index[] = {7, 0, 23, 7};
    lb_array *rows =
        lb_embedding(cx, w, lb_from(cx, LB_I32, LB_SHAPE(4), index));
    CHECK_EQ_S(lb_format_of(rows), "low_rank");
    CHECK(lb_read(cx, rows, got, 4 * N * sizeof *got));
    for (int i = 0; i < 4; i++)
        CHECK(memcmp(got + i * N, plain + index[i] * N, N * sizeof *got) == 0);
    /* Halves cut between blocks join again; B is the same in both. */
    lb_array *half[2];
    for (int i = 0; i < 2; i++)
        half[i] = lb_slice(cx, w, (int64_t[]){i * K / 2, 0},
                           (int64_t[]){(i + 1) * K / 2, N}, NULL);
    lb_array *joined = lb_concatenate(cx, half, 2, 0);
    CHECK_EQ_S(lb_format_of(joined), "low_rank");
    CHECK(lb_read(cx, joined, got, sizeof got));
    CHECK(memcmp(got, plain, sizeof got) == 0);
    lb_array *x = normal(cx, 4, LB_SHAPE(2, K));
    CHECK(takes_rule(
        cx, x, joined,
        &(lb_dot_dims){.lhs_contract = {1, {1}}, .rhs_contract = {1, {0}}}));
    /* An axis of size one from a gather does not prevent the rule. */
    lb_array *more[] = {lb_expand(cx, half[0], 2), lb_expand(cx, half[1], 2)};
    joined = lb_squeeze(cx, lb_concatenate(cx, more, 2, 0), LB_AXES(2));
    CHECK_EQ_S(lb_format_of(joined), "low_rank");
    CHECK(lb_read(cx, joined, got, sizeof got));
    CHECK(memcmp(got, plain, sizeof got) == 0);
    CHECK(lb_matmul(cx, x, joined) != NULL);
    /* Cut inside a block the base would have to become dense, and it is firm.
     */
    for (int i = 0; i < 2; i++)
        half[i] = lb_slice(cx, w, (int64_t[]){0, i ? 13 : 0},
                           (int64_t[]){K, i ? N : 13}, NULL);
    joined = lb_concatenate(cx, half, 2, 1);
    CHECK_EQ_S(lb_format_of(joined), "dense");
    CHECK(lb_read(cx, joined, got, sizeof got));
    CHECK(memcmp(got, plain, sizeof got) == 0);
    CHECK_EQ_S(lb_error(cx), "");
}

/* An axis of size one is dropped when blocks are moved: then a or b follows the
 * remaining axis, and (M,1) in its own rows is not (M,N). */
static void reshaped(lb_ctx *cx)
{
    enum { N = 24 };
    static float plain[N], got[2 * N];
    const lb_dot_dims d = {.lhs_contract = {1, {1}}, .rhs_contract = {1, {0}}};
    lb_array *x = normal(cx, 4, LB_SHAPE(2, 8));
    for (int tall = 0; tall < 2; tall++) {
        const int64_t m = tall ? N : 1, n = tall ? 1 : N;
        lb_array *base = lb_quantize(cx, normal(cx, 1, LB_SHAPE(m, n)),
                                     &(lb_quant_config){.format = "e4m3"});
        lb_array *w = low_rank_make(cx, base, normal(cx, 2, LB_SHAPE(m, 3)),
                                    normal(cx, 3, LB_SHAPE(3, n)));
        CHECK(lb_read(cx, w, plain, sizeof plain));
        /* Another stride of an axis of size one is the same view. */
        lb_array *v = lb_view(cx, w);
        v->stride[tall] = -77;
        CHECK(takes_rule(cx, normal(cx, 5, LB_SHAPE(2, m)), v, &d));
        const lb_shape shape[] = {LB_SHAPE(N), LB_SHAPE(4, 6), LB_SHAPE(6, 4)};
        for (int i = 0; i < 3; i++) {
            lb_array *one = lb_reshape(cx, w, shape[i]);
            lb_array *two = lb_concatenate(cx, (lb_array *[]){one, one}, 2, 0);
            CHECK(lb_read(cx, two, got, sizeof got));
            CHECK(memcmp(got, plain, sizeof plain) == 0);
            CHECK(memcmp(got + N, plain, sizeof plain) == 0);
            if (tall) CHECK_EQ_S(lb_format_of(two), "low_rank");
            if (i == 1) declines(cx, x, two, &d);
        }
    }
    CHECK_EQ_S(lb_error(cx), "");
}

static void refused(lb_ctx *cx, const lb_array *a, lb_status status,
                    const char *say)
{
    const bool ok = !a && lb_error_status(cx) == status &&
                    strstr(lb_error(cx), say) != NULL;
    if (check_fails(ok))
        fprintf(stderr, "%s: \"%s\", not %s with \"%s\"\n",
                lb_status_name(lb_error_status(cx)), lb_error(cx),
                lb_status_name(status), say);
    lb_clear(cx);
}

static void refusals(lb_ctx *cx)
{
    lb_array *base = normal(cx, 1, LB_SHAPE(4, 6));
    lb_array *a = normal(cx, 2, LB_SHAPE(4, 2));
    lb_array *b = normal(cx, 3, LB_SHAPE(2, 6));
    CHECK(low_rank_make(cx, base, a, b) != NULL);
    CHECK(!low_rank_make(NULL, base, a, b));
    refused(cx, low_rank_make(cx, NULL, a, b), LB_E_NULL, "base is NULL");
    refused(cx, low_rank_make(cx, base, NULL, b), LB_E_NULL, "a is NULL");
    refused(cx, low_rank_make(cx, base, a, NULL), LB_E_NULL, "b is NULL");
    refused(cx, low_rank_make(cx, base, b, a), LB_E_SHAPE,
            "(4,6) + (2,6) (4,2)");
    refused(cx,
            low_rank_make(cx, base, lb_zeros(cx, LB_F32, LB_SHAPE(4, 0)),
                          lb_zeros(cx, LB_F32, LB_SHAPE(0, 6))),
            LB_E_SHAPE, "R >= 1");
    refused(cx, low_rank_make(cx, base, lb_convert(cx, a, LB_F64), b),
            LB_E_DTYPE, "f32, f64, f32");
    refused(cx, low_rank_make(cx, lb_convert(cx, base, LB_I32), a, b),
            LB_E_DTYPE, "i32, f32, f32");
}

/* No (K,N) of floats at any time: a context of its own allocates only what the
 * product needs. */
static void memory(void)
{
    enum { K = 2048, N = 2048, ROWS = 4 };
    lb_ctx *maker = lb_open(&(lb_options){.threads = 1});
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    CHECK(maker && cx);
    lb_array *base = lb_quantize(maker, normal(maker, 1, LB_SHAPE(K, N)),
                                 &(lb_quant_config){.format = "nf4"});
    lb_array *w =
        lb_ref(low_rank_make(maker, base, normal(maker, 2, LB_SHAPE(K, 8)),
                             normal(maker, 3, LB_SHAPE(8, N))));
    lb_array *x = normal(cx, 4, LB_SHAPE(ROWS, K));
    for (int turned = 0; turned < 2; turned++) {
        lb_array *y = lb_matmul(cx, x, turned ? lb_transpose(cx, w, NULL) : w);
        CHECK(y != NULL);
        CHECK_EQ_S(lb_error(cx), "");
    }
    printf("x W with W (%d,%d): peak of %zu KiB, W would be %d KiB\n", K, N,
           lb_bytes_peak(cx) >> 10, K * N * 4 >> 10);
    CHECK(lb_bytes_peak(cx) < (size_t)K * N);
    lb_unref(w);
    lb_close(cx);
    lb_close(maker);
}

/* ---- the order of rules ------------------------------------------------- */

/* Two formats whose rules record that they were called, and return what they
 * are configured to. */
static char asked[64];
static lb_verdict answer[2];

static lb_verdict write_down(lb_ctx *cx, const lb_call *c, int operand,
                             lb_array **out, int which, char mark)
{
    const size_t at = strlen(asked);
    snprintf(asked + at, sizeof asked - at, "%c%d ", mark, operand);
    if (answer[which] == LB_DONE) *out = lb_zeros(cx, c->dtype, c->shape);
    if (answer[which] == LB_FAILED)
        lb_fail(cx, LB_E_UNSUPPORTED, "%c%d failed", mark, operand);
    return answer[which];
}

static lb_verdict ask_a(lb_ctx *cx, const lb_call *c, int operand,
                        lb_array **out)
{
    return write_down(cx, c, operand, out, 0, 'a');
}

static lb_verdict ask_b(lb_ctx *cx, const lb_call *c, int operand,
                        lb_array **out)
{
    return write_down(cx, c, operand, out, 1, 'b');
}

static lb_verdict ask_later(lb_ctx *cx, const lb_call *c, int operand,
                            lb_array **out)
{
    return write_down(cx, c, operand, out, 1, 'l');
}

static void expect(lb_ctx *cx, lb_array *x, lb_array *y, lb_verdict of_a,
                   lb_verdict of_b, const char *order, const char *tier)
{
    lb_array *in[] = {x, y};
    answer[0] = of_a;
    answer[1] = of_b;
    asked[0] = 0;
    const char *how = lb_explain(cx, "add", in, 2, NULL);
    CHECK_EQ_S(asked, order);
    CHECK(how && tier ? strstr(how, tier) != NULL : !how && !tier);
    lb_clear(cx);
    asked[0] = 0;
    lb_array *sum = lb_add(cx, x, y);
    CHECK_EQ_S(asked, order);
    CHECK_EQ_I(sum != NULL, tier != NULL);
    if (tier)
        CHECK((lb_item(cx, lb_reduce_max(cx, sum, NULL)) == 0) ==
              (strcmp(tier, ": rule") == 0));
    if (!tier) CHECK(strstr(lb_error(cx), " failed") != NULL);
    lb_clear(cx);
}

static void rule_order(lb_ctx *cx)
{
    static const lb_rule of_a[] = {
        {"mul", ask_a}, {"add", ask_a}, {"add", ask_later}, {NULL, NULL}};
    static const lb_rule of_b[] = {{"add", ask_b}, {NULL, NULL}};
    static lb_format fa, fb;
    fa = fb = e4m3_format;
    fa.name = "asked_a";
    fa.rules = of_a;
    fb.name = "asked_b";
    fb.rules = of_b;
    CHECK(lb_add_format(cx, &fa) && lb_add_format(cx, &fb));
    lb_array *one = lb_full(cx, LB_F32, LB_SHAPE(2, 3), 1);
    lb_array *a = lb_quantize(cx, one, &(lb_quant_config){.format = fa.name});
    lb_array *b = lb_quantize(cx, one, &(lb_quant_config){.format = fb.name});
    const lb_verdict yes = LB_DONE, no = LB_DECLINED, bad = LB_FAILED;
    /* Operands in order, each with its table in order; the first that does not
     * decline decides. */
    expect(cx, a, b, no, no, "a0 l0 b1 ", ": tiles");
    expect(cx, b, a, no, no, "b0 a1 l1 ", ": tiles");
    expect(cx, a, b, yes, yes, "a0 ", ": rule");
    expect(cx, b, a, yes, yes, "b0 ", ": rule");
    expect(cx, b, a, yes, no, "b0 a1 ", ": rule");
    expect(cx, a, b, no, yes, "a0 l0 ", ": rule");
    expect(cx, a, a, no, no, "a0 l0 a1 l1 ", ": tiles");
    expect(cx, one, b, no, yes, "b1 ", ": rule");
    expect(cx, one, one, yes, yes, "", ": tiles");
    expect(cx, a, b, bad, yes, "a0 ", NULL);
    expect(cx, b, a, bad, no, "b0 a1 ", NULL);
    /* Whatever the number of operands. */
    answer[0] = answer[1] = LB_DECLINED;
    asked[0] = 0;
    CHECK(lb_mul(cx, b, a) != NULL);
    CHECK_EQ_S(asked, "a1 ");
}

/* ---- rules added at run time -------------------------------------------- */

/* Rules that record their letter and return the given verdict; `twice` doubles
 * the result of the same call without it. */
static lb_verdict told(char mark, int operand, lb_verdict v)
{
    const size_t at = strlen(asked);
    snprintf(asked + at, sizeof asked - at, "%c%d ", mark, operand);
    return v;
}

static lb_verdict add_x(lb_ctx *cx, const lb_call *c, int operand,
                        lb_array **out)
{
    (void)cx, (void)c, (void)out;
    return told('x', operand, LB_DECLINED);
}

static lb_verdict add_y(lb_ctx *cx, const lb_call *c, int operand,
                        lb_array **out)
{
    (void)cx, (void)c, (void)out;
    return told('y', operand, LB_DECLINED);
}

static lb_verdict twice(lb_ctx *cx, const lb_call *c, int operand,
                        lb_array **out)
{
    told('t', operand, LB_DONE);
    lb_array *y = lb_bind(cx, c->prim, c->n_in, c->in, c->params);
    lb_array *both[] = {y, y};
    *out = lb_bind(cx, lb_find_primitive(cx, "add"), 2, both, NULL);
    return *out ? LB_DONE : LB_FAILED;
}

static lb_verdict thrice(lb_ctx *cx, const lb_call *c, int operand,
                         lb_array **out)
{
    told('s', operand, LB_DONE);
    lb_array *y = lb_bind(cx, c->prim, c->n_in, c->in, c->params);
    *out = lb_mul(cx, y, lb_scalar(cx, 3));
    return *out ? LB_DONE : LB_FAILED;
}

/* Results that the rule does not own: an operand, and an array that is kept. */
static lb_array *kept;
static lb_verdict borrows(lb_ctx *cx, const lb_call *c, int operand,
                          lb_array **out)
{
    (void)cx;
    *out = kept ? kept : c->in[operand];
    return LB_DONE;
}

static lb_verdict wrong_shape(lb_ctx *cx, const lb_call *c, int operand,
                              lb_array **out)
{
    (void)c, (void)operand;
    *out = lb_zeros(cx, LB_F32, LB_SHAPE(1));
    return LB_DONE;
}

/* y == factor * x, element by element. */
static bool is_times(lb_ctx *cx, lb_array *y, double factor, lb_array *x)
{
    lb_array *want = lb_mul(cx, x, lb_scalar(cx, factor));
    return y && lb_item_int(cx, lb_reduce_and(cx, lb_eq(cx, y, want), NULL));
}

static lb_array *exp_plus_one(lb_ctx *cx, lb_array *const *args, int n,
                              void *user)
{
    (void)n, (void)user;
    return lb_add(cx, lb_exp(cx, args[0]), lb_scalar(cx, 1));
}

static lb_array *sum_exp(lb_ctx *cx, lb_array *const *args, int n, void *user)
{
    (void)n, (void)user;
    return lb_reduce_sum(cx, lb_exp(cx, args[0]), NULL);
}

static void added_order(void)
{
    static const lb_rule own[] = {{"add", ask_a}, {NULL, NULL}};
    static lb_format f;
    f = e4m3_format;
    f.name = "with_rules";
    f.rules = own;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    CHECK(lb_add_format(cx, &f));
    lb_array *one = lb_full(cx, LB_F32, LB_SHAPE(2, 3), 1);
    lb_array *a = lb_quantize(cx, one, &(lb_quant_config){.format = f.name});
    lb_array *b = lb_quantize(cx, one, &(lb_quant_config){.format = "nf4"});
    const lb_verdict no = LB_DECLINED, yes = LB_DONE;
    CHECK(lb_add_rule(cx, f.name, "add", add_x));
    expect(cx, a, b, no, no, "x0 a0 ", ": tiles");
    expect(cx, b, a, no, no, "x1 a1 ", ": tiles");
    /* Any format: also nf4 and dense. The latest first. */
    CHECK(lb_add_rule(cx, NULL, "add", add_y));
    expect(cx, a, b, no, no, "y0 x0 a0 y1 ", ": tiles");
    expect(cx, one, b, no, no, "y0 y1 ", ": tiles");
    CHECK(lb_add_rule(cx, f.name, "add", add_x));
    expect(cx, a, b, no, no, "x0 y0 x0 a0 y1 ", ": tiles");
    expect(cx, a, b, yes, no, "x0 y0 x0 a0 ", ": rule");
    expect(cx, b, a, yes, no, "y0 x1 y1 x1 a1 ", ": rule");
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
}

static void added_nested(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    lb_array *x = normal(cx, 1, LB_SHAPE(8, 64));
    lb_array *q = lb_quantize(cx, x, NULL);
    lb_array *dense = lb_exp(cx, lb_materialize(cx, q)), *dx = NULL;
    /* A built-in format and a built-in primitive. */
    CHECK(lb_add_rule(cx, "nf4", "exp", twice));
    asked[0] = 0;
    CHECK(is_times(cx, lb_exp(cx, q), 2, dense));
    CHECK_EQ_S(asked, "t0 ");
    CHECK(is_times(cx, lb_exp(cx, lb_materialize(cx, q)), 1, dense));
    /* The later one calls the earlier one, which calls the built-in one. */
    CHECK(lb_add_rule(cx, NULL, "exp", thrice));
    asked[0] = 0;
    CHECK(is_times(cx, lb_exp(cx, q), 6, dense));
    CHECK_EQ_S(asked, "s0 t0 ");
    CHECK(is_times(cx, lb_exp(cx, lb_materialize(cx, q)), 3, dense));
    /* Every call starts anew. */
    CHECK(is_times(cx, lb_exp(cx, q), 6, dense));
    /* A compiled function sees them, before and after it was compiled. */
    lb_compiled *f = lb_compile(cx, exp_plus_one, NULL, NULL);
    lb_array *y = lb_run(f, &q, 1);
    CHECK(y &&
          is_times(cx, lb_sub(cx, y, exp_plus_one(cx, &q, 1, NULL)), 0, dense));
    CHECK(lb_add_rule(cx, "nf4", "exp", twice));
    y = lb_run(f, &q, 1);
    CHECK(y &&
          is_times(cx, lb_sub(cx, y, exp_plus_one(cx, &q, 1, NULL)), 0, dense));
    CHECK(is_times(cx, lb_exp(cx, q), 12, dense));
    lb_compiled_close(f);
    /* Gradients are those of the primitive, of the value that was computed. */
    y = lb_value_and_grad(cx, sum_exp, &x, 1, NULL, &dx, 1);
    CHECK(y &&
          is_times(cx, dx, 3, lb_div(cx, lb_exp(cx, x), lb_scalar(cx, 3))));
    CHECK_EQ_S(lb_error(cx), "");
    lb_clear(cx);
    /* A product, by the rule of one operand or the other. */
    lb_array *w = lb_transpose(cx, q, NULL), *plain = lb_matmul(cx, x, w);
    CHECK(lb_add_rule(cx, "nf4", "dot_general", twice));
    CHECK(is_times(cx, lb_matmul(cx, x, w), 2, plain));
    /* Also where the library reads an array without lb_bind. */
    float got[8 * 64], was[8 * 64];
    CHECK(lb_read(cx, q, was, sizeof was));
    CHECK(lb_add_rule(cx, "nf4", "copy", twice));
    CHECK(lb_read(cx, q, got, sizeof got));
    for (int i = 0; i < 8 * 64; i++)
        CHECK_NEAR((double)got[i], 2 * (double)was[i], 0);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
}

/* The result is always the caller's own to drop; its holder keeps the array. */
static void added_borrowed(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_array *x = normal(cx, 1, LB_SHAPE(3, 5)), *four;
    four = lb_ref(lb_full(cx, LB_F32, LB_SHAPE(3, 5), 4));
    lb_drop(cx, four);
    CHECK(lb_add_rule(cx, NULL, "exp", borrows));
    lb_compiled *f = lb_compile(cx, exp_plus_one, NULL, NULL);
    for (int i = 0; i < 8; i++) {
        kept = i / 2 % 2 ? four : NULL;
        lb_array *is = lb_add(cx, kept ? kept : x, lb_scalar(cx, 1));
        lb_array *y = lb_exp(cx, x);
        CHECK(y && y != x && y != kept);
        lb_drop(cx, y);
        lb_enter(cx);
        y = i % 2 ? lb_run(f, &x, 1) : exp_plus_one(cx, &x, 1, NULL);
        CHECK(is_times(cx, y, 1, is));
        lb_leave(cx);
    }
    CHECK(is_times(cx, x, 1, normal(cx, 1, LB_SHAPE(3, 5))));
    CHECK(is_times(cx, four, 1, lb_full(cx, LB_F32, LB_SHAPE(3, 5), 4)));
    lb_compiled_close(f);
    lb_unref(four);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
}

static void added_refused(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_array *x = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3));
    CHECK(!lb_add_rule(NULL, NULL, "add", twice));
    CHECK(!lb_add_rule(cx, "nf5", "add", twice));
    refused(cx, NULL, LB_E_ARG, "unknown format \"nf5\"");
    CHECK(!lb_add_rule(cx, "nf4", "plus", twice));
    refused(cx, NULL, LB_E_ARG, "unknown primitive \"plus\"");
    CHECK(!lb_add_rule(cx, "nf4", NULL, twice));
    refused(cx, NULL, LB_E_ARG, "unknown primitive \"\"");
    CHECK(!lb_add_rule(cx, "nf4", "add", NULL));
    refused(cx, NULL, LB_E_NULL, "the rule for add is NULL");
    CHECK(lb_add_rule(cx, "dense", "exp", wrong_shape));
    refused(cx, lb_exp(cx, x), LB_E_ARG, "f32(1), not f32(2,3)");
    lb_close(cx);
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){
        .threads = 2, .dense = LB_DENSE_LOG, .log = log_no_copies});
    CHECK(cx != NULL);
    if (!cx) return check_report("rules");
    CHECK(lb_add_format(cx, &e4m3_format));
    CHECK(lb_add_format(cx, &low_rank_format));
    products(cx);
    declining(cx);
    nested(cx);
    moving(cx);
    reshaped(cx);
    refusals(cx);
    rule_order(cx);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    added_order();
    added_nested();
    added_borrowed();
    added_refused();
    memory();
    return check_report("rules");
}
