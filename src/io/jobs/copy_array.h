/* copy_array.h - one array from a file to another, in pieces that fit in
 * memory.
 */
#ifndef LB_COPY_ARRAY_H
#define LB_COPY_ARRAY_H

#include "io/arrays/saver.h"

/* What becomes of an array. */
typedef struct lb_transfer {
    lb_file *f;
    const lb_group *group;
    const lb_quant_config *config; /* NULL: it becomes, or stays, dense */
    lb_dtype dtype;                /* .. of this */
    const lb_file_layout *layout;  /* whose wishes count (adapt); or NULL */
    uint64_t max_memory;           /* bytes */
    bool measure;
    /* Called after each piece with the bytes of the source that it took. False
     * and an error stop the transfer. May be NULL. */
    bool (*progress)(void *user, uint64_t nbytes);
    void *user;
} lb_transfer;

/* Writes it as the array that s wants next, and ends it; with s NULL it is only
 * measured. *m: what was measured, if that is asked for. */
bool lb_transfer_run(lb_ctx *cx, const lb_transfer *t, lb_saver *s,
                     lb_difference *m);

/* copy_packed.c: of an array that is packed and becomes dense, all but its
 * end. */
bool lb_transfer_decoded(lb_ctx *cx, const lb_transfer *t, lb_saver *s,
                         lb_difference *m);
/* The same of one that goes over as it is stored, with its end. s may be NULL.
 */
bool lb_transfer_stored(lb_ctx *cx, const lb_transfer *t, lb_saver *s);
/* A piece y of what x has become: measured, and written. */
bool lb_transfer_put(lb_ctx *cx, const lb_transfer *t, lb_saver *s, lb_array *x,
                     lb_array *y, lb_difference *m);

/* The array as a whole, quantized: belongs to the open scope. */
lb_array *lb_transfer_whole(lb_ctx *cx, const lb_transfer *t);

#endif
