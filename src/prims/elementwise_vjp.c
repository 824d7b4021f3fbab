/* elementwise_vjp.c - gradients of the elementwise primitives: functions from
 * columns dx and dy of elementwise.def, and special cases.
 *
 * Each is a short program over arrays, so an outer tape records it like any
 * other, and gradients of gradients work. 16-bit floats are computed in f32 and
 * rounded once. Where both operands of a maximum are equal, both get half of
 * the gradient.
 */
#include <limits.h>
#include <math.h>

#include "core/core.h"
#include "lowbit_params.h"
#include "prims/elementwise.h"

/* ---- notation of the table ----------------------------------------------- */

#define ZERO        NULL
#define NUM(v)      lb_scalar(cx, v)
#define NEG(a)      lb_neg(cx, a)
#define SIGN(a)     lb_sign(cx, a)
#define EXP(a)      lb_exp(cx, a)
#define SIN(a)      lb_sin(cx, a)
#define COS(a)      lb_cos(cx, a)
#define ROUND(a)    lb_round(cx, a)
#define ADD(a, b)   lb_add(cx, a, b)
#define SUB(a, b)   lb_sub(cx, a, b)
#define MUL(a, b)   lb_mul(cx, a, b)
#define DIV(a, b)   lb_div(cx, a, b)
#define SQUARE(a)   lb_mul(cx, a, a)
#define NORM        ADD(SQUARE(x), SQUARE(y))
#define ABOVE(a, b) above(cx, a, b, g)
#define POWER_X     power_x(cx, x, y, g)
#define POWER_Y     power_y(cx, x, r, g)
#define SILU(a)     MUL(a, lb_logistic(cx, a))
#define SILU_X      silu_x(cx, x, MUL(g, y))

/* g where a > b, half of it where they are equal. */
static lb_array *above(lb_ctx *cx, lb_array *a, lb_array *b, lb_array *g)
{
    lb_array *rest = lb_select(cx, lb_eq(cx, a, b), MUL(g, NUM(0.5)), NUM(0));
    return lb_select(cx, lb_gt(cx, a, b), g, rest);
}

/* y x^(y - 1), and 0 where y is 0, even if x is 0. */
static lb_array *power_x(lb_ctx *cx, lb_array *x, lb_array *y, lb_array *g)
{
    lb_array *none = lb_eq(cx, y, NUM(0));
    lb_array *less = lb_select(cx, none, NUM(1), SUB(y, NUM(1)));
    return MUL(g, lb_select(cx, none, NUM(0), MUL(y, lb_pow(cx, x, less))));
}

/* x^y log x, and 0 where x is 0. */
static lb_array *power_y(lb_ctx *cx, lb_array *x, lb_array *r, lb_array *g)
{
    lb_array *one = lb_select(cx, lb_eq(cx, x, NUM(0)), NUM(1), x);
    return MUL(g, MUL(r, lb_log(cx, one)));
}

/* The derivative of x s with s = logistic(x): s + x s (1 - s). */
static lb_array *silu_x(lb_ctx *cx, lb_array *x, lb_array *g)
{
    lb_array *s = lb_logistic(cx, x), *rest = SUB(NUM(1), s);
    return MUL(g, MUL(s, ADD(NUM(1), MUL(x, rest))));
}

/* ---- common code --------------------------------------------------------- */

/* The operands, the result and its gradient, as used in the formulas. */
typedef struct {
    lb_array *in[3], *r, *g;
    const void *params;
} terms;

typedef lb_array *formula(lb_ctx *cx, int operand, const terms *t);

lb_array *lb_vjp_wide(lb_ctx *cx, lb_array *a)
{
    if (a->dtype != LB_F16 && a->dtype != LB_BF16) return a;
    if (!a->store->data) a = lb_materialize(cx, a);
    return a ? lb_as(cx, a, LB_F32) : NULL;
}

