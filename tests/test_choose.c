/* test_choose.c - lb_top_k, lb_sample and lb_slice_axis: against sorting, and
 * frequencies of many draws against probabilities in double precision.
 */
#include "check.h"
#include "lowbit.h"

enum { N = 40, DRAWS = 20000 };

/* ---- top k --------------------------------------------------------------- */

static lb_array *sum_of_squares(lb_ctx *cx, lb_array *const *a, int n,
                                void *user)
{
    (void)n, (void)user;
    lb_array *y = lb_top_k(cx, a[0], 3, NULL);
    return lb_reduce_sum(cx, lb_mul(cx, y, y), NULL);
}

static void largest(lb_ctx *cx)
{
    float x[2 * N], y[2 * N];
    int32_t at[2 * N];
    lb_enter(cx);
    for (int i = 0; i < 2 * N; i++)
        x[i] = (float)((i * 17) % 23) - 5; /* with ties */
    x[7] = x[30] = NAN;
    x[N + 3] = -INFINITY;
    lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(2, N), x), *index;
    lb_array *top = lb_top_k(cx, a, N, &index);
    CHECK(lb_read(cx, top, y, sizeof y) && lb_read(cx, index, at, sizeof at));
    CHECK(at[0] == 7 && at[1] == 30 && isnan(y[0]));
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < N; i++) {
            const int k = r * N + i;
            CHECK(at[k] >= 0 && at[k] < N);
            CHECK(y[k] == x[r * N + at[k]] || isnan(y[k]));
            if (i && !isnan(y[k - 1]))
                CHECK(y[k - 1] > y[k] ||
                      (y[k - 1] == y[k] && at[k - 1] < at[k]));
        }
    top = lb_top_k(cx, a, 5, &index);
    CHECK(lb_dim(top, 1) == 5 && lb_dim(index, 1) == 5);
    int32_t few[10];
    CHECK(lb_read(cx, index, few, sizeof few));
    for (int i = 0; i < 10; i++)
        CHECK_EQ_I(few[i], at[i / 5 * N + i % 5]);
    CHECK(lb_size(lb_top_k(cx, a, 0, NULL)) == 0);
    CHECK(!lb_top_k(cx, a, N + 1, &index) && !index);
    CHECK(strstr(lb_error(cx), "k is 41, but the last axis of (2,40)"));
    lb_clear(cx);
    CHECK(!lb_top_k(cx, lb_scalar(cx, 1), 1, NULL));
    lb_clear(cx);

    lb_array *b = lb_slice_axis(cx, a, 0, 1, 2), *g;
    CHECK(lb_value_and_grad(cx, sum_of_squares, &b, 1, NULL, &g, 1));
    CHECK(lb_read(cx, g, y, N * sizeof *y));
    for (int i = 0; i < N; i++) {
        const bool among = i == at[N] || i == at[N + 1] || i == at[N + 2];
        CHECK(y[i] == (among ? 2 * x[N + i] : 0));
    }
    lb_leave(cx);
}

/* ---- samples ------------------------------------------------------------- */

/* Which tokens the filters leave, and their probabilities: straight from the
 * definitions, by sorting. */
