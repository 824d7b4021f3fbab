/* place.h - writes a view, in any format, to a box of a dense result.
 *
 * Used by copy, reshape, concatenate, pad and dynamic_update_slice. Dense
 * operands are moved as bytes. Packed ones are decoded directly if they and the
 * box have the same order, otherwise through tiles.
 */
#ifndef LB_PLACE_H
#define LB_PLACE_H

#include "core/core.h"
#include "kernels/move_bytes.h"

typedef struct lb_place {
    lb_array src; /* a copy: the caller's view may be on its stack */
    lb_array dst; /* destination: a view of the result, with its store not yet
                   * set */
    const void *raw;  /* src's elements if they can be moved as bytes, else
                       * NULL */
    lb_move move;     /* if raw */
    int64_t size;     /* elements, if they are decoded in order; else 0 */
    lb_tiling tiling; /* otherwise */
    int64_t units;
} lb_place;

enum { LB_PLACE_SCRATCH = LB_TILE * 8 }; /* bytes per thread */

/* Plans to write src's element i to index lo + i*step of an array of shape,
 * which has the size of the result. lo NULL: zeros; step NULL: ones. */
void lb_place_plan(lb_place *p, const lb_array *src, const lb_shape *shape,
                   const int64_t *lo, const int64_t *step);
/* Units lo <= u < hi of p. */
void lb_place_run(const lb_place *p, const lb_work *w, int64_t lo, int64_t hi);
/* Units w->lo <= u < w->hi of n places, numbered consecutively. */
void lb_places_run(const lb_place *p, int n, const lb_work *w);
int64_t lb_places_units(const lb_place *p, int n);
const char *lb_place_name(const lb_place *p);

/* The box [lo, hi) of view a, on the caller's stack; step NULL: ones. */
lb_array lb_cut(const lb_array *a, const int64_t *lo, const int64_t *hi,
                const int64_t *step);
/* Broadcasts a scalar, or any array of one element. */
lb_array lb_repeat(const lb_array *a, const lb_shape *shape);

/* The rest of shape around the inner box [lo, hi), as at most two boxes per
 * axis; returns their number. */
typedef struct lb_frame {
    int64_t lo[LB_MAX_RANK], hi[LB_MAX_RANK];
} lb_frame;
int lb_frames(const lb_shape *shape, const int64_t *lo, const int64_t *hi,
              lb_frame *out);

#endif
