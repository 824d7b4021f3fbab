/* test_dynamic8.c - dynamic8: the codebook, every rule at every boundary
 * between codes, bytes made by bitsandbytes and numpy, blocks and rows of any
 * length, the subtracted mean, decoding from any offset, scales in another
 * format, and errors. */
/* ctest: simde */
#include <float.h>

#include "codec.h"

enum { LEVELS = 256, ZERO = 127 };

/* ---- the map ------------------------------------------------------------- */

static float map[LEVELS];

/* The library's decoded codes for an absmax of 1. */
static void test_map(lb_ctx *cx)
{
    uint8_t code[LEVELS];
    const float one = 1;
    for (int c = 0; c < LEVELS; c++)
        code[c] = (uint8_t)c;
    lb_enter(cx);
    lb_array *a = lb_from_codes(cx, &(lb_quant_config){.format = "dynamic8"},
                                lb_from(cx, LB_U8, LB_SHAPE(LEVELS), code),
                                lb_from(cx, LB_F32, LB_SHAPE(1), &one));
    CHECK(lb_read(cx, a, map, sizeof map));
    lb_leave(cx);
    /* The bytes of create_dynamic_map() of bitsandbytes 0.50.2, by FNV-1a. */
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < sizeof map; i++)
        hash = (hash ^ ((const uint8_t *)map)[i]) * 0x100000001b3;
    CHECK(hash == 0xd677f22a96665bc4);
    /* And their values. */
    CHECK(map[ZERO] == 0 && map[LEVELS - 1] == 1);
    int c = ZERO + 1;
    for (int k = 0; k < 7; k++)
        for (int j = 0; j < 1 << k; j++, c++) {
            const double want =
                pow(10, k - 6) * (0.1 + 0.9 * (j + 0.5) / (1 << k));
            CHECK(number_ulps(LB_F32, map[c], want) < 3);
            CHECK(map[2 * ZERO - c] == -map[c]);
        }
    CHECK_EQ_I(c, LEVELS - 1);
}

/* ---- the rules ----------------------------------------------------------- */

static float middle(int c)
{
    return 0.5f * (map[c] + map[c + 1]);
}

/* The nearest level for each of 65,536 values from -1 to 1, the lower one on a
 * tie: bitsandbytes on a CPU. */
static const uint8_t *places(void)
{
    static uint8_t place[65536];
    int c = 0;
    for (int i = 0; i < 65536; i++) {
        const float v = -1.0f + 2.0f * (float)i / 65535.0f;
        while (c < LEVELS - 1 && middle(c) < v)
            c++;
        place[i] = (uint8_t)c;
    }
    return place;
}

static int place_code(float v)
{
    static const uint8_t *place;
    if (!place) place = places();
    if (!(v >= -1)) return place[0];
    const float i = floorf((fminf(v, 1) + 1.0f) * 0.5f * 65535.0f + 0.5f);
    return place[(int)i];
}

/* The nearest, the even one on a tie: on a GPU. */
static int nearest_code(float v)
{
    int c = 0;
    if (isnan(v)) return 0;
    while (c < LEVELS - 1 && v > middle(c))
        c++;
    return c < LEVELS - 1 && v == middle(c) && c % 2 ? c + 1 : c;
}

static int code_of(lb_compat compat, float x, float absmax)
{
    const float inverse = 1.0f / absmax;
    if (compat == LB_COMPAT_BNB_CUDA) return nearest_code(x * inverse);
    if (compat == LB_COMPAT_BNB_CPU) return place_code(x * inverse);
    return x == 0 ? ZERO : place_code(x / absmax);
}

static const lb_compat compats[] = {LB_COMPAT_NATIVE, LB_COMPAT_BNB_CUDA,
                                    LB_COMPAT_BNB_CPU};

