/* layout_eformer.c - eformer's arrays, recognized by their tensor names:
 *
 *     nf4              N.packed   U8 (..., blocks, block / 2)
 *                      N.absmax   float (..., blocks)
 *     int8             N.weight   I8
 *                      N.scale    float; each axis has size 1 or that of weight
 *     ternary, binary  N.packed   U8, four rows per byte row
 *                      N.scale    optional
 *
 * Such files store neither the shape before padding to whole blocks (or to four
 * rows) nor the format of packed signs. Files written by lowbit add both in a
 * descriptor (descriptor.h, without parts; its layout was called "seed" before
 * it became "eformer"). Without one, nf4 and int8 are recognized by their
 * shapes, and packed bytes are listed as bytes.
 */
#include <string.h>

#include "core/core.h"
#include "io/arrays/saver.h"
#include "io/arrays/slices.h"

enum { CODES, SCALE };

typedef struct eformer_array {
    lb_shape shape;
    lb_axes axes; /* int8: axes that share a scale */
    const char *part[2];
} eformer_array;

static bool is_float(const lb_tensor *t)
{
    return t &&
           (t->dtype == LB_F32 || t->dtype == LB_F16 || t->dtype == LB_BF16);
}

/* (..., blocks, half) and (..., blocks): the shape is (..., blocks * block). */
static bool looks_like_nf4(const lb_tensor *codes, const lb_tensor *absmax,
                           lb_shape *shape)
{
    int64_t n;
    if (!is_float(absmax) || codes->dtype != LB_U8 || codes->rank < 2 ||
        codes->rank != absmax->rank + 1 || codes->rank > LB_MAX_RANK)
        return false;
    *shape = lb_shape_make(absmax->rank, absmax->dim);
    for (int k = 0; k < absmax->rank; k++)
        if (codes->dim[k] != absmax->dim[k]) return false;
    const lb_shape all = lb_shape_make(codes->rank, codes->dim);
    if (!lb_shape_count(&all, &n)) return false;
    shape->dim[shape->rank - 1] *= 2 * codes->dim[codes->rank - 1];
    return codes->dim[codes->rank - 1] > 0 && lb_shape_count(shape, &n);
}

static bool looks_like_int8(const lb_tensor *codes, const lb_tensor *scale,
                            eformer_array *s)
{
    int64_t n;
    if (!is_float(scale) || codes->dtype != LB_I8 ||
        codes->rank != scale->rank || codes->rank > LB_MAX_RANK ||
        codes->fortran)
        return false;
    s->axes.n = 0;
    for (int k = 0; k < codes->rank; k++) {
        if (scale->dim[k] != 1 && scale->dim[k] != codes->dim[k]) return false;
        if (scale->dim[k] == 1) s->axes.axis[s->axes.n++] = k;
    }
    s->shape = lb_shape_make(codes->rank, codes->dim);
    return lb_shape_count(&s->shape, &n);
}

/* What the descriptor adds: shape, dtype and format. */
static lb_verdict take_description(lb_ctx *cx, lb_file *f, const char *name,
                                   size_t n, lb_group *g, eformer_array *s)
{
    const lb_meta *m = lb_reader_meta_in(f->r, LB_DESCRIPTION, name, n);
    if (!m) return LB_DECLINED;
    const lb_described *d = lb_description_read(cx, f, m);
    if (!d) return LB_FAILED;
    if (!lb_layout_is(d->layout, "eformer")) return LB_DECLINED;
    const lb_format *fmt = lb_find_format(cx, d->format);
    g->entry.format = fmt ? fmt->name : NULL;
    g->entry.dtype = fmt ? d->dtype : LB_NO_DTYPE;
    s->shape = d->shape;
    return LB_DONE;
}

static lb_verdict find(lb_ctx *cx, lb_file *f, const lb_tensor *t, lb_group *g)
{
    size_t n;
    const bool packed = lb_name_ends(t->name, ".packed", &n);
    if (t->rank < 1 || (!packed && !lb_name_ends(t->name, ".weight", &n)))
        return LB_DECLINED;
    if (t->dtype != (packed ? LB_U8 : LB_I8)) return LB_DECLINED;
    const lb_tensor *absmax = lb_reader_find_in(f->r, t->name, n, ".absmax");
    const lb_tensor *scale = lb_reader_find_in(f->r, t->name, n, ".scale");
    eformer_array s = {.part = {packed ? "packed" : "weight",
                                packed && absmax ? "absmax" : "scale"}};
    g->tensor[CODES] = t;
    g->tensor[SCALE] = packed && absmax ? absmax : scale;
    const bool nf4 = packed && looks_like_nf4(t, absmax, &s.shape);
    const bool int8 = !packed && looks_like_int8(t, scale, &s);
    if (nf4 || int8) {
        g->entry.format = nf4 ? "nf4" : "int8";
        g->entry.dtype = g->tensor[SCALE]->dtype;
    }
    const lb_verdict v = take_description(cx, f, t->name, n, g, &s);
    if (v == LB_FAILED || (v == LB_DECLINED && !nf4 && !int8)) return v;
    eformer_array *own = lb_arena_alloc(cx, &f->arena, 1, sizeof *own);
    char *name = lb_arena_text(cx, &f->arena, t->name, n);
    if (!own || !name) return LB_FAILED;
    *own = s;
    g->own = own;
    g->entry.name = name;
    g->entry.rank = own->shape.rank;
    g->entry.dim = own->shape.dim;
    return LB_DONE;
}

