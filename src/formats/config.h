/* config.h - helpers for formats: checking the quantization config. */
#ifndef LB_CONFIG_H
#define LB_CONFIG_H

#include "lowbit_ext.h"

/* Names of enum values for messages, as spelled in commands and rules. NULL:
 * the default. */
static inline const char *lb_config_scale(lb_scale scale)
{
    static const char *const name[] = {NULL, "none", "tensor", "row", "block"};
    return name[scale];
}

static inline const char *lb_config_meaning(lb_meaning meaning)
{
    static const char *const name[] = {NULL, "absmax", "inverse"};
    return name[meaning];
}

static inline const char *lb_config_threshold(lb_threshold threshold)
{
    return threshold == LB_THRESHOLD_ABSMEAN ? "absmean" : NULL;
}

static inline const char *lb_config_decode(lb_decode decode)
{
    return decode == LB_DECODE_POLY ? "poly" : NULL;
}

static inline const char *lb_config_flag(bool yes)
{
    return yes ? "given" : NULL;
}

/* A member that the format does not use must be left at its default, for which
 * value is NULL. */
static inline bool lb_config_unused(lb_ctx *cx, const lb_quant *q,
                                    const char *member, const char *value)
{
    return !value || lb_fail(cx, LB_E_ARG,
                             "%s: %s is %s, but this format does not use it",
                             q->format->name, member, value);
}

/* Decoded values are floats. */
static inline bool lb_config_float(lb_ctx *cx, const lb_quant *q,
                                   lb_dtype dtype)
{
    return (dtype >= LB_F32 && dtype <= LB_F64) ||
           lb_fail(cx, LB_E_DTYPE,
                   "%s: dtype %s is not supported (use f32, f16, bf16 or f64)",
                   q->format->name, lb_dtype_name(dtype));
}

static inline bool lb_config_is_bnb(const lb_quant *q)
{
    return q->compat == LB_COMPAT_BNB_CUDA || q->compat == LB_COMPAT_BNB_CPU;
}

/* Whether blocks continue across rows: as q specifies; bitsandbytes'
 * default. */
static inline bool lb_config_is_flat(const lb_quant *q)
{
    return q->blocks == LB_BLOCKS_DEFAULT ? lb_config_is_bnb(q)
                                          : q->blocks == LB_BLOCKS_FLAT;
}

/* Makes room for an own axis of a part: at the maximum rank, merges the first
 * two axes of the stored shape. */
static inline void lb_config_fold(lb_shape *stored)
{
    if (stored->rank < LB_MAX_RANK) return;
    stored->dim[0] *= stored->dim[1];
    for (int k = 1; k + 1 < stored->rank; k++)
        stored->dim[k] = stored->dim[k + 1];
    stored->dim[--stored->rank] = 0;
}

/* Relative error bound of rounding to the dtype in q. */
static inline double lb_config_unit(const lb_quant *q)
{
    return q->dtype == LB_F16 ? 0x1p-11 : q->dtype == LB_BF16 ? 0x1p-8 : 0;
}

/* The config that q was made from, to call public functions with. */
static inline lb_quant_config lb_config_from(const lb_quant *q)
{
    return (lb_quant_config){
        .format = q->format->name,
        .block_size = q->block_size,
        .axes = q->axes,
        .dtype = q->dtype,
        .reference = q->reference,
        .compat = q->compat,
        .decode = q->decode,
        .scale = q->scale,
        .meaning = q->meaning,
        .threshold = q->threshold,
        .blocks = q->blocks,
        .on_nonfinite = q->on_nonfinite,
        .center = q->center,
        .clip_gradient = q->clip_gradient,
    };
}

#endif
