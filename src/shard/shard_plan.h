/* shard_plan.h - how a call with sharded arrays is executed.
 *
 * The primitive's rule gives labels to axes. Each label is cut along the mesh
 * axes that cut it in the largest operand that has it, unless they do not
 * divide it or are used by another label. Operands are resharded accordingly,
 * each rank computes its share, and partial results are combined.
 */
#ifndef LB_SHARD_PLAN_H
#define LB_SHARD_PLAN_H

#include "shard/mesh.h"

typedef struct lb_shard_plan {
    lb_mesh *mesh;
    const lb_call *call; /* with global shapes */
    lb_cuts cuts;
    bool whole;    /* no rule: operands are gathered */
    lb_spec label; /* sharding of each label: entry l is label l + 1 */
    lb_spec *want; /* required sharding of each operand */
    lb_spec out;
    unsigned partial; /* mesh axes over which to combine results */
    unsigned spans;   /* mesh axes over which a share depends on others */
    void *block;
    size_t got;
} lb_shard_plan;

/* shard_plan.c: false and an error if the call is impossible. */
bool lb_shard_plan_open(lb_mesh *mesh, const lb_call *call, lb_shard_plan *p);
void lb_shard_plan_close(lb_shard_plan *p);
/* Whether operand i must be gathered along some axes. */
bool lb_shard_plan_gathers(const lb_shard_plan *p, int i);

/* shard_call.c: executes a call; describes it for lb_explain. */
lb_array *lb_shard_call(lb_mesh *mesh, const lb_prim *prim, int n,
                        lb_array *const *in, const void *params);
bool lb_shard_explain(lb_mesh *mesh, const lb_call *call, char *to,
                      size_t room);

#endif
