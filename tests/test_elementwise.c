/* test_elementwise.c - every elementwise primitive on every dtype against
 * arithmetic in this file: long double for floats, 128 bits for integers.
 *
 * Unary: all patterns of 16-bit floats, special and random values of others.
 * Binary: all pairs of special values and random pairs. The rows come from the
 * registry; a row without a reference in this file fails.
 */
/* ctest: simde */
#include <float.h>
#include <limits.h>
#include <stdlib.h>

#include "check.h"
#include "lowbit_ext.h"
#include "lowbit_params.h"
#include "numbers.h"
#include "prims/elementwise.h"

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 uwide;

/* ---- floats ------------------------------------------------------------- */

typedef long double ld;

static ld neg(ld x)
{
    return -x;
}

static ld sign(ld x)
{
    return isnan(x) || x == 0 ? x : x > 0 ? 1 : -1;
}

static ld rsqrtl(ld x)
{
    return 1 / sqrtl(x);
}

static ld logistic(ld x)
{
    return 1 / (1 + expl(-x));
}

/* Bounds in ulp for f32 and f64; a correctly rounded result is within 0.5.
 * Those of f32 are documented in mathf.h and lanes.c. */
static const struct {
    const char *name;
    ld (*f)(ld);
    double f32, f64;
} unary[] = {
    {"neg", neg, 0, 0},
    {"abs", fabsl, 0, 0},
    {"sign", sign, 0, 0},
    {"exp", expl, 1, 1},
    {"log", logl, 1, 1},
    {"expm1", expm1l, 0.51, 2},
    {"log1p", log1pl, 0.51, 2},
    {"sqrt", sqrtl, 0.5001, 0.5001},
    {"rsqrt", rsqrtl, 0.5001, 1.5}, /* two roundings, one counted double */
    {"cbrt", cbrtl, 0.5001, 4},     /* glibc's, measured at 3.7 */
    {"tanh", tanhl, 2.7, 3},
    {"logistic", logistic, 2.5, 3},
    {"sin", sinl, 0.5001, 1},
    {"cos", cosl, 0.5001, 1},
    {"tan", tanl, 0.5001, 1},
    {"erf", erfl, 1.4, 1.5},
    {"floor", floorl, 0, 0},
    {"ceil", ceill, 0, 0},
    {"round", rintl, 0, 0},
    {"round_away", roundl, 0, 0},
};

static ld add(ld x, ld y)
{
    return x + y;
}

static ld sub(ld x, ld y)
{
    return x - y;
}

static ld mul(ld x, ld y)
{
    return x * y;
}

static ld divide(ld x, ld y)
{
    return x / y;
}

static ld largest(ld x, ld y)
{
    if (isnan(x) || isnan(y)) return (ld)NAN;
    if (x == y) return signbit(x) ? y : x;
    return x > y ? x : y;
}

static ld least(ld x, ld y)
{
    return -largest(-x, -y);
}

static ld swiglu(ld x, ld y)
{
    return x * logistic(x) * y;
}

static const struct {
    const char *name;
    ld (*f)(ld, ld);
    double f32, f64;
} binary[] = {
    {"add", add, 0.5001, 0.5001},
    {"sub", sub, 0.5001, 0.5001},
    {"mul", mul, 0.5001, 0.5001},
    {"div", divide, 0.5001, 0.5001},
    {"rem", fmodl, 0, 0},
    {"max", largest, 0, 0},
    {"min", least, 0, 0},
    {"pow", powl, 0.51, 1},
    {"atan2", atan2l, 0.51, 1},
    {"swiglu", swiglu, 6, 6}, /* logistic and two products */
};

static bool compare(const char *name, ld x, ld y)
{
    if (strcmp(name, "eq") == 0) return x == y;
    if (strcmp(name, "ne") == 0) return !(x == y);
    if (strcmp(name, "lt") == 0) return x < y;
    if (strcmp(name, "le") == 0) return x <= y;
    if (strcmp(name, "gt") == 0) return x > y;
    return x >= y;
}

static bool is_compare(const char *name)
{
    return strstr("eq ne lt le gt ge", name) && strlen(name) == 2;
}

/* ---- integers ----------------------------------------------------------- */

