/* shard_layer.h - the layer through which sharded arrays reach primitives. */
#ifndef LB_SHARD_LAYER_H
#define LB_SHARD_LAYER_H

#include "shard/mesh.h"

/* Below all layers of the mesh's context, and away again. */
void lb_shard_layer_put(lb_mesh *mesh);
void lb_shard_layer_take(lb_mesh *mesh);

#endif
