/* test_rows_across.c - products with packed weights whose other operand is not
 * row-contiguous: windows of convolutions, and transposed matrices. All
 * formats, precisions and levels, with more rows than are read at once, against
 * products with the same weights as plain f32. */
/* ctest: simde skip-tsan skip-ref */
#include <stdlib.h>

#include "base/cpu.h"
#include "check.h"
#include "lowbit.h"

static const double bound[] = {0, 1e-6, 3e-4, 1e-2};

static lb_array *normals(lb_ctx *cx, uint32_t seed, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){seed, 7}, LB_F32, shape);
}

/* Rows and columns of weights, as they are stored and as f32. */
typedef struct {
    lb_array *packed, *plain;
} weights;

static weights make(lb_ctx *cx, const char *format, int64_t rows, int64_t n)
{
    weights w;
    w.packed = lb_quantize(cx, normals(cx, 1, LB_SHAPE(rows, n)),
                           &(lb_quant_config){.format = format});
    w.plain = lb_materialize(cx, w.packed);
    return w;
}

/* Relative, of Frobenius norms. */
static void check_error(lb_ctx *cx, lb_array *got, lb_array *want,
                        const char *what, const char *format, int precision)
{
    double error = NAN;
    if (got && want) {
        got = lb_convert(cx, got, LB_F32);
        lb_array *off = lb_sub(cx, got, want);
        const double e =
            lb_item(cx, lb_reduce_sum(cx, lb_mul(cx, off, off), NULL));
        const double s =
            lb_item(cx, lb_reduce_sum(cx, lb_mul(cx, want, want), NULL));
        error = sqrt(e / s);
    }
    if (!check_fails(error <= bound[precision])) return;
    fprintf(stderr, "%s, %s, precision %d, %s: %g, %s\n", what, format,
            precision, lb_isa(cx), error, lb_error(cx));
}

typedef struct {
    const char *what;
    int64_t features, in[4], kernel[2];
    lb_conv_dims dims;
} conv_case;

static const conv_case convs[] = {
    {"small", 70, {1, 24, 9, 11}, {3, 3}, {.pad_lo = {1, 1}, .pad_hi = {1, 1}}},
    {"batches", 40, {3, 33, 13, 7}, {2, 3}, {.stride = {2, 1}}},
    {"long", 64, {2, 130, 5, 80}, {3, 3}, {.pad_lo = {1, 4}, .pad_hi = {1, 4}}},
    {"dilated",
     65,
     {2, 16, 8, 9},
     {2, 2},
     {.lhs_dilation = {2, 3}, .rhs_dilation = {1, 2}, .reversal = {true}}},
    {"features last",
     96,
     {2, 17, 19, 20},
     {3, 1},
     {.lhs = "b01f", .out = "b01f", .pad_lo = {1}, .pad_hi = {2}}},
};

static void check_conv(lb_ctx *cx, const conv_case *c, const char *format)
{
    if (check_thins_by(3)) return;
    lb_enter(cx);
    const bool last = c->dims.lhs[0] != 0;
    const int64_t depth = c->in[last ? 3 : 1];
    const lb_shape shape =
        LB_SHAPE(c->features, depth, c->kernel[0], c->kernel[1]);
    const weights w =
        make(cx, format, c->features, depth * c->kernel[0] * c->kernel[1]);
    lb_array *x =
        normals(cx, 2, LB_SHAPE(c->in[0], c->in[1], c->in[2], c->in[3]));
    lb_array *want = lb_conv_general_dilated(
        cx, x, lb_reshape(cx, w.plain, shape), &c->dims);
    for (int p = 1; p <= LB_PRECISION_FASTEST; p++) {
        lb_conv_dims dims = c->dims;
        dims.precision = (lb_precision)p;
        lb_array *packed = lb_reshape(cx, w.packed, shape);
        check_error(cx, lb_conv_general_dilated(cx, x, packed, &dims), want,
                    c->what, format, p);
    }
    lb_leave(cx);
}

/* x is (K, rows), f32 in place or bf16 that is converted. */
static void check_turned(lb_ctx *cx, int64_t rows, int64_t depth,
                         const char *format, lb_dtype dtype)
{
    if (check_thins_by(3)) return;
    lb_enter(cx);
    const weights w = make(cx, format, 70, depth);
    lb_array *x = lb_convert(cx, normals(cx, 3, LB_SHAPE(depth, rows)), dtype);
    lb_dot_dims d = {.lhs_contract = {1, {0}},
                     .rhs_contract = {1, {1}},
                     .preferred = LB_F32};
    lb_array *want = lb_dot_general(cx, x, w.plain, &d);
    for (int p = 1; p <= LB_PRECISION_FASTEST; p++) {
        d.precision = (lb_precision)p;
        check_error(cx, lb_dot_general(cx, x, w.packed, &d), want, "turned",
                    format, p);
    }
    lb_leave(cx);
}

static void check_level(lb_level level)
{
    static const char *const formats[] = {"int8", "nf4", "ternary", "binary",
                                          "q8_0"};
    lb_options o = {.threads = 2};
    for (int l = (int)level + 1; l <= LB_LEVEL_AMX; l++)
        o.cpu_off |= UINT64_C(1) << l;
    lb_ctx *cx = lb_open(&o);
    CHECK(cx != NULL);
    for (int f = 0; cx && f < 5; f++) {
        for (size_t i = 0; i < sizeof convs / sizeof *convs; i++)
            check_conv(cx, &convs[i], formats[f]);
        for (int64_t rows = 2; rows < 200; rows = rows * 3 - 1)
            for (int i = 0; i < 2; i++)
                check_turned(cx, rows, i ? 1100 : 129, formats[f],
                             rows % 2 ? LB_BF16 : LB_F32);
    }
    lb_close(cx);
}

int main(void)
{
    static const lb_level levels[] = {LB_LEVEL_REF, LB_LEVEL_AVX2,
                                      LB_LEVEL_AVX512, LB_LEVEL_AVX512VNNI};
    for (int i = 0; i < 4; i++)
        if (lb_level_available(levels[i])) check_level(levels[i]);
    return check_report("rows across");
}
