/* lanes.c - the arithmetic of the elementwise primitives: one small loop per
 * row of elementwise.def and compute type, which the compiler vectorizes, and
 * the user function of each. Most f32 loops are in kernels/lanes_f32.h.
 *
 * Semantics are XLA's: integers wrap, x / 0 is all ones, x rem 0 is x, shifts
 * by the width or more shift out all bits, max and min propagate NaN and order
 * -0 below 0.
 */
#include <math.h>
#include <string.h>

#include "core/core.h"
#include "lowbit_params.h"
#include "prims/elementwise.h"

#define F  LB_KIND_F
#define I  LB_KIND_I
#define U  LB_KIND_U
#define B  LB_KIND_B
#define NO x

/* ---- scalars ------------------------------------------------------------ */

static int64_t wrap_add(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x + (uint64_t)y);
}

static int64_t wrap_sub(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x - (uint64_t)y);
}

static int64_t wrap_mul(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x * (uint64_t)y);
}

static int64_t div_i64(int64_t x, int64_t y)
{
    return y == 0 ? -1 : y == -1 ? wrap_sub(0, x) : x / y;
}

static int64_t rem_i64(int64_t x, int64_t y)
{
    return y == 0 ? x : y == -1 ? 0 : x % y;
}

static uint64_t pow_u64(uint64_t x, uint64_t y)
{
    uint64_t r = 1;
    for (; y; y >>= 1, x *= x)
        if (y & 1) r *= x;
    return r;
}

/* 1 / x^-y, rounded toward zero: 0 unless x is 1 or -1. */
static int64_t pow_i64(int64_t x, int64_t y)
{
    if (y >= 0) return (int64_t)pow_u64((uint64_t)x, (uint64_t)y);
    return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
}

static uint64_t width_mask(int bits)
{
    return UINT64_MAX >> (64 - bits);
}

static int popcnt(uint64_t x, int bits)
{
    return __builtin_popcountll(x & width_mask(bits));
}

static uint64_t shift_left(uint64_t x, uint64_t y, int bits)
{
    return y >= (uint64_t)bits ? 0 : x << y;
}

static uint64_t shift_right(uint64_t x, uint64_t y, int bits)
{
    return y >= (uint64_t)bits ? 0 : (x & width_mask(bits)) >> y;
}

static int64_t shift_signed(int64_t x, uint64_t y, int bits)
{
    const int64_t sign = x < 0 ? -1 : 0;
    return y >= (uint64_t)bits ? sign : ((x ^ sign) >> y) ^ sign;
}

static uint64_t shift_signed_bits(uint64_t x, uint64_t y, int bits)
{
    const uint64_t top = (uint64_t)1 << (bits - 1);
    return (uint64_t)shift_signed((int64_t)((x ^ top) - top), y, bits);
}

static double sign_f64(double x)
{
    return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
}

