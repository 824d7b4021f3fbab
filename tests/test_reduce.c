/* test_reduce.c - reductions, argmax and argmin against loops over indices.
 *
 * First values: every operation, dtype and kind of view against doubles and
 * wrapping integers. Then the documented order of float sums: bit by bit
 * against a second implementation of the tree in reduce.c's header, for every
 * view and for 1, 2 and 7 threads.
 */
/* ctest: simde skip-tsan skip-ref */
#include "base/cpu.h"
#include "lowbit_params.h"
#include "model.h"

enum { SUM, PROD, MAX, MIN, AND, OR, OPS };
static const char *const names[OPS] = {"reduce_sum", "reduce_prod",
                                       "reduce_max", "reduce_min",
                                       "reduce_and", "reduce_or"};
typedef lb_array *reduce_fn(lb_ctx *, lb_array *, const lb_axes *);
static reduce_fn *const functions[OPS] = {lb_reduce_sum, lb_reduce_prod,
                                          lb_reduce_max, lb_reduce_min,
                                          lb_reduce_and, lb_reduce_or};

static bool is_float(lb_dtype d)
{
    return d >= LB_F32 && d <= LB_F64;
}
static bool is_unsigned(lb_dtype d)
{
    return d >= LB_U8 && d <= LB_U64;
}

static bool defined_for(int op, lb_dtype d)
{
    if (op == AND || op == OR) return !is_float(d);
    return op != SUM || d != LB_BOOL;
}

/* ---- values -------------------------------------------------------------- */

/* An integer's bits as the value of a dtype that keeps the low ones. */
static double wrapped(lb_dtype d, uint64_t x)
{
    const int cut = 64 - 8 * (int)lb_dtype_size(d);
    if (is_unsigned(d)) return (double)(x << cut >> cut);
    return (double)((int64_t)(x << cut) >> cut);
}

static double least(lb_dtype d)
{
    if (is_float(d)) return -HUGE_VAL;
    if (d == LB_BOOL || is_unsigned(d)) return 0;
    return -ldexp(1, 8 * (int)lb_dtype_size(d) - 1);
}

static double largest(lb_dtype d)
{
    if (is_float(d)) return HUGE_VAL;
    if (d == LB_BOOL) return 1;
    return is_unsigned(d)
               ? wrapped(d, UINT64_MAX)
               : wrapped(d, UINT64_MAX >> 1 >> (64 - 8 * lb_dtype_size(d)));
}

typedef struct {
    double f;
    uint64_t u;
} total;

static total start(int op, lb_dtype d)
{
    switch (op) {
    case PROD:
        return (total){1, 1};
    case MAX:
        return (total){least(d), 0};
    case MIN:
        return (total){largest(d), 0};
    case AND:
        return (total){1, UINT64_MAX};
    default:
        return (total){0, 0};
    }
}

static void add(int op, total *t, double x)
{
    const uint64_t u = (uint64_t)(int64_t)x;
    switch (op) {
    case SUM:
        t->f += x, t->u += u;
        break;
    case PROD:
        t->f *= x, t->u *= u;
        break;
    case MAX:
        t->f = x > t->f ? x : t->f;
        break;
    case MIN:
        t->f = x < t->f ? x : t->f;
        break;
    case AND:
        t->f = t->f != 0 && x != 0, t->u &= u;
        break;
    default:
        t->f = t->f != 0 || x != 0, t->u |= u;
    }
}

static double finish(int op, lb_dtype d, const total *t)
{
    if (is_float(d) || op == MAX || op == MIN || d == LB_BOOL) return t->f;
    return wrapped(d, t->u);
}

static model reduced_shape(const model *m, unsigned gone)
{
    lb_shape s = {0};
    for (int k = 0; k < m->shape.rank; k++)
        if (!(gone >> k & 1)) s.dim[s.rank++] = m->shape.dim[k];
    return model_new(s);
}

