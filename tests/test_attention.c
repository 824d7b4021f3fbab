/* test_attention.c - lb_attention against softmax(scale q k^T + mask) v in
 * double precision: masks, layouts, grouped heads, formats and dtypes of
 * caches, sizes around every block; its gradient against the derivatives of
 * that formula; memory that does not grow with queries times keys.
 */
#include "check.h"
#include "lowbit.h"
#include "lowbit_ext.h"

typedef struct shape {
    int64_t batch, heads, kv, queries, keys, d, dv;
} shape;

static double *doubles(lb_ctx *cx, lb_array *a)
{
    const size_t n = (size_t)lb_size(a);
    double *x = malloc((n + 1) * sizeof *x);
    lb_enter(cx);
    lb_array *wide = lb_convert(cx, lb_materialize(cx, a), LB_F64);
    if (!x || !wide || !lb_read(cx, wide, x, n * sizeof *x)) abort();
    lb_leave(cx);
    return x;
}

/* Keys that query i sees, and the derivative of a capped score. */
static bool sees(const lb_attention_options *o, const shape *s, int64_t valid,
                 int64_t i, int64_t j)
{
    const int64_t at = valid - s->queries + i;
    if (j >= valid || (o->causal && j > at)) return false;
    return !o->window || j > at - o->window;
}

/* Everything in the order (batch, heads, positions, size). grad: dq, dk and dv
 * for dy, which are added to. */
typedef struct reference {
    const double *q, *k, *v, *dy;
    double *y, *dq, *dk, *dv;
} reference;

static void one_query(const lb_attention_options *o, const shape *s,
                      int64_t valid, const reference *r, int64_t head,
                      int64_t i)
{
    const int64_t kv =
        head / s->heads * s->kv + head % s->heads / (s->heads / s->kv);
    const int64_t row = head * s->queries + i;
    const double *q = r->q + row * s->d, *k = r->k + kv * s->keys * s->d;
    const double *v = r->v + kv * s->keys * s->dv;
    const double scale = o->scale != 0 ? o->scale : 1 / sqrt((double)s->d);
    double *p = calloc((size_t)s->keys + 1, sizeof *p), sum = 0, most = -1e300;
    double *slope = calloc((size_t)s->keys + 1, sizeof *p);
    for (int64_t j = 0; j < s->keys; j++) {
        for (int64_t e = 0; e < s->d; e++)
            p[j] += q[e] * k[j * s->d + e];
        p[j] *= scale;
        slope[j] = scale;
        if (o->soft_cap > 0) {
            const double t = tanh(p[j] / o->soft_cap);
            p[j] = o->soft_cap * t;
            slope[j] *= 1 - t * t;
        }
        if (sees(o, s, valid, i, j)) most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < s->keys; j++) {
        p[j] = sees(o, s, valid, i, j) ? exp(p[j] - most) : 0;
        sum += p[j];
    }
    double *y = r->y + row * s->dv, inner = 0;
    for (int64_t e = 0; e < s->dv; e++) {
        y[e] = 0;
        for (int64_t j = 0; j < s->keys; j++)
            y[e] += sum > 0 ? p[j] / sum * v[j * s->dv + e] : 0;
        if (r->dy) inner += r->dy[row * s->dv + e] * y[e];
    }
    for (int64_t j = 0; j < s->keys && r->dy && sum > 0; j++) {
        double dp = 0;
        for (int64_t e = 0; e < s->dv; e++) {
            const double g = r->dy[row * s->dv + e];
            dp += g * v[j * s->dv + e];
            r->dv[(kv * s->keys + j) * s->dv + e] += p[j] / sum * g;
        }
        const double ds = p[j] / sum * (dp - inner) * slope[j];
        for (int64_t e = 0; e < s->d; e++) {
            r->dq[row * s->d + e] += ds * k[j * s->d + e];
            r->dk[(kv * s->keys + j) * s->d + e] += ds * q[e];
        }
    }
    free(slope);
    free(p);
}

