/* ternary.c - signs of the values above a threshold: -1, 0 or 1 in 2 bits.
 *
 *   stored bits = code + 1, four to a byte, the first in the lowest
 *
 *   threshold std      code = sign(x) where |x| > half the standard deviation
 *                      (population) of the group
 *             absmean  code = round_half_even(x / mean |x|), clipped (BitNet)
 */
#include <math.h>

#include "formats/config.h"
#include "formats/signs.h"
#include "kernels/convert.h"
#include "kernels/decode.h"

static bool layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                   const lb_shape *shape, lb_layout *to)
{
    if (q->compat == LB_COMPAT_EFORMER && q->threshold)
        return lb_fail(
            cx, LB_E_ARG,
            "ternary: threshold is absmean, but compat eformer only has std");
    return lb_signs_layout(cx, q, from, shape, to);
}

static lb_signs_need need(const lb_quant *q, bool scaled)
{
    (void)scaled;
    return q->threshold == LB_THRESHOLD_ABSMEAN ? LB_SIGNS_MEAN
                                                : LB_SIGNS_SPREAD;
}

static float rounded(lb_dtype d, double x)
{
    char bits[sizeof x];
    float y;
    lb_store_run(LB_C_F64, &x, d, 1, bits);
    lb_load_run(d, bits, 1, 1, &y);
    return y;
}

/* eformer rounds variance, square root and half to the input's dtype. (Halving
 * is exact.) */
static float cut(const lb_quant *q, lb_dtype from, lb_moments m)
{
    const double variance = m.m2 / m.n;
    if (q->compat != LB_COMPAT_EFORMER) return (float)(0.5 * sqrt(variance));
    const lb_dtype d = from == LB_F64 ? LB_F32 : from;
    const double root = sqrt((double)rounded(d, variance));
    return rounded(d, 0.5 * (double)rounded(d, root));
}

/* code is 1 if f32(x / mean) > 0.5. Let c = mean / 2, which is exact. Every f32
 * x > c satisfies x / mean > 0.5 (1 + 2^-24), the largest quotient that rounds
 * to 0.5; so the cut is c. If c is subnormal it may lie between two numbers:
 * then the lower one is the cut. A mean of 0 gives codes 0. */
static float cut_of_mean(float mean)
{
    const float half = 0.5f * mean;
    if (!(mean > 0)) return INFINITY;
    return half + half > mean ? nextafterf(half, 0) : half;
}

static void codes(const lb_encode_kernel *k, float cut_at, const float *x,
                  int64_t n, uint8_t *byte)
{
    k->ternary(x, n, cut_at, byte);
}

static const lb_signs_rule rule = {need, cut, cut_of_mean, codes};

static const lb_foreign foreign[] = {
    {"eformer", {"packed", "scale"}, lb_interleave_load, lb_interleave_save},
    {"bitnet", {"packed", "scale"}, lb_interleave_load, lb_interleave_save},
    {0},
};

extern const lb_format lb_format_ternary;
const lb_format lb_format_ternary = {
    .struct_size = sizeof(lb_format),
    .name = "ternary",
    .part = {{.name = "codes", .raw = true},
             {.name = "scale", .scale = true, .optional = true}},
    .codes = {.bits = 2, .least = -1, .most = 1, .step = 1, .filler = 1},
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