/* The flat index of the result for element e. */
static int64_t result_of(const model *m, unsigned gone, int64_t e)
{
    int64_t i[LB_MAX_RANK], at = 0;
    model_index(&m->shape, e, i);
    for (int k = 0; k < m->shape.rank; k++)
        if (!(gone >> k & 1)) at = at * m->shape.dim[k] + i[k];
    return at;
}

static model model_reduce(const model *m, int op, lb_dtype d, unsigned gone)
{
    model r = reduced_shape(m, gone);
    const int64_t n = model_size(&r.shape);
    total *t = (total *)model_alloc((size_t)n * sizeof *t);
    for (int64_t i = 0; i < n; i++)
        t[i] = start(op, d);
    for (int64_t e = 0; e < model_size(&m->shape); e++)
        add(op, &t[result_of(m, gone, e)], m->v[e]);
    for (int64_t i = 0; i < n; i++)
        r.v[i] = finish(op, d, &t[i]);
    return r;
}

static lb_axes axes_of(unsigned gone)
{
    lb_axes a = {0};
    for (int k = LB_MAX_RANK - 1; k >= 0; k--) /* any order will do */
        if (gone >> k & 1) a.axis[a.n++] = k;
    return a;
}

/* Products stay in range: mostly ones. */
static void tame(model *m, int op, lb_dtype d)
{
    for (int64_t i = 0; op == PROD && i < model_size(&m->shape); i++) {
        const bool rare = i % 151 == 0;
        m->v[i] = !rare ? 1 : is_float(d) && i % 2 ? -2 : 2;
        if (d == LB_BOOL) m->v[i] = !rare;
    }
}

/* Integers exact; floats are exact sums of integers, rounded once. */
static bool close_to(lb_ctx *cx, lb_array *a, lb_dtype d, const model *m)
{
    const double eps = d == LB_BF16 ? 0x1p-8 : d == LB_F16 ? 0x1p-11 : 0;
    if (!a || a->dtype != d || !lb_shape_equal(&a->shape, &m->shape))
        return false;
    const size_t size = lb_dtype_size(d);
    const int64_t n = model_size(&m->shape);
    char *x = (char *)model_alloc((size_t)n * size);
    if (!lb_read(cx, a, x, (size_t)n * size)) return false;
    for (int64_t i = 0; i < n; i++) {
        const double got = model_get(d, x + (size_t)i * size);
        if (got == m->v[i] || fabs(got - m->v[i]) <= eps * fabs(m->v[i]))
            continue;
        fprintf(stderr, "element %lld is %.17g, not %.17g\n", (long long)i, got,
                m->v[i]);
        return false;
    }
    return true;
}

static void check_values(lb_ctx *cx, lb_shape shape, unsigned gone)
{
    const lb_axes axes = axes_of(gone);
    for (int op = 0; op < OPS; op++)
        for (int d = 1; d < LB_N_DTYPES; d++)
            for (int view = 0; view < MODEL_VIEWS + MODEL_HIDDEN; view++) {
                const lb_dtype t = (lb_dtype)d;
                if (!defined_for(op, t) || view % MODEL_HIDDEN >= MODEL_VIEWS ||
                    (view >= MODEL_HIDDEN && t != LB_F32 && t != LB_BF16) ||
                    check_thins())
                    continue;
                lb_enter(cx);
                model m = model_make(shape, t, view, (uint32_t)(op * 16 + d));
                if (view % MODEL_HIDDEN != MODEL_REPEATED) tame(&m, op, t);
                if (op == PROD && view % MODEL_HIDDEN == MODEL_REPEATED &&
                    is_float(t))
                    for (int64_t i = 0; i < model_size(&shape); i++)
                        m.v[i] = 1;
                const model want = model_reduce(&m, op, t, gone);
                lb_array *a = model_array(cx, &m, t, view);
                const bool ok =
                    close_to(cx, functions[op](cx, a, &axes), t, &want);
                if (!ok)
                    fprintf(stderr, "  %s of %s%s, axes %x, view %d: %s\n",
                            names[op], lb_dtype_name(t), LB_SHOW(&shape), gone,
                            view, lb_error(cx));
                CHECK(ok);
                lb_leave(cx);
                model_end();
            }
}