static void compute(const lb_attention_options *o, const shape *s,
                    const int64_t *valid, const reference *r)
{
    for (int64_t head = 0; head < s->batch * s->heads; head++)
        for (int64_t i = 0; i < s->queries; i++)
            one_query(o, s, valid[head / s->heads], r, head, i);
}

static double largest(const double *x, int64_t n)
{
    double m = 0;
    for (int64_t i = 0; i < n; i++)
        m = fmax(m, fabs(x[i]));
    return m;
}

/* The largest difference relative to `unit`. */
static double off_by(const double *x, const double *y, int64_t n, double unit)
{
    double m = 0;
    for (int64_t i = 0; i < n; i++)
        m = isnan(x[i]) ? INFINITY : fmax(m, fabs(x[i] - y[i]));
    return unit > 0 ? m / unit : m;
}

/* ---- values -------------------------------------------------------------- */

static const int swap3[] = {1, 0, 2}, swap4[] = {0, 2, 1, 3};

static lb_array *make(lb_ctx *cx, uint64_t n, lb_dtype dtype, int64_t batch,
                      int64_t heads, int64_t positions, int64_t size)
{
    const lb_shape s = LB_SHAPE(batch, heads, positions, size);
    return lb_convert(cx, lb_random_normal(cx, (lb_key){9, n}, LB_F32, s),
                      dtype);
}

/* As a caller would have it: without the axis of batches if there is one
 * batch, in the other order of axes if asked for. */
static lb_array *given(lb_ctx *cx, lb_array *a, bool flip)
{
    const bool one = lb_dim(a, 0) == 1;
    if (one) a = lb_squeeze(cx, a, LB_AXES(0));
    if (!flip) return a;
    a = lb_transpose(cx, a, one ? swap3 : swap4);
    return lb_materialize(cx, a);
}

static lb_array *stored(lb_ctx *cx, lb_array *a, const char *format)
{
    lb_quant_config c = {.format = format};
    if (!format) return a;
    if (!strcmp(format, "int8")) c.axes = (lb_axes){1, {-1}};
    return lb_quantize(cx, a, &c);
}

typedef struct how {
    lb_attention_options o;
    int64_t valid[2]; /* 0: all */
    const char *format;
    lb_dtype q, kv;
} how;

/* Bound: 4e-6 of the largest value, for f32. */
static double bound_of(const how *h)
{
    return h->q == LB_F64    ? 1e-13
           : h->q == LB_F16  ? 0x1p-11 + 4e-6
           : h->q == LB_BF16 ? 0x1p-8 + 4e-6
                             : 4e-6;
}

