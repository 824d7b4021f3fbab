/* convert_element_type.c - converts to another dtype, with one rounding (see
 * kernels/convert.h for the rules).
 *
 * For all formats except dense, conversion to a float dtype only changes the
 * logical dtype.
 */
#include "core/core.h"
#include "lowbit_params.h"
#include "prims/cuts.h"

enum { UNIT = 16 }; /* tiles */

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_convert_params *p = c->params;
    if (!lb_dtype_size(p->dtype))
        return lb_fail(cx, LB_E_DTYPE, "%s: %d is not a dtype", c->prim->name,
                       (int)p->dtype);
    c->shape = c->in[0]->shape;
    c->dtype = p->dtype;
    return true;
}

static lb_verdict move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    const lb_array *a = c->in[0];
    const bool label = a->store->fmt->relabel && lb_dtype_is_float(c->dtype);
    if (c->dtype != a->dtype && !label) return LB_DECLINED;
    *out = lb_view(cx, a);
    if (!*out) return LB_FAILED;
    (*out)->dtype = c->dtype;
    (*out)->weak = false;
    return LB_DONE;
}

static void plan(const lb_call *c, lb_plan *p)
{
    const lb_array *in = c->in[0];
    const lb_tiling t = lb_tiling_for(&c->shape, &in, 1);
    p->per_thread = (size_t)t.size * 8;
    p->phases = 1;
    p->units[0] = lb_ceil_div(t.tiles, UNIT);
    p->kernel = "convert";
}

static void eval(const lb_work *w)
{
    const lb_call *c = w->call;
    const lb_array *in = c->in[0];
    const lb_ctype from = lb_ctype_of(in->dtype);
    const lb_tiling t = lb_tiling_for(&c->shape, &in, 1);
    const int64_t end = lb_min_i64(w->hi * UNIT, t.tiles);
    for (int64_t i = w->lo * UNIT; i < end; i++) {
        int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK];
        lb_tiling_box(&t, i, lo, n);
        const void *tile = lb_tile_peek(c->cpu, in, lo, n, from, w->scratch);
        lb_tile_write(c->cpu, w->out, lo, n, from, tile);
    }
}

static lb_array *vjp(lb_ctx *cx, const lb_call *c, int operand, lb_array *out,
                     lb_array *dout)
{
    (void)operand, (void)out;
    return lb_as(cx, dout, c->in[0]->dtype);
}

static void fuse(const lb_call *c, lb_fusion *to)
{
    (void)c;
    to->kind = LB_FUSE_CONVERT;
}

const lb_prim lb_prim_convert_element_type = {
    .struct_size = sizeof(lb_prim),
    .name = "convert_element_type",
    .params_size = sizeof(lb_convert_params),
    .n_in = 1,
    .infer = infer,
    .move = move,
    .plan = plan,
    .eval = eval,
    .vjp = vjp,
    .shard = lb_cuts_same,
    .fuse = fuse,
};

lb_array *lb_convert(lb_ctx *cx, lb_array *a, lb_dtype dtype)
{
    return lb_bind(cx, &lb_prim_convert_element_type, 1, &a,
                   &(lb_convert_params){dtype});
}