static double logistic_f64(double x)
{
    const double e = exp(-fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

static double max_f64(double x, double y)
{
    return x > y || x != x || (x == y && !signbit(x)) ? x : y;
}

static double min_f64(double x, double y)
{
    return x < y || x != x || (x == y && signbit(x)) ? x : y;
}

/* ---- lanes -------------------------------------------------------------- */

#define LANES(NAME, T, R, EXPR)                                                \
    static void NAME(const lb_lanes *l)                                        \
    {                                                                          \
        const T *px = l->in[0], *py = l->in[1];                                \
        R *restrict out = l->out;                                              \
        const int bits = l->bits;                                              \
        (void)bits;                                                            \
        (void)py;                                                              \
        for (int64_t i = 0; i < l->n; i++) {                                   \
            DECLARE(T);                                                        \
            out[i] = (R)(EXPR);                                                \
        }                                                                      \
    }

#define WIDE_LANES(NAME, F64, I64, U64, BOOL)                                  \
    LANES(run_##NAME##_f64, double, double, F64)                               \
    LANES(run_##NAME##_i64, int64_t, int64_t, I64)                             \
    LANES(run_##NAME##_u64, uint64_t, uint64_t, U64)                           \
    LANES(run_##NAME##_bool, uint8_t, uint8_t, BOOL)

#define RUNS(NAME, F32)                                                        \
    {                                                                          \
        F32, run_##NAME##_f64, run_##NAME##_i64, run_##NAME##_u64,             \
            run_##NAME##_bool                                                  \
    }

#define PRIM(NAME, N, KINDS, SIZE, VJP)                                        \
    {                                                                          \
        .struct_size = sizeof(lb_prim), .name = #NAME, .params_size = (SIZE),  \
        .n_in = (N), .infer = lb_row_infer, .plan = lb_row_plan,               \
        .eval = lb_row_eval, .vjp = (VJP), .shard = lb_cuts_same,              \
        .fuse = lb_row_fuse, .element_ns = (KINDS) == F ? 0.2F : 0             \
    }

#define ROW(NAME, N, KINDS)                                                    \
    const lb_row lb_row_##NAME = {.prim =                                      \
                                      PRIM(NAME, N, KINDS, 0, lb_vjp_##NAME),  \
                                  .kinds = (KINDS),                            \
                                  .run = RUNS(NAME, run_##NAME##_f32)};

#define ROW_V(NAME, N, KINDS, TO_BOOL, VJP)                                    \
    const lb_row lb_row_##NAME = {.prim = PRIM(NAME, N, KINDS, 0, VJP),        \
                                  .kinds = (KINDS),                            \
                                  .to_bool = (TO_BOOL),                        \
                                  .lane = LB_LANE_##NAME,                      \
                                  .run = RUNS(NAME, NULL)};

#define CALL_1(NAME)                                                           \
    lb_array *lb_##NAME(lb_ctx *cx, lb_array *x)                               \
    {                                                                          \
        return lb_row_call(cx, &lb_row_##NAME, &x, NULL);                      \
    }

#define CALL_2(NAME)                                                           \
    lb_array *lb_##NAME(lb_ctx *cx, lb_array *x, lb_array *y)                  \
    {                                                                          \
        return lb_row_call(cx, &lb_row_##NAME, (lb_array *[]){x, y}, NULL);    \
    }

#define UNARY_V(NAME, KINDS, DX, ...)                                          \
    WIDE_LANES(NAME, __VA_ARGS__)                                              \
    ROW_V(NAME, 1, KINDS, false, lb_vjp_##NAME)                                \
    CALL_1(NAME)
#define UNARY(NAME, KINDS, DX, F32, ...)                                       \
    LANES(run_##NAME##_f32, float, float, F32)                                 \
    WIDE_LANES(NAME, __VA_ARGS__)                                              \
    ROW(NAME, 1, KINDS)                                                        \
    CALL_1(NAME)
#define BINARY_V(...)
#define BINARY(...)
#define COMPARE(...)
#define DECLARE(T)                                                             \
    const T x = px[i];                                                         \
    (void)x
#include "prims/elementwise.def"
LANES(run_is_finite_f64, double, uint8_t, isfinite(x))
#undef DECLARE
#undef UNARY
#undef BINARY
#undef COMPARE

#define UNARY_V(...)
#define UNARY(...)
#define BINARY_V(NAME, KINDS, DX, DY, ...)                                     \
    WIDE_LANES(NAME, __VA_ARGS__)                                              \
    ROW_V(NAME, 2, KINDS, false, lb_vjp_##NAME)                                \
    CALL_2(NAME)
#define BINARY(NAME, KINDS, DX, DY, F32, ...)                                  \
    LANES(run_##NAME##_f32, float, float, F32)                                 \
    WIDE_LANES(NAME, __VA_ARGS__)                                              \
    ROW(NAME, 2, KINDS)                                                        \
    CALL_2(NAME)
#define COMPARE(NAME, ANY)                                                     \
    LANES(run_##NAME##_f64, double, uint8_t, ANY)                              \
    LANES(run_##NAME##_i64, int64_t, uint8_t, ANY)                             \
    LANES(run_##NAME##_u64, uint64_t, uint8_t, ANY)                            \
    LANES(run_##NAME##_bool, uint8_t, uint8_t, ANY)                            \
    ROW_V(NAME, 2, F | I | U | B, true, NULL)                                  \
    CALL_2(NAME)
#define DECLARE(T)                                                             \
    const T x = px[i], y = py[i];                                              \
    (void)y
#include "prims/elementwise.def"
#undef DECLARE

/* ---- special cases ------------------------------------------------------- */

const lb_row lb_row_is_finite = {.prim = PRIM(is_finite, 1, 0, 0, NULL),
                                 .kinds = F,
                                 .to_bool = true,
                                 .lane = LB_LANE_is_finite,
                                 .run = {NULL, run_is_finite_f64}};
CALL_1(is_finite)

/* x^e by squaring, with the same steps for every element, so that it
 * vectorizes. */
#define POWER(NAME, T, INVERT)                                                 \
    static void NAME(const lb_lanes *l)                                        \
    {                                                                          \
        const int e = l->exponent;                                             \
        const T *x = l->in[0];                                                 \
        T *restrict out = l->out;                                              \
        for (int64_t i = 0; i < l->n; i++) {                                   \
            T r = 1, b = x[i];                                                 \
            for (unsigned k = e < 0 ? 0u - (unsigned)e : (unsigned)e; k;       \
                 k >>= 1, b = (T)(b * b))                                      \
                if (k & 1) r = (T)(r * b);                                     \
            out[i] = INVERT;                                                   \
        }                                                                      \
    }
POWER(run_integer_pow_f64, double, e < 0 ? 1.0 / r : r)
POWER(run_integer_pow_u64, uint64_t, r) /* the same bits for signed and
                                         * unsigned */
const lb_row lb_row_integer_pow = {
    .prim = PRIM(integer_pow, 1, F | I | U, sizeof(lb_integer_pow_params),
                 lb_vjp_integer_pow),
    .kinds = F | I | U,
    .lane = LB_LANE_integer_pow,
    .run = {NULL, run_integer_pow_f64, run_integer_pow_u64,
            run_integer_pow_u64}};

lb_array *lb_integer_pow(lb_ctx *cx, lb_array *x, int exponent)
{
    return lb_row_call(cx, &lb_row_integer_pow, &x,
                       &(lb_integer_pow_params){exponent});
}

#define SELECT(NAME, T)                                                        \
    static void NAME(const lb_lanes *l)                                        \
    {                                                                          \
        const uint8_t *p = l->in[0];                                           \
        const T *x = l->in[1], *y = l->in[2];                                  \
        T *restrict out = l->out;                                              \
        for (int64_t i = 0; i < l->n; i++)                                     \
            out[i] = p[i] ? x[i] : y[i];                                       \
    }
SELECT(run_select_f64, double)
SELECT(run_select_i64, int64_t)
SELECT(run_select_u64, uint64_t)
SELECT(run_select_bool, uint8_t)
ROW_V(select, 3, F | I | U | B, false, lb_vjp_select)

lb_array *lb_select(lb_ctx *cx, lb_array *pred, lb_array *on_true,
                    lb_array *on_false)
{
    return lb_row_call(cx, &lb_row_select,
                       (lb_array *[]){pred, on_true, on_false}, NULL);
}

#define CLAMP(NAME, T, MIN, MAX)                                               \
    static void NAME(const lb_lanes *l)                                        \
    {                                                                          \
        const T *lo = l->in[0], *x = l->in[1], *hi = l->in[2];                 \
        T *restrict out = l->out;                                              \
        for (int64_t i = 0; i < l->n; i++)                                     \
            out[i] = MIN(MAX(x[i], lo[i]), hi[i]);                             \
    }
#define LESS(x, y) ((x) < (y) ? (x) : (y))
#define MORE(x, y) ((x) > (y) ? (x) : (y))
CLAMP(run_clamp_f64, double, min_f64, max_f64)
CLAMP(run_clamp_i64, int64_t, LESS, MORE)
CLAMP(run_clamp_u64, uint64_t, LESS, MORE)
CLAMP(run_clamp_bool, uint8_t, LESS, MORE)
ROW_V(clamp, 3, F | I | U | B, false, lb_vjp_clamp)

lb_array *lb_clamp(lb_ctx *cx, lb_array *lo, lb_array *x, lb_array *hi)
{
    return lb_row_call(cx, &lb_row_clamp, (lb_array *[]){lo, x, hi}, NULL);
}
