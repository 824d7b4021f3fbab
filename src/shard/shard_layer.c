/* shard_layer.c - the layer that handles calls with sharded arrays.
 *
 * It is below all other layers of its context: a tape above it records calls of
 * whole arrays. shard_plan.c plans how calls are executed.
 */
#include "shard/shard_layer.h"

#include "shard/shard.h"
#include "shard/shard_plan.h"

static bool concerns(const lb_mesh *mesh, int n, lb_array *const *in)
{
    for (int i = 0; i < n; i++)
        if (lb_mesh_of(in[i]) == mesh) return true;
    return false;
}

static lb_array *bind(lb_ctx *cx, lb_layer *self, const lb_prim *prim, int n,
                      lb_array *const *in, const void *params)
{
    lb_mesh *mesh = (lb_mesh *)(void *)self;
    if (prim == &lb_prim_reshard) {
        const lb_reshard_params *p = params;
        if (p->mesh == mesh) return lb_reshard_run(mesh, in[0], p);
    } else if (concerns(mesh, n, in)) {
        return lb_shard_call(mesh, prim, n, in, params);
    }
    return lb_bind(cx, prim, n, in, params);
}

static bool whole(const lb_layer *self, const lb_prim *prim, int n,
                  lb_array *const *in)
{
    return prim->shard || !concerns((const lb_mesh *)(const void *)self, n, in);
}

static bool explain(lb_ctx *cx, lb_layer *self, const lb_call *c, char *to,
                    size_t room)
{
    (void)cx;
    lb_mesh *mesh = (lb_mesh *)(void *)self;
    return concerns(mesh, c->n_in, c->in) &&
           lb_shard_explain(mesh, c, to, room);
}

void lb_shard_layer_put(lb_mesh *mesh)
{
    lb_layer **at = &mesh->cx->layer;
    while (*at)
        at = &(*at)->below;
    mesh->layer = (lb_layer){
        .bind = bind, .explain = explain, .transparent = true, .whole = whole};
    *at = &mesh->layer;
}

void lb_shard_layer_take(lb_mesh *mesh)
{
    for (lb_layer **at = &mesh->cx->layer; *at; at = &(*at)->below) {
        if (*at != &mesh->layer) continue;
        *at = mesh->layer.below;
        return;
    }
}
