/* quant.c - a user's lb_quant_config as formats see it: every member checked,
 * the format found by name. */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "core/registry.h"

/* Enums from the caller may hold any value. */
static bool check_enum(lb_ctx *cx, const char *who, const char *member,
                       unsigned value, unsigned most)
{
    return value <= most ||
           lb_fail(cx, LB_E_ARG, "%s: config.%s is %u, not in 0..%u", who,
                   member, value, most);
}

static bool lists_groups(const lb_format *f)
{
    for (int p = 0; f && p < LB_MAX_PARTS && f->part[p].name; p++)
        if (strcmp(f->part[p].name, "group") == 0) return true;
    return false;
}

bool lb_quant_check(lb_ctx *cx, const char *who, const lb_quant *q, int rank)
{
    const struct {
        const char *name;
        unsigned value, most;
    } member[] = {
        {"compat", (unsigned)q->compat, LB_COMPAT_BNB_CPU},
        {"decode", (unsigned)q->decode, LB_DECODE_POLY},
        {"scale", (unsigned)q->scale, LB_SCALE_BLOCK},
        {"meaning", (unsigned)q->meaning, LB_MEANS_INVERSE},
        {"threshold", (unsigned)q->threshold, LB_THRESHOLD_ABSMEAN},
        {"blocks", (unsigned)q->blocks, LB_BLOCKS_LISTED},
        {"on_nonfinite", (unsigned)q->on_nonfinite, LB_NONFINITE_CLAMP},
    };
    for (size_t i = 0; i < sizeof member / sizeof *member; i++)
        if (!check_enum(cx, who, member[i].name, member[i].value,
                        member[i].most))
            return false;
    if (q->dtype != LB_NO_DTYPE && !lb_dtype_size(q->dtype))
        return lb_fail(cx, LB_E_DTYPE,
                       "%s: config.dtype is %d, which is not a dtype", who,
                       (int)q->dtype);
    if (q->blocks == LB_BLOCKS_LISTED && !lists_groups(q->format))
        return lb_fail(cx, LB_E_ARG,
                       "%s: config.blocks is listed, but %s has no part group",
                       who, q->format ? q->format->name : "the format");
    if (q->block_size < 0)
        return lb_fail(
            cx, LB_E_ARG,
            "%s: config.block_size is %lld; it must be positive, or 0 "
            "for the format's default",
            who, (long long)q->block_size);
    return lb_axes_check(cx, who, "axes", &q->axes, rank);
}

bool lb_config_read(lb_ctx *cx, const char *who, const lb_quant_config *config,
                    lb_quant_config *c)
{
    *c = (lb_quant_config){0};
    if (!config) return true;
    const size_t size = config->struct_size ? config->struct_size : sizeof *c;
    if (size < sizeof c->struct_size + sizeof c->format)
        return lb_fail(cx, LB_E_ARG,
                       "%s: config.struct_size is %zu, not the sizeof or 0",
                       who, size);
    memcpy(c, config, size < sizeof *c ? size : sizeof *c);
    c->struct_size = sizeof *c;
    return true;
}

bool lb_quant_of(lb_ctx *cx, const char *who, const lb_quant_config *config,
                 int rank, lb_quant *q)
{
    lb_quant_config c;
    if (!lb_config_read(cx, who, config, &c)) return false;
    const lb_format *fmt =
        c.format ? lb_find_format(cx, c.format) : lb_default_format;
    if (fmt && !fmt->layout)
        return lb_fail(cx, LB_E_ARG,
                       "%s: cannot quantize to %s (supported: %s)", who,
                       fmt->name, lb_formats_known(cx).s);
    if (!fmt)
        return lb_fail(cx, LB_E_ARG,
                       "%s: unknown format \"%.100s\"%s (supported: %s)", who,
                       c.format, lb_formats_near(cx, c.format).s,
                       lb_formats_known(cx).s);
    *q = (lb_quant){
        .format = fmt,
        .block_size = c.block_size,
        .dtype = c.dtype,
        .reference = c.reference,
        .center = c.center,
        .clip_gradient = c.clip_gradient,
        .compat = c.compat,
        .decode = c.decode,
        .scale = c.scale,
        .meaning = c.meaning,
        .threshold = c.threshold,
        .blocks = c.blocks,
        .on_nonfinite = c.on_nonfinite,
    };
    if (c.axes.n && !lb_axes_fix(cx, who, &c.axes, rank, &q->axes))
        return false;
    return lb_quant_check(cx, who, q, rank);
}

bool lb_quant_to(lb_ctx *cx, const char *who, const lb_quant_config *config,
                 int rank, lb_quant *q)
{
    return lb_quant_of(cx, who, config, rank, q) &&
           (q->blocks != LB_BLOCKS_LISTED ||
            lb_fail(cx, LB_E_ARG,
                    "%s: config.blocks is listed, which is only for "
                    "lb_from_parts",
                    who)) &&
           (lb_is_encodable(q->format) ||
            lb_fail(cx, LB_E_UNSUPPORTED,
                    "%s: %s can be read, but not quantized to%s (supported: "
                    "%s)",
                    who, q->format->name,
                    lb_formats_near(cx, q->format->name).s,
                    lb_formats_known(cx).s));
}

bool lb_can_quantize(const lb_ctx *cx, const char *format)
{
    const lb_format *fmt = cx ? lb_find_format(cx, format) : NULL;
    return fmt && lb_is_encodable(fmt);
}

bool lb_kernel_available(const lb_ctx *cx, const char *format)
{
    const lb_format *fmt = cx ? lb_find_format(cx, format) : NULL;
    return fmt && cx->cpu.level != LB_LEVEL_REF &&
           (fmt->kernels >> cx->cpu.level & 1);
}
