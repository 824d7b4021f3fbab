/* samples_products.c - samples of the primitives that sum: reductions, norms,
 * dot_general and convolutions. */
#include <string.h>

#include "samples.h"

/* ---- reductions --------------------------------------------------------- */

static int reduce_kinds(const char *prim)
{
    if (strcmp(prim, "reduce_sum") == 0) return KIND_F | KIND_I | KIND_U;
    if (strcmp(prim, "reduce_and") == 0 || strcmp(prim, "reduce_or") == 0)
        return KIND_I | KIND_U | KIND_B;
    return KIND_ALL;
}

static void add_reduce(sample_list *list, const char *prim, lb_dtype dtype,
                       lb_shape shape, const lb_axes *axes)
{
    const bool adds =
        strcmp(prim, "reduce_sum") == 0 || strcmp(prim, "reduce_prod") == 0;
    sample *s = sample_add(list, prim);
    s->params.reduce.axes = *axes;
    sample_in(s, dtype, shape, adds ? VALUES_TAME : VALUES_ANY);
}

static void reduces(sample_list *list, const char *prim, bool large)
{
    for (int d = 1; d < LB_N_DTYPES; d++) {
        const lb_dtype t = (lb_dtype)d;
        if (!(reduce_kinds(prim) & sample_kind_of(t))) continue;
        if (large) {
            if (d != LB_F32 && d != LB_I32 && d != LB_BF16) continue;
            add_reduce(list, prim, t, LB_SHAPE(1000003), LB_AXES(0));
            add_reduce(list, prim, t, LB_SHAPE(4097, 301), LB_AXES(0));
            add_reduce(list, prim, t, LB_SHAPE(301, 4097), LB_AXES(1));
            add_reduce(list, prim, t, LB_SHAPE(64, 50, 70), LB_AXES(0, 2));
            continue;
        }
        add_reduce(list, prim, t, LB_SHAPE(5), LB_AXES(0));
        add_reduce(list, prim, t, LB_SHAPE(4, 7), LB_AXES(0));
        add_reduce(list, prim, t, LB_SHAPE(4, 7), LB_AXES(1));
        add_reduce(list, prim, t, LB_SHAPE(3, 4, 5), LB_AXES(0, 2));
        add_reduce(list, prim, t, LB_SHAPE(2, 3, 4, 3), LB_AXES(3, 1));
        if (d != LB_F32 && d != LB_I8 && d != LB_F16 && d != LB_BOOL) continue;
        add_reduce(list, prim, t, (lb_shape){0}, &(const lb_axes){0});
        add_reduce(list, prim, t, LB_SHAPE(3, 4), &(const lb_axes){0});
        add_reduce(list, prim, t, LB_SHAPE(3, 0), LB_AXES(1));
        add_reduce(list, prim, t, LB_SHAPE(3, 0), LB_AXES(0));
        add_reduce(list, prim, t, LB_SHAPE(2, 1, 3), LB_AXES(1));
        add_reduce(list, prim, t, LB_SHAPE(3, 4, 5), LB_AXES(0, 1, 2));
        add_reduce(list, prim, t, LB_SHAPE(2500), LB_AXES(0));
        add_reduce(list, prim, t, LB_SHAPE(3, 1100), LB_AXES(1));
        add_reduce(list, prim, t, LB_SHAPE(1100, 3), LB_AXES(0));
    }
}

static void add_arg(sample_list *list, const char *prim, lb_dtype dtype,
                    lb_shape shape, int axis, lb_dtype index)
{
    sample *s = sample_add(list, prim);
    s->params.arg.axis = axis;
    s->params.arg.dtype = index;
    sample_in(s, dtype, shape, VALUES_ANY);
}

