/* mesh.h - what the files of the mesh share.
 *
 * A sharded array is a store of its own kind: its shape is the global one, its
 * only part is this rank's slice, and lb_store.sharding says how it was cut.
 * Its view is always the plain one. No such array gets past the layer that
 * lb_mesh_open puts below all others of its context (shard_layer.c).
 */
#ifndef LB_MESH_H
#define LB_MESH_H

#include "core/core.h"
#include "lowbit_mesh.h"

struct lb_mesh {
    lb_layer layer; /* first, so that it leads back here */
    lb_ctx *cx;     /* NULL: closed */
    int refs;       /* atomic: its own, and one for each sharded store */
    lb_heap *heap;
    size_t got;
    lb_comm *comm;
    lb_grid grid;
    int coord[LB_MAX_MESH_AXES]; /* of this rank */
    bool deterministic;
    int64_t failed; /* the error, by lb_ctx.errors, that all ranks know: nothing
                     * is exchanged until it is cleared; 0: none yet */
    lb_comm *sub[1 << LB_MAX_MESH_AXES]; /* by mask of axes; made when needed */
    lb_traffic traffic;
    char *room; /* to agree in: a sentence of each rank, and its state */
    size_t room_got;
};

/* How a store is spread: what lb_store.sharding points to. */
typedef struct lb_spread {
    struct lb_sharding base; /* first */
    lb_mesh *mesh;           /* a reference */
    lb_spec spec;
} lb_spread;

/* sharded.c: NULL if a is not sharded; its slice. */
const lb_spread *lb_spread_of(const lb_array *a);
lb_array *lb_slice_here(const lb_array *a);
/* A sharded array of that shape and dtype from this rank's slice, which is
 * referenced, in the open scope. spec has an entry for each axis, or fewer. */
lb_array *lb_spread_make(lb_mesh *mesh, const lb_spec *spec, lb_dtype dtype,
                         const lb_shape *shape, lb_array *slice);

void lb_mesh_unref(lb_mesh *mesh);

/* mesh_agree.c: whether all ranks are well, and at the same place in their
 * programs; `at` names it, for the sentence if they are not. */
bool lb_mesh_meet(lb_mesh *mesh, const char *at);
/* The same, and whether all give the same form: of what they will exchange, or
 * have made. */
bool lb_mesh_meet_with(lb_mesh *mesh, const char *at, uint32_t form,
                       bool *alike);
size_t lb_mesh_agree_room(int ranks); /* bytes of lb_mesh.room */
/* A communicator failed: its own sentence becomes the context's error. */
bool lb_mesh_broken(lb_mesh *mesh, lb_comm *comm);

/* mesh_groups.c: ranks along some axes. Mask: bit k is mesh axis k. The mask
 * of an entry, of a whole spec; the size of a mask's group. */
unsigned lb_spec_mask(const lb_spec *spec, int entry);
unsigned lb_spec_masks(const lb_spec *spec);
int lb_grid_ranks(const lb_grid *grid, unsigned mask);
/* spec_parse.c: lb_spec_parse for an array whose pieces along axis k must be
 * multiples of grain[k], LB_MAX_RANK of them; NULL: 1. Only a relaxed reading
 * looks at it. */
bool lb_spec_parse_grain(lb_ctx *cx, const lb_grid *grid, lb_shape shape,
                         const int64_t *grain, const char *text,
                         lb_spec_report *report, lb_spec *spec);
/* spec.c: "dp=2,tp=4" in buf; returns buf. */
const char *lb_grid_text(const lb_grid *grid, char *buf, size_t size);
/* The coordinates of a rank. */
void lb_grid_coord(const lb_grid *grid, int rank, int *coord);
/* The rank, of the whole mesh, of the member-th of this rank's group. */
int lb_mesh_member(const lb_mesh *mesh, unsigned mask, int member);
/* The communicator of the group, members in the order of their ranks. NULL and
 * no error where the group is this rank alone; false on error. */
bool lb_mesh_group(lb_mesh *mesh, unsigned mask, lb_comm **comm);

/* collective.c: counted, in pieces of bounded size, for any dtype. They begin
 * with lb_mesh_meet, after all memory has been asked for: who failed before may
 * call them, and must. data and mine are not looked at then. bf16 and f16 are
 * added in f32. */
bool lb_mesh_reduce(lb_mesh *mesh, const char *at, unsigned mask, lb_comm_op op,
                    lb_dtype dtype, int64_t count, void *data);
bool lb_mesh_gather(lb_mesh *mesh, const char *at, unsigned mask, size_t bytes,
                    const void *mine, void *all);
/* The same for ranks that have just met. */
bool lb_mesh_gather_met(lb_mesh *mesh, unsigned mask, size_t bytes,
                        const void *mine, void *all);

#endif
