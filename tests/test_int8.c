/* test_int8.c - int8 against the same rules in double precision, element by
 * element: compat modes, dtypes, groups that share a scale, meanings of a
 * scale. */
/* ctest: simde skip-tsan */
#include <float.h>

#include "codec.h"
#include "model.h"

enum { MOST = 127 };

/* ---- the rules, in double ------------------------------------------------ */

/* Of an array of n elements, group[i] shares a scale; scales are numbered in
 * the row-major order of `scales`. */
typedef struct {
    lb_shape shape, scales;
    int64_t n, groups;
    int64_t *group;
} grouping;

static grouping group_by(lb_shape shape, const lb_axes *axes, int64_t block)
{
    grouping g = {.shape = shape, .scales = shape, .n = model_size(&shape)};
    int64_t i[LB_MAX_RANK], by[LB_MAX_RANK];
    for (int k = 0; k < shape.rank; k++)
        by[k] = !axes->n && k == shape.rank - 1 ? 0 : 1;
    for (int a = 0; a < axes->n; a++)
        by[(axes->axis[a] + shape.rank) % shape.rank] = 0;
    if (block && shape.rank) by[shape.rank - 1] = block;
    for (int k = 0; k < shape.rank; k++)
        g.scales.dim[k] = by[k] ? (shape.dim[k] + by[k] - 1) / by[k] : 1;
    g.groups = model_size(&g.scales);
    g.group = (int64_t *)model_alloc((size_t)g.n * sizeof *g.group);
    for (int64_t e = 0; e < g.n; e++) {
        model_index(&shape, e, i);
        for (int k = 0; k < shape.rank; k++)
            i[k] = by[k] ? i[k] / by[k] : 0;
        g.group[e] = model_flat(&g.scales, i);
    }
    return g;
}

static double f32(double x)
{
    return codec_round(LB_F32, x);
}

static bool is_bnb(lb_compat c)
{
    return c == LB_COMPAT_BNB_CUDA || c == LB_COMPAT_BNB_CPU;
}

/* The step between values, from the largest of a group. */
static double step_of(lb_compat compat, lb_dtype d, double most)
{
    if (compat == LB_COMPAT_EFORMER) {
        const double tiny = d == LB_F16 ? 0x1p-14 : 0x1p-126;
        return codec_round(d, codec_round(d, most / MOST) + tiny);
    }
    const double s = f32(most / MOST);
    return isinf(f32(s * MOST)) ? (double)nextafterf((float)s, 0) : s;
}

static double code_of(lb_compat compat, lb_dtype d, double x, double most)
{
    double y;
    if (compat == LB_COMPAT_BNB_CUDA)
        y = f32(x * f32(MOST / most));
    else if (compat == LB_COMPAT_BNB_CPU)
        y = f32(x * f32(f32(1 / most) * MOST));
    else
        y = codec_round(d, x / step_of(compat, d, most));
    if (most == 0 || (!is_bnb(compat) && step_of(compat, d, most) == 0)) y = 0;
    y = nearbyint(y);
    return y > MOST ? MOST : y < -MOST ? -MOST : y;
}

/* Products are rounded to 24 bits with unlimited range. */
static double value_of(int meaning, lb_dtype d, double code, double s)
{
    if (meaning == LB_MEANS_ABSMAX)
        return f32(codec_digits(code * s, 24, -149) * f32(1.0 / MOST));
    return codec_round(d, meaning == LB_MEANS_INVERSE ? code / s : code * s);
}

/* ---- one array ----------------------------------------------------------- */

