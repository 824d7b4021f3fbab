/* write_mlx.c - writes MLX's layout:
 *
 *     P.weight   U32 (.., N, K * bits / 32): a stream of bits per row
 *     P.scales, P.biases   (.., N, K / group), f16, bf16 or f32
 *
 * w = scale * code + bias. With modes mxfp4 and mxfp8, P.scales is U8 (a power
 * of two), with mode nvfp4 it is U8 (E4M3); there are no biases. Arrays without
 * ".weight" in their name (experts) are P as well.
 */
#include <string.h>

#include "core/core.h"
#include "io/layouts/writers.h"

enum { WEIGHT, SCALES, BIASES };
enum { SCALE = 1, BIAS = 3 }; /* parts */

static bool is_group(int64_t g)
{
    return g == 32 || g == 64 || g == 128;
}

static bool is_bits(int bits)
{
    return bits >= 2 && bits <= 8 && bits != 7;
}

/* Modes with small floats are called like the formats. */
static bool is_mx(const lb_described *d, lb_packed_facts *f)
{
    static const struct {
        const char *mode;
        int bits, group;
    } modes[] = {{"mxfp4", 4, 32}, {"mxfp8", 8, 32}, {"nvfp4", 4, 16}};
    const lb_described_part *scale = lb_described_part_of(d, "scale");
    for (int i = 0; i < 3; i++)
        if (strcmp(d->format, modes[i].mode) == 0) {
            f->bits = modes[i].bits;
            f->group = modes[i].group;
            /* A scale of scales has no tensor here. */
            return scale && scale->array && scale->array->n_parts == 1;
        }
    return false;
}

lb_verdict lb_mlx_plan(lb_ctx *cx, lb_saver *s, lb_saved *item)
{
    size_t n;
    lb_packed_facts f = {0};
    const lb_described *d = item->described;
    const bool mx = is_mx(d, &f);
    if (!mx && (!lb_packed_facts_of(d, &f) || !f.bias || f.zero || f.listed ||
                !is_bits(f.bits) || !is_group(f.group) || !f.scale))
        return LB_DECLINED;
    lb_shape weight = d->shape, scales = d->shape;
    const int last = d->shape.rank - 1;
    if (last < 1 || weight.dim[last] % f.group ||
        weight.dim[last] * f.bits % 32)
        return LB_DECLINED;
    if (!lb_name_ends(item->name, ".weight", &n)) n = strlen(item->name);
    weight.dim[last] = weight.dim[last] * f.bits / 32;
    scales.dim[last] /= f.group;
    const lb_dtype dtype = mx ? LB_U8 : f.scale;
    const bool ok = lb_saver_tensor(cx, s, item, item->name, n, ".weight", NULL,
                                    LB_U32, &weight) &&
                    lb_saver_tensor(cx, s, item, item->name, n, ".scales", NULL,
                                    dtype, &scales) &&
                    (mx || lb_saver_tensor(cx, s, item, item->name, n,
                                           ".biases", NULL, dtype, &scales));
    return ok ? LB_DONE : LB_FAILED;
}

/* Bytes are those of the parts. */
lb_array *lb_mlx_part(lb_ctx *cx, const lb_saved *item, lb_array *a, int k)
{
    static const char *const part[] = {"codes", "scale", "bias"};
    lb_array *x = lb_component(cx, a, part[k]);
    lb_packed_facts f;
    return x && k == SCALES && is_mx(item->described, &f)
               ? lb_component(cx, x, "codes")
               : x;
}

/* The largest that divides the source's groups. */
static int64_t group_of(int64_t g)
{
    for (int64_t n = 128; n > 32; n /= 2)
        if (g % n == 0) return n;
    return 32;
}

/* 16-bit scales are exact only in products that are not rounded to 16 bits,
 * unlike MLX's. */
bool lb_mlx_moves(lb_ctx *cx, const lb_moving *m, lb_move_plan *to)
{
    (void)cx;
    int bits = lb_packed_bits(m);
    const int64_t group = group_of(lb_packed_group(m));
    lb_dtype scale = lb_packed_scale(m);
    if (strcmp(lb_scale_format_of(m->a), "e8m0") == 0 &&
        strcmp(m->a->store->fmt->name, "fp8_e4m3") != 0) {
        *to = (lb_move_plan){.target.config.format = m->a->store->fmt->name,
                             .remake = lb_infinite_255};
        return true;
    }
    if (m->scheme && m->scheme->levels == LB_LEVELS_E2M1) {
        const lb_quant_config c = {.format = "mxfp4"};
        *to = (lb_move_plan){.target.config = c, .encode = c};
        return true;
    }
    if (!m->scheme) bits = 4;
    if (bits == 7) bits = 8;
    if (bits < 2) bits = 2;
    if (m->exact)
        scale = LB_F32;
    else if (scale == LB_F32)
        scale = m->a->dtype == LB_BF16 ? LB_BF16 : LB_F16;
    /* A bias of 128 scales would be off by half a step. */
    if (bits == 8 && scale == LB_BF16) scale = LB_F32;
    lb_packed_target(m, bits, group, scale, to);
    to->target.elem[BIAS] = scale;
    return true;
}

static const char *mode_of(const lb_described *d, lb_packed_facts *f)
{
    if (is_mx(d, f)) return d->format;
    lb_packed_facts_of(d, f);
    return "affine";
}

static void put_settings(lb_bytes *to, const lb_described *d)
{
    lb_packed_facts f;
    const char *mode = mode_of(d, &f);
    lb_bytes_text(to, "\"group_size\": %lld, \"bits\": %d, \"mode\": \"%s\"",
                  (long long)f.group, f.bits, mode);
}

static bool same_settings(const lb_described *a, const lb_described *b)
{
    lb_packed_facts f, g;
    return strcmp(mode_of(a, &f), mode_of(b, &g)) == 0 && f.bits == g.bits &&
           f.group == g.group;
}

/* Settings of the first array, and of each array that has others. */
static void put_all(lb_bytes *to, const lb_loading *how)
{
    const lb_described *first = how->packed[0].described;
    lb_bytes_text(to, "{\n    ");
    put_settings(to, first);
    for (int64_t i = 1; i < how->n_packed; i++) {
        const lb_described *d = how->packed[i].described;
        if (same_settings(first, d)) continue;
        lb_bytes_text(to, ",\n    ");
        lb_put_module(to, how->packed[i].name);
        lb_bytes_text(to, ": {");
        put_settings(to, d);
        lb_bytes_text(to, "}");
    }
    lb_bytes_text(to, "\n  }");
}

/* mlx_lm reads "quantization", transformers the other key. */
void lb_mlx_configure(lb_bytes *to, const lb_loading *how)
{
    put_all(to, how);
    lb_bytes_text(to, ",\n  \"quantization\": ");
    put_all(to, how);
}
