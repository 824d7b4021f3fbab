/* test_random.c - random numbers through the public header.
 *
 * Bits are compared with a second implementation (golden/random.h), and
 * distributions with probability theory. Keys are fixed, so a bound of five
 * standard deviations holds in every run or in none.
 */
/* ctest: skip-ref */
#include <stdlib.h>

#include "check.h"
#include "golden/random.h"
#include "kernels/philox.h"
#include "lowbit.h"

#define N_INDEX (sizeof GOLDEN_INDEX / sizeof GOLDEN_INDEX[0])

enum { GOLDEN_N = 1000003, MANY = 1000000 };

static void test_philox(void)
{
    const size_t per = 10; /* counter, key, output */
    for (size_t k = 0; k < sizeof KNOWN_PHILOX / sizeof(uint32_t); k += per) {
        uint32_t out[4];
        lb_philox(KNOWN_PHILOX + k, KNOWN_PHILOX + k + 4, out);
        CHECK(!memcmp(out, KNOWN_PHILOX + k + 6, sizeof out));
    }
}

/* ---- golden bits -------------------------------------------------------- */

/* The golden elements of a, which has GOLDEN_N, equal want. */
static void check_bits(lb_array *a, lb_dtype dtype, const void *want,
                       const char *what)
{
    const size_t size = lb_dtype_size(dtype);
    const char *got = lb_data(a);
    CHECK_EQ_I(lb_dtype_of(a), dtype);
    CHECK_EQ_I(lb_size(a), GOLDEN_N);
    CHECK_EQ_S(lb_format_of(a), "dense");
    CHECK(got != NULL);
    if (!got) return;
    for (size_t k = 0; k < N_INDEX; k++) {
        const bool same = !memcmp(got + (size_t)GOLDEN_INDEX[k] * size,
                                  (const char *)want + k * size, size);
        if (!same)
            fprintf(stderr, "%s: element %" PRId64 "\n", what, GOLDEN_INDEX[k]);
        CHECK(same);
    }
}

