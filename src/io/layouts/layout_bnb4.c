/* layout_bnb4.c - bitsandbytes' 4-bit weights, as its QuantState and
 * transformers store them in safetensors. For a weight P of shape (out, in):
 *
 *     P                U8, or bytes seen as another dtype: two codes each, the
 *                      first in the high bits, in one run across rows
 *     P.absmax         F32 (blocks); nested: U8 (blocks)
 *     P.quant_map      F32 (16): what codes stand for
 *     P.nested_absmax, P.nested_quant_map
 *                      F32 (blocks / nested_blocksize), F32 (256)
 *     P.quant_state.bitsandbytes__nf4 (or __fp4)
 *                      U8: {"quant_type": "nf4", "blocksize": 64, "dtype":
 *                      "bfloat16", "shape": [out, in], "nested_blocksize": 256,
 *                      "nested_dtype": "float32", "nested_offset": 0.05}
 *
 * fp4 differs only in its map: both are the same lowbit format.
 */
#include <math.h>
#include <string.h>

#include "core/core.h"
#include "io/arrays/saver.h"
#include "io/arrays/slices.h"
#include "io/util/json_text.h"

enum {
    CODES,
    ABSMAX,
    MAP,
    NESTED_ABSMAX,
    NESTED_MAP,
    STATE,
    LEVELS = 16,
    NESTED_LEVELS = 256,
    STATE_MOST = 4096 /* maximum size in bytes; real ones have less than 300 */
};

/* Contents of quant_state. */
typedef struct bnb4_state {
    lb_shape shape;
    int64_t n, blocks, nested_blocks;
    int64_t block, nested_block; /* elements per block; nested: 0 if scales are
                                  * not quantized */
    lb_dtype dtype;
    float offset;
} bnb4_state;

/* ---- the blob ------------------------------------------------------------ */

static bool read_shape(lb_json *j, lb_shape *shape)
{
    *shape = (lb_shape){0};
    lb_json_enter(j, '[');
    while (lb_json_more(j, ']')) {
        if (shape->rank == LB_MAX_RANK)
            return lb_json_wrong(j, "a shape with too many dimensions");
        shape->dim[shape->rank++] = lb_json_count_of(j);
    }
    return !j->failed;
}

static bool read_dtype(lb_json *j, lb_dtype *dtype)
{
    char word[16];
    lb_json_word(j, word, sizeof word);
    *dtype = lb_dtype_of_torch(word);
    return *dtype || lb_json_wrong(j, "a dtype that is not a float type");
}

/* Unknown keys are skipped, as in bitsandbytes. */
static bool read_fields(lb_json *j, const char *type, bnb4_state *s)
{
    static const char *const name[] = {
        "quant_type",       "blocksize",    "dtype",        "shape",
        "nested_blocksize", "nested_dtype", "nested_offset"};
    enum { N = sizeof name / sizeof *name, NEEDED = 0xf, NESTED = 0x70 };
    unsigned seen = 0;
    char key[24], word[16];
    lb_dtype nested = LB_F32;
    lb_json_enter(j, '{');
    while (lb_json_more(j, '}')) {
        unsigned i = 0;
        lb_json_key_word(j, key, sizeof key);
        while (i < N && strcmp(key, name[i]) != 0)
            i++;
        if (i < N && seen >> i & 1) return lb_json_wrong(j, "a key twice");
        seen |= 1u << i;
        switch (i) {
        case 0:
            lb_json_word(j, word, sizeof word);
            if (strcmp(word, type) != 0)
                return lb_json_wrong(j,
                                     "a quant_type that differs from its name");
            break;
        case 1:
            s->block = lb_json_count_of(j);
            break;
        case 2:
            if (!read_dtype(j, &s->dtype)) return false;
            break;
        case 3:
            if (!read_shape(j, &s->shape)) return false;
            break;
        case 4:
            s->nested_block = lb_json_count_of(j);
            break;
        case 5:
            if (!read_dtype(j, &nested)) return false;
            break;
        case 6:
            s->offset = (float)lb_json_number_of(j);
            break;
        default:
            lb_json_skip(j);
        }
    }
    if (j->failed) return false;
    if ((seen & NEEDED) != NEEDED || ((seen & NESTED) && !(seen >> 4 & 1)))
        return lb_json_wrong(j, "missing keys");
    return nested == LB_F32 ||
           lb_json_wrong(j, "a nested_dtype other than float32");
}

