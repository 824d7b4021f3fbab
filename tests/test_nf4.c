/* test_nf4.c - nf4: every boundary between codes under every rule, bytes made
 * by bitsandbytes and numpy, blocks and rows of any length, decoding from any
 * offset, and errors. */
/* ctest: simde */
#include <float.h>

#include "codec.h"
#include "nf4_model.h"

enum { COMPATS = 4 };
static const lb_dtype dtypes[] = {LB_F32, LB_F16, LB_BF16};

static int code_of(lb_compat compat, float v)
{
    return compat == LB_COMPAT_BNB_CUDA  ? tree_code(v)
           : compat == LB_COMPAT_BNB_CPU ? bucketize_code(v)
                                         : argmin_code(v);
}

/* ---- codes --------------------------------------------------------------- */

/* n quotients, which are exact because the first element is 1. */
static void check_quotients(lb_ctx *cx, lb_compat compat, lb_dtype d,
                            const float *v, int n)
{
    enum { BLOCK = 64 };
    static float x[BLOCK];
    for (int i = 0; i < n; i += BLOCK - 1) {
        const int k = n - i < BLOCK - 1 ? n - i : BLOCK - 1;
        x[0] = 1;
        memcpy(x + 1, v + i, (size_t)k * sizeof *x);
        lb_enter(cx);
        lb_array *q =
            lb_quantize(cx, array_of(cx, d, LB_SHAPE(k + 1), x),
                        &(lb_quant_config){.format = "nf4", .compat = compat});
        const uint8_t *byte = q ? bytes_of(cx, q, "codes") : NULL;
        for (int j = 0; byte && j <= k; j++)
            CHECK_EQ_I(nibble(byte, j), code_of(compat, x[j]));
        CHECK(byte != NULL);
        lb_leave(cx);
    }
}

/* The floats around each boundary between codes. */
static void test_edges(lb_ctx *cx)
{
    enum { AROUND = 4 };
    for (int compat = 0; compat < COMPATS; compat++) {
        float v[15 * (2 * AROUND + 1)];
        int n = 0;
        for (int j = 0; j < 15; j++) {
            float at = (level[j] + level[j + 1]) / 2;
            for (int k = 0; k < AROUND; k++)
                at = nextafterf(at, -2);
            for (int k = 0; k <= 2 * AROUND; k++, at = nextafterf(at, 2))
                v[n++] = at;
        }
        check_quotients(cx, (lb_compat)compat, LB_F32, v, n);
    }
}

/* All 16-bit values from -1 to 1, and some thousands of f32. */
static void test_all_16_bits(lb_ctx *cx)
{
    static float v[1 << 16];
    for (int compat = 0; compat < COMPATS; compat++)
        for (int d = 0; d < 3; d++) {
            uint64_t state = 7;
            int n = 0;
            for (uint32_t bits = 0; bits < 1 << 16; bits += d ? 1 : 16) {
                const uint32_t some = d ? bits : (uint32_t)number_draw(&state);
                const float x = from_bits(dtypes[d], some);
                if (fabsf(x) <= 1) v[n++] = x;
            }
            check_quotients(cx, (lb_compat)compat, dtypes[d], v, n);
        }
}

/* ---- against the packages ------------------------------------------------ */

enum { MADE = 41 };
typedef struct {
    lb_dtype dtype;
    uint32_t x[MADE]; /* bits; a block of 32 and a short one, whose ... */
    const char *bytes[COMPATS]; /* ... absmax comes first */
} made;

/* Values midway between two codes, or one or two ulp from there, where the
 * rules differ. native, eformer, bnb-cuda: numpy 2.4 with ml_dtypes 0.6, each
 * step in f32, or for eformer in the dtype. bnb-cpu: bitsandbytes 0.50.2 with
 * torch 2.15, quantize_4bit(x, blocksize=32, quant_type="nf4"). */