static void test_golden_bits(lb_ctx *cx)
{
    /* Rank and shape do not matter, only the row-major index. */
    const lb_shape flat = LB_SHAPE(GOLDEN_N), folded = LB_SHAPE(127, 1, 7874);
    const lb_shape square = LB_SHAPE(1, GOLDEN_N);
    uint8_t u8[N_INDEX];
    uint16_t u16[N_INDEX];
    for (size_t k = 0; k < N_INDEX; k++) {
        u8[k] = (uint8_t)GOLDEN_U32[k];
        u16[k] = (uint16_t)GOLDEN_U32[k];
    }
    const struct {
        lb_dtype dtype;
        const void *want;
    } rows[] = {{LB_U32, GOLDEN_U32}, {LB_I32, GOLDEN_U32},
                {LB_U64, GOLDEN_U64}, {LB_I64, GOLDEN_U64},
                {LB_U8, u8},          {LB_I8, u8},
                {LB_U16, u16},        {LB_I16, u16}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        check_bits(lb_random_bits(cx, GOLDEN_KEY, rows[k].dtype, flat),
                   rows[k].dtype, rows[k].want, lb_dtype_name(rows[k].dtype));
    check_bits(lb_random_bits(cx, GOLDEN_KEY, LB_U32, square), LB_U32,
               GOLDEN_U32, "u32 (1,n)");
    lb_array *a = lb_random_bits(cx, GOLDEN_KEY, LB_U32, folded);
    CHECK_EQ_I(lb_dim(a, 2), 7874);
    const uint32_t *got = lb_data(a);
    CHECK(got && got[65536] == GOLDEN_U32[N_INDEX - 2]);
    a = lb_random_bits(cx, GOLDEN_KEY, LB_U32, lb_shape_make(0, NULL));
    CHECK_EQ_I(lb_item_int(cx, a), GOLDEN_U32[0]);
    a = lb_random_bits(cx, GOLDEN_KEY, LB_U32, LB_SHAPE(3, 0));
    CHECK_EQ_I(lb_size(a), 0);
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
}

static void test_golden_floats(lb_ctx *cx)
{
    const lb_shape s = LB_SHAPE(GOLDEN_N);
    const lb_key key = GOLDEN_KEY;
    check_bits(lb_random_uniform(cx, key, LB_F32, s, 0, 1), LB_F32,
               GOLDEN_UNIFORM_F32, "uniform f32");
    check_bits(lb_random_uniform(cx, key, LB_F32, s, -2.5, 7.1), LB_F32,
               GOLDEN_UNIFORM_F32_WIDE, "uniform f32 -2.5 7.1");
    check_bits(lb_random_uniform(cx, key, LB_F16, s, 0, 1), LB_F16,
               GOLDEN_UNIFORM_F16, "uniform f16");
    check_bits(lb_random_uniform(cx, key, LB_BF16, s, 0, 1), LB_BF16,
               GOLDEN_UNIFORM_BF16, "uniform bf16");
    /* Rounded once: rounding to f32 first would give other values. */
    const double few = 0x1p-11 + 0x1p-40, fewer = 0x1p-8 + 0x1p-40;
    check_bits(lb_random_uniform(cx, key, LB_F16, s, few, 2 + few), LB_F16,
               GOLDEN_TIES_F16, "ties f16");
    check_bits(lb_random_uniform(cx, key, LB_BF16, s, fewer, 2 + fewer),
               LB_BF16, GOLDEN_TIES_BF16, "ties bf16");
    check_bits(lb_random_uniform(cx, key, LB_F64, s, 0, 1), LB_F64,
               GOLDEN_UNIFORM_F64, "uniform f64");
    const float *f = lb_data(lb_random_normal(cx, key, LB_F32, s));
    const double *d = lb_data(lb_random_normal(cx, key, LB_F64, s));
    for (size_t k = 0; f && d && k < N_INDEX; k++) {
        const double w = GOLDEN_NORMAL_32[k];
        const int64_t i = GOLDEN_INDEX[k];
        CHECK_NEAR((double)f[i], w, 4.4e-7 * fabs(w) + 1e-9);
        CHECK_NEAR(d[i], GOLDEN_NORMAL_64[k], 1e-14);
    }
    CHECK(f && d);
}

static void test_fold(lb_ctx *cx)
{
    const size_t n = sizeof GOLDEN_FOLD_N / sizeof GOLDEN_FOLD_N[0];
    for (size_t k = 0; k < n; k++) {
        const lb_key got = lb_key_fold(GOLDEN_KEY, GOLDEN_FOLD_N[k]);
        CHECK(got.seed == GOLDEN_FOLD[2 * k]);
        CHECK(got.stream == GOLDEN_FOLD[2 * k + 1]);
    }
    /* Independent: any two of the key itself, its folds, their folds, and
     * its neighbours agree in half of 64 * 4096 bits, within 5 sigma. */
    enum { KEYS = 8, WORDS = 4096 };
    const lb_key key = {7, 0};
    const lb_key keys[KEYS] = {key,
                               {8, 0},
                               {7, 1},
                               lb_key_fold(key, 0),
                               lb_key_fold(key, 1),
                               lb_key_fold(key, 2),
                               lb_key_fold(lb_key_fold(key, 0), 0),
                               lb_key_fold(lb_key_fold(key, 1), 0)};
    const uint64_t *w[KEYS];
    for (int i = 0; i < KEYS; i++)
        w[i] = lb_data(lb_random_bits(cx, keys[i], LB_U64, LB_SHAPE(WORDS)));
    for (int i = 0; i < KEYS; i++)
        for (int j = 0; j < i; j++) {
            int64_t same = 0;
            for (int k = 0; w[i] && w[j] && k < WORDS; k++)
                same += __builtin_popcountll(~(w[i][k] ^ w[j][k]));
            CHECK_NEAR((double)same, 32.0 * WORDS, 5 * sqrt(16.0 * WORDS));
        }
}

/* ---- distributions ------------------------------------------------------ */

/* All elements of a float array as doubles; freed by the caller. */
static double *doubles_of(lb_ctx *cx, lb_array *a)
{
    const size_t size = (size_t)lb_size(a) * sizeof(double);
    double *x = malloc(size);
    if (!x || !lb_read(cx, lb_convert(cx, a, LB_F64), x, size)) {
        fprintf(stderr, "%s\n", lb_error(cx));
        exit(1);
    }
    return x;
}

static double mean_power(const double *x, int64_t n, double mid, int power)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        sum += pow(x[i] - mid, power);
    return sum / (double)n;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double normal_cdf(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752);
}

