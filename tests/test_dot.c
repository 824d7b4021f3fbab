/* test_dot.c - dot_general and matmul against three loops.
 *
 * Integers and small floats must be exact (rounded once to the result's dtype).
 * Other floats stay within the bound of a sum of K products, and have the same
 * bits on 1, 2 and 7 threads and for every memory layout of the operands.
 */
/* ctest: simde */
#include "lowbit_params.h"
#include "model.h"

static bool is_float(lb_dtype d)
{
    return d >= LB_F32 && d <= LB_F64;
}
static bool is_unsigned(lb_dtype d)
{
    return d >= LB_U8 && d <= LB_U64;
}

/* ---- the model ----------------------------------------------------------- */

/* |x| . |y| for each element, to bound errors with. */
static model model_dot(const model *x, const model *y, const lb_dot_dims *d,
                       bool magnitude)
{
    lb_shape s = {0};
    int xf[LB_MAX_RANK], yf[LB_MAX_RANK], nx = 0, ny = 0;
    unsigned ux = 0, uy = 0;
    for (int i = 0; i < d->lhs_batch.n; i++) {
        s.dim[s.rank++] = x->shape.dim[d->lhs_batch.axis[i]];
        ux |= 1u << d->lhs_batch.axis[i];
        uy |= 1u << d->rhs_batch.axis[i];
    }
    lb_shape sum = {0};
    for (int i = 0; i < d->lhs_contract.n; i++) {
        sum.dim[sum.rank++] = x->shape.dim[d->lhs_contract.axis[i]];
        ux |= 1u << d->lhs_contract.axis[i];
        uy |= 1u << d->rhs_contract.axis[i];
    }
    for (int k = 0; k < x->shape.rank; k++)
        if (!(ux >> k & 1)) xf[nx++] = k, s.dim[s.rank++] = x->shape.dim[k];
    for (int k = 0; k < y->shape.rank; k++)
        if (!(uy >> k & 1)) yf[ny++] = k, s.dim[s.rank++] = y->shape.dim[k];
    model r = model_new(s);
    for (int64_t e = 0; e < model_size(&s); e++) {
        int64_t i[LB_MAX_RANK], xi[LB_MAX_RANK], yi[LB_MAX_RANK];
        model_index(&s, e, i);
        const int nb = d->lhs_batch.n;
        for (int k = 0; k < nb; k++)
            xi[d->lhs_batch.axis[k]] = yi[d->rhs_batch.axis[k]] = i[k];
        for (int k = 0; k < nx; k++)
            xi[xf[k]] = i[nb + k];
        for (int k = 0; k < ny; k++)
            yi[yf[k]] = i[nb + nx + k];
        for (int64_t q = 0; q < model_size(&sum); q++) {
            int64_t c[LB_MAX_RANK];
            model_index(&sum, q, c);
            for (int k = 0; k < sum.rank; k++)
                xi[d->lhs_contract.axis[k]] = yi[d->rhs_contract.axis[k]] =
                    c[k];
            const double p = x->v[model_flat(&x->shape, xi)] *
                             y->v[model_flat(&y->shape, yi)];
            r.v[e] += magnitude ? fabs(p) : p;
        }
    }
    return r;
}

static double wrapped(lb_dtype d, double v)
{
    const uint64_t x = (uint64_t)(int64_t)v;
    const int cut = 64 - 8 * (int)lb_dtype_size(d);
    if (is_float(d)) return v;
    if (d == LB_BOOL) return v != 0;
    if (is_unsigned(d)) return (double)(x << cut >> cut);
    return (double)((int64_t)(x << cut) >> cut);
}

/* Each element within eps of the exact value: eps relative to itself and to the
 * sum of magnitudes. */