/* clang-format off */
static const made table[] = {
    {LB_F32,
     {
     0x3f6bd740, 0xbf480408, 0xbe0219d2, 0x3eeca01d, 0xbf480407, 0xbea03876,
     0x3e89bccf, 0xbf10031d, 0xbed8f8a8, 0x3e3ffe96, 0xbe5d51eb, 0x3f17986c,
     0xbd2bc959, 0x3d162572, 0x3de2e387, 0x3eb7a1af, 0xbf10031d, 0x3eeca01d,
     0xbea03875, 0x3eeca01d, 0xbed8f8a8, 0xbf10031d, 0x3eeca01d, 0xbed8f8a8,
     0xbf480408, 0x3e89bccf, 0xbed8f8a8, 0xbe5d51eb, 0x3e3ffe96, 0xbf10031d,
     0xbf480407, 0xbf10031d, 0x3fee8cc5, 0x3f995635, 0xbf220f9b, 0xbf5b76b0,
     0xbf91aa99, 0xbe839866, 0x3f6f57f1, 0x3f39bdad, 0xbf220f9c,
     },
     {"f16d14a2395d779b2d4d32d31a359212fd4326db47",
      "f16d14a2395d779b2d4d32d31a359212fd4326db47",
      "f05d13b12a4e688c1d3d21d20b24a111fe3215dc37",
      "f05c03b12a4e689c1c3c21c20b24a101fd4326cb37"}},
    {LB_F16,
     {
     0x3ef8, 0xbde9, 0xb68a, 0x3812, 0x3e01, 0x396d, 0xb8bc, 0x3afe, 0xb3b0,
     0xb68a, 0x3e01, 0xb68a, 0xbde9, 0x3e01, 0x396d, 0x396d, 0xbde9, 0x396d,
     0xbde9, 0x3afe, 0x3e01, 0x3e01, 0x3e01, 0xbde9, 0x3e01, 0x3812, 0x3812,
     0xb68a, 0x396d, 0x396d, 0xb68a, 0x3812, 0x3cbf, 0x2a0b, 0xb474, 0x3764,
     0xb673, 0xaaea, 0xb85e, 0x3091, 0x3a1a,
     },
     {"f15bfb3d65f51fbb1b1dfff1fbb5bb5bf75b3729e7",
      "f04aec4c54e40ecc0c0ceee0eaa4cc4af84c4638d7",
      "f15bfb3d65f51fbb1b1dfff1fbb5bb5bf75b3729e7",
      "f15bfb3d65f51fbb1b1dfff1fbb5bb5bf75b3729e7"}},
    {LB_BF16,
     {
     0x3fe7, 0x3d93, 0xbe7f, 0x3f34, 0xbed9, 0x3fc7, 0xbfc4, 0x3d93, 0xbed9,
     0xbed9, 0xbe7f, 0x3d93, 0x3d93, 0x3d93, 0xbe7f, 0xbe7f, 0x3f34, 0xbe7f,
     0x3f34, 0x3fc7, 0xbe7f, 0x3d93, 0xbfc4, 0x3f34, 0xbed9, 0xbe7f, 0x3f34,
     0xbe7f, 0xbe7f, 0xbe7f, 0xbfc4, 0x3f34, 0x3f14, 0xbe49, 0x3cbc, 0xbe0b,
     0x3df1, 0xbe49, 0x3cbc, 0xbe49, 0x3cbc,
     },
     {"f75c4e0744577755c5ce570c45c5550cf474a47477",
      "f86b5f1855688866b6bf681b56b6661bf385938387",
      "f75c4e0744577755c5ce570c45c5550cf474a47477",
      "f75c4e0744577755c5ce570c45c5550cf474a47477"}},
};
/* clang-format on */