/* Kolmogorov-Smirnov: the largest distance between the two distribution
 * functions, times sqrt(n); above 2.0 with probability 7e-4, above 2.5 with
 * 7e-6. Sorts x. Equal values (few bits) are one step. */
static double ks_distance(double *x, int64_t n, double (*cdf)(double))
{
    double most = 0.0;
    qsort(x, (size_t)n, sizeof *x, compare);
    for (int64_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && x[j] == x[i];)
            j++;
        const double p = cdf(x[i]);
        most = fmax(most, fabs(p - (double)i / (double)n));
        most = fmax(most, fabs(p - (double)j / (double)n));
    }
    return most * sqrt((double)n);
}

static double unit_cdf(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static void test_uniform(lb_ctx *cx)
{
    const struct {
        lb_dtype dtype;
        double step; /* of the grid in [0, 1) */
    } rows[] = {{LB_F32, 0x1p-24},
                {LB_F16, 0x1p-11},
                {LB_BF16, 0x1p-8},
                {LB_F64, 0x1p-53}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const lb_key key = {11, k};
        const double n = MANY, step = rows[k].step;
        lb_enter(cx);
        double *x = doubles_of(cx, lb_random_uniform(cx, key, rows[k].dtype,
                                                     LB_SHAPE(MANY), 0, 1));
        int64_t outside = 0, off_grid = 0;
        for (int64_t i = 0; i < MANY; i++) {
            outside += !(x[i] >= 0.0 && x[i] < 1.0);
            off_grid += x[i] / step != floor(x[i] / step);
        }
        CHECK_EQ_I(outside, 0);
        CHECK_EQ_I(off_grid, 0);
        /* A grid of m steps from 0: mean (1 - 1/m)/2, variance
         * (1 - 1/m^2)/12, whose estimate has variance about 1/180/n. */
        const double mean = (1 - step) / 2, var = (1 - step * step) / 12;
        CHECK_NEAR(mean_power(x, MANY, 0, 1), mean, 5 * sqrt(var / n));
        CHECK_NEAR(mean_power(x, MANY, mean, 2), var, 5 * sqrt(1 / 180.0 / n));
        if (step < 1e-6) CHECK(ks_distance(x, MANY, unit_cdf) < 2.5);
        free(x);
        lb_leave(cx);
    }
}

/* lo <= x < hi where rounding could violate it. */
static void test_uniform_ends(lb_ctx *cx)
{
    const struct {
        lb_dtype dtype;
        double lo, hi;
    } rows[] = {
        {LB_F32, 1, 0x1.000002p0}, /* one number */
        {LB_F32, 0.1, 0.1000001},
        {LB_F32, -0x1.fffffep127, 0x1.fffffep127},
        {LB_F32, 0, 0x1p-149},
        {LB_F32, 0, 0x1p-140},
        {LB_F32, -1e-3, 16777217.5},
        {LB_F16, 1000.1, 1002.3},
        {LB_F16, -65504, 65504},
        {LB_F16, 0.333, 0.3345},
        {LB_F16, 0, 0x1p-24},
        {LB_F16, -1e-6, 1e-6},
        {LB_BF16, 255.5, 258.5},
        {LB_BF16, -3.14159, 1e-30},
        {LB_F64, 1, 0x1.0000000000001p0},
        {LB_F64, 1e300, 1.0000001e300},
        {LB_F64, -0.1, 5e-324},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const lb_key key = {12, k};
        enum { SOME = 20000 };
        lb_enter(cx);
        double *x = doubles_of(cx, lb_random_uniform(cx, key, rows[k].dtype,
                                                     LB_SHAPE(SOME), rows[k].lo,
                                                     rows[k].hi));
        int64_t outside = 0;
        for (int64_t i = 0; i < SOME; i++)
            outside += !(x[i] >= rows[k].lo && x[i] < rows[k].hi);
        if (outside) fprintf(stderr, "row %zu\n", k);
        CHECK_EQ_I(outside, 0);
        free(x);
        lb_leave(cx);
    }
}

static void test_normal(lb_ctx *cx)
{
    const lb_dtype dtypes[] = {LB_F32, LB_F64, LB_F16, LB_BF16};
    for (size_t k = 0; k < 4; k++) {
        const lb_key key = {13, k};
        const double n = MANY;
        lb_enter(cx);
        double *x = doubles_of(
            cx, lb_random_normal(cx, key, dtypes[k], LB_SHAPE(1000, 1000)));
        /* The moments 0, 1, 0, 3 have estimates of variance 1, 2, 15, 96 over
         * n; 16-bit values are rounded by at most 2^-9 of themselves. */
        const double slack = k < 2 ? 0 : 0x1p-9;
        CHECK_NEAR(mean_power(x, MANY, 0, 1), 0, 5 * sqrt(1 / n) + slack);
        CHECK_NEAR(mean_power(x, MANY, 0, 2), 1, 5 * sqrt(2 / n) + 2 * slack);
        CHECK_NEAR(mean_power(x, MANY, 0, 3), 0, 5 * sqrt(15 / n) + slack);
        CHECK_NEAR(mean_power(x, MANY, 0, 4), 3, 5 * sqrt(96 / n) + 12 * slack);
        if (k < 2) CHECK(ks_distance(x, MANY, normal_cdf) < 2.5);
        free(x);
        lb_leave(cx);
    }
}

/* ---- permutations ------------------------------------------------------- */

static void check_permutation(lb_ctx *cx, lb_key key, int64_t n)
{
    lb_enter(cx);
    lb_array *a = lb_random_permutation(cx, key, n);
    CHECK_EQ_I(lb_size(a), n);
    CHECK_EQ_I(lb_rank(a), 1);
    CHECK_EQ_I(lb_dtype_of(a), LB_I64);
    const int64_t *p = lb_data(a);
    char *seen = calloc((size_t)n + 1, 1);
    int64_t wrong = 0;
    for (int64_t i = 0; p && seen && i < n; i++) {
        const bool good = p[i] >= 0 && p[i] < n && !seen[p[i]];
        if (good) seen[p[i]] = 1;
        wrong += !good;
    }
    CHECK_EQ_I(wrong, 0);
    CHECK(p && seen);
    free(seen);
    lb_leave(cx);
}

/* Each of the 24 orders of 4 equally often: chi-squared with 23 degrees of
 * freedom, mean 23 and variance 46, is above 70 once in a million. */
static void test_orders(lb_ctx *cx)
{
    enum { TRIES = 24000 };
    int64_t count[256] = {0};
    for (uint64_t t = 0; t < TRIES; t++) {
        lb_enter(cx);
        const int64_t *p =
            lb_data(lb_random_permutation(cx, (lb_key){14, t}, 4));
        if (p) count[p[0] * 64 + p[1] * 16 + p[2] * 4 + p[3]]++;
        lb_leave(cx);
    }
    const double each = TRIES / 24.0;
    double chi = 0.0;
    int orders = 0;
    for (int i = 0; i < 256; i++) {
        const double off = (double)count[i] - each;
        orders += count[i] > 0;
        chi += count[i] ? off * off / each : 0.0;
    }
    CHECK_EQ_I(orders, 24);
    CHECK(chi < 70.0);
}

static void test_permutation(lb_ctx *cx)
{
    const lb_key key = GOLDEN_KEY;
    const int64_t *p = lb_data(lb_random_permutation(cx, key, 10));
    CHECK(p && !memcmp(p, GOLDEN_PERMUTATION_10, sizeof GOLDEN_PERMUTATION_10));
    p = lb_data(lb_random_permutation(cx, key, 33));
    CHECK(p && !memcmp(p, GOLDEN_PERMUTATION_33, sizeof GOLDEN_PERMUTATION_33));
    const int64_t sizes[] = {0, 1, 2, 3, 255, 256, 257, 100003};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        check_permutation(cx, key, sizes[k]);
    test_orders(cx);
}

/* ---- threads ------------------------------------------------------------ */

static uint64_t digest(lb_array *a)
{
    const unsigned char *p = lb_data(a);
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; p && i < lb_nbytes(a); i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return p ? h : 0;
}

/* Digests of one of each, of an odd size. */
static void digests(int threads, uint64_t out[6])
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = threads});
    const lb_shape s = LB_SHAPE(7, 14983);
    const lb_key key = {15, 3};
    out[0] = digest(lb_random_bits(cx, key, LB_U8, s));
    out[1] = digest(lb_random_bits(cx, key, LB_I64, s));
    out[2] = digest(lb_random_uniform(cx, key, LB_BF16, s, -1, 1));
    out[3] = digest(lb_random_uniform(cx, key, LB_F64, s, -1, 1));
    out[4] = digest(lb_random_normal(cx, key, LB_F32, s));
    out[5] = digest(lb_random_permutation(cx, key, 5003));
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
}

