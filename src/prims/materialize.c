/* materialize.c - "copy": makes any view of any format dense and row-major. */
#include "lowbit_params.h"
#include "prims/cuts.h"
#include "prims/place.h"

static bool infer(lb_ctx *cx, lb_call *c)
{
    (void)cx;
    c->shape = c->in[0]->shape;
    c->dtype = c->in[0]->dtype;
    return true;
}

static void plan(const lb_call *c, lb_plan *plan)
{
    lb_place p;
    lb_place_plan(&p, c->in[0], &c->shape, NULL, NULL);
    *plan = (lb_plan){
        .per_thread = p.raw ? 0 : LB_PLACE_SCRATCH,
        .phases = 1,
        .units = {p.units},
        .kernel = lb_place_name(&p),
    };
}

static void eval(const lb_work *w)
{
    lb_place p;
    lb_place_plan(&p, w->call->in[0], &w->call->shape, NULL, NULL);
    lb_place_run(&p, w, w->lo, w->hi);
}

static lb_array *vjp(lb_ctx *cx, const lb_call *c, int operand, lb_array *out,
                     lb_array *dout)
{
    (void)cx, (void)c, (void)operand, (void)out;
    return dout;
}

static void fuse(const lb_call *c, lb_fusion *to)
{
    (void)c;
    to->kind = LB_FUSE_SAME;
}

const lb_prim lb_prim_copy = {
    .struct_size = sizeof(lb_prim),
    .name = "copy",
    .n_in = 1,
    .infer = infer,
    .plan = plan,
    .eval = eval,
    .vjp = vjp,
    .shard = lb_cuts_same,
    .fuse = fuse,
};

lb_array *lb_materialize(lb_ctx *cx, lb_array *a)
{
    const bool cut = a && a->store->sharding;
    const lb_array *here = cut ? a->store->part[0].a : a;
    return lb_data(here) ? a : lb_bind(cx, &lb_prim_copy, 1, &a, NULL);
}
