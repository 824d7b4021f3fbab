/* codec_inputs.h - inputs for encoders: values of every kind, in any float
 * dtype. */
#ifndef LB_CODEC_INPUTS_H
#define LB_CODEC_INPUTS_H

#include "lowbit.h"

typedef enum codec_kind {
    CODEC_ZEROS,
    CODEC_ONE,       /* one number among zeros */
    CODEC_MINUS,     /* -0, of odd lengths with a 1 among them */
    CODEC_DENORMALS, /* of the dtype */
    CODEC_TINY,      /* around the least normal number */
    CODEC_LEVELS,    /* what the format can hold exactly */
    CODEC_MIDPOINTS, /* halfway between two of those */
    CODEC_NORMAL,
    CODEC_TAIL, /* a few are far larger than the others */
    CODEC_HUGE, /* up to the largest number of the dtype */
    CODEC_KINDS
} codec_kind;

/* Numbers that a format can hold, of magnitude 1 and less, upward. */
enum { CODEC_LEVELS_MAX = 1024 };
typedef struct codec_levels {
    int n;
    float level[CODEC_LEVELS_MAX];
} codec_levels;

const char *codec_kind_name(codec_kind kind);
/* n elements of dtype (f32, f16, bf16 or f64), all finite. */
void codec_fill(codec_kind kind, const codec_levels *levels, lb_dtype dtype,
                uint64_t seed, int64_t n, void *dst);
/* Sorts and drops what is there twice. */
void codec_levels_from(codec_levels *to, const float *value, int64_t n);

#endif