static void args(sample_list *list, const char *prim, bool large)
{
    static const lb_dtype index[] = {LB_I32, LB_I64, LB_U8, LB_U32};
    for (int d = 1; d < LB_N_DTYPES; d++) {
        const lb_dtype t = (lb_dtype)d, to = index[d % 4];
        if (large && d != LB_F32 && d != LB_I32) continue;
        if (large) {
            add_arg(list, prim, t, LB_SHAPE(301, 4097), 1, LB_I32);
            add_arg(list, prim, t, LB_SHAPE(4097, 301), 0, LB_I32);
            continue;
        }
        add_arg(list, prim, t, LB_SHAPE(7), 0, to);
        add_arg(list, prim, t, LB_SHAPE(4, 5), 0, to);
        add_arg(list, prim, t, LB_SHAPE(3, 4, 5), 1, to);
        if (d > LB_BF16) continue;
        add_arg(list, prim, t, LB_SHAPE(2, 3, 4, 5), 3, to);
        add_arg(list, prim, t, LB_SHAPE(0, 3), 1, to);
        add_arg(list, prim, t, LB_SHAPE(3, 1), 1, to);
        add_arg(list, prim, t, LB_SHAPE(2, 2100), 1, LB_I32);
    }
}

/* ---- dot_general -------------------------------------------------------- */

typedef struct dot_case {
    lb_shape lhs, rhs;
    lb_dot_dims dims;
} dot_case;

static sample *add_dot(sample_list *list, const dot_case *c, lb_dtype lhs,
                       lb_dtype rhs, lb_dtype preferred)
{
    sample *s = sample_add(list, "dot_general");
    sample_in(s, lhs, c->lhs, VALUES_TAME);
    sample_in(s, rhs, c->rhs, VALUES_TAME);
    s->params.dot = c->dims;
    s->params.dot.preferred = preferred;
    return s;
}

/* x of 16 or 8 bits: one, few and many rows, K larger than a block of scales,
 * weights along K and across it, batches. */
static void roughly(sample_list *list, bool large)
{
    const int64_t k = large ? 900 : 200, n = large ? 700 : 33;
    const int64_t rows[] = {1, 7, large ? 50 : 26};
    dot_case c[7];
    int cases = 0;
    for (int i = 0; i < 6; i++) {
        const bool along = i % 2;
        c[cases++] = (dot_case){
            LB_SHAPE(rows[i / 2], k),
            along ? LB_SHAPE(n, k) : LB_SHAPE(k, n),
            {.lhs_contract = {1, {1}}, .rhs_contract = {1, {along}}},
        };
    }
    c[cases++] = (dot_case){LB_SHAPE(3, 2, k),
                            LB_SHAPE(3, n, k),
                            {.lhs_contract = {1, {2}},
                             .rhs_contract = {1, {2}},
                             .lhs_batch = {1, {0}},
                             .rhs_batch = {1, {0}}}};
    for (int i = 0; i < cases; i++)
        for (int p = LB_PRECISION_FAST; p <= LB_PRECISION_FASTEST; p++) {
            const lb_dtype d = i % 3 == 1 ? LB_BF16 : LB_F32;
            c[i].dims.precision = (lb_precision)p;
            add_dot(list, &c[i], d, d, LB_NO_DTYPE);
        }
}

#define MATMUL(m, k, n)                                                        \
    {                                                                          \
        LB_SHAPE(m, k), LB_SHAPE(k, n),                                        \
        {                                                                      \
            .lhs_contract = {1, {1}}, .rhs_contract = { 1, {0} }               \
        }                                                                      \
    }

