/* move.h - moves a quantized array to another format: the same codes, with
 * parameters (scales, zero points, biases) expressed as the other format does.
 *
 *     scale * (code - 8)   ->   scale * code + bias,  bias = -8 scale
 *
 * There is no table of pairs. A format tells how its values follow from codes
 * (lb_recode), and both ends are decoded. The move is exact if every decoded
 * f32 has the same bits, or if the codes and the parameters as stored denote
 * the same real numbers: decoders of 16-bit scales may round these differently,
 * and d * 8 + m is 0 where -d * 0 is -0. Otherwise parameters were rounded, and
 * the error is known.
 */
#ifndef LB_MOVE_H
#define LB_MOVE_H

#include "core/distance.h"

/* What an array is moved to: the layout of config, with parts of other dtypes.
 */
typedef struct lb_move_target {
    lb_quant_config config;
    lb_dtype elem[LB_MAX_PARTS]; /* 0: as config's layout has it. Parts that it
                                  * lacks are added */
    int zero_most;               /* limit for zero points; 0: the format's */
    int least;                   /* limit for codes; 0: the format's */
} lb_move_target;

typedef struct lb_move {
    lb_apart sums; /* of source and result, decoded to f32 */
    bool exact;
    double steps;  /* largest difference in units of the element's scale */
    char why[160]; /* why it was declined */
} lb_move;

/* Why an array with scheme `from` can never be stored in `to`, from the schemes
 * alone, as a static text; NULL: it depends on values. */
LB_API const char *lb_move_excluded(const lb_scheme *from, const lb_scheme *to);

/* The scheme of an array: g is that of its own axes. False: it has none. */
LB_API bool lb_scheme_of(const lb_array *a, lb_scheme *to);

/* Bits that codes of a scheme need. */
LB_API int lb_scheme_bits(const lb_scheme *s);

/* An array for the result of moving a, uninitialized. NULL and an error. */
LB_API lb_array *lb_move_alloc(lb_ctx *cx, const lb_array *a,
                               const lb_move_target *t);

/* Moves a, whose values are floats. Declines, with a reason in m->why, if its
 * codes or parameters do not fit. The result has a's dtype, unless the config
 * has another one. LB_FAILED and an error for other reasons. */
LB_API lb_verdict lb_move_array(lb_ctx *cx, lb_array *a,
                                const lb_move_target *t, lb_array **out,
                                lb_move *m);

#endif