static bool same_f32(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Bytes of a part. */
static const void *part_data(lb_ctx *cx, lb_array *a, const char *name)
{
    lb_array *part = a ? lb_component(cx, a, name) : NULL;
    CHECK(part && lb_data(part));
    return part ? lb_data(part) : NULL;
}

/* n values from -1 to 1, unscaled because the first element is 1. */
static void check_codes(lb_ctx *cx, const float *v, int n)
{
    enum { BLOCK = 256 };
    float x[BLOCK];
    for (int at = 0; at < n; at += BLOCK - 1)
        for (int k = 0; k < 3; k++) {
            const int m = n - at < BLOCK - 1 ? n - at : BLOCK - 1;
            x[0] = 1;
            memcpy(x + 1, v + at, (size_t)m * sizeof *x);
            lb_enter(cx);
            lb_array *q = lb_quantize(
                cx, lb_from(cx, LB_F32, LB_SHAPE(m + 1), x),
                &(lb_quant_config){.format = "dynamic8", .compat = compats[k]});
            const uint8_t *code = part_data(cx, q, "codes");
            for (int i = 0; code && i <= m; i++)
                if (check_fails(code[i] == code_of(compats[k], x[i], 1)))
                    fprintf(stderr, "%s: %a is %d, not %d\n",
                            lb_compat_name(compats[k]), x[i], code[i],
                            code_of(compats[k], x[i], 1));
            lb_leave(cx);
        }
}

/* Around each midpoint, each level, and many boundaries of the lookup table. */
static void test_edges(lb_ctx *cx)
{
    enum { AROUND = 3, MOST = 65536 };
    static float v[MOST];
    int n = 0;
    for (int c = 0; c < 4 * LEVELS; c++) {
        uint64_t state = (uint64_t)c;
        const double border =
            (double)(2 * (number_draw(&state) % 65535) + 1) / 65535 - 1;
        float at = c < LEVELS - 1   ? middle(c)
                   : c < 2 * LEVELS ? map[c % LEVELS]
                                    : (float)border;
        for (int k = 0; k < AROUND; k++)
            at = nextafterf(at, -2);
        for (int k = 0; k <= 2 * AROUND; k++, at = nextafterf(at, 2))
            if (fabsf(at) <= 1) v[n++] = at;
    }
    check_codes(cx, v, n);
}

/* ---- against the packages ------------------------------------------------ */

enum { MADE = 41 };
typedef struct {
    lb_dtype dtype;
    uint32_t x[MADE];     /* bits; a block of 32 and a short one, whose ... */
    const char *codes[3]; /* ... absmax comes first; in the order of compats */
} made;

/* Values midway between two codes, or one or two ulp from there, where the
 * rules differ; and a zero. native, bnb-cuda: numpy 2.4, each step in f32.
 * bnb-cpu: bitsandbytes 0.50.2 with torch 2.15, quantize_blockwise(x,
 * blocksize=32). */
/* clang-format off */
static const made table[] = {
    {LB_F32,
     {
     0x3f9140bc, 0x3b47de30, 0xbf2c08ad, 0x3f4cb73f, 0x3f891518, 0x3f1fc734,
     0xbbcc841b, 0x00000000, 0x3d2422c0, 0x3d729280, 0x3f90be02, 0xbf8f35d4,
     0xbf759171, 0xbf7dbd15, 0xbc6e36f8, 0x3f2c08ae, 0xba239ce4, 0x3d99f7d3,
     0x3f27f2db, 0xbf448b97, 0x3f759173, 0xbd865be1, 0xbba2aee6, 0x3f50cd10,
     0x3f1385c0, 0x3f0f6fed, 0x3c4461c1, 0xbc1a8c8e, 0x3d586d41, 0x3f4075c6,
     0x3e9c2597, 0x3a668b9b, 0x3f27b15f, 0x3d7d3759, 0xbccc95d5, 0xbe8e03d0,
     0xbd047a36, 0x3e4722a2, 0x3ed00b3f, 0xbe764c85, 0x3e764c84,
     },
     {"ff921de9fbdf677fa8aeff010b085fe173b2e016f34e69eadbda9f62abe7cb8d"
       "ffbd552952cce42dd1",
      "ff911ceafade687fa7adfe000a095ee274b3e117f44f6aebdcdb9e63ace6ca8c"
       "ffbc562851cde32cd2",
      "ff921de9fbdf6783a8aeff010b085fe173b2e016f34e69eadbda9f62abe7cb8d"
       "ffbd552952cce42dd1"}},
    {LB_F16,
     {
     0x3860, 0x8df0, 0xb4d0, 0x12ff, 0x1dea, 0x9cf9, 0x9b6b, 0x0000, 0x18e4,
     0x8bd7, 0x1f2d, 0x31b0, 0x2387, 0x27b3, 0x0df2, 0x3171, 0xb54e, 0x1605,
     0x21f3, 0xa387, 0xafee, 0x1989, 0x079e, 0x09d5, 0x3491, 0x9746, 0xa7b3,
     0xa2bc, 0x14c5, 0x879f, 0x0cec, 0x3369, 0x3df4, 0xaaba, 0x9569, 0x0fef,
     0x2254, 0xabcc, 0x9a7c, 0x1f87, 0x2cb4,
     },
     {"ff731f909f62657f95749fcfa4af8bcd1b92a35a37958788dc6b4f5a90778bd5"
       "ff5670889c546e95ac",
      "ff72208f9e61667f9475a0cea5ae8cce1c91a25936968889dd6c505b91768ad6"
       "ff5771899b556d96ad",
      "ff731f909f62658395749fcfa4af8bcd1b92a35a37958788dc6b4f5a90778bd5"
       "ff5670889c546e95ac"}},
    {LB_BF16,
     {
     0x3fa0, 0x3f54, 0x3bb3, 0xbf30, 0xbec7, 0xba7c, 0x3f8e, 0x0000, 0xbf97,
     0xbf1e, 0xba0e, 0xbf27, 0xbf8e, 0xbf42, 0x3b5c, 0x3eac, 0xbeac, 0x3ab5,
     0xb9d7, 0x3eeb, 0x3a0e, 0x3ec7, 0xb98c, 0xbe5a, 0xbf97, 0xba0d, 0xbf8e,
     0x3b5c, 0x3ab5, 0x3eeb, 0x39d7, 0x3f54, 0x3fa0, 0x3db8, 0x3a0f, 0x3bb3,
     0xbf27, 0xb9d7, 0x3b85, 0xbf8e, 0xbddc,
     },
     {"ffe7951f3171f77f03247422071b92cb338f76d18acd773b037407928fd188e7"
       "ffb58a952276930745",
      "ffe694203072f67f04237521081c91ca348e75d289ce763a047508918ed289e6"
       "ffb489942175920844",
      "ffe7951f3171f78303247422071b92cb338f76d18acd773b037407928fd188e7"
       "ffb58a952276930745"}},
};
/* clang-format on */

static void check_made(lb_ctx *cx, const made *m, int k)
{
    float x[MADE], y[MADE];
    for (int i = 0; i < MADE; i++)
        x[i] = (float)number_from_float(m->dtype, m->x[i]);
    lb_array *a =
        lb_convert(cx, lb_from(cx, LB_F32, LB_SHAPE(MADE), x), m->dtype);
    lb_array *q = lb_quantize(cx, a,
                              &(lb_quant_config){.format = "dynamic8",
                                                 .block_size = 32,
                                                 .compat = compats[k]});
    const uint8_t *code = part_data(cx, q, "codes");
    const float *absmax = part_data(cx, q, "absmax");
    if (!code || !absmax) return;
    CHECK(same_f32(absmax[0], x[0]) && same_f32(absmax[1], x[32]));
    CHECK(lb_read(cx, lb_convert(cx, q, LB_F32), y, sizeof y));
    for (int i = 0; i < MADE; i++) {
        unsigned want = 0;
        CHECK_EQ_I(sscanf(m->codes[k] + 2 * i, "%2x", &want), 1);
        CHECK_EQ_I(code[i], want);
        CHECK(same_f32(y[i], map[want] * absmax[i / 32]));
    }
    CHECK_EQ_I(lb_dtype_of(q), m->dtype);
}

static void test_made(lb_ctx *cx)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int k = 0; k < 3; k++) {
            lb_enter(cx);
            check_made(cx, &table[i], k);
            lb_leave(cx);
        }
}

