/* write_ct.c - writes compressed-tensors' layouts:
 *
 *   pack-quantized
 *     P.weight_packed      I32 (N, ceil(K * bits / 32)): a stream per row
 *     P.weight_scale       (N, K / group)
 *     P.weight_shape       I64 (2)
 *     P.weight_zero_point  I32 (ceil(N * bits / 32), K / group), along N;
 *                          absent if codes are symmetric
 *   int-quantized
 *     P.weight             I8 (N, K)
 *     P.weight_scale       (N, 1)
 *   mxfp4-pack-quantized
 *     P.weight_packed      U8 (N, K / 2)
 *     P.weight_scale       U8 (N, K / 32)
 *   mxfp8-quantized
 *     P.weight             F8_E4M3 (N, K)
 *     P.weight_scale       U8 (N, K / 32)
 *   nvfp4-pack-quantized
 *     P.weight_packed      U8 (N, K / 2)
 *     P.weight_scale       F8_E4M3 (N, K / 16), divided by
 *     P.weight_global_scale  F32 (1)
 *
 *   float-quantized
 *     P.weight             F8_E4M3 (N, K)
 *     P.weight_scale       (N, 1), (1), or of tiles, (ceil(N / g), ceil(K / g))
 *
 * w = scale * (code - zero). A directory may mix them.
 */
#include <string.h>

#include "core/core.h"
#include "io/layouts/writers.h"

enum { ZERO = 2 }; /* part of affine formats */

typedef enum ct_kind {
    CT_NONE,
    CT_PACKED,
    CT_INT8,
    CT_MXFP4,
    CT_MXFP8,
    CT_NVFP4,
    CT_FP8,
    CT_KINDS
} ct_kind;

static const struct {
    const char *format;
    bool floats;
} kinds[CT_KINDS] = {
    [CT_PACKED] = {"pack-quantized", false},
    [CT_INT8] = {"int-quantized", false},
    [CT_MXFP4] = {"mxfp4-pack-quantized", true},
    [CT_MXFP8] = {"mxfp8-quantized", true},
    [CT_NVFP4] = {"nvfp4-pack-quantized", true},
    [CT_FP8] = {"float-quantized", true},
};

/* Blocks of small floats with scales of 8 bits. */
static ct_kind block_kind(const lb_described *d, lb_packed_facts *f)
{
    const lb_described_part *scale = lb_described_part_of(d, "scale");
    const lb_described *s = scale ? scale->array : NULL;
    const bool mx = strcmp(d->format, "mxfp8") == 0;
    if (strcmp(d->format, "nvfp4") == 0) {
        const lb_described_part *one =
            s ? lb_described_part_of(s, "scale") : NULL;
        const bool fits = one && !one->array && one->elem == LB_F32 &&
                          s->meaning == LB_MEANS_INVERSE && !one->table.g[0] &&
                          !one->table.g[1];
        *f = (lb_packed_facts){.bits = 4, .group = 16};
        return fits && d->shape.dim[1] % 16 == 0 ? CT_NVFP4 : CT_NONE;
    }
    *f = (lb_packed_facts){.bits = mx ? 8 : 4, .group = 32};
    if (d->shape.dim[1] % 32 || !s) return CT_NONE;
    return mx ? CT_MXFP8 : CT_MXFP4;
}

/* groups: 1 per row, else tiles of f->group rows and f->columns columns, or one
 * scale if that is 0. */
static ct_kind fp8_kind(const lb_described *d, lb_packed_facts *f)
{
    const lb_described_part *scale = lb_described_part_of(d, "scale");
    int64_t tile[2] = {0, 0};
    if (!scale || scale->array) return CT_NONE;
    const bool rows = scale->table.g[0] == 1 && !scale->table.g[1];
    *f = (lb_packed_facts){.bits = 8,
                           .rows = d->shape.dim[0],
                           .row = d->shape.dim[1],
                           .groups = rows,
                           .scale = scale->elem};
    if (!rows && !lb_tile_size(d, scale, tile)) return CT_NONE;
    f->group = tile[0];
    f->columns = tile[1];
    return CT_FP8;
}

