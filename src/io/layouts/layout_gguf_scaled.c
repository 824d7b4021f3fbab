/* layout_gguf_scaled.c - GGUF types whose blocks have a scale of the tensor:
 *
 *   NVFP4  a second tensor, F32 (1), or one for each expert: that of P.weight
 *          is P.scale. llama.cpp multiplies by it after the product; without
 *          it, the scale is 1
 *   I2_S   of bitnet.cpp: blocks of 128 across the whole tensor, then the scale
 *          (F32), then zeros up to 32 bytes. Rows consist of whole blocks here
 *
 * I2_S has the number of a type that was removed from GGUF; the size of the
 * tensor tells (gguf.c).
 */
#include <string.h>

#include "core/core.h"
#include "io/arrays/saver.h"
#include "io/layouts/tensor_parts.h"

enum { NVFP4_LEN = 64, NVFP4_SIZE = 36, I2_LEN = 128, I2_SIZE = 32 };

/* ---- NVFP4 --------------------------------------------------------------- */

static lb_verdict find(lb_ctx *cx, lb_file *f, const lb_tensor *t, lb_group *g)
{
    size_t n;
    if (strcmp(t->type, "NVFP4") != 0 || !lb_name_ends(t->name, ".weight", &n))
        return LB_DECLINED;
    const lb_tensor *scale = lb_reader_find_in(f->r, t->name, n, ".scale");
    const lb_shape shape = lb_shape_make(t->rank, t->dim);
    if (!scale || scale->dtype != LB_F32 || t->rank < 1) return LB_DECLINED;
    lb_described *d = lb_parts_begin(cx, f, "gguf_nvfp4", LB_F32, &shape);
    if (!d) return LB_FAILED;
    lb_parts_rows(d, "blocks", t, LB_U8, NVFP4_LEN);
    d->part[0].table.own = NVFP4_SIZE;
    lb_described_part *p = lb_parts_add(d, "scale");
    p->tensor = scale;
    p->elem = LB_F32;
    p->table.g[0] = t->rank > 2 && scale->size == 4 * (uint64_t)t->dim[0];
    return lb_parts_group(cx, f, t->name, d, g) ? LB_DONE : LB_FAILED;
}

static lb_verdict plan(lb_ctx *cx, lb_saver *s, lb_saved *item)
{
    size_t n;
    const lb_shape *shape = &item->shape;
    const lb_described_part *p = lb_described_part_of(item->described, "scale");
    if (strcmp(s->kind->name, "gguf") != 0 || !p || p->array ||
        strcmp(item->format->name, "gguf_nvfp4") != 0 || !shape->rank ||
        shape->dim[shape->rank - 1] % NVFP4_LEN ||
        !lb_name_ends(item->name, ".weight", &n))
        return LB_DECLINED;
    const lb_shape all = lb_part_shape(&item->described->stored, &p->table);
    const lb_shape one = LB_SHAPE(lb_shape_size(&all));
    return lb_saver_tensor(cx, s, item, item->name, strlen(item->name), "",
                           "NVFP4", LB_NO_DTYPE, shape) &&
                   lb_saver_tensor(cx, s, item, item->name, n, ".scale", NULL,
                                   LB_F32, &one)
               ? LB_DONE
               : LB_FAILED;
}

static lb_array *part(lb_ctx *cx, const lb_saved *item, lb_array *a, int k)
{
    (void)item;
    if (!k) return lb_component(cx, a, "blocks");
    lb_array *scale = lb_component(cx, a, "scale");
    return scale ? lb_reshape(cx, scale, LB_SHAPE(lb_size(scale))) : NULL;
}

const lb_file_layout lb_file_layout_gguf_nvfp4 = {
    .name = "ggml",
    .format = "gguf_nvfp4",
    .find = find,
    .plan = plan,
    .part = part,
    LB_TENSOR_PARTS,
};

/* ---- I2_S ---------------------------------------------------------------- */

static lb_verdict find_i2_s(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                            lb_group *g)
{
    (void)cx, (void)f;
    if (strcmp(t->type, "I2_S") != 0 || t->rank < 1 ||
        t->dim[t->rank - 1] % I2_LEN)
        return LB_DECLINED;
    g->tensor[0] = t;
    g->entry.format = "i2_s";
    g->entry.dtype = LB_F32;
    g->entry.layout = NULL; /* a single tensor has no group */
    return LB_DONE;
}

static lb_array *load_i2_s(lb_ctx *cx, lb_file *f, const lb_group *g,
                           lb_rows rows)
{
    const lb_tensor *t = g->tensor[0];
    lb_shape shape = {0};
    lb_part table[LB_MAX_PARTS] = {0};
    const lb_format *fmt = lb_find_format(cx, "i2_s");
    if (!lb_tensor_shape(cx, f, t, &shape)) return NULL;
    const uint64_t end = t->size - I2_SIZE; /* of the blocks */
    uint64_t first = 0;
    const bool cut = rows.hi >= 0 && t->rank > 1;
    if (cut) {
        if (shape.dim[0])
            first = end / (uint64_t)shape.dim[0] * (uint64_t)rows.lo;
        shape.dim[0] = rows.hi - rows.lo;
    }
    lb_part_rows(&table[0], &shape, I2_LEN);
    table[0].own = I2_SIZE;
    const lb_shape blocks = lb_part_shape(&shape, &table[0]);
    const lb_shape one = lb_part_shape(&shape, &table[1]);
    table[0].a = lb_tensor_part(cx, f, t, first, LB_U8, &blocks);
    table[1].a = lb_tensor_part(cx, f, t, end, LB_F32, &one);
    if (!table[0].a || !table[1].a) return NULL;
    lb_array *a = lb_make(cx, fmt, LB_F32, 0, &shape, table);
    return cut ? a : lb_rows_of(cx, a, rows);
}

static bool cuts_i2_s(const lb_group *g)
{
    return g->tensor[0]->rank > 1;
}

const lb_file_layout lb_file_layout_i2_s = {
    .name = "ggml",
    .format = "i2_s",
    .find = find_i2_s,
    .load = load_i2_s,
    .cuts = cuts_i2_s,
};