static void check_made(lb_ctx *cx, const made *m, lb_compat compat)
{
    float x[MADE], absmax[2];
    for (int i = 0; i < MADE; i++)
        x[i] = from_bits(m->dtype, m->x[i]);
    lb_array *q =
        lb_quantize(cx, array_of(cx, m->dtype, LB_SHAPE(MADE), x),
                    &(lb_quant_config){
                        .format = "nf4", .block_size = 32, .compat = compat});
    const uint8_t *byte = q ? bytes_of(cx, q, "codes") : NULL;
    for (int i = 0; byte && i < (MADE + 1) / 2; i++) {
        unsigned want = 0;
        CHECK_EQ_I(sscanf(m->bytes[compat] + 2 * i, "%2x", &want), 1);
        CHECK_EQ_I(byte[i], want);
    }
    lb_array *scale = q ? lb_component(cx, q, "absmax") : NULL;
    CHECK_EQ_I(lb_dtype_of(scale),
               compat == LB_COMPAT_EFORMER ? m->dtype : LB_F32);
    CHECK(lb_read(cx, lb_convert(cx, scale, LB_F32), absmax, sizeof absmax));
    CHECK(same_f32(absmax[0], x[0]) && same_f32(absmax[1], x[32]));
    float y[MADE];
    CHECK(lb_read(cx, lb_convert(cx, q, LB_F32), y, sizeof y));
    for (int i = 0; byte && i < MADE; i++)
        CHECK(same_f32(y[i], level[nibble(byte, i)] * absmax[i / 32]));
    CHECK_EQ_I(lb_dtype_of(q), m->dtype);
}

static void test_made(lb_ctx *cx)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int compat = 0; compat < COMPATS; compat++) {
            lb_enter(cx);
            check_made(cx, &table[i], (lb_compat)compat);
            lb_leave(cx);
        }
}

/* ---- blocks and rows ----------------------------------------------------- */

/* Bytes, absmax and values of rows of n in blocks, native, computed here. */
static void check_rows(lb_ctx *cx, lb_shape shape, int64_t block,
                       lb_blocks blocks)
{
    enum { MOST = 4096 };
    static float x[MOST], y[MOST];
    const int64_t size = lb_shape_size(&shape);
    const int64_t row = blocks == LB_BLOCKS_FLAT || !shape.rank
                            ? size
                            : shape.dim[shape.rank - 1];
    const int64_t bytes = (row + 1) / 2,
                  each = row / block + (row % block != 0);
    fill((uint64_t)(size + 4096 * row), size, x);
    lb_enter(cx);
    lb_array *q = lb_quantize(cx, lb_from(cx, LB_F32, shape, x),
                              &(lb_quant_config){.format = "nf4",
                                                 .block_size = block,
                                                 .blocks = blocks});
    CHECK(q && lb_read(cx, q, y, (size_t)size * sizeof *y));
    CHECK_EQ_S(lb_error(cx), "");
    lb_shape got = lb_shape_of(q);
    CHECK(lb_shape_equal(&got, &shape));
    const lb_array *codes = q ? q->store->part[0].a : NULL;
    const lb_array *absmax = q ? q->store->part[1].a : NULL;
    const int64_t rows = row ? size / row : 0;
    CHECK_EQ_I(lb_size(codes), rows * bytes);
    CHECK_EQ_I(lb_size(absmax), rows * each);
    for (int64_t r = 0; q && r < rows; r++) {
        const uint8_t *byte = (const uint8_t *)lb_data(codes) + r * bytes;
        const float *most = (const float *)lb_data(absmax) + r * each;
        for (int64_t b = 0; b < each; b++) {
            float want = 0;
            const int64_t hi = b < each - 1 ? (b + 1) * block : row;
            for (int64_t i = b * block; i < hi; i++)
                want = fmaxf(want, fabsf(x[r * row + i]));
            CHECK(same_f32(most[b], want));
            for (int64_t i = b * block; i < hi; i++) {
                const int c = argmin_code(x[r * row + i] / want);
                CHECK_EQ_I(nibble(byte, i), c);
                CHECK(same_f32(y[r * row + i], level[c] * want));
            }
        }
        if (row % 2) CHECK_EQ_I(byte[bytes - 1] & 15, 7);
    }
    lb_leave(cx);
}