static void check_array(lb_ctx *cx, const lb_quant_config *c, lb_dtype from,
                        lb_shape shape, int kind)
{
    if (check_thins()) return;
    const bool eformer = c->compat == LB_COMPAT_EFORMER,
               bnb = is_bnb(c->compat);
    const lb_dtype d = eformer && from != LB_F64 ? from : LB_F32;
    const int meaning = bnb ? LB_MEANS_ABSMAX : (int)c->meaning;
    const grouping g = group_by(shape, &c->axes, eformer ? 0 : c->block_size);
    model x = model_new(shape), most = model_new(g.scales);
    model code = model_new(shape), scale = model_new(g.scales);
    model value = model_new(shape);
    codec_fill(kind, from, g.n, (uint64_t)(kind * 100 + shape.rank), x.v);
    lb_array *q = lb_quantize(cx, codec_array(cx, from, shape, x.v), c);
    CHECK_EQ_S(lb_error(cx), "");
    if (!q) return;
    for (int64_t i = 0; i < g.n; i++) {
        x.v[i] = codec_round(bnb ? LB_F16 : LB_F32, x.v[i]);
        most.v[g.group[i]] = fmax(most.v[g.group[i]], fabs(x.v[i]));
    }
    codec_read(cx, lb_codes(cx, q), g.n, code.v);
    lb_array *stored = lb_component(cx, q, "scale");
    codec_read(cx, stored, g.groups, scale.v);
    codec_read(cx, q, g.n, value.v);
    CHECK(stored && lb_shape_equal(&stored->shape, &g.scales));
    CHECK(stored && stored->dtype == d);
    CHECK(q->dtype == (c->dtype ? c->dtype : from));
    long bad = 0;
    for (int64_t k = 0; k < g.groups; k++) {
        const double s = step_of(c->compat, d, most.v[k]);
        const double want = meaning == LB_MEANS_ABSMAX    ? most.v[k]
                            : meaning == LB_MEANS_INVERSE ? f32(1 / s)
                                                          : s;
        bad += !codec_equal(scale.v[k], want);
    }
    for (int64_t i = 0; i < g.n; i++) {
        const double m = most.v[g.group[i]], s = scale.v[g.group[i]];
        bad += code.v[i] != code_of(c->compat, d, x.v[i], m);
        bad += !codec_equal(
            value.v[i],
            codec_round(q->dtype, value_of(meaning, d, code.v[i], s)));
    }
    CHECK_EQ_I(bad, 0);
    CHECK(codec_runs_agree(q, (uint64_t)kind));
    if (bad)
        fprintf(stderr, "%s from %s%s kind %d meaning %d block %lld\n",
                lb_compat_name(c->compat), lb_dtype_name(from), LB_SHOW(&shape),
                kind, meaning, (long long)c->block_size);
}

/* ---- tables -------------------------------------------------------------- */

static const lb_dtype dtypes[] = {LB_F32, LB_F16, LB_BF16, LB_F64};
static const lb_compat compats[] = {LB_COMPAT_NATIVE, LB_COMPAT_EFORMER,
                                    LB_COMPAT_BNB_CUDA, LB_COMPAT_BNB_CPU};

/* Values that bitsandbytes casts to f16 must be in its range. */
static bool fits(lb_compat compat, lb_dtype from, int kind)
{
    return !is_bnb(compat) || from == LB_F16 || kind != CODEC_HUGE;
}

static void axes_and_compat(lb_ctx *cx)
{
    static const struct {
        lb_shape shape;
        lb_axes axes;
    } row[] = {
        {{0}, {0}},
        {{1, {1}}, {0}},
        {{1, {7}}, {0}},
        {{1, {300}}, {1, {0}}},
        {{2, {5, 33}}, {0}},
        {{2, {5, 33}}, {1, {0}}},
        {{2, {5, 33}}, {2, {0, 1}}},
        {{2, {5, 33}}, {2, {-1, -2}}},
        {{2, {1, 1}}, {1, {-1}}},
        {{3, {3, 5, 31}}, {1, {1}}},
        {{3, {3, 5, 31}}, {2, {0, 2}}},
        {{3, {3, 5, 31}}, {3, {0, 1, 2}}},
        {{4, {2, 3, 4, 17}}, {2, {1, 3}}},
        {{8, {2, 1, 3, 1, 2, 2, 1, 3}}, {3, {7, 0, 4}}},
        {{2, {0, 4}}, {0}},
        {{2, {4, 0}}, {0}},
        {{2, {4, 0}}, {1, {0}}},
        {{3, {2, 0, 3}}, {1, {1}}},
        {{1, {0}}, {0}},
    };
    for (size_t r = 0; r < sizeof row / sizeof *row; r++)
        for (int c = 0; c < 4; c++)
            for (int d = 0; d < 4; d++)
                for (int kind = 0; kind < CODEC_KINDS; kind++) {
                    const lb_axes *a = &row[r].axes;
                    const bool last =
                        !a->n || (a->n == 1 &&
                                  (a->axis[0] == -1 || row[r].shape.rank == 1));
                    if (!fits(compats[c], dtypes[d], kind)) continue;
                    if (is_bnb(compats[c]) && !last) continue;
                    const lb_quant_config q = {
                        .format = "int8",
                        .axes = *a,
                        .compat = compats[c],
                        .block_size = compats[c] == LB_COMPAT_EFORMER ? 4 : 0,
                    };
                    lb_enter(cx);
                    check_array(cx, &q, dtypes[d], row[r].shape, kind);
                    lb_leave(cx);
                }
    model_end();
}

