/* shard.h - the primitive "reshard", for the layer that runs it. */
#ifndef LB_SHARD_H
#define LB_SHARD_H

#include "shard/mesh.h"

typedef struct lb_reshard_params {
    lb_mesh *mesh;
    lb_spec spec;
    bool plain; /* the result is not sharded; spec is P() */
} lb_reshard_params;

extern const lb_prim lb_prim_reshard;
/* Runs it, in the open scope. */
lb_array *lb_reshard_run(lb_mesh *mesh, lb_array *a,
                         const lb_reshard_params *p);

/* Shards a like another array of the same shape: lb_cut_like. */
lb_array *lb_reshard_like(lb_ctx *cx, lb_array *a, const lb_array *like,
                          bool cheap);

#endif
