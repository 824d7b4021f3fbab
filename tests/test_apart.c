/* test_apart.c - law 4 for error statistics: every level gives the same bits as
 * the portable reference, which is close to sums in f64.
 *
 * Pairs of inputs of every kind (codec_inputs.h), lengths of a few blocks,
 * every alignment, guard pages on both sides; blocks that contain NaN,
 * infinity, overflow, subnormals or zeros.
 */
/* ctest: simde bochs skip-ref */
#include <float.h>
#include <math.h>

#include "base/cpu.h"
#include "check.h"
#include "codec_inputs.h"
#include "fenced.h"
#include "kernels/apart.h"
#include "numbers.h"

/* SIMDe builds have all levels of x86, which this machine may be unable to run.
 */
static bool runs_here(lb_level level)
{
#if defined(LB_SIMDE)
    return level != LB_LEVEL_NEON;
#else
    return lb_level_available(level);
#endif
}

enum { MOST = 17 * LB_APART_BLOCK };

static fenced left, right;

static const float *lay(fenced *f, bool end, int64_t shift, const float *x,
                        int64_t n)
{
    const size_t bytes = (size_t)n * sizeof *x;
    float *at = end ? fenced_end(f, bytes)
                    : fenced_begin(f, (size_t)shift * sizeof *x, bytes);
    memcpy(at, x, bytes);
    return at;
}

static void near(double got, double want, double size)
{
    CHECK(fabs(got - want) <= 2e-6 * size + 1e-300);
}

/* The portable sums, against sequential sums. */
static void check_portable(const float *a, const float *b, int64_t n)
{
    lb_apart got = {0}, want = {0};
    lb_apart_ref(a, b, n, &got);
    lb_apart_plain(a, b, n, &want);
    CHECK_EQ_I(got.apart, want.apart);
    CHECK_EQ_I(got.nonfinite, want.nonfinite);
    near(got.aa, want.aa, want.aa);
    near(got.bb, want.bb, want.bb);
    near(got.ab, want.ab, sqrt(want.aa * want.bb));
    near(got.dd, want.dd, want.aa + want.bb);
    near(got.max, want.max, want.max);
}

static void try_pair(const float *a, const float *b, int64_t n)
{
    lb_apart want = {.aa = 3, .apart = 5, .max = 1e-9};
    const lb_apart begin = want;
    check_portable(a, b, n);
    lb_apart_ref(a, b, n, &want);
    for (lb_level l = LB_LEVEL_REF; l <= LB_LEVEL_AMX; l++) {
        if (!runs_here(l)) continue;
        for (int end = 0; end < 2; end++) {
            lb_apart got = begin;
            const float *x = lay(&left, end, n / LB_APART_BLOCK % 16, a, n);
            const float *y = lay(&right, !end, n / LB_APART_BLOCK % 5, b, n);
            lb_apart_for (&(lb_cpu){.level = l})(x, y, n, &got);
            if (check_fails(memcmp(&got, &want, sizeof got) == 0))
                fprintf(stderr, "%s: %lld values: different sums\n",
                        lb_level_name(l), (long long)n);
        }
    }
}

static void every_kind(void)
{
    static const codec_levels levels = {
        .n = 7, .level = {-1, -0.5f, -0.25f, 0, 0.25f, 0.5f, 1}};
    static float x[MOST], y[MOST];
    for (int i = 0; i < CODEC_KINDS; i++)
        for (int j = 0; j < CODEC_KINDS; j++)
            for (int64_t n = 0; n <= MOST; n += LB_APART_BLOCK) {
                codec_fill((codec_kind)i, &levels, LB_F32, (uint64_t)n + 1, n,
                           x);
                codec_fill((codec_kind)j, &levels, LB_F32, (uint64_t)n + 2, n,
                           y);
                try_pair(x, y, n);
                try_pair(x, x, n);
            }
}

/* One special value, at every position of a block between two others. */
static void one_among(void)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN,    FLT_MAX, 1e15f,
                                1e16f,    1e-45f,    1e-25f, 0,       -0.0f};
    enum { N = 3 * LB_APART_BLOCK };
    uint64_t seed = 3;
    float x[N], y[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)(number_draw(&seed) >> 40) * 0x1p-24f;
        y[i] = (float)(number_draw(&seed) >> 40) * 0x1p-24f;
    }
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++)
        for (int i = LB_APART_BLOCK; i < 2 * LB_APART_BLOCK; i++) {
            const float was = x[i], other = y[i];
            x[i] = odd[k];
            try_pair(x, y, N);
            try_pair(y, x, N);
            y[i] = odd[k];
            try_pair(x, y, N);
            x[i] = was;
            y[i] = other;
        }
}

int main(void)
{
    left = fenced_open(MOST * sizeof(float) + 64);
    right = fenced_open(MOST * sizeof(float) + 64);
    every_kind();
    one_among();
    fenced_close(&left);
    fenced_close(&right);
    return check_report("distances");
}
