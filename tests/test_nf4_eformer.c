/* test_nf4_eformer.c - nf4 with compat eformer: quotients in 16 bits, decoding
 * with the polynomial, the byte layout, import and export, and errors. */
#include "nf4_model.h"

/* Quotients of eformer in 16 bits: from the exact sum and the exact quotient,
 * each rounded once, though the library rounds to f32 on the way. */
static float rounded(lb_ctx *cx, lb_dtype d, long double v)
{
    double x = (double)v;
    float y = 0;
    /* Round to odd, so that a second rounding sees the exact value. */
    if ((long double)x != v) {
        uint64_t u;
        memcpy(&u, &x, sizeof u);
        if (!(u & 1)) x = nextafter(x, v > (long double)x ? 1e300 : -1e300);
    }
    lb_array *a = lb_from(cx, LB_F64, LB_SHAPE(1), &x);
    CHECK(lb_read(cx, lb_convert(cx, lb_convert(cx, a, d), LB_F32), &y,
                  sizeof y));
    return y;
}

static void test_eformer_16_bits(lb_ctx *cx)
{
    enum { N = 64, TRIES = 40 };
    uint64_t state = 3;
    for (int t = 0; t < TRIES; t++)
        for (int k = 1; k < 3; k++) {
            const lb_dtype d = k == 1 ? LB_F16 : LB_BF16;
            const number_layout l = number_layout_of(d);
            const long double tiny = ldexpl(1, l.min_exp);
            float x[N], most = 0;
            for (int i = 0; i < N; i++) {
                /* Blocks from far below the smallest normal to 1. */
                const int e = (int)(number_draw(&state) % 4) +
                              (d == LB_F16 ? t % 20 : t * 3);
                const double s =
                    (double)(number_draw(&state) >> 40) - (double)(1 << 23);
                lb_enter(cx);
                x[i] = rounded(cx, d, ldexpl(s, -23 - e));
                lb_leave(cx);
                most = fmaxf(most, fabsf(x[i]));
            }
            lb_enter(cx);
            lb_array *q =
                lb_quantize(cx, array_of(cx, d, LB_SHAPE(N), x),
                            &(lb_quant_config){.format = "nf4",
                                               .compat = LB_COMPAT_EFORMER});
            const uint8_t *byte = q ? bytes_of(cx, q, "codes") : NULL;
            const long double by = rounded(cx, d, most + tiny);
            for (int i = 0; byte && i < N; i++)
                CHECK_EQ_I(nibble(byte, i),
                           argmin_code(rounded(cx, d, x[i] / by)));
            lb_leave(cx);
        }
}

/* The polynomial's levels, each step fused. */
static void test_poly(lb_ctx *cx)
{
    enum { N = 16 };
    float x[N], y[N], poly[N];
    for (int c = 0; c < N; c++) {
        const float t = (float)c;
        float p = fmaf(1.82943132356953e-5f, t, -0.00068587779130373f);
        p = fmaf(t, p, 0.0100420261313669f);
        p = fmaf(t, p, -0.0722703570217226f);
        p = fmaf(t, p, 0.346075459755188f);
        poly[c] = fmaf(t, p, -0.994166218659335f);
        x[c] = level[c] * 3;
    }
    lb_enter(cx);
    const lb_quant_config how = {.format = "nf4", .decode = LB_DECODE_POLY};
    lb_array *q = lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(N), x), &how);
    CHECK(q && lb_read(cx, q, y, sizeof y));
    for (int c = 0; c < N; c++)
        CHECK(same_f32(y[c], poly[c] * 3));
    lb_array *table16 = lb_component(cx, q, "table");
    lb_shape shape = lb_shape_of(table16), want = LB_SHAPE(1, N);
    CHECK(lb_shape_equal(&shape, &want));
    CHECK(lb_read(cx, table16, y, sizeof y) && !memcmp(y, poly, sizeof y));
    /* Without it the part is absent, which is not an error. */
    q = lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(N), x), NULL);
    CHECK(q && !lb_component(cx, q, "table"));
    CHECK_EQ_S(lb_error(cx), "");
    lb_leave(cx);
}

/* ---- eformer's layout --------------------------------------------------- */

