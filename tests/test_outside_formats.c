/* test_outside_formats.c - external formats, added with lb_add_format, are
 * quantized to, read by every primitive, moved and refused like built-in ones.
 * e4m3 of examples/ is tested value by value, and both examples through the
 * calls of a network; test_rules.c has low_rank's products. The laws loop over
 * both formats as well. */
#include <stdlib.h>

#include "check.h"
#include "dense_log.h"
#include "e4m3.h"
#include "golden/e4m3_numbers.h"
#include "low_rank.h"
#include "lowbit_params.h"

static float from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static uint32_t to_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* ---- e4m3: one number ---------------------------------------------------- */

static void values_and_codes(void)
{
    for (int c = 0; c < 256; c++) {
        const float want = from_bits(e4m3_golden_value[c]);
        const float got = e4m3_value((uint8_t)c);
        CHECK(isnan(want) ? isnan(got) : to_bits(got) == to_bits(want));
        CHECK_EQ_I(isnan(got) != 0, (c & 0x7f) == 0x7f);
        if (!isnan(got)) CHECK_EQ_I(e4m3_code(got), c);
    }
    const size_t n = sizeof e4m3_golden_code / sizeof *e4m3_golden_code;
    for (size_t i = 0; i < n; i++)
        CHECK_EQ_I(e4m3_code(from_bits(e4m3_golden_code[i].x)),
                   e4m3_golden_code[i].code);
    static const float huge[] = {449, 463.9f, 464, 464.1f, 480, 512, 3.4e38f};
    for (int i = 0; i < 7; i++) {
        CHECK_EQ_I(e4m3_code(huge[i]), 0x7e);
        CHECK_EQ_I(e4m3_code(-huge[i]), 0xfe);
    }
}

/* ---- e4m3: whole arrays ------------------------------------------------- */

/* The code nearest to x, by trying all of them; the even one on a tie. */
static int nearest(double x)
{
    int best = 0;
    double off = HUGE_VAL;
    for (int c = 0; c < 0x7f; c++) {
        const double d =
            fabs(fabs(x) - (double)from_bits(e4m3_golden_value[c]));
        if (d < off || (d == off && c % 2 == 0)) best = c;
        if (d < off) off = d;
    }
    return best | (signbit(x) ? 0x80 : 0);
}

/* Rows of n from x in blocks of b: codes, scales and values in doubles. (f32
 * quotients and products are those of f64, rounded.) */
static void model(const float *x, int64_t rows, int64_t n, int64_t b,
                  uint8_t *code, float *scale, float *value)
{
    const int64_t blocks = (n + b - 1) / b;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < blocks; k++) {
            double most = 0;
            for (int64_t j = k * b; j < n && j < (k + 1) * b; j++)
                most = fmax(most, fabs((double)x[i * n + j]));
            scale[i * blocks + k] = (float)(most / 448);
        }
        for (int64_t j = 0; j < n; j++) {
            const float s = scale[i * blocks + j / b];
            const double v = (double)x[i * n + j];
            const float q =
                s > 0 ? (float)(v / (double)s) : copysignf(0, x[i * n + j]);
            code[i * n + j] = (uint8_t)nearest((double)q);
            value[i * n + j] =
                (float)((double)from_bits(e4m3_golden_value[code[i * n + j]]) *
                        (double)s);
        }
    }
}

/* Values of many magnitudes, with zeros and whole blocks of zeros. */
static void fill(float *x, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        const int e = (int)(seed >> 9 & 15) - 12;
        const double m = (double)(int32_t)seed / 2147483648.0;
        x[i] = (float)ldexp(m, e);
        if (seed % 11 == 0 || (i / 64) % 5 == 3)
            x[i] = seed & 64 ? 0.0f : -0.0f;
    }
}

static void same_floats(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (check_fails(to_bits(a[i]) == to_bits(b[i])))
            fprintf(stderr, "element %d: %a, not %a\n", (int)i, (double)a[i],
                    (double)b[i]);
}