static bool close_to(lb_ctx *cx, lb_array *a, lb_dtype d, const model *want,
                     const model *size, double sum_eps)
{
    const double eps = d == LB_BF16  ? 0x1p-8
                       : d == LB_F16 ? 0x1p-11
                       : d == LB_F32 ? 0x1p-24
                                     : 0;
    if (!a || a->dtype != d || !lb_shape_equal(&a->shape, &want->shape)) {
        fprintf(stderr, "%s\n", a ? LB_SHOW(&a->shape) : lb_error(cx));
        return false;
    }
    const int64_t n = model_size(&want->shape);
    const size_t bytes = lb_dtype_size(d);
    char *x = (char *)model_alloc((size_t)n * bytes);
    if (!lb_read(cx, a, x, (size_t)n * bytes)) return false;
    for (int64_t i = 0; i < n; i++) {
        const double got = model_get(d, x + (size_t)i * bytes);
        const double w = wrapped(d, want->v[i]);
        const double tol = eps * fabs(w) + (size ? sum_eps * size->v[i] : 0);
        if (got == w || fabs(got - w) <= tol) continue;
        fprintf(stderr, "element %lld is %.17g, not %.17g\n", (long long)i, got,
                w);
        return false;
    }
    return true;
}

/* ---- exact products ----------------------------------------------------- */

typedef struct {
    lb_shape x, y;
    lb_dot_dims d;
} dot_case;

#define SUM(l, r)   .lhs_contract = {1, {l}}, .rhs_contract = {1, {r}}
#define BATCH(l, r) .lhs_batch = {1, {l}}, .rhs_batch = {1, {r}}
static const dot_case cases[] = {
    {{2, {5, 7}}, {2, {7, 3}}, {SUM(1, 0)}},
    {{2, {7, 5}}, {2, {3, 7}}, {SUM(0, 1)}},
    {{2, {1, 64}}, {2, {64, 64}}, {SUM(1, 0)}},
    {{2, {1, 64}}, {2, {33, 64}}, {SUM(1, 1)}},
    {{2, {64, 70}}, {2, {70, 1}}, {SUM(1, 0)}},
    {{2, {3, 50}}, {2, {50, 90}}, {SUM(1, 0)}},
    {{2, {90, 50}}, {2, {50, 4}}, {SUM(1, 0)}},
    {{1, {9}}, {1, {9}}, {SUM(0, 0)}},
    {{1, {9}}, {2, {9, 2}}, {SUM(0, 0)}},
    {{1, {3}}, {1, {4}}, {.preferred = LB_NO_DTYPE}},
    {{0, {0}}, {2, {2, 2}}, {.preferred = LB_NO_DTYPE}},
    {{2, {3, 0}}, {2, {0, 4}}, {SUM(1, 0)}},
    {{2, {9, 0}}, {2, {0, 8}}, {SUM(1, 0)}},
    {{2, {0, 3}}, {2, {3, 4}}, {SUM(1, 0)}},
    {{3, {0, 2, 3}}, {3, {0, 3, 4}}, {SUM(2, 1), BATCH(0, 0)}},
    {{3, {3, 4, 5}}, {3, {3, 5, 2}}, {SUM(2, 1), BATCH(0, 0)}},
    {{3, {4, 3, 5}}, {3, {5, 2, 3}}, {SUM(2, 0), BATCH(1, 2)}},
    {{3, {9, 3, 5}}, {3, {5, 7, 3}}, {SUM(2, 0), BATCH(1, 2)}},
    {{3, {5, 6, 7}}, {3, {6, 2, 9}}, {SUM(1, 0)}},
    {{3, {4, 3, 5}},
     {3, {5, 3, 7}},
     {.lhs_contract = {2, {1, 2}}, .rhs_contract = {2, {1, 0}}}},
    {{4, {2, 3, 4, 5}},
     {4, {3, 2, 6, 5}},
     {SUM(3, 3), .lhs_batch = {2, {0, 1}}, .rhs_batch = {2, {1, 0}}}},
    {{4, {2, 6, 3, 5}},
     {3, {3, 7, 5}},
     {.lhs_contract = {2, {2, 3}}, .rhs_contract = {2, {0, 2}}}},
    {{2, {5, 2}}, {2, {5, 2}}, {BATCH(0, 0)}},
    {{2, {17, 300}}, {2, {300, 33}}, {SUM(1, 0)}},
    {{2, {1, 1100}}, {2, {1100, 40}}, {SUM(1, 0)}},
    {{3, {2, 3, 4}}, {3, {4, 5, 6}}, {SUM(2, 0)}},
};