static void dots(sample_list *list, const char *prim, bool large)
{
    (void)prim;
    const dot_case big[] = {
        MATMUL(190, 300, 170),
        MATMUL(1, 700, 1100),
        MATMUL(700, 900, 1),
        {LB_SHAPE(6, 40, 70),
         LB_SHAPE(6, 70, 50),
         {.lhs_contract = {1, {2}},
          .rhs_contract = {1, {1}},
          .lhs_batch = {1, {0}},
          .rhs_batch = {1, {0}}}},
        MATMUL(300, 500, 200),
    };
    const dot_case c[] = {
        MATMUL(5, 7, 3),
        {LB_SHAPE(9),
         LB_SHAPE(9),
         {.lhs_contract = {1, {0}}, .rhs_contract = {1, {0}}}},
        {LB_SHAPE(4, 6),
         LB_SHAPE(5, 6),
         {.lhs_contract = {1, {1}}, .rhs_contract = {1, {1}}}},
        {LB_SHAPE(6, 4),
         LB_SHAPE(6, 5),
         {.lhs_contract = {1, {0}}, .rhs_contract = {1, {0}}}},
        {LB_SHAPE(3, 4, 5),
         LB_SHAPE(3, 5, 2),
         {.lhs_contract = {1, {2}},
          .rhs_contract = {1, {1}},
          .lhs_batch = {1, {0}},
          .rhs_batch = {1, {0}}}},
        {LB_SHAPE(4, 3, 5),
         LB_SHAPE(5, 2, 3),
         {.lhs_contract = {1, {2}},
          .rhs_contract = {1, {0}},
          .lhs_batch = {1, {1}},
          .rhs_batch = {1, {2}}}},
        {LB_SHAPE(4, 3, 5),
         LB_SHAPE(5, 3, 2),
         {.lhs_contract = {2, {1, 2}}, .rhs_contract = {2, {1, 0}}}},
        {LB_SHAPE(3), LB_SHAPE(4), {.preferred = LB_NO_DTYPE}},
        {{0}, {0}, {.preferred = LB_NO_DTYPE}},
        MATMUL(3, 0, 4),
        MATMUL(0, 3, 4),
        MATMUL(1, 64, 64),
        MATMUL(64, 64, 1),
        MATMUL(17, 300, 33), /* larger than a panel */
        {LB_SHAPE(2, 3, 4, 5),
         LB_SHAPE(3, 2, 6, 5),
         {.lhs_contract = {1, {3}},
          .rhs_contract = {1, {3}},
          .lhs_batch = {2, {0, 1}},
          .rhs_batch = {2, {1, 0}}}},
        {LB_SHAPE(5, 2),
         LB_SHAPE(5, 2),
         {.lhs_batch = {1, {0}}, .rhs_batch = {1, {0}}}},
    };
    if (large) {
        for (size_t i = 0; i < sizeof big / sizeof *big; i++)
            add_dot(list, &big[i], LB_F32, LB_F32, LB_NO_DTYPE);
        add_dot(list, &big[0], LB_F64, LB_F64, LB_NO_DTYPE);
        add_dot(list, &big[0], LB_BF16, LB_BF16, LB_NO_DTYPE);
        add_dot(list, &big[0], LB_I8, LB_I8, LB_I32);
        roughly(list, large);
        return;
    }
    const int cases = sizeof c / sizeof *c;
    for (int i = 0; i < cases; i++) {
        add_dot(list, &c[i], LB_F32, LB_F32, LB_NO_DTYPE);
        add_dot(list, &c[i], LB_BF16, LB_BF16, LB_NO_DTYPE);
        add_dot(list, &c[i], LB_F64, LB_F64, LB_NO_DTYPE);
        add_dot(list, &c[i], LB_I8, LB_I8, LB_I32);
    }
    for (int d = 1; d < LB_N_DTYPES; d++)
        if (d != LB_BOOL)
            add_dot(list, &c[d % 7], (lb_dtype)d, (lb_dtype)d, LB_NO_DTYPE);
    add_dot(list, &c[0], LB_F32, LB_BF16, LB_NO_DTYPE);
    add_dot(list, &c[0], LB_F16, LB_BF16, LB_NO_DTYPE);
    add_dot(list, &c[4], LB_BF16, LB_F32, LB_BF16);
    add_dot(list, &c[2], LB_BF16, LB_BF16, LB_F32);
    add_dot(list, &c[11], LB_F32, LB_BF16, LB_F16);
    roughly(list, large);
}

/* ---- conv_general_dilated ----------------------------------------------- */

typedef struct conv_case {
    lb_shape lhs, rhs;
    lb_conv_dims dims;
} conv_case;

static void add_conv(sample_list *list, const conv_case *c, lb_dtype dtype)
{
    sample *s = sample_add(list, "conv_general_dilated");
    sample_in(s, dtype, c->lhs, VALUES_TAME);
    sample_in(s, dtype, c->rhs, VALUES_TAME);
    s->params.conv = c->dims;
}

