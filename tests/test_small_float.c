/* test_small_float.c - floats of 8 and 4 bits: all values, codes of all ties,
 * scales of mxfp4 and mxfp8, at every level, against ml_dtypes and
 * compressed-tensors (tests/golden/small_float_values.h); codes without a
 * value. */
/* ctest: simde */
#include <stdlib.h>

#include "check.h"
#include "golden/small_float_values.h"
#include "lowbit_ext.h"

#define COUNT(A) ((int)(sizeof(A) / sizeof *(A)))

static const char *const names[] = {"codes", "scale"};

static bool same(float x, uint32_t want)
{
    uint32_t u = 0x7fc00000;
    if (!isnan(x)) memcpy(&u, &x, sizeof u);
    return u == want;
}

static uint64_t digest(const void *from, size_t n)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const uint8_t *)from)[i]) * 0x100000001b3;
    return h;
}

/* e8m0 with a meaning of 255. */
static lb_array *powers(lb_ctx *cx, const uint8_t *e, int64_t n, int meaning)
{
    const lb_shape shape = LB_SHAPE(n);
    lb_part table[LB_MAX_PARTS] = {0};
    lb_part_rows(&table[0], &shape, 1);
    table[0].a = lb_from(cx, LB_U8, shape, e);
    return lb_make(cx, lb_find_format(cx, "e8m0"), LB_F32, meaning, &shape,
                   table);
}

/* ---- values -------------------------------------------------------------- */

static void check_bytes(lb_ctx *cx, const char *format, const uint32_t *want)
{
    uint8_t code[256];
    float w[256];
    for (int i = 0; i < 256; i++)
        code[i] = (uint8_t)i;
    const lb_quant_config c = {.format = format,
                               .dtype = LB_F32,
                               .scale = strcmp(format, "e8m0") == 0
                                            ? LB_SCALE_DEFAULT
                                            : LB_SCALE_NONE};
    lb_array *part = lb_from(cx, LB_U8, LB_SHAPE(256), code);
    lb_array *a = lb_from_parts(cx, &c, LB_SHAPE(256), NULL, names, &part, 1);
    CHECK(lb_read(cx, a, w, sizeof w));
    for (int i = 0; i < 256; i++)
        if (check_fails(same(w[i], want[i])))
            fprintf(stderr, "%s: %d is %a\n", format, i, (double)w[i]);
}

static void check_halves(lb_ctx *cx)
{
    /* Odd lengths and starts; a scale of 3 for the first 16, then 1. */
    uint8_t byte[16];
    const float s[] = {3, 1};
    float w[31];
    for (int i = 0; i < 16; i++)
        byte[i] = (uint8_t)(i | ((i * 7 + 3) % 16) << 4);
    const lb_quant_config c = {.format = "nvfp4", .dtype = LB_F32};
    lb_array *part[] = {lb_from(cx, LB_U8, LB_SHAPE(16), byte),
                        lb_from(cx, LB_F32, LB_SHAPE(2), s)};
    lb_array *a = lb_from_parts(cx, &c, LB_SHAPE(31), NULL, names, part, 2);
    for (int64_t lo = 0; lo < 31; lo++) {
        const int64_t hi = 31;
        const int64_t n = hi - lo;
        CHECK(lb_read(cx, lb_slice(cx, a, &lo, &hi, NULL), w,
                      (size_t)n * sizeof *w));
        for (int64_t i = 0; i < n; i++) {
            const int64_t e = lo + i;
            float v;
            memcpy(&v,
                   &golden_e2m1[e % 2 ? byte[e / 2] >> 4 : byte[e / 2] & 15],
                   sizeof v);
            v *= s[e / 16];
            CHECK(memcmp(&v, &w[i], sizeof v) == 0);
        }
    }
}

/* The three meanings of 255, and the smallest scales. */
static void check_powers(lb_ctx *cx)
{
    static const uint8_t e[] = {0, 1, 255, 255};
    uint8_t code[64];
    float w[128];
    for (int i = 0; i < 64; i++)
        code[i] = (uint8_t)(i % 8 * 2 | (i % 8 * 2 + 1) << 4);
    for (int meaning = 0; meaning < 3; meaning++) {
        lb_array *scale = powers(cx, e, 4, meaning);
        CHECK(lb_read(cx, scale, w, 4 * sizeof *w));
        CHECK(w[0] == 0x1p-127f && w[1] == 0x1p-126f);
        CHECK(meaning ? isinf(w[2]) : isnan(w[2]));
        const lb_quant_config c = {.format = "mxfp4", .dtype = LB_F32};
        lb_array *part[] = {lb_from(cx, LB_U8, LB_SHAPE(64), code), scale};
        lb_array *a =
            lb_from_parts(cx, &c, LB_SHAPE(128), NULL, names, part, 2);
        CHECK(lb_read(cx, a, w, sizeof w));
        for (int i = 0; i < 128; i++) {
            float level;
            memcpy(&level, &golden_e2m1[i % 16], sizeof level);
            double want = ldexp((double)level, e[i / 32] - 127);
            if (e[i / 32] == 255 && meaning == 0) want = (double)NAN;
            if (e[i / 32] == 255 && meaning == 1)
                want = level != 0 ? copysign(INFINITY, level) : (double)NAN;
            const float v = (float)want;
            CHECK(isnan(want) ? isnan(w[i]) : memcmp(&v, &w[i], 4) == 0);
        }
    }
}

