/* test_decoded.c - products at FAST and FASTEST of weights without codes that
 * products use: they are decoded and rounded (pack_decoded.c).
 *
 * For every such format, on every level, in either operand and orientation: the
 * error on normal data, against sums in double precision of what lb_read gives;
 * the same bits on 1, 2 and 7 threads, and on every level that rounds to the
 * same integers.
 */
/* ctest: simde amx skip-tsan */
#include "base/cpu.h"
#include "core/core.h"
#include "laws.h"

enum { M = 40, FEW = 3, K = 352, N = 70 };

/* Formats without an encoder get random blocks, whose magnitudes vary more
 * than those of normal data. */
static double bound_of(const sample_format *f, lb_precision precision)
{
    if (precision == LB_PRECISION_FAST) return 3e-4;
    return f->fmt->encode ? 1e-2 : 1.3e-2;
}

static const struct {
    lb_level level;
    const char *name;
} levels[] = {
    {LB_LEVEL_REF, "ref"},
    {LB_LEVEL_NEON, "neon"},
    {LB_LEVEL_AVX2, "avx2"},
    {LB_LEVEL_AVX512, "avx512"},
    {LB_LEVEL_AVX512VNNI, "avx512vnni"},
    {LB_LEVEL_AMX, "amx"},
};
enum { LEVELS = sizeof levels / sizeof *levels };

/* ---- one product --------------------------------------------------------- */

typedef struct product {
    int64_t m, k, n;
    bool kn;      /* weights are (k, n), else (n, k) */
    bool swapped; /* weights are the first operand */
    lb_precision precision;
} product;

static lb_array *multiply(lb_ctx *cx, const product *p, lb_array *x,
                          lb_array *w)
{
    const lb_axes of_x = {1, {1}}, of_w = {1, {p->kn ? 0 : 1}};
    const lb_dot_dims d = {.lhs_contract = p->swapped ? of_w : of_x,
                           .rhs_contract = p->swapped ? of_x : of_w,
                           .precision = p->precision};
    return p->swapped ? lb_dot_general(cx, w, x, &d)
                      : lb_dot_general(cx, x, w, &d);
}

/* Products of x (m, k) and weights, in double precision. */
static double *sums(const product *p, const float *x, const float *w)
{
    double *y = calloc((size_t)(p->m * p->n), sizeof *y);
    if (!y) abort();
    const int64_t row = p->kn ? 1 : p->k, deep = p->kn ? p->n : 1;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++)
            for (int64_t k = 0; k < p->k; k++)
                y[i * p->n + j] +=
                    (double)x[i * p->k + k] * w[j * row + k * deep];
    return y;
}

static double error_of(const product *p, const float *got, const double *want)
{
    double off = 0, all = 0;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            const double y = want[i * p->n + j];
            const double d = got[p->swapped ? j * p->m + i : i * p->n + j] - y;
            off += d * d;
            all += y * y;
        }
    return sqrt(off / all);
}

static float *read_floats(lb_ctx *cx, lb_array *a)
{
    const size_t n = a ? (size_t)lb_shape_size(&a->shape) : 0;
    float *to = calloc(n + 1, sizeof *to);
    if (!to) abort();
    CHECK(a && lb_read(cx, a, to, n * sizeof *to));
    return to;
}

/* ---- every format -------------------------------------------------------- */

static lb_array *make_weights(lb_ctx *cx, const sample_format *f, int64_t rows,
                              int64_t columns)
{
    const lb_shape shape = LB_SHAPE(rows, columns);
    lb_array *normal = lb_random_normal(cx, (lb_key){7, 1}, LB_F32, shape);
    float *data = read_floats(cx, normal);
    lb_array *w = f->make(cx, f, LB_F32, shape, data);
    free(data);
    return w;
}

/* Few rows of x and formats that are integers. */
static bool are_integers(const product *p, const sample_format *f)
{
    return p->m == FEW && !p->kn && f->fmt->integers;
}

/* Whether two levels round to the same integers: all but FASTEST, which takes
 * words where bytes have no instruction. Few rows are multiplied as f32 if w
 * has no integers. */
static bool as_exact(const product *p, const sample_format *f, lb_level level)
{
    const lb_precision precision = p->precision;
    if (p->m == FEW) return are_integers(p, f) && level != LB_LEVEL_NEON;
    return level >= LB_LEVEL_AVX512VNNI || level == LB_LEVEL_REF ||
           (level == LB_LEVEL_AVX2 && precision == LB_PRECISION_FAST);
}