/* The value of bits of a dtype's width. */
static wide wrap(wide x, lb_dtype d)
{
    const int bits = number_bits(d);
    const uwide low = (uwide)x & (((uwide)1 << bits) - 1);
    if (!number_is_signed(d) || !(low >> (bits - 1))) return (wide)low;
    return (wide)low - ((wide)1 << bits);
}

static wide power(wide x, wide y, lb_dtype d)
{
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
    if (y == 0) return 1;
    const wide half = power(x, y / 2, d);
    const wide square = wrap((wide)((uwide)half * (uwide)half), d);
    return y % 2 ? wrap((wide)((uwide)square * (uwide)x), d) : square;
}

static wide shift(const char *name, wide x, wide y, lb_dtype d)
{
    const int bits = number_bits(d);
    const bool out = y < 0 || y >= bits;
    const uwide low = (uwide)x & (((uwide)1 << bits) - 1);
    if (strcmp(name, "shift_left") == 0) return out ? 0 : (wide)(low << y);
    if (strcmp(name, "shift_right_logical") == 0)
        return out ? 0 : (wide)(low >> y);
    /* Arithmetic shift: the top bit is repeated, whether or not the dtype is
     * signed. */
    const bool top = low >> (bits - 1) & 1;
    const uwide ones = ((uwide)1 << bits) - 1;
    if (out) return top ? (wide)ones : 0;
    return (wide)(low >> y | (top ? ones ^ ones >> y : 0));
}

/* false: the function does not accept integers. */
static bool of_integers(const char *name, wide x, wide y, lb_dtype d, wide *out)
{
    const wide bits = number_bits(d);
    const uwide low = (uwide)x & (((uwide)1 << bits) - 1);
    wide n = 0;
    for (int i = 0; i < bits; i++)
        n += (wide)(low >> i & 1);
    const struct {
        const char *name;
        wide value;
    } all[] = {
        {"neg", -x},
        {"abs", x < 0 ? -x : x},
        {"sign", (x > 0) - (x < 0)},
        {"not", -1 - x},
        {"popcnt", n},
        {"add", x + y},
        {"sub", x - y},
        {"mul", (wide)((uwide)x * (uwide)y)},
        {"div", y ? x / y : -1},
        {"rem", y ? x % y : x},
        {"max", x > y ? x : y},
        {"min", x < y ? x : y},
        {"pow", power(x, y, d)},
        {"and", x & y},
        {"or", x | y},
        {"xor", x ^ y},
    };
    *out = wrap(shift(name, x, y, d), d);
    if (strncmp(name, "shift", 5) == 0) return true;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].name, name) != 0) continue;
        *out = wrap(all[i].value, d);
        if (d == LB_BOOL && strcmp(name, "add") == 0) *out = x | y;
        return true;
    }
    return false;
}

/* ---- operands ----------------------------------------------------------- */

enum { MOST = 1 << 16 };

typedef struct list {
    uint64_t raw[MOST];
    int n;
} list;

static void push(list *l, uint64_t raw)
{
    if (l->n < MOST) l->raw[l->n++] = raw;
}

static void specials(lb_dtype d, list *l)
{
    const int bits = (int)lb_dtype_size(d) * 8;
    const uint64_t top = (uint64_t)1 << (bits - 1);
    l->n = 0;
    if (d == LB_BOOL) {
        push(l, 0);
        push(l, 1);
        return;
    }
    if (!number_is_float(d)) {
        const uint64_t of[] = {0,   1,   2,       3,       5,       7,  8,
                               10,  15,  16,      31,      32,      63, 64,
                               100, top, top - 1, top + 1, top >> 1};
        for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
            push(l, of[i]);
            push(l, 0 - of[i]);
        }
        return;
    }
    const number_layout f = number_layout_of(d);
    const uint64_t one = (uint64_t)1 << (f.digits - 1);
    const uint64_t inf = top - one, bias = (uint64_t)f.max_exp - 1;
    const uint64_t of[] = {0,
                           1,
                           one - 1,
                           one,
                           inf - 1,
                           inf,
                           inf | one >> 1,
                           bias * one,                     /* 1 */
                           (bias - 1) * one,               /* 0.5 */
                           (bias + 1) * one,               /* 2 */
                           bias * one + one / 2,           /* 1.5 */
                           (bias + 1) * one + one / 4,     /* 2.5 */
                           (bias + 1) * one + one / 2,     /* 3 */
                           (bias + 1) * one + one / 7 * 4, /* about pi */
                           (bias + (uint64_t)f.digits - 1) * one + 1,
                           (bias + 6) * one + one / 3, /* about 85 */
                           (bias - 9) * one + one / 5};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        push(l, of[i]);
        push(l, of[i] | top);
    }
}