static void convs(sample_list *list, const char *prim, bool large)
{
    (void)prim;
    const conv_case big[] = {
        {LB_SHAPE(3, 8, 40, 41),
         LB_SHAPE(16, 8, 3, 3),
         {.pad_lo = {1, 1}, .pad_hi = {1, 1}}},
        {LB_SHAPE(2, 5000, 7),
         LB_SHAPE(9, 7, 3),
         {.lhs = "b0f", .rhs = "oi0", .out = "b0f", .stride = {2}}},
    };
    const conv_case c[] = {
        {LB_SHAPE(2, 3, 6, 5), LB_SHAPE(4, 3, 3, 2), {.lhs = ""}},
        {LB_SHAPE(1, 2, 7, 7),
         LB_SHAPE(3, 2, 3, 3),
         {.pad_lo = {1, 2}, .pad_hi = {2, 1}, .stride = {2, 3}}},
        {LB_SHAPE(2, 9, 3),
         LB_SHAPE(3, 3, 4),
         {.lhs = "b0f", .rhs = "0io", .out = "b0f", .rhs_dilation = {2}}},
        {LB_SHAPE(1, 2, 4, 5),
         LB_SHAPE(2, 2, 2, 2),
         {.lhs_dilation = {2, 3}, .pad_lo = {-1, 0}, .pad_hi = {1, -1}}},
        {LB_SHAPE(2, 4, 5, 5),
         LB_SHAPE(6, 2, 3, 3),
         {.feature_groups = 2, .reversal = {true, false}}},
        {LB_SHAPE(4, 3, 5, 4),
         LB_SHAPE(4, 3, 2, 2),
         {.batch_groups = 2, .reversal = {false, true}}},
        {LB_SHAPE(2, 3, 4, 3, 2),
         LB_SHAPE(2, 2, 2, 2, 3),
         {.lhs = "b012f", .rhs = "012io", .out = "bf012"}},
        {LB_SHAPE(0, 3, 6, 5), LB_SHAPE(4, 3, 3, 2), {.lhs = ""}},
        {LB_SHAPE(1, 2, 2, 2), LB_SHAPE(1, 2, 3, 3), {.lhs = ""}}, /* empty */
        {LB_SHAPE(2, 0, 4, 4), LB_SHAPE(3, 0, 2, 2), {.lhs = ""}},
        {LB_SHAPE(3, 4, 8),
         LB_SHAPE(8, 1, 3),
         {.lhs = "0bf",
          .rhs = "oi0",
          .out = "f0b",
          .feature_groups = 8,
          .pad_lo = {2}}},
        {LB_SHAPE(2, 2, 9, 8), /* steps that divide dilations, and do not */
         LB_SHAPE(3, 2, 3, 2),
         {.stride = {4, 2},
          .rhs_dilation = {2, 4},
          .pad_lo = {1, 2},
          .reversal = {true, false}}},
        {LB_SHAPE(4, 2, 7, 6), /* .. and that leave out some of the input */
         LB_SHAPE(4, 2, 1, 3),
         {.stride = {3, 2}, .batch_groups = 2, .reversal = {false, true}}},
        {LB_SHAPE(1, 2, 7), /* single elements at arbitrary distances */
         LB_SHAPE(3, 2, 1),
         {.stride = {2}, .rhs_dilation = {INT64_MAX}}},
    };
    if (large) {
        add_conv(list, &big[0], LB_F32);
        add_conv(list, &big[0], LB_BF16);
        add_conv(list, &big[1], LB_F32);
        return;
    }
    static const lb_dtype dtypes[] = {LB_F32, LB_BF16, LB_F64, LB_I32, LB_F16};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        add_conv(list, &c[i], LB_F32);
        add_conv(list, &c[i], dtypes[1 + i % 4]);
    }
}

/* ---- softmax and norms --------------------------------------------------- */

static void add_softmax(sample_list *list, const char *prim, lb_dtype dtype,
                        lb_shape shape, int axis)
{
    sample *s = sample_add(list, prim);
    s->params.softmax.axis = axis;
    sample_in(s, dtype, shape, VALUES_TAME);
}