static void check_eformer_layout(lb_ctx *cx, lb_shape shape, int64_t block)
{
    static float x[1024];
    static const char *const name[] = {"packed", "absmax"};
    const int64_t size = lb_shape_size(&shape);
    fill(5, size, x);
    lb_enter(cx);
    const lb_quant_config how = {
        .format = "nf4", .block_size = block, .compat = LB_COMPAT_EFORMER};
    lb_array *a = lb_quantize(cx, lb_from(cx, LB_F32, shape, x), &how);
    lb_array *part[2];
    for (int p = 0; p < 2; p++)
        part[p] = lb_export(cx, a, "eformer", name[p]);
    const int64_t n = shape.rank ? shape.dim[shape.rank - 1] : 1;
    const int64_t blocks = (n + block - 1) / block;
    CHECK_EQ_I(lb_dim(part[0], -1), block / 2);
    CHECK_EQ_I(lb_dim(part[0], -2), blocks);
    CHECK_EQ_I(lb_rank(part[0]), shape.rank ? shape.rank + 1 : 2);
    CHECK_EQ_I(lb_dim(part[1], -1), blocks);
    const uint8_t *byte = lb_data(lb_materialize(cx, part[0]));
    const uint8_t *own = bytes_of(cx, a, "codes");
    for (int64_t r = 0; n && r < size / n; r++)
        for (int64_t i = 0; i < blocks * block; i++)
            CHECK_EQ_I(nibble(byte + r * blocks * block / 2, i),
                       i < n ? nibble(own + r * ((n + 1) / 2), i) : 7);
    /* Back, with the block size and without. */
    for (int k = 0; k < 2; k++) {
        lb_quant_config back = how;
        if (k) back.block_size = 0;
        lb_array *b = lb_from_parts(cx, &back, shape, "eformer", name, part, 2);
        static float y[1024], z[1024];
        CHECK(b && lb_read(cx, b, y, (size_t)size * sizeof *y) &&
              lb_read(cx, a, z, (size_t)size * sizeof *z));
        CHECK(!memcmp(y, z, (size_t)size * sizeof *y));
        if (!b) continue;
        CHECK(!memcmp(bytes_of(cx, b, "codes"), own,
                      (size_t)lb_size(b->store->part[0].a)));
    }
    CHECK_EQ_S(lb_error(cx), "");
    lb_clear(cx);
    lb_leave(cx);
}

static void test_eformer_layout(lb_ctx *cx)
{
    check_eformer_layout(cx, LB_SHAPE(64), 64);
    check_eformer_layout(cx, LB_SHAPE(33), 64);
    check_eformer_layout(cx, LB_SHAPE(3, 5), 4);
    check_eformer_layout(cx, LB_SHAPE(3, 4), 4);
    check_eformer_layout(cx, LB_SHAPE(2, 3, 70), 32);
    check_eformer_layout(cx, LB_SHAPE(2, 0), 2);
    check_eformer_layout(cx, LB_SHAPE(0, 5), 2);
    check_eformer_layout(cx, lb_shape_make(0, NULL), 64);
    check_eformer_layout(cx, LB_SHAPE(1, 1, 1, 1, 1, 2, 6), 4);
}

/* The value of the padding nibble does not matter. */
static void test_eformer_filler(lb_ctx *cx)
{
    static const char *const name[] = {"packed", "absmax"};
    static const uint8_t packed[] = {0xf0, 0x7a, 0x93, 0x11};
    static const float absmax[] = {2, 4};
    lb_enter(cx);
    lb_array *part[] = {lb_from(cx, LB_U8, LB_SHAPE(2, 1, 2), packed),
                        lb_from(cx, LB_F32, LB_SHAPE(2, 1), absmax)};
    lb_array *a = lb_from_parts(
        cx, &(lb_quant_config){.format = "nf4", .decode = LB_DECODE_POLY},
        LB_SHAPE(2, 3), "eformer", name, part, 2);
    CHECK(a && !memcmp(bytes_of(cx, a, "codes"), "\xf0\x77\x93\x17", 4));
    CHECK(a && lb_component(cx, a, "table"));
    a = lb_from_parts(cx, &(lb_quant_config){.format = "nf4", .block_size = 4},
                      LB_SHAPE(2, 3), "eformer", name, part, 2);
    float y[6];
    const float want[] = {2, -2, 0, level[9] * 4, level[3] * 4, level[1] * 4};
    CHECK(lb_read(cx, a, y, sizeof y) && !memcmp(y, want, sizeof y));
    CHECK_EQ_S(lb_error(cx), "");
    lb_leave(cx);
}

