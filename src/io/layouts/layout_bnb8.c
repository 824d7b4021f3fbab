/* layout_bnb8.c - bitsandbytes' int8 weights (LLM.int8), as stored by
 * transformers:
 *
 *     P.weight          I8 (out, in)
 *     P.SCB             F32 (out): the largest |w| of each row
 *     P.weight_format   U8 (): 0: row-major; no others are supported
 *
 * w = (code * SCB) * f32(1/127). The original dtype is not stored: f32.
 */
#include <string.h>

#include "io/arrays/saver.h"
#include "io/arrays/slices.h"
#include "io/jobs/move_array.h"

enum { CODES, SCB, FORMAT };

static bool check_group(lb_ctx *cx, lb_file *f, const lb_group *g)
{
    const lb_tensor *weight = g->tensor[CODES], *format = g->tensor[FORMAT];
    const lb_shape rows = LB_SHAPE(weight->rank == 2 ? weight->dim[0] : 0);
    const lb_shape scalar = {0};
    uint8_t byte = 0;
    if (weight->rank != 2 || weight->fortran)
        return lb_refuse(cx, f->r->file[weight->file],
                         "'%s' has an SCB, but its rank is %d, not 2",
                         LB_NAME(weight->name), weight->rank);
    if (!lb_tensor_want(cx, f, weight->name, "SCB", g->tensor[SCB], LB_F32,
                        &rows))
        return false;
    if (!format) return true;
    if (!lb_tensor_want(cx, f, weight->name, "weight_format", format, LB_U8,
                        &scalar) ||
        !lb_reader_read(cx, f->r, format, 0, 1, &byte))
        return false;
    return byte == 0 || lb_refuse(cx, f->r->file[format->file],
                                  "'%s' is %d: only 0 (row-major) is supported",
                                  LB_NAME(format->name), byte);
}

static lb_verdict find(lb_ctx *cx, lb_file *f, const lb_tensor *t, lb_group *g)
{
    size_t n;
    if (t->dtype != LB_F32 || !lb_name_ends(t->name, ".SCB", &n))
        return LB_DECLINED;
    g->tensor[CODES] = lb_reader_find_in(f->r, t->name, n, ".weight");
    g->tensor[SCB] = t;
    g->tensor[FORMAT] = lb_reader_find_in(f->r, t->name, n, ".weight_format");
    const lb_tensor *weight = g->tensor[CODES];
    if (!weight || weight->dtype != LB_I8) return LB_DECLINED;
    if (!check_group(cx, f, g)) return LB_FAILED;
    g->entry.name = weight->name;
    g->entry.type = weight->type;
    g->entry.format = "int8";
    g->entry.dtype = LB_F32;
    g->entry.rank = weight->rank;
    g->entry.dim = weight->dim;
    return LB_DONE;
}

static lb_array *load(lb_ctx *cx, lb_file *f, const lb_group *g, lb_rows rows)
{
    static const char *const name[] = {"weight", "scb"};
    const lb_quant_config config = {.format = "int8", .dtype = LB_F32};
    lb_array *part[] = {lb_tensor_load(cx, f, g->tensor[CODES], rows),
                        lb_tensor_load(cx, f, g->tensor[SCB], rows)};
    if (!part[0] || !part[1]) return NULL;
    return lb_from_parts(cx, &config, lb_shape_of(part[0]), "bnb", name, part,
                         2);
}

static bool cuts(const lb_group *g)
{
    (void)g;
    return true;
}

/* ---- boxes --------------------------------------------------------------- */

static const lb_described *describe(lb_ctx *cx, lb_file *f, const lb_group *g)
{
    const lb_quant_config config = {.format = "int8", .dtype = LB_F32};
    return lb_cut_describe(cx, f, g, &config);
}

/* The scales of the rows. */
static lb_cut cut_scb(const lb_cut *box)
{
    return (lb_cut){.of = LB_SHAPE(box->of.dim[0]),
                    .start = {box->start[0]},
                    .count = {box->count[0]}};
}

