/* gguf_cases.c - the kind `gguf`: raw blocks of a ggml type, and their decoded
 * values.
 *
 * A case is a directory with meta.json, {ggml_type, n}; raw_u8.npy, the bytes
 * of n / block blocks; expected_f32.npy, whose shape is the array's, and
 * expected_bf16_bits.npy. Everything is compared bit by bit, including
 * the raw bytes after a round trip through the library.
 *
 * Type 36 is bitnet.cpp's I2_S: n / 4 bytes, the scale as F32, and zeros up to
 * 32 bytes.
 */
#include <string.h>

#include "conformance.h"

typedef struct ggml_type {
    int64_t id;
    const char *format;
    int64_t block, bytes; /* elements and bytes of a block */
} ggml_type;

/* Bytes are the sum of what a block consists of: codes, then their scales. */
static const ggml_type types[] = {
    {2, "q4_0", 32, 16 + 2},
    {3, "q4_1", 32, 16 + 4},
    {6, "q5_0", 32, 16 + 4 + 2},
    {7, "q5_1", 32, 16 + 4 + 4},
    {8, "q8_0", 32, 32 + 2},
    {10, "q2_k", 256, 64 + 16 + 4},
    {11, "q3_k", 256, 64 + 32 + 12 + 2},
    {12, "q4_k", 256, 128 + 12 + 4},
    {13, "q5_k", 256, 128 + 32 + 12 + 4},
    {14, "q6_k", 256, 128 + 64 + 16 + 2},
    {16, "iq2_xxs", 256, 64 + 2},
    {17, "iq2_xs", 256, 64 + 8 + 2},
    {18, "iq3_xxs", 256, 64 + 32 + 2},
    {19, "iq1_s", 256, 32 + 16 + 2},
    {20, "iq4_nl", 32, 16 + 2},
    {21, "iq3_s", 256, 64 + 8 + 32 + 4 + 2},
    {22, "iq2_s", 256, 64 + 8 + 8 + 2},
    {23, "iq4_xs", 256, 128 + 4 + 2 + 2},
    {29, "iq1_m", 256, 32 + 16 + 8},
    {34, "tq1_0", 256, 48 + 4 + 2},
    {35, "tq2_0", 256, 64 + 2},
    {39, "gguf_mxfp4", 32, 16 + 1},
    {40, "gguf_nvfp4", 64, 32 + 4},
    {41, "q1_0", 128, 16 + 2},
    {42, "q2_0", 64, 16 + 2},
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

/* I2_S: blocks of 128 elements, then one scale. */
static bool check_i2_s(checker *c, const given *raw, const given *f32)
{
    static const char *const name[] = {"blocks", "scale"};
    const ggml_type type = {36, "i2_s", 128, 32};
    lb_shape shape = f32->raw.shape;
    const int64_t n = shape_size(shape);
    const int64_t last = shape.rank ? shape.dim[shape.rank - 1] : 0;
    if (n % type.block || !n || shape_size(raw->raw.shape) != n / 4 + 32) {
        return note_fail(c->note, "%s of i2_s has %lld bytes, not %zu",
                         shape_text(shape).s, (long long)(n / 4 + 32),
                         raw->raw.nbytes);
    }
    if (last % type.block) shape = LB_SHAPE(n);
    lb_shape blocks = shape;
    blocks.dim[shape.rank - 1] /= type.block;
    blocks.dim[blocks.rank++] = type.bytes;
    lb_array *const flat = lb_reshape(c->cx, raw->a, LB_SHAPE(n / 4 + 32));
    lb_array *const bytes =
        lb_slice(c->cx, flat, (int64_t[]){0}, (int64_t[]){n / 4}, NULL);
    float scale = 0;
    memcpy(&scale, (const char *)raw->raw.data + n / 4, sizeof(scale));
    const lb_quant_config config = {
        .struct_size = sizeof(config), .format = type.format, .dtype = LB_F32};
    lb_array *const part[] = {
        lb_reshape(c->cx, bytes, blocks),
        lb_full(c->cx, LB_F32, LB_SHAPE(1), (double)scale)};
    lb_array *const a =
        lb_from_parts(c->cx, &config, shape, NULL, name, part, 2);
    return check_decoded(c, a ? lb_reshape(c->cx, a, f32->raw.shape) : a, f32);
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
    const bool i2_s = id == 36;
    if (!t && !i2_s)
        return note_skip(c->note, "lowbit has no ggml type %d", (int)id);
    given raw = {0};
    given f32 = {0};
    const bool ok =
        given_read(c, "raw_u8.npy", LB_U8, &raw) &&
        given_read(c, "expected_f32.npy", LB_F32, &f32) &&
        (shape_size(f32.raw.shape) == n ||
         note_fail(c->note, "n does not fit %s",
                   shape_text(f32.raw.shape).s)) &&
        (i2_s ? check_i2_s(c, &raw, &f32) : check_blocks(c, t, &raw, &f32));
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