/* Every view of lhs with every view of rhs in turn. */
static void test_exact(lb_ctx *cx)
{
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const dot_case *k = &cases[c];
        for (int d = 1; d < LB_N_DTYPES; d++)
            for (int v = 0; v < MODEL_VIEWS + MODEL_HIDDEN; v++) {
                const lb_dtype t = (lb_dtype)d;
                const int u = (v * 5 + 1) % MODEL_VIEWS;
                if (v % MODEL_HIDDEN >= MODEL_VIEWS ||
                    (v >= MODEL_HIDDEN && t != LB_F32 && t != LB_BF16))
                    continue;
                model x = model_make(k->x, t, v, (uint32_t)d);
                model y = model_make(k->y, t, u, (uint32_t)v);
                const model want = model_dot(&x, &y, &k->d, false);
                lb_enter(cx);
                lb_array *a = model_array(cx, &x, t, v);
                lb_array *b = model_array(cx, &y, t, u);
                const bool f16 = t == LB_F16; /* above 65504: inf */
                lb_dot_dims dims = k->d;
                if (f16) dims.preferred = LB_F32;
                const bool ok = close_to(cx, lb_dot_general(cx, a, b, &dims),
                                         f16 ? LB_F32 : t, &want, NULL, 0);
                if (!ok)
                    fprintf(stderr, "  case %zu, %s, views %d and %d\n", c,
                            lb_dtype_name(t), v, u);
                CHECK(ok);
                lb_leave(cx);
                model_end();
            }
    }
}

/* Combinations of dtypes and the dtype of the result. */
static void test_dtypes(lb_ctx *cx)
{
    static const struct {
        lb_dtype x, y, preferred, want;
    } t[] = {
        {LB_F32, LB_BF16, LB_NO_DTYPE, LB_F32},
        {LB_F16, LB_BF16, LB_NO_DTYPE, LB_F32},
        {LB_BF16, LB_BF16, LB_F32, LB_F32},
        {LB_F32, LB_F32, LB_BF16, LB_BF16},
        {LB_F32, LB_F32, LB_F64, LB_F64},
        {LB_F64, LB_F32, LB_NO_DTYPE, LB_F64},
        {LB_F64, LB_F64, LB_F32, LB_F32},
        {LB_I8, LB_I8, LB_I32, LB_I32},
        {LB_I8, LB_I8, LB_NO_DTYPE, LB_I8},
        {LB_I8, LB_I8, LB_I64, LB_I64},
        {LB_I8, LB_I8, LB_U64, LB_U64},
        {LB_U8, LB_U8, LB_U16, LB_U16},
        {LB_I16, LB_I16, LB_F32, LB_F32},
        {LB_I32, LB_I32, LB_F64, LB_F64},
        {LB_BOOL, LB_BOOL, LB_NO_DTYPE, LB_BOOL},
        {LB_BOOL, LB_BOOL, LB_I32, LB_I32},
        {LB_BOOL, LB_BOOL, LB_F32, LB_F32},
        /* not under bind, but the function promotes */
        {LB_I32, LB_BF16, LB_NO_DTYPE, LB_BF16},
        {LB_I8, LB_I32, LB_NO_DTYPE, LB_I32},
        {LB_U8, LB_I8, LB_NO_DTYPE, LB_I16},
    };
    static const lb_shape shapes[][2] = {{{2, {6, 40}}, {2, {40, 7}}},
                                         {{2, {1, 40}}, {2, {40, 70}}}};
    const lb_dot_dims plain = {SUM(1, 0)};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        for (int s = 0; s < 2; s++) {
            model x = model_make(shapes[s][0], t[i].x, 0, 5);
            model y = model_make(shapes[s][1], t[i].y, 0, 6);
            const model want = model_dot(&x, &y, &plain, false);
            lb_dot_dims d = plain;
            d.preferred = t[i].preferred;
            lb_enter(cx);
            lb_array *in[2] = {model_array(cx, &x, t[i].x, MODEL_PLAIN),
                               model_array(cx, &y, t[i].y, MODEL_COLUMNS)};
            CHECK(close_to(cx, lb_dot_general(cx, in[0], in[1], &d), t[i].want,
                           &want, NULL, 0));
            const bool strict =
                t[i].x == t[i].y || (is_float(t[i].x) && is_float(t[i].y));
            const lb_prim *dot = lb_find_primitive(cx, "dot_general");
            lb_array *out = lb_bind(cx, dot, 2, in, &d);
            CHECK(strict ? out != NULL
                         : !out && lb_error_status(cx) == LB_E_DTYPE);
            lb_clear(cx);
            lb_leave(cx);
            model_end();
        }
}

