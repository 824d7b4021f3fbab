/* test_ternary.c - ternary against its rules in long double (signs_model.h):
 * thresholds, scales, dtypes, threads, views, bytes of other programs. */
/* ctest: simde skip-tsan */
#include "kernels/sums.h"
#include "signs_model.h"

static const lb_quant_config configs[] = {
    {.format = "ternary"},
    {.format = "ternary", .scale = LB_SCALE_NONE, .dtype = LB_I8},
    {.format = "ternary", .threshold = LB_THRESHOLD_ABSMEAN},
    {.format = "ternary", .scale = LB_SCALE_ROW, .meaning = LB_MEANS_INVERSE},
    {.format = "ternary", .scale = LB_SCALE_BLOCK, .block_size = 5},
    {.format = "ternary", .scale = LB_SCALE_BLOCK},
    {.format = "ternary",
     .scale = LB_SCALE_BLOCK,
     .block_size = 300,
     .threshold = LB_THRESHOLD_ABSMEAN},
    {.format = "ternary", .compat = LB_COMPAT_EFORMER},
};
enum { CONFIGS = sizeof configs / sizeof *configs };

static void eformer(lb_ctx *cx)
{
    static const lb_dtype from[] = {LB_F32, LB_F16, LB_BF16, LB_F64};
    static const lb_dtype label[] = {LB_NO_DTYPE, LB_I8, LB_BF16, LB_F32};
    const lb_shape shape[] = {{0},           LB_SHAPE(4),    LB_SHAPE(8, 33),
                              LB_SHAPE(600), LB_SHAPE(3, 5), LB_SHAPE(2, 0)};
    for (int s = 0; s < 6; s++)
        for (int d = 0; d < 4; d++)
            for (int kind = 0; kind < CODEC_KINDS; kind++) {
                const lb_quant_config c = {
                    .format = "ternary",
                    .compat = LB_COMPAT_EFORMER,
                    .dtype = label[kind % 4],
                    .block_size = 64,
                };
                signs_check(cx, &c, false, from[d], shape[s], kind);
            }
    model_end();
}

/* ---- numbers worked by hand ---------------------------------------------- */

static void codes_of(lb_ctx *cx, const float *x, int n, lb_quant_config c,
                     int8_t *code, float *scale)
{
    c.format = "ternary";
    lb_array *q = lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(n), x), &c);
    CHECK(lb_read(cx, lb_codes(cx, q), code, (size_t)n));
    if (scale)
        CHECK(lb_read(cx, lb_component(cx, q, "scale"), scale, sizeof *scale));
    CHECK_EQ_S(lb_error(cx), "");
    lb_clear(cx);
}

static void by_hand(lb_ctx *cx)
{
    int8_t code[10];
    float scale;
    /* Mean 0, variance (4*4 + 4*1)/8 = 2.5; half a deviation is 0.79. */
    const float x[] = {2, -2, 2, -2, 1, -1, 1, -1};
    codes_of(cx, x, 8, (lb_quant_config){0}, code, &scale);
    CHECK(!memcmp(code, (int8_t[]){1, -1, 1, -1, 1, -1, 1, -1}, 8));
    CHECK(scale == 1.5f);
    /* Variance (2*16 + 8*1)/10 = 4, so the threshold is 1, and 1 is not above
     * it. */
    const float y[] = {4, -4, 1, -1, 1, -1, 1, -1, 1, -1};
    codes_of(cx, y, 10, (lb_quant_config){0}, code, &scale);
    CHECK(!memcmp(code, (int8_t[]){1, -1, 0, 0, 0, 0, 0, 0, 0, 0}, 10));
    CHECK(scale == 4);
    /* absmean: mean 2, and a half rounds to 0. */
    codes_of(cx, (const float[]){1, -1, 1.25f, -1.25f, 5, -3.5f, -2, 1}, 8,
             (lb_quant_config){.threshold = LB_THRESHOLD_ABSMEAN}, code,
             &scale);
    CHECK(scale == 2);
    CHECK(!memcmp(code, (int8_t[]){0, 0, 1, -1, 1, -1, -1, 0}, 8));
    /* A mean that underflows to zero gives zeros. */
    codes_of(cx, (const float[]){1e-45f, 0, 0, 0}, 4,
             (lb_quant_config){.threshold = LB_THRESHOLD_ABSMEAN}, code,
             &scale);
    CHECK(scale == 0 && code[0] == 0 && code[3] == 0);
    /* A single value is its own group: no deviation, a threshold of 0. */
    codes_of(cx, (const float[]){-7}, 1, (lb_quant_config){0}, code, &scale);
    CHECK(code[0] == -1 && scale == 7);
    codes_of(cx, (const float[]){-0.0f}, 1, (lb_quant_config){0}, code, &scale);
    CHECK(code[0] == 0 && scale == 0);
}

/* Moments of values that hardly differ, combined chunk by chunk: a sum of
 * squares would have no correct digit of the variance. */
static void moments(void)
{
    enum { N = 1000 };
    float x[N];
    long double sum = 0, m2 = 0;
    uint64_t state = 1;
    for (int i = 0; i < N; i++)
        sum += (long double)(x[i] = 0x1p23f + (float)(number_draw(&state) % 3));
    for (int i = 0; i < N; i++)
        m2 += ((long double)x[i] - sum / N) * ((long double)x[i] - sum / N);
    lb_moments m = {0};
    for (int i = 0; i < N; i += LB_CHUNK)
        m = lb_moments_join(
            m, lb_moments_of(x + i, N - i < LB_CHUNK ? N - i : LB_CHUNK));
    CHECK(m.n == N);
    CHECK_NEAR(m.mean, (double)(sum / N), 1e-8);
    CHECK_NEAR(m.m2, (double)m2, 1e-9 * (double)m2);
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    for (int t = 0; t < 2; t++)
        for (int m = 0; m < 2; m++)
            signs_tables(cx,
                         (lb_quant_config){.format = "ternary",
                                           .threshold = (lb_threshold)t,
                                           .meaning = m ? LB_MEANS_INVERSE
                                                        : LB_MEANS_SCALE},
                         false);
    eformer(cx);
    by_hand(cx);
    moments();
    signs_large(cx, configs, CONFIGS);
    signs_backward(cx, configs, CONFIGS);
    signs_threads(configs, CONFIGS);
    signs_views(cx, configs, CONFIGS);
    const lb_shape shape[] = {{0},
                              LB_SHAPE(1),
                              LB_SHAPE(9),
                              LB_SHAPE(0),
                              LB_SHAPE(8, 5),
                              LB_SHAPE(6, 7),
                              LB_SHAPE(5, 0),
                              LB_SHAPE(3, 4, 5),
                              LB_SHAPE(0, 2)};
    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
        for (int c = 0; c < CONFIGS; c++)
            signs_interleaved(cx, &configs[c], c % 2 ? "bitnet" : "eformer",
                              shape[s]);
    model_end();
    signs_bad_bits(cx, "ternary", 3, "code 2");
    signs_refusals(cx, "ternary");
    signs_refused(cx, lb_full(cx, LB_F32, LB_SHAPE(3, 5), 1), "ternary",
                  (lb_quant_config){.compat = LB_COMPAT_EFORMER,
                                    .threshold = LB_THRESHOLD_ABSMEAN},
                  LB_E_ARG);
    lb_close(cx);
    return check_report("ternary");
}