/* ---- codes --------------------------------------------------------------- */

static void check_codes(lb_ctx *cx, const char *format, const uint32_t *in,
                        const uint8_t *out, int n)
{
    const lb_quant_config c = {.format = format, .scale = LB_SCALE_NONE};
    lb_array *x =
        lb_bitcast_convert(cx, lb_from(cx, LB_U32, LB_SHAPE(n), in), LB_F32);
    lb_array *code = lb_codes(cx, lb_quantize(cx, x, &c));
    uint8_t *got = malloc((size_t)n);
    if (!got) abort();
    CHECK(lb_read(cx, lb_convert(cx, code, LB_U8), got, (size_t)n));
    for (int i = 0; i < n; i++)
        if (check_fails(got[i] == out[i]))
            fprintf(stderr, "%s: %08x is %d, not %d\n", format, in[i], got[i],
                    out[i]);
    free(got);
}

/* A 6 in each block makes its scale 1. */
static void check_e2m1(lb_ctx *cx)
{
    enum { N = COUNT(golden_e2m1_in) };
    float x[N * 32] = {0};
    uint8_t got[N * 32];
    for (int i = 0; i < N; i++) {
        memcpy(&x[32 * i], &golden_e2m1_in[i], sizeof *x);
        x[32 * i + 31] = 6;
    }
    lb_array *a = lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(N * 32), x),
                              &(lb_quant_config){.format = "mxfp4"});
    CHECK(lb_read(cx, lb_convert(cx, lb_codes(cx, a), LB_U8), got, sizeof got));
    for (int i = 0; i < N; i++)
        CHECK_EQ_I(got[32 * i], golden_e2m1_out[i]);
}

/* 448 keeps the scale with which it is a code (small_float_encode.c). */
static void check_scales(lb_ctx *cx, const char *format, const uint8_t *want)
{
    enum { N = COUNT(golden_most) };
    float x[N * 32] = {0};
    uint8_t got[N];
    for (int i = 0; i < N; i++)
        memcpy(&x[32 * i + i], &golden_most[i], sizeof *x);
    lb_array *a = lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(N, 32), x),
                              &(lb_quant_config){.format = format});
    lb_array *scale = lb_component(cx, a, "scale");
    CHECK_EQ_S(lb_format_of(scale), "e8m0");
    CHECK(lb_read(cx, lb_convert(cx, lb_codes(cx, scale), LB_U8), got,
                  sizeof got));
    for (int i = 0; i < N; i++) {
        const bool even = (golden_most[i] & 0x7fffff) == 0x600000;
        const bool mine = even && strcmp(format, "mxfp8") == 0;
        CHECK_EQ_I(got[i], want[i] - mine);
    }
}

static void check_arrays(lb_ctx *cx)
{
    enum { ROWS = 200, COLS = 300 };
    static float x[ROWS * COLS];
    uint32_t s = 7;
    for (int i = 0; i < ROWS * COLS; i++) {
        s = s * 1664525 + 1013904223;
        x[i] = (float)(((double)s - 0x1p31) * 0x1p-28);
    }
    for (int k = 0; k < COUNT(golden_arrays); k++) {
        lb_array *a =
            lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(ROWS, COLS), x),
                        &(lb_quant_config){.format = golden_arrays[k].name});
        lb_array *scale = lb_component(cx, a, "scale");
        lb_array *codes = lb_component(cx, a, "codes");
        CHECK_EQ_I(lb_size(scale), 6);
        if (!scale || !codes) continue;
        CHECK(digest(lb_data(codes), lb_nbytes(codes)) ==
              golden_arrays[k].codes);
        CHECK(digest(lb_data(scale), lb_nbytes(scale)) ==
              golden_arrays[k].scale);
    }
}

static void check_level(const char *isa)
{
    lb_ctx *cx = lb_open(&(lb_options){.isa = isa, .threads = 2});
    check_bytes(cx, "fp8_e4m3", golden_e4m3);
    check_bytes(cx, "fp8_e5m2", golden_e5m2);
    check_bytes(cx, "e8m0", golden_e8m0);
    check_halves(cx);
    check_powers(cx);
    check_codes(cx, "fp8_e4m3", golden_e4m3_in, golden_e4m3_out,
                COUNT(golden_e4m3_in));
    check_codes(cx, "fp8_e5m2", golden_e5m2_in, golden_e5m2_out,
                COUNT(golden_e5m2_in));
    check_e2m1(cx);
    check_scales(cx, "mxfp4", golden_scale4);
    check_scales(cx, "mxfp8", golden_scale8);
    check_arrays(cx);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
}

int main(void)
{
    const char *const best = lb_isa_best();
    check_level("ref");
    if (!strncmp(best, "avx512", 6) || !strcmp(best, "amx"))
        check_level("avx2");
    check_level(best);
    return check_report("test_small_float");
}
