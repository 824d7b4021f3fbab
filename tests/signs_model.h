/* signs_model.h - a reference for ternary and binary, in long double: codes,
 * bytes and scales. */
#ifndef LB_SIGNS_MODEL_H
#define LB_SIGNS_MODEL_H

#include "codec.h"
#include "model.h"

/* The defaults. */
static inline lb_scale signs_scale(const lb_quant_config *c)
{
    const bool none = c->compat == LB_COMPAT_EFORMER || c->dtype == LB_I8;
    return c->scale ? c->scale : none ? LB_SCALE_NONE : LB_SCALE_TENSOR;
}

static inline lb_dtype signs_label(const lb_quant_config *c, lb_dtype from)
{
    return c->dtype ? c->dtype : c->compat == LB_COMPAT_EFORMER ? LB_I8 : from;
}

/* Elements lo <= i < hi of a row share a scale. */
typedef struct {
    int64_t rows, cols, length, each;
    lb_shape scales;
} signs_groups;

static inline signs_groups signs_groups_of(const lb_quant_config *c,
                                           lb_shape shape)
{
    const lb_scale scale = signs_scale(c);
    const int last = shape.rank - 1;
    signs_groups g = {.rows = 1, .cols = last < 0 ? 1 : shape.dim[last]};
    for (int k = 0; k < last; k++)
        g.rows *= shape.dim[k];
    g.length = scale != LB_SCALE_BLOCK ? g.cols
               : c->block_size         ? c->block_size
                                       : 64;
    g.scales = shape;
    g.each = g.length ? (g.cols + g.length - 1) / g.length : 0;
    if (last >= 0) g.scales.dim[last] = scale == LB_SCALE_BLOCK ? g.each : 1;
    for (int k = 0; k < last; k++)
        if (scale == LB_SCALE_TENSOR || scale == LB_SCALE_NONE)
            g.scales.dim[k] = 1;
    return g;
}

/* Codes and scale of n values that share one scale. */
static inline double signs_encode(const lb_quant_config *c, bool binary,
                                  lb_dtype from, const double *x, int64_t n,
                                  double *code)
{
    long double sum = 0, m2 = 0, abs = 0, kept = 0;
    int64_t n_kept = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (long double)x[i];
        abs += (long double)fabs(x[i]);
    }
    for (int64_t i = 0; i < n; i++) {
        const long double d = (long double)x[i] - sum / (long double)n;
        m2 += d * d;
    }
    const double variance = n ? (double)(m2 / (long double)n) : 0;
    const double mean =
        n ? codec_round(LB_F32, (double)(abs / (long double)n)) : 0;
    const lb_dtype d = from == LB_F64 ? LB_F32 : from;
    double t = codec_round(LB_F32, sqrt(variance) / 2);
    if (c->compat == LB_COMPAT_EFORMER)
        t = codec_round(d, codec_round(d, sqrt(codec_round(d, variance))) / 2);
    for (int64_t i = 0; i < n; i++) {
        if (binary)
            code[i] = x[i] >= 0 ? 1 : -1;
        else if (c->threshold == LB_THRESHOLD_STD)
            code[i] = x[i] > t ? 1 : x[i] < -t ? -1 : 0;
        else
            code[i] =
                mean > 0 ? nearbyint(codec_round(LB_F32, x[i] / mean)) : 0;
        code[i] = code[i] > 1 ? 1 : code[i] < -1 ? -1 : code[i] + 0.0;
        if (code[i] != 0) {
            kept += (long double)fabs(x[i]);
            n_kept++;
        }
    }
    if (binary || c->threshold == LB_THRESHOLD_ABSMEAN) return mean;
    return n_kept ? codec_round(LB_F32, (double)(kept / (long double)n_kept))
                  : 0;
}

/* The bytes of a row: codes from the lowest bits up, then padding. */
static inline bool signs_bytes_equal(const uint8_t *byte, bool binary,
                                     const double *code, int64_t n)
{
    const int per = binary ? 8 : 4;
    for (int64_t b = 0; b < (n + per - 1) / per; b++) {
        int want = 0;
        for (int j = 0; j < per; j++) {
            const int64_t i = b * per + j;
            const int bits = binary ? (i < n && code[i] > 0)
                                    : (i < n ? (int)code[i] : 0) + 1;
            want |= bits << j * (8 / per);
        }
        if (byte[b] != want) return false;
    }
    return true;
}

