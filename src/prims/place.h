/* place.h - puts a view, in any format, into a box of a dense result.
 *
 * What copy, reshape, concatenate, pad and dynamic_update_slice have in common.
 * Dense operands are moved as bytes; packed ones are unpacked where they and
 * the box lie in memory like each other, and else go through tiles.
 */
#ifndef LB_PLACE_H
#define LB_PLACE_H

#include "core/core.h"
#include "kernels/move_bytes.h"

typedef struct lb_place {
    lb_array src; /* a copy: the caller may have cut it on its stack */
    lb_array dst; /* where it goes: a view of the result, store not yet set */
    const void *raw;  /* src's elements, where they lie, or NULL */
    lb_move move;     /* raw */
    int64_t size;     /* elements, if they are unpacked in their order; or 0 */
    lb_tiling tiling; /* else */
    int64_t units;
} lb_place;

enum { LB_PLACE_SCRATCH = LB_TILE * 8 }; /* bytes, of each thread */

/* src's element i goes to index lo + i*step of an array of shape, which has as
 * many elements as the result. lo NULL: zeros; step NULL: ones. */
void lb_place_plan(lb_place *p, const lb_array *src, const lb_shape *shape,
                   const int64_t *lo, const int64_t *step);
/* Units lo <= u < hi of p. */
void lb_place_run(const lb_place *p, const lb_work *w, int64_t lo, int64_t hi);
/* Units w->lo <= u < w->hi of n places, numbered one after the other. */
void lb_places_run(const lb_place *p, int n, const lb_work *w);
int64_t lb_places_units(const lb_place *p, int n);
const char *lb_place_name(const lb_place *p);

/* The box [lo, hi) of view a, on the caller's stack; step NULL: ones. */
lb_array lb_cut(const lb_array *a, const int64_t *lo, const int64_t *hi,
                const int64_t *step);
/* A scalar, or any array of one element, repeated. */
lb_array lb_repeat(const lb_array *a, const lb_shape *shape);

/* What lies around the inner box [lo, hi) of shape, as at most two boxes for
 * each axis; returns how many. */
typedef struct lb_frame {
    int64_t lo[LB_MAX_RANK], hi[LB_MAX_RANK];
} lb_frame;
int lb_frames(const lb_shape *shape, const int64_t *lo, const int64_t *hi,
              lb_frame *out);

#endif