/* ---- values that round -------------------------------------------------- */

static void fill_rough(model *m, uint32_t seed)
{
    for (int64_t i = 0; i < model_size(&m->shape); i++)
        m->v[i] = (double)(float)ldexp((double)model_random(&seed) - 0x1p23,
                                       (int)(model_random(&seed) % 12) - 30);
}

/* Bits of an f32 or f64 result; the first call sets them. */
typedef struct {
    char *bits;
} pinned;

static bool same_bits(lb_ctx *cx, lb_array *a, pinned *p)
{
    const size_t size = (size_t)lb_size(a) * lb_dtype_size(lb_dtype_of(a));
    char *x = (char *)model_alloc(size);
    if (!a || !lb_read(cx, a, x, size)) return false;
    if (!p->bits) p->bits = x;
    return memcmp(p->bits, x, size) == 0;
}

static void test_rough(lb_ctx *const *cx, int n_cx)
{
    static const int64_t mnk[][3] = {
        {1, 70, 300},    {1, 300, 2500}, {300, 1, 2100},  {4, 100, 1500},
        {100, 3, 1025},  {5, 33, 513},   {40, 1030, 260}, {515, 20, 260},
        {1030, 20, 100}, {64, 64, 1},    {7, 9, 1000},    {1, 1, 3000},
        {2, 1100, 600},  {8, 90, 1500},  {32, 77, 1030},  {33, 70, 700},
        {300, 31, 520},  {2, 2, 511},    {20, 300, 3300}, {40, 50, 0},
    };
    for (size_t c = 0; c < sizeof mnk / sizeof *mnk; c++)
        for (int d = 0; d < 2; d++) {
            const int64_t m = mnk[c][0], n = mnk[c][1], k = mnk[c][2];
            const lb_dtype t = d ? LB_F64 : LB_F32;
            if ((d && m * n * k > 4000000) || check_thins()) continue;
            model x = model_new(LB_SHAPE(m, k)), y = model_new(LB_SHAPE(k, n));
            fill_rough(&x, 1);
            fill_rough(&y, 2);
            const lb_dot_dims dims = {SUM(1, 0)};
            const model want = model_dot(&x, &y, &dims, false);
            const model size = model_dot(&x, &y, &dims, true);
            pinned p = {0};
            for (int i = 0; i < n_cx; i++)
                for (int v = 0; v < MODEL_REPEATED; v++) {
                    const int u = (v * 3 + i) % MODEL_REPEATED;
                    lb_enter(cx[i]);
                    lb_array *a = model_array(
                        cx[i], &x, t, v == 2 && !d ? v + MODEL_HIDDEN : v);
                    lb_array *b = model_array(cx[i], &y, t, u);
                    lb_array *out = lb_dot_general(cx[i], a, b, &dims);
                    /* panels of 256 and 1024, and their number */
                    const double terms = 256 + (double)k / 256;
                    CHECK(close_to(cx[i], out, t, &want, &size,
                                   terms * (d ? 0x1p-50 : 0x1p-24)));
                    CHECK(same_bits(cx[i], out, &p));
                    lb_leave(cx[i]);
                }
            model_end();
        }
}

/* Few rows and many rows use different algorithms: equal rows of either are
 * equal. */