static void check_case(lb_ctx *cx, const shape *s, const how *h)
{
    lb_attention_options o = h->o;
    lb_enter(cx);
    lb_array *q = make(cx, 1, h->q, s->batch, s->heads, s->queries, s->d);
    lb_array *k = make(cx, 2, h->kv, s->batch, s->kv, s->keys, s->d);
    lb_array *v = make(cx, 3, h->kv, s->batch, s->kv, s->keys, s->dv);
    int64_t valid[2] = {s->keys, s->keys};
    lb_array *gk = stored(cx, given(cx, k, o.kv_positions_first), h->format);
    lb_array *gv = stored(cx, given(cx, v, o.kv_positions_first), h->format);
    if (h->format) { /* the values that are stored */
        k = lb_materialize(cx, gk);
        v = lb_materialize(cx, gv);
        const int *swap = lb_rank(k) == 3 ? swap3 : swap4;
        if (o.kv_positions_first) k = lb_transpose(cx, k, swap);
        if (o.kv_positions_first) v = lb_transpose(cx, v, swap);
    }
    if (h->valid[0]) {
        for (int64_t b = 0; b < s->batch; b++)
            valid[b] = h->valid[b] ? h->valid[b] : h->valid[0];
        o.valid = s->batch > 1 ? lb_from(cx, LB_I64, LB_SHAPE(2), valid)
                               : lb_full_int(cx, LB_I32, (lb_shape){0}, *valid);
    }
    lb_array *y =
        lb_attention(cx, given(cx, q, o.q_positions_first), gk, gv, &o);
    if (!check_fails(y && lb_dtype_of(y) == h->q)) {
        const int *swap = lb_rank(y) == 3 ? swap3 : swap4;
        if (o.q_positions_first) y = lb_transpose(cx, y, swap);
        const int64_t n = lb_size(y);
        double *want = calloc((size_t)n + 1, sizeof *want);
        double *got = doubles(cx, y);
        double *x[] = {doubles(cx, q), doubles(cx, k), doubles(cx, v)};
        compute(&o, s, valid,
                &(reference){.q = x[0], .k = x[1], .v = x[2], .y = want});
        const double off =
            off_by(got, want, n,
                   fmax(1, largest(x[2], s->batch * s->kv * s->keys * s->dv)));
        if (check_fails(off <= bound_of(h)))
            fprintf(stderr,
                    "%lld x %lld/%lld heads, %lld queries, %lld keys of %lld, "
                    "%lld, %s %s: off by %g\n",
                    (long long)s->batch, (long long)s->heads, (long long)s->kv,
                    (long long)s->queries, (long long)s->keys, (long long)s->d,
                    (long long)s->dv, lb_dtype_name(h->q),
                    h->format ? h->format : "", off);
        for (int i = 0; i < 3; i++)
            free(x[i]);
        free(got);
        free(want);
    } else {
        fprintf(stderr, "%s\n", lb_error(cx));
        lb_clear(cx);
    }
    lb_leave(cx);
}

static void values(lb_ctx *cx)
{
    static const shape shapes[] = {
        {1, 1, 1, 1, 1, 1, 1},      {1, 4, 2, 1, 40, 16, 16},
        {1, 4, 4, 3, 130, 8, 24},   {2, 4, 1, 5, 70, 64, 64},
        {1, 8, 1, 1, 1100, 20, 12}, {2, 2, 2, 40, 40, 16, 33},
        {1, 6, 3, 9, 300, 80, 80},  {1, 2, 1, 150, 290, 24, 16},
        {1, 3, 3, 17, 64, 31, 17},  {1, 2, 2, 2, 600, 530, 3},
        {1, 2, 2, 70, 10, 8, 8},    {1, 9, 1, 1, 129, 128, 128},
    };
    static const how hows[] = {
        {.o = {.causal = true}},
        {.o = {0}},
        {.o = {.causal = true, .window = 7}},
        {.o = {.causal = true, .scale = 0.3, .soft_cap = 5}},
        {.o = {.causal = true, .q_positions_first = true}, .valid = {33, 9}},
        {.o = {.kv_positions_first = true}, .valid = {1, 5}},
        {.o = {.causal = true,
               .kv_positions_first = true,
               .q_positions_first = true},
         .kv = LB_F16},
        {.o = {.causal = true}, .q = LB_BF16, .kv = LB_BF16},
        {.o = {.causal = true, .window = 40},
         .q = LB_F64,
         .kv = LB_F64,
         .valid = {50, 60}},
        {.o = {.soft_cap = 2}, .q = LB_F64, .kv = LB_F32},
        {.o = {.causal = true}, .format = "int8", .q = LB_F16},
        {.o = {.causal = true, .kv_positions_first = true}, .format = "nf4"},
        {.o = {.window = 3, .causal = true}, .format = "int8"},
        {.o = {.kv_positions_first = true}, .format = "int8", .valid = {33, 9}},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; k < sizeof hows / sizeof *hows; k++) {
            how h = hows[k];
            if (!h.q) h.q = LB_F32;
            if (!h.kv) h.kv = LB_F32;
            for (int b = 0; b < 2; b++)
                if (h.valid[b] > shapes[i].keys) h.valid[b] = shapes[i].keys;
            check_case(cx, &shapes[i], &h);
        }
}

/* ---- special values ------------------------------------------------------ */