static int64_t ceil_div(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

/* The sizes of the other tensors. */
static bool count(lb_json *j, bnb4_state *s)
{
    if (s->block < 2 || s->block % 2 || s->nested_block < 0)
        return lb_json_wrong(j, "an invalid blocksize");
    if (!lb_shape_count(&s->shape, &s->n))
        return lb_json_wrong(j, "a shape that overflows");
    s->blocks = ceil_div(s->n, s->block);
    if (s->nested_block)
        s->nested_blocks = ceil_div(s->blocks, s->nested_block);
    return true;
}

static bool read_state(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                       const char *type, bnb4_state *s)
{
    lb_infile *file = f->r->file[t->file];
    const lb_quoted name = lb_quote_name(t->name);
    lb_json j;
    if (t->packed || t->swap || t->size > STATE_MOST)
        return lb_refuse(cx, file, "'%s' has %llu bytes; the maximum is %d",
                         name.s, (unsigned long long)t->size, STATE_MOST);
    *s = (bnb4_state){0};
    const bool ok = lb_json_begin(cx, &j, file, t->begin, t->size, name.s) &&
                    read_fields(&j, type, s) && count(&j, s);
    if (!ok) j.failed = true;
    return lb_json_end(&j);
}

/* ---- groups -------------------------------------------------------------- */

static bool check_codes(lb_ctx *cx, const lb_file *f, const lb_tensor *t,
                        const char *name, const bnb4_state *s)
{
    if (!t)
        return lb_refuse(cx, f->r->file[0], "'%s' has no weight tensor",
                         LB_NAME(name));
    if (!t->packed && !t->swap && t->size == (uint64_t)ceil_div(s->n, 2))
        return true;
    return lb_refuse(cx, f->r->file[t->file],
                     "'%s' has %llu bytes, but %lld 4-bit codes need %lld",
                     LB_NAME(t->name), (unsigned long long)t->size,
                     (long long)s->n, (long long)ceil_div(s->n, 2));
}

static bool check_group(lb_ctx *cx, const lb_file *f, lb_group *g,
                        const bnb4_state *s)
{
    const lb_tensor *const *t = g->tensor;
    const char *name = g->entry.name;
    const lb_shape blocks = LB_SHAPE(s->blocks), levels = LB_SHAPE(LEVELS);
    const lb_shape nested = LB_SHAPE(s->nested_blocks),
                   all = LB_SHAPE(NESTED_LEVELS);
    if (!check_codes(cx, f, t[CODES], t[STATE]->name, s)) return false;
    if (!lb_tensor_want(cx, f, name, "absmax", t[ABSMAX],
                        s->nested_block ? LB_U8 : LB_F32, &blocks) ||
        !lb_tensor_want(cx, f, name, "quant_map", t[MAP], LB_F32, &levels))
        return false;
    if (s->nested_block)
        return lb_tensor_want(cx, f, name, "nested_absmax", t[NESTED_ABSMAX],
                              LB_F32, &nested) &&
               lb_tensor_want(cx, f, name, "nested_quant_map", t[NESTED_MAP],
                              LB_F32, &all);
    g->tensor[NESTED_ABSMAX] = g->tensor[NESTED_MAP] = NULL;
    return true;
}

static lb_verdict find(lb_ctx *cx, lb_file *f, const lb_tensor *t, lb_group *g)
{
    static const char *const type[] = {"nf4", "fp4"};
    static const char *const key[] = {".quant_state.bitsandbytes__nf4",
                                      ".quant_state.bitsandbytes__fp4"};
    static const char *const beside[] = {"", ".absmax", ".quant_map",
                                         ".nested_absmax", ".nested_quant_map"};
    size_t n = 0;
    int k = 0;
    if (t->dtype != LB_U8) return LB_DECLINED;
    while (k < 2 && !lb_name_ends(t->name, key[k], &n))
        k++;
    if (k == 2) return LB_DECLINED;
    bnb4_state *s = lb_arena_alloc(cx, &f->arena, 1, sizeof *s);
    if (!s || !read_state(cx, f, t, type[k], s)) return LB_FAILED;
    for (int i = CODES; i < STATE; i++)
        g->tensor[i] = lb_reader_find_in(f->r, t->name, n, beside[i]);
    g->tensor[STATE] = t;
    g->entry.name = g->tensor[CODES] ? g->tensor[CODES]->name : t->name;
    if (!check_group(cx, f, g, s)) return LB_FAILED;
    g->own = s;
    g->entry.type = g->tensor[CODES]->type;
    g->entry.format = "nf4";
    g->entry.dtype = s->dtype;
    g->entry.rank = s->shape.rank;
    g->entry.dim = s->shape.dim;
    return LB_DONE;
}

/* ---- loading ------------------------------------------------------------- */

/* Scales [lo, hi), quantized to 8 bits: lo starts a block of scales, hi ends
 * one. */
static lb_array *load_nested(lb_ctx *cx, lb_file *f, const lb_group *g,
                             int64_t lo, int64_t hi)
{
    static const char *const name[] = {"codes", "absmax", "table", "offset"};
    const bnb4_state *s = g->own;
    const lb_quant_config config = {.format = "dynamic8",
                                    .block_size = s->nested_block,
                                    .center = true,
                                    .dtype = LB_F32};
    const lb_shape levels = LB_SHAPE(1, NESTED_LEVELS);
    const lb_rows codes = {lo, hi};
    const lb_rows scales = {lo / s->nested_block,
                            ceil_div(hi, s->nested_block)};
    lb_array *part[] = {
        lb_tensor_load(cx, f, g->tensor[ABSMAX], codes),
        lb_tensor_load(cx, f, g->tensor[NESTED_ABSMAX], scales),
        lb_tensor_part(cx, f, g->tensor[NESTED_MAP], 0, LB_F32, &levels),
        lb_from(cx, LB_F32, LB_SHAPE(1), &s->offset)};
    if (!part[0] || !part[1] || !part[2] || !part[3]) return NULL;
    return lb_from_parts(cx, &config, LB_SHAPE(hi - lo), NULL, name, part, 4);
}

/* Scales of the blocks [lo, hi). */
static lb_array *load_absmax(lb_ctx *cx, lb_file *f, const lb_group *g,
                             int64_t lo, int64_t hi)
{
    const bnb4_state *s = g->own;
    const int64_t by = s->nested_block;
    if (!by) return lb_tensor_load(cx, f, g->tensor[ABSMAX], (lb_rows){lo, hi});
    const int64_t from = lo / by * by;
    const int64_t to = lb_min_i64(ceil_div(hi, by) * by, s->blocks);
    return lb_rows_of(cx, load_nested(cx, f, g, from, to),
                      (lb_rows){lo - from, hi - from});
}

/* Elements [lo, hi) of the flattened array, as shape; lo starts a block, hi
 * ends one or the array. */
static lb_array *load_run(lb_ctx *cx, lb_file *f, const lb_group *g, int64_t lo,
                          int64_t hi, const lb_shape *shape)
{
    static const char *const name[] = {"codes", "absmax", "table"};
    const bnb4_state *s = g->own;
    const lb_quant_config config = {.format = "nf4",
                                    .block_size = s->block,
                                    .blocks = LB_BLOCKS_FLAT,
                                    .dtype = s->dtype};
    const lb_shape bytes = LB_SHAPE(ceil_div(hi - lo, 2));
    const lb_shape levels = LB_SHAPE(1, LEVELS);
    lb_array *part[] = {
        lb_tensor_part(cx, f, g->tensor[CODES], (uint64_t)(lo / 2), LB_U8,
                       &bytes),
        load_absmax(cx, f, g, lo / s->block, ceil_div(hi, s->block)),
        lb_tensor_part(cx, f, g->tensor[MAP], 0, LB_F32, &levels)};
    if (!part[0] || !part[1] || !part[2]) return NULL;
    return lb_from_parts(cx, &config, *shape, NULL, name, part, 3);
}

/* Rows may start inside a block: then the surrounding blocks are read as well.
 */
static lb_array *load(lb_ctx *cx, lb_file *f, const lb_group *g, lb_rows rows)
{
    const bnb4_state *s = g->own;
    lb_shape shape = s->shape;
    if (rows.hi < 0) return load_run(cx, f, g, 0, s->n, &shape);
    const int64_t row = shape.dim[0] ? s->n / shape.dim[0] : 0;
    const int64_t first = rows.lo * row, last = rows.hi * row;
    const int64_t lo = first / s->block * s->block;
    const int64_t hi = lb_min_i64(ceil_div(last, s->block) * s->block, s->n);
    shape.dim[0] = rows.hi - rows.lo;
    if (lo == first && hi == last) return load_run(cx, f, g, lo, hi, &shape);
    const lb_shape flat = LB_SHAPE(hi - lo);
    lb_array *a = load_run(cx, f, g, lo, hi, &flat);
    a = lb_rows_of(cx, a, (lb_rows){first - lo, last - lo});
    return lb_reshape(cx, a, shape);
}

/* ---- boxes --------------------------------------------------------------- */

static const lb_described *describe(lb_ctx *cx, lb_file *f, const lb_group *g)
{
    const bnb4_state *s = g->own;
    const lb_quant_config config = {.format = "nf4",
                                    .block_size = s->block,
                                    .blocks = LB_BLOCKS_FLAT,
                                    .double_quant = s->nested_block != 0,
                                    .dtype = s->dtype};
    return lb_cut_describe(cx, f, g, &config);
}

/* The position of a box in the codes, and in tensors with an entry per block.
 */
static bool cut_both(const lb_described *d, const lb_cut *box, lb_cut *codes,
                     lb_cut *blocks)
{
    int64_t block;
    return lb_cut_part(d, lb_described_part_of(d, "codes"), box, codes,
                       &block) &&
           lb_cut_part(d, lb_described_part_of(d, "absmax"), box, blocks,
                       &block);
}

/* Nested scales of a box that is not a run are read as a whole, and dequantized
 * if the box splits their blocks. */
static lb_array *cut_absmax(lb_ctx *cx, lb_file *f, const lb_group *g,
                            const lb_cut *c)
{
    const bnb4_state *s = g->own;
    if (!s->nested_block)
        return lb_tensor_cut(cx, f, g->tensor[ABSMAX], LB_F32, c);
    if (c->of.rank > 1) {
        lb_array *a = load_nested(cx, f, g, 0, s->blocks);
        return lb_array_cut(cx, lb_reshape(cx, a, c->of), c);
    }
    const int64_t lo = c->start[0], n = c->count[0], by = s->nested_block;
    const int64_t from = lo / by * by;
    const int64_t to = lb_min_i64(ceil_div(lo + n, by) * by, s->blocks);
    const lb_cut run = {
        .of = LB_SHAPE(to - from), .start = {lo - from}, .count = {n}};
    return lb_array_cut(cx, load_nested(cx, f, g, from, to), &run);
}

static lb_array *load_cut(lb_ctx *cx, lb_file *f, const lb_group *g,
                          const lb_cut *box)
{
    static const char *const name[] = {"codes", "absmax", "table"};
    const bnb4_state *s = g->own;
    lb_cut codes, blocks;
    if (!cut_both(g->described, box, &codes, &blocks))
        return NULL; /* splits no
                                                                     * block */
    const bool flat = codes.of.rank == 1;
    const lb_quant_config config = {.format = "nf4",
                                    .block_size = s->block,
                                    .blocks = flat ? LB_BLOCKS_FLAT
                                                   : LB_BLOCKS_IN_ROWS,
                                    .dtype = s->dtype};
    lb_shape levels = LB_SHAPE(1, LEVELS);
    if (!flat) {
        levels = lb_cut_shape(box);
        for (int k = 0; k < levels.rank; k++)
            levels.dim[k] = 1;
        levels.dim[levels.rank++] = LEVELS;
    }
    lb_array *part[] = {
        lb_tensor_cut(cx, f, g->tensor[CODES], LB_U8, &codes),
        cut_absmax(cx, f, g, &blocks),
        lb_tensor_part(cx, f, g->tensor[MAP], 0, LB_F32, &levels)};
    if (!part[0] || !part[1] || !part[2]) return NULL;
    return lb_from_parts(cx, &config, lb_cut_shape(box), NULL, name, part, 3);
}

/* The order used here and when planning; without nested scales their tensors
 * are left out. */
static bool place(const lb_described *d, int k, const lb_cut *box, lb_cut *to)
{
    int64_t block;
    lb_cut blocks;
    const lb_described *nested = lb_described_part_of(d, "absmax")->array;
    *to = lb_cut_one();
    if (k == MAP || k == NESTED_MAP || k == STATE || (!nested && k > MAP))
        return true;
    if (!cut_both(d, box, to, &blocks)) return false;
    if (k == CODES) return true;
    *to = blocks;
    if (!nested) return true;
    if (blocks.of.rank > 1) return false; /* only runs */
    lb_described seen = *nested;
    seen.shape = blocks.of;
    lb_cut absmax;
    const bool fits = lb_cut_part(&seen, lb_described_part_of(nested, "absmax"),
                                  &blocks, &absmax, &block);
    if (k == NESTED_ABSMAX) *to = absmax;
    return fits;
}

/* quant_state with another shape. */
static bool restate(lb_ctx *cx, lb_file *f, const lb_group *g, int k,
                    const lb_cut *box, const lb_array **bytes)
{
    static const char key[] = "\"shape\"";
    const lb_tensor *t = g->tensor[k];
    char text[STATE_MOST + 1] = "";
    if (k != STATE) return true;
    if (!lb_reader_read(cx, f->r, t, 0, (size_t)t->size, text)) return false;
    text[t->size] = 0;
    const char *begin = strstr(text, key);
    begin = begin ? strchr(begin, '[') : NULL;
    const char *end = begin ? strchr(begin, ']') : NULL;
    if (!end)
        return lb_refuse(cx, f->r->file[t->file], "'%s' has no \"shape\"",
                         LB_NAME(t->name));
    lb_bytes b = {.heap = cx->heap};
    lb_bytes_put(&b, text, (size_t)(begin + 1 - text));
    for (int i = 0; i < box->of.rank; i++)
        lb_bytes_text(&b, "%s%lld", i ? ", " : "", (long long)box->count[i]);
    lb_bytes_put(&b, end, strlen(end));
    if (b.failed)
        lb_fail(cx, LB_E_NOMEM, "out of memory");
    else
        *bytes = lb_from(cx, LB_U8, LB_SHAPE((int64_t)b.n), b.at);
    lb_bytes_free(&b);
    return *bytes != NULL;
}

/* ---- writing ------------------------------------------------------------- */

static const char *torch_name(lb_dtype dtype)
{
    switch (dtype) {
    case LB_F16:
        return "float16";
    case LB_BF16:
        return "bfloat16";
    case LB_F64:
        return "float64";
    default:
        return "float32";
    }
}

/* Formats like json.dumps of bitsandbytes' dict. nested: quant state of the
 * scales, or NULL. */
static void put_state(lb_bytes *b, const lb_described *d, int64_t block,
                      const lb_described *nested, float offset)
{
    lb_bytes_text(b,
                  "{\"quant_type\": \"nf4\", \"blocksize\": %lld, \"dtype\": "
                  "\"%s\", \"shape\": [",
                  (long long)block, torch_name(d->dtype));
    for (int k = 0; k < d->shape.rank; k++)
        lb_bytes_text(b, "%s%lld", k ? ", " : "", (long long)d->shape.dim[k]);
    lb_bytes_put(b, "]", 1);
    if (nested) {
        const lb_described_part *p = lb_described_part_of(nested, "absmax");
        lb_bytes_text(b,
                      ", \"nested_blocksize\": %lld, \"nested_dtype\": "
                      "\"float32\", \"nested_offset\": ",
                      (long long)p->table.g[0]);
        lb_json_put_number(b, (double)offset);
    }
    lb_bytes_put(b, "}", 1);
}

/* The mean of the scales, which is subtracted before they are quantized. */
static float offset_of(lb_ctx *cx, lb_array *a)
{
    lb_array *scales = lb_component(cx, a, "absmax");
    return (float)lb_item(cx, lb_component(cx, scales, "offset"));
}

/* quant_state. */
static lb_array *state_of(lb_ctx *cx, const lb_described *d, float offset)
{
    const lb_described_part *absmax = lb_described_part_of(d, "absmax");
    lb_bytes b = {.heap = cx->heap};
    lb_array *out = NULL;
    if (!isfinite(offset)) {
        lb_fail(cx, LB_E_ARG, "the mean of the nested scales is not finite");
        return NULL;
    }
    put_state(&b, d, absmax->table.g[d->stored.rank - 1], absmax->array,
              offset);
    if (b.failed)
        lb_fail(cx, LB_E_NOMEM, "out of memory");
    else
        out = lb_from(cx, LB_U8, LB_SHAPE((int64_t)b.n), b.at);
    lb_bytes_free(&b);
    return out;
}

/* Blocks that end with rows also form one long row of blocks. */
static bool ends_rows(const lb_described *d)
{
    const lb_described_part *absmax = lb_described_part_of(d, "absmax");
    const int last = d->stored.rank - 1;
    return last >= 0 && lb_shape_equal(&d->shape, &d->stored) &&
           absmax->table.g[last] > 0 &&
           d->stored.dim[last] % absmax->table.g[last] == 0;
}

/* A matrix, or an array of higher rank, stored as one row of blocks; scales are
 * stored unchanged, or nested as by lb_quantize_scales. */
static bool suits(const lb_described *d, bool spread)
{
    const lb_described_part *absmax = lb_described_part_of(d, "absmax");
    if (strcmp(d->format, "nf4") != 0) return false;
    if (d->stored.rank != 1 && (!spread || !ends_rows(d))) return false;
    if (!absmax->array) return absmax->elem == LB_F32;
    const lb_described *n = absmax->array;
    const lb_described_part *own = lb_described_part_of(n, "absmax");
    return strcmp(n->format, "dynamic8") == 0 && n->stored.rank == 1 &&
           lb_described_part_of(n, "offset") && own && own->elem == LB_F32;
}

/* The values of n codes, for formats that do not store a table. */
static lb_array *standard_map(lb_ctx *cx, const char *format, int n)
{
    const float one = 1;
    const lb_quant_config config = {
        .format = format, .block_size = n, .dtype = LB_F32};
    lb_array *codes = lb_iota(cx, LB_U8, LB_SHAPE(n), 0);
    lb_array *scale = lb_from(cx, LB_F32, LB_SHAPE(1), &one);
    return lb_materialize(cx, lb_from_codes(cx, &config, codes, scale));
}

static lb_array *map_of(lb_ctx *cx, lb_array *a, int n)
{
    lb_array *own = lb_component(cx, a, "table");
    return own ? own : standard_map(cx, lb_format_of(a), n);
}

/* bitsandbytes uses its built-in table for the name: other tables would be
 * lost. */
static bool has_levels(lb_ctx *cx, const lb_described *d, lb_array *a)
{
    float own[LEVELS], want[LEVELS];
    if (!lb_described_part_of(d, "table")) return true;
    if (!a || !lb_read(cx, lb_component(cx, a, "table"), own, sizeof own) ||
        !lb_read(cx, standard_map(cx, d->format, LEVELS), want, sizeof want))
        return false;
    for (int i = 0; i < LEVELS; i++)
        if (own[i] != want[i]) return false;
    return true;
}

static bool plan_nested(lb_ctx *cx, lb_saver *s, lb_saved *item, size_t n,
                        const lb_described *nested)
{
    const lb_described_part *p = lb_described_part_of(nested, "absmax");
    const lb_shape blocks = lb_part_shape(&nested->stored, &p->table);
    const lb_shape levels = LB_SHAPE(NESTED_LEVELS);
    return lb_saver_tensor(cx, s, item, item->name, n, ".nested_absmax", NULL,
                           LB_F32, &blocks) &&
           lb_saver_tensor(cx, s, item, item->name, n, ".nested_quant_map",
                           NULL, LB_F32, &levels);
}

static lb_verdict plan(lb_ctx *cx, lb_saver *s, lb_saved *item)
{
    const lb_described *d = item->described;
    const size_t n = strlen(item->name);
    if (!suits(d, item->spread) || !has_levels(cx, d, item->array))
        return LB_DECLINED;
    const lb_described_part *absmax = lb_described_part_of(d, "absmax");
    const lb_shape each = lb_part_shape(&d->stored, &absmax->table);
    const lb_shape blocks = LB_SHAPE(lb_shape_size(&each));
    const lb_shape bytes = LB_SHAPE(ceil_div(lb_shape_size(&d->stored), 2), 1);
    const lb_shape levels = LB_SHAPE(LEVELS);
    float offset = item->offset ? *item->offset : 0;
    if (absmax->array && item->array) offset = offset_of(cx, item->array);
    if (absmax->array && !item->array && !item->offset) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "'%s': the size of quant_state depends on nested_offset: with "
                "double_quant the array must exist when the file is planned",
                LB_NAME(item->name));
        return LB_FAILED;
    }
    const lb_array *blob = state_of(cx, d, offset);
    bool ok =
        blob &&
        lb_saver_tensor(cx, s, item, item->name, n, "", NULL, LB_U8, &bytes) &&
        lb_saver_tensor(cx, s, item, item->name, n, ".absmax", NULL,
                        absmax->array ? LB_U8 : LB_F32, &blocks) &&
        lb_saver_tensor(cx, s, item, item->name, n, ".quant_map", NULL, LB_F32,
                        &levels);
    if (ok && absmax->array) ok = plan_nested(cx, s, item, n, absmax->array);
    ok = ok && lb_saver_tensor(cx, s, item, item->name, n,
                               ".quant_state.bitsandbytes__nf4", NULL, LB_U8,
                               &blob->shape);
    return ok ? LB_DONE : LB_FAILED;
}