static void blocks_and_meanings(lb_ctx *cx)
{
    static const int64_t block[] = {0, 1, 3, 16, 64, 1000};
    static const lb_dtype label[] = {LB_NO_DTYPE, LB_F16, LB_BF16, LB_F64};
    const lb_shape shape[] = {LB_SHAPE(3, 70),
                              LB_SHAPE(2, 3, 5),
                              LB_SHAPE(2100),
                              LB_SHAPE(2, 0),
                              {0}};
    for (int s = 0; s < 5; s++)
        for (int b = 0; b < 6; b++)
            for (int m = 0; m < 3; m++)
                for (int kind = 0; kind < CODEC_KINDS; kind++) {
                    const lb_quant_config q = {
                        .format = "int8",
                        .block_size = block[b],
                        .axes = shape[s].rank ? *LB_AXES(-1) : (lb_axes){0},
                        .dtype = label[(b + m + kind) % 4],
                        .meaning = (lb_meaning)m,
                    };
                    lb_enter(cx);
                    check_array(cx, &q, dtypes[(b + kind) % 4], shape[s], kind);
                    lb_leave(cx);
                }
    /* Blocks with bitsandbytes' arithmetic. */
    for (int c = 2; c < 4; c++)
        check_array(cx,
                    &(lb_quant_config){.format = "int8",
                                       .block_size = 32,
                                       .compat = compats[c],
                                       .meaning = LB_MEANS_ABSMAX},
                    LB_F32, LB_SHAPE(3, 70), CODEC_HEAVY);
    model_end();
}

/* ---- numbers worked by hand ---------------------------------------------- */

static void by_hand(lb_ctx *cx)
{
    /* A step of 1/4: a tie rounds to the even neighbour. */
    const float x[] = {31.75f,  0.125f, 0.375f,  -0.125f,
                       -0.375f, 0.6f,   -31.75f, -0.0f};
    const int8_t want[] = {127, 0, 2, 0, -2, 2, -127, 0};
    const float value[] = {31.75f, 0, .5f, 0, -.5f, .5f, -31.75f, 0};
    lb_array *q = lb_quantize(cx, lb_from(cx, LB_F32, LB_SHAPE(8), x),
                              &(lb_quant_config){.format = "int8"});
    int8_t code[8];
    float got[8], scale;
    CHECK(lb_read(cx, lb_codes(cx, q), code, sizeof code));
    CHECK(lb_read(cx, lb_component(cx, q, "scale"), &scale, sizeof scale));
    CHECK(lb_read(cx, q, got, sizeof got));
    CHECK(!memcmp(code, want, sizeof code));
    CHECK(scale == 0.25f);
    CHECK(!memcmp(got, value, sizeof got)); /* -0 decodes to 0 */

    /* bf16: 1.328125/127 rounds down, the quotient to 127.5 and that to 128:
     * clamped. */
    const uint16_t b[] = {0xbfaa, 0x3faa};
    q = lb_quantize(
        cx, lb_from(cx, LB_BF16, LB_SHAPE(2), b),
        &(lb_quant_config){.format = "int8", .compat = LB_COMPAT_EFORMER});
    CHECK(lb_read(cx, lb_codes(cx, q), code, 2));
    CHECK(code[0] == -127 && code[1] == 127);

    /* f16: the smallest normal value is added to the scale, 0.08/127, and the
     * largest code is no longer 127. */
    const uint16_t h[] = {0x2d1f, 0xad1f};
    q = lb_quantize(
        cx, lb_from(cx, LB_F16, LB_SHAPE(2), h),
        &(lb_quant_config){.format = "int8", .compat = LB_COMPAT_EFORMER});
    CHECK(lb_read(cx, lb_codes(cx, q), code, 2));
    CHECK(code[0] == 116 && code[1] == -116);

    /* The largest f32 value decodes to a finite value, however it is stored. */
    const float most[] = {FLT_MAX, -FLT_MAX, FLT_MAX / 2, 0};
    for (int m = 0; m < 3; m++) {
        q = lb_quantize(
            cx, lb_from(cx, LB_F32, LB_SHAPE(4), most),
            &(lb_quant_config){.format = "int8", .meaning = (lb_meaning)m});
        CHECK(lb_read(cx, q, got, 16));
        for (int i = 0; i < 4; i++)
            CHECK_NEAR((double)got[i], (double)most[i],
                       (double)FLT_MAX * .51 / MOST);
    }
}