static void special(lb_ctx *cx)
{
    const lb_attention_options causal = {.causal = true};
    const lb_attention_options wide = {.causal = true, .window = INT64_MAX};
    lb_enter(cx);
    /* The largest window is no window; the first queries see no key. */
    float sees[6];
    lb_array *three = lb_full(cx, LB_F32, LB_SHAPE(1, 2, 1), 3);
    lb_array *keys = lb_full(cx, LB_F32, LB_SHAPE(1, 2, 4), 1);
    lb_array *six = lb_full(cx, LB_F32, LB_SHAPE(1, 6, 4), 1);
    CHECK(lb_read(cx, lb_attention(cx, six, keys, three, &wide), sees,
                  sizeof sees));
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(sees[i], i < 4 ? 0 : 3, 0);
    for (int64_t t = 1; t <= 20; t += 19) {
        const lb_shape s = LB_SHAPE(1, t, 4);
        float x[80], y[80], z[80];
        for (int i = 0; i < 80; i++)
            x[i] = (float)(i % 7) - 3;
        lb_array *q = lb_from(cx, LB_F32, s, x);
        /* Huge scores do not overflow: the last key wins. */
        for (int i = 0; i < 80; i++)
            y[i] = x[i] * (i / 4 == t - 1 ? 1e18f : 1e17f);
        lb_array *k = lb_from(cx, LB_F32, s, y);
        lb_array *out = lb_attention(cx, q, k, q, &causal);
        CHECK(out && lb_read(cx, out, z, 16 * (size_t)t));
        for (int i = 0; i < 4 * t; i++)
            CHECK(!isnan(z[i]) && fabs(z[i]) <= 3);
        /* A NaN in a key reaches those who see it, and nobody else. */
        y[4 * (t - 1)] = NAN;
        out = lb_attention(cx, q, lb_from(cx, LB_F32, s, y), q, &causal);
        CHECK(out && lb_read(cx, out, z, 16 * (size_t)t));
        CHECK(isnan(z[4 * (t - 1)]) && (t == 1 || !isnan(z[0])));
        /* Nothing valid: zeros. What is not valid may be anything. */
        out = lb_attention(
            cx, q, lb_from(cx, LB_F32, s, y), q,
            &(lb_attention_options){.valid = lb_scalar_int(cx, -4)});
        CHECK(out && lb_read(cx, out, z, 16 * (size_t)t) && z[0] == 0 &&
              z[4 * t - 1] == 0);
    }
    const lb_shape none[] = {LB_SHAPE(0, 3, 4), LB_SHAPE(2, 0, 4),
                             LB_SHAPE(2, 3, 0)};
    for (int i = 0; i < 3; i++) {
        lb_array *a = lb_zeros(cx, LB_F32, none[i]);
        lb_array *out = lb_attention(cx, a, a, a, NULL);
        CHECK(out && lb_size(out) == 0);
    }
    /* no keys: zeros; heads of no size: the mean of the values */
    lb_array *q = lb_full(cx, LB_F32, LB_SHAPE(2, 3, 4), 1);
    lb_array *e = lb_zeros(cx, LB_F32, LB_SHAPE(2, 0, 4));
    lb_array *out = lb_attention(cx, q, e, e, NULL);
    CHECK(out && lb_item(cx, lb_reduce_sum(cx, out, NULL)) == 0);
    lb_array *flat = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3, 0));
    out = lb_attention(cx, flat, flat, q, NULL);
    CHECK(out && lb_item(cx, lb_reduce_sum(cx, out, NULL)) == 24);
    lb_leave(cx);
}

/* What a query does not see does not reach it, whatever it is: keys and values
 * behind the valid ones, later than the query, or before its window. Position
 * `bad` of k, v or both; the results must be those without it, but for the
 * queries that see it. */
