/* windows.h - the windows that gather reads and scatter_add adds to.
 *
 * XLA's dimension numbers, validated and normalized. An index vector of
 * `starts` gives the start of a window in the operand; windows are numbered in
 * the row-major order of their index vectors. The axes of the result (for
 * scatter_add: of the updates) are batch axes, one per axis of starts except
 * the index vector's, and offset axes, one per axis of the operand that is
 * neither collapsed nor batching.
 */
#ifndef LB_WINDOWS_H
#define LB_WINDOWS_H

#include "core/core.h"

typedef struct lb_windows {
    const lb_gather_dims *dims;
    int rank;      /* of the operand */
    int64_t count; /* number of windows */
    /* Batch axes in starts' order: size, and axis of the result. */
    int n_batch;
    int64_t batch[LB_MAX_RANK];
    int batch_out[LB_MAX_RANK];
    /* Offset axes in order: size, axis of the operand, axis of the result. */
    lb_shape window;
    int offset_in[LB_MAX_RANK];
    int offset_out[LB_MAX_RANK];
    /* Per axis of the operand: the batch axis whose index it takes, or -1; the
     * last start that fits, -1 if none does. */
    int follows[LB_MAX_RANK];
    int64_t last[LB_MAX_RANK];
} lb_windows;

/* Normalizes user dims: counts axes from 0. */
bool lb_windows_fix(lb_ctx *cx, const char *who, const lb_array *a,
                    const lb_array *starts, const lb_gather_dims *dims,
                    lb_gather_dims *out);
/* Validates operands 0 and 1 of a call and dims; sets the shape of the
 * result. */
bool lb_windows_infer(lb_ctx *cx, const char *who, const lb_array *a,
                      const lb_array *starts, const lb_gather_dims *dims,
                      lb_shape *result);
/* For validated operands. */
lb_windows lb_windows_make(const lb_array *a, const lb_array *starts,
                           const lb_gather_dims *dims);

enum { LB_WINDOWS = 128 }; /* maximum looked up at a time */

typedef struct lb_window {
    bool fits;      /* otherwise it is filled, or skipped */
    int64_t result; /* offset of its first element in a row-major result */
    int64_t start[LB_MAX_RANK]; /* its start in the operand */
} lb_window;

/* Looks up windows lo <= w < lo + n, n <= LB_WINDOWS. stride: the result's. */
void lb_windows_look(const lb_windows *ws, const lb_call *c,
                     const int64_t *stride, int64_t lo, int64_t n,
                     lb_window *out);

/* ---- sharding: each rank holds some of the entries ----------------------- */

/* The axis from which single entries are picked, e.g. the rows of a table; else
 * -1. */
int lb_picked_axis(const lb_gather_dims *dims);
/* Converts indices to those of the local entries, which start at lo; `entries`
 * is their total number. Those of other ranks become out of bounds. */
lb_array *lb_picked_here(lb_ctx *cx, const lb_gather_dims *dims,
                         lb_array *index, int64_t lo, int64_t entries);

#endif
