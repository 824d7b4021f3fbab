/* shard_layer.h - the layer that handles calls with sharded arrays. */
#ifndef LB_SHARD_LAYER_H
#define LB_SHARD_LAYER_H

#include "shard/mesh.h"

/* Installs it below all layers of the mesh's context; removes it. */
void lb_shard_layer_put(lb_mesh *mesh);
void lb_shard_layer_take(lb_mesh *mesh);

#endif
