/* test_mathf.c - the functions of mathf.h against double precision.
 *
 * Errors are counted in ulp of the correct result: the gap between its f32
 * neighbours, 2^-149 if it is subnormal; an infinity counts as 2^128. By
 * default, 2^21 patterns spread over all 2^32 are tried, and all patterns
 * around points where the algorithm changes; with --all every pattern (many
 * minutes).
 */
/* ctest: long=--all skip-tsan skip-ref */
#include <math.h>

#include "check.h"
#include "kernels/mathf.h"

/* ---- errors ------------------------------------------------------------- */

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static double clip(double x)
{
    return x > 0x1p128 ? 0x1p128 : x < -0x1p128 ? -0x1p128 : x;
}

static double error_in_ulp(float got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0.0 : (double)INFINITY;
    if (got == (float)want && !signbit(got) != !signbit(want))
        return (double)INFINITY;
    int e;
    frexp(clip(want), &e);
    if (e < -125 || want == 0.0) e = -125;
    if (e > 128) e = 128;
    return fabs(clip((double)got) - clip(want)) / ldexp(1.0, e - 24);
}

/* ---- the functions of one f32 ------------------------------------------- */

static double logistic(double x)
{
    return x < 0.0 ? exp(x) / (1.0 + exp(x)) : 1.0 / (1.0 + exp(-x));
}

/* digest: of the result's bits over the patterns of `spread`, which must be the
 * same on every machine. Recorded on x86-64, where gcc and clang, at -O0 to
 * -O3, with and without FMA, agreed: it fixes the bits and does not check
 * accuracy. */
typedef struct row {
    const char *name;
    float (*f)(float);
    double (*want)(double);
    double bound; /* ulp: the maximum over all patterns, rounded up */
    float worst;  /* where --all found it */
    bool odd;
    uint64_t digest;
} row;

static const row ROWS[] = {
    {"exp", lb_expf, exp, 0.99, -0x1.769da2p+2f, false,
     UINT64_C(0x2ef8f57112486125)},
    {"log", lb_logf, log, 0.84, 0x1.69cf3ep+0f, false,
     UINT64_C(0x16d0e34b2580d234)},
    {"tanh", lb_tanhf, tanh, 2.01, 0x1.fff374p-5f, true,
     UINT64_C(0x15875dac1a2b5abc)},
    {"logistic", lb_logisticf, logistic, 2.41, -0x1.0a111ap+2f, false,
     UINT64_C(0x409d957f959e0af2)},
    {"erf", lb_erff, erf, 1.32, 0x1.fd1802p-1f, true,
     UINT64_C(0xd5638d01c1aa8b74)},
};
enum { N_ROWS = (int)(sizeof ROWS / sizeof ROWS[0]), SPREAD = 1 << 21 };

/* Knuth's multiplier is odd: the patterns are all different, and everywhere. */
static uint32_t spread(uint32_t i)
{
    return i * 2654435761u;
}

typedef struct worst {
    double ulp;
    float at;
    int64_t n, not_odd;
} worst;

static void try_one(const row *r, uint32_t bits, worst *w)
{
    const float x = float_of(bits);
    const float y = r->f(x);
    const double ulp = error_in_ulp(y, r->want((double)x));
    w->n++;
    if (ulp > w->ulp) {
        w->ulp = ulp;
        w->at = x;
    }
    if (r->odd && y == y && bits_of(r->f(-x)) != bits_of(-y)) w->not_odd++;
}

/* x, `around` patterns on both sides, and the same with a negative sign. */
static void try_near(const row *r, double x, uint32_t around, worst *w)
{
    const uint32_t mid = bits_of((float)x);
    for (uint32_t k = 0; k <= 2 * around; k++) {
        try_one(r, mid + k - around, w);
        try_one(r, (mid + k - around) ^ 0x80000000u, w);
    }
}

static void try_places(const row *r, worst *w)
{
    /* zero and subnormals, the clamps, boundaries of pieces, where exp
     * overflows, becomes subnormal and underflows, the largest, inf and NaN */
    const double place[] = {0.0,
                            0x1p-149,
                            0x1p-126,
                            0x1p-63,
                            0x1p-25,
                            0x1p-24,
                            0x1p-12,
                            0.425,
                            0.5,
                            0.70710678,
                            1.0,
                            1.41421356,
                            2.0,
                            4.0,
                            3.9192059,
                            9.01,
                            10.0,
                            16.6355,
                            17.3287,
                            87.336545,
                            88.0,
                            88.722839,
                            89.0,
                            103.2789,
                            103.97208,
                            104.0,
                            0x1p127,
                            0x1.fffffep127,
                            (double)INFINITY};
    for (size_t k = 0; k < sizeof place / sizeof place[0]; k++)
        try_near(r, place[k], 2000, w);
    try_near(r, (double)r->worst, 2000, w);
    /* where exp's reduction steps, and where log's mantissa wraps */
    for (int k = 1; k < 310; k++)
        try_near(r, k * 0.34657359027997264, 100, w);
    for (int k = -149; k < 128; k++) {
        try_near(r, ldexp(1.0, k), 100, w);
        try_near(r, ldexp(1.4142135623730951, k), 100, w);
    }
    for (int k = -5; k < 4; k++) /* where a piece of tanh ends */
        try_near(r, ldexp(1.5, k), 100, w);
    for (uint32_t u = 0; u < 0x00800000u; u += 61)
        try_one(r, u, w);
}