/* ---- blocks, rows and means ---------------------------------------------- */

enum { MOST = 8192 };

static void fill(uint64_t seed, int64_t n, float *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((int64_t)(number_draw(&seed) >> 40) - (1 << 22)) /
               (float)(1 << 20);
}

/* f64 sums of chunks of 256 elements of a row, added in their order. */
static float mean_of(const float *x, int64_t size, int64_t row)
{
    double all = 0;
    for (int64_t r = 0; row && r < size / row; r++)
        for (int64_t at = 0; at < row; at += 256) {
            double sum = 0;
            for (int64_t i = at; i < row && i < at + 256; i++)
                sum += x[r * row + i];
            all += sum;
        }
    return size ? (float)(all / (double)size) : 0;
}

static void check_rows(lb_ctx *cx, lb_shape shape, const float *x,
                       lb_quant_config how)
{
    static float y[MOST];
    const int64_t size = lb_shape_size(&shape);
    const int64_t row = how.blocks == LB_BLOCKS_FLAT || !shape.rank
                            ? size
                            : shape.dim[shape.rank - 1];
    const int64_t block = how.block_size ? how.block_size : 256;
    const int64_t each = row / block + (row % block != 0);
    const int64_t rows = row ? size / row : 0;
    const float mean = how.center ? mean_of(x, size, row) : 0;
    how.format = "dynamic8";
    lb_enter(cx);
    lb_array *q = lb_quantize(cx, lb_from(cx, LB_F32, shape, x), &how);
    CHECK(q && lb_read(cx, q, y, (size_t)size * sizeof *y));
    CHECK_EQ_S(lb_error(cx), "");
    lb_shape got = lb_shape_of(q);
    CHECK(lb_shape_equal(&got, &shape));
    const uint8_t *code = q ? lb_data(q->store->part[0].a) : NULL;
    const float *absmax = q ? lb_data(q->store->part[1].a) : NULL;
    const lb_array *offset = q ? q->store->part[3].a : NULL;
    CHECK_EQ_I(lb_size(q ? q->store->part[1].a : NULL), rows * each);
    CHECK(how.center == (offset != NULL));
    if (offset) CHECK(same_f32(*(const float *)lb_data(offset), mean));
    for (int64_t b = 0; q && b < rows * each; b++) {
        const int64_t first = b / each * row + b % each * block;
        const int64_t left = row - b % each * block;
        const int64_t n = left < block ? left : block;
        float most = 0;
        for (int64_t i = first; i < first + n; i++)
            most = fmaxf(most, fabsf(x[i] - mean));
        CHECK(same_f32(absmax[b], most));
        for (int64_t i = first; i < first + n; i++) {
            const int c = code_of(how.compat, x[i] - mean, most);
            float want = map[c] * most;
            if (how.center) want += mean;
            CHECK_EQ_I(code[i], c);
            CHECK(same_f32(y[i], want));
        }
    }
    lb_leave(cx);
}