/* The array of c and x, and everything stored in it. */
static inline bool signs_hold(lb_ctx *cx, const lb_quant_config *c, bool binary,
                              lb_dtype from, lb_shape shape, model x)
{
    const signs_groups g = signs_groups_of(c, shape);
    const lb_scale kind = signs_scale(c);
    const int64_t n = g.rows * g.cols, groups = model_size(&g.scales);
    const bool whole = kind == LB_SCALE_NONE || kind == LB_SCALE_TENSOR;
    model code = model_new(shape), got = model_new(shape);
    model want = model_new(g.scales), scale = model_new(g.scales);
    lb_array *q = lb_quantize(cx, codec_array(cx, from, shape, x.v), c);
    if (!q || q->dtype != signs_label(c, from)) return false;
    for (int64_t i = 0; i < n; i++)
        x.v[i] = codec_round(LB_F32, x.v[i]);
    for (int64_t k = 0; k < groups; k++) {
        const int64_t at = g.each ? k % g.each * g.length : 0;
        const int64_t first = whole ? 0 : (g.each ? k / g.each : k) * g.cols;
        const int64_t rest = g.cols - at;
        const int64_t m = whole ? n : rest < g.length ? rest : g.length;
        want.v[k] = signs_encode(c, binary, from, x.v + first + at, m,
                                 code.v + first + at);
        if (c->meaning == LB_MEANS_INVERSE)
            want.v[k] = codec_round(LB_F32, 1 / want.v[k]);
    }
    bool ok = codec_runs_agree(q, 7);
    lb_array *part = lb_component(cx, q, "codes");
    const int64_t bytes = (g.cols + (binary ? 7 : 3)) / (binary ? 8 : 4);
    ok = ok && part && lb_size(part) == g.rows * bytes;
    for (int64_t r = 0; r < g.rows && ok; r++)
        ok = signs_bytes_equal((uint8_t *)part->store->data + r * bytes, binary,
                               code.v + r * g.cols, g.cols);
    codec_read(cx, lb_codes(cx, q), n, got.v);
    for (int64_t i = 0; i < n; i++)
        ok = ok && got.v[i] == code.v[i];
    part = lb_component(cx, q, "scale");
    if (!part != (kind == LB_SCALE_NONE)) return false;
    if (part) {
        codec_read(cx, part, groups, scale.v);
        ok = ok && part->dtype == LB_F32 &&
             lb_shape_equal(&part->shape, &g.scales);
        for (int64_t k = 0; k < groups; k++)
            ok = ok && codec_equal(scale.v[k], want.v[k]);
    }
    codec_read(cx, q, n, got.v);
    for (int64_t i = 0; i < n && ok; i++) {
        const int64_t k =
            whole ? 0 : i / g.cols * g.each + i % g.cols / g.length;
        const double s = part ? scale.v[k] : 1;
        const double w = part && c->meaning == LB_MEANS_INVERSE
                             ? codec_round(LB_F32, code.v[i] / s)
                             : code.v[i] * s;
        ok = q->dtype == LB_I8
                 ? got.v[i] == w
                 : codec_equal(got.v[i], codec_round(q->dtype, w));
    }
    return ok;
}

static inline void signs_check(lb_ctx *cx, const lb_quant_config *c,
                               bool binary, lb_dtype from, lb_shape shape,
                               int kind)
{
    if (check_thins()) return;
    model x = model_new(shape);
    lb_enter(cx);
    codec_fill(kind, from, model_size(&shape), (uint64_t)kind, x.v);
    const bool ok = signs_hold(cx, c, binary, from, shape, x);
    CHECK(ok);
    CHECK_EQ_S(lb_error(cx), "");
    if (!ok)
        fprintf(stderr,
                "%s %s from %s%s to %s kind %d, scale %d block %lld, meaning "
                "%d threshold %d\n",
                c->format, lb_compat_name(c->compat), lb_dtype_name(from),
                LB_SHOW(&shape), lb_dtype_name(c->dtype), kind, (int)c->scale,
                (long long)c->block_size, (int)c->meaning, (int)c->threshold);
    lb_clear(cx);
    lb_leave(cx);
}