static void test_values(lb_ctx *cx)
{
    static const struct {
        lb_shape shape;
        unsigned gone;
    } cases[] = {
        {{0, {0}}, 0},          {{1, {5}}, 1},
        {{1, {0}}, 1},          {{2, {3, 4}}, 1},
        {{2, {3, 4}}, 2},       {{2, {3, 4}}, 3},
        {{2, {3, 4}}, 0},       {{2, {3, 0}}, 1},
        {{2, {3, 0}}, 2},       {{2, {0, 3}}, 1},
        {{3, {4, 5, 6}}, 2},    {{3, {4, 5, 6}}, 5},
        {{3, {17, 1, 19}}, 4},  {{3, {2, 3, 70}}, 3},
        {{4, {3, 4, 5, 6}}, 5}, {{4, {3, 4, 5, 6}}, 10},
        {{2, {2, 1100}}, 2},    {{2, {1100, 5}}, 1},
        {{2, {9, 130}}, 2},     {{2, {70, 300}}, 1},
        {{3, {1, 1, 1}}, 7},    {{5, {2, 3, 2, 3, 2}}, 21},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_values(cx, cases[i].shape, cases[i].gone);
}

/* ---- the order of sums -------------------------------------------------- */

/* One chunk: 16 lanes of f32, folded in halves. */
static float chunk_sum(const float *x, int64_t n)
{
    float lane[16] = {0};
    for (int64_t i = 0; i < n; i++)
        lane[i % 16] += x[i];
    for (int half = 8; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

static float tree_sum(const float *x, int64_t n)
{
    const int64_t chunks = (n + 1023) / 1024;
    float *part = (float *)model_alloc((size_t)chunks * sizeof *part);
    for (int64_t c = 0; c < chunks; c++)
        part[c] =
            chunk_sum(x + c * 1024, n - c * 1024 < 1024 ? n - c * 1024 : 1024);
    for (int64_t m = chunks; m > 1; m = (m + 1) / 2) {
        for (int64_t i = 0; i < m / 2; i++)
            part[i] = part[2 * i] + part[2 * i + 1];
        if (m % 2) part[m / 2] = part[m - 1];
    }
    return chunks ? part[0] : 0;
}

/* Floats of many magnitudes, so that another order is detected. */
static void fill_rough(model *m)
{
    uint32_t seed = 7;
    for (int64_t i = 0; i < model_size(&m->shape); i++) {
        const double x = (double)model_random(&seed) - 0x1p23;
        m->v[i] = (double)(float)ldexp(x, (int)(model_random(&seed) % 20) - 30);
    }
}

static model tree_model(const model *m, unsigned gone)
{
    model r = reduced_shape(m, gone);
    const int64_t n = model_size(&r.shape), total_n = model_size(&m->shape);
    const int64_t each = n ? total_n / n : 0;
    float *x = (float *)model_alloc((size_t)total_n * sizeof *x);
    int64_t *have = (int64_t *)model_alloc((size_t)n * sizeof *have);
    for (int64_t e = 0; e < total_n; e++) {
        const int64_t i = result_of(m, gone, e);
        x[i * each + have[i]++] = (float)m->v[e];
    }
    for (int64_t i = 0; i < n; i++)
        r.v[i] = (double)tree_sum(x + i * each, each);
    return r;
}

static bool same_bits(lb_ctx *cx, lb_array *a, const model *want)
{
    const int64_t n = model_size(&want->shape);
    float *x = (float *)model_alloc((size_t)n * sizeof *x);
    if (!a || !lb_read(cx, a, x, (size_t)n * sizeof *x)) return false;
    for (int64_t i = 0; i < n; i++) {
        const float w = (float)want->v[i];
        if (memcmp(&w, &x[i], sizeof w) != 0) {
            fprintf(stderr, "element %lld is %a, not %a\n", (long long)i,
                    (double)x[i], (double)w);
            return false;
        }
    }
    return true;
}

static void test_order(lb_ctx *const *cx, int n_cx)
{
    static const struct {
        lb_shape shape;
        unsigned gone;
    } cases[] = {
        {{1, {15}}, 1},           {{1, {16}}, 1},
        {{1, {1023}}, 1},         {{1, {1025}}, 1},
        {{1, {7 * 1024 + 3}}, 1}, {{1, {200001}}, 1},
        {{2, {3, 2000}}, 2},      {{2, {2000, 3}}, 1},
        {{2, {5000, 70}}, 1},     {{2, {70, 5000}}, 2},
        {{2, {1100, 300}}, 3},    {{3, {30, 4, 90}}, 5},
        {{3, {4, 90, 30}}, 2},    {{2, {9000, 4}}, 1},
        {{4, {5, 6, 70, 8}}, 5},  {{2, {300, 40}}, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model m = model_new(cases[i].shape);
        fill_rough(&m);
        const model want = tree_model(&m, cases[i].gone);
        const lb_axes axes = axes_of(cases[i].gone);
        for (int c = 0; c < n_cx; c++)
            for (int view = 0; view < MODEL_REPEATED + MODEL_HIDDEN; view++) {
                if (view % MODEL_HIDDEN >= MODEL_REPEATED) continue;
                lb_enter(cx[c]);
                lb_array *a = model_array(cx[c], &m, LB_F32, view);
                const bool ok =
                    same_bits(cx[c], lb_reduce_sum(cx[c], a, &axes), &want);
                if (!ok)
                    fprintf(stderr, "  %s, axes %x, view %d, %d threads\n",
                            LB_SHOW(&m.shape), cases[i].gone, view,
                            lb_threads(cx[c]));
                CHECK(ok);
                lb_leave(cx[c]);
            }
        model_end();
    }
}

/* ---- special numbers ---------------------------------------------------- */

static double of_floats(lb_ctx *cx, int op, int n, const float *x)
{
    lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(n), x);
    return lb_item(cx, functions[op](cx, a, NULL));
}

static void test_special(lb_ctx *cx)
{
    const float nan = NAN, inf = INFINITY;
    const float with_nan[] = {1, nan, 3, -2}, zeros[] = {-0.0f, -0.0f};
    for (int op = SUM; op <= MIN; op++)
        CHECK(isnan(of_floats(cx, op, 4, with_nan)));
    CHECK(isnan(of_floats(cx, SUM, 2, (float[]){inf, -inf})));
    CHECK(of_floats(cx, MAX, 3, (float[]){-inf, -3, -7}) == -3);
    CHECK(of_floats(cx, MIN, 2, (float[]){inf, inf}) == (double)inf);
    /* a sum begins with 0; over no axes nothing is summed */
    CHECK(!signbit(of_floats(cx, SUM, 2, zeros)));
    float back[2] = {0};
    lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(2), zeros);
    CHECK(lb_read(cx, lb_reduce_sum(cx, a, &(lb_axes){0}), back, sizeof back));
    CHECK(signbit(back[0]) && signbit(back[1]));
    /* 16-bit floats are summed in f32: 4096 ones are past bf16's integers */
    a = lb_full(cx, LB_BF16, LB_SHAPE(4096), 1);
    CHECK_EQ_I(lb_item(cx, lb_reduce_sum(cx, a, NULL)), 4096);
    a = lb_full_int(cx, LB_I8, LB_SHAPE(300), 1);
    CHECK_EQ_I(lb_item_int(cx, lb_reduce_sum(cx, a, NULL)), 44);
    a = lb_full_int(cx, LB_U8, LB_SHAPE(9), 3);
    CHECK_EQ_I(lb_item_int(cx, lb_reduce_prod(cx, a, NULL)), 19683 % 256);
    a = lb_full_int(cx, LB_I64, LB_SHAPE(3), INT64_MAX);
    CHECK_EQ_I(lb_item_int(cx, lb_reduce_sum(cx, a, NULL)), INT64_MAX - 2);
    a = lb_reduce_max(cx, lb_zeros(cx, LB_I64, LB_SHAPE(0)), NULL);
    CHECK_EQ_I(lb_item_int(cx, a), INT64_MIN);
    /* negative axes count from the end */
    a = lb_reduce_sum(cx, lb_iota(cx, LB_I32, LB_SHAPE(3, 4), 1), LB_AXES(-1));
    CHECK_EQ_I(lb_dim(a, 0), 3);
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
}

/* Zeros of both signs, mostly of one: the others are few and anywhere. */
static model some_zeros(lb_shape shape, bool minus, int few)
{
    model m = model_new(shape);
    const int64_t n = model_size(&shape);
    uint32_t seed = (uint32_t)few;
    for (int64_t e = 0; e < n; e++) {
        const bool other = few == 0   ? e == 0
                           : few == 1 ? e == n - 1
                                      : model_random(&seed) % 64 == 0;
        m.v[e] = minus != other ? -0.0 : 0.0;
    }
    return m;
}

/* max has a plus if one of its zeros does, min a minus. */
static model model_signs(const model *m, int op, unsigned gone)
{
    model r = reduced_shape(m, gone);
    for (int64_t i = 0; i < model_size(&r.shape); i++)
        r.v[i] = op == MAX ? -0.0 : 0.0;
    for (int64_t e = 0; e < model_size(&m->shape); e++)
        if (!signbit(m->v[e]) == (op == MAX))
            r.v[result_of(m, gone, e)] = m->v[e];
    return r;
}

static bool same_signs(lb_ctx *cx, lb_array *a, lb_dtype d, const model *want)
{
    const size_t size = lb_dtype_size(d);
    const int64_t n = model_size(&want->shape);
    char *x = (char *)model_alloc((size_t)n * size);
    if (!a || !lb_read(cx, a, x, (size_t)n * size)) return false;
    for (int64_t i = 0; i < n; i++) {
        char bits[8];
        model_put(d, bits, want->v[i]);
        if (memcmp(x + (size_t)i * size, bits, size) != 0) return false;
    }
    return true;
}

static void check_zeros(lb_ctx *cx, const model *m, int op, unsigned gone)
{
    const model want = model_signs(m, op, gone);
    const lb_axes axes = axes_of(gone);
    for (int d = LB_F32; d <= LB_F64; d++)
        for (int view = 0; view < MODEL_REPEATED + MODEL_HIDDEN; view++) {
            const lb_dtype t = (lb_dtype)d;
            if (view % MODEL_HIDDEN >= MODEL_REPEATED ||
                (view >= MODEL_HIDDEN && t == LB_F64) || check_thins())
                continue;
            lb_enter(cx);
            lb_array *a = model_array(cx, m, t, view);
            const bool ok =
                same_signs(cx, functions[op](cx, a, &axes), t, &want);
            if (!ok)
                fprintf(stderr, "  zeros: %s of %s%s, axes %x, view %d: %s\n",
                        names[op], lb_dtype_name(t), LB_SHOW(&m->shape), gone,
                        view, lb_error(cx));
            CHECK(ok);
            lb_leave(cx);
        }
}

static void test_zeros(lb_ctx *cx)
{
    static const struct {
        lb_shape shape;
        unsigned gone;
    } cases[] = {
        {{1, {2}}, 1},       {{1, {17}}, 1},      {{1, {70001}}, 1},
        {{2, {9, 33}}, 1},   {{2, {9, 33}}, 2},   {{2, {9, 33}}, 3},
        {{2, {1100, 7}}, 1}, {{2, {7, 1100}}, 2}, {{3, {5, 6, 70}}, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int op = MAX; op <= MIN; op++)
            for (int few = 0; few < 8; few++) {
                const model m =
                    some_zeros(cases[i].shape, few % 2 == 0, few / 2);
                check_zeros(cx, &m, op, cases[i].gone);
                model_end();
            }
}

/* ---- argmax and argmin -------------------------------------------------- */

static model model_arg(const model *m, int axis, bool smallest)
{
    model r = reduced_shape(m, 1u << axis), best = reduced_shape(m, 1u << axis);
    const int64_t n = model_size(&r.shape);
    for (int64_t i = 0; i < n; i++)
        r.v[i] = -1;
    for (int64_t e = 0; e < model_size(&m->shape); e++) {
        int64_t i[LB_MAX_RANK];
        const int64_t to = result_of(m, 1u << axis, e);
        const double x = smallest ? -m->v[e] : m->v[e];
        model_index(&m->shape, e, i);
        /* by (value, NaN above all), the first of equals */
        if (r.v[to] >= 0 &&
            (isnan(best.v[to]) || (!isnan(x) && x <= best.v[to])))
            continue;
        best.v[to] = x;
        r.v[to] = (double)i[axis];
    }
    return r;
}

static void check_arg(lb_ctx *const *cx, int n_cx, lb_shape shape, int axis)
{
    for (int d = 1; d < LB_N_DTYPES; d++)
        for (int view = 0; view < MODEL_VIEWS; view++) {
            const lb_dtype t = (lb_dtype)d;
            const lb_dtype to = d % 2 ? LB_I32 : LB_U64;
            if (check_thins()) continue;
            model m = model_make(shape, t, view, (uint32_t)d);
            const bool nans = is_float(t) && t != LB_F16 && d % 2;
            for (int64_t i = 0; i < model_size(&shape) && nans; i += 11)
                if (view != MODEL_REPEATED) m.v[i] = (double)NAN;
            const model most = model_arg(&m, axis, false);
            const model few = model_arg(&m, axis, true);
            for (int c = 0; c < n_cx; c++) {
                lb_enter(cx[c]);
                lb_array *a = model_array(cx[c], &m, t, view);
                CHECK_MODEL(cx[c], lb_argmax(cx[c], a, axis, to), to, &most);
                CHECK_MODEL(cx[c], lb_argmin(cx[c], a, axis, to), to, &few);
                lb_leave(cx[c]);
            }
            model_end();
        }
}

static void test_arg(lb_ctx *const *cx, int n_cx)
{
    check_arg(cx, n_cx, LB_SHAPE(7), 0);
    check_arg(cx, n_cx, LB_SHAPE(4, 5), 0);
    check_arg(cx, n_cx, LB_SHAPE(4, 5), 1);
    check_arg(cx, n_cx, LB_SHAPE(3, 40, 5), 1);
    check_arg(cx, n_cx, LB_SHAPE(2, 3000), 1);
    check_arg(cx, n_cx, LB_SHAPE(0, 3), 1);
    check_arg(cx, 1, LB_SHAPE(150000), 0);
    lb_ctx *x = cx[0];
    CHECK_EQ_I(lb_dtype_of(lb_argmax(x, lb_zeros(x, LB_F32, LB_SHAPE(3)), -1,
                                     LB_NO_DTYPE)),
               LB_I32);
    const int64_t ends[] = {INT64_MIN, INT64_MIN, INT64_MAX};
    lb_array *a = lb_from(x, LB_I64, LB_SHAPE(3), ends);
    CHECK_EQ_I(lb_item_int(x, lb_argmin(x, a, 0, LB_I8)), 0);
    CHECK_EQ_I(lb_item_int(x, lb_argmax(x, a, 0, LB_I8)), 2);
    const float zeros[] = {-0.0f, 0.0f};
    a = lb_from(x, LB_F32, LB_SHAPE(2), zeros);
    CHECK_EQ_I(lb_item_int(x, lb_argmax(x, a, 0, LB_I8)), 0);
    CHECK_EQ_I(lb_item_int(x, lb_argmin(x, a, 0, LB_I8)), 0);
    CHECK_EQ_I(lb_error_status(x), LB_OK);
}

/* ---- refusals ----------------------------------------------------------- */

static void test_errors(lb_ctx *cx)
{
    lb_array *f = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3));
    lb_array *b = lb_zeros(cx, LB_BOOL, LB_SHAPE(2, 3));
    lb_array *wide = lb_zeros(cx, LB_I8, LB_SHAPE(257));
    lb_array *none = lb_zeros(cx, LB_F32, LB_SHAPE(2, 0));
    CHECK_REFUSED(cx, lb_reduce_sum(cx, f, LB_AXES(2)), LB_E_AXIS);
    CHECK_REFUSED(cx, lb_reduce_sum(cx, f, LB_AXES(-3)), LB_E_AXIS);
    CHECK_REFUSED(cx, lb_reduce_max(cx, f, LB_AXES(1, -1)), LB_E_AXIS);
    CHECK_REFUSED(cx, lb_reduce_max(cx, f, &(lb_axes){9, {0}}), LB_E_AXIS);
    CHECK(!lb_reduce_sum(cx, b, NULL) && lb_error_status(cx) == LB_E_DTYPE);
    lb_clear(cx);
    CHECK_REFUSED(cx, lb_reduce_and(cx, f, NULL), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_reduce_or(cx, f, NULL), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_reduce_sum(cx, NULL, NULL), LB_E_NULL);
    const lb_prim *sum = lb_find_primitive(cx, "reduce_sum");
    CHECK_REFUSED(cx, lb_bind(cx, sum, 1, &f, &(lb_reduce_params){{1, {-1}}}),
                  LB_E_AXIS);
    CHECK_REFUSED(cx, lb_argmax(cx, f, 2, LB_I32), LB_E_AXIS);
    CHECK_REFUSED(cx, lb_argmax(cx, f, 0, LB_F32), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_argmax(cx, none, 1, LB_I32), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_argmin(cx, wide, 0, LB_I8), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_argmin(cx, wide, 0, LB_U8), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_argmin(cx, NULL, 0, LB_I32), LB_E_NULL);
    CHECK(lb_argmin(cx, wide, 0, LB_I16) != NULL);
    wide = lb_zeros(cx, LB_I8, LB_SHAPE(256));
    CHECK(lb_argmin(cx, wide, 0, LB_U8) != NULL);
    CHECK_REFUSED(cx, lb_argmin(cx, wide, 0, LB_I8), LB_E_DTYPE);
}

static void test_level(lb_level level)
{
    static const int threads[] = {1, 2, 7};
    const char *isa = lb_level_name(level);
    lb_ctx *cx[3];
    for (int i = 0; i < 3; i++) {
        cx[i] = lb_open(&(lb_options){.threads = threads[i], .isa = isa});
        CHECK(cx[i] != NULL);
        if (!cx[i]) return;
    }
    test_values(cx[0]);
    test_order(cx, 3);
    test_special(cx[1]);
    test_zeros(cx[1]);
    test_arg(cx, 3);
    test_errors(cx[0]);
    for (int i = 0; i < 3; i++)
        lb_close(cx[i]);
}

int main(void)
{
    for (int l = LB_LEVEL_REF; l <= LB_LEVEL_AMX; l++)
        if (lb_level_available((lb_level)l)) test_level((lb_level)l);
    model_end();
    return check_report("reduce");
}