/* Half of them around 1, where most functions change. */
static uint64_t random_raw(lb_dtype d, uint64_t *state)
{
    const uint64_t r = number_draw(state);
    const int bits = (int)lb_dtype_size(d) * 8;
    const uint64_t mask = UINT64_MAX >> (64 - bits);
    if (d == LB_BOOL) return r & 1;
    if (!number_is_float(d) || r >> 63) return r & mask;
    const number_layout f = number_layout_of(d);
    const uint64_t one = (uint64_t)1 << (f.digits - 1);
    const uint64_t e = (uint64_t)f.max_exp - 1 - 6 + (r >> 58) % 12;
    return (r & (one - 1)) | e * one | (r >> 57 & 1) << (bits - 1);
}

static void unary_operands(lb_dtype d, list *l)
{
    uint64_t state = (uint64_t)d;
    l->n = 0;
    if (lb_dtype_size(d) == 2) {
        for (uint64_t i = 0; i < MOST; i++)
            push(l, i);
        return;
    }
    specials(d, l);
    for (int i = 0; i < 4000 && d != LB_BOOL; i++)
        push(l, random_raw(d, &state));
}

static void binary_operands(lb_dtype d, list *x, list *y)
{
    static list s;
    uint64_t state = (uint64_t)d;
    specials(d, &s);
    x->n = y->n = 0;
    for (int i = 0; i < s.n; i++)
        for (int j = 0; j < s.n; j++) {
            push(x, s.raw[i]);
            push(y, s.raw[j]);
        }
    for (int i = 0; i < 4000 && d != LB_BOOL; i++) {
        push(x, random_raw(d, &state));
        push(y, random_raw(d, &state));
    }
}

static lb_array *array_of(lb_ctx *cx, lb_dtype d, const list *l)
{
    const size_t size = lb_dtype_size(d);
    char *bytes = malloc((size_t)l->n * size + 1);
    if (!bytes) abort();
    for (int i = 0; i < l->n; i++)
        memcpy(bytes + (size_t)i * size, &l->raw[i], size);
    lb_array *a = lb_from(cx, d, LB_SHAPE(l->n), bytes);
    free(bytes);
    return a;
}

/* ---- each row ----------------------------------------------------------- */

static void wrong(const char *name, lb_dtype d, uint64_t x, uint64_t y, ld got,
                  ld want, double ulps)
{
    fprintf(stderr, "%s %s %llx %llx: %.21Lg, not %.21Lg (%.3g ulp)\n", name,
            lb_dtype_name(d), (unsigned long long)x, (unsigned long long)y, got,
            want, ulps);
}

/* The bound for 16-bit floats: the f32 result rounded once more. */
static double bound(lb_dtype d, double f32, double f64)
{
    return d == LB_F64   ? f64
           : d == LB_F32 ? f32
           : f32 == 0    ? 0
                         : 0.5 + f32 / 4096;
}

static bool float_reference(const char *name, lb_dtype d, ld x, ld y, ld *want,
                            double *ulps)
{
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++) {
        if (strcmp(unary[i].name, name) != 0) continue;
        *want = unary[i].f(x);
        *ulps = bound(d, unary[i].f32, unary[i].f64);
        return true;
    }
    for (size_t i = 0; i < sizeof binary / sizeof *binary; i++) {
        if (strcmp(binary[i].name, name) != 0) continue;
        *want = binary[i].f(x, y);
        *ulps = bound(d, binary[i].f32, binary[i].f64);
        return true;
    }
    return false;
}

/* These two are about the sign bit alone, also that of a (quiet) NaN. */
static bool sign_bit(const char *name, lb_dtype d, uint64_t x, uint64_t got)
{
    const uint64_t top = (uint64_t)1 << (number_bits(d) - 1);
    const uint64_t quiet = (uint64_t)1 << (number_layout_of(d).digits - 2);
    const bool neg_x = strcmp(name, "neg") == 0;
    if (!number_is_float(d) || (!neg_x && strcmp(name, "abs") != 0))
        return true;
    if (isnan(number_from_float(d, x)) && !(x & quiet)) return true;
    return got == (neg_x ? x ^ top : x & ~top);
}

