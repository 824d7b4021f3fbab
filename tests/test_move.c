/* test_move.c - moves between formats, as a table: "=" has the same values, "~"
 * stays within an error that follows from the parameters' rounding, "x" is
 * declined. Both ends are decoded here again. What is moved there and back is
 * the same bytes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "core/move.h"
#include "lowbit_ext.h"

enum { ROWS = 9, ROW = 1024, N = ROWS * ROW };

static lb_ctx *cx;

/* ---- arrays -------------------------------------------------------------- */

static uint32_t draw_state = 1;
static uint32_t draw(void)
{
    draw_state = draw_state * 1664525 + 1013904223;
    return draw_state >> 8;
}

static uint16_t draw_half(void) /* of either sign, 2^-10 to 2^-2 */
{
    return (uint16_t)((5 + draw() % 8) << 10 | draw() % 1024 |
                      (draw() & 1) << 15);
}

/* Blocks of random codes and scales, whose f16 are at these bytes. */
static lb_array *of_blocks(const char *format, int len, int size, int d, int m)
{
    static const char *const name = "blocks";
    const int64_t n = N / len;
    uint8_t *raw = malloc((size_t)(n * size));
    if (!raw) abort();
    for (int64_t i = 0; i < n * size; i++)
        raw[i] = (uint8_t)(draw() & 0xff);
    uint16_t h = 0; /* both of the same magnitude */
    for (int64_t b = 0; b < n; b++)
        for (int k = 0; k < 2; k++) {
            if (!k) h = draw_half();
            if (k) h = (uint16_t)((h & 0x7c00) | draw() % 1024);
            const int at = k ? m : d;
            if (at >= 0) memcpy(raw + b * size + at, &h, sizeof h);
            if (!strcmp(format, "gguf_mxfp4"))
                raw[b * size] %= 250; /* finite */
        }
    lb_array *part = lb_from(cx, LB_U8, LB_SHAPE(ROWS, ROW / len, size), raw);
    free(raw);
    const lb_quant_config c = {.format = format, .dtype = LB_F32};
    return lb_from_parts(cx, &c, LB_SHAPE(ROWS, ROW), NULL, &name, &part, 1);
}

static lb_array *quantized(const lb_quant_config *c)
{
    const lb_shape shape = LB_SHAPE(ROWS, ROW);
    return lb_quantize(
        cx, lb_random_normal(cx, (lb_key){.seed = 3}, LB_F32, shape), c);
}

