/* move_array.h - moves quantized arrays of a file to other formats, without new
 * rounding if possible (core/move.h). */
#ifndef LB_MOVE_ARRAY_H
#define LB_MOVE_ARRAY_H

#include "core/move.h"
#include "io/jobs/copy_array.h"

/* An array to be moved, for lb_file_layout.moves. */
struct lb_moving {
    const lb_array *a;
    const lb_scheme *scheme; /* NULL: it has none */
    int64_t block_size;      /* requested; 0: any */
    bool exact;              /* parameters must not be rounded */
};

/* How it is moved. */
struct lb_move_plan {
    lb_move_target target;
    /* How values are quantized, before they are moved to the target, if the
     * array itself cannot be; format NULL: not at all. */
    lb_quant_config encode;
    /* Optional. Makes the array that the target stores from the parts of a,
     * which no codes describe; target is not used then. */
    lb_array *(*remake)(lb_ctx *, lb_array *a);
};

typedef struct lb_move_result {
    lb_moved moved;
    lb_difference error; /* of a refused array: what quantizing again would
                          * cost; n is 0: unknown */
    bool rounds; /* it could be moved, but parameters would be rounded: error is
                  * that of the first rows */
    char why[240]; /* why it was refused, or could not be moved */
} lb_move_result;

/* Moves an array and writes it as the next one of s; s NULL: writes nothing. A
 * refused array is not completed in s. False: an error. */
bool lb_transfer_moved(lb_ctx *cx, const lb_transfer *t, const lb_move_plan *p,
                       lb_allow allow, lb_saver *s, lb_move_result *r);
/* For an array that is refused in advance: r->error. */
bool lb_transfer_price(lb_ctx *cx, const lb_transfer *t, const lb_move_plan *p,
                       lb_move_result *r);

#endif