static void test_batches(lb_ctx *const *cx, int n_cx)
{
    model x = model_new(LB_SHAPE(3, 20, 40)), y = model_new(LB_SHAPE(3, 40, 9));
    fill_rough(&x, 3);
    fill_rough(&y, 4);
    const lb_dot_dims d = {SUM(2, 1), BATCH(0, 0)};
    const lb_dot_dims one = {SUM(1, 0)};
    for (int i = 0; i < n_cx; i++) {
        lb_array *a = model_array(cx[i], &x, LB_F32, MODEL_PLAIN);
        lb_array *b = model_array(cx[i], &y, LB_F32, MODEL_MIXED);
        lb_array *all = lb_dot_general(cx[i], a, b, &d);
        for (int64_t k = 0; k < 3; k++) {
            const int64_t lo[] = {k, 0, 0}, hx[] = {k + 1, 20, 40},
                          hy[] = {k + 1, 40, 9}, ho[] = {k + 1, 20, 9};
            lb_array *s =
                lb_squeeze(cx[i], lb_slice(cx[i], a, lo, hx, NULL), LB_AXES(0));
            lb_array *t =
                lb_squeeze(cx[i], lb_slice(cx[i], b, lo, hy, NULL), LB_AXES(0));
            pinned p = {0};
            CHECK(same_bits(cx[i], lb_dot_general(cx[i], s, t, &one), &p));
            CHECK(same_bits(cx[i], lb_slice(cx[i], all, lo, ho, NULL), &p));
        }
    }
    model_end();
}

/* ---- matmul ------------------------------------------------------------- */

static void check_matmul(lb_ctx *cx, lb_shape xs, lb_shape ys, lb_shape want)
{
    model x = model_make(xs, LB_F32, 0, 8), y = model_make(ys, LB_F32, 0, 9);
    lb_array *out = lb_matmul(cx, model_array(cx, &x, LB_F32, MODEL_PLAIN),
                              model_array(cx, &y, LB_F32, MODEL_COLUMNS));
    CHECK(out && lb_shape_equal(&out->shape, &want));
    /* numpy's rule: vectors get an axis, batches broadcast from the right */
    lb_shape p = xs, q = ys, r = {0};
    if (p.rank == 1) p = LB_SHAPE(1, xs.dim[0]);
    if (q.rank == 1) q = LB_SHAPE(ys.dim[0], 1);
    const int nb = (p.rank > q.rank ? p.rank : q.rank) - 2;
    const int64_t m = p.dim[p.rank - 2], k = p.dim[p.rank - 1];
    const int64_t n = q.dim[q.rank - 1];
    for (r.rank = 0; r.rank < nb; r.rank++) {
        const int i = r.rank - nb + p.rank - 2, j = r.rank - nb + q.rank - 2;
        const int64_t a = i < 0 ? 1 : p.dim[i], b = j < 0 ? 1 : q.dim[j];
        r.dim[r.rank] = a == 1 ? b : a;
    }
    model w = model_new(want);
    for (int64_t e = 0; e < model_size(&want); e++) {
        int64_t i[LB_MAX_RANK], batch = e / (m * n), xa = 0, ya = 0;
        model_index(&r, batch, i);
        for (int l = 0; l < p.rank - 2; l++) {
            const int64_t at = i[nb - p.rank + 2 + l];
            xa = xa * p.dim[l] + (p.dim[l] == 1 ? 0 : at);
        }
        for (int l = 0; l < q.rank - 2; l++) {
            const int64_t at = i[nb - q.rank + 2 + l];
            ya = ya * q.dim[l] + (q.dim[l] == 1 ? 0 : at);
        }
        const int64_t row = e / n % m, col = e % n;
        for (int64_t kk = 0; kk < k; kk++)
            w.v[e] +=
                x.v[(xa * m + row) * k + kk] * y.v[(ya * k + kk) * n + col];
    }
    CHECK(close_to(cx, out, LB_F32, &w, NULL, 0));
    model_end();
}

