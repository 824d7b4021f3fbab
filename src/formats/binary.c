/* binary.c - signs, -1 or 1, in 1 bit, which is set for 1. Zero becomes 1, also
 * -0. Eight codes per byte, the first in the lowest bit. */
#include "formats/config.h"
#include "formats/signs.h"
#include "kernels/decode.h"

static bool layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                   const lb_shape *shape, lb_layout *to)
{
    return lb_config_unused(cx, q, "threshold",
                            lb_config_threshold(q->threshold)) &&
           lb_signs_layout(cx, q, from, shape, to);
}

static lb_signs_need need(const lb_quant *q, bool scaled)
{
    (void)q;
    return scaled ? LB_SIGNS_MEAN : LB_SIGNS_NOTHING;
}

static void codes(const lb_encode_kernel *k, float cut, const float *x,
                  int64_t n, uint8_t *byte)
{
    (void)cut;
    k->binary(x, n, byte);
}

static const lb_signs_rule rule = {.need = need, .codes = codes};

static const lb_foreign foreign[] = {
    {"eformer", {"packed", "scale"}, lb_interleave_load, lb_interleave_save},
    {0},
};

extern const lb_format lb_format_binary;
const lb_format lb_format_binary = {
    .struct_size = sizeof(lb_format),
    .name = "binary",
    .part = {{.name = "codes", .raw = true},
             {.name = "scale", .scale = true, .optional = true}},
    .codes = {.bits = 1, .least = -1, .most = 1, .step = 2, .filler = 0},
    .relabel = true,
    .levels = lb_signs_levels,
    .decode = lb_signs_decode,
    .unpack = lb_signs_unpack,
    .layout = layout,
    .prepare = lb_signs_prepare,
    .encode_plan = lb_signs_plan,
    .encode = lb_signs_encode,
    .bound = lb_signs_bound,
    .type = &rule,
    .kernels = LB_DECODE_LEVELS,
    .foreign = foreign,
    .recode = &lb_signs_recode,
};