static void test_rows(lb_ctx *cx)
{
    static const int64_t blocks[] = {2, 4, 6, 64, 100, 4096, INT64_MAX - 1};
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
        for (int k = LB_BLOCKS_IN_ROWS; k <= LB_BLOCKS_FLAT; k++) {
            const lb_blocks how = (lb_blocks)k;
            for (int64_t n = 0; n <= 20; n++)
                check_rows(cx, LB_SHAPE(n), blocks[b], how);
            check_rows(cx, lb_shape_make(0, NULL), blocks[b], how);
            check_rows(cx, LB_SHAPE(3, 5), blocks[b], how);
            check_rows(cx, LB_SHAPE(3, 0), blocks[b], how);
            check_rows(cx, LB_SHAPE(0, 7), blocks[b], how);
            check_rows(cx, LB_SHAPE(2, 3, 67), blocks[b], how);
            check_rows(cx, LB_SHAPE(7, 257), blocks[b], how);
            check_rows(cx, LB_SHAPE(1, 4001), blocks[b], how);
            check_rows(cx, LB_SHAPE(1, 1, 2, 1, 1, 1, 1, 9), blocks[b], how);
        }
}

/* f64 is rounded to f32 first, also for eformer. */
static void test_f64(lb_ctx *cx)
{
    enum { N = 70 };
    double x[N];
    float rounded[N], y[N], z[N];
    uint64_t state = 21;
    for (int i = 0; i < N; i++) {
        x[i] = (double)(int64_t)number_draw(&state) * 0x1p-70;
        rounded[i] = (float)x[i];
    }
    for (int compat = 0; compat < COMPATS; compat++) {
        const lb_quant_config how = {.format = "nf4",
                                     .compat = (lb_compat)compat};
        lb_enter(cx);
        lb_array *a =
            lb_quantize(cx, lb_from(cx, LB_F64, LB_SHAPE(N), x), &how);
        lb_array *b =
            lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(N), rounded), &how);
        CHECK_EQ_I(lb_dtype_of(a), LB_F64);
        CHECK_EQ_I(lb_dtype_of(lb_component(cx, a, "absmax")), LB_F32);
        CHECK(lb_read(cx, lb_convert(cx, a, LB_F32), y, sizeof y));
        CHECK(lb_read(cx, b, z, sizeof z) && !memcmp(y, z, sizeof y));
        lb_leave(cx);
    }
}

/* Blocks cross rows in bitsandbytes' modes, unless configured otherwise. */
static void test_blocks(lb_ctx *cx)
{
    static const float x[12];
    for (int compat = 0; compat < COMPATS; compat++)
        for (int k = 0; k < 3; k++) {
            const bool flat =
                k ? k == LB_BLOCKS_FLAT
                  : compat == LB_COMPAT_BNB_CUDA || compat == LB_COMPAT_BNB_CPU;
            lb_enter(cx);
            lb_array *q =
                lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(2, 6), x),
                            &(lb_quant_config){.format = "nf4",
                                               .compat = (lb_compat)compat,
                                               .blocks = (lb_blocks)k});
            const lb_shape want = flat ? LB_SHAPE(12) : LB_SHAPE(2, 6);
            CHECK(q && lb_shape_equal(&q->store->shape, &want));
            CHECK_EQ_I(q ? q->store->part[1].g[flat ? 0 : 1] : 0, 64);
            lb_leave(cx);
        }
}

