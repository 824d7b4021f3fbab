/* test_io_examine.c - defects are found where they were placed, and counted;
 * sums agree with sequential sums in f64; and what each container can store. */
#include <string.h>

#include "check.h"
#include "lowbit_io.h"

enum { N = 300000 }; /* more than a chunk */

static void test_numbers(lb_ctx *cx)
{
    static float x[N];
    lb_findings f = {0};
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i % 1000) / 8 - 50;
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    CHECK(lb_examine(cx, lb_from(cx, LB_F32, LB_SHAPE(N / 3, 3), x), &f));
    CHECK(lb_findings_sound(&f) && f.n == N && f.finite == N);
    CHECK(f.sum == sum && f.squares == squares && f.zeros == N / 1000);
    CHECK(f.least == -50 && f.most == 999.0 / 8 - 50);
    x[7] = x[280000] = INFINITY;
    x[299999] = NAN;
    f = (lb_findings){0};
    CHECK(lb_examine(cx, lb_from(cx, LB_F32, LB_SHAPE(N / 3, 3), x), &f));
    CHECK(!lb_findings_sound(&f) && f.finite == N - 3);
    CHECK(f.inf.n == 2 && f.inf.first == 7);
    CHECK(f.nan.n == 1 && f.nan.first == 299999);
    /* f64 and integers that f32 cannot represent */
    const int64_t big[] = {((int64_t)1 << 40) + 1, 0};
    f = (lb_findings){0};
    CHECK(lb_examine(cx, lb_from(cx, LB_I64, LB_SHAPE(2), big), &f));
    CHECK(f.most == (double)big[0] && f.zeros == 1);
    f = (lb_findings){0};
    CHECK(lb_examine(cx, lb_zeros(cx, LB_F32, LB_SHAPE(0, 4)), &f));
    CHECK(f.n == 0 && lb_findings_sound(&f));
    CHECK(!lb_examine(cx, NULL, &f) && !lb_findings_sound(NULL));
}

/* Ternary bits 3 are an invalid code; the second byte of the second row has
 * them. */
static void test_codes(lb_ctx *cx)
{
    const lb_quant_config c = {.format = "ternary", .scale = LB_SCALE_TENSOR};
    lb_array *x = lb_random_normal(cx, (lb_key){3, 0}, LB_F32, LB_SHAPE(2, 8));
    lb_array *q = lb_quantize(cx, x, &c);
    lb_findings f = {0};
    CHECK(lb_examine(cx, q, &f) && lb_findings_sound(&f) && f.scales == 1);
    uint8_t bytes[4];
    CHECK(lb_read(cx, lb_component(cx, q, "codes"), bytes, sizeof bytes));
    lb_array *part[] = {
        lb_wrap(cx, LB_U8, lb_shape_of(lb_component(cx, q, "codes")), bytes,
                NULL, NULL),
        lb_full(cx, LB_F32, lb_shape_of(lb_component(cx, q, "scale")), -0.5)};
    const char *const name[] = {"codes", "scale"};
    lb_array *bad = lb_from_parts(cx, &c, LB_SHAPE(2, 8), NULL, name, part, 2);
    bytes[3] = 0xff; /* which lb_from_parts would refuse */
    f = (lb_findings){0};
    CHECK(lb_examine(cx, bad, &f) && !lb_findings_sound(&f));
    CHECK(f.code.n == 4 && f.code.first == 12);
    CHECK(f.scale.n == 1 && f.scale.first == 0 && f.scales == 1);
}

/* Zero points that are no codes are counted, but valid. */
static void test_outer_zeros(lb_ctx *cx)
{
    static const char *const name[] = {"codes", "scale", "zero"};
    static const uint8_t zero[] = {0, 15, 16, 255};
    const lb_quant_config c = {.format = "int4", .block_size = 32};
    lb_array *z = lb_from(cx, LB_U8, LB_SHAPE(4, 1), zero);
    lb_array *part[] = {lb_zeros(cx, LB_U8, LB_SHAPE(4, 16)),
                        lb_full(cx, LB_F32, LB_SHAPE(4, 1), 1), z};
    lb_array *a = lb_from_parts(cx, &c, LB_SHAPE(4, 32), NULL, name, part, 3);
    lb_findings f = {0};
    CHECK(lb_examine(cx, a, &f) && lb_findings_sound(&f));
    CHECK_EQ_I(f.outer_zeros, 2);
    part[2] = lb_convert(cx, z, LB_F32);
    a = lb_from_parts(cx, &c, LB_SHAPE(4, 32), NULL, name, part, 3);
    f = (lb_findings){0};
    CHECK(lb_examine(cx, a, &f) && lb_findings_sound(&f));
    CHECK_EQ_I(f.outer_zeros, 0);
}