static void test_rows(lb_ctx *cx)
{
    static float x[MOST];
    static const int64_t blocks[] = {0, 1, 3, 64, 256, 4096, INT64_MAX};
    fill(1, MOST, x);
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
        for (int k = 0; k < 4; k++) {
            lb_quant_config how = {.block_size = blocks[b],
                                   .blocks = (lb_blocks)(1 + k % 2),
                                   .center = k / 2};
            for (int64_t n = 0; n <= 9; n++)
                check_rows(cx, LB_SHAPE(n), x, how);
            check_rows(cx, lb_shape_make(0, NULL), x, how);
            check_rows(cx, LB_SHAPE(3, 5), x, how);
            check_rows(cx, LB_SHAPE(3, 0), x, how);
            check_rows(cx, LB_SHAPE(0, 7), x, how);
            check_rows(cx, LB_SHAPE(7, 257), x, how);
            check_rows(cx, LB_SHAPE(2, 3, 700), x, how);
            check_rows(cx, LB_SHAPE(5000), x, how);
            check_rows(cx, LB_SHAPE(1, 1, 2, 1, 1, 1, 1, 9), x, how);
            how.compat = LB_COMPAT_BNB_CPU;
            check_rows(cx, LB_SHAPE(5, 300), x, how);
            how.compat = LB_COMPAT_BNB_CUDA;
            check_rows(cx, LB_SHAPE(5, 300), x, how);
        }
}

