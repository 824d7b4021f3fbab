/* copy_array.h - copies one array from a file to another, in pieces that fit in
 * memory.
 */
#ifndef LB_COPY_ARRAY_H
#define LB_COPY_ARRAY_H

#include "io/arrays/saver.h"

/* What an array is converted to. */
typedef struct lb_transfer {
    lb_file *f;
    const lb_group *group;
    const lb_quant_config *config; /* NULL: dense */
    lb_dtype dtype;                /* dtype of a dense result */
    const lb_file_layout *layout;  /* layout whose adapt is applied; or NULL */
    uint64_t max_memory;           /* bytes */
    bool measure;
    /* Called after each piece with the number of source bytes that it used.
     * Returning false with an error stops the transfer. May be NULL. */
    bool (*progress)(void *user, uint64_t nbytes);
    void *user;
} lb_transfer;

/* Writes the array as the next one of s, and completes it. s NULL: only
 * measures. *m: the errors, if t->measure. */
bool lb_transfer_run(lb_ctx *cx, const lb_transfer *t, lb_saver *s,
                     lb_difference *m);

/* copy_packed.c. Rows of a packed array that are processed together: all if
 * they fit or cannot be split. 0 and an error: they do not fit. */
int64_t lb_transfer_rows(lb_ctx *cx, const lb_transfer *t, bool may_cut);
/* Decodes a packed array and writes it, without completing it.
 */
bool lb_transfer_decoded(lb_ctx *cx, const lb_transfer *t, lb_saver *s,
                         lb_difference *m);
/* Copies a packed array as stored, and completes it. s may be NULL.
 */
bool lb_transfer_stored(lb_ctx *cx, const lb_transfer *t, lb_saver *s);
/* Measures and writes y, a converted piece of x. */
bool lb_transfer_put(lb_ctx *cx, const lb_transfer *t, lb_saver *s, lb_array *x,
                     lb_array *y, lb_difference *m);

/* The whole array, quantized, in the current scope. */
lb_array *lb_transfer_whole(lb_ctx *cx, const lb_transfer *t);

#endif