static void quantizing(lb_ctx *cx, int64_t rows, int64_t n, int64_t block)
{
    enum { MOST = 5000 };
    static float x[MOST], scale[MOST], value[MOST], got[MOST];
    static uint8_t code[MOST];
    const int64_t b = block ? block : 128, blocks = (n + b - 1) / b;
    lb_enter(cx);
    fill(x, rows * n, (uint32_t)(rows * 1000 + n));
    model(x, rows, n, b, code, scale, value);
    lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(rows, n), x);
    const lb_quant_config config = {.format = "e4m3", .block_size = block};
    lb_array *q = lb_quantize(cx, a, &config);
    CHECK_EQ_S(lb_error(cx), "");
    CHECK_EQ_S(lb_format_of(q), "e4m3");
    CHECK_EQ_I(lb_nbytes(q), rows * n + rows * blocks * 4);
    const uint8_t *codes = lb_data(lb_codes(cx, q));
    const float *scales = lb_data(lb_component(cx, q, "scale"));
    if (rows * n > 0) {
        CHECK(codes && memcmp(codes, code, (size_t)(rows * n)) == 0);
        same_floats(scales, scale, rows * blocks);
    }
    const size_t size = (size_t)(rows * n) * sizeof(float);
    CHECK(lb_read(cx, q, got, size));
    same_floats(got, value, rows * n);

    /* Any view is encoded like the array that it shows. */
    lb_array *t =
        lb_transpose(cx, lb_materialize(cx, lb_transpose(cx, a, NULL)), NULL);
    CHECK(lb_read(cx, lb_quantize(cx, t, &config), got, size));
    same_floats(got, value, rows * n);

    /* From its parts, and from its codes. */
    static const char *const name[] = {"codes", "scale"};
    lb_array *part[] = {lb_component(cx, q, "codes"),
                        lb_component(cx, q, "scale")};
    lb_array *again =
        lb_from_parts(cx, &config, LB_SHAPE(rows, n), NULL, name, part, 2);
    CHECK(lb_read(cx, again, got, size));
    same_floats(got, value, rows * n);
    again = lb_from_codes(cx, &config, lb_codes(cx, q), part[1]);
    CHECK(lb_read(cx, again, got, size));
    same_floats(got, value, rows * n);
    CHECK_EQ_S(lb_error(cx), "");
    lb_leave(cx);
}

/* Ties stay ties only where the quotient is a true one: 3 and 7 have no exact
 * reciprocal, and all products with them here are exact. */
static void ties(lb_ctx *cx)
{
    enum { N = 0x7f };
    float x[N], scale;
    uint8_t code[N];
    for (int s = 3; s <= 7; s += 4) {
        for (int c = 0; c < N - 1; c++)
            x[c] = (float)s / 2 *
                   (from_bits(e4m3_golden_value[c]) +
                    from_bits(e4m3_golden_value[c + 1]));
        x[N - 1] = (float)s * 448;
        lb_array *q = lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(N), x),
                                  &(lb_quant_config){.format = "e4m3"});
        CHECK(lb_read(cx, lb_component(cx, q, "scale"), &scale, sizeof scale));
        CHECK_NEAR((double)scale, s, 0);
        CHECK(lb_read(cx, lb_codes(cx, q), code, sizeof code));
        for (int c = 0; c < N - 1; c++)
            CHECK_EQ_I(code[c], (c + 1) / 2 * 2);
    }
}

static void shapes(lb_ctx *cx)
{
    static const int64_t shape[][3] = {
        {1, 1, 0},   {3, 127, 0}, {2, 128, 0},  {2, 129, 0},
        {5, 300, 0}, {7, 33, 32}, {4, 65, 1},   {2, 2100, 7},
        {0, 5, 0},   {5, 0, 0},   {1, 5000, 0}, {3, 50, 1000000},
    };
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        quantizing(cx, shape[i][0], shape[i][1], shape[i][2]);
    /* A scalar, and ranks that are not 2. */
    lb_array *one = lb_full(cx, LB_F32, lb_shape_make(0, NULL), -3);
    const lb_quant_config config = {.format = "e4m3"};
    CHECK_NEAR(lb_item(cx, lb_quantize(cx, one, &config)), -3, 1e-6);
    lb_array *x = lb_iota(cx, LB_F32, LB_SHAPE(2, 3, 4, 5), 3);
    lb_array *off = lb_abs(cx, lb_sub(cx, lb_quantize(cx, x, &config), x));
    CHECK_NEAR(lb_item(cx, lb_reduce_max(cx, off, NULL)), 0, 4 / 28.0);
}