/* ---- threads and views --------------------------------------------------- */

static const lb_quant_config configs[] = {
    {.format = "int8"},
    {.format = "int8", .axes = {1, {0}}},
    {.format = "int8", .axes = {2, {0, 1}}, .meaning = LB_MEANS_INVERSE},
    {.format = "int8", .axes = {2, {0, 2}}, .compat = LB_COMPAT_EFORMER},
    {.format = "int8", .block_size = 24, .meaning = LB_MEANS_ABSMAX},
    {.format = "int8", .compat = LB_COMPAT_BNB_CPU},
    {.format = "int8", .compat = LB_COMPAT_BNB_CUDA, .dtype = LB_BF16},
};
enum { CONFIGS = sizeof configs / sizeof *configs };

/* Arrays of many tiles. */
static void large(lb_ctx *cx)
{
    const lb_shape shape[] = {LB_SHAPE(11, 40, 30), LB_SHAPE(2, 3, 4100),
                              LB_SHAPE(900, 3, 5)};
    for (int s = 0; s < 3; s++)
        for (int c = 0; c < CONFIGS; c++) {
            lb_enter(cx);
            check_array(cx, &configs[c], dtypes[(s + c) % 4], shape[s],
                        CODEC_HEAVY);
            lb_leave(cx);
            model_end();
        }
}

static void backward(lb_ctx *cx)
{
    const lb_shape shape = LB_SHAPE(5, 70, 90);
    double *x = (double *)model_alloc(5 * 70 * 90 * sizeof *x);
    codec_fill(CODEC_HEAVY, LB_BF16, 5 * 70 * 90, 5, x);
    lb_array *a = codec_array(cx, LB_BF16, shape, x);
    for (int c = 0; c < CONFIGS; c++) {
        size_t shared = 0;
        CHECK(codec_same(cx, lb_quantize(cx, a, &configs[c]),
                         codec_backward(cx, a, &configs[c], &shared)));
    }
    model_end();
}

static void threads(void)
{
    const lb_shape shape[] = {LB_SHAPE(9, 40, 300), LB_SHAPE(3000, 7, 2)};
    lb_ctx *cx[3];
    for (int t = 0; t < 3; t++)
        cx[t] = lb_open(&(lb_options){.threads = t == 2 ? 7 : t + 1});
    for (int s = 0; s < 2; s++)
        for (int d = 0; d < 3; d++) {
            model x = model_new(shape[s]);
            codec_fill(CODEC_HEAVY, dtypes[d], model_size(&shape[s]), 5, x.v);
            for (int c = 0; c < CONFIGS; c++) {
                lb_array *q[3];
                for (int t = 0; t < 3; t++) {
                    lb_enter(cx[t]);
                    q[t] = lb_quantize(
                        cx[t], codec_array(cx[t], dtypes[d], shape[s], x.v),
                        &configs[c]);
                }
                CHECK(codec_same(cx[0], q[0], q[1]));
                CHECK(codec_same(cx[0], q[0], q[2]));
                for (int t = 0; t < 3; t++)
                    lb_leave(cx[t]);
            }
            model_end();
        }
    for (int t = 0; t < 3; t++)
        lb_close(cx[t]);
}

static void views(lb_ctx *cx)
{
    const lb_shape shape = LB_SHAPE(5, 4, 70);
    for (int kind = 0; kind < MODEL_HIDDEN + MODEL_VIEWS; kind++)
        for (int d = 0; d < 4; d++) {
            const int view = kind % MODEL_HIDDEN;
            if (view >= MODEL_VIEWS || (kind >= MODEL_HIDDEN && d == 3))
                continue;
            const model x = model_make(shape, dtypes[d], kind, 9);
            for (int c = 0; c < CONFIGS; c++) {
                lb_enter(cx);
                CHECK(codec_same(
                    cx,
                    lb_quantize(cx, model_array(cx, &x, dtypes[d], kind),
                                &configs[c]),
                    lb_quantize(cx, codec_array(cx, dtypes[d], shape, x.v),
                                &configs[c])));
                CHECK_EQ_S(lb_error(cx), "");
                lb_leave(cx);
            }
        }
    model_end();
}

/* ---- parts, in and out --------------------------------------------------- */

