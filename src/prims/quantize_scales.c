/* quantize_scales.c - "quantize_scales": the same codes, with scales in 8 bits.
 *
 * Every part that the format flags as scales is quantized, its entries as one
 * flat row, so that blocks of 256 cross the rows of the array, as in
 * bitsandbytes' double quantization. The view does not change.
 */
#include "core/core.h"
#include "core/registry.h"
#include "lowbit_params.h"

extern const lb_prim lb_prim_quantize;

static bool is_scale(const lb_store *s, int p)
{
    const lb_array *a = s->part[p].a;
    return s->fmt->part[p].scale && a && lb_dtype_is_float(a->dtype);
}

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_quantize_scales_params *params = c->params;
    const lb_array *a = c->in[0];
    /* All ranks have the same parts of their slices. */
    const lb_store *s =
        a->store->sharding ? a->store->part[0].a->store : a->store;
    int found = 0;
    if ((unsigned)params->compat > LB_COMPAT_BNB_CPU)
        return lb_fail(
            cx, LB_E_ARG,
            "quantize_scales: compat is %d, which is not a valid value",
            (int)params->compat);
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        if (!is_scale(s, p)) continue;
        if (!s->part[p].a->store->data)
            return lb_fail(cx, LB_E_ARG,
                           "quantize_scales: %s%s already has its %s in %s",
                           s->fmt->name, LB_SHOW(&a->shape),
                           s->fmt->part[p].name, lb_format_of(s->part[p].a));
        found++;
    }
    if (!found)
        return lb_fail(cx, LB_E_ARG,
                       "quantize_scales: %s%s has no separate scales",
                       s->fmt->name, LB_SHOW(&a->shape));
    c->shape = a->shape;
    c->dtype = a->dtype;
    return true;
}

static lb_array *quantized(lb_ctx *cx, lb_array *scale, lb_compat compat)
{
    const lb_quant q = {
        .format = lb_scale_format,
        .center = true,
        .blocks = LB_BLOCKS_FLAT,
        .compat = compat == LB_COMPAT_EFORMER ? LB_COMPAT_NATIVE : compat,
    };
    return lb_bind(cx, &lb_prim_quantize, 1, &scale, &q);
}

static lb_verdict move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    const lb_quantize_scales_params *params = c->params;
    const lb_array *a = c->in[0];
    lb_part table[LB_MAX_PARTS];
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        table[p] = a->store->part[p];
        if (!is_scale(a->store, p)) continue;
        table[p].a = quantized(cx, table[p].a, params->compat);
        if (!table[p].a) return LB_FAILED;
    }
    lb_array *made =
        lb_make_like(cx, a->store, a->dtype, &a->store->shape, table);
    if (!made) return LB_FAILED;
    made->shape = a->shape;
    made->offset = a->offset;
    for (int k = 0; k < LB_MAX_RANK; k++)
        made->stride[k] = a->stride[k];
    *out = made;
    return LB_DONE;
}

/* The identity, as for quantize. */
static lb_array *vjp(lb_ctx *cx, const lb_call *c, int operand, lb_array *out,
                     lb_array *dout)
{
    (void)cx, (void)c, (void)operand, (void)out;
    return dout;
}

/* Blocks of scales cross rows, so the array cannot be cut. */
static bool shard(const lb_call *c, lb_cuts *to)
{
    (void)c;
    to->keeps = true;
    return false;
}

const lb_prim lb_prim_quantize_scales = {
    .struct_size = sizeof(lb_prim),
    .name = "quantize_scales",
    .params_size = sizeof(lb_quantize_scales_params),
    .n_in = 1,
    .infer = infer,
    .move = move,
    .vjp = vjp,
    .shard = shard,
};

lb_array *lb_quantize_scales(lb_ctx *cx, lb_array *a)
{
    return lb_bind(cx, &lb_prim_quantize_scales, 1, &a,
                   &(lb_quantize_scales_params){LB_COMPAT_NATIVE});
}
