/* layout_bitnet.c - BitNet's packed ternary weights, as stored by transformers:
 *
 *     P.weight         U8 (out / 4, in): byte row i holds rows i, i + R, i + 2R
 *                      and i + 3R of codes + 1, R = out / 4, at bits 0 2 4 6
 *     P.weight_scale   (1), of some float
 *
 * The meaning of the scale depends on linear_class in config.json:
 * "autobitlinear" multiplies by it, "bitlinear", the default, divides by it.
 * Checkpoints have been published for the wrong one, so nothing is assumed:
 * without config.json and options.linear_class an array is listed, but not
 * loaded.
 */
#include <string.h>

#include "io/arrays/saver.h"
#include "io/arrays/slices.h"

enum { CODES, SCALE };

typedef struct unpacked {
    lb_shape shape;
    const char *linear_class; /* NULL: unknown */
} unpacked;

static bool is_float(lb_dtype d)
{
    return d == LB_F32 || d == LB_F16 || d == LB_BF16;
}

/* Unpacked rows: four per row of bytes. False if that overflows. */
static bool unpack_shape(const lb_tensor *t, lb_shape *shape)
{
    int64_t n;
    *shape = lb_shape_make(t->rank, t->dim);
    if (shape->dim[0] > INT64_MAX / 4) return false;
    shape->dim[0] *= 4;
    return lb_shape_count(shape, &n);
}

static bool choose_class(lb_ctx *cx, lb_file *f, const lb_model_config *c,
                         const char **class)
{
    static const char *const known[] = {"bitlinear", "autobitlinear"};
    const char *said = f->options.linear_class;
    if (!said && c->there)
        said = c->linear_class[0] ? c->linear_class : known[0];
    *class = NULL;
    for (int i = 0; said && i < 2; i++)
        if (strcmp(said, known[i]) == 0) *class = known[i];
    if (!said || *class) return true;
    return lb_fail(cx, f->options.linear_class ? LB_E_ARG : LB_E_CONTENT,
                   "%s: linear_class is '%s'; it must be %s or %s",
                   LB_PATH(f->r->file[0]->path), LB_NAME(said), known[0],
                   known[1]);
}

static lb_verdict find(lb_ctx *cx, lb_file *f, const lb_tensor *t, lb_group *g)
{
    size_t n;
    if (!is_float(t->dtype) || t->size != lb_dtype_size(t->dtype) ||
        !lb_name_ends(t->name, ".weight_scale", &n))
        return LB_DECLINED;
    const lb_tensor *weight = lb_reader_find_in(f->r, t->name, n, ".weight");
    if (!weight || weight->dtype != LB_U8 || weight->rank != 2 ||
        weight->fortran)
        return LB_DECLINED;
    const lb_model_config *c = lb_model_config_of(cx, f);
    if (!c) return LB_FAILED;
    if (c->there && !f->options.linear_class &&
        strcmp(c->quant_method, "bitnet") != 0)
        return LB_DECLINED; /* other methods use the same names */
    unpacked *u = lb_arena_alloc(cx, &f->arena, 1, sizeof *u);
    if (!u || !choose_class(cx, f, c, &u->linear_class)) return LB_FAILED;
    if (!unpack_shape(weight, &u->shape)) return LB_DECLINED;
    g->tensor[CODES] = weight;
    g->tensor[SCALE] = t;
    g->own = u;
    g->entry.name = weight->name;
    g->entry.type = weight->type;
    g->entry.format = "ternary";
    g->entry.dtype = t->dtype;
    g->entry.rank = u->shape.rank;
    g->entry.dim = u->shape.dim;
    return LB_DONE;
}

static bool find_config(lb_ctx *cx, const lb_file *f, const lb_group *g,
                        lb_quant_config *config)
{
    const unpacked *u = g->own;
    if (!u->linear_class)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "%s: cannot tell whether '%s' is multiplied or divided "
                       "by its weight_scale: there is no config.json, and no "
                       "options.linear_class (--linear-class)",
                       LB_PATH(f->r->file[0]->path), LB_NAME(g->entry.name));
    *config = (lb_quant_config){
        .format = "ternary",
        .scale = LB_SCALE_TENSOR,
        .dtype = g->entry.dtype,
        .meaning = strcmp(u->linear_class, "bitlinear") == 0 ? LB_MEANS_INVERSE
                                                             : LB_MEANS_SCALE};
    return true;
}

/* Unpacks rows of bytes into an array of that shape. */
static lb_array *unpack(lb_ctx *cx, lb_file *f, const lb_group *g,
                        const lb_cut *bytes, lb_shape shape)
{
    static const char *const name[] = {"packed", "scale"};
    lb_quant_config config;
    if (!find_config(cx, f, g, &config)) return NULL;
    lb_array *part[] = {
        lb_tensor_cut(cx, f, g->tensor[CODES], LB_U8, bytes),
        lb_tensor_load(cx, f, g->tensor[SCALE], (lb_rows){0, -1})};
    if (!part[0] || !part[1]) return NULL;
    return lb_from_parts(cx, &config, shape, "bitnet", name, part, 2);
}

