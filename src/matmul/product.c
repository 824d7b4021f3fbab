/* product.c - plans and runs a product, and says what dtypes may meet in it. */
#include "matmul/product.h"

#include <stdio.h>

#include "matmul/select.h"

/* "gemm of i8, x in 2 digits, tile 12x32, panel 512", for lb_explain. */
static void describe(const lb_product *p, char *to, size_t room)
{
    static const char *const types[] = {"f64", "u64", "f32", "i16", "i8"};
    const lb_choice *c = &p->choice;
    size_t at = (size_t)snprintf(to, room, "%s of %s", c->algorithm->name,
                                 types[c->type]);
    if (c->digits)
        at += (size_t)snprintf(to + at, room - at, ", x in %d digit%s",
                               c->digits, c->digits == 1 ? "" : "s");
    if (p->tile.mr)
        at += (size_t)snprintf(to + at, room - at, ", tile %lldx%lld",
                               (long long)p->tile.mr, (long long)p->tile.nr);
    if (p->tile.kc)
        snprintf(to + at, room - at, ", panel %lld", (long long)p->tile.kc);
}

void lb_product_plan(lb_product *p, const lb_call *c, lb_plan *plan)
{
    lb_weights w;
    plan->phases = 1;
    if (!p->batch || !p->m || !p->n) return;
    p->choice = lb_algorithm_for(p, c->cpu, &w);
    p->tile = (lb_tile_sizes){0};
    p->choice.algorithm->plan(p, &w, c, plan);
    if (plan->detail) describe(p, plan->detail, LB_PLAN_DETAIL);
}

void lb_product_run(const lb_product *p, const lb_work *w)
{
    p->choice.algorithm->run(p, w);
}

bool lb_product_dtype(lb_ctx *cx, const char *who, lb_dtype x, lb_dtype y,
                      lb_dtype preferred, lb_precision precision, lb_dtype *out)
{
    const bool floats = lb_dtype_is_float(x) && lb_dtype_is_float(y);
    if (x != y && !floats)
        return lb_fail(cx, LB_E_DTYPE, "%s: %s with %s", who, lb_dtype_name(x),
                       lb_dtype_name(y));
    if (preferred != LB_NO_DTYPE && !lb_dtype_size(preferred))
        return lb_fail(cx, LB_E_DTYPE, "%s: preferred dtype %d is not a dtype",
                       who, (int)preferred);
    if (preferred != LB_NO_DTYPE && floats && !lb_dtype_is_float(preferred))
        return lb_fail(
            cx, LB_E_DTYPE, "%s: %s with %s cannot give the preferred %s", who,
            lb_dtype_name(x), lb_dtype_name(y), lb_dtype_name(preferred));
    if (precision > LB_PRECISION_FASTEST)
        return lb_fail(cx, LB_E_ARG,
                       "%s: precision is %d, which is not a valid value", who,
                       (int)precision);
    *out = preferred != LB_NO_DTYPE ? preferred : lb_promote(x, y);
    return true;
}

lb_precision lb_product_precision(const lb_call *c, lb_precision own)
{
    return own == LB_PRECISION_DEFAULT ? c->precision : own;
}

bool lb_product_meets(lb_array *const *in)
{
    return lb_dtype_is_float(in[0]->dtype) && lb_dtype_is_float(in[1]->dtype) &&
           !in[0]->weak && !in[1]->weak;
}

lb_ctype lb_product_type(const lb_call *c)
{
    const lb_dtype x = c->in[0]->dtype, y = c->in[1]->dtype;
    if (x == LB_F64 || y == LB_F64 || c->dtype == LB_F64) return LB_C_F64;
    return lb_dtype_is_float(c->dtype) ? LB_C_F32 : LB_C_U64;
}

lb_ctype lb_product_tile(const lb_call *c)
{
    const lb_ctype type = lb_product_type(c);
    const bool is_signed = lb_ctype_of(c->in[0]->dtype) == LB_C_I64;
    return type == LB_C_U64 && is_signed ? LB_C_I64 : type;
}

bool lb_product_direct(const lb_call *c)
{
    const lb_ctype type = lb_product_type(c), out = lb_ctype_of(c->dtype);
    return lb_dtype_size(c->dtype) == lb_ctype_size(type) &&
           (type == LB_C_U64 || out == type);
}