/* Zeros, the smallest and the largest values: block of 4, row of 7. */
static void test_extremes(lb_ctx *cx)
{
    static const float least = 1e-38f; /* of bitsandbytes on a CPU */
    static const struct {
        float x[7];
        const char *bytes[COMPATS];
    } row[] = {
        {{0, -0.0f, 0, 0, 0, 0, -0.0f},
         {"77777777", "77777777", "00000000", "77777777"}},
        /* Subnormals: native divides, eformer adds 2^-126 first, a GPU
         * multiplies by infinity and a CPU by 1e38. */
        {{0x1p-149f, -0x1p-149f, 0, 0x1p-148f, 0x1p-130f, 0, -0x1p-130f},
         {"c27ff707", "77778767", "f00ff000", "77778767"}},
        {{FLT_MAX, -FLT_MAX, 0, FLT_MAX / 2, -FLT_MAX, 1, FLT_MAX},
         {"f07c07f7", "f07c07f7", "f07c07f7", "f07c07f7"}},
        {{FLT_MIN, -FLT_MIN, 0, FLT_MIN / 2, -FLT_MIN, 1e-45f, FLT_MIN},
         {"f07c07f7", "c27a27c7", "f07c07f7", "f07c07f7"}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int c = 0; c < COMPATS; c++) {
            lb_enter(cx);
            lb_array *x = lb_from(cx, LB_F32, LB_SHAPE(7), row[i].x);
            lb_array *q = lb_quantize(
                cx, x,
                &(lb_quant_config){
                    .format = "nf4", .block_size = 4, .compat = (lb_compat)c});
            const uint8_t *byte = q ? bytes_of(cx, q, "codes") : NULL;
            for (int k = 0; byte && k < 4; k++) {
                unsigned want = 0;
                CHECK_EQ_I(sscanf(row[i].bytes[c] + 2 * k, "%2x", &want), 1);
                if (check_fails(byte[k] == want))
                    fprintf(stderr, "row %zu, compat %d, byte %d: %02x\n", i, c,
                            k, byte[k]);
            }
            float y[7], absmax[2] = {0};
            CHECK(lb_read(cx, q, y, sizeof y));
            CHECK(lb_read(cx, lb_component(cx, q, "absmax"), absmax,
                          sizeof absmax));
            float most = fmaxf(fabsf(row[i].x[4]), fabsf(row[i].x[6]));
            if (c == LB_COMPAT_BNB_CPU) most = fmaxf(most, least);
            CHECK(same_f32(absmax[1], most));
            CHECK(same_f32(absmax[0],
                           fmaxf(fabsf(row[i].x[0]), fabsf(row[i].x[3]))));
            for (int k = 0; byte && k < 7; k++)
                CHECK(same_f32(y[k], level[nibble(byte, k)] * absmax[k / 4]));
            lb_leave(cx);
        }
}

/* ---- decode -------------------------------------------------------------- */

static void test_places(lb_ctx *cx)
{
    static float x[600];
    fill(9, 600, x);
    const lb_quant_config how[] = {
        {.format = "nf4", .block_size = 6},
        {.format = "nf4", .block_size = 64, .blocks = LB_BLOCKS_FLAT},
        {.format = "nf4", .decode = LB_DECODE_POLY},
        {.format = "nf4", .block_size = 2, .double_quant = true},
    };
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        lb_enter(cx);
        codec_every_run(
            cx,
            lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(3, 67), x), &how[i]));
        codec_every_run(
            cx,
            lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(590), x), &how[i]));
        CHECK_EQ_S(lb_error(cx), "");
        lb_leave(cx);
    }
}