/* Logical dtypes round the decoded value once; other floats are encoded as f32.
 */
static void dtypes(lb_ctx *cx)
{
    static float x[300], value[300];
    static const lb_dtype d[] = {LB_F32, LB_F16, LB_BF16, LB_F64};
    fill(x, 300, 5);
    lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(3, 100), x);
    lb_array *f = lb_quantize(cx, a, &(lb_quant_config){.format = "e4m3"});
    CHECK(lb_read(cx, f, value, sizeof value));
    lb_array *decoded = lb_from(cx, LB_F32, LB_SHAPE(3, 100), value);
    for (int i = 0; i < 4; i++) {
        const lb_quant_config to = {.format = "e4m3", .dtype = d[i]};
        lb_array *q = lb_quantize(cx, a, &to);
        CHECK_EQ_I(lb_dtype_of(q), d[i]);
        lb_array *same = lb_reduce_and(
            cx, lb_eq(cx, q, lb_convert(cx, decoded, d[i])), NULL);
        CHECK_EQ_I(lb_item_int(cx, same), 1);
        lb_array *from = lb_convert(cx, a, d[i]);
        q = lb_quantize(cx, from, &(lb_quant_config){.format = "e4m3"});
        CHECK_EQ_I(lb_dtype_of(q), d[i]);
        lb_array *want = lb_quantize(cx, lb_convert(cx, from, LB_F32), &to);
        CHECK_EQ_I(lb_item_int(cx, lb_reduce_and(cx, lb_eq(cx, q, want), NULL)),
                   1);
    }
    CHECK_EQ_S(lb_error(cx), "");
}

static void refused(lb_ctx *cx, const lb_array *a, lb_status status,
                    const char *say)
{
    const bool ok = !a && lb_error_status(cx) == status &&
                    strstr(lb_error(cx), say) != NULL;
    if (check_fails(ok))
        fprintf(stderr, "%s: \"%s\", not %s with \"%s\"\n",
                lb_status_name(lb_error_status(cx)), lb_error(cx),
                lb_status_name(status), say);
    lb_clear(cx);
}

static void refusals(lb_ctx *cx)
{
    lb_array *x = lb_full(cx, LB_F32, LB_SHAPE(2, 3), 1);
#define REFUSED(STATUS, SAY, ...)                                              \
    refused(                                                                   \
        cx,                                                                    \
        lb_quantize(cx, x, &(lb_quant_config){.format = "e4m3", __VA_ARGS__}), \
        STATUS, SAY)
    REFUSED(LB_E_ARG, "e4m3 supports only", .compat = LB_COMPAT_EFORMER);
    REFUSED(LB_E_ARG, "e4m3 supports only", .scale = LB_SCALE_ROW);
    REFUSED(LB_E_ARG, "e4m3 supports only", .blocks = LB_BLOCKS_FLAT);
    REFUSED(LB_E_ARG, "e4m3 supports only", .axes = {1, {0}});
    REFUSED(LB_E_ARG, "e4m3 supports only", .decode = LB_DECODE_POLY);
    REFUSED(LB_E_ARG, "e4m3 supports only", .meaning = LB_MEANS_INVERSE);
    REFUSED(LB_E_ARG, "e4m3 supports only", .center = true);
    REFUSED(LB_E_ARG, "e4m3 supports only", .threshold = LB_THRESHOLD_ABSMEAN);
    REFUSED(LB_E_DTYPE, "e4m3: i8", .dtype = LB_I8);
    REFUSED(LB_E_ARG, "block_size", .block_size = -1);
#undef REFUSED
    /* A format made only from parts is not a target; the message lists those
     * that are. */
    refused(cx, lb_quantize(cx, x, &(lb_quant_config){.format = "low_rank"}),
            LB_E_ARG, "e4m3");
    const float bad[] = {1, 2, NAN, 4, -INFINITY, 6};
    lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(2, 3), bad);
    lb_quant_config config = {.format = "e4m3"};
    refused(cx, lb_quantize(cx, a, &config), LB_E_ARG, "element (0,2)");
    config.on_nonfinite = LB_NONFINITE_CLAMP;
    float got[6];
    CHECK(lb_read(cx, lb_quantize(cx, a, &config), got, sizeof got));
    CHECK(isfinite(got[4]) && got[4] < -3.4e38f && got[2] == 0);
}