static void test_eformer_refusals(lb_ctx *cx)
{
    static const char *const name[] = {"packed", "absmax"};
    static const uint8_t packed[16];
    static const float absmax[16];
    lb_enter(cx);
    const lb_quant_config how = {.format = "nf4"};
    const lb_quant_config six = {.format = "nf4", .block_size = 6};
    lb_array *part[] = {lb_from(cx, LB_U8, LB_SHAPE(2, 2, 2), packed),
                        lb_from(cx, LB_F32, LB_SHAPE(2, 2), absmax)};
    lb_array *bad[] = {part[0], lb_from(cx, LB_F32, LB_SHAPE(2, 1), absmax)};
    lb_array *ints[] = {part[0], lb_from(cx, LB_U8, LB_SHAPE(2, 2), packed)};
    lb_array *swap[] = {part[1], part[1]};
    lb_array *flat[] = {lb_from(cx, LB_U8, lb_shape_make(0, NULL), packed),
                        part[1]};
    CHECK(lb_from_parts(cx, &how, LB_SHAPE(2, 7), "eformer", name, part, 2));
    refused(cx,
            lb_from_parts(cx, &how, LB_SHAPE(2, 9), "eformer", name, part, 2),
            LB_E_SHAPE, "(2,3,2)");
    refused(cx,
            lb_from_parts(cx, &six, LB_SHAPE(2, 7), "eformer", name, part, 2),
            LB_E_SHAPE, "(2,2,3)");
    refused(cx,
            lb_from_parts(cx, &how, LB_SHAPE(2, 7), "eformer", name, bad, 2),
            LB_E_SHAPE, "(2,1)");
    refused(cx,
            lb_from_parts(cx, &how, LB_SHAPE(2, 7), "eformer", name, ints, 2),
            LB_E_DTYPE, "u8");
    refused(cx,
            lb_from_parts(cx, &how, LB_SHAPE(2, 7), "eformer", name, swap, 2),
            LB_E_DTYPE, "f32");
    refused(cx,
            lb_from_parts(cx, &how, LB_SHAPE(2, 7), "eformer", name, flat, 2),
            LB_E_SHAPE, "()");
    refused(cx,
            lb_from_parts(cx, &how, LB_SHAPE(2, 7), "eformer", name, part, 1),
            LB_E_NULL, "absmax");
    const lb_quant_config rows = {.format = "nf4", .blocks = LB_BLOCKS_FLAT};
    refused(cx,
            lb_from_parts(cx, &rows, LB_SHAPE(2, 7), "eformer", name, part, 2),
            LB_E_ARG, "blocks");
    /* Blocks that cross rows, and blocks that only seem to. */
    static float x[192];
    lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(3, 64), x);
    lb_quant_config across = {
        .format = "nf4", .block_size = 128, .blocks = LB_BLOCKS_FLAT};
    refused(cx, lb_export(cx, lb_quantize(cx, a, &across), "eformer", "packed"),
            LB_E_UNSUPPORTED, "(2,1)");
    across.block_size = 32;
    lb_array *b =
        lb_export(cx, lb_quantize(cx, a, &across), "eformer", "packed");
    lb_shape shape = lb_shape_of(b), want = LB_SHAPE(3, 2, 16);
    CHECK(lb_shape_equal(&shape, &want));
    /* A block longer than any memory. */
    const lb_quant_config vast = {.format = "nf4", .block_size = INT64_MAX - 1};
    CHECK(!lb_export(cx, lb_quantize(cx, a, &vast), "eformer", "packed"));
    CHECK(lb_error_status(cx) != LB_OK);
    lb_clear(cx);
    lb_leave(cx);
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    if (!cx) return 1;
    test_eformer_16_bits(cx);
    test_poly(cx);
    test_eformer_layout(cx);
    test_eformer_filler(cx);
    test_eformer_refusals(cx);
    lb_close(cx);
    return check_report("nf4, eformer");
}