/* A sum that depends on its order: large values that cancel absorb what was
 * added before; on any number of threads. */
static void test_order(void)
{
    static float x[MOST];
    static const int64_t at[][2] = {{0, 255}, {0, 300},    {255, 256}, {300, 2},
                                    {640, 3}, {700, 1000}, {2, 1500}};
    const lb_quant_config how = {.center = true};
    for (int threads = 1; threads <= 7; threads += 3) {
        lb_ctx *cx = lb_open(&(lb_options){.threads = threads});
        if (!cx) continue;
        for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
            fill(i, MOST, x);
            x[at[i][0]] = 0x1p80f;
            x[at[i][1]] = -0x1p80f;
            check_rows(cx, LB_SHAPE(1600), x, how);
            check_rows(cx, LB_SHAPE(5, 320), x, how);
        }
        lb_close(cx);
    }
}

/* Blocks cross rows in bitsandbytes' modes, unless configured otherwise. */
static void test_blocks(lb_ctx *cx)
{
    static const float x[12];
    for (int c = 0; c < 3; c++)
        for (int k = 0; k < 3; k++) {
            const bool flat = k ? k == LB_BLOCKS_FLAT : c > 0;
            lb_enter(cx);
            lb_array *q =
                lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(2, 6), x),
                            &(lb_quant_config){.format = "dynamic8",
                                               .compat = compats[c],
                                               .blocks = (lb_blocks)k});
            const lb_shape want = flat ? LB_SHAPE(12) : LB_SHAPE(2, 6);
            CHECK(q && lb_shape_equal(&q->store->shape, &want));
            CHECK_EQ_I(q ? q->store->part[1].g[flat ? 0 : 1] : 0, 256);
            lb_leave(cx);
        }
}

/* Zeros keep their position; blocks of zeros, of the smallest and of the
 * largest values: block of 4, row of 6. */
static void test_extremes(lb_ctx *cx)
{
    static const float row[][6] = {
        {0, -0.0f, 0, 0, -0.0f, 0},
        {0, 3, -0.0f, -3, 1e-20f, -1e-20f},
        {0x1p-149f, -0x1p-149f, 0, 0x1p-148f, -0x1p-130f, 0},
        {FLT_MAX, -FLT_MAX, 0, FLT_MAX / 2, -FLT_MAX, 1},
        {FLT_MIN, -FLT_MIN, 0, FLT_MIN / 2, -FLT_MIN, 1e-45f},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int k = 0; k < 3; k++)
            check_rows(cx, LB_SHAPE(6), row[i],
                       (lb_quant_config){
                           .block_size = 4,
                           .compat = compats[k],
                       });
    lb_enter(cx);
    float y[6];
    lb_array *q = lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(6), row[1]),
                              &(lb_quant_config){.format = "dynamic8"});
    CHECK(lb_read(cx, q, y, sizeof y) && y[0] == 0 && y[2] == 0);
    /* bitsandbytes' code for a block of zeros is 0 on both. */
    for (int k = 0; k < 3; k++) {
        q = lb_quantize(
            cx, lb_from(cx, LB_F32, LB_SHAPE(6), row[0]),
            &(lb_quant_config){.format = "dynamic8", .compat = compats[k]});
        const uint8_t *code = part_data(cx, q, "codes");
        for (int i = 0; code && i < 6; i++)
            CHECK_EQ_I(code[i], k ? 0 : ZERO);
    }
    /* Differences from the mean overflow f32: absmax is its largest value, and
     * decoded values may be infinite, but not NaN. */
    const float far[] = {FLT_MAX, -FLT_MAX, -FLT_MAX, -FLT_MAX};
    q = lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(4), far),
                    &(lb_quant_config){.format = "dynamic8", .center = true});
    const float *absmax = part_data(cx, q, "absmax");
    CHECK(absmax && *absmax == FLT_MAX);
    CHECK(lb_read(cx, q, y, 4 * sizeof *y) && y[0] == FLT_MAX / 2);
    for (int i = 1; i < 4; i++)
        CHECK(y[i] < -0.98f * FLT_MAX);
    CHECK_EQ_S(lb_error(cx), "");
    lb_leave(cx);
}