/* A scalar operand is broadcast: its gradient is a sum. */
static lb_array *fit(lb_ctx *cx, lb_array *d, const lb_array *to)
{
    if (!d) return NULL;
    if (!to->shape.rank && d->shape.rank) d = lb_reduce_sum(cx, d, NULL);
    return d ? lb_as(cx, d, to->dtype) : NULL;
}

static lb_array *differentiate(lb_ctx *cx, const lb_call *c, int operand,
                               lb_array *out, lb_array *dout, formula *of)
{
    terms t = {.params = c->params};
    lb_enter(cx);
    t.r = lb_vjp_wide(cx, out);
    t.g = lb_vjp_wide(cx, dout);
    bool ok = t.r && t.g;
    for (int i = 0; i < c->n_in && ok; i++) {
        t.in[i] = lb_vjp_wide(cx, c->in[i]);
        ok = t.in[i] != NULL;
    }
    lb_array *d = ok ? of(cx, operand, &t) : NULL;
    return lb_leave_with(cx, fit(cx, d, c->in[operand]));
}

#define FUNCTION(NAME)                                                         \
    lb_array *lb_vjp_##NAME(lb_ctx *cx, const lb_call *c, int operand,         \
                            lb_array *out, lb_array *dout)                     \
    {                                                                          \
        return differentiate(cx, c, operand, out, dout, d_##NAME);             \
    }

#define VJP(NAME, DX, DY)                                                      \
    static lb_array *d_##NAME(lb_ctx *cx, int operand, const terms *t)         \
    {                                                                          \
        lb_array *x = t->in[0], *y = t->in[1], *r = t->r, *g = t->g;           \
        (void)cx, (void)x, (void)y, (void)r, (void)g;                          \
        return operand ? (DY) : (DX);                                          \
    }                                                                          \
    FUNCTION(NAME)

#define UNARY_V(NAME, KINDS, DX, ...)      VJP(NAME, DX, ZERO)
#define UNARY(NAME, KINDS, DX, ...)        VJP(NAME, DX, ZERO)
#define BINARY_V(NAME, KINDS, DX, DY, ...) VJP(NAME, DX, DY)
#define BINARY(NAME, KINDS, DX, DY, ...)   VJP(NAME, DX, DY)
#define COMPARE(NAME, ANY)
#include "prims/elementwise.def"

/* ---- special cases ------------------------------------------------------- */

static lb_array *d_integer_pow(lb_ctx *cx, int operand, const terms *t)
{
    const lb_integer_pow_params *p = t->params;
    (void)operand;
    if (!p->exponent) return NULL;
    if (p->exponent == 1) return t->g;
    lb_array *power = p->exponent == INT_MIN /* INT_MIN - 1 overflows */
                          ? DIV(t->r, t->in[0])
                          : lb_integer_pow(cx, t->in[0], p->exponent - 1);
    return MUL(t->g, MUL(power, NUM(p->exponent)));
}
FUNCTION(integer_pow)

static lb_array *d_select(lb_ctx *cx, int operand, const terms *t)
{
    lb_array *zero = NUM(0);
    return lb_select(cx, t->in[0], operand == 1 ? t->g : zero,
                     operand == 1 ? zero : t->g);
}
FUNCTION(select)

/* min(max(x, lo), hi): if x equals a bound, neither x nor the bound gets a
 * gradient */
static lb_array *d_clamp(lb_ctx *cx, int operand, const terms *t)
{
    lb_array *lo = t->in[0], *x = t->in[1], *hi = t->in[2], *which;
    if (operand == 2)
        which = lb_gt(cx, lb_max(cx, x, lo), hi);
    else if (operand == 1)
        which = lb_and(cx, lb_gt(cx, x, lo), lb_lt(cx, x, hi));
    else
        which = lb_and(cx, lb_gt(cx, lo, x), lb_le(cx, lo, hi));
    return lb_select(cx, which, t->g, NUM(0));
}
FUNCTION(clamp)