static ct_kind kind_of(const lb_described *d, lb_packed_facts *f)
{
    const lb_described_part *scale = lb_described_part_of(d, "scale");
    *f = (lb_packed_facts){0};
    if (d->shape.rank != 2 || d->meaning) return CT_NONE;
    if (strcmp(d->format, "mxfp4") == 0 || strcmp(d->format, "mxfp8") == 0 ||
        strcmp(d->format, "nvfp4") == 0)
        return block_kind(d, f);
    if (strcmp(d->format, "fp8_e4m3") == 0) return fp8_kind(d, f);
    if (strcmp(d->format, "int8") == 0) {
        *f = (lb_packed_facts){.bits = 8,
                               .rows = d->shape.dim[0],
                               .row = d->shape.dim[1],
                               .group = d->shape.dim[1],
                               .groups = 1,
                               .scale = scale ? scale->elem : LB_NO_DTYPE};
        return scale && !scale->array && scale->table.g[0] == 1 &&
                       scale->table.g[1] == 0
                   ? CT_INT8
                   : CT_NONE;
    }
    const bool ok = lb_packed_facts_of(d, f) && !f->bias && !f->listed &&
                    f->scale && f->row * f->bits % 32 == 0 &&
                    f->row % f->group == 0;
    return ok ? CT_PACKED : CT_NONE;
}

static bool plan_packed(lb_ctx *cx, lb_saver *s, lb_saved *item, size_t n,
                        const lb_packed_facts *f)
{
    const lb_shape packed = LB_SHAPE(f->rows, f->row * f->bits / 32);
    const lb_shape scale = LB_SHAPE(f->rows, f->groups), two = LB_SHAPE(2);
    const lb_shape zero =
        LB_SHAPE(lb_ceil_div(f->rows * f->bits, 32), f->groups);
    return lb_saver_tensor(cx, s, item, item->name, n, ".weight_packed", NULL,
                           LB_I32, &packed) &&
           lb_saver_tensor(cx, s, item, item->name, n, ".weight_scale", NULL,
                           f->scale, &scale) &&
           lb_saver_tensor(cx, s, item, item->name, n, ".weight_shape", NULL,
                           LB_I64, &two) &&
           (!f->zero ||
            lb_saver_tensor(cx, s, item, item->name, n, ".weight_zero_point",
                            NULL, LB_I32, &zero));
}

static bool plan_blocks(lb_ctx *cx, lb_saver *s, lb_saved *item, size_t n,
                        ct_kind kind, const lb_packed_facts *f)
{
    const int64_t *dim = item->shape.dim;
    const bool wide = kind == CT_MXFP8, nv = kind == CT_NVFP4;
    const lb_shape codes = LB_SHAPE(dim[0], wide ? dim[1] : dim[1] / 2);
    const lb_shape scale = LB_SHAPE(dim[0], dim[1] / f->group),
                   one = LB_SHAPE(1);
    const char *e4m3 = "F8_E4M3";
    return lb_saver_tensor(
               cx, s, item, item->name, n, wide ? ".weight" : ".weight_packed",
               wide ? e4m3 : NULL, wide ? LB_NO_DTYPE : LB_U8, &codes) &&
           lb_saver_tensor(cx, s, item, item->name, n, ".weight_scale",
                           nv ? e4m3 : NULL, nv ? LB_NO_DTYPE : LB_U8,
                           &scale) &&
           (!nv || lb_saver_tensor(cx, s, item, item->name, n,
                                   ".weight_global_scale", NULL, LB_F32, &one));
}

lb_verdict lb_ct_plan(lb_ctx *cx, lb_saver *s, lb_saved *item)
{
    size_t n;
    lb_packed_facts f;
    const lb_shape *shape = &item->shape;
    const ct_kind kind = kind_of(item->described, &f);
    bool ok = false;
    if (kind == CT_NONE || !lb_name_ends(item->name, ".weight", &n))
        return LB_DECLINED;
    if (kind == CT_PACKED) ok = plan_packed(cx, s, item, n, &f);
    if (kind == CT_INT8) {
        const lb_shape rows = LB_SHAPE(f.rows, 1);
        ok = lb_saver_tensor(cx, s, item, item->name, n, ".weight", NULL, LB_I8,
                             shape) &&
             lb_saver_tensor(cx, s, item, item->name, n, ".weight_scale", NULL,
                             f.scale, &rows);
    }
    if (kind == CT_FP8) {
        const lb_shape scale = f.group ? LB_SHAPE(lb_ceil_div(f.rows, f.group),
                                                  lb_ceil_div(f.row, f.columns))
                               : f.groups ? LB_SHAPE(f.rows, 1)
                                          : LB_SHAPE(1);
        ok = lb_saver_tensor(cx, s, item, item->name, n, ".weight", "F8_E4M3",
                             LB_NO_DTYPE, shape) &&
             lb_saver_tensor(cx, s, item, item->name, n, ".weight_scale", NULL,
                             f.scale, &scale);
    }
    if (kind == CT_MXFP4 || kind == CT_MXFP8 || kind == CT_NVFP4)
        ok = plan_blocks(cx, s, item, n, kind, &f);
    return ok ? LB_DONE : LB_FAILED;
}

