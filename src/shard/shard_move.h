/* shard_move.h - slices: cut from what is here, gathered from other ranks. */
#ifndef LB_SHARD_MOVE_H
#define LB_SHARD_MOVE_H

#include "shard/mesh.h"

/* Elements [start, start + count) of a as a view of it, in the open scope. */
lb_array *lb_cut_view(lb_ctx *cx, lb_array *a, const int64_t *start,
                      const int64_t *count);
/* The same with bytes of its own, packed if a is: an error if that would cut a
 * block. */
lb_array *lb_cut_compact(lb_ctx *cx, lb_array *a, const int64_t *start,
                         const int64_t *count);
/* This rank's slice of a, all of which is here. compact: as
 * lb_cut_compact, else a view. */
lb_array *lb_cut_here(lb_mesh *mesh, lb_array *a, const lb_spec *spec,
                      bool compact);
/* Along each axis of a, pieces must be multiples of that for a cut to move
 * whole blocks. False: it has no such form, and slices will be dense. */
bool lb_cut_grain(const lb_array *a, int64_t *grain);

/* The slices of all ranks that differ along some axes of the mesh, joined: a
 * slice of a larger one. spec is how slice was cut, and comes out without
 * those axes. All ranks call it; at: see lb_mesh_meet. */
lb_array *lb_gather_axes(lb_mesh *mesh, const char *at, lb_array *slice,
                         unsigned mask, lb_spec *spec);
/* A slice by another spec: gathered where it must be, then cut. */
lb_array *lb_recut(lb_mesh *mesh, const char *at, lb_array *a,
                   const lb_spec *to);
/* Whether that gathers nothing. */
bool lb_recut_is_local(const lb_spec *from, const lb_spec *to);
/* A number that differs where slices, or what they are made of, cannot be put
 * together as one another: what ranks hold of an array is of one form. 0 for
 * NULL. */
uint32_t lb_form_of(const lb_array *a);
/* All of a sharded array. */
lb_array *lb_gather_all(lb_ctx *cx, lb_array *a);

#endif
