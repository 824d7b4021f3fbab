/* tensor_parts.h - arrays whose parts are tensors of other programs, as they
 * are: for layouts that only say which tensor is which part.
 *
 * find fills g->own with a lb_described whose leaves have tensors, and the
 * functions of LB_TENSOR_PARTS do the rest. A tensor holds the entries of its
 * part in row-major order, whatever its own type (bytes may be packed in words)
 * and shape; or, with the rank of the part, it is larger along some axes and is
 * cropped.
 */
#ifndef LB_TENSOR_PARTS_H
#define LB_TENSOR_PARTS_H

#include "io/arrays/slices.h"

/* A descriptor without parts, in memory of f's arena; NULL and an error. */
lb_described *lb_parts_begin(lb_ctx *cx, lb_file *f, const char *format,
                             lb_dtype dtype, const lb_shape *shape);
/* Adds a part and returns it; its table must be filled by the caller. */
lb_described_part *lb_parts_add(lb_described *d, const char *name);
/* The same for a part that is a tensor of elements of that dtype, with an entry
 * per g elements of the last axis and one along the others. */
void lb_parts_rows(lb_described *d, const char *name, const lb_tensor *t,
                   lb_dtype elem, int64_t g);
/* Whether every tensor holds the entries of its part; else an error. */
bool lb_parts_check(lb_ctx *cx, const lb_file *f, const char *array,
                    const lb_described *d);
/* Completes a group: all tensors of d belong to it, the one that identifies it
 * first. */
bool lb_parts_group(lb_ctx *cx, lb_file *f, const char *name,
                    const lb_described *d, lb_group *g);

lb_array *lb_parts_load(lb_ctx *cx, lb_file *f, const lb_group *g,
                        lb_rows rows);
bool lb_parts_cuts(const lb_group *g);
const lb_described *lb_parts_describe(lb_ctx *cx, lb_file *f,
                                      const lb_group *g);
lb_array *lb_parts_load_cut(lb_ctx *cx, lb_file *f, const lb_group *g,
                            const lb_cut *box);

#define LB_TENSOR_PARTS                                                        \
    .load = lb_parts_load, .cuts = lb_parts_cuts,                              \
    .describe = lb_parts_describe, .load_cut = lb_parts_load_cut

#endif
