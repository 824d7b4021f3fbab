/* raw_prim.h - a primitive that requires a dense operand, for tests of the
 * dense policy. It copies its operand. */
#ifndef LB_RAW_PRIM_H
#define LB_RAW_PRIM_H

#include <string.h>

#include "lowbit_ext.h"

static inline bool raw_infer(lb_ctx *cx, lb_call *c)
{
    (void)cx;
    c->shape = c->in[0]->shape;
    c->dtype = c->in[0]->dtype;
    return true;
}

static inline void raw_plan(const lb_call *c, lb_plan *p)
{
    (void)c;
    p->phases = 1;
    p->units[0] = 1;
}

static inline void raw_eval(const lb_work *w)
{
    memcpy(w->out->store->data, lb_data(w->call->in[0]),
           w->out->store->data_size);
}

static const lb_prim raw_prim = {
    .struct_size = sizeof(lb_prim),
    .name = "raw",
    .n_in = 1,
    .infer = raw_infer,
    .plan = raw_plan,
    .eval = raw_eval,
    .dense = true,
};

#endif
