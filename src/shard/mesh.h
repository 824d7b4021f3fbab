/* mesh.h - internals shared by the files of the mesh.
 *
 * A sharded array is a special kind of store: its shape is the global one, its
 * only part is this rank's slice, and lb_store.sharding describes the sharding.
 * Its view is always the plain one. The layer that lb_mesh_open installs below
 * all others of its context (shard_layer.c) handles all calls with such arrays.
 */
#ifndef LB_MESH_H
#define LB_MESH_H

#include "core/core.h"
#include "lowbit_mesh.h"

struct lb_mesh {
    lb_layer layer; /* first member, to be cast back */
    lb_ctx *cx;     /* NULL: closed */
    int refs;       /* atomic: its own, and one per sharded store */
    lb_heap *heap;
    size_t got;
    lb_comm *comm;
    lb_grid grid;
    int coord[LB_MAX_MESH_AXES]; /* of this rank */
    bool deterministic;
    int64_t failed; /* the value of lb_ctx.errors for the error that all ranks
                     * know: no communication until it is cleared; 0: none
                     * yet */
    lb_comm *sub[1 << LB_MAX_MESH_AXES]; /* by mask of axes; created on
                                          * demand */
    lb_traffic traffic;
    char *room; /* buffer for agreeing: a message and the state of each rank */
    size_t room_got;
};

/* The sharding of a store: what lb_store.sharding points to. */
typedef struct lb_spread {
    struct lb_sharding base; /* first member, to be cast back */
    lb_mesh *mesh;           /* a reference */
    lb_spec spec;
} lb_spread;

/* sharded.c: the sharding, NULL if a is not sharded; and the slice of a. */
const lb_spread *lb_spread_of(const lb_array *a);
lb_array *lb_slice_here(const lb_array *a);
/* A sharded array of that shape and dtype from this rank's slice, which is
 * referenced, in the open scope. spec has at most one entry per axis. */
lb_array *lb_spread_make(lb_mesh *mesh, const lb_spec *spec, lb_dtype dtype,
                         const lb_shape *shape, lb_array *slice);

void lb_mesh_unref(lb_mesh *mesh);

/* mesh_agree.c: whether no rank has an error and all are at the same call; `at`
 * names it for the error message. */
bool lb_mesh_meet(lb_mesh *mesh, const char *at);
/* The same, and whether `form` is the same on all ranks: it describes what they
 * will exchange, or have created. */
bool lb_mesh_meet_with(lb_mesh *mesh, const char *at, uint32_t form,
                       bool *alike);
size_t lb_mesh_agree_room(int ranks); /* bytes of lb_mesh.room */
/* A communicator failed: its message becomes the context's error. */
bool lb_mesh_broken(lb_mesh *mesh, lb_comm *comm);

/* mesh_groups.c: ranks along some axes. Mask: bit k is mesh axis k. The mask of
 * an entry, of a whole spec; the group size of a mask. */
unsigned lb_spec_mask(const lb_spec *spec, int entry);
unsigned lb_spec_masks(const lb_spec *spec);
int lb_grid_ranks(const lb_grid *grid, unsigned mask);
/* spec_parse.c: lb_spec_parse for an array whose pieces along axis k must be
 * multiples of grain[k] (LB_MAX_RANK values; NULL: 1). Only relaxed parsing
 * uses it. */
bool lb_spec_parse_grain(lb_ctx *cx, const lb_grid *grid, lb_shape shape,
                         const int64_t *grain, const char *text,
                         lb_spec_report *report, lb_spec *spec);
/* spec.c: "dp=2,tp=4" in buf; returns buf. */
const char *lb_grid_text(const lb_grid *grid, char *buf, size_t size);
/* The coordinates of a rank. */
void lb_grid_coord(const lb_grid *grid, int rank, int *coord);
/* The rank in the whole mesh of a member of this rank's group. */
int lb_mesh_member(const lb_mesh *mesh, unsigned mask, int member);
/* The communicator of the group, with members in rank order. NULL without an
 * error if the group is only this rank; false on error. */
bool lb_mesh_group(lb_mesh *mesh, unsigned mask, lb_comm **comm);

/* collective.c: for any dtype, counted in lb_traffic, in pieces of bounded
 * size. They begin with lb_mesh_meet, after all memory has been allocated. A
 * rank with an earlier error must call them too; data and mine are not used
 * then. bf16 and f16 are summed in f32. */
bool lb_mesh_reduce(lb_mesh *mesh, const char *at, unsigned mask, lb_comm_op op,
                    lb_dtype dtype, int64_t count, void *data);
bool lb_mesh_gather(lb_mesh *mesh, const char *at, unsigned mask, size_t bytes,
                    const void *mine, void *all);
/* The same right after a call of lb_mesh_meet. */
bool lb_mesh_gather_met(lb_mesh *mesh, unsigned mask, size_t bytes,
                        const void *mine, void *all);

#endif