static void unseen(lb_ctx *cx, const shape *s, const lb_attention_options *o,
                   int64_t valid, int64_t bad, float x)
{
    lb_attention_options with = *o;
    lb_enter(cx);
    with.valid = lb_scalar_int(cx, valid);
    lb_array *q = make(cx, 1, LB_F32, 1, s->heads, s->queries, s->d);
    lb_array *a[] = {make(cx, 2, LB_F32, 1, s->kv, s->keys, s->d),
                     make(cx, 3, LB_F32, 1, s->kv, s->keys, s->dv)};
    double *want = doubles(cx, lb_attention(cx, q, a[0], a[1], &with));
    for (int which = 1; which < 4; which++) {
        lb_array *in[2];
        for (int i = 0; i < 2; i++) {
            lb_array *row = lb_full(cx, LB_F32, LB_SHAPE(1, s->kv, 1, s->d), x);
            lb_array *at[] = {lb_scalar_int(cx, 0), lb_scalar_int(cx, 0),
                              lb_scalar_int(cx, bad), lb_scalar_int(cx, 0)};
            in[i] = a[i];
            if (which >> i & 1)
                in[i] = lb_dynamic_update_slice(cx, a[i], row, at);
        }
        double *got = doubles(cx, lb_attention(cx, q, in[0], in[1], &with));
        for (int64_t r = 0; r < s->heads * s->queries; r++) {
            if (sees(o, s, valid, r % s->queries, bad)) continue;
            if (check_fails(memcmp(want + r * s->dv, got + r * s->dv,
                                   (size_t)s->dv * sizeof *got) == 0))
                fprintf(stderr, "%g at key %lld reaches row %lld of %lld\n",
                        (double)x, (long long)bad, (long long)r,
                        (long long)s->queries);
        }
        free(got);
    }
    free(want);
    lb_leave(cx);
}

static void all_unseen(lb_ctx *cx)
{
    static const shape s[] = {{1, 2, 1, 4, 200, 16, 16},
                              {1, 6, 2, 100, 300, 20, 20},
                              {1, 4, 4, 3, 5, 8, 8}};
    static const lb_attention_options o[] = {
        {.causal = true},
        {.causal = true, .window = 3},
        {.window = 0},
        {.causal = true, .soft_cap = 3},
    };
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            for (int b = 1; b <= 5; b++) {
                const int64_t valid = s[i].keys - 2;
                unseen(cx, &s[i], &o[k], valid, s[i].keys - b,
                       b % 2 ? NAN : INFINITY);
                unseen(cx, &s[i], &o[k], valid, s[i].keys * (b - 1) / 5,
                       -INFINITY);
            }
}

/* ---- the same bits ------------------------------------------------------- */

static void same_bits(void)
{
    static const shape s = {1, 8, 2, 3, 1300, 64, 64};
    static const shape t = {1, 8, 2, 200, 300, 64, 64};
    float *first[2] = {NULL, NULL};
    for (int threads = 1; threads <= 7; threads += 3) {
        lb_ctx *cx = lb_open(&(lb_options){.threads = threads});
        for (int i = 0; i < 2; i++) {
            const shape *z = i ? &t : &s;
            lb_array *q = make(cx, 1, LB_F32, 1, z->heads, z->queries, z->d);
            lb_array *k = make(cx, 2, LB_F32, 1, z->kv, z->keys, z->d);
            lb_array *v = make(cx, 3, LB_F32, 1, z->kv, z->keys, z->dv);
            lb_array *y = lb_attention(cx, q, k, v,
                                       &(lb_attention_options){.causal = true});
            const size_t n = (size_t)lb_size(y) * sizeof(float);
            if (!first[i] && (first[i] = malloc(n))) {
                memcpy(first[i], lb_data(y), n);
            }
            CHECK(memcmp(first[i], lb_data(y), n) == 0);
            /* also in the other layout */
            v = lb_transpose(cx, given(cx, v, true), swap3);
            k = lb_transpose(cx, given(cx, k, true), swap3);
            y = lb_attention(cx, given(cx, q, false), k, v,
                             &(lb_attention_options){.causal = true});
            CHECK(y && memcmp(first[i], lb_data(y), n) == 0);
        }
        lb_close(cx);
    }
    free(first[0]);
    free(first[1]);
}

