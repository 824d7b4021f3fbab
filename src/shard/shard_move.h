/* shard_move.h - slices: cut from local arrays, gathered from other ranks. */
#ifndef LB_SHARD_MOVE_H
#define LB_SHARD_MOVE_H

#include "shard/mesh.h"

/* Elements [start, start + count) of a as a view of it, in the open scope. */
lb_array *lb_cut_view(lb_ctx *cx, lb_array *a, const int64_t *start,
                      const int64_t *count);
/* The same as a compact array, packed if a is: an error if that would cut a
 * block. */
lb_array *lb_cut_compact(lb_ctx *cx, lb_array *a, const int64_t *start,
                         const int64_t *count);
/* This rank's slice of a, which is not sharded. compact: as lb_cut_compact,
 * else a view. */
lb_array *lb_cut_here(lb_mesh *mesh, lb_array *a, const lb_spec *spec,
                      bool compact);
/* Pieces along each axis must be multiples of grain, so that whole blocks can
 * be moved. False: blocks of a cannot be moved, and slices will be dense. */
bool lb_cut_grain(const lb_array *a, int64_t *grain);

/* Joins the slices of all ranks along some axes of the mesh, which gives a
 * slice of a larger array. spec describes slice; on return, without those axes.
 * Called by all ranks; at: see lb_mesh_meet. */
lb_array *lb_gather_axes(lb_mesh *mesh, const char *at, lb_array *slice,
                         unsigned mask, lb_spec *spec);
/* Slices a according to another spec: gathers if necessary, then cuts. */
lb_array *lb_recut(lb_mesh *mesh, const char *at, lb_array *a,
                   const lb_spec *to);
/* Whether that needs no communication. */
bool lb_recut_is_local(const lb_spec *from, const lb_spec *to);
/* A hash of the form of a slice: if it differs between ranks, their slices
 * cannot be joined as one format. 0 for NULL. */
uint32_t lb_form_of(const lb_array *a);
/* Gathers a sharded array. */
lb_array *lb_gather_all(lb_ctx *cx, lb_array *a);

#endif