/* ---- operations of a network ------------------------------------------- */

/* Operations on q of (6,40) f32 and x of that shape, dense. */
typedef lb_array *call_fn(lb_ctx *, lb_array *q, lb_array *x);
#define CALL(NAME, EXPR)                                                       \
    static lb_array *call_##NAME(lb_ctx *cx, lb_array *q, lb_array *x)         \
    {                                                                          \
        (void)x;                                                               \
        return EXPR;                                                           \
    }
CALL(lt, lb_lt(cx, q, x))
CALL(convert, lb_convert(cx, q, LB_I32))
CALL(integer_pow, lb_integer_pow(cx, q, 3))
CALL(pow, lb_pow(cx, lb_abs(cx, q), x))
CALL(div, lb_div(cx, x, q))
CALL(sqrt, lb_sqrt(cx, q))
CALL(add, lb_add(cx, q, q))
CALL(sum, lb_reduce_sum(cx, q, LB_AXES(1)))
CALL(max_of, lb_reduce_max(cx, q, NULL))
CALL(mul, lb_mul(cx, x, q))
CALL(transpose, lb_transpose(cx, q, NULL))
CALL(max, lb_max(cx, q, x))
CALL(exp, lb_exp(cx, q))
CALL(log, lb_log(cx, q))
CALL(reshape, lb_reshape(cx, q, LB_SHAPE(3, 2, 40)))
CALL(flat, lb_reshape(cx, lb_transpose(cx, q, NULL), LB_SHAPE(240)))
CALL(rows, lb_concatenate(cx, (lb_array *[]){q, q}, 2, 0))
CALL(columns, lb_concatenate(cx, (lb_array *[]){q, x, q}, 3, 1))
CALL(broadcast, lb_broadcast_to(cx, q, LB_SHAPE(2, 6, 40)))
CALL(slice,
     lb_slice(cx, q, (int64_t[]){1, 3}, (int64_t[]){6, 38}, (int64_t[]){2, 5}))
CALL(gather, lb_take(cx, q, lb_iota(cx, LB_I32, LB_SHAPE(4), 0), 0))
CALL(gather_columns, lb_take(cx, q, lb_iota(cx, LB_I32, LB_SHAPE(4), 0), 1))
CALL(softmax, lb_softmax(cx, q, -1))
CALL(requantize, lb_quantize(cx, q, &(lb_quant_config){.format = "e4m3"}))
CALL(dot, lb_matmul(cx, x, lb_transpose(cx, q, NULL)))
CALL(dot_left, lb_matmul(cx, q, lb_transpose(cx, x, NULL)))
CALL(conv, lb_conv_general_dilated(cx, lb_reshape(cx, q, LB_SHAPE(1, 1, 6, 40)),
                                   lb_reshape(cx, x, LB_SHAPE(2, 1, 3, 40)),
                                   &(lb_conv_dims){.lhs = ""}))

static const struct {
    const char *name;
    call_fn *call;
    bool near; /* sums of products: order may differ */
} calls[] = {
    {"lt", call_lt, 0},
    {"convert", call_convert, 0},
    {"integer_pow", call_integer_pow, 0},
    {"pow", call_pow, 0},
    {"div", call_div, 0},
    {"sqrt", call_sqrt, 0},
    {"add", call_add, 0},
    {"reduce_sum", call_sum, 0},
    {"reduce_max", call_max_of, 0},
    {"mul", call_mul, 0},
    {"transpose", call_transpose, 0},
    {"max", call_max, 0},
    {"exp", call_exp, 0},
    {"log", call_log, 0},
    {"reshape", call_reshape, 0},
    {"reshape of a transposed", call_flat, 0},
    {"concatenate of rows", call_rows, 0},
    {"concatenate of columns", call_columns, 0},
    {"broadcast", call_broadcast, 0},
    {"slice", call_slice, 0},
    {"gather", call_gather, 0},
    {"gather of columns", call_gather_columns, 0},
    {"softmax", call_softmax, 0},
    {"quantize", call_requantize, 0},
    {"dot_general, right", call_dot, 1},
    {"dot_general, left", call_dot_left, 1},
    {"conv_general_dilated", call_conv, 1},
};