static void round_trips(lb_ctx *cx)
{
    static const char *const eformer[] = {"weight", "scale"};
    static const char *const bnb[] = {"weight", "scb"};
    double x[12 * 20];
    codec_fill(CODEC_NORMAL, LB_BF16, 12 * 20, 3, x);
    lb_array *a = codec_array(cx, LB_BF16, LB_SHAPE(12, 20), x);
    lb_quant_config c = {
        .format = "int8", .axes = {1, {0}}, .compat = LB_COMPAT_EFORMER};
    lb_array *q = lb_quantize(cx, a, &c);
    lb_array *part[2] = {lb_export(cx, q, "eformer", "weight"),
                         lb_export(cx, q, "eformer", "scale")};
    CHECK(codec_same(
        cx, q,
        lb_from_parts(cx, &c, LB_SHAPE(12, 20), "eformer", eformer, part, 2)));
    CHECK(codec_same(cx, q, lb_from_codes(cx, &c, part[0], part[1])));
    /* The former names. */
    CHECK_EQ_I(LB_COMPAT_SEED, LB_COMPAT_EFORMER);
    CHECK(lb_export(cx, q, "seed", "weight"));
    CHECK(codec_same(
        cx, q,
        lb_from_parts(cx, &c, LB_SHAPE(12, 20), "seed", eformer, part, 2)));

    c = (lb_quant_config){.format = "int8", .compat = LB_COMPAT_BNB_CPU};
    q = lb_quantize(cx, a, &c);
    part[0] = lb_export(cx, q, "bnb", "weight");
    part[1] = lb_export(cx, q, "bnb", "scb");
    CHECK(part[1] && part[1]->shape.rank == 1 && part[1]->shape.dim[0] == 12);
    c = (lb_quant_config){.format = "int8", .dtype = LB_BF16};
    CHECK(codec_same(
        cx, q, lb_from_parts(cx, &c, LB_SHAPE(12, 20), "bnb", bnb, part, 2)));
    CHECK_EQ_S(lb_error(cx), "");

    /* A layout that cannot represent the array. */
    CHECK(codec_refused(cx, lb_export(cx, q, "eformer", "scale"),
                        LB_E_UNSUPPORTED));
    q = lb_quantize(cx, a,
                    &(lb_quant_config){.format = "int8", .block_size = 8});
    CHECK(codec_refused(cx, lb_export(cx, q, "eformer", "scale"),
                        LB_E_UNSUPPORTED));
    CHECK(codec_refused(cx, lb_export(cx, q, "bnb", "scb"), LB_E_UNSUPPORTED));
    q = lb_quantize(cx, a,
                    &(lb_quant_config){.format = "int8",
                                       .axes = {1, {0}},
                                       .meaning = LB_MEANS_ABSMAX});
    CHECK(codec_refused(cx, lb_export(cx, q, "bnb", "scb"), LB_E_UNSUPPORTED));
    CHECK(codec_refused(
        cx,
        lb_from_parts(cx, &c, LB_SHAPE(12, 20), "eformer", eformer, part, 1),
        LB_E_NULL));

    /* An invalid code. */
    int8_t code[12 * 20] = {0};
    code[47] = -128;
    part[0] = lb_from(cx, LB_I8, LB_SHAPE(12, 20), code);
    CHECK(!lb_from_parts(cx, &c, LB_SHAPE(12, 20), "bnb", bnb, part, 2));
    CHECK(strstr(lb_error(cx), "-128") && strstr(lb_error(cx), "47"));
    lb_clear(cx);
}

/* Quantized scales, and 16-bit scales of f32 values. */
static void other_scales(lb_ctx *cx)
{
    double x[40 * 30], code[40 * 30], scale[40], value[40 * 30];
    codec_fill(CODEC_NORMAL, LB_F32, 40 * 30, 8, x);
    const lb_quant_config c = {.format = "int8"};
    lb_array *q =
        lb_quantize(cx, codec_array(cx, LB_F32, LB_SHAPE(40, 30), x), &c);
    codec_read(cx, lb_codes(cx, q), 40 * 30, code);
    for (int kind = 0; kind < 3; kind++) {
        const lb_dtype d = kind == 1 ? LB_F16 : kind == 2 ? LB_BF16 : LB_F32;
        lb_array *other =
            kind
                ? lb_from_codes(
                      cx, &(lb_quant_config){.format = "int8", .dtype = LB_F32},
                      lb_codes(cx, q),
                      lb_convert(cx, lb_component(cx, q, "scale"), d))
                : lb_quantize_scales(cx, q);
        codec_read(cx, lb_component(cx, other, "scale"), 40, scale);
        codec_read(cx, other, 40 * 30, value);
        long bad = 0;
        for (int i = 0; i < 40 * 30; i++)
            bad +=
                !codec_equal(value[i], codec_round(d, code[i] * scale[i / 30]));
        CHECK_EQ_I(bad, 0);
        CHECK(other && codec_runs_agree(other, 1));
    }
    CHECK_EQ_S(lb_error(cx), "");
}

