/* writers.h - functions of lb_file_layout that write the layouts of other
 * programs: plan, part, moves and configure. */
#ifndef LB_WRITERS_H
#define LB_WRITERS_H

#include "io/layouts/write_affine.h"

/* The module of a weight, P of P.weight, as a JSON string. */
void lb_put_module(lb_bytes *to, const char *name);

/* The same as a pattern that matches it at the end, after a word. */
void lb_put_pattern(lb_bytes *to, const char *before, const char *name);

/* The rows and columns of the tiles of a matrix that share a scale, {0, 0} if
 * all do; false if they are not tiles. */
bool lb_tile_size(const lb_described *d, const lb_described_part *scale,
                  int64_t tile[2]);
/* For lb_move_plan.remake: the same array with scales that are powers of two in
 * f32; the same array whose byte 255 means what readers of the layout take it
 * for. */
lb_array *lb_plain_scales(lb_ctx *cx, lb_array *a);
lb_array *lb_infinite_255(lb_ctx *cx, lb_array *a);
/* The format of the scales of an array, "" if they are floats or missing. */
const char *lb_scale_format_of(const lb_array *a);

#define LB_WRITER(NAME)                                                        \
    lb_verdict lb_##NAME##_plan(lb_ctx *cx, lb_saver *s, lb_saved *item);      \
    lb_array *lb_##NAME##_part(lb_ctx *cx, const lb_saved *item, lb_array *a,  \
                               int k);                                         \
    bool lb_##NAME##_moves(lb_ctx *cx, const lb_moving *m, lb_move_plan *to);  \
    void lb_##NAME##_configure(lb_bytes *to, const lb_loading *how);
/* Members of a lb_file_layout. */
#define LB_WRITES(NAME)                                                        \
    .plan = lb_##NAME##_plan, .part = lb_##NAME##_part,                        \
    .moves = lb_##NAME##_moves, .configure = lb_##NAME##_configure
LB_WRITER(mlx)
LB_WRITER(gptq)
LB_WRITER(awq)
LB_WRITER(ct)
LB_WRITER(fp8)

#endif