static void expected(const float *x, const lb_sample_options *o, double *p)
{
    int order[N];
    double total = 0, sum = 0;
    for (int i = 0; i < N; i++) {
        int k = i;
        for (; k && x[order[k - 1]] < x[i]; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    const int most = o->top_k ? (int)o->top_k : N;
    int n = most;
    for (int i = 0; i < N; i++)
        p[i] = exp(((double)x[i] - (double)x[order[0]]) / o->temperature);
    for (int i = 0; i < most; i++)
        total += p[order[i]];
    if (o->top_p > 0 && o->top_p < 1)
        for (n = 0; n < most && sum < o->top_p * total;)
            sum += p[order[n++]];
    for (int i = n; i < N; i++)
        p[order[i]] = 0;
    total = 0;
    for (int i = 0; i < N; i++) {
        if (p[i] < o->min_p) p[i] = 0;
        total += p[i];
    }
    for (int i = 0; i < N; i++)
        p[i] /= total;
}

/* DRAWS rows of the same logits. */
static void frequencies(lb_ctx *cx, const lb_sample_options *o)
{
    static int32_t token[DRAWS];
    float x[N];
    double p[N];
    int count[N] = {0};
    lb_enter(cx);
    for (int i = 0; i < N; i++)
        x[i] = (float)((i * 13) % N) / 8;
    lb_array *a = lb_broadcast_to(cx, lb_from(cx, LB_F32, LB_SHAPE(N), x),
                                  LB_SHAPE(DRAWS, N));
    lb_array *t = lb_sample(cx, (lb_key){4, 2}, a, o);
    CHECK(t && lb_dtype_of(t) == LB_I32 && lb_read(cx, t, token, sizeof token));
    expected(x, o, p);
    for (int i = 0; i < DRAWS; i++)
        count[token[i]]++;
    for (int i = 0; i < N; i++) {
        const double off = 5 * sqrt(DRAWS * p[i] * (1 - p[i])) + 1e-9;
        CHECK_NEAR(count[i], DRAWS * p[i], off);
    }
    lb_leave(cx);
}

static void samples(lb_ctx *cx)
{
    static const lb_sample_options o[] = {
        {.temperature = 1},
        {.temperature = 0.4},
        {.temperature = 1, .top_k = 7},
        {.temperature = 2, .top_p = 0.6},
        {.temperature = 1, .min_p = 0.2},
        {.temperature = 0.7, .top_k = 20, .top_p = 0.8, .min_p = 0.1},
    };
    for (size_t i = 0; i < sizeof o / sizeof *o; i++)
        frequencies(cx, &o[i]);
}

static void edges(lb_ctx *cx)
{
    lb_enter(cx);
    float x[] = {1, 3, 3, -INFINITY, 2, INFINITY, 0, INFINITY};
    lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(4), x);
    const lb_sample_options zero = {0}; /* temperature 0: the first largest */
    CHECK_EQ_I(lb_item_int(cx, lb_sample(cx, (lb_key){1, 1}, a, &zero)), 1);
    lb_array *both = lb_from(cx, LB_F32, LB_SHAPE(2, 4), x);
    int32_t t[2];
    for (uint64_t k = 0; k < 50; k++) {
        CHECK(lb_read(cx, lb_sample(cx, (lb_key){1, k}, both, NULL), t,
                      sizeof t));
        CHECK(t[0] != 3 && (t[1] == 1 || t[1] == 3));
    }
    /* All but -inf are equally likely. */
    const lb_sample_options hot = {.temperature = 1e300};
    int seen = 0;
    for (uint64_t k = 0; k < 200; k++)
        seen |= 1 << lb_item_int(cx, lb_sample(cx, (lb_key){2, k}, a, &hot));
    CHECK_EQ_I(seen, 7);
    x[2] = NAN;
    CHECK(!lb_sample(cx, (lb_key){1, 1}, lb_from(cx, LB_F32, LB_SHAPE(2, 4), x),
                     NULL));
    CHECK(strstr(lb_error(cx), "logit 2 of row 0 is NaN"));
    lb_clear(cx);
    CHECK(!lb_sample(cx, (lb_key){1, 1},
                     lb_full(cx, LB_F32, LB_SHAPE(3), -INFINITY), NULL));
    CHECK(strstr(lb_error(cx), "none of the 3 logits of row 0"));
    lb_clear(cx);
    const lb_sample_options bad[] = {{.temperature = -1},
                                     {.temperature = 1, .top_p = 2},
                                     {.temperature = 1, .top_k = -1},
                                     {.temperature = 1, .min_p = NAN}};
    for (int i = 0; i < 4; i++) {
        CHECK(!lb_sample(cx, (lb_key){1, 1}, a, &bad[i]));
        CHECK_EQ_I(lb_error_status(cx), LB_E_ARG);
        lb_clear(cx);
    }
    CHECK(!lb_sample(cx, (lb_key){1, 1}, NULL, NULL));
    lb_clear(cx);
    lb_leave(cx);
}

/* The same tokens at every level and thread count. */
static void everywhere(void)
{
    static const char *const isa[] = {"ref", NULL};
    int32_t first[300] = {0}, token[300] = {0};
    for (int i = 0; i < 4; i++) {
        lb_ctx *cx =
            lb_open(&(lb_options){.threads = 1 + i / 2 * 2, .isa = isa[i % 2]});
        lb_array *a =
            lb_random_normal(cx, (lb_key){8, 8}, LB_F32, LB_SHAPE(300, 1000));
        lb_array *t =
            lb_sample(cx, (lb_key){5, 5}, a,
                      &(lb_sample_options){.temperature = 0.9, .top_p = 0.95});
        CHECK(t && lb_read(cx, t, i ? token : first, sizeof token));
        if (i) CHECK(memcmp(first, token, sizeof token) == 0);
        lb_close(cx);
    }
}

/* ---- slices -------------------------------------------------------------- */

static void slices(lb_ctx *cx)
{
    static const int64_t c[][4] = {
        /* start, limit, first, count */
        {1, 3, 1, 2},    {0, 5, 0, 5}, {-2, 5, 3, 2}, {1, -1, 1, 3},
        {-99, 99, 0, 5}, {3, 2, 3, 0}, {7, 9, 5, 0}};
    lb_enter(cx);
    lb_array *a = lb_iota(cx, LB_I32, LB_SHAPE(3, 5), 1);
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        lb_array *s = lb_slice_axis(cx, a, -1, c[i][0], c[i][1]);
        CHECK(lb_dim(s, 0) == 3 && lb_dim(s, 1) == c[i][3]);
        int32_t x[15];
        CHECK(lb_read(cx, s, x, 12 * (size_t)c[i][3]));
        for (int64_t k = 0; k < 3 * c[i][3]; k++)
            CHECK_EQ_I(x[k], c[i][2] + k % c[i][3]);
    }
    CHECK(!lb_slice_axis(cx, a, 2, 0, 1));
    CHECK_EQ_I(lb_error_status(cx), LB_E_AXIS);
    lb_clear(cx);
    CHECK(!lb_slice_axis(cx, NULL, 0, 0, 1));
    lb_clear(cx);
    lb_leave(cx);
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    largest(cx);
    samples(cx);
    edges(cx);
    slices(cx);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    everywhere();
    return check_report("lb_top_k, lb_sample");
}
