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

typedef enum ct_kind { CT_NONE, CT_PACKED, CT_INT8, CT_MXFP4, CT_FP8 } ct_kind;

static ct_kind kind_of(const lb_described *d, lb_packed_facts *f)
{
    const lb_described_part *scale = lb_described_part_of(d, "scale");
    *f = (lb_packed_facts){.bits = 4, .group = 32};
    if (d->shape.rank != 2 || d->meaning) return CT_NONE;
    if (strcmp(d->format, "mxfp4") == 0)
        return d->shape.dim[1] % 32 ? CT_NONE : CT_MXFP4;
    if (strcmp(d->format, "fp8_e4m3") == 0) {
        if (!scale || scale->array) return CT_NONE;
        *f = (lb_packed_facts){.bits = 8,
                               .rows = d->shape.dim[0],
                               .row = d->shape.dim[1],
                               .groups = scale->table.g[0] == 1,
                               .scale = scale->elem};
        const bool rows = f->groups && !scale->table.g[1];
        f->group = rows ? 0 : lb_tile_size(d, scale);
        return f->group < 0 ? CT_NONE : CT_FP8;
    }
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
                                                  lb_ceil_div(f.row, f.group))
                               : f.groups ? LB_SHAPE(f.rows, 1)
                                          : LB_SHAPE(1);
        ok = lb_saver_tensor(cx, s, item, item->name, n, ".weight", "F8_E4M3",
                             LB_NO_DTYPE, shape) &&
             lb_saver_tensor(cx, s, item, item->name, n, ".weight_scale", NULL,
                             f.scale, &scale);
    }
    if (kind == CT_MXFP4) {
        const lb_shape codes = LB_SHAPE(shape->dim[0], shape->dim[1] / 2);
        const lb_shape scale = LB_SHAPE(shape->dim[0], shape->dim[1] / 32);
        ok = lb_saver_tensor(cx, s, item, item->name, n, ".weight_packed", NULL,
                             LB_U8, &codes) &&
             lb_saver_tensor(cx, s, item, item->name, n, ".weight_scale", NULL,
                             LB_U8, &scale);
    }
    return ok ? LB_DONE : LB_FAILED;
}

/* Codes and scales are stored as they are. */
lb_array *lb_ct_part(lb_ctx *cx, const lb_saved *item, lb_array *a, int k)
{
    lb_packed_facts f;
    const ct_kind kind = kind_of(item->described, &f);
    if (k == 0) return lb_component(cx, a, "codes");
    if (k == 3) return lb_packed_zeros(cx, a, &f);
    if (k == 2)
        return lb_from(cx, LB_I64, LB_SHAPE(2),
                       (const int64_t[]){f.rows, f.row});
    lb_array *scale = lb_component(cx, a, "scale");
    return kind == CT_MXFP4 && scale ? lb_component(cx, scale, "codes") : scale;
}

bool lb_ct_moves(lb_ctx *cx, const lb_moving *m, lb_move_plan *to)
{
    (void)cx;
    const int bits = m->scheme ? lb_packed_bits(m) : 4;
    const int64_t group = m->scheme || m->block_size ? lb_packed_group(m) : 128;
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

static const char *format_name(ct_kind kind)
{
    return kind == CT_INT8    ? "int-quantized"
           : kind == CT_MXFP4 ? "mxfp4-pack-quantized"
           : kind == CT_FP8   ? "float-quantized"
                              : "pack-quantized";
}

static bool same_scheme(const lb_described *a, const lb_described *b)
{
    lb_packed_facts f, g;
    const ct_kind kind = kind_of(a, &f);
    return kind == kind_of(b, &g) && f.bits == g.bits && f.zero == g.zero &&
           (kind != CT_FP8 || f.groups == g.groups) &&
           (f.group == g.group || (f.groups == 1 && g.groups == 1));
}

static void put_weights(lb_bytes *to, const lb_described *d)
{
    lb_packed_facts f;
    const ct_kind kind = kind_of(d, &f);
    lb_bytes_text(to,
                  "\"weights\": {\n          \"num_bits\": %d,\n"
                  "          \"type\": \"%s\",\n",
                  f.bits, kind == CT_MXFP4 || kind == CT_FP8 ? "float" : "int");
    lb_bytes_text(to, "          \"symmetric\": %s,\n          \"strategy\": ",
                  f.zero ? "false" : "true");
    if (kind == CT_FP8 && f.group)
        lb_bytes_text(to,
                      "\"block\",\n          \"block_structure\": "
                      "[%lld, %lld],\n",
                      (long long)f.group, (long long)f.group);
    else if (kind == CT_FP8 && !f.groups)
        lb_bytes_text(to, "\"tensor\",\n");
    else if (f.groups == 1)
        lb_bytes_text(to, "\"channel\",\n          \"group_size\": null,\n");
    else
        lb_bytes_text(to, "\"group\",\n          \"group_size\": %lld,\n",
                      (long long)f.group);
    if (kind == CT_MXFP4)
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
                  formats ? "mixed-precision" : format_name(kind));
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
                      format_name(kind_of(p[i].described, &f)));
    }
    lb_bytes_text(to, "\n    },\n    \"ignore\": ");
    lb_put_texts(to, how->skip, how->n_skip);
    lb_bytes_text(to, ",\n    \"kv_cache_scheme\": null\n  }");
}
