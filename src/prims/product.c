/* product.c - which way a product goes, and what dtypes may meet in it. */
#include "prims/product.h"

#include "prims/weights.h"

/* Ways to multiply packed weights, each where it is the fastest. */
static const lb_weights_way *const coded_ways[] = {
    &lb_coded_pairs, &lb_coded_table,  &lb_coded_table_across, &lb_coded_thin,
    &lb_coded_byte,  &lb_coded_outer,  &lb_coded_block,        &lb_coded_panel,
    &lb_coded_exact, &lb_coded_across,
};
enum { CODED_WAYS = sizeof coded_ways / sizeof *coded_ways };

static const lb_weights_way *way_of(const lb_product *p, const lb_cpu *cpu,
                                    lb_weights *w)
{
    if (p->a->type != LB_C_F32) return &lb_plain;
    if (lb_weights_of(p, cpu, w))
        for (int i = 0; i < CODED_WAYS; i++)
            if (coded_ways[i]->fits(p, w, cpu)) return coded_ways[i];
    const int64_t rows = lb_min_i64(p->m, p->n);
    return rows <= LB_THIN ? &lb_thin : rows <= LB_FEW ? &lb_few : &lb_packed;
}

void lb_product_plan(lb_product *p, const lb_call *c, lb_plan *plan)
{
    lb_weights w;
    plan->phases = 1;
    if (!p->batch || !p->m || !p->n) return;
    p->way = way_of(p, c->cpu, &w);
    p->way->plan(p, &w, c, plan);
}

void lb_product_run(const lb_product *p, const lb_work *w)
{
    p->way->run(p, w);
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