/* swiglu's first product underflows, and the second makes that visible. */
static bool underflows(const char *name, lb_dtype d, ld x)
{
    const ld y = fabsl(x * logistic(x));
    return strcmp(name, "swiglu") == 0 && y != 0 &&
           y < (d == LB_F64 ? (ld)DBL_MIN : (ld)FLT_MIN);
}

static void check_row(lb_ctx *cx, const lb_row *row, lb_dtype d)
{
    static list x, y;
    const char *name = row->prim.name;
    if (row->prim.n_in == 1)
        unary_operands(d, &x);
    else
        binary_operands(d, &x, &y);
    lb_array *in[] = {array_of(cx, d, &x),
                      row->prim.n_in == 2 ? array_of(cx, d, &y) : NULL};
    lb_array *out = lb_bind(cx, &row->prim, row->prim.n_in, in, NULL);
    const bool cmp = is_compare(name), finite = strcmp(name, "is_finite") == 0;
    CHECK_EQ_I(lb_dtype_of(out), cmp || finite ? LB_BOOL : d);
    const char *got = lb_data(out);
    const lb_dtype to = lb_dtype_of(out);
    for (int i = 0; got && i < x.n; i++, got += lb_dtype_size(to)) {
        if (check_thins() || underflows(name, d, number_at(d, &x.raw[i])))
            continue;
        const uint64_t raw_y = row->prim.n_in == 2 ? y.raw[i] : 0;
        const ld a = number_at(d, &x.raw[i]), b = number_at(d, &raw_y);
        const ld r = number_at(to, got);
        ld want = 0;
        double ulps = 0, off = 0;
        wide n = 0;
        bool known = true;
        if (cmp || finite)
            want = cmp ? compare(name, a, b) : isfinite(a);
        else if (number_is_float(d))
            known = float_reference(name, d, a, b, &want, &ulps);
        else
            known = of_integers(name, (wide)a, (wide)b, d, &n), want = (ld)n;
        off = number_is_float(to) ? number_ulps(to, r, want)
              : r == want         ? 0
                                  : (double)INFINITY;
        if (check_fails(known && off <= ulps &&
                        sign_bit(name, d, x.raw[i], number_raw(to, got))))
            wrong(name, d, x.raw[i], raw_y, r, want, off);
    }
}

static void rows(lb_ctx *cx)
{
    static const struct {
        int kind;
        lb_dtype from, to;
    } of[] = {{LB_KIND_F, LB_F32, LB_F64},
              {LB_KIND_I, LB_I8, LB_I64},
              {LB_KIND_U, LB_U8, LB_U64},
              {LB_KIND_B, LB_BOOL, LB_BOOL}};
    const lb_prim *p;
    int n = 0;
    for (int k = 0; (p = lb_primitive_at(cx, k)); k++) {
        if (p->infer != lb_row_infer || p->n_in == 3 || p->params_size)
            continue;
        const lb_row *row = (const lb_row *)(const void *)p;
        for (int i = 0; i < 4; i++)
            for (lb_dtype d = of[i].from; d <= of[i].to; d++) {
                if (!(row->kinds & of[i].kind)) continue;
                lb_enter(cx);
                check_row(cx, row, d);
                lb_leave(cx);
            }
        n++;
    }
    CHECK(n > 40);
}

/* ---- integer_pow -------------------------------------------------------- */