static void test_scales(lb_ctx *cx)
{
    static const float scale[] = {1, -1, INFINITY, NAN, 0};
    const lb_quant_config c = {.format = "nf4", .block_size = 32};
    lb_array *codes = lb_zeros(cx, LB_U8, LB_SHAPE(5, 32));
    lb_array *q = lb_from_codes(cx, &c, codes,
                                lb_from(cx, LB_F32, LB_SHAPE(5, 1), scale));
    lb_findings f = {0};
    CHECK(lb_examine(cx, q, &f));
    CHECK(f.scales == 5 && f.scale.n == 3 && f.scale.first == 1);
    CHECK(f.inf.n == 32 && f.inf.first == 64 && f.nan.n == 32);
}

/* Inverse scales: infinite for zeros; 0 is invalid. */
static void test_divisors(lb_ctx *cx)
{
    const float scale[4] = {2, INFINITY, 0, -1};
    const lb_quant_config c = {.format = "ternary",
                               .scale = LB_SCALE_ROW,
                               .meaning = LB_MEANS_INVERSE};
    lb_array *codes = lb_zeros(cx, LB_I8, LB_SHAPE(4, 8));
    lb_array *q = lb_from_codes(cx, &c, codes,
                                lb_from(cx, LB_F32, LB_SHAPE(4, 1), scale));
    lb_findings f = {0};
    CHECK(lb_examine(cx, q, &f));
    CHECK(f.scales == 4 && f.scale.n == 2 && f.scale.first == 2);
    f = (lb_findings){0};
    q = lb_quantize(cx, lb_zeros(cx, LB_F32, LB_SHAPE(4, 8)), &c);
    CHECK(lb_examine(cx, q, &f) && lb_findings_sound(&f) && f.zeros == 32);
}

static void test_can_save(lb_ctx *cx)
{
    const lb_quant_config nf4 = {.format = "nf4", .compat = LB_COMPAT_BNB_CPU};
    const lb_quant_config tern = {.format = "ternary"};
    const lb_planned p = {.name = "w",
                          .dtype = LB_F32,
                          .shape = LB_SHAPE(64, 64),
                          .config = &nf4};
    lb_planned t = p;
    t.config = &tern;
    CHECK(lb_can_save(cx, &p, NULL, NULL));
    CHECK(lb_can_save(cx, &p, "safetensors", "bnb"));
    CHECK(!lb_can_save(cx, &t, NULL, "bnb"));
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
    /* Only safetensors have layouts of several tensors. */
    static const struct {
        const char *format;
        bool native, gguf;
    } row[] = {{"int8", true, false},    {"nf4", true, false},
               {"ternary", true, false}, {"binary", true, false},
               {"q8_0", true, true},     {"q4_0", true, true},
               {"iq4_nl", true, true},   {"tq1_0", true, true},
               {"tq2_0", true, true},    {"dynamic8", true, false}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const lb_quant_config c = {.format = row[i].format};
        const lb_planned w = {.name = "w.weight",
                              .dtype = LB_F32,
                              .shape = LB_SHAPE(8, 256),
                              .config = &c};
        CHECK(lb_can_save(cx, &w, NULL, NULL) == row[i].native);
        CHECK(lb_can_save(cx, &w, "gguf", NULL) == row[i].gguf);
        CHECK(!lb_can_save(cx, &w, "npz", NULL));
        CHECK(!lb_can_save(cx, &w, "npy", NULL));
        CHECK_EQ_I(lb_error_status(cx), LB_OK);
    }
    CHECK(!lb_can_save(cx, &p, "zip", NULL));
    CHECK_EQ_I(lb_error_status(cx), LB_E_ARG);
    lb_clear(cx);
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    test_numbers(cx);
    test_codes(cx);
    test_scales(cx);
    test_outer_zeros(cx);
    test_divisors(cx);
    CHECK_EQ_S(lb_error(cx), "");
    test_can_save(cx);
    lb_close(cx);
    return check_report("what is wrong with arrays");
}
