/* shard_plan.h - what a call of sharded arrays becomes.
 *
 * The primitive's rule gives labels to axes. Each label is cut by the mesh axes
 * that cut it in the largest operand that has it, unless they do not divide it
 * or are taken by another label. Operands are brought to that, each rank runs
 * its share, and partial results are combined.
 */
#ifndef LB_SHARD_PLAN_H
#define LB_SHARD_PLAN_H

#include "shard/mesh.h"

typedef struct lb_shard_plan {
    lb_mesh *mesh;
    const lb_call *call; /* of whole arrays */
    lb_cuts cuts;
    bool whole;    /* no rule: operands are gathered */
    lb_spec label; /* how each label is cut: entry l is label l + 1 */
    lb_spec *want; /* how each operand is to be cut */
    lb_spec out;
    unsigned partial; /* mesh axes over which results are combined */
    unsigned spans;   /* mesh axes over which the share depends on others */
    void *block;
    size_t got;
} lb_shard_plan;

/* shard_plan.c: false and an error if it cannot be. */
bool lb_shard_plan_open(lb_mesh *mesh, const lb_call *call, lb_shard_plan *p);
void lb_shard_plan_close(lb_shard_plan *p);
/* Whether operand i has to be gathered along some axes. */
bool lb_shard_plan_gathers(const lb_shard_plan *p, int i);

/* shard_call.c: the call itself; and in words. */
lb_array *lb_shard_call(lb_mesh *mesh, const lb_prim *prim, int n,
                        lb_array *const *in, const void *params);
bool lb_shard_explain(lb_mesh *mesh, const lb_call *call, char *to,
                      size_t room);

#endif