static void integer_pow(lb_ctx *cx, lb_dtype d, int e)
{
    static list x;
    lb_enter(cx);
    x.n = 0;
    uint64_t state = (uint64_t)(e + 100);
    specials(d, &x);
    for (int i = 0; i < 300; i++)
        push(&x, random_raw(d, &state));
    lb_array *a = array_of(cx, d, &x), *out = lb_integer_pow(cx, a, e);
    CHECK_EQ_I(lb_dtype_of(out), d);
    const char *got = lb_data(out);
    const number_layout l = number_layout_of(d == LB_F64 ? LB_F64 : LB_F32);
    for (int i = 0; got && i < x.n; i++, got += lb_dtype_size(d)) {
        const ld v = number_at(d, &x.raw[i]), r = number_at(d, got);
        if (!number_is_float(d)) {
            const ld want = (ld)power((wide)v, e, d);
            if (check_fails(r == want))
                wrong("integer_pow", d, x.raw[i], (uint64_t)e, r, want, 0);
            continue;
        }
        /* Where x^|e| itself is in range; 1/x^|e| is then as accurate. */
        const ld want = powl(v, e), up = powl(fabsl(v), abs(e));
        const bool in =
            isfinite(v) && v != 0 &&
            (up > ldexpl(1, l.max_exp - 1) || up < ldexpl(1, l.min_exp));
        const double off = number_ulps(d, r, want);
        if (check_fails(in || off <= abs(e) + 1))
            wrong("integer_pow", d, x.raw[i], (uint64_t)e, r, want, off);
    }
    lb_leave(cx);
}

static void integer_pows(lb_ctx *cx)
{
    static const int e[] = {0, 1, 2, 3, 4, 7, 30, -1, -2, -5, -30};
    for (size_t i = 0; i < sizeof e / sizeof *e; i++)
        for (int d = 1; d < LB_BOOL; d++)
            if (e[i] >= 0 || d <= LB_F64) integer_pow(cx, (lb_dtype)d, e[i]);
    /* -2^31 has no positive counterpart. */
    CHECK(lb_item(cx, lb_integer_pow(cx, lb_scalar(cx, 2), INT_MIN)) == 0);
    CHECK(lb_item(cx, lb_integer_pow(cx, lb_scalar(cx, -1), INT_MIN)) == 1);
    CHECK(isinf(lb_item(cx, lb_integer_pow(cx, lb_scalar(cx, 0.5), INT_MIN))));
}

/* ---- select and clamp --------------------------------------------------- */

/* All triples of special values; bounds also as scalars. */
static void clamps(lb_ctx *cx, lb_dtype d)
{
    static list s, x;
    specials(d, &s);
    x.n = 0;
    for (int i = 0; i < s.n; i++)
        push(&x, s.raw[i]);
    lb_array *a = array_of(cx, d, &x);
    const lb_prim *clamp = lb_find_primitive(cx, "clamp");
    for (int i = 0; i < s.n; i++)
        for (int j = 0; j < s.n; j++) {
            lb_enter(cx);
            lb_array *lo = lb_from(cx, d, (lb_shape){0}, &s.raw[i]);
            lb_array *hi = lb_from(cx, d, (lb_shape){0}, &s.raw[j]);
            const ld l = number_at(d, &s.raw[i]), h = number_at(d, &s.raw[j]);
            lb_array *scalars =
                lb_bind(cx, clamp, 3, (lb_array *[]){lo, a, hi}, NULL);
            lb_array *arrays = lb_clamp(cx, lo, a, hi);
            const char *p = lb_data(scalars), *q = lb_data(arrays);
            const size_t size = lb_dtype_size(d);
            CHECK(p && q && memcmp(p, q, size * (size_t)x.n) == 0);
            for (int k = 0; p && k < x.n; k++) {
                const ld v = number_at(d, &x.raw[k]);
                const ld want = least(largest(v, l), h);
                const ld got = number_at(d, p + (size_t)k * size);
                if (check_fails(number_is_float(d)
                                    ? number_ulps(d, got, want) == 0
                                    : got == want))
                    wrong("clamp", d, s.raw[i], s.raw[j], got, want, 0);
            }
            lb_leave(cx);
        }
}

static void selects(lb_ctx *cx, lb_dtype d)
{
    const uint64_t x = 1, y = 0;
    const uint8_t p[] = {1, 0, 0, 1, 1};
    lb_array *pred = lb_from(cx, LB_BOOL, LB_SHAPE(5), p);
    lb_array *a = lb_from(cx, d, (lb_shape){0}, &x);
    lb_array *b = lb_from(cx, d, (lb_shape){0}, &y);
    lb_array *out = lb_select(cx, pred, a, b);
    CHECK_EQ_I(lb_dtype_of(out), d);
    for (int i = 0; out && i < 5; i++) /* bit-exact, including subnormals */
        CHECK_EQ_I(number_raw(d, (const char *)lb_data(out) +
                                     (size_t)i * lb_dtype_size(d)),
                   p[i]);
    /* The strict primitive takes a scalar for the first. */
    const lb_prim *select = lb_find_primitive(cx, "select");
    lb_array *t = lb_from(cx, LB_BOOL, (lb_shape){0}, &p[0]);
    lb_array *as = lb_broadcast_to(cx, a, LB_SHAPE(5));
    lb_array *bs = lb_broadcast_to(cx, b, LB_SHAPE(5));
    out = lb_bind(cx, select, 3, (lb_array *[]){t, as, bs}, NULL);
    CHECK(out && number_raw(d, lb_data(out)) == 1);
}