/* ---- gradients ----------------------------------------------------------- */

typedef struct loss_of {
    lb_attention_options o;
    lb_array *dy;
} loss_of;

static lb_array *loss(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n;
    const loss_of *l = user;
    lb_array *y = lb_attention(cx, a[0], a[1], a[2], &l->o);
    return lb_reduce_sum(cx, lb_mul(cx, y, l->dy), NULL);
}

static void gradient(lb_ctx *cx, const shape *s, const how *h)
{
    static const char *const name[] = {"q", "k", "v"};
    lb_enter(cx);
    lb_array *a[] = {make(cx, 1, h->q, s->batch, s->heads, s->queries, s->d),
                     make(cx, 2, h->q, s->batch, s->kv, s->keys, s->d),
                     make(cx, 3, h->q, s->batch, s->kv, s->keys, s->dv)};
    loss_of l = {h->o,
                 make(cx, 4, h->q, s->batch, s->heads, s->queries, s->dv)};
    int64_t valid[2] = {s->keys, s->keys};
    if (h->valid[0]) {
        memcpy(valid, h->valid, sizeof valid);
        l.o.valid = lb_from(cx, LB_I32, LB_SHAPE(2),
                            (int32_t[]){(int32_t)valid[0], (int32_t)valid[1]});
    }
    double *x[4], *want[3], *y = calloc((size_t)lb_size(l.dy) + 1, sizeof *y);
    lb_array *g[3];
    for (int i = 0; i < 4; i++) {
        x[i] = doubles(cx, i < 3 ? a[i] : l.dy);
        if (i < 3) want[i] = calloc((size_t)lb_size(a[i]) + 1, sizeof *y);
    }
    compute(&l.o, s, valid,
            &(reference){x[0], x[1], x[2], x[3], y, want[0], want[1], want[2]});
    CHECK(lb_value_and_grad(cx, loss, a, 3, &l, g, 3));
    for (int i = 0; i < 3 && !lb_error_status(cx); i++) {
        double *got = doubles(cx, g[i]);
        const int64_t n = lb_size(a[i]);
        const double off = off_by(got, want[i], n, largest(want[i], n));
        const double most = h->q == LB_F64 ? 1e-13 : 1e-5;
        if (check_fails(off <= most))
            fprintf(stderr, "gradient of %s, %lld queries: off by %g\n",
                    name[i], (long long)s->queries, off);
        free(got);
    }
    for (int i = 0; i < 4; i++)
        free(x[i]);
    for (int i = 0; i < 3; i++)
        free(want[i]);
    free(y);
    lb_leave(cx);
}

/* A NaN behind the valid keys, and one in a value that only the last query
 * sees, do not reach the gradients of others. */
static void nan_gradients(lb_ctx *cx)
{
    lb_enter(cx);
    const lb_shape s = LB_SHAPE(1, 4, 2);
    float k[8] = {1, 2, 3, 4, 5, 6, NAN, NAN}, v[8] = {1, 2, 3, 4, NAN, 6};
    lb_array *a[] = {lb_full(cx, LB_F32, s, 1), lb_from(cx, LB_F32, s, k),
                     lb_from(cx, LB_F32, s, v)};
    float dq[8], one[8] = {1, 1, 1, 1, 1, 1};
    loss_of l = {{.causal = true, .valid = lb_scalar_int(cx, 3)},
                 lb_from(cx, LB_F32, s, one)};
    lb_array *g[3];
    CHECK(lb_value_and_grad(cx, loss, a, 3, &l, g, 3));
    CHECK(lb_read(cx, g[0], dq, sizeof dq));
    for (int i = 0; i < 8; i++) /* query i is at position i - 1 */
        CHECK(isnan(dq[i]) == (i >= 6));
    lb_leave(cx);
}