/* The error of every value of a block is within the bound. */
static void test_bound(lb_ctx *cx)
{
    static float x[4096], y[4096];
    const lb_format *fmt = lb_find_format(cx, "nf4");
    for (int compat = 0; compat < COMPATS; compat++)
        for (int decode = 0; decode < 2; decode++) {
            double worst = 0;
            for (int i = 0; i < 4096; i++)
                x[i] = (float)(i % 64 - 32) * 0.03125f +
                       (float)(i / 64) * 0.03125f / 64;
            for (int i = 0; i < 4096; i += 64)
                x[i] = -1;
            lb_enter(cx);
            lb_array *q =
                lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(4096), x),
                            &(lb_quant_config){.format = "nf4",
                                               .compat = (lb_compat)compat,
                                               .decode = (lb_decode)decode});
            CHECK(lb_read(cx, q, y, sizeof y));
            for (int i = 0; i < 4096; i++)
                if (fabs((double)y[i] - x[i]) > worst)
                    worst = fabs((double)y[i] - x[i]);
            const double bound =
                fmt->bound(&(lb_quant){.format = fmt,
                                       .compat = (lb_compat)compat,
                                       .decode = (lb_decode)decode});
            CHECK(worst <= bound);
            /* Half of -1 to -.696, which is the widest step. */
            if (!decode) CHECK(worst > 0.15);
            if (compat != LB_COMPAT_EFORMER) CHECK(bound < 0.17);
            lb_leave(cx);
        }
}

/* ---- refusals ------------------------------------------------------------ */

static void test_refusals(lb_ctx *cx)
{
    static const float x[8];
    const struct {
        lb_quant_config how;
        lb_status status;
        const char *word;
    } row[] = {
        {{.block_size = 7}, LB_E_ARG, "7"},
        {{.block_size = -2}, LB_E_ARG, "-2"},
        {{.axes = {1, {0}}}, LB_E_AXIS, "axis 0"},
        {{.scale = LB_SCALE_NONE}, LB_E_ARG, "scale none"},
        {{.scale = LB_SCALE_TENSOR}, LB_E_ARG, "scale tensor"},
        {{.scale = LB_SCALE_ROW}, LB_E_ARG, "scale row"},
        {{.meaning = LB_MEANS_ABSMAX}, LB_E_ARG, "meaning is absmax"},
        {{.meaning = LB_MEANS_INVERSE}, LB_E_ARG, "meaning is inverse"},
        {{.threshold = LB_THRESHOLD_ABSMEAN}, LB_E_ARG, "threshold is absmean"},
        {{.center = true}, LB_E_ARG, "center is given"},
        {{.dtype = LB_I8}, LB_E_DTYPE, "i8"},
        {{.dtype = LB_BOOL}, LB_E_DTYPE, "bool"},
    };
    lb_enter(cx);
    lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(2, 4), x);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        lb_quant_config how = row[i].how;
        how.format = "nf4";
        refused(cx, lb_quantize(cx, a, &how), row[i].status, row[i].word);
    }
    /* eformer accepts and ignores axes. */
    const lb_quant_config seed = {
        .format = "nf4", .axes = {1, {0}}, .compat = LB_COMPAT_EFORMER};
    CHECK(lb_quantize(cx, a, &seed));
    const lb_quant_config block = {.format = "nf4", .scale = LB_SCALE_BLOCK};
    CHECK(lb_quantize(cx, a, &block));
    /* Custom levels add an axis: then two are stored as one. */
    lb_array *deep = lb_from(cx, LB_F32, LB_SHAPE(1, 1, 1, 1, 1, 1, 2, 4), x);
    const lb_quant_config poly = {.format = "nf4", .decode = LB_DECODE_POLY};
    CHECK(lb_quantize(cx, deep, NULL));
    lb_array *q = lb_quantize(cx, deep, &poly);
    CHECK(q && lb_rank(q) == 8 && lb_rank(lb_component(cx, q, "table")) == 8);
    CHECK_EQ_S(lb_error(cx), "");
    lb_leave(cx);
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    if (!cx) return 1;
    test_edges(cx);
    test_all_16_bits(cx);
    test_made(cx);
    test_rows(cx);
    test_f64(cx);
    test_blocks(cx);
    test_extremes(cx);
    test_places(cx);
    test_bound(cx);
    test_refusals(cx);
    lb_close(cx);
    return check_report("nf4");
}
