/* layout_fp8.c - small floats as other programs store them, without or with
 * scales in tensors of their own. Which tensors form an array follows from
 * their names and types:
 *
 *     layout    codes                 scales                 program
 *     fp8       P            F8       P_scale_inv            DeepSeek V3
 *               P.weight     F8       P.scale                DeepSeek V4
 *               P.weight     F8       P.qscale_weight        Mistral
 *               P.weight     F8       P.scale_weight         ComfyUI
 *               P.weight     F8       P.weight_scale         ModelOpt,
 *                                         compressed-tensors, FBGEMM, mxfp8
 *               P.weight     I8 U8    P.scale     F8_E8M0    DeepSeek V4: mxfp4
 *     mxfp4     P_blocks     U8       P_scales    U8         gpt-oss
 *     modelopt  P.weight     U8       P.weight_scale F8_E4M3 nvfp4: times
 *                                     P.weight_scale_2
 *     compressed-tensors
 *               P.weight_packed U8    P.weight_scale F8_E4M3 nvfp4: divided by
 *                                     P.weight_global_scale
 *               P.weight_packed U8    P.weight_scale U8      mxfp4
 *     mlx       P.weight     U32      P.scales    U8         mxfp4, mxfp8,
 *                                                            nvfp4
 *
 * The codes of E2M1 are two in a byte, the first in the low half. Scales
 * multiply, also those called inverse.
 */
#include <string.h>

#include "core/core.h"
#include "io/layouts/float_parts.h"

#define F8     "F8_E4M3 F8_E5M2"
#define SCALES "F32 F16 BF16 F8_E8M0 U8"

typedef struct names {
    const char *scale, *scale_types; /* suffix and types of the scales */
    const char *codes, *codes_types;
    const char *array; /* suffix of the array's name */
} names;

/* The codes that belong to a tensor of scales; *n: length of the prefix. */
static const lb_tensor *codes_of(const lb_file *f, const names *r,
                                 const lb_tensor *scale, size_t *n)
{
    if (!lb_name_ends(scale->name, r->scale, n) ||
        !lb_type_is(scale, r->scale_types))
        return NULL;
    const lb_tensor *w = lb_reader_find_in(f->r, scale->name, *n, r->codes);
    return w && lb_type_is(w, r->codes_types) ? w : NULL;
}

/* Fills codes, scale and name of t; LB_DECLINED if it is not so. */
static lb_verdict match(lb_ctx *cx, lb_file *f, const names *r,
                        const lb_tensor *scale, lb_floats *t)
{
    size_t n;
    *t = (lb_floats){.codes = codes_of(f, r, scale, &n), .scale = scale};
    if (!t->codes) return LB_DECLINED;
    t->name = lb_floats_name(cx, f, scale->name, n, r->array);
    return t->name ? LB_DONE : LB_FAILED;
}

/* ---- fp8 ----------------------------------------------------------------- */

static lb_verdict find_fp8(lb_ctx *cx, lb_file *f, const lb_tensor *scale,
                           lb_group *g)
{
    static const names rules[] = {
        {"_scale_inv", SCALES, "", F8, ""},
        {".scale", SCALES, ".weight", F8, ".weight"},
        {".qscale_weight", SCALES, ".weight", F8, ".weight"},
        {".scale_weight", SCALES, ".weight", F8, ".weight"},
        {".weight_scale", SCALES, ".weight", F8, ".weight"},
    };
    static const names experts = {".scale", "F8_E8M0", ".weight", "I8 U8 F4",
                                  ".weight"};
    lb_floats t;
    lb_verdict v = LB_DECLINED;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        v = match(cx, f, &rules[i], scale, &t);
        if (v == LB_DECLINED) continue;
        t.top = LB_255_INFINITY;
        return v == LB_DONE ? lb_floats_fp8(cx, f, &t, g) : v;
    }
    v = match(cx, f, &experts, scale, &t);
    return v == LB_DONE ? lb_floats_blocks(cx, f, "mxfp4", false, &t, g) : v;
}

const lb_file_layout lb_file_layout_fp8 = {
    .name = "fp8", .find = find_fp8, LB_TENSOR_PARTS};

/* ---- gpt-oss ------------------------------------------------------------- */

static lb_verdict find_mxfp4(lb_ctx *cx, lb_file *f, const lb_tensor *scale,
                             lb_group *g)
{
    static const names rule = {"_scales", "U8", "_blocks", "U8", ""};
    lb_floats t;
    const lb_verdict v = match(cx, f, &rule, scale, &t);
    if (v != LB_DONE) return v;
    if (t.codes->rank != scale->rank + 1) return LB_DECLINED;
    t.top = LB_255_BEYOND;
    return lb_floats_blocks(cx, f, "mxfp4", true, &t, g);
}

const lb_file_layout lb_file_layout_mxfp4 = {
    .name = "mxfp4", .find = find_mxfp4, LB_TENSOR_PARTS};