/* ---- shared loops -------------------------------------------------------- */

/* All choices of a scale; c: the other settings. */
static inline void signs_tables(lb_ctx *cx, lb_quant_config c, bool binary)
{
    static const lb_dtype from[] = {LB_F32, LB_F16, LB_BF16, LB_F64};
    const lb_shape shape[] = {{0},
                              LB_SHAPE(1),
                              LB_SHAPE(7),
                              LB_SHAPE(301),
                              LB_SHAPE(2600),
                              LB_SHAPE(5, 33),
                              LB_SHAPE(3, 520),
                              LB_SHAPE(70, 3),
                              LB_SHAPE(2, 3, 2, 17),
                              LB_SHAPE(0),
                              LB_SHAPE(3, 0),
                              LB_SHAPE(0, 3)};
    static const int64_t block[] = {0, 1, 5, 12, 64, 300, 1000};
    int turn = 0;
    for (int s = 0; s < 12; s++)
        for (int scale = 0; scale <= (int)LB_SCALE_BLOCK; scale++) {
            if (c.meaning && scale == LB_SCALE_NONE) continue; /* refused */
            for (int b = 0; b < (scale == LB_SCALE_BLOCK ? 7 : 1); b++)
                for (int kind = 0; kind < CODEC_KINDS; kind++, turn++) {
                    c.scale = (lb_scale)scale;
                    c.block_size = scale == LB_SCALE_BLOCK ? block[b] : 0;
                    c.dtype = turn % 3 ? LB_NO_DTYPE : from[turn / 3 % 4];
                    signs_check(cx, &c, binary, from[turn % 4], shape[s], kind);
                }
        }
    model_end();
}

/* Arrays of many chunks, and of more rows than chunks can be in flight. */
static inline void signs_large(lb_ctx *cx, const lb_quant_config *configs,
                               int n)
{
    const lb_shape shape[] = {LB_SHAPE(3, 5001), LB_SHAPE(70000, 2),
                              LB_SHAPE(20000)};
    for (int s = 0; s < 3; s++)
        for (int c = 0; c < n; c++) {
            signs_check(cx, &configs[c], !strcmp(configs[c].format, "binary"),
                        LB_F32, shape[s], c % 2 ? CODEC_HEAVY : CODEC_NORMAL);
            model_end();
        }
}

/* Units of work do not wait for each other; their shared memory is smaller than
 * the array. */
static inline void signs_backward(lb_ctx *cx, const lb_quant_config *configs,
                                  int n)
{
    const lb_shape shape[] = {LB_SHAPE(3, 7001), LB_SHAPE(70000, 2),
                              LB_SHAPE(40, 100)};
    for (int s = 0; s < 3; s++)
        for (int c = 0; c < n; c++) {
            size_t shared = 0;
            model x = model_new(shape[s]);
            lb_enter(cx);
            codec_fill(CODEC_HEAVY, LB_F32, model_size(&shape[s]), 5, x.v);
            lb_array *a = codec_array(cx, LB_F32, shape[s], x.v);
            CHECK(codec_same(cx, lb_quantize(cx, a, &configs[c]),
                             codec_backward(cx, a, &configs[c], &shared)));
            CHECK(shared < lb_nbytes(a));
            lb_leave(cx);
            model_end();
        }
}