static void check_levels(const product *p, const sample_format *f)
{
    float *first = NULL;
    for (int l = 0; l < LEVELS; l++) {
        if (!lb_level_available(levels[l].level)) continue;
        lb_ctx *cx =
            lb_open(&(lb_options){.threads = 1, .isa = levels[l].name});
        lb_array *x =
            lb_random_normal(cx, (lb_key){3, 2}, LB_F32, LB_SHAPE(p->m, p->k));
        lb_array *w =
            make_weights(cx, f, p->kn ? p->k : p->n, p->kn ? p->n : p->k);
        float *xs = read_floats(cx, x), *ws = read_floats(cx, w);
        float *got = read_floats(cx, multiply(cx, p, x, w));
        double *want = sums(p, xs, ws);
        const double error = error_of(p, got, want);
        if (check_fails(error <= bound_of(f, p->precision)))
            fprintf(stderr, "%s, %s, %s%s, precision %d: error %.3g\n", f->name,
                    levels[l].name, p->kn ? "KN" : "NK",
                    p->swapped ? ", swapped" : "", p->precision, error);
        const size_t size = (size_t)(p->m * p->n) * sizeof *got;
        if (as_exact(p, f, levels[l].level)) {
            if (first && check_fails(memcmp(first, got, size) == 0))
                fprintf(stderr, "%s, %s: other bits\n", f->name,
                        levels[l].name);
            if (!first) {
                first = got;
                got = NULL;
            }
        }
        free(xs);
        free(ws);
        free(got);
        free(want);
        lb_close(cx);
    }
    free(first);
}

/* Whether products cannot use the codes: of no array, or not of these. */
static bool is_decoded(lb_ctx *cx, const sample_format *f)
{
    if (!f->fmt->levels) return !f->variant;
    lb_levels found;
    lb_enter(cx);
    const lb_array *w = make_weights(cx, f, N, K);
    const bool none = w && !f->fmt->levels(&cx->cpu, w->store, &found);
    lb_leave(cx);
    return none;
}

static void check_format(const sample_format *f)
{
    for (int i = 0; i < 16; i++) {
        const product p = {.m = i & 8 ? FEW : M,
                           .k = K,
                           .n = N,
                           .kn = i & 1,
                           .swapped = i & 2,
                           .precision = i & 4 ? LB_PRECISION_FASTEST
                                              : LB_PRECISION_FAST};
        check_levels(&p, f);
    }
}

/* ---- threads ------------------------------------------------------------- */

static void check_threads(const sample_format *f)
{
    static const int threads[] = {1, 2, 7};
    for (int i = 0; i < 8; i++) {
        float *first = NULL;
        const product p = {.m = i & 4 ? 7 : 600,
                           .k = 1100,
                           .n = 544,
                           .kn = i & 1,
                           .precision = i & 2 ? LB_PRECISION_FASTEST
                                              : LB_PRECISION_FAST};
        for (int t = 0; t < 3; t++) {
            lb_ctx *cx = lb_open(&(lb_options){.threads = threads[t]});
            lb_array *x = lb_random_normal(cx, (lb_key){3, 2}, LB_F32,
                                           LB_SHAPE(p.m, p.k));
            lb_array *w =
                make_weights(cx, f, p.kn ? p.k : p.n, p.kn ? p.n : p.k);
            float *got = read_floats(cx, multiply(cx, &p, x, w));
            if (first)
                CHECK(memcmp(first, got, (size_t)(p.m * p.n) * sizeof *got) ==
                      0);
            if (first)
                free(got);
            else
                first = got;
            lb_close(cx);
        }
        free(first);
    }
}

/* ---- what is not finite -------------------------------------------------- */

/* A row of x with a NaN, and no other, gives NaNs. */
static void check_nan(const sample_format *f, int64_t m)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    const product p = {
        .m = m, .k = K, .n = N, .precision = LB_PRECISION_FASTEST};
    float *data = calloc((size_t)(m * K), sizeof *data);
    if (!data) abort();
    for (int64_t i = 0; i < m * K; i++)
        data[i] = (float)(i % 17) - 8;
    data[2 * K + 100] = (float)NAN;
    lb_array *x = lb_from(cx, LB_F32, LB_SHAPE(m, K), data);
    float *y =
        read_floats(cx, multiply(cx, &p, x, make_weights(cx, f, p.n, p.k)));
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < N; j++)
            CHECK(isnan(y[i * N + j]) == (i == 2));
    free(data);
    free(y);
    lb_close(cx);
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    sample_format_list all = sample_formats_of(cx);
    const sample_operand o = {LB_F32, LB_SHAPE(N, K), VALUES_TAME, 0, 0, false};
    int n = 0;
    for (int i = 0; i < all.n; i++) {
        sample_format *f = &all.item[i];
        f->every = 0;
        if (!f->fmt || !sample_takes(f, &o) || !is_decoded(cx, f)) continue;
        check_format(f);
        if (n++ == 0) {
            check_threads(f);
            check_nan(f, M);
            check_nan(f, FEW);
        }
    }
    CHECK(n > 0);
    sample_formats_free(&all);
    lb_close(cx);
    return check_report("decoded");
}