/* A broadcast batch is not copied: the peak is the operands, the result of 16
 * MiB and little more. */
static void test_broadcast(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_array *a = lb_zeros(cx, LB_F32, LB_SHAPE(64, 1, 1));
    lb_array *b = lb_zeros(cx, LB_F32, LB_SHAPE(1, 1, 1 << 16));
    CHECK(lb_matmul(cx, lb_materialize(cx, a), lb_materialize(cx, b)) != NULL);
    CHECK(lb_bytes_peak(cx) < (size_t)24 << 20);
    lb_close(cx);
}

/* One matrix times many: it is packed at most once, also by two threads. */
static void check_shared(lb_shape shape, lb_shape other, size_t most)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    lb_ctx *one = lb_open(&(lb_options){.threads = 1});
    lb_array *y[2];
    size_t before = 0;
    for (int i = 0; i < 2; i++) {
        lb_ctx *in = i ? cx : one;
        lb_array *a = lb_random_normal(in, (lb_key){1, 0}, LB_F32, shape);
        lb_array *b = lb_random_normal(in, (lb_key){2, 0}, LB_F32, other);
        before = lb_bytes_peak(in);
        y[i] = lb_matmul(in, a, b);
    }
    CHECK(y[0] && y[1]);
    CHECK(lb_bytes_peak(cx) - before < lb_nbytes(y[1]) + most);
    const size_t bytes = lb_nbytes(y[1]);
    CHECK(memcmp(lb_data(y[0]), lb_data(y[1]), bytes) == 0);
    lb_close(cx);
    lb_close(one);
}

static void test_shared(void)
{
    check_shared(LB_SHAPE(1, 64, 256), LB_SHAPE(64, 256, 300), (size_t)3 << 20);
    check_shared(LB_SHAPE(2, 1, 64, 256), LB_SHAPE(2, 32, 256, 300),
                 (size_t)3 << 20);
}

static void test_matmul(lb_ctx *cx)
{
    check_matmul(cx, LB_SHAPE(3, 4), LB_SHAPE(4, 5), LB_SHAPE(3, 5));
    check_matmul(cx, LB_SHAPE(4), LB_SHAPE(4), (lb_shape){0});
    check_matmul(cx, LB_SHAPE(4), LB_SHAPE(4, 5), LB_SHAPE(5));
    check_matmul(cx, LB_SHAPE(3, 4), LB_SHAPE(4), LB_SHAPE(3));
    check_matmul(cx, LB_SHAPE(4), LB_SHAPE(2, 3, 4, 5), LB_SHAPE(2, 3, 5));
    check_matmul(cx, LB_SHAPE(2, 3, 6, 4), LB_SHAPE(4), LB_SHAPE(2, 3, 6));
    check_matmul(cx, LB_SHAPE(2, 3, 4), LB_SHAPE(4, 5), LB_SHAPE(2, 3, 5));
    check_matmul(cx, LB_SHAPE(3, 4), LB_SHAPE(2, 4, 5), LB_SHAPE(2, 3, 5));
    check_matmul(cx, LB_SHAPE(2, 1, 3, 4), LB_SHAPE(7, 4, 5),
                 LB_SHAPE(2, 7, 3, 5));
    check_matmul(cx, LB_SHAPE(7, 3, 4), LB_SHAPE(2, 1, 4, 5),
                 LB_SHAPE(2, 7, 3, 5));
    check_matmul(cx, LB_SHAPE(0, 3, 4), LB_SHAPE(1, 4, 5), LB_SHAPE(0, 3, 5));
    /* promotion */
    lb_array *i = lb_iota(cx, LB_I32, LB_SHAPE(2, 2), 0);
    lb_array *h = lb_iota(cx, LB_F16, LB_SHAPE(2, 2), 1);
    CHECK_EQ_I(lb_dtype_of(lb_matmul(cx, i, h)), LB_F16);
    CHECK_EQ_I(lb_dtype_of(lb_matmul(cx, i, i)), LB_I32);
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
}

/* ---- refusals ----------------------------------------------------------- */

