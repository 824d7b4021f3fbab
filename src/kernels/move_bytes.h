/* move_bytes.h - elements from one strided box of memory to another.
 *
 * For dense operands whose elements keep their dtype: bytes are moved, nothing
 * is decoded. Knows no arrays. A box is planned once and may be run for many
 * pairs of places (the windows of a gather).
 */
#ifndef LB_MOVE_BYTES_H
#define LB_MOVE_BYTES_H

#include "lowbit_ext.h"

typedef enum lb_move_kind {
    LB_MOVE_ROWS,    /* both sides are consecutive along the last axis */
    LB_MOVE_FILL,    /* the source repeats one element there */
    LB_MOVE_TURN,    /* the source is consecutive along the axis before it */
    LB_MOVE_PLANE,   /* the source's steps are shorter along that axis */
    LB_MOVE_STRIDED, /* anything else */
} lb_move_kind;

typedef struct lb_move {
    lb_move_kind kind;
    size_t size; /* of an element: 1, 2, 4 or 8 */
    bool stream; /* write past the caches */
    /* The box in its simplest form; strides in bytes. */
    int rank;
    int64_t n[LB_MAX_RANK];
    int64_t src[LB_MAX_RANK], dst[LB_MAX_RANK];
    int64_t src_at, dst_at; /* where it begins: axes may have been flipped */
    /* How it is cut into units that any thread may run. */
    int64_t step[LB_MAX_RANK], count[LB_MAX_RANK];
    int64_t units;
} lb_move;

/* n, strides in elements. dst is as in a row-major array: no stride is 0 or
 * negative, none is shorter than a later one. total: bytes of the whole
 * result, of which the box may be a part. */
lb_move lb_move_plan(size_t size, int rank, const int64_t *n,
                     const int64_t *src_stride, const int64_t *dst_stride,
                     size_t total);
/* Units lo <= u < hi; src and dst are where index 0 lies. The thread calls
 * lb_stream_end after its last. */
void lb_move_run(const lb_move *m, const void *src, void *dst, int64_t lo,
                 int64_t hi);
/* "rows", "fill", ...: for lb_plan.kernel. */
const char *lb_move_name(const lb_move *m);

#endif
