/* affine.h - what affine.c and affine_recode.c share. */
#ifndef LB_AFFINE_H
#define LB_AFFINE_H

#include "lowbit_ext.h"

/* Parts. */
enum {
    LB_AFFINE_CODES,
    LB_AFFINE_SCALE,
    LB_AFFINE_ZERO,
    LB_AFFINE_BIAS,
    LB_AFFINE_GROUP
};

/* lb_format.type: the entries of the codes. */
typedef struct lb_affine_type {
    int bits;
    int elements, bytes; /* of an entry; a single byte is no axis of its own */
} lb_affine_type;

/* affine_recode.c */
extern const lb_recode lb_affine_recode;

#endif