/* Codes and scales are stored as they are. */
lb_array *lb_ct_part(lb_ctx *cx, const lb_saved *item, lb_array *a, int k)
{
    lb_packed_facts f;
    const ct_kind kind = kind_of(item->described, &f);
    lb_array *scale = k ? lb_component(cx, a, "scale") : NULL;
    if (k == 0) return lb_component(cx, a, "codes");
    if (kind == CT_MXFP4 || kind == CT_MXFP8 || kind == CT_NVFP4)
        return scale ? lb_component(cx, scale, k == 1 ? "codes" : "scale")
                     : NULL;
    if (k == 3) return lb_packed_zeros(cx, a, &f);
    if (k == 2)
        return lb_from(cx, LB_I64, LB_SHAPE(2),
                       (const int64_t[]){f.rows, f.row});
    return scale;
}

/* nvfp4 whose scales are multiplied by a number, or by none: as ones that are
 * divided by its reciprocal. */
static lb_array *divided(lb_ctx *cx, lb_array *a)
{
    lb_part part[LB_MAX_PARTS] = {0}, inner[LB_MAX_PARTS] = {0};
    enum { CODES, SCALE };
    const lb_store *s = a->store, *scale = s->part[SCALE].a->store;
    const lb_array *more = scale->part[SCALE].a;
    inner[CODES] = scale->part[CODES];
    inner[SCALE] = (lb_part){
        .a = more ? lb_div(cx, lb_full(cx, LB_F32, more->shape, 1),
                           lb_convert(cx, scale->part[SCALE].a, LB_F32))
                  : lb_full(cx, LB_F32, LB_SHAPE(1, 1), 1)};
    memcpy(part, s->part, sizeof part);
    if (inner[SCALE].a)
        part[SCALE].a = lb_make(cx, scale->fmt, LB_F32, LB_MEANS_INVERSE,
                                &scale->shape, inner);
    if (!inner[SCALE].a || !part[SCALE].a) return NULL;
    return lb_make(cx, s->fmt, a->dtype, s->meaning, &s->shape, part);
}

/* Small floats whose scales are other ones here. */
static bool remakes(const lb_moving *m, lb_move_plan *to)
{
    const lb_store *s = m->a->store;
    const char *format = s->fmt->name, *scale = lb_scale_format_of(m->a);
    *to = (lb_move_plan){.target.config.format = format};
    if (strcmp(scale, "e8m0") == 0)
        to->remake =
            strcmp(format, "fp8_e4m3") == 0 ? lb_plain_scales : lb_infinite_255;
    if (strcmp(format, "nvfp4") == 0 && strcmp(scale, "fp8_e4m3") == 0 &&
        s->part[1].a->store->meaning == LB_MEANS_SCALE)
        to->remake = divided;
    return to->remake && m->a->shape.rank == 2;
}

bool lb_ct_moves(lb_ctx *cx, const lb_moving *m, lb_move_plan *to)
{
    (void)cx;
    const int bits = m->scheme ? lb_packed_bits(m) : 4;
    const int64_t group = m->scheme || m->block_size ? lb_packed_group(m) : 128;
    if (remakes(m, to)) return true;
    if (m->scheme && m->scheme->levels == LB_LEVELS_E2M1) {
        const lb_quant_config c = {.format = "mxfp4"};
        *to = (lb_move_plan){.target.config = c, .encode = c};
        return true;
    }
    if (bits == 8 && lb_packed_symmetric(m, 8) && m->a->shape.rank == 2 &&
        group >= m->a->shape.dim[1]) {
        const lb_quant_config c = {.format = "int8"};
        *to = (lb_move_plan){.target.config = c, .encode = c};
        return true;
    }
    lb_packed_target(m, bits ? bits : 4, group, lb_packed_scale(m), to);
    if (!m->scheme || !lb_packed_symmetric(m, bits))
        to->target.elem[ZERO] = LB_U8;
    to->target.zero_most = (1 << (bits ? bits : 4)) - 1;
    return true;
}