static lb_array *source(const char *name)
{
    static const struct {
        const char *format;
        int len, size, d, m;
    } blocks[] = {
        {"q4_0", 32, 18, 0, -1},     {"q4_1", 32, 20, 0, 2},
        {"q5_0", 32, 22, 0, -1},     {"q5_1", 32, 24, 0, 2},
        {"q8_0", 32, 34, 0, -1},     {"q2_0", 64, 18, 0, -1},
        {"q1_0", 128, 18, 0, -1},    {"tq2_0", 256, 66, 64, -1},
        {"q2_k", 256, 84, 80, 82},   {"q3_k", 256, 110, 108, -1},
        {"q4_k", 256, 144, 0, 2},    {"q5_k", 256, 176, 0, 2},
        {"q6_k", 256, 210, 208, -1}, {"iq4_nl", 32, 18, 0, -1},
        {"iq4_xs", 256, 136, 0, -1}, {"gguf_mxfp4", 32, 17, -1, -1},
        {"iq2_s", 256, 82, 0, -1},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (!strcmp(blocks[i].format, name))
            return of_blocks(name, blocks[i].len, blocks[i].size, blocks[i].d,
                             blocks[i].m);
    if (!strcmp(name, "int8 absmax"))
        return quantized(
            &(lb_quant_config){.format = "int8", .meaning = LB_MEANS_ABSMAX});
    if (!strcmp(name, "int8 inverse"))
        return quantized(
            &(lb_quant_config){.format = "int8", .meaning = LB_MEANS_INVERSE});
    if (!strcmp(name, "int4") || !strcmp(name, "int4 zero"))
        return quantized(&(lb_quant_config){
            .format = "int4", .block_size = 128, .center = name[4] == ' '});
    if (!strcmp(name, "ternary rows"))
        return quantized(
            &(lb_quant_config){.format = "ternary", .scale = LB_SCALE_ROW});
    return quantized(&(lb_quant_config){.format = name});
}

/* ---- targets ------------------------------------------------------------- */

/* FORMAT GROUP [zero] [bias] [f16] for the affine formats. */
static lb_move_target target(const char *name)
{
    enum { SCALE = 1, ZERO = 2, BIAS = 3 };
    static char format[32];
    lb_move_target t = {.config = {.format = format}};
    long long group = 0;
    if (sscanf(name, "%31s %lld", format, &group) < 2) return t;
    t.config.block_size = group;
    const lb_dtype scale = strstr(name, "f16") ? LB_F16 : LB_F32;
    t.elem[SCALE] = scale;
    if (strstr(name, "zero")) t.elem[ZERO] = LB_U8;
    if (strstr(name, "bias")) t.elem[BIAS] = scale;
    return t;
}

/* ---- the table ----------------------------------------------------------- */

/* limit: 0 "=", > 0 "~" with that nrmse at most, < 0 "x". */
static const struct {
    const char *from, *to;
    double limit;
} table[] = {
    {"q4_0", "q4_0", 0},
    {"q4_0", "q4_1", 0},
    {"q4_0", "q5_0", 0},
    {"q4_0", "q5_1", 0},
    {"q4_0", "q8_0", 0},
    {"q4_0", "int8", -1}, /* scales of 32 are not one scale per row */
    {"q4_0", "tq2_0", -1},
    {"q4_1", "q5_1", 0},
    {"q4_1", "q4_0", -1}, /* real minimum */
    {"q5_0", "q5_1", 0},
    {"q5_0", "q8_0", 0},
    {"q5_0", "q4_0", -1},
    {"q5_1", "q8_0", -1},
    {"q8_0", "q4_0", -1},
    {"q2_0", "q4_0", 0},
    {"q2_0", "q4_1", 0},
    {"q2_0", "tq2_0", -1}, /* scales of 64 */
    {"tq2_0", "q2_0", 0},
    {"tq1_0", "tq2_0", 0},
    {"tq1_0", "q2_0", 0},
    {"tq1_0", "q8_0", 0},
    {"q1_0", "q4_1", 0},
    {"q1_0", "q4_0", -1},
    {"q3_k", "q4_0", -1},
    {"q4_k", "q4_1", 0.003}, /* d * sc has 17 bits */
    {"q6_k", "q8_0", -1},
    {"iq4_xs", "iq4_nl", 0x1p-11},
    {"iq4_nl", "q4_0", -1},
    {"iq2_s", "q4_0", -1},
    {"gguf_mxfp4", "gguf_mxfp4", 0},
    {"gguf_mxfp4", "q8_0", -1},
    {"gguf_mxfp4", "mxfp4", 0},
    {"mxfp4", "gguf_mxfp4", 0},
    /* f32 scales to f16: half an ulp of 11 bits */
    {"int8", "q8_0", 0x1p-11},
    {"int8 absmax", "q8_0", 0x1p-11 + 0x1p-22},
    {"int8 inverse", "q8_0", 0x1p-11 + 0x1p-22},
    {"ternary", "tq2_0", 0x1p-11},
    {"ternary", "tq1_0", 0x1p-11},
    {"ternary", "q2_0", 0x1p-11},
    {"ternary rows", "q8_0", 0x1p-11},
    {"binary", "q1_0", 0x1p-11},
    {"nf4", "iq4_nl", -1},
    /* What GPTQ, AWQ, compressed-tensors and MLX store */
    {"q4_0", "int4 32 f16", 0},
    {"q4_0", "int4 32 zero f16", 0},
    {"q4_0", "int4 32 bias", 0},
    {"q4_0", "int4 16 f16", 0},
    {"q4_0", "int4 128 f16", -1},
    {"q4_0", "int3 32 f16", -1},
    {"q4_0", "uint8 32 bias", 0},
    {"q4_1", "int4 32 bias", 0},
    {"q4_1", "int4 32 zero f16", -1},
    {"q5_0", "int5 32 f16", 0},
    {"q5_0", "int5 32 bias", 0},
    {"q5_1", "int5 32 bias", 0},
    {"q8_0", "uint8 32 f16", 0},
    {"q8_0", "uint8 32 bias", 0},
    {"q2_0", "int2 64 zero f16", 0},
    {"q1_0", "int1 128 bias", 0},
    {"q2_k", "int2 16 bias", 0},
    {"q3_k", "int3 16", 0},
    {"q4_k", "int4 32 bias", 0},
    {"q4_k", "int4 32 bias f16", 0.0025},
    {"q4_k", "int4 64 bias", -1},
    {"q5_k", "int5 32 bias", 0},
    {"q6_k", "int6 16", 0},
    {"q6_k", "int6 32", -1},
    {"int4", "int4 128 zero", 0},
    /* The same real numbers, but the product of an f32 is rounded first */
    {"int4", "int4 64 bias", 1e-7},
    {"int4", "int5 32 bias", 1e-7},
    {"int4", "q4_0", 0x1p-11},
    {"int4 zero", "int4 128 bias", 2e-7}, /* scale * zero has 28 bits */
    {"int4 zero", "q4_0", -1},
    {"int4 zero", "q4_1", 0.0012},
    {"int8", "uint8 128 bias", 1e-7},
    {"mxfp4", "int4 32 f16", -1},
};

static void read_f32(lb_array *a, float *to)
{
    lb_enter(cx);
    CHECK(lb_read(cx, lb_convert(cx, a, LB_F32), to, N * sizeof *to));
    lb_leave(cx);
}

static double error_of(lb_array *a, lb_array *b, bool *same)
{
    static float x[N], y[N];
    double dd = 0, aa = 0;
    read_f32(a, x);
    read_f32(b, y);
    *same = true;
    for (int i = 0; i < N; i++) {
        *same &= x[i] == y[i];
        dd += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        aa += (double)x[i] * (double)x[i];
    }
    return aa > 0 ? sqrt(dd / aa) : 0;
}

static bool same_bytes(const lb_array *a, const lb_array *b)
{
    const lb_store *s = a->store, *t = b->store;
    if (s->fmt != t->fmt || !s->data != !t->data) return false;
    if (s->data)
        return s->data_size == t->data_size &&
               memcmp(s->data, t->data, s->data_size) == 0;
    bool same = true;
    for (int p = 0; same && p < LB_MAX_PARTS; p++) {
        const lb_array *c = s->part[p].a, *d = t->part[p].a;
        same = !c == !d && (!c || same_bytes(c, d));
    }
    return same;
}

static void check_row(int i)
{
    lb_array *a = source(table[i].from), *b = NULL, *back = NULL;
    lb_move m;
    bool same = false;
    const lb_move_target to = target(table[i].to);
    const lb_verdict v = lb_move_array(cx, a, &to, &b, &m);
    bool ok = v == (table[i].limit < 0 ? LB_DECLINED : LB_DONE) &&
              !lb_error_status(cx) && (v == LB_DONE) == !m.why[0];
    double error = 0;
    if (ok && v == LB_DONE) {
        error = error_of(a, b, &same);
        const double counted = m.sums.aa > 0 ? sqrt(m.sums.dd / m.sums.aa) : 0;
        ok = (!same || m.exact) && same == (table[i].limit == 0) &&
             error <= table[i].limit && fabs(counted - error) <= 1e-5 * error;
    }
    if (check_fails(ok))
        fprintf(stderr, "%s -> %s: verdict %d, error %g, exact %d: %s%s\n",
                table[i].from, table[i].to, (int)v, error, m.exact, m.why,
                lb_error(cx));
    /* Moved back, where that is possible, it is the same bytes. */
    const bool affine = !strncmp(table[i].from, "int4", 4);
    const lb_move_target from = {
        .config = {.format = lb_format_of(a), .block_size = affine ? 128 : 0}};
    if (v == LB_DONE && table[i].limit == 0 &&
        lb_move_array(cx, b, &from, &back, &m) == LB_DONE &&
        check_fails(m.exact && same_bytes(a, back)))
        fprintf(stderr, "%s -> %s: other bytes when moved back\n",
                table[i].from, table[i].to);
    lb_clear(cx);
}

/* ---- edges --------------------------------------------------------------- */

/* Values that no code denotes are never rounded silently. */
static void test_edges(void)
{
    static const char *const name = "blocks";
    static const struct {
        uint16_t d;
        const char *why; /* NULL: moved */
    } row[] = {
        {0x0001, NULL}, /* subnormal */
        {0x8000, NULL}, /* -0 */
        {0x7bff, NULL}, /* the largest */
        {0x7c00, "not finite"}, {0x7e00, "not finite"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        uint8_t raw[18];
        bool same = false;
        lb_move m;
        lb_array *b;
        memcpy(raw, &row[i].d, 2);
        for (int k = 2; k < 18; k++)
            raw[k] = (uint8_t)(draw() & 0xff);
        lb_array *part = lb_from(cx, LB_U8, LB_SHAPE(1, 1, 18), raw);
        const lb_quant_config c = {.format = "q4_0", .dtype = LB_F32};
        lb_array *a =
            lb_from_parts(cx, &c, LB_SHAPE(1, 32), NULL, &name, &part, 1);
        const lb_move_target to = {.config = {.format = "q8_0"}};
        const lb_verdict v = lb_move_array(cx, a, &to, &b, &m);
        CHECK(v == (row[i].why ? LB_DECLINED : LB_DONE));
        if (row[i].why) CHECK(strstr(m.why, row[i].why));
        if (v != LB_DONE) continue;
        float x[32], y[32];
        CHECK(lb_read(cx, a, x, sizeof x) && lb_read(cx, b, y, sizeof y));
        same = true;
        for (int k = 0; k < 32; k++) /* a zero scale loses the sign of zero */
            same &= x[k] == y[k];
        CHECK(same);
    }
}

/* A transposed view is read down its columns; rows may end within a block. */
static void test_views(void)
{
    lb_move m;
    lb_array *b;
    const lb_quant_config down = {.format = "int8",
                                  .axes = {.n = 1, .axis = {0}}};
    const lb_move_target to = {.config = {.format = "q8_0"}};
    lb_array *x =
        lb_random_normal(cx, (lb_key){.seed = 5}, LB_F32, LB_SHAPE(300, 70));
    lb_array *t = lb_transpose(cx, lb_quantize(cx, x, &down), NULL);
    CHECK(lb_move_array(cx, t, &to, &b, &m) == LB_DONE);
    CHECK(m.sums.dd <= m.sums.aa * 0x1p-22 && m.steps < 0.0625);
    lb_array *whole = lb_transpose(cx, t, NULL);
    CHECK(lb_move_array(cx, whole, &to, &b, &m) == LB_DECLINED);
    CHECK(strstr(m.why, "parameters of their own"));
}

/* Files may store zero points of any integer dtype. */
static void test_far_zeros(void)
{
    static const char *const name[] = {"codes", "scale", "zero"};
    static const int64_t zero[] = {INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX,
                                   (int64_t)1 << 32};
    const lb_quant_config c = {.format = "int4", .scale = LB_SCALE_ROW};
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++) {
        lb_move m;
        lb_array *b;
        lb_array *part[] = {lb_zeros(cx, LB_U8, LB_SHAPE(1, 16)),
                            lb_full(cx, LB_F32, LB_SHAPE(1, 1), 1),
                            lb_full_int(cx, LB_I64, LB_SHAPE(1, 1), zero[i])};
        lb_array *a =
            lb_from_parts(cx, &c, LB_SHAPE(1, 32), NULL, name, part, 3);
        const lb_move_target to = {.config = {.format = "q8_0"}};
        CHECK(lb_move_array(cx, a, &to, &b, &m) == LB_DECLINED);
        CHECK(strstr(m.why, "zero point is out of range"));
    }
}

int main(void)
{
    cx = lb_open(&(lb_options){.threads = 2});
    for (int i = 0; i < (int)(sizeof table / sizeof *table); i++) {
        lb_enter(cx);
        check_row(i);
        lb_leave(cx);
    }
    test_edges();
    test_views();
    test_far_zeros();
    lb_close(cx);
    return check_report("move");
}