static inline void signs_threads(const lb_quant_config *configs, int n)
{
    const lb_shape shape[] = {LB_SHAPE(9, 40, 300), LB_SHAPE(90000, 1),
                              LB_SHAPE(40, 7001)};
    static const int threads[] = {1, 2, 7};
    lb_ctx *cx[3];
    for (int t = 0; t < 3; t++)
        cx[t] = lb_open(&(lb_options){.threads = threads[t]});
    for (int s = 0; s < 3; s++) {
        model x = model_new(shape[s]);
        codec_fill(CODEC_HEAVY, LB_F32, model_size(&shape[s]), 5, x.v);
        for (int c = 0; c < n; c++) {
            lb_array *q[3];
            for (int t = 0; t < 3; t++) {
                lb_enter(cx[t]);
                q[t] = lb_quantize(cx[t],
                                   codec_array(cx[t], LB_F32, shape[s], x.v),
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

static inline void signs_views(lb_ctx *cx, const lb_quant_config *configs,
                               int n)
{
    const lb_shape shape = LB_SHAPE(5, 4, 70);
    for (int kind = 0; kind < MODEL_HIDDEN + MODEL_VIEWS; kind++) {
        if (kind % MODEL_HIDDEN >= MODEL_VIEWS) continue;
        const model x = model_make(shape, LB_F32, kind, 9);
        for (int c = 0; c < n; c++) {
            lb_enter(cx);
            CHECK(codec_same(
                cx,
                lb_quantize(cx, model_array(cx, &x, LB_F32, kind), &configs[c]),
                lb_quantize(cx, codec_array(cx, LB_F32, shape, x.v),
                            &configs[c])));
            CHECK_EQ_S(lb_error(cx), "");
            lb_leave(cx);
        }
    }
    model_end();
}

/* Export and import of four rows in a row of bytes; the bytes are counted here.
 */
static inline void signs_interleaved(lb_ctx *cx, const lb_quant_config *c,
                                     const char *layout, lb_shape shape)
{
    static const char *const name[] = {"packed", "scale"};
    const int64_t n = model_size(&shape);
    const int64_t rows = shape.rank ? shape.dim[0] : 1;
    const int64_t cols = rows ? n / rows : 0, R = (rows + 3) / 4;
    model x = model_new(shape), code = model_new(shape);
    codec_fill(CODEC_NORMAL, LB_F32, n, 11, x.v);
    lb_array *q = lb_quantize(cx, codec_array(cx, LB_F32, shape, x.v), c);
    lb_array *part[2] = {lb_export(cx, q, layout, "packed"),
                         lb_export(cx, q, layout, "scale")};
    CHECK_EQ_S(lb_error(cx), "");
    codec_read(cx, lb_codes(cx, q), n, code.v);
    lb_shape want = shape.rank ? shape : LB_SHAPE(1);
    want.dim[0] = R;
    CHECK(part[0] && part[0]->dtype == LB_U8 &&
          lb_shape_equal(&part[0]->shape, &want));
    long bad = 0;
    for (int64_t i = 0; part[0] && i < R * cols; i++) {
        int byte = 0;
        for (int64_t r = i / cols, k = 0; r < rows; r += R, k++)
            byte |= ((int)code.v[r * cols + i % cols] + 1) << 2 * k;
        bad += ((const uint8_t *)lb_data(part[0]))[i] != byte;
    }
    CHECK_EQ_I(bad, 0);
    lb_quant_config again = *c;
    again.threshold = LB_THRESHOLD_STD;
    again.dtype = q ? q->dtype : LB_NO_DTYPE;
    CHECK(codec_same(
        cx, q,
        lb_from_parts(cx, &again, shape, layout, name, part, part[1] ? 2 : 1)));
    CHECK_EQ_S(lb_error(cx), "");
    lb_clear(cx);
}

/* Invalid stored codes are reported with their element; padding is not checked.
 */
static inline void signs_bad_bits(lb_ctx *cx, const char *format, int bits,
                                  const char *code)
{
    static const char *const name[] = {"packed"};
    uint8_t byte[2 * 3] = {0};
    /* (5,3): rows 0, 2, 4 and padding; row 4 has bits 4 and 5 of byte row 0. */
    byte[0] = 3 << 6;
    byte[4] = 3 << 4;
    byte[1] = (uint8_t)(bits << 4);
    lb_array *part[] = {lb_from(cx, LB_U8, LB_SHAPE(2, 3), byte)};
    const lb_quant_config c = {.format = format};
    CHECK(!lb_from_parts(cx, &c, LB_SHAPE(5, 3), "eformer", name, part, 1));
    CHECK_EQ_I(lb_error_status(cx), LB_E_ARG);
    CHECK(strstr(lb_error(cx), "element 13") && strstr(lb_error(cx), code));
    lb_clear(cx);
    byte[1] = 0;
    part[0] = lb_from(cx, LB_U8, LB_SHAPE(2, 3), byte);
    lb_array *a =
        lb_from_parts(cx, &c, LB_SHAPE(5, 3), "eformer", name, part, 1);
    CHECK(a && a->dtype == LB_F32);
    const lb_quant_config old = {.format = format, .compat = LB_COMPAT_EFORMER};
    a = lb_from_parts(cx, &old, LB_SHAPE(5, 3), "eformer", name, part, 1);
    CHECK(a && a->dtype == LB_I8);
    static const char *const two[] = {"packed", "scale"};
    lb_array *both[] = {part[0], lb_full(cx, LB_BF16, LB_SHAPE(1), 2)};
    a = lb_from_parts(cx, &old, LB_SHAPE(5, 3), "eformer", two, both, 2);
    CHECK(a && a->dtype == LB_BF16 && lb_component(cx, a, "scale"));
    /* A wrong number of bytes for the shape. */
    CHECK(codec_refused(
        cx, lb_from_parts(cx, &c, LB_SHAPE(9, 3), "eformer", name, part, 1),
        LB_E_SHAPE));
    part[0] = lb_convert(cx, part[0], LB_I8);
    CHECK(codec_refused(
        cx, lb_from_parts(cx, &c, LB_SHAPE(5, 3), "eformer", name, part, 1),
        LB_E_DTYPE));
}

static inline void signs_refused(lb_ctx *cx, lb_array *a, const char *format,
                                 lb_quant_config c, lb_status status)
{
    c.format = format;
    CHECK(codec_refused(cx, lb_quantize(cx, a, &c), status));
}

/* Settings that neither format supports. */
static inline void signs_refusals(lb_ctx *cx, const char *format)
{
    static const struct {
        lb_quant_config c;
        lb_status status;
    } row[] = {
        {{.dtype = LB_I8, .scale = LB_SCALE_TENSOR}, LB_E_DTYPE},
        {{.dtype = LB_I8, .scale = LB_SCALE_BLOCK}, LB_E_DTYPE},
        {{.dtype = LB_I16}, LB_E_DTYPE},
        {{.dtype = LB_U8, .scale = LB_SCALE_NONE}, LB_E_DTYPE},
        {{.dtype = LB_BOOL, .compat = LB_COMPAT_EFORMER}, LB_E_DTYPE},
        {{.compat = LB_COMPAT_BNB_CPU}, LB_E_ARG},
        {{.compat = LB_COMPAT_BNB_CUDA}, LB_E_ARG},
        {{.compat = LB_COMPAT_EFORMER, .scale = LB_SCALE_ROW}, LB_E_ARG},
        {{.decode = LB_DECODE_POLY}, LB_E_ARG},
        {{.meaning = LB_MEANS_ABSMAX}, LB_E_ARG},
        {{.meaning = LB_MEANS_INVERSE, .scale = LB_SCALE_NONE}, LB_E_ARG},
        {{.blocks = LB_BLOCKS_FLAT}, LB_E_ARG},
        {{.block_size = 32}, LB_E_ARG},
        {{.block_size = 32, .scale = LB_SCALE_ROW}, LB_E_ARG},
        {{.axes = {1, {0}}}, LB_E_ARG},
        {{.center = true}, LB_E_ARG},
    };
    lb_array *a = lb_full(cx, LB_F32, LB_SHAPE(3, 5), 1);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        signs_refused(cx, a, format, row[i].c, row[i].status);
    /* eformer accepts and ignores blocks and axes. */
    CHECK(lb_quantize(cx, a,
                      &(lb_quant_config){.format = format,
                                         .compat = LB_COMPAT_EFORMER,
                                         .block_size = 64,
                                         .axes = {1, {0}}}));
    CHECK_EQ_S(lb_error(cx), "");
}

#endif