static void test_errors(lb_ctx *cx)
{
    lb_array *x = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3));
    lb_array *y = lb_zeros(cx, LB_F32, LB_SHAPE(4, 5));
    lb_array *s = lb_from(cx, LB_F32, (lb_shape){0}, &(float){1});
    lb_array *big = lb_zeros(cx, LB_F32, LB_SHAPE(1, 1, 1, 1, 1));
    lb_array *long1 = lb_broadcast_to(cx, s, LB_SHAPE((int64_t)1 << 40));
#define DOT(a, b, ...) lb_dot_general(cx, a, b, &(lb_dot_dims){__VA_ARGS__})
    CHECK_REFUSED(cx, DOT(x, y, SUM(1, 0)), LB_E_SHAPE);
    CHECK_REFUSED(cx, DOT(x, y, BATCH(0, 0)), LB_E_SHAPE);
    CHECK_REFUSED(cx, DOT(x, x, .lhs_contract = {1, {1}}), LB_E_AXIS);
    CHECK_REFUSED(cx, DOT(x, x, SUM(2, 0)), LB_E_AXIS);
    CHECK_REFUSED(cx, DOT(x, x, SUM(1, -3)), LB_E_AXIS);
    CHECK_REFUSED(cx, DOT(x, x, .rhs_batch = {2, {1, -1}}), LB_E_AXIS);
    CHECK_REFUSED(cx, DOT(x, x, .rhs_batch = {9, {1}}), LB_E_AXIS);
    CHECK_REFUSED(cx, DOT(x, x, SUM(1, 1), BATCH(1, 1)), LB_E_AXIS);
    CHECK_REFUSED(cx, DOT(x, x, SUM(1, 1), .lhs_batch = {1, {0}}), LB_E_AXIS);
    CHECK_REFUSED(cx, DOT(x, x, SUM(1, 1), .preferred = LB_I32), LB_E_DTYPE);
    CHECK_REFUSED(cx, DOT(x, x, SUM(1, 1), .preferred = (lb_dtype)99),
                  LB_E_DTYPE);
    CHECK_REFUSED(cx, DOT(x, x, SUM(1, 1), .precision = (lb_precision)7),
                  LB_E_ARG);
    CHECK_REFUSED(cx, DOT(big, big, .preferred = LB_F32), LB_E_SHAPE);
    CHECK_REFUSED(cx, DOT(long1, long1, .preferred = LB_F32), LB_E_SIZE);
    CHECK_REFUSED(cx, DOT(x, NULL, SUM(1, 1)), LB_E_NULL);
    CHECK_REFUSED(cx, lb_matmul(cx, NULL, x), LB_E_NULL);
    CHECK_REFUSED(cx, lb_matmul(cx, x, y), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_matmul(cx, x, s), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_matmul(cx, s, x), LB_E_SHAPE);
    CHECK_REFUSED(cx,
                  lb_matmul(cx, lb_zeros(cx, LB_F32, LB_SHAPE(2, 3, 4)),
                            lb_zeros(cx, LB_F32, LB_SHAPE(3, 4, 5))),
                  LB_E_SHAPE);
    CHECK(!lb_dot_general(cx, x, x, NULL) && lb_error_status(cx) == LB_E_NULL);
    lb_clear(cx);
    CHECK(lb_matmul(NULL, x, x) == NULL);
    CHECK(lb_dot_general(NULL, x, x, NULL) == NULL);
}

int main(void)
{
    static const int threads[] = {1, 2, 7};
    lb_ctx *cx[3];
    for (int i = 0; i < 3; i++) {
        cx[i] = lb_open(&(lb_options){.threads = threads[i]});
        if (!cx[i]) return 1;
    }
    test_exact(cx[1]);
    test_dtypes(cx[0]);
    test_rough(cx, 3);
    test_batches(cx, 3);
    test_matmul(cx[1]);
    test_broadcast();
    test_shared();
    test_errors(cx[0]);
    for (int i = 0; i < 3; i++)
        lb_close(cx[i]);
    model_end();
    return check_report("dot");
}
