/* test_binary.c - binary against its rules in long double (signs_model.h):
 * signs of zeros, scales, dtypes, threads, views, bytes of other programs. */
/* ctest: simde skip-tsan */
#include "signs_model.h"

static const lb_quant_config configs[] = {
    {.format = "binary"},
    {.format = "binary", .scale = LB_SCALE_NONE},
    {.format = "binary", .scale = LB_SCALE_NONE, .dtype = LB_I8},
    {.format = "binary", .scale = LB_SCALE_ROW},
    {.format = "binary", .scale = LB_SCALE_BLOCK, .block_size = 5},
    {.format = "binary", .scale = LB_SCALE_BLOCK, .meaning = LB_MEANS_INVERSE},
    {.format = "binary", .compat = LB_COMPAT_EFORMER},
};
enum { CONFIGS = sizeof configs / sizeof *configs };

static void eformer(lb_ctx *cx)
{
    static const lb_dtype from[] = {LB_F32, LB_F16, LB_BF16, LB_F64};
    static const lb_dtype label[] = {LB_NO_DTYPE, LB_I8, LB_BF16, LB_F32};
    const lb_shape shape[] = {
        {0}, LB_SHAPE(9), LB_SHAPE(8, 33), LB_SHAPE(2, 0)};
    for (int s = 0; s < 4; s++)
        for (int d = 0; d < 4; d++)
            for (int kind = 0; kind < CODEC_KINDS; kind++) {
                const lb_quant_config c = {
                    .format = "binary",
                    .compat = LB_COMPAT_EFORMER,
                    .dtype = label[kind % 4],
                };
                signs_check(cx, &c, true, from[d], shape[s], kind);
            }
    model_end();
}

static void by_hand(lb_ctx *cx)
{
    /* bits, lowest first: + - + + - + + - and + */
    const float x[] = {1, -2, 0, -0.0f, -1e-45f, 1e-45f, 3, -4, 6};
    lb_array *q = lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(9), x),
                              &(lb_quant_config){.format = "binary"});
    uint8_t byte[2];
    float scale, got[9];
    CHECK(lb_read(cx, lb_component(cx, q, "codes"), byte, sizeof byte));
    CHECK(byte[0] == 0x6d && byte[1] == 1);
    CHECK(lb_read(cx, lb_component(cx, q, "scale"), &scale, sizeof scale));
    CHECK(scale == 16.0f / 9.0f);
    CHECK(lb_read(cx, q, got, sizeof got));
    CHECK(got[0] == scale && got[1] == -scale && got[3] == scale);
    CHECK_EQ_S(lb_error(cx), "");
    /* Zeros have scale 0 and decode to zeros. */
    for (int m = 0; m < 2; m++) {
        q = lb_quantize(cx, lb_zeros(cx, LB_F32, LB_SHAPE(2, 9)),
                        &(lb_quant_config){.format = "binary",
                                           .scale = LB_SCALE_ROW,
                                           .meaning = m ? LB_MEANS_INVERSE
                                                        : LB_MEANS_SCALE});
        CHECK(lb_item(cx, lb_reduce_max(cx, lb_abs(cx, q), NULL)) == 0);
    }
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    for (int m = 0; m < 2; m++)
        signs_tables(
            cx,
            (lb_quant_config){.format = "binary",
                              .meaning = m ? LB_MEANS_INVERSE : LB_MEANS_SCALE},
            true);
    eformer(cx);
    by_hand(cx);
    signs_large(cx, configs, CONFIGS);
    signs_backward(cx, configs, CONFIGS);
    signs_threads(configs, CONFIGS);
    signs_views(cx, configs, CONFIGS);
    const lb_shape shape[] = {{0},         LB_SHAPE(1),    LB_SHAPE(9),
                              LB_SHAPE(0), LB_SHAPE(8, 5), LB_SHAPE(6, 7)};
    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
        for (int c = 0; c < CONFIGS; c++)
            signs_interleaved(cx, &configs[c], "eformer", shape[s]);
    model_end();
    signs_bad_bits(cx, "binary", 1, "code 0");
    signs_bad_bits(cx, "binary", 3, "code 2");
    signs_refusals(cx, "binary");
    signs_refused(cx, lb_full(cx, LB_F32, LB_SHAPE(3, 5), 1), "binary",
                  (lb_quant_config){.threshold = LB_THRESHOLD_ABSMEAN},
                  LB_E_ARG);
    lb_close(cx);
    return check_report("binary");
}