/* The error of every value of a block is within the bound. */
static void test_bound(lb_ctx *cx)
{
    static float x[MOST], y[MOST];
    const lb_format *fmt = lb_find_format(cx, "dynamic8");
    for (int i = 0; i < MOST; i++)
        x[i] = (float)(i - MOST / 2) / (MOST / 2);
    for (int k = 0; k < 3; k++) {
        double worst = 0;
        lb_enter(cx);
        lb_array *q = lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(MOST), x),
                                  &(lb_quant_config){.format = "dynamic8",
                                                     .block_size = MOST,
                                                     .compat = compats[k]});
        CHECK(lb_read(cx, q, y, sizeof y));
        for (int i = 0; i < MOST; i++)
            if (fabs((double)y[i] - x[i]) > worst)
                worst = fabs((double)y[i] - x[i]);
        const lb_quant how = {.format = fmt, .compat = compats[k]};
        CHECK(worst <= fmt->bound(&how) && worst > 0.007);
        CHECK(fmt->bound(&how) < 0.0071);
        lb_leave(cx);
    }
}

/* ---- decode -------------------------------------------------------------- */

static void test_places(lb_ctx *cx)
{
    static float x[1000];
    fill(9, 1000, x);
    const lb_quant_config how[] = {
        {.format = "dynamic8", .block_size = 7},
        {.format = "dynamic8", .blocks = LB_BLOCKS_FLAT, .center = true},
        {.format = "dynamic8", .block_size = 2, .double_quant = true},
    };
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        lb_enter(cx);
        codec_every_run(
            cx,
            lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(3, 67), x), &how[i]));
        codec_every_run(
            cx,
            lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(900), x), &how[i]));
        CHECK_EQ_S(lb_error(cx), "");
        lb_leave(cx);
    }
}

/* Custom levels and offset, in any dtype. */
static void test_parts(lb_ctx *cx)
{
    static const char *const name[] = {"codes", "absmax", "table", "offset"};
    static const uint8_t code[] = {0, 1, 254, 255, 7, 128};
    const float absmax[] = {0.1f, 3}, offset = 0.7f;
    float own[LEVELS], y[6];
    for (int c = 0; c < LEVELS; c++)
        own[c] = 1.0f / (float)(c + 3);
    lb_enter(cx);
    lb_array *part[] = {
        lb_from(cx, LB_U8, LB_SHAPE(6), code),
        lb_from(cx, LB_F32, LB_SHAPE(2), absmax),
        lb_from(cx, LB_F32, LB_SHAPE(1, LEVELS), own),
        lb_from(cx, LB_F32, LB_SHAPE(1), &offset),
    };
    const lb_quant_config how = {
        .format = "dynamic8", .block_size = 4, .blocks = LB_BLOCKS_FLAT};
    lb_array *a = lb_from_parts(cx, &how, LB_SHAPE(2, 3), NULL, name, part, 4);
    CHECK(lb_read(cx, a, y, sizeof y));
    for (int i = 0; i < 6; i++) {
        const float product = own[code[i]] * absmax[i / 4];
        CHECK(same_f32(y[i], product + offset));
    }
    codec_every_run(cx, a);
    a = lb_from_parts(cx, &how, LB_SHAPE(2, 3), NULL, name, part, 2);
    CHECK(lb_read(cx, a, y, sizeof y));
    for (int i = 0; i < 6; i++)
        CHECK(same_f32(y[i], map[code[i]] * absmax[i / 4]));
    CHECK_EQ_S(lb_error(cx), "");
    lb_leave(cx);
}

