/* layout_ggml.c - ggml's block types: one tensor, whose bytes are the part
 * `blocks` of the format of the same name ("Q8_0" is q8_0).
 *
 * A type is supported if a format of that name exists whose only part has the
 * same size. The logical dtype is not stored: f32, as in ggml.
 */
#include <string.h>

#include "io/arrays/saver.h"
#include "io/arrays/slices.h"

/* "MXFP4" is gguf_mxfp4: other programs store mxfp4 in several parts. */
const lb_format *lb_file_block_format(const lb_ctx *cx, const char *type)
{
    char name[32] = "gguf_";
    const size_t before = strlen(name);
    size_t n = before;
    for (const char *c = type; *c && n + 1 < sizeof name; c++)
        name[n++] = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    if (strlen(type) != n - before) return NULL;
    const lb_format *fmt = lb_find_format(cx, name);
    return fmt ? fmt : lb_find_format(cx, name + before);
}

/* The part's shape for rows of an array: (..., blocks, bytes per block). */
static bool blocks_of(lb_ctx *cx, const lb_format *fmt, const lb_shape *shape,
                      lb_shape *blocks)
{
    const lb_quant q = {.format = fmt, .dtype = LB_F32};
    lb_layout l = {.stored = *shape, .dtype = LB_F32, .run = 1};
    const bool one = !fmt->part[1].name || fmt->part[1].optional;
    if (!fmt->layout || !one || shape->rank < 1) return false;
    if (!fmt->layout(cx, &q, LB_F32, shape, &l)) return false;
    if (l.elem[0] != LB_U8 || !l.part[0].own) return false;
    *blocks = lb_part_shape(&l.stored, &l.part[0]);
    return true;
}

static lb_verdict find(lb_ctx *cx, lb_file *f, const lb_tensor *t, lb_group *g)
{
    (void)f;
    lb_shape blocks;
    if (t->dtype || t->rank < 1 || t->rank > LB_MAX_RANK) return LB_DECLINED;
    const lb_format *fmt = lb_file_block_format(cx, t->type);
    if (!fmt) return LB_DECLINED;
    const lb_shape shape = lb_shape_make(t->rank, t->dim);
    if (!lb_shape_check(NULL, "", &shape)) return LB_DECLINED;
    if (!blocks_of(NULL, fmt, &shape, &blocks)) return LB_DECLINED;
    if ((uint64_t)lb_shape_size(&blocks) != t->size) return LB_DECLINED;
    g->tensor[0] = t;
    g->entry.format = fmt->name;
    g->entry.layout = NULL; /* a single tensor has no group */
    g->entry.dtype = LB_F32;
    return LB_DONE;
}

/* Rows of a vector are single elements, which have no whole blocks. */
static bool cuts(const lb_group *g)
{
    return g->tensor[0]->rank > 1;
}

static lb_array *load(lb_ctx *cx, lb_file *f, const lb_group *g, lb_rows rows)
{
    static const char *const name[] = {"blocks"};
    const lb_tensor *t = g->tensor[0];
    const lb_format *fmt = lb_find_format(cx, g->entry.format);
    lb_shape shape = {0}, blocks;
    if (!lb_tensor_shape(cx, f, t, &shape)) return NULL;
    const bool cut = rows.hi >= 0 && cuts(g);
    uint64_t first = 0;
    if (cut) {
        if (shape.dim[0])
            first = t->size / (uint64_t)shape.dim[0] * (uint64_t)rows.lo;
        shape.dim[0] = rows.hi - rows.lo;
    }
    if (!blocks_of(cx, fmt, &shape, &blocks)) return NULL;
    lb_array *part = lb_tensor_part(cx, f, t, first, LB_U8, &blocks);
    if (!part) return NULL;
    const lb_quant_config config = {.format = fmt->name, .dtype = LB_F32};
    lb_array *a = lb_from_parts(cx, &config, shape, NULL, name, &part, 1);
    return cut ? a : lb_rows_of(cx, a, rows);
}

/* ---- boxes --------------------------------------------------------------- */

static const lb_described *describe(lb_ctx *cx, lb_file *f, const lb_group *g)
{
    const lb_quant_config config = {.format = g->entry.format, .dtype = LB_F32};
    return lb_cut_describe(cx, f, g, &config);
}

static lb_array *load_cut(lb_ctx *cx, lb_file *f, const lb_group *g,
                          const lb_cut *box)
{
    static const char *const name[] = {"blocks"};
    const lb_quant_config config = {.format = g->entry.format, .dtype = LB_F32};
    lb_cut to;
    if (!lb_cut_leaf(g->described, 0, box, &to)) return NULL;
    lb_array *part = lb_tensor_cut(cx, f, g->tensor[0], LB_U8, &to);
    if (!part) return NULL;
    return lb_from_parts(cx, &config, lb_cut_shape(box), NULL, name, &part, 1);
}

/* ---- writing ------------------------------------------------------------- */

/* Containers with types of that name: q8_0 is stored as Q8_0; rows must consist
 * of whole blocks. */
static lb_verdict plan(lb_ctx *cx, lb_saver *s, lb_saved *item)
{
    const lb_shape *shape = &item->shape;
    for (const lb_coding *c = s->kind->coding; c->name; c++) {
        if (c->dtype || lb_file_block_format(cx, c->name) != item->format)
            continue;
        if (lb_described_part_of(item->described, "scale")) return LB_DECLINED;
        if (!shape->rank || shape->dim[shape->rank - 1] % c->len)
            return LB_DECLINED;
        return lb_saver_tensor(cx, s, item, item->name, strlen(item->name), "",
                               c->name, LB_NO_DTYPE, &item->shape)
                   ? LB_DONE
                   : LB_FAILED;
    }
    return LB_DECLINED;
}

static lb_array *part(lb_ctx *cx, const lb_saved *item, lb_array *a, int k)
{
    (void)item;
    (void)k;
    return lb_component(cx, a, "blocks");
}

const lb_file_layout lb_file_layout_ggml = {
    .name = "ggml",
    .find = find,
    .load = load,
    .cuts = cuts,
    .describe = describe,
    .load_cut = load_cut,
    .place = lb_cut_leaf,
    .rows = true,
    .plan = plan,
    .part = part,
};
