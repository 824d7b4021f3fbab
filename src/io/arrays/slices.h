/* slices.h - boxes of arrays, and where they are in the tensors of a file.
 *
 *     w (64,256), a scale for each 32 along the last axis, cut at (0,128):
 *
 *     codes  (64,128) bytes    box (0,64)  of (64,64)
 *     scales (64,8)            box (0,4)   of (64,4)
 *
 * It follows from the parts table: where a part is shared, all of it; where it
 * follows an axis, entries, of which none may be cut through. One long row of
 * blocks is cut as such, if the box is a run of it; else as rows, if blocks end
 * where rows do.
 */
#ifndef LB_SLICES_H
#define LB_SLICES_H

#include "io/layouts/descriptor.h"

/* count[k] from start[k] on along each axis of something of that shape. A
 * tensor may be seen in another shape than it has, of as many elements. */
struct lb_cut {
    lb_shape of;
    int64_t start[LB_MAX_RANK], count[LB_MAX_RANK];
};

lb_cut lb_cut_all(const lb_shape *of);
bool lb_cut_is_all(const lb_cut *c);
bool lb_cut_same(const lb_cut *a, const lb_cut *b);
lb_shape lb_cut_shape(const lb_cut *c); /* of what is cut out */
int64_t lb_cut_size(const lb_cut *c);   /* elements of it */

/* Calls with each run of elements that lie next to each other in what is cut:
 * n of them, that begin at first there, and at `at` of what is cut out. False
 * as soon as a call is. */
typedef bool lb_cut_visit(void *user, int64_t first, int64_t at, int64_t n);
bool lb_cut_runs(const lb_cut *c, lb_cut_visit *visit, void *user);

/* What the box of an array is of one of its parts; false: it cuts through an
 * entry, of *block elements. */
bool lb_cut_part(const lb_described *d, const lb_described_part *p,
                 const lb_cut *box, lb_cut *to, int64_t *block);
/* Whether it cuts through none, of any part; parts of parts are not asked. */
bool lb_cut_fits(const lb_described *d, const lb_cut *box, int64_t *block);
/* The k-th tensor of the array, by parts and parts of parts in their order. */
bool lb_cut_leaf(const lb_described *d, int k, const lb_cut *box, lb_cut *to);
/* What is cut out, described; deep: parts that are arrays likewise. From the
 * arena. NULL and no error: it cuts through an entry; of memory, and an error.
 */
lb_described *lb_cut_described(lb_ctx *cx, lb_arena *arena,
                               const lb_described *d, const lb_cut *box,
                               bool deep);

/* Of layouts with four rows in a row of bytes, i, i + R, i + 2R and i + 3R: the
 * bytes that hold the box, and what it is of the rows that these hold. */
void lb_cut_quarters(const lb_cut *box, lb_cut *bytes, lb_cut *rows);
/* Where it is in them, if no byte is shared with others. */
bool lb_cut_place_quarters(const lb_cut *box, lb_cut *to);
/* All of a tensor, of whatever size: as one element. */
lb_cut lb_cut_one(void);

/* dense_tensor.c: a box of a tensor as a dense array with elements of dtype, of
 * which the tensor has as many as c->of. Reads no other bytes, unless they are
 * packed. */
lb_array *lb_tensor_cut(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                        lb_dtype dtype, const lb_cut *c);
/* For layouts: what arrays of that config are made of. */
const lb_described *lb_cut_describe(lb_ctx *cx, lb_file *f, const lb_group *g,
                                    const lb_quant_config *config);
/* arrays.c: what an array of the file is made of; NULL and an error, of one
 * that is dense and has no parts NULL and none. */
const lb_described *lb_group_described(lb_ctx *cx, lb_file *f, lb_group *g);
/* A box of it that fits. */
lb_array *lb_group_load_cut(lb_ctx *cx, lb_file *f, const lb_group *g,
                            const lb_cut *box);
/* By name, or NULL and an error. */
lb_group *lb_group_wanted(lb_ctx *cx, const lb_file *f, const char *name);
/* A box of what is here, with bytes of its own, packed if it can be. */
lb_array *lb_array_cut(lb_ctx *cx, lb_array *a, const lb_cut *box);

#endif