static lb_array *load_cut(lb_ctx *cx, lb_file *f, const lb_group *g,
                          const lb_cut *box)
{
    static const char *const name[] = {"weight", "scb"};
    const lb_quant_config config = {.format = "int8", .dtype = LB_F32};
    const lb_cut rows = cut_scb(box);
    lb_array *part[] = {lb_tensor_cut(cx, f, g->tensor[CODES], LB_I8, box),
                        lb_tensor_cut(cx, f, g->tensor[SCB], LB_F32, &rows)};
    if (!part[0] || !part[1]) return NULL;
    return lb_from_parts(cx, &config, lb_cut_shape(box), "bnb", name, part, 2);
}

static bool place(const lb_described *d, int k, const lb_cut *box, lb_cut *to)
{
    (void)d;
    *to = k == CODES ? *box : k == SCB ? cut_scb(box) : lb_cut_one();
    return true;
}

/* ---- writing ------------------------------------------------------------- */

/* A matrix P.weight with absmax scales per row. */
static lb_verdict plan(lb_ctx *cx, lb_saver *s, lb_saved *item)
{
    size_t n;
    const lb_described *d = item->described;
    const lb_described_part *scale = lb_described_part_of(d, "scale");
    const lb_shape scalar = {0};
    if (strcmp(d->format, "int8") != 0 || d->shape.rank != 2 || !scale ||
        scale->elem != LB_F32 || d->meaning != LB_MEANS_ABSMAX ||
        scale->table.g[0] != 1 || scale->table.g[1] != 0 ||
        !lb_name_ends(item->name, ".weight", &n))
        return LB_DECLINED;
    const lb_shape rows = LB_SHAPE(d->shape.dim[0]);
    const bool ok = lb_saver_tensor(cx, s, item, item->name, n, ".weight", NULL,
                                    LB_I8, &d->shape) &&
                    lb_saver_tensor(cx, s, item, item->name, n, ".SCB", NULL,
                                    LB_F32, &rows) &&
                    lb_saver_tensor(cx, s, item, item->name, n,
                                    ".weight_format", NULL, LB_U8, &scalar);
    return ok ? LB_DONE : LB_FAILED;
}

static lb_array *part(lb_ctx *cx, const lb_saved *item, lb_array *a, int k)
{
    (void)item;
    if (k == FORMAT) return lb_zeros(cx, LB_U8, lb_shape_make(0, NULL));
    return lb_export(cx, a, "bnb", k == CODES ? "weight" : "scb");
}

/* Scales are stored as 127 times what a code is multiplied with. */
static bool moves(lb_ctx *cx, const lb_moving *m, lb_move_plan *to)
{
    const lb_quant_config c = {.format = "int8", .compat = LB_COMPAT_BNB_CPU};
    (void)cx, (void)m;
    *to = (lb_move_plan){.target = {.config = c, .least = -127}, .encode = c};
    return true;
}

/* Formats like BitsAndBytesConfig.to_dict; all other values are its defaults.
 */
static void configure(lb_bytes *to, const lb_loading *how)
{
    lb_bytes_text(to, "{\n    \"_load_in_4bit\": false,\n"
                      "    \"_load_in_8bit\": true,\n"
                      "    \"bnb_4bit_compute_dtype\": \"float32\",\n"
                      "    \"bnb_4bit_quant_storage\": \"uint8\",\n"
                      "    \"bnb_4bit_quant_type\": \"fp4\",\n");
    lb_bytes_text(to, "    \"bnb_4bit_use_double_quant\": false,\n"
                      "    \"llm_int8_enable_fp32_cpu_offload\": false,\n"
                      "    \"llm_int8_has_fp16_weight\": false,\n"
                      "    \"llm_int8_skip_modules\": ");
    lb_put_texts(to, how->plain ? NULL : how->skip, how->n_skip);
    lb_bytes_text(to, ",\n    \"llm_int8_threshold\": 6.0,\n"
                      "    \"load_in_4bit\": false,\n"
                      "    \"load_in_8bit\": true,\n"
                      "    \"quant_method\": \"bitsandbytes\"\n  }");
}

const lb_file_layout lb_file_layout_bnb8 = {
    .name = "bnb",
    .format = "int8",
    .refuses = lb_linear_only,
    .compat = LB_COMPAT_BNB_CPU,
    .configure = configure,
    .find = find,
    .load = load,
    .cuts = cuts,
    .describe = describe,
    .load_cut = load_cut,
    .place = place,
    .rows = true,
    .plan = plan,
    .part = part,
    .moves = moves,
    .stores = "matrices P.weight of int8 with a scale per row, and nf4",
};