/* ---- scales of another format -------------------------------------------- */

/* The scales become one flat row of 8-bit codes around their mean; the codes
 * are unchanged, and decode to their old value over the old scale times the
 * new. (This is bitsandbytes' double quantization.) */
static void test_scales(lb_ctx *cx)
{
    enum { R = 9, C = 2 * 64 * 30 };
    static float x[R * C], y[R * C], z[R * C], scale[R * C / 64];
    fill(77, R * C, x);
    lb_enter(cx);
    lb_array *a = lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(R, C), x), NULL);
    lb_array *b = lb_quantize_scales(cx, a);
    lb_array *absmax = lb_component(cx, a, "absmax");
    lb_array *nested = b ? b->store->part[1].a : NULL;
    CHECK_EQ_S(lb_format_of(nested), "dynamic8");
    CHECK(lb_read(cx, absmax, scale, sizeof scale));
    const float mean = mean_of(scale, R * C / 64, R * C / 64);
    const float *offset = part_data(cx, nested, "offset");
    CHECK(offset && same_f32(*offset, mean));
    const uint8_t *code = part_data(cx, nested, "codes");
    const float *most = part_data(cx, nested, "absmax");
    CHECK(lb_read(cx, a, y, sizeof y) && lb_read(cx, b, z, sizeof z));
    lb_array *levels = lb_codes(cx, b);
    const uint8_t *level = levels ? lb_data(levels) : NULL;
    float unit[16];
    lb_array *codes16 =
        lb_reshape(cx, lb_iota(cx, LB_U8, LB_SHAPE(16), 0), LB_SHAPE(16));
    const float one = 1;
    CHECK(lb_read(cx,
                  lb_from_codes(cx, NULL, codes16,
                                lb_from(cx, LB_F32, LB_SHAPE(1), &one)),
                  unit, sizeof unit));
    for (int i = 0; level && code && most && i < R * C; i++) {
        const int s = i / 64;
        const float product = map[code[s]] * most[s / 256];
        const float want = product + mean;
        CHECK(same_f32(z[i], unit[level[i]] * want));
    }
    CHECK(lb_nbytes(b) < lb_nbytes(a));
    CHECK_EQ_S(lb_error(cx), "");
    lb_leave(cx);
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
        {{.block_size = -2}, LB_E_ARG, "-2"},
        {{.axes = {1, {1}}}, LB_E_AXIS, "axis 1"},
        {{.compat = LB_COMPAT_EFORMER}, LB_E_ARG, "eformer"},
        {{.scale = LB_SCALE_NONE}, LB_E_ARG, "scale none"},
        {{.scale = LB_SCALE_ROW}, LB_E_ARG, "scale row"},
        {{.meaning = LB_MEANS_INVERSE}, LB_E_ARG, "meaning is inverse"},
        {{.threshold = LB_THRESHOLD_ABSMEAN}, LB_E_ARG, "threshold is absmean"},
        {{.decode = LB_DECODE_POLY}, LB_E_ARG, "decode is poly"},
        {{.dtype = LB_U8}, LB_E_DTYPE, "u8"},
    };
    lb_enter(cx);
    lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(2, 4), x);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        lb_quant_config how = row[i].how;
        how.format = "dynamic8";
        CHECK(!lb_quantize(cx, a, &how));
        CHECK_EQ_I(lb_error_status(cx), row[i].status);
        if (check_fails(strstr(lb_error(cx), row[i].word) != NULL))
            fprintf(stderr, "error \"%s\" does not contain \"%s\"\n",
                    lb_error(cx), row[i].word);
        lb_clear(cx);
    }
    lb_leave(cx);
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    if (!cx) return 1;
    test_map(cx);
    test_edges(cx);
    test_made(cx);
    test_rows(cx);
    test_order();
    test_blocks(cx);
    test_extremes(cx);
    test_bound(cx);
    test_places(cx);
    test_parts(cx);
    test_scales(cx);
    test_refusals(cx);
    lb_close(cx);
    return check_report("dynamic8");
}