/* ---- the public functions ----------------------------------------------- */

static void is(lb_ctx *cx, lb_array *a, lb_shape shape, const double *want)
{
    CHECK(a && lb_shape_equal(&a->shape, &shape));
    a = lb_materialize(cx, lb_convert(cx, a, LB_F64));
    const double *got = lb_data(a);
    for (int64_t i = 0; got && i < lb_shape_size(&shape); i++)
        CHECK_NEAR(got[i], want[i], 0);
}
#define IS(A, SHAPE, ...) is(cx, A, SHAPE, (const double[]){__VA_ARGS__})

static void broadcasting(lb_ctx *cx)
{
    const int32_t seq[] = {0, 1, 2, 3, 4, 5};
    lb_array *col = lb_from(cx, LB_I32, LB_SHAPE(3, 1), seq);
    lb_array *row = lb_from(cx, LB_I32, LB_SHAPE(2), seq + 4);
    lb_array *one = lb_from(cx, LB_I32, LB_SHAPE(1, 1, 1), seq + 1);
    lb_array *none = lb_from(cx, LB_I32, LB_SHAPE(3, 0), seq);
    IS(lb_add(cx, col, row), LB_SHAPE(3, 2), 4, 5, 5, 6, 6, 7);
    IS(lb_sub(cx, row, col), LB_SHAPE(3, 2), 4, 5, 3, 4, 2, 3);
    IS(lb_mul(cx, one, row), LB_SHAPE(1, 1, 2), 4, 5);
    IS(lb_add(cx, none, col), LB_SHAPE(3, 0), 0);
    IS(lb_add(cx, none, one), LB_SHAPE(1, 3, 0), 0);
    IS(lb_lt(cx, col, lb_scalar(cx, 1.5)), LB_SHAPE(3, 1), 1, 1, 0);
    IS(lb_select(cx, lb_gt(cx, col, one), row, lb_scalar_int(cx, 9)),
       LB_SHAPE(1, 3, 2), 9, 9, 9, 9, 4, 5);
    IS(lb_clamp(cx, one, col, lb_scalar_int(cx, 1)), LB_SHAPE(1, 3, 1), 1, 1,
       1);
    IS(lb_max(cx, lb_scalar_int(cx, 2), lb_scalar(cx, 1.5)), (lb_shape){0}, 2);
    /* Integers become f32 before a function of floats, or when they meet one:
     * 2^24 + 1 is not an f32. */
    lb_array *big = lb_full_int(cx, LB_I32, LB_SHAPE(1), (1 << 24) + 1);
    IS(lb_add(cx, big, lb_full(cx, LB_F32, LB_SHAPE(1), 0)), LB_SHAPE(1),
       1 << 24);
    IS(lb_floor(cx, big), LB_SHAPE(1), 1 << 24);
    IS(lb_eq(cx, big, lb_full(cx, LB_F64, LB_SHAPE(1), (1 << 24) + 1)),
       LB_SHAPE(1), 1);
    /* A weak number is rounded to the dtype it joins. */
    lb_array *small = lb_full(cx, LB_BF16, LB_SHAPE(1), 1);
    IS(lb_add(cx, small, lb_scalar(cx, 0.00390625)), LB_SHAPE(1), 1);
    CHECK_EQ_S(lb_error(cx), "");
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    CHECK(cx != NULL);
    if (!cx) return check_report("elementwise");
    const bool exact = number_is_exact();
    if (!exact) puts("elementwise: long double is short here; much left out");
    if (exact) rows(cx);
    if (exact) integer_pows(cx);
    for (int d = 1; d < LB_N_DTYPES; d++) {
        if (exact) clamps(cx, (lb_dtype)d);
        selects(cx, (lb_dtype)d);
    }
    broadcasting(cx);
    lb_close(cx);
    return check_report("elementwise");
}
