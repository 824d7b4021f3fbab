/* float_parts.h - groups of small floats (fp8, mxfp4, ...) in the tensors of
 * other programs: which shape, which scales. */
#ifndef LB_FLOAT_PARTS_H
#define LB_FLOAT_PARTS_H

#include "io/layouts/tensor_parts.h"

/* What byte 255 of a power of two is: the meanings of format e8m0. */
typedef enum lb_255 { LB_255_NAN, LB_255_INFINITY, LB_255_BEYOND } lb_255;

/* The tensors of one array. */
typedef struct lb_floats {
    const char *name;       /* of the array */
    const lb_tensor *codes; /* bytes, or words of them */
    const lb_tensor *scale; /* F32, F16, BF16, F8_E8M0, F8_E4M3; U8 is E8M0 */
    const lb_tensor *more;  /* the scale of the scales; or NULL */
    bool divided;           /* scales are divided by it, not multiplied */
    lb_255 top;             /* of scales of type U8 */
} lb_floats;

/* Whether a tensor has one of these types, separated by blanks. */
bool lb_type_is(const lb_tensor *t, const char *types);
/* PREFIX SUFFIX in memory of f's arena, with n characters of prefix; NULL and
 * an error. */
const char *lb_floats_name(lb_ctx *cx, lb_file *f, const char *prefix, size_t n,
                           const char *suffix);

/* fp8: scales of tiles, rows, or the array, as their shape says. */
lb_verdict lb_floats_fp8(lb_ctx *cx, lb_file *f, const lb_floats *t,
                         lb_group *g);
/* Blocks of a row: format is mxfp8, mxfp4 or nvfp4. own: the codes have a last
 * axis of bytes of a block. */
lb_verdict lb_floats_blocks(lb_ctx *cx, lb_file *f, const char *format,
                            bool own, const lb_floats *t, lb_group *g);
/* A tensor of F8 or F4 without scales. */
lb_verdict lb_floats_plain(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                           lb_group *g);

#endif
