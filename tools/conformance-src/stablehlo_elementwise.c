/* stablehlo_elementwise.c - StableHLO's operations on single elements. */
#include <string.h>

#include "stablehlo.h"

static lb_array *run_unary(const op_rule *r, const op_call *c)
{
    return r->unary(c->cx, c->in[0]);
}

static lb_array *run_binary(const op_rule *r, const op_call *c)
{
    return same_type(c, 0, 1) ? r->binary(c->cx, c->in[0], c->in[1]) : NULL;
}

/* FLOAT, SIGNED and UNSIGNED are redundant: the dtype implies them. */
static bool plain_order(const op_call *c, bool *total)
{
    *total = false;
    if (!attr(c, "compare_type|type")) return true;
    const char *const order = attr_word(c, "compare_type|type");
    if (!order) return false;
    const lb_dtype d = lb_dtype_of(c->in[0]);
    const char *const natural = dtype_is_float(d)           ? "FLOAT"
                                : d >= LB_I8 && d <= LB_I64 ? "SIGNED"
                                                            : "UNSIGNED";
    if (!strcmp(order, natural) || !strcmp(order, "NOTYPE")) return true;
    *total = !strcmp(order, "TOTALORDER") && dtype_is_float(d);
    return *total || note_fail(c->note, "compare: compare_type %.32s of %s",
                               order, lb_dtype_name(d));
}

/* IEEE 754's total order as an order of signed integers: the bits, with all but
 * the sign bit inverted in negative numbers. */
static lb_array *total_order(lb_ctx *cx, lb_array *x)
{
    const size_t size = lb_dtype_size(lb_dtype_of(x));
    const lb_dtype bits = size == 8 ? LB_I64 : size == 4 ? LB_I32 : LB_I16;
    lb_array *const i = lb_bitcast_convert(cx, x, bits);
    lb_array *const sign = lb_shift_right_arithmetic(
        cx, i, lb_scalar_int(cx, 8 * (int64_t)size - 1));
    return lb_xor(cx, i,
                  lb_shift_right_logical(cx, sign, lb_scalar_int(cx, 1)));
}

static lb_array *run_compare(const op_rule *r, const op_call *c)
{
    static const struct {
        const char *name;
        lb_array *(*compare)(lb_ctx *, lb_array *, lb_array *);
    } direction[] = {{"EQ", lb_eq}, {"NE", lb_ne}, {"LT", lb_lt},
                     {"LE", lb_le}, {"GT", lb_gt}, {"GE", lb_ge}};
    (void)r;
    bool total;
    const char *const want = attr_word(c, "direction|comparison_direction");
    if (!want || !plain_order(c, &total) || !same_type(c, 0, 1)) return NULL;
    lb_array *x = c->in[0];
    lb_array *y = c->in[1];
    if (total) {
        x = total_order(c->cx, x);
        y = total_order(c->cx, y);
    }
    for (size_t i = 0; i < sizeof(direction) / sizeof(direction[0]); i++) {
        if (!strcmp(want, direction[i].name)) {
            return direction[i].compare(c->cx, x, y);
        }
    }
    note_fail(c->note, "compare: unknown direction '%.32s'", want);
    return NULL;
}

static lb_array *run_select(const op_rule *r, const op_call *c)
{
    (void)r;
    if (!same_type(c, 1, 2)) return NULL;
    const lb_shape pred = lb_shape_of(c->in[0]);
    if (lb_dtype_of(c->in[0]) != LB_BOOL ||
        (!is_scalar(c, 0) && !shape_equal(pred, lb_shape_of(c->in[1])))) {
        note_fail(c->note, "select: pred is %s %s",
                  lb_dtype_name(lb_dtype_of(c->in[0])), shape_text(pred).s);
        return NULL;
    }
    return lb_select(c->cx, c->in[0], c->in[1], c->in[2]);
}

static lb_array *run_clamp(const op_rule *r, const op_call *c)
{
    (void)r;
    if (!(is_scalar(c, 0) ? same_dtype(c, 0, 1) : same_type(c, 0, 1)) ||
        !(is_scalar(c, 2) ? same_dtype(c, 2, 1) : same_type(c, 2, 1))) {
        return NULL;
    }
    return lb_clamp(c->cx, c->in[0], c->in[1], c->in[2]);
}

static lb_array *run_convert(const op_rule *r, const op_call *c)
{
    (void)r;
    return lb_convert(c->cx, c->in[0], c->type[0].dtype);
}