/* ---- configuration ------------------------------------------------------- */

static bool same_scheme(const lb_described *a, const lb_described *b)
{
    lb_packed_facts f, g;
    const ct_kind kind = kind_of(a, &f);
    return kind == kind_of(b, &g) && f.bits == g.bits && f.zero == g.zero &&
           (kind != CT_FP8 ||
            (f.groups == g.groups && f.columns == g.columns)) &&
           (f.group == g.group || (f.groups == 1 && g.groups == 1));
}

static void put_weights(lb_bytes *to, const lb_described *d)
{
    lb_packed_facts f;
    const ct_kind kind = kind_of(d, &f);
    lb_bytes_text(to,
                  "\"weights\": {\n          \"num_bits\": %d,\n"
                  "          \"type\": \"%s\",\n",
                  f.bits, kinds[kind].floats ? "float" : "int");
    lb_bytes_text(to, "          \"symmetric\": %s,\n          \"strategy\": ",
                  f.zero ? "false" : "true");
    if (kind == CT_FP8 && f.group)
        lb_bytes_text(to,
                      "\"block\",\n          \"block_structure\": "
                      "[%lld, %lld],\n",
                      (long long)f.group, (long long)f.columns);
    else if (kind == CT_FP8 && !f.groups)
        lb_bytes_text(to, "\"tensor\",\n");
    else if (f.groups == 1)
        lb_bytes_text(to, "\"channel\",\n          \"group_size\": null,\n");
    else
        lb_bytes_text(to, "\"%s\",\n          \"group_size\": %lld,\n",
                      kind == CT_NVFP4 ? "tensor_group" : "group",
                      (long long)f.group);
    if (kind == CT_NVFP4)
        lb_bytes_text(to,
                      "          \"scale_dtype\": \"torch.float8_e4m3fn\",\n");
    if (kind == CT_MXFP4 || kind == CT_MXFP8)
        lb_bytes_text(to, "          \"scale_dtype\": \"torch.uint8\",\n");
    lb_bytes_text(to, "          \"dynamic\": false\n        }");
}

/* A group of modules for each scheme: all linear layers, if there is one. */
void lb_ct_configure(lb_bytes *to, const lb_loading *how)
{
    int64_t groups = 0;
    bool mixed = false, formats = false;
    lb_packed_facts f;
    const lb_saved *p = how->packed;
    const ct_kind kind = kind_of(p[0].described, &f);
    for (int64_t i = 1; i < how->n_packed; i++) {
        mixed |= !same_scheme(p[0].described, p[i].described);
        formats |= kind_of(p[i].described, &f) != kind;
    }
    lb_bytes_text(to,
                  "{\n    \"quant_method\": \"compressed-tensors\",\n"
                  "    \"format\": \"%s\",\n"
                  "    \"quantization_status\": \"compressed\",\n"
                  "    \"config_groups\": {",
                  formats ? "mixed-precision" : kinds[kind].format);
    for (int64_t i = 0; i < how->n_packed; i++) {
        int64_t first = 0;
        while (!same_scheme(p[first].described, p[i].described))
            first++;
        if (first < i) continue;
        lb_bytes_text(to, "%s\n      \"group_%lld\": {\n        \"targets\": [",
                      groups ? "," : "", (long long)groups);
        groups++;
        if (!mixed) lb_bytes_text(to, "\"Linear\"");
        for (int64_t k = i; mixed && k < how->n_packed; k++) {
            if (!same_scheme(p[k].described, p[i].described)) continue;
            if (k > i) lb_bytes_text(to, ", ");
            lb_put_module(to, p[k].name);
        }
        lb_bytes_text(to, "],\n        ");
        put_weights(to, p[i].described);
        lb_bytes_text(to,
                      ",\n        \"input_activations\": null,\n"
                      "        \"output_activations\": null,\n"
                      "        \"format\": \"%s\"\n      }",
                      kinds[kind_of(p[i].described, &f)].format);
    }
    lb_bytes_text(to, "\n    },\n    \"ignore\": ");
    lb_put_texts(to, how->skip, how->n_skip);
    lb_bytes_text(to, ",\n    \"kv_cache_scheme\": null\n  }");
}
