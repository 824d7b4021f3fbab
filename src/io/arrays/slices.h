/* slices.h - boxes of arrays, and the matching boxes of a file's tensors.
 *
 *     w (64,256), a scale for each 32 along the last axis, cut at (0,128):
 *
 *     codes  (64,128) bytes    box (0,64)  of (64,64)
 *     scales (64,8)            box (0,4)   of (64,4)
 *
 * The boxes follow from the parts table. A shared part is used as a whole; for
 * a part that follows an axis the box covers its entries, none of which may be
 * split. Arrays stored as one long row of blocks are sliced as a run, if the
 * box is one; otherwise as rows, if blocks do not cross rows.
 */
#ifndef LB_SLICES_H
#define LB_SLICES_H

#include "io/layouts/descriptor.h"

/* count[k] elements from start[k] on along each axis of shape `of`. That may
 * differ from the tensor's own shape if it has as many elements. */
struct lb_cut {
    lb_shape of;
    int64_t start[LB_MAX_RANK], count[LB_MAX_RANK];
};

lb_cut lb_cut_all(const lb_shape *of);
bool lb_cut_is_all(const lb_cut *c);
bool lb_cut_same(const lb_cut *a, const lb_cut *b);
lb_shape lb_cut_shape(const lb_cut *c); /* shape of the slice */
int64_t lb_cut_size(const lb_cut *c);   /* elements of the slice */

/* Calls visit for each run of adjacent elements: n elements, at `first` of the
 * sliced array and at `at` of the slice. Stops and returns false when a call
 * does. */
typedef bool lb_cut_visit(void *user, int64_t first, int64_t at, int64_t n);
bool lb_cut_runs(const lb_cut *c, lb_cut_visit *visit, void *user);

/* The box of a part that belongs to a box of the array; false: it splits an
 * entry, of *block elements. */
bool lb_cut_part(const lb_described *d, const lb_described_part *p,
                 const lb_cut *box, lb_cut *to, int64_t *block);
/* Whether the box splits no entry of any part (parts of parts are not checked).
 */
bool lb_cut_fits(const lb_described *d, const lb_cut *box, int64_t *block);
/* The box of the k-th tensor of the array, counting parts and parts of parts in
 * order. */
bool lb_cut_leaf(const lb_described *d, int k, const lb_cut *box, lb_cut *to);
/* The descriptor of the slice; deep: also of parts that are arrays. From the
 * arena. NULL without an error: the box splits an entry; NULL with an error:
 * out of memory.
 */
lb_described *lb_cut_described(lb_ctx *cx, lb_arena *arena,
                               const lb_described *d, const lb_cut *box,
                               bool deep);

/* For layouts that pack rows i, i + R, i + 2R and i + 3R into one row of bytes:
 * the bytes that contain the box, and the box within their unpacked rows. */
void lb_cut_quarters(const lb_cut *box, lb_cut *bytes, lb_cut *rows);
/* The box of bytes, if no byte is shared with other boxes. */
bool lb_cut_place_quarters(const lb_cut *box, lb_cut *to);
/* A whole tensor, of whatever size: as one element. */
lb_cut lb_cut_one(void);

/* dense_tensor.c: a box of a tensor as a dense array of dtype; the tensor must
 * have as many elements as c->of. Reads only those bytes, unless the tensor is
 * compressed. */
lb_array *lb_tensor_cut(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                        lb_dtype dtype, const lb_cut *c);
/* For layouts: the descriptor of an array quantized with that config. */
const lb_described *lb_cut_describe(lb_ctx *cx, lb_file *f, const lb_group *g,
                                    const lb_quant_config *config);
/* arrays.c: the descriptor of an array of the file. NULL without an error for
 * dense arrays, which have no parts; NULL with an error on failure. */
const lb_described *lb_group_described(lb_ctx *cx, lb_file *f, lb_group *g);
/* Loads a box that splits no block. */
lb_array *lb_group_load_cut(lb_ctx *cx, lb_file *f, const lb_group *g,
                            const lb_cut *box);
/* By name, or NULL and an error. */
lb_group *lb_group_wanted(lb_ctx *cx, const lb_file *f, const char *name);
/* Copies a box of an array in memory; the copy is packed if possible. */
lb_array *lb_array_cut(lb_ctx *cx, lb_array *a, const lb_cut *box);

#endif