/* FNV-1a, a word at a time. */
static const uint64_t DIGEST_START = UINT64_C(0xcbf29ce484222325);

static uint64_t digest_with(uint64_t digest, uint64_t word)
{
    return (digest ^ word) * UINT64_C(0x100000001b3);
}

static uint64_t digest_of(const row *r)
{
    uint64_t h = DIGEST_START;
    for (uint32_t i = 0; i < SPREAD; i++) {
        const float y = r->f(float_of(spread(i)));
        h = digest_with(h, y == y ? bits_of(y) : 0x7fc00000u);
    }
    return h;
}

static void test_row(const row *r, bool all)
{
    worst w = {0};
    if (all)
        for (uint64_t u = 0; u <= UINT32_MAX; u++)
            try_one(r, (uint32_t)u, &w);
    for (uint32_t i = 0; i < SPREAD; i++)
        try_one(r, spread(i), &w);
    try_places(r, &w);
    printf("%-8s %.4f ulp at %a, of %" PRId64 "\n", r->name, w.ulp,
           (double)w.at, w.n);
    fflush(stdout);
    CHECK(w.ulp <= r->bound);
    CHECK_EQ_I(w.not_odd, 0);
    CHECK(digest_of(r) == r->digest);
}

static void test_specials(void)
{
    const float inf = INFINITY, nan = NAN;
    for (int k = 0; k < N_ROWS; k++) {
        CHECK(isnan(ROWS[k].f(nan)));
        CHECK(isnan(ROWS[k].f(-nan)));
        CHECK(isnan(ROWS[k].f(float_of(0x7f800001u)))); /* signalling */
    }
    CHECK(lb_expf(inf) == inf && lb_expf(-inf) == 0.0f);
    CHECK(lb_expf(0.0f) == 1.0f && lb_expf(-0.0f) == 1.0f);
    CHECK(lb_expf(0x1.62e42ep6f) < inf && lb_expf(0x1.62e430p6f) == inf);
    CHECK(lb_expf(-103.5f) == 0x1p-149f && lb_expf(-104.0f) == 0.0f);
    CHECK(!signbit(lb_expf(-inf)) && !signbit(lb_logisticf(-inf)));
    CHECK(lb_logf(0.0f) == -inf && lb_logf(-0.0f) == -inf);
    CHECK(lb_logf(1.0f) == 0.0f && !signbit(lb_logf(1.0f)));
    CHECK(lb_logf(inf) == inf && isnan(lb_logf(-inf)));
    CHECK(isnan(lb_logf(-1.0f)) && isnan(lb_logf(-0x1p-149f)));
    CHECK(lb_tanhf(inf) == 1.0f && lb_tanhf(-inf) == -1.0f);
    CHECK(signbit(lb_tanhf(-0.0f)) && !signbit(lb_tanhf(0.0f)));
    CHECK(lb_tanhf(0x1p-149f) == 0x1p-149f && lb_tanhf(0x1p-40f) == 0x1p-40f);
    CHECK(lb_logisticf(inf) == 1.0f && lb_logisticf(-inf) == 0.0f);
    CHECK(lb_logisticf(0.0f) == 0.5f && lb_logisticf(-0.0f) == 0.5f);
    CHECK(lb_logisticf(-103.5f) == 0x1p-149f);
    CHECK(lb_erff(inf) == 1.0f && lb_erff(-inf) == -1.0f);
    CHECK(signbit(lb_erff(-0.0f)) && !signbit(lb_erff(0.0f)));
}

/* ---- normal quantiles --------------------------------------------------- */

/* One Newton step on the distribution function, which squares the relative
 * error: from y >= 0, 1e-6 or better, to the quantile in double precision. q =
 * p - 1/2 and tail = 1 - p; using the smaller one is accurate enough. */
static double improved(double y, double q, double tail)
{
    const double density = exp(-0.5 * y * y) * 0.39894228040143267794;
    const double root_half = 0.70710678118654752440;
    const double off = q < 0.25 ? 0.5 * erf(y * root_half) - q
                                : tail - 0.5 * erfc(y * root_half);
    return y - off / density;
}

