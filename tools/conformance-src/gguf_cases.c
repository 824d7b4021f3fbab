/* gguf_cases.c - the kind `gguf`: raw blocks of a ggml type, and their decoded
 * values.
 *
 * A case is a directory with meta.json, {ggml_type, n}; raw_u8.npy, the bytes
 * of n / block blocks; expected_f32.npy, whose shape is the array's, and
 * expected_bf16_bits.npy. Everything is compared bit by bit, including
 * the raw bytes after a round trip through the library.
 */
#include "conformance.h"

typedef struct ggml_type {
    int64_t id;
    const char *format;
    int64_t block, bytes; /* elements and bytes of a block */
} ggml_type;

/* Blocks of 32: an f16 scale, then 8 or 4 bits per element. Blocks of 256: 48
 * bytes of five trits and 4 bytes of four, or 2 bits per element, then an f16
 * scale. */
static const ggml_type types[] = {
    {2, "q4_0", 32, 2 + 16},         {8, "q8_0", 32, 2 + 32},
    {20, "iq4_nl", 32, 2 + 16},      {34, "tq1_0", 256, 48 + 4 + 2},
    {35, "tq2_0", 256, 256 / 4 + 2},
};

static const ggml_type *find_type(int64_t id)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].id == id) return &types[i];
    }
    return NULL;
}

/* (.., n) in blocks: (.., ceil(n / block), bytes). */
static bool blocks_shape(const ggml_type *t, const given *raw, lb_shape shape,
                         lb_shape *out, note *n)
{
    if (shape.rank < 1 || shape.rank >= LB_MAX_RANK) {
        return note_fail(n, "an array of rank %d is expected", shape.rank);
    }
    *out = shape;
    int64_t *const last = &out->dim[shape.rank - 1];
    *last = *last / t->block + (*last % t->block != 0);
    out->dim[out->rank++] = t->bytes;
    return shape_size(*out) == shape_size(raw->raw.shape) ||
           note_fail(n, "%s of %s is %s bytes, but raw_u8.npy has %zu",
                     t->format, shape_text(shape).s, shape_text(*out).s,
                     raw->raw.nbytes);
}

static bool check_blocks(checker *c, const ggml_type *t, const given *raw,
                         const given *f32)
{
    lb_shape shape = {0};
    if (!blocks_shape(t, raw, f32->raw.shape, &shape, c->note)) return false;
    const lb_quant_config config = {
        .struct_size = sizeof(config), .format = t->format, .dtype = LB_F32};
    const char *const name = "blocks";
    lb_array *const blocks = lb_reshape(c->cx, raw->a, shape);
    lb_array *const a =
        lb_from_parts(c->cx, &config, f32->raw.shape, NULL, &name, &blocks, 1);
    return check_decoded(c, a, f32) &&
           check_bytes(c, "blocks written back",
                       lb_export(c->cx, a, NULL, name), raw);
}

static bool check_case(checker *c, const json_t *meta)
{
    int64_t id = 0;
    int64_t n = 0;
    if (!json_int(meta, "ggml_type", 0, INT32_MAX, &id, c->note) ||
        !json_int(meta, "n", 0, INT64_MAX, &n, c->note)) {
        return false;
    }
    const ggml_type *const t = find_type(id);
    if (!t) return note_skip(c->note, "lowbit has no ggml type %d", (int)id);
    given raw = {0};
    given f32 = {0};
    const bool ok = given_read(c, "raw_u8.npy", LB_U8, &raw) &&
                    given_read(c, "expected_f32.npy", LB_F32, &f32) &&
                    (shape_size(f32.raw.shape) == n ||
                     note_fail(c->note, "n does not fit %s",
                               shape_text(f32.raw.shape).s)) &&
                    check_blocks(c, t, &raw, &f32);
    given_free(&raw);
    given_free(&f32);
    return ok;
}

static void run_case(runner *r, const char *dir, const char *name)
{
    meta_case(r, dir, name, check_case);
}

static bool run_gguf(runner *r, const char *dir, note *n)
{
    return cases_run(r, dir, "meta.json", run_case, n);
}

const kind kind_gguf = {
    .name = "gguf",
    .help = "blocks of ggml types with their values",
    .dense = LB_DENSE_DENY,
    .run = run_gguf,
};
