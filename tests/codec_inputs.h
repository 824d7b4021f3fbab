/* codec_inputs.h - inputs for encoders: values of every kind, in any float
 * dtype. */
#ifndef LB_CODEC_INPUTS_H
#define LB_CODEC_INPUTS_H

#include "lowbit.h"

typedef enum codec_kind {
    CODEC_ZEROS,
    CODEC_ONE,       /* one nonzero value among zeros */
    CODEC_MINUS,     /* -0; at odd lengths with one 1 */
    CODEC_DENORMALS, /* of the dtype */
    CODEC_TINY,      /* around the smallest normal value */
    CODEC_LEVELS,    /* exactly representable in the format */
    CODEC_MIDPOINTS, /* midpoints of those */
    CODEC_NORMAL,
    CODEC_TAIL, /* a few are much larger than the others */
    CODEC_HUGE, /* up to the largest value of the dtype */
    CODEC_KINDS
} codec_kind;

/* Values that a format can represent, of magnitude 1 and less, ascending. */
enum { CODEC_LEVELS_MAX = 1024 };
typedef struct codec_levels {
    int n;
    float level[CODEC_LEVELS_MAX];
} codec_levels;

const char *codec_kind_name(codec_kind kind);
/* n elements of dtype (f32, f16, bf16 or f64), all finite. */
void codec_fill(codec_kind kind, const codec_levels *levels, lb_dtype dtype,
                uint64_t seed, int64_t n, void *dst);
/* Sorts and removes duplicates. */
void codec_levels_from(codec_levels *to, const float *value, int64_t n);

#endif