static lb_array *run_bitcast(const op_rule *r, const op_call *c)
{
    (void)r;
    if (lb_dtype_of(c->in[0]) == c->type[0].dtype) return c->in[0];
    return lb_bitcast_convert(c->cx, c->in[0], c->type[0].dtype);
}

/* Formats of reduce_precision that equal a conversion to a dtype and back; not
 * f16, because reduce_precision flushes its subnormal numbers to zero. */
static lb_array *run_reduce_precision(const op_rule *r, const op_call *c)
{
    (void)r;
    int64_t exponent = 0;
    int64_t mantissa = 0;
    if (!attr_int_or(c, "exponent_bits", 1, 64, 0, &exponent) ||
        !attr_int_or(c, "mantissa_bits", 0, 64, -1, &mantissa)) {
        return NULL;
    }
    static const struct {
        lb_dtype dtype;
        int exponent, mantissa;
    } bits[] = {
        {LB_F16, 5, 10}, {LB_BF16, 8, 7}, {LB_F32, 8, 23}, {LB_F64, 11, 52}};
    const lb_dtype own = lb_dtype_of(c->in[0]);
    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        if (own == bits[i].dtype && exponent == bits[i].exponent &&
            mantissa == bits[i].mantissa) {
            return c->in[0];
        }
    }
    if (own == LB_F32 && exponent == 8 && mantissa == 7) {
        return lb_convert(c->cx, lb_convert(c->cx, c->in[0], LB_BF16), LB_F32);
    }
    note_skip(c->note, "reduce_precision: %s to %d exponent bits and %d others",
              lb_dtype_name(own), (int)exponent, (int)mantissa);
    return NULL;
}

static lb_array *square(lb_ctx *cx, lb_array *x)
{
    return lb_mul(cx, x, x);
}

/* clang-format off */
#define UNARY(op, function)  {op, NULL, 1, run_unary, function, NULL, NULL}
#define BINARY(op, function) {op, NULL, 2, run_binary, NULL, function, NULL}
const op_rule stablehlo_elementwise[] = {
    UNARY("abs",                   lb_abs),
    UNARY("cbrt",                  lb_cbrt),
    UNARY("ceil",                  lb_ceil),
    UNARY("cosine",                lb_cos),
    UNARY("erf",                   lb_erf),
    UNARY("exponential",           lb_exp),
    UNARY("exponential_minus_one", lb_expm1),
    UNARY("floor",                 lb_floor),
    UNARY("is_finite",             lb_is_finite),
    UNARY("log",                   lb_log),
    UNARY("log_plus_one",          lb_log1p),
    UNARY("logistic",              lb_logistic),
    UNARY("negate",                lb_neg),
    UNARY("not",                   lb_not),
    UNARY("popcnt",                lb_popcnt),
    UNARY("round_nearest_afz",     lb_round_away),
    UNARY("round_nearest_even",    lb_round),
    UNARY("rsqrt",                 lb_rsqrt),
    UNARY("sign",                  lb_sign),
    UNARY("sine",                  lb_sin),
    UNARY("sqrt",                  lb_sqrt),
    UNARY("square",                square),
    UNARY("tan",                   lb_tan),
    UNARY("tanh",                  lb_tanh),
    BINARY("add",                    lb_add),
    BINARY("and",                    lb_and),
    BINARY("atan2",                  lb_atan2),
    BINARY("divide",                 lb_div),
    BINARY("maximum",                lb_max),
    BINARY("minimum",                lb_min),
    BINARY("multiply",               lb_mul),
    BINARY("or",                     lb_or),
    BINARY("power",                  lb_pow),
    BINARY("remainder",              lb_rem),
    BINARY("shift_left",             lb_shift_left),
    BINARY("shift_right_arithmetic", lb_shift_right_arithmetic),
    BINARY("shift_right_logical",    lb_shift_right_logical),
    BINARY("subtract",               lb_sub),
    BINARY("xor",                    lb_xor),
    RULE("bitcast_convert", NULL, 1, run_bitcast),
    RULE("clamp", NULL, 3, run_clamp),
    RULE("compare",
         "direction|comparison_direction compare_type|type", 2, run_compare),
    RULE("convert", NULL, 1, run_convert),
    RULE("reduce_precision", "exponent_bits mantissa_bits", 1,
         run_reduce_precision),
    RULE("select", NULL, 3, run_select),
    RULE(NULL, NULL, 0, NULL),
};
/* clang-format on */