/* A row of bytes holds rows that are far apart: unpacks all of them. */
static lb_array *load(lb_ctx *cx, lb_file *f, const lb_group *g, lb_rows rows)
{
    const unpacked *u = g->own;
    const lb_tensor *t = g->tensor[CODES];
    const lb_shape packed = lb_shape_make(t->rank, t->dim);
    const lb_cut all = lb_cut_all(&packed);
    return lb_rows_of(cx, unpack(cx, f, g, &all, u->shape), rows);
}

/* ---- boxes --------------------------------------------------------------- */

static const lb_described *describe(lb_ctx *cx, lb_file *f, const lb_group *g)
{
    lb_quant_config config;
    if (!find_config(cx, f, g, &config)) return NULL;
    return lb_cut_describe(cx, f, g, &config);
}

static lb_array *load_cut(lb_ctx *cx, lb_file *f, const lb_group *g,
                          const lb_cut *box)
{
    lb_cut bytes, rows;
    lb_cut_quarters(box, &bytes, &rows);
    return lb_array_cut(cx, unpack(cx, f, g, &bytes, rows.of), &rows);
}

static bool place(const lb_described *d, int k, const lb_cut *box, lb_cut *to)
{
    (void)d;
    if (k == CODES) return lb_cut_place_quarters(box, to);
    *to = lb_cut_one();
    return true;
}

/* ---- writing ------------------------------------------------------------- */

/* A matrix P.weight whose number of rows is a multiple of four, with one scale,
 * which is stored unchanged (for a planned array: in the array's dtype).
 * linear_class in config.json must match. */
static lb_verdict plan(lb_ctx *cx, lb_saver *s, lb_saved *item)
{
    size_t n;
    const lb_described *d = item->described;
    const lb_described_part *scale = lb_described_part_of(d, "scale");
    if (strcmp(d->format, "ternary") != 0 || d->shape.rank != 2 || !scale ||
        d->shape.dim[0] % 4 || scale->array || scale->table.g[0] ||
        scale->table.g[1] || !lb_name_ends(item->name, ".weight", &n))
        return LB_DECLINED;
    const lb_shape packed = LB_SHAPE(d->shape.dim[0] / 4, d->shape.dim[1]);
    const lb_shape one = LB_SHAPE(1);
    const lb_dtype dtype = item->array ? scale->elem : d->dtype;
    const bool ok = lb_saver_tensor(cx, s, item, item->name, n, ".weight", NULL,
                                    LB_U8, &packed) &&
                    lb_saver_tensor(cx, s, item, item->name, n, ".weight_scale",
                                    NULL, dtype, &one);
    return ok ? LB_DONE : LB_FAILED;
}

static lb_array *part(lb_ctx *cx, const lb_saved *item, lb_array *a, int k)
{
    (void)item;
    return lb_export(cx, a, "bitnet", k == CODES ? "packed" : "scale");
}

/* transformers keeps scales in the dtype of the model, and rounds others when
 * it loads them: rounding here makes the loss visible in the report. */
static lb_array *adapt(lb_ctx *cx, lb_array *a)
{
    const lb_dtype dtype = lb_dtype_of(a);
    lb_array *scale = lb_component(cx, a, "scale");
    if (!scale || lb_dtype_of(scale) == dtype) return a;
    const lb_quant_config config = {.format = lb_format_of(a),
                                    .scale = LB_SCALE_TENSOR,
                                    .meaning = (lb_meaning)a->store->meaning,
                                    .dtype = dtype};
    return lb_from_codes(cx, &config, lb_codes(cx, a),
                         lb_convert(cx, scale, dtype));
}

static void configure(lb_bytes *to, const lb_loading *how)
{
    lb_bytes_text(to,
                  "{\n    \"quant_method\": \"bitnet\",\n"
                  "    \"linear_class\": \"%s\",\n"
                  "    \"quantization_mode\": \"offline\",\n"
                  "    \"modules_to_not_convert\": ",
                  how->linear_class);
    lb_put_texts(to, how->skip, how->n_skip);
    lb_bytes_text(to, "\n  }");
}

const lb_file_layout lb_file_layout_bitnet = {
    .name = "bitnet",
    .format = "ternary",
    .adapt = adapt,
    .refuses = lb_linear_only,
    .configure = configure,
    .find = find,
    .load = load,
    .describe = describe,
    .load_cut = load_cut,
    .place = place,
    .plan = plan,
    .part = part,
};
