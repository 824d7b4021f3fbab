/* affine_tensors.h - arrays of int1 to int7 and uint8 (formats/affine.c) from
 * the tensors of other programs, for layouts that say which tensor is which.
 *
 * An array is (rows, columns), groups are along the columns. In memory, codes
 * are a stream of bits along each row. Other orders are rearranged, exactly,
 * while rows are loaded; tensors that are stored so are used in place.
 */
#ifndef LB_AFFINE_TENSORS_H
#define LB_AFFINE_TENSORS_H

#include "io/layouts/entries.h"
#include "io/models/settings.h"

/* The largest number of rows or columns: their bits can be counted. */
#define LB_AFFINE_MOST ((int64_t)1 << 48)

/* How integers of b bits are stored. Words are 32 bits, little-endian. */
typedef enum lb_order {
    LB_ORDER_ROWS, /* (rows, ..): a stream along each row, in words or bytes */
    LB_ORDER_PADDED, /* the same, but each word holds 32 / b whole codes */
    LB_ORDER_DOWN,   /* words (.., rows): a stream down each column of words */
    LB_ORDER_AWQ,    /* words (columns, rows / 8): nibble i of a word is row
                      * 0 2 4 6 1 3 5 7 of eight */
    LB_ORDER_SIGNED  /* i8 (rows, columns) */
} lb_order;

typedef struct lb_affine_tensors {
    const char *name; /* of the array */
    int bits;
    int64_t rows, columns, groups;
    int64_t group_size; /* columns per group, the last may have fewer */
    int rank;           /* of the array: rows are all axes but the last */
    const int64_t *dim;
    lb_order order;         /* of the codes */
    const lb_tensor *codes; /* words, or bytes */
    const lb_tensor *scale; /* (rows, groups); across: (groups, rows). One
                              * element: for all */
    const lb_tensor *zero;  /* or NULL */
    lb_order zero_order;    /* ROWS: a stream along the groups' rows, words
                              * (groups, ..); DOWN: words (.., groups); AWQ;
                              * SIGNED: i8 (rows, groups) */
    int plus;               /* added to stored zero points */
    bool across;            /* scale, bias, and streams of zero are by group */
    const lb_tensor *bias;  /* or NULL; as scale */
    const lb_tensor *group; /* or NULL: i32 (columns), the group of each */
    int symmetric;          /* whether all zero points are 2^(bits - 1): 0 not
                              * known yet, 1 yes, -1 no */
} lb_affine_tensors;

/* In memory of f's arena, with that array name: n characters of prefix, then
 * suffix. NULL and an error. */
lb_affine_tensors *lb_affine_begin(lb_ctx *cx, lb_file *f, const char *prefix,
                                   size_t n, const char *suffix);
/* Checks all shapes and dtypes and completes the group of a layout; LB_FAILED
 * and an error if they do not fit. */
lb_verdict lb_affine_group(lb_ctx *cx, lb_file *f, lb_affine_tensors *t,
                           lb_group *g);
/* For LB_AFFINE_TENSORS. */
lb_array *lb_affine_load(lb_ctx *cx, lb_file *f, const lb_group *g,
                         lb_rows rows);
bool lb_affine_cuts(const lb_group *g);
const lb_described *lb_affine_describe(lb_ctx *cx, lb_file *f,
                                       const lb_group *g);
lb_array *lb_affine_load_cut(lb_ctx *cx, lb_file *f, const lb_group *g,
                             const lb_cut *box);

/* Columns of each group, if all are equal; 0: they are not. With a list of
 * groups any size does. */
int64_t lb_affine_group_size(const lb_affine_tensors *t);
/* Words of a stream of n codes. */
int64_t lb_affine_words(int64_t n, int bits, bool padded);
/* Whether a tensor exists and has one of the dtypes f32, f16 and bf16. */
bool lb_affine_is_scale(const lb_tensor *t);
bool lb_affine_is(const lb_tensor *t, lb_dtype dtype, int rank);

#define LB_AFFINE_TENSORS                                                      \
    .load = lb_affine_load, .cuts = lb_affine_cuts,                            \
    .describe = lb_affine_describe, .load_cut = lb_affine_load_cut

#endif