/* ---- refusals ------------------------------------------------------------ */

static void refusals(lb_ctx *cx)
{
    static const struct {
        lb_quant_config c;
        lb_status status;
    } row[] = {
        {{.dtype = LB_I8}, LB_E_DTYPE},
        {{.dtype = LB_I32, .compat = LB_COMPAT_EFORMER}, LB_E_DTYPE},
        {{.decode = LB_DECODE_POLY}, LB_E_ARG},
        {{.scale = LB_SCALE_NONE}, LB_E_ARG},
        {{.scale = LB_SCALE_TENSOR}, LB_E_ARG},
        {{.threshold = LB_THRESHOLD_ABSMEAN}, LB_E_ARG},
        {{.blocks = LB_BLOCKS_FLAT}, LB_E_ARG},
        {{.center = true}, LB_E_ARG},
        {{.meaning = LB_MEANS_INVERSE, .compat = LB_COMPAT_EFORMER}, LB_E_ARG},
        {{.meaning = LB_MEANS_ABSMAX, .compat = LB_COMPAT_EFORMER}, LB_E_ARG},
        {{.meaning = LB_MEANS_INVERSE, .compat = LB_COMPAT_BNB_CPU}, LB_E_ARG},
        {{.axes = {1, {0}}, .compat = LB_COMPAT_BNB_CUDA}, LB_E_AXIS},
        {{.axes = {2, {0, 1}}, .compat = LB_COMPAT_BNB_CPU}, LB_E_AXIS},
        {{.axes = {1, {0}}, .block_size = 8}, LB_E_AXIS},
        {{.axes = {1, {2}}}, LB_E_AXIS},
        {{.block_size = -1}, LB_E_ARG},
    };
    lb_array *a = lb_full(cx, LB_F32, LB_SHAPE(3, 5), 1);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        lb_quant_config c = row[i].c;
        c.format = "int8";
        CHECK(codec_refused(cx, lb_quantize(cx, a, &c), row[i].status));
    }
    CHECK(codec_refused(cx,
                        lb_quantize(cx, lb_full_int(cx, LB_I32, LB_SHAPE(3), 1),
                                    &(lb_quant_config){.format = "int8"}),
                        LB_E_DTYPE));
}

/* Values out of f16's range are reported with their index, or clamped. */
static void too_large_for_half(lb_ctx *cx)
{
    const float x[] = {1, 2, 65519, 3, -7e4f, 65520};
    lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(2, 3), x);
    lb_quant_config c = {.format = "int8", .compat = LB_COMPAT_BNB_CPU};
    CHECK(!lb_quantize(cx, a, &c));
    CHECK_EQ_I(lb_error_status(cx), LB_E_ARG);
    CHECK(strstr(lb_error(cx), "(1,1)") && strstr(lb_error(cx), "-70000"));
    lb_clear(cx);
    model wide = model_new(LB_SHAPE(2, 5000));
    wide.v[5000 + 4100] = -0x1p17;
    CHECK(!lb_quantize(cx, codec_array(cx, LB_F32, wide.shape, wide.v), &c));
    CHECK(strstr(lb_error(cx), "(1,4100)") != NULL);
    lb_clear(cx);
    c.on_nonfinite = LB_NONFINITE_CLAMP;
    lb_array *q = lb_quantize(cx, a, &c);
    float scale[2];
    int8_t code[6];
    CHECK(lb_read(cx, lb_component(cx, q, "scale"), scale, sizeof scale));
    CHECK(scale[0] == 65504 && scale[1] == 65504);
    CHECK(lb_read(cx, lb_codes(cx, q), code, sizeof code));
    CHECK(code[2] == 127 && code[4] == -127 && code[5] == 127);
    CHECK_EQ_S(lb_error(cx), "");
    model_end();
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    axes_and_compat(cx);
    blocks_and_meanings(cx);
    by_hand(cx);
    large(cx);
    backward(cx);
    threads();
    views(cx);
    round_trips(cx);
    other_scales(cx);
    refusals(cx);
    too_large_for_half(cx);
    lb_close(cx);
    return check_report("int8");
}