static void same_arrays(lb_ctx *cx, lb_array *got, lb_array *want, bool near,
                        const char *format, const char *name)
{
    char a[1000 * 8], b[1000 * 8];
    const size_t size =
        (size_t)lb_size(want) * lb_dtype_size(lb_dtype_of(want));
    bool ok = got && want && size <= sizeof a &&
              lb_dtype_of(got) == lb_dtype_of(want) &&
              lb_read(cx, got, a, size) && lb_read(cx, want, b, size);
    if (ok && !near) ok = memcmp(a, b, size) == 0;
    for (size_t i = 0; near && ok && i < size / sizeof(float); i++) {
        float x, y;
        memcpy(&x, a + i * sizeof x, sizeof x);
        memcpy(&y, b + i * sizeof y, sizeof y);
        ok = fabsf(x - y) <= 1e-4f;
    }
    if (check_fails(ok))
        fprintf(stderr, "%s of %s: %s\n", name, format, lb_error(cx));
    lb_clear(cx);
}

static void every_call(lb_ctx *cx, lb_array *q, lb_array *x)
{
    static float plain[6 * 40];
    CHECK(lb_read(cx, q, plain, sizeof plain));
    lb_array *p = lb_from(cx, LB_F32, LB_SHAPE(6, 40), plain);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        lb_enter(cx);
        same_arrays(cx, calls[i].call(cx, q, x), calls[i].call(cx, p, x),
                    calls[i].near, lb_format_of(q), calls[i].name);
        lb_leave(cx);
    }
}

static void networks(lb_ctx *cx)
{
    lb_array *x = lb_random_normal(cx, (lb_key){1, 0}, LB_F32, LB_SHAPE(6, 40));
    lb_array *v = lb_random_normal(cx, (lb_key){2, 0}, LB_F32, LB_SHAPE(6, 40));
    lb_array *a = lb_random_normal(cx, (lb_key){3, 0}, LB_F32, LB_SHAPE(6, 3));
    lb_array *b = lb_random_normal(cx, (lb_key){4, 0}, LB_F32, LB_SHAPE(3, 40));
    const lb_quant_config config = {.format = "e4m3", .block_size = 16};
    lb_array *q = lb_quantize(cx, v, &config);
    every_call(cx, q, x);
    every_call(cx, low_rank_make(cx, q, a, b), x);
    every_call(cx, low_rank_make(cx, low_rank_make(cx, q, a, b), a, b), x);
    /* Results that stay packed. */
    lb_array *pair[] = {q, q};
    CHECK_EQ_S(lb_format_of(lb_transpose(cx, q, NULL)), "e4m3");
    CHECK_EQ_S(lb_format_of(lb_convert(cx, q, LB_BF16)), "e4m3");
    CHECK_EQ_S(lb_format_of(lb_concatenate(cx, pair, 2, 0)), "e4m3");
    CHECK_EQ_S(
        lb_format_of(lb_take(cx, q, lb_iota(cx, LB_I32, LB_SHAPE(2), 0), 0)),
        "e4m3");
    /* 40 is not a multiple of 16: blocks of a second array cannot follow. */
    CHECK_EQ_S(lb_format_of(lb_concatenate(cx, pair, 2, 1)), "dense");
}

/* ---- bytes of another program ------------------------------------------- */

/* Scales for tiles of 4 x 4 instead of runs of a row: another table, the same
 * decoder. "weight" (M,N) and "tile_scale" (M/4,N/4), rounded up. */
enum { TILE = 4 };

static lb_array *load_tiles(lb_ctx *cx, const lb_quant *q,
                            const lb_shape *shape, lb_array *const *part)
{
    const lb_part table[LB_MAX_PARTS] = {
        {.g = {1, 1}, .a = part[0]},
        {.g = {TILE, TILE}, .a = part[1]},
    };
    if (shape->rank != 2 || !part[1]) {
        lb_fail(cx, LB_E_SHAPE, "tiles: %s with%s a tile_scale, not (M,N) with",
                LB_SHOW(shape), part[1] ? "" : "out");
        return NULL;
    }
    return lb_make(cx, q->format, q->dtype ? q->dtype : LB_F32, 0, shape,
                   table);
}