static void gradients(lb_ctx *cx)
{
    static const shape s[] = {{2, 4, 2, 5, 9, 8, 6},
                              {2, 2, 2, 300, 310, 8, 8},
                              {2, 3, 1, 129, 129, 4, 12}};
    static const how h[] = {
        {.o = {.causal = true}},
        {.o = {.scale = 0.7, .soft_cap = 1.5}, .valid = {7, 4}},
        {.o = {.causal = true, .window = 6}, .valid = {9, 3}},
    };
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            how x = h[k];
            x.q = (i + k) % 2 ? LB_F64 : LB_F32;
            gradient(cx, &s[i], &x);
        }
}

/* ---- memory -------------------------------------------------------------- */

/* Peak bytes beyond the operands, of a call or its gradient, for n queries and
 * as many keys. The heap's blocks are powers of two, roughly. */
static size_t peak(int64_t n, bool grad)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    const lb_shape s = LB_SHAPE(1, n, 16);
    lb_array *a[3], *g[3];
    for (int i = 0; i < 3; i++)
        a[i] = lb_random_normal(cx, (lb_key){1, (uint64_t)i}, LB_F32, s);
    loss_of l = {{.causal = true}, lb_full(cx, LB_F32, s, 1)};
    const size_t before = lb_bytes_in_use(cx);
    CHECK(grad ? lb_value_and_grad(cx, loss, a, 3, &l, g, 3)
               : lb_attention(cx, a[0], a[1], a[2], &l.o));
    const size_t peak = lb_bytes_peak(cx) - before;
    lb_close(cx);
    return peak;
}

/* Four times as many queries and keys: the square would be 16 times. */
static void memory(void)
{
    const size_t small = peak(1024, false), large = peak(4096, false);
    CHECK(large < 4096 * 4096 && large < 6 * small);
    const size_t one = peak(1024, true), four = peak(4096, true);
    CHECK(four < 6 * one);
    CHECK(four < 4096 * 4096 * sizeof(float) / 2);
}

static void refusals(lb_ctx *cx)
{
    lb_array *a = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3, 4));
    CHECK(!lb_attention(cx, a, a, a, &(lb_attention_options){.window = 3}));
    CHECK(strstr(lb_error(cx), "window is 3, but the mask is not causal"));
    lb_clear(cx);
    static const lb_attention_options bad[] = {
        {.scale = 1e39},       {.scale = -1e-39}, {.scale = NAN},
        {.soft_cap = 1e39},    {.soft_cap = -1},  {.soft_cap = 1e-39},
        {.soft_cap = INFINITY}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(!lb_attention(cx, a, a, a, &bad[i]));
        CHECK(strstr(lb_error(cx),
                     bad[i].soft_cap != 0 ? "soft_cap is " : "scale is "));
        lb_clear(cx);
    }
    const lb_attention_options most = {.scale = 3e38, .soft_cap = 3e38};
    CHECK(lb_item(cx, lb_sum(cx, lb_attention(cx, a, a, a, &most), NULL,
                             false)) == 0);
    lb_array *wide = lb_zeros(cx, LB_F64, LB_SHAPE(2, 3, 4));
    CHECK(lb_attention(cx, a, a, wide, &bad[0]));
    CHECK(!lb_attention(cx, a, a, NULL, NULL));
    lb_clear(cx);
    CHECK(
        !lb_attention(cx, a, a, a, &(lb_attention_options){.struct_size = 8}));
    CHECK(strstr(lb_error(cx), "struct_size is 8"));
    lb_clear(cx);
}

int main(void)
{
    for (int threads = 1; threads <= 2; threads++) {
        static const char *const isa[] = {NULL, "ref", "avx2"};
        for (int i = 0; i < (threads == 1 ? 3 : 1); i++) {
            lb_ctx *cx =
                lb_open(&(lb_options){.threads = threads, .isa = isa[i]});
            if (!cx) continue; /* the machine does not have it */
            values(cx);
            special(cx);
            all_unseen(cx);
            if (!i) gradients(cx);
            if (!i) nan_gradients(cx);
            refusals(cx);
            CHECK_EQ_S(lb_error(cx), "");
            lb_close(cx);
        }
    }
    same_bits();
    memory();
    return check_report("lb_attention");
}
