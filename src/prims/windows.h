/* windows.h - the windows that gather reads and scatter_add adds to.
 *
 * XLA's dimension numbers, checked once and put in order. An index vector of
 * `starts` says where in the operand a window begins; the windows are numbered
 * by the row-major order of their index vectors. The axes of the result (of
 * scatter_add's updates) are batch axes, one for each axis of starts but the
 * index vector's, and offset axes, one for each axis of the operand that is
 * neither collapsed nor batching.
 */
#ifndef LB_WINDOWS_H
#define LB_WINDOWS_H

#include "core/core.h"

typedef struct lb_windows {
    const lb_gather_dims *dims;
    int rank;      /* of the operand */
    int64_t count; /* of windows */
    /* Batch axes, in starts' order: size and axis of the result. */
    int n_batch;
    int64_t batch[LB_MAX_RANK];
    int batch_out[LB_MAX_RANK];
    /* Offset axes, in order: size, axis of the operand and of the result. */
    lb_shape window;
    int offset_in[LB_MAX_RANK];
    int offset_out[LB_MAX_RANK];
    /* Of each axis of the operand: the batch axis whose index it takes, or -1;
     * the last start that fits, -1 if none does. */
    int follows[LB_MAX_RANK];
    int64_t last[LB_MAX_RANK];
} lb_windows;

/* dims with the axes counted from 0, for what users write. */
bool lb_windows_fix(lb_ctx *cx, const char *who, const lb_array *a,
                    const lb_array *starts, const lb_gather_dims *dims,
                    lb_gather_dims *out);
/* Checks everything about call's operands 0 and 1 and dims; sets the shape of
 * the result. */
bool lb_windows_infer(lb_ctx *cx, const char *who, const lb_array *a,
                      const lb_array *starts, const lb_gather_dims *dims,
                      lb_shape *result);
/* For operands that were checked. */
lb_windows lb_windows_make(const lb_array *a, const lb_array *starts,
                           const lb_gather_dims *dims);

enum { LB_WINDOWS = 128 }; /* most that are looked up at a time */

typedef struct lb_window {
    bool fits;      /* else: filled, or left out */
    int64_t result; /* where it begins in a row-major result, in elements */
    int64_t start[LB_MAX_RANK]; /* where it begins in the operand */
} lb_window;

/* Windows lo <= w < lo + n, n <= LB_WINDOWS. stride: the result's. */
void lb_windows_look(const lb_windows *ws, const lb_call *c,
                     const int64_t *stride, int64_t lo, int64_t n,
                     lb_window *out);

/* ---- among ranks, which hold some of the entries each ---------------------
 */

/* The one axis whose entries are picked, if they are: a table's rows; or -1. */
int lb_picked_axis(const lb_gather_dims *dims);
/* Indices as they count in the entries from lo on, `entries` of which are there
 * in all: those of other ranks are out of bounds. */
lb_array *lb_picked_here(lb_ctx *cx, const lb_gather_dims *dims,
                         lb_array *index, int64_t lo, int64_t entries);

#endif