static lb_array *save_tiles(lb_ctx *cx, lb_array *a, int part)
{
    const lb_part *scale = &a->store->part[1];
    if (a->store->shape.rank == 2 && scale->g[0] == TILE && scale->g[1] == TILE)
        return lb_component(cx, a, part == 0 ? "codes" : "scale");
    lb_fail(cx, LB_E_ARG, "tiles: this array has other groups");
    return NULL;
}

static const lb_foreign foreign[] = {
    {"tiles", {"weight", "tile_scale"}, load_tiles, save_tiles},
    {NULL, {NULL}, NULL, NULL},
};

static void tiles(lb_ctx *cx)
{
    enum { M = 6, N = 40 };
    static uint8_t code[M * N], back[M * N];
    static float scale[2 * 10], got[M * N];
    static lb_format tiled;
    tiled = e4m3_format;
    tiled.name = "e4m3_tiled";
    tiled.foreign = foreign;
    CHECK(lb_add_format(cx, &tiled));
    for (int i = 0; i < M * N; i++)
        code[i] = (uint8_t)(i * 37 % 0x7f | (i % 3 ? 0x80 : 0));
    for (int i = 0; i < 20; i++)
        scale[i] = (float)(i + 1) / 8;
    static const char *const name[] = {"weight", "tile_scale"};
    lb_array *part[] = {lb_from(cx, LB_U8, LB_SHAPE(M, N), code),
                        lb_from(cx, LB_F32, LB_SHAPE(2, 10), scale)};
    const lb_quant_config config = {.format = "e4m3_tiled"};
    lb_array *w =
        lb_from_parts(cx, &config, LB_SHAPE(M, N), "tiles", name, part, 2);
    CHECK(lb_read(cx, w, got, sizeof got));
    for (int i = 0; i < M * N; i++) {
        const float s = scale[i / N / TILE * 10 + i % N / TILE];
        CHECK_NEAR((double)got[i],
                   (double)(s * from_bits(e4m3_golden_value[code[i]])), 0);
    }
    CHECK(lb_read(cx, lb_export(cx, w, "tiles", "weight"), back, sizeof back));
    CHECK(memcmp(back, code, sizeof code) == 0);
    CHECK(lb_read(cx, lb_export(cx, w, "tiles", "tile_scale"), got,
                  sizeof scale));
    CHECK(memcmp(got, scale, sizeof scale) == 0);
    every_call(cx, w, lb_iota(cx, LB_F32, LB_SHAPE(M, N), 1));
    /* Arrays that the layout cannot represent are refused. */
    refused(cx,
            lb_from_parts(cx, &config, LB_SHAPE(M, N), "tiles", name, part, 1),
            LB_E_SHAPE, "without a tile_scale");
    refused(cx,
            lb_from_parts(cx, &config, LB_SHAPE(M, N), "rows", name, part, 2),
            LB_E_ARG, "no layout \"rows\"");
    part[1] = lb_from(cx, LB_F32, LB_SHAPE(2, 9), scale);
    refused(cx,
            lb_from_parts(cx, &config, LB_SHAPE(M, N), "tiles", name, part, 2),
            LB_E_SHAPE, "scale has shape (2,9), not (2,10)");
    lb_array *rows =
        lb_quantize(cx, lb_full(cx, LB_F32, LB_SHAPE(M, N), 1), &config);
    refused(cx, lb_export(cx, rows, "tiles", "weight"), LB_E_ARG,
            "other groups");
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){
        .threads = 2, .dense = LB_DENSE_LOG, .log = log_no_copies});
    CHECK(cx != NULL);
    if (!cx) return check_report("outside formats");
    CHECK(lb_add_format(cx, &e4m3_format));
    CHECK(lb_add_format(cx, &low_rank_format));
    CHECK(lb_find_format(cx, "e4m3") == &e4m3_format);
    CHECK(lb_find_format(cx, "low_rank") == &low_rank_format);
    CHECK(!lb_add_format(cx, &e4m3_format));
    lb_clear(cx);
    values_and_codes();
    shapes(cx);
    ties(cx);
    dtypes(cx);
    refusals(cx);
    networks(cx);
    tiles(cx);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    return check_report("outside formats");
}
