/* bitsandbytes_cases.c - the kind `bitsandbytes`: weights as stored in its
 * checkpoints, and the values that it decodes.
 *
 * A case is a directory with meta.json, whose `kind` is one of
 *
 *     bnb 4bit             n codes in weight_packed_u8, high nibble first,
 *                          blocks of `blocksize` across rows, quant_map_f32;
 *                          absmax_f32, or, with double_quant, absmax_u8,
 *                          nested_quant_map_f32, nested_absmax_f32 for blocks
 *                          of `nested_blocksize`, and `nested_offset`
 *     bnb int8 vectorwise  (out, inn) codes weight_i8, scb_f32 for each row
 *
 * expected_f32.npy has the array's shape. Values are compared bit by bit, as
 * are the bytes of each part after a round trip through the library.
 */
#include <string.h>

#include "conformance.h"

/* A file's bytes in the shape that the library requires for a part. */
typedef struct part {
    const char *name;
    const char *file;
    lb_dtype dtype;
    lb_shape shape;
} part;

enum { MAX_PARTS = 4 };

static int64_t blocks_of(int64_t n, int64_t block)
{
    return n / block + (n % block != 0);
}

static bool read_part(checker *c, const part *p, given *g)
{
    if (!given_read(c, p->file, p->dtype, g)) return false;
    if (shape_size(p->shape) != shape_size(g->raw.shape)) {
        return note_fail(c->note, "%s is %s, but %s is needed", p->file,
                         shape_text(g->raw.shape).s, shape_text(p->shape).s);
    }
    g->a = lb_reshape(c->cx, g->a, p->shape);
    return g->a || library_failed(c->cx, c->note, p->file);
}

/* An array from the parts in files and one that exists already (more.name NULL:
 * none). Each part must be unchanged by the round trip. */
typedef struct made_part {
    const char *name;
    lb_array *a;
} made_part;

static lb_array *assemble(checker *c, const lb_quant_config *config,
                          lb_shape shape, const part *p, int n, made_part more)
{
    given g[MAX_PARTS] = {0};
    const char *name[MAX_PARTS + 1];
    lb_array *in[MAX_PARTS + 1];
    lb_array *a = NULL;
    int count = 0;
    while (count < n && read_part(c, &p[count], &g[count])) {
        name[count] = p[count].name;
        in[count] = g[count].a;
        count++;
    }
    bool ok = count == n;
    if (more.name) {
        name[count] = more.name;
        in[count++] = more.a;
    }
    if (ok) {
        a = lb_from_parts(c->cx, config, shape, NULL, name, in, count);
        if (!a) ok = library_failed(c->cx, c->note, config->format);
    }
    for (int i = 0; ok && i < n; i++) {
        ok = check_bytes(c, p[i].file, lb_export(c->cx, a, NULL, p[i].name),
                         &g[i]);
    }
    for (int i = 0; i < n; i++) {
        given_free(&g[i]);
    }
    return ok ? a : NULL;
}

/* ---- 8 bits -------------------------------------------------------------- */

static lb_array *load_int8(checker *c, const json_t *meta, lb_shape shape)
{
    int64_t out = 0;
    int64_t in = 0;
    if (!json_int(meta, "out", 0, INT64_MAX, &out, c->note) ||
        !json_int(meta, "inn", 0, INT64_MAX, &in, c->note)) {
        return NULL;
    }
    if (!shape_equal(shape, LB_SHAPE(out, in))) {
        note_fail(c->note, "%s is expected, not out and inn",
                  shape_text(shape).s);
        return NULL;
    }
    const lb_quant_config config = {.struct_size = sizeof(config),
                                    .format = "int8",
                                    .dtype = LB_F32,
                                    .meaning = LB_MEANS_ABSMAX};
    const part parts[] = {
        {"codes", "weight_i8.npy", LB_I8, shape},
        {"scale", "scb_f32.npy", LB_F32, LB_SHAPE(out, 1)},
    };
    return assemble(c, &config, shape, parts, 2, (made_part){0});
}

/* ---- 4 bits -------------------------------------------------------------- */

