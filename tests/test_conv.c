/* test_conv.c - conv_general_dilated against the definition.
 *
 * The model dilates and pads the input, dilates and reverses the kernel, and
 * slides one over the other; it shares none of the library's shortcuts. Values
 * are small integers, so the result is exact in every dtype except for the
 * final rounding.
 */
#include "lowbit_params.h"
#include "model.h"

static bool is_float(lb_dtype d)
{
    return d >= LB_F32 && d <= LB_F64;
}

typedef struct {
    lb_shape lhs, rhs;
    lb_conv_dims d;
} conv_case;

#define FAR (INT64_C(1) << 62)
static const conv_case cases[] = {
    {{4, {2, 3, 6, 5}}, {4, {4, 3, 3, 2}}, {.lhs = ""}},
    {{4, {1, 2, 7, 7}},
     {4, {3, 2, 3, 3}},
     {.pad_lo = {1, 2}, .pad_hi = {2, 1}, .stride = {2, 3}}},
    {{3, {2, 9, 3}},
     {3, {3, 3, 4}},
     {.lhs = "b0f", .rhs = "0io", .out = "b0f", .rhs_dilation = {2}}},
    {{3, {2, 3, 9}}, {3, {4, 3, 2}}, {.stride = {4}, .pad_lo = {3}}},
    {{4, {1, 2, 4, 5}},
     {4, {2, 2, 2, 2}},
     {.lhs_dilation = {2, 3}, .pad_lo = {-1, 0}, .pad_hi = {1, -1}}},
    {{4, {2, 2, 4, 5}},
     {4, {2, 2, 3, 2}},
     {.lhs_dilation = {3, 2},
      .rhs_dilation = {2, 3},
      .stride = {2, 3},
      .pad_lo = {4, 3},
      .pad_hi = {5, 4},
      .reversal = {true, true}}},
    {{4, {2, 4, 5, 5}},
     {4, {6, 2, 3, 3}},
     {.feature_groups = 2, .reversal = {true, false}}},
    {{4, {2, 6, 5, 5}}, {4, {12, 1, 3, 3}}, {.feature_groups = 6}},
    {{4, {1, 7, 7, 6}},
     {4, {3, 3, 1, 6}},
     {.lhs = "b01f",
      .rhs = "01io",
      .out = "b01f",
      .feature_groups = 6,
      .pad_lo = {1, 1},
      .pad_hi = {1, 1}}},
    {{4, {4, 3, 5, 4}},
     {4, {4, 3, 2, 2}},
     {.batch_groups = 2, .reversal = {false, true}}},
    {{4, {6, 5, 4, 2}},
     {4, {2, 2, 2, 6}},
     {.lhs = "b01f", .rhs = "01io", .out = "01bf", .batch_groups = 3}},
    {{5, {2, 3, 4, 3, 2}},
     {5, {2, 2, 2, 2, 3}},
     {.lhs = "b012f", .rhs = "012io", .out = "bf012"}},
    {{5, {2, 2, 5, 4, 6}},
     {5, {3, 2, 2, 3, 2}},
     {.stride = {2, 1, 3},
      .pad_lo = {1, 0, 2},
      .pad_hi = {0, 1, 1},
      .rhs_dilation = {1, 1, 2},
      .lhs_dilation = {1, 2, 1}}},
    {{3, {3, 4, 8}},
     {3, {8, 1, 3}},
     {.lhs = "0bf",
      .rhs = "oi0",
      .out = "f0b",
      .feature_groups = 8,
      .pad_lo = {2}}},
    {{4, {1, 8, 6, 7}}, {4, {5, 8, 1, 1}}, {.lhs = ""}}, /* single elements */
    {{4, {3, 8, 6, 7}}, {4, {5, 8, 1, 1}}, {.stride = {2, 3}}},
    {{4, {3, 6, 7, 8}},
     {4, {1, 1, 8, 9}},
     {.lhs = "b01f", .rhs = "01io", .out = "b01f"}},
    {{4, {3, 8, 6, 7}}, {4, {5, 8, 1, 1}}, {.pad_hi = {-1, 2}}},
    {{4, {3, 8, 6, 7}}, {4, {4, 4, 1, 1}}, {.feature_groups = 2}},
    {{2, {3, 4}}, {2, {5, 4}}, {.lhs = ""}}, /* no spatial axis */
    {{2, {4, 6}},
     {2, {4, 5}},
     {.lhs = "fb", .rhs = "io", .out = "fb", .stride = {0}}},
    {{4, {0, 3, 6, 5}}, {4, {4, 3, 3, 2}}, {.lhs = ""}},
    {{4, {1, 2, 2, 2}}, {4, {1, 2, 3, 3}}, {.lhs = ""}}, /* no place */
    {{4, {2, 0, 4, 4}}, {4, {3, 0, 2, 2}}, {.lhs = ""}},
    {{4, {2, 3, 0, 4}}, {4, {3, 3, 2, 2}}, {.pad_lo = {2, 0}}},
    {{3, {2, 3, 4}}, {3, {2, 3, 0}}, {.lhs = ""}}, /* an empty kernel */
    {{3, {2, 3, 4}}, {3, {0, 3, 2}}, {.lhs = ""}},
    {{3, {2, 3, 4}}, {3, {2, 3, 2}}, {.pad_lo = {-3}, .pad_hi = {-3}}},
    {{3, {1, 2, 40}}, {3, {2, 2, 5}}, {.pad_lo = {30}, .pad_hi = {50}}},
    {{4, {2, 40, 9, 9}}, {4, {20, 40, 3, 3}}, {.pad_lo = {1, 1}}}, /* deep */
    /* strides past the end, and past everything but padding */
    {{4, {2, 3, 6, 5}}, {4, {4, 3, 1, 1}}, {.stride = {FAR, FAR}}},
    {{4, {2, 3, 6, 5}}, {4, {4, 3, 3, 2}}, {.stride = {FAR, FAR}}},
    {{3, {2, 5, 3}},
     {3, {3, 3, 4}},
     {.lhs = "b0f",
      .rhs = "0io",
      .out = "b0f",
      .stride = {FAR - 8},
      .pad_lo = {1},
      .pad_hi = {FAR - 8}}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- the model ----------------------------------------------------------- */

/* Axes of letters and digits: {first, second, 0, 1, 2}. */
static void read_axes(const char *text, const char *letters, int rank,
                      int axis[5])
{
    const char plain[] = {letters[0], letters[1], '0', '1', '2'};
    for (int k = 0; k < rank; k++) {
        const char x = text[0] ? text[k] : plain[k];
        axis[x == letters[0] ? 0 : x == letters[1] ? 1 : 2 + x - '0'] = k;
    }
}

static int64_t or_one(int64_t x)
{
    return x ? x : 1;
}

static int64_t dilated(int64_t n, int64_t by)
{
    return n ? (n - 1) * by + 1 : 0;
}

/* One spatial axis: the padded input and the window positions. */
typedef struct {
    int64_t padded, places;
} extent;

static extent extent_of(const conv_case *c, int k, int64_t in, int64_t kernel)
{
    extent e = {dilated(in, or_one(c->d.lhs_dilation[k])) + c->d.pad_lo[k] +
                    c->d.pad_hi[k],
                0};
    const int64_t window = dilated(kernel, or_one(c->d.rhs_dilation[k]));
    for (int64_t at = 0; at + window <= e.padded && e.padded > 0;
         at += or_one(c->d.stride[k]))
        e.places++;
    return e;
}

/* The input element at a position of the padded one; -1: a zero. */
static int64_t source(const conv_case *c, int k, int64_t in, int64_t at)
{
    const int64_t by = or_one(c->d.lhs_dilation[k]);
    for (int64_t i = 0; i < in; i++)
        if (i * by + c->d.pad_lo[k] == at) return i;
    return -1;
}

static model model_conv(const conv_case *c, const model *x, const model *w)
{
    const int rank = c->lhs.rank, ns = rank - 2;
    int l[5] = {0}, r[5] = {0}, o[5] = {0};
    read_axes(c->d.lhs, "bf", rank, l);
    read_axes(c->d.rhs, "oi", rank, r);
    read_axes(c->d.out, "bf", rank, o);
    const int64_t fg = or_one(c->d.feature_groups);
    const int64_t bg = or_one(c->d.batch_groups);
    const int64_t batch = c->lhs.dim[l[0]] / bg, features = c->rhs.dim[r[0]];
    lb_shape s = {.rank = rank}, kernel = {.rank = ns};
    s.dim[o[0]] = batch;
    s.dim[o[1]] = features;
    for (int k = 0; k < ns; k++) {
        kernel.dim[k] = c->rhs.dim[r[2 + k]];
        s.dim[o[2 + k]] =
            extent_of(c, k, c->lhs.dim[l[2 + k]], kernel.dim[k]).places;
    }
    model y = model_new(s);
    for (int64_t e = 0; e < model_size(&s); e++) {
        int64_t i[LB_MAX_RANK], xi[LB_MAX_RANK] = {0}, wi[LB_MAX_RANK] = {0};
        model_index(&s, e, i);
        const int64_t f = i[o[1]], group = f / or_one(features / (fg * bg));
        xi[l[0]] = i[o[0]] + (bg > 1 ? group * batch : 0);
        wi[r[0]] = f;
        for (int64_t q = 0; q < c->rhs.dim[r[1]] * model_size(&kernel); q++) {
            int64_t at[LB_MAX_RANK];
            bool inside = true;
            model_index(&kernel, q % model_size(&kernel), at);
            wi[r[1]] = q / model_size(&kernel);
            xi[l[1]] = wi[r[1]] + (fg > 1 ? group * c->rhs.dim[r[1]] : 0);
            for (int k = 0; k < ns; k++) {
                const int64_t n = kernel.dim[k];
                wi[r[2 + k]] = c->d.reversal[k] ? n - 1 - at[k] : at[k];
                xi[l[2 + k]] = source(c, k, c->lhs.dim[l[2 + k]],
                                      i[o[2 + k]] * or_one(c->d.stride[k]) +
                                          at[k] * or_one(c->d.rhs_dilation[k]));
                inside = inside && xi[l[2 + k]] >= 0;
            }
            if (inside)
                y.v[e] += x->v[model_flat(&x->shape, xi)] *
                          w->v[model_flat(&w->shape, wi)];
        }
    }
    return y;
}

/* ---- checks ------------------------------------------------------------- */

static double wrapped(lb_dtype d, double v)
{
    const uint64_t x = (uint64_t)(int64_t)v;
    const int cut = 64 - 8 * (int)lb_dtype_size(d);
    if (is_float(d)) return v;
    if (d == LB_BOOL) return v != 0;
    if (d >= LB_U8 && d <= LB_U64) return (double)(x << cut >> cut);
    return (double)((int64_t)(x << cut) >> cut);
}

static bool equals(lb_ctx *cx, lb_array *a, lb_dtype d, const model *want)
{
    const double eps = d == LB_BF16 ? 0x1p-8 : d == LB_F16 ? 0x1p-11 : 0;
    if (!a || a->dtype != d || !lb_shape_equal(&a->shape, &want->shape)) {
        fprintf(stderr, "%s, not %s: %s\n", a ? LB_SHOW(&a->shape) : "NULL",
                LB_SHOW(&want->shape), lb_error(cx));
        return false;
    }
    const int64_t n = model_size(&want->shape);
    const size_t size = lb_dtype_size(d);
    char *x = (char *)model_alloc((size_t)n * size);
    if (!lb_read(cx, a, x, (size_t)n * size)) return false;
    for (int64_t i = 0; i < n; i++) {
        const double got = model_get(d, x + (size_t)i * size);
        const double w = wrapped(d, want->v[i]);
        if (got == w || fabs(got - w) <= eps * fabs(w)) continue;
        fprintf(stderr, "element %lld is %.17g, not %.17g\n", (long long)i, got,
                w);
        return false;
    }
    return true;
}

static void test_cases(lb_ctx *const *cx, int n_cx)
{
    for (int c = 0; c < CASES; c++)
        for (int d = 1; d < LB_N_DTYPES; d++)
            for (int v = 0; v < MODEL_VIEWS + MODEL_HIDDEN; v++) {
                const lb_dtype t = (lb_dtype)d;
                const int u = (v * 5 + d) % MODEL_VIEWS;
                lb_ctx *x = cx[(c + d + v) % n_cx];
                /* all views in f32, one of them in the others */
                if (v % MODEL_HIDDEN >= MODEL_VIEWS ||
                    (v >= MODEL_HIDDEN && t != LB_F32 && t != LB_BF16) ||
                    (t != LB_F32 && v != (c + d) % MODEL_VIEWS && v < 8))
                    continue;
                lb_enter(x);
                model a = model_make(cases[c].lhs, t, v, (uint32_t)(c + d));
                model b = model_make(cases[c].rhs, t, u, (uint32_t)(v + 1));
                const model want = model_conv(&cases[c], &a, &b);
                lb_conv_dims dims = cases[c].d;
                lb_dtype out = t;
                if (t == LB_F16) dims.preferred = out = LB_F32;
                if (t == LB_I8 && c % 2) dims.preferred = out = LB_I32;
                lb_array *y =
                    lb_conv_general_dilated(x, model_array(x, &a, t, v),
                                            model_array(x, &b, t, u), &dims);
                const bool ok = equals(x, y, out, &want);
                if (!ok)
                    fprintf(stderr, "  case %d, %s, views %d and %d\n", c,
                            lb_dtype_name(t), v, u);
                CHECK(ok);
                lb_leave(x);
                model_end();
            }
}

/* Floats that round: the same bits for all numbers of threads and views. */
static void test_bits(lb_ctx *const *cx, int n_cx)
{
    static const conv_case big[] = {
        {{4, {3, 8, 40, 41}},
         {4, {16, 8, 3, 3}},
         {.pad_lo = {1, 1}, .pad_hi = {1, 1}}},
        {{4, {2, 40, 41, 24}},
         {4, {3, 3, 24, 40}},
         {.lhs = "b01f", .rhs = "01io", .out = "b01f", .stride = {1, 2}}},
        {{4, {1, 32, 30, 30}}, {4, {32, 1, 3, 3}}, {.feature_groups = 32}},
        {{4, {2, 300, 12, 12}}, {4, {64, 300, 1, 1}}, {.lhs = ""}},
    };
    for (size_t c = 0; c < sizeof big / sizeof *big; c++) {
        model a = model_new(big[c].lhs), b = model_new(big[c].rhs);
        uint32_t seed = 5;
        for (int64_t i = 0; i < model_size(&a.shape); i++)
            a.v[i] = (double)(float)((double)model_random(&seed) / 3e7 - 0.3);
        for (int64_t i = 0; i < model_size(&b.shape); i++)
            b.v[i] = (double)(float)((double)model_random(&seed) / 1e7 - 0.8);
        char *pinned = NULL;
        for (int i = 0; i < n_cx; i++)
            for (int v = 0; v < MODEL_REPEATED; v++) {
                lb_ctx *x = cx[i];
                lb_enter(x);
                const int hidden = v == 3 ? MODEL_HIDDEN : 0;
                lb_array *y = lb_conv_general_dilated(
                    x, model_array(x, &a, LB_F32, v + hidden),
                    model_array(x, &b, LB_F32, (v + i) % MODEL_REPEATED),
                    &big[c].d);
                const size_t size = (size_t)(y ? lb_size(y) : 0) * 4;
                char *got = (char *)model_alloc(size);
                CHECK(y && lb_read(x, y, got, size));
                if (!pinned) pinned = got;
                CHECK(memcmp(pinned, got, size) == 0);
                lb_leave(x);
            }
        model_end();
    }
}

static void test_errors(lb_ctx *cx)
{
    lb_array *x = lb_zeros(cx, LB_F32, LB_SHAPE(4, 6, 8, 8));
    lb_array *w = lb_zeros(cx, LB_F32, LB_SHAPE(6, 6, 3, 3));
    lb_array *w3 = lb_zeros(cx, LB_F32, LB_SHAPE(6, 6, 3));
    lb_array *w5 = lb_zeros(cx, LB_F32, LB_SHAPE(6, 5, 3, 3));
    lb_array *i = lb_zeros(cx, LB_I32, LB_SHAPE(6, 6, 3, 3));
    lb_array *one = lb_zeros(cx, LB_F32, LB_SHAPE(3));
    lb_array *six = lb_zeros(cx, LB_F32, LB_SHAPE(1, 1, 1, 1, 1, 1));
    const int64_t huge = INT64_MAX;
#define CONV(a, b, ...)                                                        \
    lb_conv_general_dilated(cx, a, b, &(lb_conv_dims){__VA_ARGS__})
    CHECK_REFUSED(cx, CONV(x, w3, .lhs = ""), LB_E_SHAPE);
    CHECK_REFUSED(cx, CONV(one, one, .lhs = ""), LB_E_SHAPE);
    CHECK_REFUSED(cx, CONV(six, six, .lhs = ""), LB_E_SHAPE);
    CHECK_REFUSED(cx, CONV(x, w5, .lhs = ""), LB_E_SHAPE);
    CHECK_REFUSED(cx, CONV(x, w, .feature_groups = 2), LB_E_SHAPE);
    CHECK_REFUSED(cx, CONV(x, w, .feature_groups = 5), LB_E_SHAPE);
    CHECK_REFUSED(cx, CONV(x, w, .feature_groups = -1), LB_E_ARG);
    CHECK_REFUSED(cx, CONV(x, w, .batch_groups = 3), LB_E_SHAPE);
    CHECK_REFUSED(cx, CONV(x, w, .batch_groups = 4), LB_E_SHAPE);
    CHECK_REFUSED(cx, CONV(x, w, .batch_groups = 2, .feature_groups = 2),
                  LB_E_ARG);
    CHECK_REFUSED(cx, CONV(x, w, .lhs = "bf0"), LB_E_ARG);
    CHECK_REFUSED(cx, CONV(x, w, .lhs = "bf00"), LB_E_ARG);
    CHECK_REFUSED(cx, CONV(x, w, .lhs = "bf02"), LB_E_ARG);
    CHECK_REFUSED(cx, CONV(x, w, .rhs = "bf01"), LB_E_ARG);
    CHECK_REFUSED(cx, CONV(x, w, .out = "ff01"), LB_E_ARG);
    CHECK_REFUSED(cx, CONV(x, w, .stride = {-1}), LB_E_ARG);
    CHECK_REFUSED(cx, CONV(x, w, .lhs_dilation = {1, -2}), LB_E_ARG);
    CHECK_REFUSED(cx, CONV(x, w, .rhs_dilation = {-2}), LB_E_ARG);
    CHECK_REFUSED(cx, CONV(x, w, .pad_lo = {huge}, .pad_hi = {huge}),
                  LB_E_SIZE);
    CHECK_REFUSED(cx, CONV(x, w, .lhs_dilation = {huge}), LB_E_SIZE);
    CHECK_REFUSED(cx, CONV(x, w, .rhs_dilation = {huge}), LB_E_SIZE);
    CHECK_REFUSED(cx, CONV(x, w, .pad_hi = {huge / 2, huge / 2}), LB_E_SIZE);
    CHECK_REFUSED(cx, CONV(x, w, .preferred = LB_I8), LB_E_DTYPE);
    CHECK_REFUSED(cx, CONV(x, NULL, .lhs = ""), LB_E_NULL);
    CHECK(!lb_conv_general_dilated(cx, x, w, NULL));
    CHECK_EQ_I(lb_error_status(cx), LB_E_NULL);
    lb_clear(cx);
    lb_array *in[2] = {x, i};
    CHECK(!lb_bind(cx, lb_find_primitive(cx, "conv_general_dilated"), 2, in,
                   &(lb_conv_dims){.lhs = ""}));
    CHECK_EQ_I(lb_error_status(cx), LB_E_DTYPE);
    lb_clear(cx);
    CHECK_EQ_I(lb_dtype_of(CONV(x, i, .lhs = "")), LB_F32); /* promotes */
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
}

int main(void)
{
    static const int threads[] = {1, 2, 7};
    lb_ctx *cx[3];
    for (int i = 0; i < 3; i++) {
        cx[i] = lb_open(&(lb_options){.threads = threads[i]});
        if (!cx[i]) return 1;
    }
    test_cases(cx, 3);
    test_bits(cx, 3);
    test_errors(cx[0]);
    for (int i = 0; i < 3; i++)
        lb_close(cx[i]);
    model_end();
    return check_report("conv");
}