/* The block size is the row of packed bytes. 0: invalid. */
static int64_t packed_block(const lb_group *g)
{
    const lb_tensor *codes = g->tensor[CODES];
    if (!g->entry.format || strcmp(g->entry.format, "nf4") != 0) return 0;
    const int64_t half = codes->rank ? codes->dim[codes->rank - 1] : 0;
    return half <= INT64_MAX / 2 ? 2 * half : 0;
}

static bool find_config(lb_ctx *cx, const lb_file *f, const lb_group *g,
                        lb_quant_config *config)
{
    const eformer_array *s = g->own;
    *config = (lb_quant_config){.format = g->entry.format,
                                .dtype = g->entry.dtype,
                                .block_size = packed_block(g),
                                .axes = s->axes,
                                .compat = LB_COMPAT_EFORMER};
    return g->entry.format ||
           lb_fail(cx, LB_E_UNSUPPORTED, "%s: unknown format '%s'",
                   LB_PATH(f->r->file[0]->path), LB_NAME(g->entry.name));
}

/* Boxes of its tensors as an array of that shape; NULL: the whole tensors. */
static lb_array *assemble(lb_ctx *cx, lb_file *f, const lb_group *g,
                          const lb_cut *codes, const lb_cut *scale,
                          lb_shape shape)
{
    const eformer_array *s = g->own;
    const lb_cut *const cut[] = {codes, scale};
    lb_quant_config config;
    lb_array *part[2];
    const int n = g->tensor[SCALE] ? 2 : 1;
    if (!find_config(cx, f, g, &config)) return NULL;
    for (int i = 0; i < n; i++) {
        const lb_tensor *t = g->tensor[i];
        part[i] = cut[i] ? lb_tensor_cut(cx, f, t, t->dtype, cut[i])
                         : lb_tensor_load(cx, f, t, (lb_rows){0, -1});
        if (!part[i]) return NULL;
    }
    return lb_from_parts(cx, &config, shape, "eformer", s->part, part, n);
}

static lb_array *load(lb_ctx *cx, lb_file *f, const lb_group *g, lb_rows rows)
{
    const eformer_array *s = g->own;
    return lb_rows_of(cx, assemble(cx, f, g, NULL, NULL, s->shape), rows);
}

/* ---- boxes --------------------------------------------------------------- */

static const lb_described *describe(lb_ctx *cx, lb_file *f, const lb_group *g)
{
    lb_quant_config config;
    if (!find_config(cx, f, g, &config)) return NULL;
    return lb_cut_describe(cx, f, g, &config);
}

/* For all formats except signs, whose codes are packed four rows in one. Blocks
 * need one more axis, so the rank may be one less than the maximum. */
static bool place_codes(const lb_described *d, const lb_cut *box, lb_cut *to)
{
    int64_t block, n;
    const lb_described_part *absmax = lb_described_part_of(d, "absmax");
    *to = *box;
    if (!absmax) return true;
    if (!lb_cut_part(d, absmax, box, to, &block) || to->of.rank < 1 ||
        to->of.rank >= LB_MAX_RANK)
        return false;
    const int last = to->of.rank++;
    to->of.dim[last] = to->count[last] = absmax->table.g[last - 1] / 2;
    to->start[last] = 0;
    return lb_shape_count(&to->of, &n);
}

static bool has_signs(const lb_described *d)
{
    return strcmp(d->format, "ternary") == 0 ||
           strcmp(d->format, "binary") == 0;
}

static bool place_scale(const lb_described *d, const lb_cut *box, lb_cut *to)
{
    int64_t block;
    const lb_described_part *p = lb_described_part_of(d, "absmax");
    if (!p) p = lb_described_part_of(d, "scale");
    *to = lb_cut_one();
    return has_signs(d) || (p && lb_cut_part(d, p, box, to, &block));
}

static bool place(const lb_described *d, int k, const lb_cut *box, lb_cut *to)
{
    if (k == SCALE) return place_scale(d, box, to);
    return has_signs(d) ? lb_cut_place_quarters(box, to)
                        : place_codes(d, box, to);
}