/* The last axis, others, rows of several chunks and too long ones. */
static void softmaxes(sample_list *list, const char *prim, bool large)
{
    static const lb_dtype dtypes[] = {LB_F32, LB_BF16, LB_F16, LB_F64};
    for (int d = 0; d < (large ? 2 : 4); d++) {
        const lb_dtype t = dtypes[d];
        if (large) {
            add_softmax(list, prim, t, LB_SHAPE(301, 4097), 1);
            add_softmax(list, prim, t, LB_SHAPE(64, 50, 70), 2);
            add_softmax(list, prim, t, LB_SHAPE(200003), 0);
            continue;
        }
        add_softmax(list, prim, t, LB_SHAPE(7), 0);
        add_softmax(list, prim, t, LB_SHAPE(4, 7), 1);
        add_softmax(list, prim, t, LB_SHAPE(4, 7), 0);
        add_softmax(list, prim, t, LB_SHAPE(3, 2, 5), 2);
        add_softmax(list, prim, t, LB_SHAPE(3, 1100), 1);
        if (d > 1) continue;
        add_softmax(list, prim, t, LB_SHAPE(3, 2, 5), 1);
        add_softmax(list, prim, t, LB_SHAPE(50, 64), 1);
        add_softmax(list, prim, t, LB_SHAPE(33000), 0);
        add_softmax(list, prim, t, LB_SHAPE(0, 3), 1);
        add_softmax(list, prim, t, LB_SHAPE(2, 1), 1);
    }
}

static void add_norm(sample_list *list, const char *prim, lb_dtype dtype,
                     lb_shape shape, bool weight, bool bias)
{
    const lb_shape row = LB_SHAPE(shape.dim[shape.rank - 1]);
    sample *s = sample_add(list, prim);
    s->params.norm = (lb_norm_params){0.5, weight, bias};
    sample_in(s, dtype, shape, VALUES_TAME);
    if (weight) sample_in(s, dtype, row, VALUES_TAME);
    if (bias) sample_in(s, dtype == LB_F64 ? LB_F32 : dtype, row, VALUES_TAME);
}

static void norms(sample_list *list, const char *prim, bool large)
{
    static const lb_dtype dtypes[] = {LB_F32, LB_BF16, LB_F16, LB_F64};
    const bool bias = strcmp(prim, "layer_norm") == 0;
    for (int d = 0; d < (large ? 2 : 4); d++) {
        const lb_dtype t = dtypes[d];
        if (large) {
            add_norm(list, prim, t, LB_SHAPE(301, 4097), true, bias);
            add_norm(list, prim, t, LB_SHAPE(64, 50, 70), true, false);
            continue;
        }
        add_norm(list, prim, t, LB_SHAPE(7), false, false);
        add_norm(list, prim, t, LB_SHAPE(4, 7), true, false);
        add_norm(list, prim, t, LB_SHAPE(4, 7), true, bias);
        add_norm(list, prim, t, LB_SHAPE(4, 7), false, bias);
        add_norm(list, prim, t, LB_SHAPE(3, 1100), true, bias);
        if (d > 1) continue;
        add_norm(list, prim, t, LB_SHAPE(3, 2, 64), true, bias);
        add_norm(list, prim, t, LB_SHAPE(50, 64), true, bias);
        add_norm(list, prim, t, LB_SHAPE(33000), true, bias);
        add_norm(list, prim, t, LB_SHAPE(0, 3), true, bias);
        add_norm(list, prim, t, LB_SHAPE(2, 1), false, false);
    }
}

/* clang-format off */
static const struct {
    const char *prim;
    void (*make)(sample_list *, const char *prim, bool large);
} makers[] = {
    {"reduce_sum", reduces}, {"reduce_prod", reduces},
    {"reduce_max", reduces}, {"reduce_min", reduces},
    {"reduce_and", reduces}, {"reduce_or", reduces},
    {"argmax", args},        {"argmin", args},
    {"dot_general", dots},   {"conv_general_dilated", convs},
    {"softmax", softmaxes},  {"log_softmax", softmaxes},
    {"rms_norm", norms},     {"layer_norm", norms},
};
/* clang-format on */

bool samples_products(const char *prim, sample_size size, sample_list *list)
{
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        if (strcmp(makers[i].prim, prim) != 0) continue;
        makers[i].make(list, makers[i].prim, size == SAMPLES_LARGE);
        return true;
    }
    return false;
}