/* The scales of double quantization, a separate array. */
static lb_array *load_nested(checker *c, const json_t *meta, int64_t n)
{
    const json_t *const offset = json_object_get(meta, "nested_offset");
    int64_t block = 0;
    if (!json_int(meta, "nested_blocksize", 1, INT64_MAX, &block, c->note)) {
        return NULL;
    }
    if (!json_is_number(offset)) {
        note_fail(c->note, "nested_offset is not a number");
        return NULL;
    }
    const lb_quant_config config = {.struct_size = sizeof(config),
                                    .format = "dynamic8",
                                    .block_size = block,
                                    .center = true,
                                    .dtype = LB_F32};
    const part parts[] = {
        {"codes", "absmax_u8.npy", LB_U8, LB_SHAPE(n)},
        {"absmax", "nested_absmax_f32.npy", LB_F32,
         LB_SHAPE(blocks_of(n, block))},
        {"table", "nested_quant_map_f32.npy", LB_F32, LB_SHAPE(1, 256)},
    };
    const made_part mean = {"offset", lb_full(c->cx, LB_F32, LB_SHAPE(1),
                                              json_number_value(offset))};
    lb_array *const a = assemble(c, &config, LB_SHAPE(n), parts, 3, mean);
    given want = {0};
    const bool ok =
        a && (!file_exists(c->dir, ".", "absmax_dequant_f32.npy") ||
              (given_read(c, "absmax_dequant_f32.npy", LB_F32, &want) &&
               check_bytes(c, "absmax, decoded", a, &want)));
    given_free(&want);
    return ok ? a : NULL;
}

static lb_array *load_4bit(checker *c, const json_t *meta, lb_shape shape)
{
    int64_t n = 0;
    int64_t block = 0;
    if (!json_int(meta, "n", 0, INT64_MAX, &n, c->note) ||
        !json_int(meta, "blocksize", 1, INT64_MAX, &block, c->note)) {
        return NULL;
    }
    const json_t *const nested = json_object_get(meta, "double_quant");
    if (shape_size(shape) != n || !json_is_boolean(nested)) {
        note_fail(c->note, "meta.json: invalid n or double_quant");
        return NULL;
    }
    const lb_quant_config config = {.struct_size = sizeof(config),
                                    .format = "nf4",
                                    .block_size = block,
                                    .blocks = LB_BLOCKS_FLAT,
                                    .dtype = LB_F32};
    const part parts[] = {
        {"codes", "weight_packed_u8.npy", LB_U8, LB_SHAPE(blocks_of(n, 2))},
        {"table", "quant_map_f32.npy", LB_F32, LB_SHAPE(1, 16)},
        {"absmax", "absmax_f32.npy", LB_F32, LB_SHAPE(blocks_of(n, block))},
    };
    if (!json_is_true(nested)) {
        return assemble(c, &config, shape, parts, 3, (made_part){0});
    }
    const made_part absmax = {"absmax",
                              load_nested(c, meta, blocks_of(n, block))};
    return absmax.a ? assemble(c, &config, shape, parts, 2, absmax) : NULL;
}

/* ---- cases --------------------------------------------------------------- */

static bool check_case(checker *c, const json_t *meta)
{
    const char *const what = json_string_value(json_object_get(meta, "kind"));
    const bool is_4bit = what && !strcmp(what, "bnb 4bit");
    if (!what) return note_fail(c->note, "meta.json names no kind");
    if (!is_4bit && strcmp(what, "bnb int8 vectorwise") != 0) {
        return note_skip(c->note, "kind '%.64s' is not known here", what);
    }
    given f32 = {0};
    lb_array *a = NULL;
    if (given_read(c, "expected_f32.npy", LB_F32, &f32)) {
        a = is_4bit ? load_4bit(c, meta, f32.raw.shape)
                    : load_int8(c, meta, f32.raw.shape);
    }
    const bool ok = a && check_decoded(c, a, &f32);
    given_free(&f32);
    return ok;
}

static void run_case(runner *r, const char *dir, const char *name)
{
    meta_case(r, dir, name, check_case);
}

static bool run_bitsandbytes(runner *r, const char *dir, note *n)
{
    return cases_run(r, dir, "meta.json", run_case, n);
}

const kind kind_bitsandbytes = {
    .name = "bitsandbytes",
    .help = "weights of bitsandbytes with their values",
    .dense = LB_DENSE_DENY,
    .run = run_bitsandbytes,
};
