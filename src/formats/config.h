/* config.h - what formats do with the config they are given. */
#ifndef LB_CONFIG_H
#define LB_CONFIG_H

#include "lowbit_ext.h"

/* What sentences call a choice: the word that commands and rules have for it,
 * not its number. NULL: the default. */
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

/* A member that the format has no use for must be left at its default, of which
 * the value is NULL. */
static inline bool lb_config_unused(lb_ctx *cx, const lb_quant *q,
                                    const char *member, const char *value)
{
    return !value ||
           lb_fail(cx, LB_E_ARG, "%s: %s is %s, and it has no use for it",
                   q->format->name, member, value);
}

/* Decoded numbers are floats. */
static inline bool lb_config_float(lb_ctx *cx, const lb_quant *q,
                                   lb_dtype dtype)
{
    return (dtype >= LB_F32 && dtype <= LB_F64) ||
           lb_fail(cx, LB_E_DTYPE,
                   "%s: dtype %s: it materializes to f32, f16, bf16 or f64",
                   q->format->name, lb_dtype_name(dtype));
}

static inline bool lb_config_is_bnb(const lb_quant *q)
{
    return q->compat == LB_COMPAT_BNB_CUDA || q->compat == LB_COMPAT_BNB_CPU;
}

/* Blocks run on across rows: as q says, or as bitsandbytes has it. */
static inline bool lb_config_is_flat(const lb_quant *q)
{
    return q->blocks == LB_BLOCKS_DEFAULT ? lb_config_is_bnb(q)
                                          : q->blocks == LB_BLOCKS_FLAT;
}

/* Makes room for an axis of a part's own: where there are as many axes as there
 * can be, the first two are stored as one. */
static inline void lb_config_fold(lb_shape *stored)
{
    if (stored->rank < LB_MAX_RANK) return;
    stored->dim[0] *= stored->dim[1];
    for (int k = 1; k + 1 < stored->rank; k++)
        stored->dim[k] = stored->dim[k + 1];
    stored->dim[--stored->rank] = 0;
}

/* How far rounding to the dtype that q names may move a number, relatively. */
static inline double lb_config_unit(const lb_quant *q)
{
    return q->dtype == LB_F16 ? 0x1p-11 : q->dtype == LB_BF16 ? 0x1p-8 : 0;
}

/* The config that q was made from, for those who call on what users do. */
static inline lb_quant_config lb_config_of(const lb_quant *q)
{
    return (lb_quant_config){
        .format = q->format->name,
        .block_size = q->block_size,
        .axes = q->axes,
        .dtype = q->dtype,
        .use_kernel = q->reference ? LB_NO : LB_CHOICE_DEFAULT,
        .compat = q->compat,
        .decode = q->decode,
        .scale = q->scale,
        .meaning = q->meaning,
        .threshold = q->threshold,
        .blocks = q->blocks,
        .on_nonfinite = q->on_nonfinite,
        .center = q->center,
    };
}

#endif