static double error_of_normalf(uint32_t bits) /* in the upper half */
{
    const double m = bits & 0x7fffffffu;
    const double y = (double)lb_normalf(bits);
    const double want =
        improved(y, (m + 0.5) * 0x1p-32, (0x1p31 - 0.5 - m) * 0x1p-32);
    return fabs(y - want) / want;
}

static void test_normalf(bool all)
{
    double most = 0.0;
    int64_t not_odd = 0, n = 0;
    const uint64_t step = all ? 1 : 1021;
    const uint64_t half = UINT64_C(0x80000000);
    for (uint64_t u = half; u < 2 * half; n++) {
        const uint32_t bits = (uint32_t)u;
        most = fmax(most, error_of_normalf(bits));
        if (bits_of(lb_normalf(~bits)) != bits_of(-lb_normalf(bits))) not_odd++;
        /* all of the outermost and innermost ones */
        u += u - half < 100000 || 2 * half - u < 100000 ? 1 : step;
    }
    printf("normalf  %.3g relative, of %" PRId64 "\n", most, n);
    CHECK(most <= 4.4e-7);
    CHECK_EQ_I(not_odd, 0);
    /* from scipy 1.17's ndtri */
    CHECK_NEAR((double)lb_normalf(0), -6.3379577545537895, 2.5e-6);
    /* the slope in the middle is sqrt(2 pi) */
    CHECK_NEAR((double)lb_normalf(0x80000000u), 2.50662827463 * 0x1p-33, 1e-16);
}

static void test_normald(void)
{
    double most = 0.0;
    for (uint64_t i = 1; i <= 400000; i++) {
        /* magnitudes of all sizes, towards both ends */
        const uint64_t m = (i * UINT64_C(0x9e3779b97f4a7c15)) >> (1 + i % 63);
        const uint64_t end = UINT64_C(0x7fffffffffffffff);
        for (int side = 0; side < 2; side++) {
            const uint64_t at = side ? end - m : m;
            const double y = lb_normald(at | ~end);
            const double want = improved(y, ((double)at + 0.5) * 0x1p-64,
                                         ((double)(end - at) + 0.5) * 0x1p-64);
            most = fmax(most, fabs(y - want) / want);
            if (lb_normald(~(at | ~end)) != -y) most = (double)INFINITY;
        }
    }
    printf("normald  %.3g relative\n", most);
    CHECK(most <= 2e-15);
}

/* As the digests of ROWS. */
static void test_normal_digests(void)
{
    uint64_t f32 = DIGEST_START, f64 = DIGEST_START;
    for (uint32_t i = 0; i < SPREAD; i++) {
        const double y = lb_normald(i * UINT64_C(0x9e3779b97f4a7c15));
        uint64_t bits;
        memcpy(&bits, &y, sizeof bits);
        f64 = digest_with(f64, bits);
        f32 = digest_with(f32, bits_of(lb_normalf(spread(i))));
    }
    CHECK(f32 == UINT64_C(0xe4c8eb18f5b53a32));
    CHECK(f64 == UINT64_C(0x134778c47c0a5fe4));
}

static void test_logd(void)
{
    double most = 0.0;
    for (uint64_t i = 1; i <= 2000000; i++) {
        const uint64_t u = i * UINT64_C(0x9e3779b97f4a7c15);
        double x;
        memcpy(&x, &u, sizeof x);
        if (i % 2)
            x = ldexp(1.0 + (double)(u >> 11) * 0x1p-53, (int)(i % 7) - 4);
        if (!(x > 0.0 && x < (double)INFINITY)) continue;
        const long double want = logl((long double)x);
        int e;
        frexp((double)want, &e);
        const double off = (double)fabsl((long double)lb_logd(x) - want);
        most = fmax(most, ldexp(off, 53 - e));
    }
    printf("logd     %.4f ulp\n", most);
    CHECK(most <= 0.9);
    const double inf = (double)INFINITY;
    CHECK(lb_logd(0.0) == -inf && lb_logd(-0.0) == -inf);
    CHECK(lb_logd(1.0) == 0.0 && lb_logd(inf) == inf);
    CHECK(isnan(lb_logd(-1.0)) && isnan(lb_logd((double)NAN)));
}

int main(int argc, char **argv)
{
    const bool all = argc > 1 && !strcmp(argv[1], "--all");
    test_specials();
    for (int k = 0; k < N_ROWS; k++)
        test_row(&ROWS[k], all);
    test_normalf(all);
    test_normald();
    test_normal_digests();
    test_logd();
    return check_report("test_mathf");
}