/* ---- ModelOpt's and compressed-tensors' nvfp4 and mxfp4 ------------------ */

static lb_verdict find_modelopt(lb_ctx *cx, lb_file *f, const lb_tensor *more,
                                lb_group *g)
{
    static const names rule = {".weight_scale", "F8_E4M3", ".weight", "U8",
                               ".weight"};
    size_t n;
    lb_floats t;
    if (!lb_type_is(more, "F32") ||
        !lb_name_ends(more->name, ".weight_scale_2", &n))
        return LB_DECLINED;
    const lb_tensor *scale = lb_reader_find_in(f->r, more->name, n, rule.scale);
    if (!scale) return LB_DECLINED;
    const lb_verdict v = match(cx, f, &rule, scale, &t);
    t.more = more;
    return v == LB_DONE ? lb_floats_blocks(cx, f, "nvfp4", false, &t, g) : v;
}

const lb_file_layout lb_file_layout_modelopt = {
    .name = "modelopt", .find = find_modelopt, LB_TENSOR_PARTS};

static lb_verdict find_ct(lb_ctx *cx, lb_file *f, const lb_tensor *scale,
                          lb_group *g)
{
    static const names rule = {".weight_scale", "U8 F8_E8M0 F8_E4M3",
                               ".weight_packed", "U8", ".weight"};
    size_t n;
    lb_floats t;
    const lb_verdict v = match(cx, f, &rule, scale, &t);
    if (v != LB_DONE) return v;
    if (!lb_type_is(scale, "F8_E4M3")) {
        t.top = LB_255_INFINITY;
        return lb_floats_blocks(cx, f, "mxfp4", false, &t, g);
    }
    lb_name_ends(scale->name, rule.scale, &n);
    t.more = lb_reader_find_in(f->r, scale->name, n, ".weight_global_scale");
    t.divided = true;
    if (!t.more || !lb_type_is(t.more, "F32")) return LB_DECLINED;
    return lb_floats_blocks(cx, f, "nvfp4", false, &t, g);
}

const lb_file_layout lb_file_layout_ct_float = {
    .name = "compressed-tensors", .find = find_ct, LB_TENSOR_PARTS};

/* ---- MLX ----------------------------------------------------------------- */

/* Words of codes for a scale tell the modes apart: 32 codes of 4 bits, 32 of 8,
 * 16 of 4. */
static lb_verdict find_mlx(lb_ctx *cx, lb_file *f, const lb_tensor *scale,
                           lb_group *g)
{
    static const names rule = {".scales", "U8", ".weight", "U32", ".weight"};
    lb_floats t;
    const lb_verdict v = match(cx, f, &rule, scale, &t);
    if (v != LB_DONE) return v;
    const int last = scale->rank - 1;
    if (last < 0 || t.codes->rank != scale->rank || scale->dim[last] < 1)
        return LB_DECLINED;
    const int64_t n = t.codes->dim[last], each = n / scale->dim[last];
    const char *format = each == 4   ? "mxfp4"
                         : each == 8 ? "mxfp8"
                         : each == 2 ? "nvfp4"
                                     : NULL;
    t.top = LB_255_INFINITY;
    if (!format || n % each) return LB_DECLINED;
    return lb_floats_blocks(cx, f, format, false, &t, g);
}

const lb_file_layout lb_file_layout_mlx_float = {
    .name = "mlx", .find = find_mlx, LB_TENSOR_PARTS};

/* ---- no scales ----------------------------------------------------------- */

/* Whether a tensor of the same module could be its scales, under a name that is
 * not known here. */
static bool may_have_scales(const lb_file *f, const lb_tensor *t)
{
    size_t n;
    const lb_reader *r = f->r;
    int64_t at = 0, hi = r->n_tensors;
    if (!lb_name_ends(t->name, ".weight", &n)) n = strlen(t->name);
    while (at < hi) { /* the first name that begins alike */
        const int64_t mid = at + (hi - at) / 2;
        if (strncmp(r->by_name[mid]->name, t->name, n) < 0)
            at = mid + 1;
        else
            hi = mid;
    }
    for (; at < r->n_tensors; at++) {
        const char *rest = r->by_name[at]->name;
        if (strncmp(rest, t->name, n) != 0) return false;
        rest += n;
        if ((*rest == '.' || *rest == '_') && strstr(rest, "scale") &&
            !strstr(rest, "input_scale") && !strchr(rest + 1, '.'))
            return true;
    }
    return false;
}

static lb_verdict find_plain(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                             lb_group *g)
{
    if (!lb_type_is(t, F8 " F8_E8M0 F4") || may_have_scales(f, t))
        return LB_DECLINED;
    return lb_floats_plain(cx, f, t, g);
}

const lb_file_layout lb_file_layout_plain_float = {
    .name = "fp8", .find = find_plain, LB_TENSOR_PARTS};