static lb_array *load_cut(lb_ctx *cx, lb_file *f, const lb_group *g,
                          const lb_cut *box)
{
    const lb_described *d = g->described;
    lb_cut codes, scale, rows;
    if (has_signs(d)) {
        lb_cut_quarters(box, &codes, &rows);
        return lb_array_cut(cx, assemble(cx, f, g, &codes, NULL, rows.of),
                            &rows);
    }
    if (!place_codes(d, box, &codes) || !place_scale(d, box, &scale)) {
        lb_refuse(cx, f->r->file[g->tensor[CODES]->file],
                  "'%s', %s %s, cannot be stored in layout eformer",
                  LB_NAME(g->entry.name), d->format, LB_SHOW(&box->of));
        return NULL;
    }
    return assemble(cx, f, g, &codes, &scale, lb_cut_shape(box));
}

/* ---- writing ------------------------------------------------------------- */

/* Blocks within rows: (..., blocks, block / 2); scales are stored unchanged. */
static bool plan_nf4(lb_ctx *cx, lb_saver *s, lb_saved *item,
                     const lb_described_part *absmax)
{
    const lb_described *d = item->described;
    const size_t n = strlen(item->name);
    lb_shape packed = lb_part_shape(&d->stored, &absmax->table);
    const lb_shape blocks = packed;
    packed.dim[packed.rank++] = absmax->table.g[d->stored.rank - 1] / 2;
    return lb_saver_tensor(cx, s, item, item->name, n, ".packed", NULL, LB_U8,
                           &packed) &&
           lb_saver_tensor(cx, s, item, item->name, n, ".absmax", NULL,
                           absmax->elem, &blocks);
}

/* int8 codes are stored unchanged; others packed four rows in one. */
static bool plan_scaled(lb_ctx *cx, lb_saver *s, lb_saved *item, bool packed,
                        const lb_described_part *scale)
{
    const lb_described *d = item->described;
    const size_t n = strlen(item->name);
    lb_shape codes = d->shape;
    if (packed) codes.dim[0] = codes.dim[0] / 4 + (codes.dim[0] % 4 != 0);
    if (!lb_saver_tensor(cx, s, item, item->name, n,
                         packed ? ".packed" : ".weight", NULL,
                         packed ? LB_U8 : LB_I8, &codes))
        return false;
    if (!scale) return true;
    const lb_shape scales = lb_part_shape(&d->stored, &scale->table);
    return lb_saver_tensor(cx, s, item, item->name, n, ".scale", NULL,
                           scale->elem, &scales);
}

/* Scales that it can store: for int8 one per axis or per element of it, for
 * signs a single one. */
static bool suits(const lb_described *d, const lb_described_part *scale,
                  bool signs)
{
    for (int k = 0; scale && k < d->stored.rank; k++)
        if (scale->table.g[k] > (signs ? 0 : 1)) return false;
    return true;
}

static lb_verdict plan(lb_ctx *cx, lb_saver *s, lb_saved *item)
{
    const lb_described *d = item->described;
    const lb_described_part *absmax = lb_described_part_of(d, "absmax");
    const lb_described_part *scale = lb_described_part_of(d, "scale");
    const bool nf4 = strcmp(d->format, "nf4") == 0 && absmax;
    const bool int8 = strcmp(d->format, "int8") == 0 && scale;
    const bool signs =
        strcmp(d->format, "ternary") == 0 || strcmp(d->format, "binary") == 0;
    if (d->shape.rank < 1 || !lb_shape_equal(&d->shape, &d->stored) ||
        d->meaning || (absmax && absmax->array) || (scale && scale->array) ||
        lb_described_part_of(d, "table") || !(nf4 || int8 || signs) ||
        (nf4 && d->shape.rank == LB_MAX_RANK) || !suits(d, scale, signs))
        return LB_DECLINED;
    lb_described brief = {.dtype = d->dtype, .shape = d->shape};
    memcpy(brief.layout, "eformer", sizeof "eformer");
    memcpy(brief.format, d->format, sizeof brief.format);
    const bool ok = (nf4 ? plan_nf4(cx, s, item, absmax)
                         : plan_scaled(cx, s, item, signs, scale)) &&
                    lb_saver_describe(cx, s, item->name, &brief);
    return ok ? LB_DONE : LB_FAILED;
}

static lb_array *part(lb_ctx *cx, const lb_saved *item, lb_array *a, int k)
{
    const bool nf4 = strcmp(item->format->name, "nf4") == 0;
    const bool int8 = strcmp(item->format->name, "int8") == 0;
    return lb_export(cx, a, "eformer",
                     k == CODES ? (int8 ? "weight" : "packed")
                     : nf4      ? "absmax"
                                : "scale");
}

const lb_file_layout lb_file_layout_eformer = {
    .name = "eformer",
    .find = find,
    .load = load,
    .describe = describe,
    .load_cut = load_cut,
    .place = place,
    .plan = plan,
    .part = part,
};