static lb_array *part(lb_ctx *cx, const lb_saved *item, lb_array *a, int k)
{
    lb_array *absmax = lb_component(cx, a, "absmax");
    const bool nested = absmax && strcmp(lb_format_of(absmax), "dense") != 0;
    if (!nested && k > MAP) k = STATE;
    switch (k) {
    case CODES:
        return lb_component(cx, a, "codes");
    case ABSMAX:
        return nested ? lb_component(cx, absmax, "codes") : absmax;
    case MAP:
        return map_of(cx, a, LEVELS);
    case NESTED_ABSMAX:
        return lb_component(cx, absmax, "absmax");
    case NESTED_MAP:
        return map_of(cx, absmax, NESTED_LEVELS);
    default:
        return state_of(cx, item->described, nested ? offset_of(cx, a) : 0);
    }
}

/* As BitsAndBytesConfig.to_dict has it. */
static void configure(lb_bytes *to, const lb_loading *how)
{
    lb_bytes_text(to,
                  "{\n    \"_load_in_4bit\": true,\n"
                  "    \"_load_in_8bit\": false,\n"
                  "    \"bnb_4bit_compute_dtype\": \"%s\",\n"
                  "    \"bnb_4bit_quant_storage\": \"uint8\",\n",
                  how->dtype);
    lb_bytes_text(to,
                  "    \"bnb_4bit_quant_type\": \"nf4\",\n"
                  "    \"bnb_4bit_use_double_quant\": %s,\n",
                  how->double_quant ? "true" : "false");
    lb_bytes_text(to, "    \"llm_int8_enable_fp32_cpu_offload\": false,\n"
                      "    \"llm_int8_has_fp16_weight\": false,\n"
                      "    \"llm_int8_skip_modules\": ");
    lb_put_texts(to, how->plain ? NULL : how->skip, how->n_skip);
    lb_bytes_text(to, ",\n    \"llm_int8_threshold\": 6.0,\n"
                      "    \"load_in_4bit\": true,\n"
                      "    \"load_in_8bit\": false,\n"
                      "    \"quant_method\": \"bitsandbytes\"\n  }");
}

const lb_file_layout lb_file_layout_bnb4 = {
    .name = "bnb",
    .format = "nf4",
    .wants_offset = true,
    .refuses = lb_linear_only,
    .compat = LB_COMPAT_BNB_CPU,
    .configure = configure,
    .find = find,
    .load = load,
    .describe = describe,
    .load_cut = load_cut,
    .place = place,
    .restate = restate,
    .plan = plan,
    .part = part,
};