static void test_threads(void)
{
    uint64_t one[6], more[6];
    digests(1, one);
    for (int i = 0; i < 6; i++) {
        CHECK(one[i] != 0);
        for (int j = 0; j < i; j++)
            CHECK(one[i] != one[j]);
    }
    digests(2, more);
    CHECK(!memcmp(one, more, sizeof one));
    digests(7, more);
    CHECK(!memcmp(one, more, sizeof one));
}

/* ---- errors ------------------------------------------------------------- */

/* a is NULL, and the message contains the given text. */
static void check_refused(lb_ctx *cx, lb_array *a, lb_status status,
                          const char *piece)
{
    const bool said = strstr(lb_error(cx), piece) != NULL;
    if (!said) fprintf(stderr, "\"%s\" in \"%s\"\n", piece, lb_error(cx));
    CHECK(!a);
    CHECK(said);
    CHECK_EQ_I(lb_error_status(cx), status);
    lb_clear(cx);
}

static void test_errors(lb_ctx *cx)
{
    const lb_key k = {1, 2};
    const lb_shape s = LB_SHAPE(4);
    const double inf = (double)INFINITY;
    check_refused(cx, lb_random_bits(cx, k, LB_F32, s), LB_E_DTYPE,
                  "random_bits: dtype f32");
    check_refused(cx, lb_random_bits(cx, k, LB_BOOL, s), LB_E_DTYPE, "bool");
    check_refused(cx, lb_random_bits(cx, k, (lb_dtype)99, s), LB_E_DTYPE, "99");
    check_refused(cx, lb_random_bits(cx, k, LB_U8, LB_SHAPE(2, -3)), LB_E_SHAPE,
                  "-3");
    check_refused(cx,
                  lb_random_bits(cx, k, LB_U8,
                                 LB_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40)),
                  LB_E_SIZE, "random_bits");
    check_refused(cx, lb_random_uniform(cx, k, LB_I32, s, 0, 1), LB_E_DTYPE,
                  "random_uniform: dtype i32");
    check_refused(cx, lb_random_uniform(cx, k, LB_F32, s, 2, 2), LB_E_ARG,
                  "lo 2 and hi 2");
    check_refused(cx, lb_random_uniform(cx, k, LB_F32, s, 3, -1), LB_E_ARG,
                  "lo 3 and hi -1");
    check_refused(cx, lb_random_uniform(cx, k, LB_F32, s, 0, inf), LB_E_ARG,
                  "hi inf");
    check_refused(cx, lb_random_uniform(cx, k, LB_F32, s, (double)NAN, 1),
                  LB_E_ARG, "nan");
    check_refused(cx, lb_random_uniform(cx, k, LB_F16, s, 0, 65505), LB_E_ARG,
                  "65504");
    check_refused(cx, lb_random_uniform(cx, k, LB_F64, s, -1e308, 1e308),
                  LB_E_ARG, "hi - lo");
    check_refused(cx, lb_random_uniform(cx, k, LB_F16, s, 1.0001, 1.0002),
                  LB_E_ARG, "no f16 value");
    check_refused(cx, lb_random_normal(cx, k, LB_U8, s), LB_E_DTYPE,
                  "random_normal: dtype u8");
    check_refused(cx, lb_random_permutation(cx, k, -5), LB_E_ARG, "n is -5");
    check_refused(cx, lb_random_permutation(cx, k, INT64_MAX), LB_E_SIZE,
                  "random_permutation");
    CHECK(!lb_random_bits(NULL, k, LB_U8, s));
}

int main(void)
{
    test_philox();
    lb_ctx *cx = lb_open(NULL);
    CHECK(cx != NULL);
    if (!cx) return check_report("test_random");
    void (*const tests[])(lb_ctx *) = {
        test_golden_bits,  test_golden_floats, test_fold,        test_uniform,
        test_uniform_ends, test_normal,        test_permutation, test_errors};
    for (size_t k = 0; k < sizeof tests / sizeof tests[0]; k++) {
        lb_enter(cx);
        tests[k](cx);
        lb_leave(cx);
        CHECK_EQ_S(lb_error(cx), "");
        lb_clear(cx);
    }
    lb_close(cx);
    test_threads();
    return check_report("test_random");
}
