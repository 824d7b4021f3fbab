/* gguf.c - GGUF version 3 (and 2 for reading), compatible with ggml's gguf.cpp
 * and gguf-py. Little-endian:
 *
 *     "GGUF" | u32 version | i64 tensors | i64 values |
 *     values:  string key, u32 type, value;  an array is u32 type, u64 n, items
 *     tensors: string name, u32 rank, i64 dim[rank] (the fastest first),
 *              u32 type, u64 offset
 *     zeros up to a multiple of general.alignment (32) | each tensor's bytes,
 *     zeros up to a multiple ..
 *
 * A string is its u64 length and its bytes. Offsets are relative to the start
 * of the data and must equal the padded sizes before them.
 */
#include <string.h>

#include "io/containers/container.h"
#include "io/util/cursor.h"

enum {
    VERSION = 3,
    ALIGNMENT = 32,
    RANK_MOST = 4,
    NAME_MOST = 63,          /* ggml: 64, including a terminating 0 */
    I2_S = 36,               /* bitnet.cpp's type */
    NESTING_MOST = 8,        /* gguf-py supports nested arrays, ggml does not */
    ALIGNMENT_MOST = 1 << 20 /* for writing: the header is padded in memory */
};
/* The limit of ggml: a larger count is invalid. */
static const uint64_t most = (uint64_t)1 << 30;
static const char alignment_key[] = "general.alignment";

/* ---- types --------------------------------------------------------------- */

/* Bytes of a block, as the sum of its fields in ggml-common.h: scales (f16
 * unless noted), minima, codes. */
#define PLAIN(ID, NAME, DTYPE, SIZE)                                           \
    {                                                                          \
        NAME, DTYPE, 1, SIZE, ID                                               \
    }
#define BLOCK(ID, NAME, LEN, SIZE)                                             \
    {                                                                          \
        NAME, LB_NO_DTYPE, LEN, SIZE, ID                                       \
    }
#define GONE(ID, NAME)                                                         \
    {                                                                          \
        NAME, LB_NO_DTYPE, 0, 0, ID                                            \
    }
static const lb_coding types[] = {
    PLAIN(0, "F32", LB_F32, 4),
    PLAIN(1, "F16", LB_F16, 2),
    BLOCK(2, "Q4_0", 32, 2 + 16),
    BLOCK(3, "Q4_1", 32, 2 + 2 + 16),
    GONE(4, "Q4_2"),
    GONE(5, "Q4_3"),
    BLOCK(6, "Q5_0", 32, 2 + 4 + 16),
    BLOCK(7, "Q5_1", 32, 2 + 2 + 4 + 16),
    BLOCK(8, "Q8_0", 32, 2 + 32),
    BLOCK(9, "Q8_1", 32, 2 + 2 + 32),
    BLOCK(10, "Q2_K", 256, 2 + 2 + 256 / 16 + 256 / 4),
    BLOCK(11, "Q3_K", 256, 2 + 256 / 4 + 256 / 8 + 12),
    BLOCK(12, "Q4_K", 256, 2 + 2 + 256 / 2 + 12),
    BLOCK(13, "Q5_K", 256, 2 + 2 + 256 / 2 + 256 / 8 + 12),
    BLOCK(14, "Q6_K", 256, 2 + 256 / 16 + 256 / 4 * 3),
    BLOCK(15, "Q8_K", 256, 4 + 256 + 256 / 16 * 2), /* f32 scale */
    BLOCK(16, "IQ2_XXS", 256, 2 + 256 / 4),
    BLOCK(17, "IQ2_XS", 256, 2 + 256 / 4 + 256 / 32),
    BLOCK(18, "IQ3_XXS", 256, 2 + 256 / 8 * 3),
    BLOCK(19, "IQ1_S", 256, 2 + 256 / 8 + 256 / 16),
    BLOCK(20, "IQ4_NL", 32, 2 + 16),
    BLOCK(21, "IQ3_S", 256, 2 + 256 / 32 * 13 + 256 / 64),
    BLOCK(22, "IQ2_S", 256, 2 + 256 / 4 + 256 / 16),
    BLOCK(23, "IQ4_XS", 256, 2 + 2 + 256 / 2 + 256 / 64),
    PLAIN(24, "I8", LB_I8, 1),
    PLAIN(25, "I16", LB_I16, 2),
    PLAIN(26, "I32", LB_I32, 4),
    PLAIN(27, "I64", LB_I64, 8),
    PLAIN(28, "F64", LB_F64, 8),
    BLOCK(29, "IQ1_M", 256,
          256 / 8 + 256 / 16 + 256 / 32), /* includes scales */
    PLAIN(30, "BF16", LB_BF16, 2),
    GONE(31, "Q4_0_4_4"),
    GONE(32, "Q4_0_4_8"),
    GONE(33, "Q4_0_8_8"),
    BLOCK(34, "TQ1_0", 256, 2 + 256 / 64 + (256 - 4 * 256 / 64) / 5),
    BLOCK(35, "TQ2_0", 256, 2 + 256 / 4),
    GONE(36, "IQ4_NL_4_4"),
    GONE(37, "IQ4_NL_4_8"),
    GONE(38, "IQ4_NL_8_8"),
    BLOCK(39, "MXFP4", 32, 1 + 16),       /* e8m0 scale */
    BLOCK(40, "NVFP4", 64, 64 / 16 + 32), /* e4m3 scales */
    BLOCK(41, "Q1_0", 128, 2 + 128 / 8),
    BLOCK(42, "Q2_0", 64, 2 + 64 / 4),
    {NULL, LB_NO_DTYPE, 0, 0, 0},
};
enum { N_TYPES = sizeof types / sizeof *types - 1 };

/* Size of a value; for strings and arrays, the minimum. */
static const uint8_t value_size[LB_N_META] = {
    [LB_META_U8] = 1,     [LB_META_I8] = 1,   [LB_META_U16] = 2,
    [LB_META_I16] = 2,    [LB_META_U32] = 4,  [LB_META_I32] = 4,
    [LB_META_F32] = 4,    [LB_META_BOOL] = 1, [LB_META_STRING] = 8,
    [LB_META_ARRAY] = 12, [LB_META_U64] = 8,  [LB_META_I64] = 8,
    [LB_META_F64] = 8,
};

/* ---- reading ------------------------------------------------------------- */

static bool gguf_probe(const uint8_t *head, size_t n)
{
    return n >= 4 && memcmp(head, "GGUF", 4) == 0;
}

/* A name or key whose length is within limits. */
static char *read_name(lb_cursor *c, const char *what, uint64_t lo, uint64_t hi)
{
    uint64_t n = 0;
    if (!lb_cursor_u64(c, what, &n)) return NULL;
    if (n < lo || n > hi) {
        lb_refuse(c->cx, c->r->file[0],
                  "%s at byte %llu has %llu bytes, not %llu to %llu", what,
                  (unsigned long long)c->at, (unsigned long long)n,
                  (unsigned long long)lo, (unsigned long long)hi);
        return NULL;
    }
    const uint64_t begin = c->at;
    if (!lb_cursor_skip(c, n, what)) return NULL;
    char *to = lb_arena_alloc(c->cx, &c->r->arena, n + 1, 1);
    if (!to || !lb_infile_read(c->cx, c->r->file[0], begin, (size_t)n, to))
        return NULL;
    if (memchr(to, 0, (size_t)n)) {
        lb_refuse(c->cx, c->r->file[0], "%s at byte %llu contains a 0", what,
                  (unsigned long long)begin);
        return NULL;
    }
    return to;
}

/* The number of a known value type. */
static bool read_type(lb_cursor *c, const char *key, lb_meta_type *type)
{
    uint32_t t = 0;
    if (!lb_cursor_u32(c, "the type of a value", &t)) return false;
    if (t >= LB_N_META)
        return lb_refuse(c->cx, c->r->file[0],
                         "key '%s' has unknown type %u (known: 0 to %d)",
                         LB_NAME(key), t, LB_N_META - 1);
    *type = (lb_meta_type)t;
    return true;
}

static bool pass_string(lb_cursor *c, const char *key)
{
    uint64_t n = 0;
    if (!lb_cursor_u64(c, "the length of a string", &n)) return false;
    if (n > most)
        return lb_refuse(
            c->cx, c->r->file[0],
            "key '%s': a string of %llu bytes; the maximum is %llu",
            LB_NAME(key), (unsigned long long)n, (unsigned long long)most);
    return lb_cursor_skip(c, n, "a string");
}

static bool array_head(lb_cursor *c, const char *key, lb_meta_type *item,
                       uint64_t *n)
{
    if (!read_type(c, key, item)) return false;
    if (!lb_cursor_u64(c, "the length of an array", n)) return false;
    if (*n > most || *n > lb_cursor_left(c) / value_size[*item])
        return lb_refuse(c->cx, c->r->file[0],
                         "key '%s': an array of %llu items, but only %llu "
                         "bytes are left in the file",
                         LB_NAME(key), (unsigned long long)*n,
                         (unsigned long long)lb_cursor_left(c));
    return true;
}

/* Skips the items of an array. Nested arrays take at least some bytes each,
 * even empty ones, so time is bounded by the size of the file. */
static bool pass_items(lb_cursor *c, const char *key, lb_meta_type item,
                       uint64_t n, int depth)
{
    if (item != LB_META_STRING && item != LB_META_ARRAY)
        return lb_cursor_skip(c, n * value_size[item], "an array");
    if (item == LB_META_ARRAY && depth >= NESTING_MOST)
        return lb_refuse(c->cx, c->r->file[0],
                         "key '%s': arrays nested deeper than %d", LB_NAME(key),
                         NESTING_MOST);
    for (uint64_t i = 0; i < n; i++) {
        lb_meta_type inner = LB_META_U8;
        uint64_t inner_n = 0;
        if (item == LB_META_STRING) {
            if (!pass_string(c, key)) return false;
        } else if (!array_head(c, key, &inner, &inner_n) ||
                   !pass_items(c, key, inner, inner_n, depth + 1))
            return false;
    }
    return true;
}

static bool read_value(lb_cursor *c, lb_meta *m)
{
    m->key = read_name(c, "a key", 1, most);
    if (!m->key || !read_type(c, m->key, &m->type)) return false;
    m->n = 1;
    uint64_t begin = c->at;
    if (m->type == LB_META_STRING) {
        if (!pass_string(c, m->key)) return false;
        begin += 8;
    } else if (m->type == LB_META_ARRAY) {
        if (!array_head(c, m->key, &m->item, &m->n)) return false;
        begin = c->at;
        if (!pass_items(c, m->key, m->item, m->n, 1)) return false;
    } else if (!lb_cursor_skip(c, value_size[m->type], "a value"))
        return false;
    m->size = c->at - begin;
    m->bytes = lb_cursor_span(c, begin, m->size);
    return m->bytes != NULL;
}

/* The value of general.alignment, of a file that is read or written; 0 if
 * invalid. */
static uint64_t alignment_of(const lb_meta *meta, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (strcmp(meta[i].key, alignment_key) != 0) continue;
        if (meta[i].type != LB_META_U32 || meta[i].size != 4) return 0;
        const uint64_t a = lb_get_u32(meta[i].bytes);
        return a & (a - 1) ? 0 : a;
    }
    return ALIGNMENT;
}

static bool read_shape(lb_cursor *c, lb_tensor *t)
{
    uint32_t rank = 0;
    if (!lb_cursor_u32(c, "a rank", &rank)) return false;
    if (rank > RANK_MOST)
        return lb_refuse(c->cx, c->r->file[0],
                         "tensor '%s' has rank %u; the maximum is %d",
                         LB_NAME(t->name), rank, RANK_MOST);
    int64_t *dim = lb_arena_alloc(c->cx, &c->r->arena, rank, sizeof *dim);
    if (!dim) return false;
    t->rank = (int)rank;
    t->dim = dim;
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t n = 0;
        if (!lb_cursor_u64(c, "a dimension", &n)) return false;
        if (n > INT64_MAX)
            return lb_refuse(c->cx, c->r->file[0],
                             "tensor '%s': dimension %u is negative (%lld)",
                             LB_NAME(t->name), i, (long long)(int64_t)n);
        dim[rank - 1 - i] = (int64_t)n;
    }
    return true;
}

/* An empty tensor: the other dimensions do not matter. */
static bool is_empty(const lb_tensor *t)
{
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] == 0) return true;
    return false;
}

static bool refuse_36(lb_cursor *c, const lb_tensor *t)
{
    return lb_refuse(c->cx, c->r->file[0],
                     "tensor '%s' has type %d (IQ4_NL_4_4), which was removed "
                     "from GGUF, and not the size of bitnet.cpp's I2_S",
                     LB_NAME(t->name), I2_S);
}

/* bitnet.cpp's I2_S, which took the number of IQ4_NL_4_4: two bits for each
 * element, a scale in F32, zeros up to 32 bytes. Its size tells them apart
 * (place_tensors). */
static bool read_i2_s(lb_cursor *c, lb_tensor *t)
{
    uint64_t n = 1;
    for (int i = 0; i < t->rank; i++) {
        if (t->dim[i] && n > UINT64_MAX / 8 / (uint64_t)t->dim[i])
            return lb_refuse(c->cx, c->r->file[0], "tensor '%s' is too large",
                             LB_NAME(t->name));
        n *= (uint64_t)t->dim[i];
    }
    t->type = "I2_S";
    t->size = n / 4 + 32;
    if (n % 4 == 0 && n)
        return lb_cursor_u64(c, "a tensor's offset", &t->begin);
    return refuse_36(c, t);
}

static bool read_tensor(lb_cursor *c, lb_tensor *t)
{
    uint32_t type = 0;
    t->name = read_name(c, "a tensor's name", 0, NAME_MOST);
    if (!t->name || !read_shape(c, t)) return false;
    if (!lb_cursor_u32(c, "a tensor's type", &type)) return false;
    if (type >= N_TYPES)
        return lb_refuse(c->cx, c->r->file[0],
                         "tensor '%s' has unknown type %u (known: 0 to %d)",
                         LB_NAME(t->name), type, N_TYPES - 1);
    if (type == I2_S) return read_i2_s(c, t);
    const lb_coding *coding = &types[type];
    t->type = coding->name;
    t->dtype = coding->dtype;
    t->id = coding->code;
    if (!coding->len)
        return lb_refuse(
            c->cx, c->r->file[0],
            "tensor '%s' has type %u (%s), which was removed from GGUF",
            LB_NAME(t->name), type, coding->name);
    const int64_t row = t->rank ? t->dim[t->rank - 1] : 1;
    if (row % coding->len)
        return lb_refuse(c->cx, c->r->file[0],
                         "tensor '%s' has rows of %lld elements, not a "
                         "multiple of the block size of %s, %d",
                         LB_NAME(t->name), (long long)row, coding->name,
                         coding->len);
    if (!is_empty(t) && !lb_coding_size(coding, t->dim, t->rank, &t->size))
        return lb_refuse(
            c->cx, c->r->file[0],
            "tensor '%s' is too large: its size in bytes overflows",
            LB_NAME(t->name));
    return lb_cursor_u64(c, "a tensor's offset", &t->begin);
}

/* Rounds up to a multiple of a power of two; may overflow. */
static uint64_t padding(uint64_t at, uint64_t alignment)
{
    return (alignment - (at & (alignment - 1))) & (alignment - 1);
}

/* Converts offsets in the data to file offsets and checks them. The padding
 * after the last tensor may be missing: llama.cpp reads such files. */
static bool place_tensors(lb_cursor *c, uint64_t alignment)
{
    lb_reader *r = c->r;
    if (!r->n_tensors) return true;
    if (!lb_cursor_skip(c, padding(c->at, alignment), "padding of the header"))
        return false;
    const uint64_t data = c->at, have = lb_cursor_left(c);
    uint64_t at = 0;
    for (int64_t i = 0; i < r->n_tensors; i++) {
        lb_tensor *t = &r->tensor[i];
        const uint64_t end = i + 1 < r->n_tensors ? t[1].begin : have;
        if (strcmp(t->type, "I2_S") == 0 && end > at &&
            end - at >= t->size + padding(t->size, alignment) + alignment)
            return refuse_36(c, t);
        if (t->begin != at)
            return lb_refuse(c->cx, r->file[0],
                             "tensor '%s' has offset %llu, but the tensors "
                             "before it end at %llu",
                             LB_NAME(t->name), (unsigned long long)t->begin,
                             (unsigned long long)at);
        if (t->size && (at > have || t->size > have - at))
            return lb_refuse_truncated(c->cx, r->file[0], t, at + t->size,
                                       have);
        t->begin = data + (at < have ? at : have);
        at += t->size + padding(t->size, alignment);
    }
    return true;
}

/* A count of items that take at least `each` bytes. */
static bool read_count(lb_cursor *c, const char *what, uint64_t least,
                       uint64_t *n)
{
    if (!lb_cursor_u64(c, what, n)) return false;
    if (*n > lb_cursor_left(c) / least)
        return lb_refuse(c->cx, c->r->file[0],
                         "%s is %llu, but only %llu bytes are left in the file",
                         what, (unsigned long long)*n,
                         (unsigned long long)lb_cursor_left(c));
    return true;
}

static bool read_version(lb_cursor *c)
{
    uint32_t version = 0;
    if (!lb_cursor_skip(c, 4, "the magic")) return false;
    if (!lb_cursor_u32(c, "the version", &version)) return false;
    if (version == 2 || version == VERSION) return true;
    return lb_refuse(c->cx, c->r->file[0],
                     "unsupported GGUF version %u%s (supported: 2 and 3)",
                     version, version & 0xffff ? "" : " (big-endian?)");
}

static bool gguf_open(lb_ctx *cx, lb_reader *r)
{
    lb_cursor c = {.cx = cx, .r = r};
    uint64_t n_tensors = 0, n_meta = 0;
    if (!read_version(&c) ||
        !read_count(&c, "the number of tensors", 8 + 4 + 4 + 8, &n_tensors) ||
        !read_count(&c, "the number of values", 8 + 1 + 4 + 1, &n_meta))
        return false;
    r->tensor = lb_arena_alloc(cx, &r->arena, n_tensors, sizeof *r->tensor);
    r->meta = lb_arena_alloc(cx, &r->arena, n_meta, sizeof *r->meta);
    if (!r->tensor || !r->meta) return false;
    for (; r->n_meta < (int64_t)n_meta; r->n_meta++)
        if (!read_value(&c, &r->meta[r->n_meta])) return false;
    const uint64_t alignment = alignment_of(r->meta, r->n_meta);
    if (!alignment)
        return lb_refuse(cx, r->file[0],
                         "%s is not a power of two, stored as u32",
                         alignment_key);
    for (; r->n_tensors < (int64_t)n_tensors; r->n_tensors++)
        if (!read_tensor(&c, &r->tensor[r->n_tensors])) return false;
    return place_tensors(&c, alignment);
}

/* ---- writing ------------------------------------------------------------- */

static void put_string(lb_bytes *b, const void *text, uint64_t n)
{
    lb_bytes_u64(b, n);
    lb_bytes_put(b, text, (size_t)n);
}

static bool put_value(lb_ctx *cx, lb_bytes *b, const lb_meta *m)
{
    const unsigned type = m->type;
    if (!m->key[0] || type >= LB_N_META ||
        (type == LB_META_ARRAY && (unsigned)m->item >= LB_N_META) ||
        (type != LB_META_ARRAY && type != LB_META_STRING &&
         m->size != value_size[type]))
        return lb_fail(cx, LB_E_ARG,
                       "key '%s': invalid value of type %u and %llu bytes",
                       LB_NAME(m->key), type, (unsigned long long)m->size);
    put_string(b, m->key, strlen(m->key));
    lb_bytes_u32(b, type);
    if (type == LB_META_STRING) {
        put_string(b, m->bytes, m->size);
        return true;
    }
    if (type == LB_META_ARRAY) {
        lb_bytes_u32(b, m->item);
        lb_bytes_u64(b, m->n);
    }
    lb_bytes_put(b, m->bytes, (size_t)m->size);
    return true;
}

static bool put_tensor(lb_ctx *cx, lb_bytes *b, const lb_tensor *t)
{
    const int len = types[t->id].len;
    const size_t n = strlen(t->name);
    if (n > NAME_MOST || t->rank > RANK_MOST)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "tensor '%s' has a name of %zu bytes and rank %d; the "
                       "maxima of GGUF are %d and %d",
                       LB_NAME(t->name), n, t->rank, NAME_MOST, RANK_MOST);
    if (t->rank && t->dim[t->rank - 1] % len)
        return lb_fail(cx, LB_E_SHAPE,
                       "tensor '%s' has rows of %lld elements, not a multiple "
                       "of the block size of %s, %d",
                       LB_NAME(t->name), (long long)t->dim[t->rank - 1],
                       t->type, len);
    put_string(b, t->name, n);
    lb_bytes_u32(b, (uint32_t)t->rank);
    for (int i = t->rank - 1; i >= 0; i--)
        lb_bytes_u64(b, (uint64_t)t->dim[i]);
    lb_bytes_u32(b, (uint32_t)t->id);
    lb_bytes_u64(b, t->begin);
    return true;
}

static bool gguf_compose(lb_ctx *cx, lb_writer *w)
{
    lb_bytes *b = &w->header;
    const uint64_t alignment = alignment_of(w->meta, w->n_meta);
    uint64_t at = 0;
    if (!alignment || alignment > ALIGNMENT_MOST)
        return lb_fail(cx, LB_E_ARG,
                       "%s is not a power of two up to %d, stored as u32",
                       alignment_key, ALIGNMENT_MOST);
    lb_bytes_put(b, "GGUF", 4);
    lb_bytes_u32(b, VERSION);
    lb_bytes_u64(b, (uint64_t)w->n_tensors);
    lb_bytes_u64(b, (uint64_t)w->n_meta);
    for (int64_t i = 0; i < w->n_meta; i++)
        if (!put_value(cx, b, &w->meta[i])) return false;
    for (int64_t i = 0; i < w->n_tensors; i++) {
        lb_tensor *t = &w->tensor[i];
        t->begin = at;
        if (!put_tensor(cx, b, t)) return false;
        at += t->size + padding(t->size, alignment);
        if (at > INT64_MAX)
            return lb_fail(cx, LB_E_SIZE, "the file would exceed %lld bytes",
                           (long long)INT64_MAX);
    }
    lb_bytes_fill(b, 0, (size_t)padding(b->n, alignment));
    for (int64_t i = 0; i < w->n_tensors; i++)
        w->tensor[i].begin += b->n;
    w->total = b->n + at;
    return true;
}

const lb_container lb_container_gguf = {
    .name = "gguf",
    .coding = types,
    .probe = gguf_probe,
    .open = gguf_open,
    .compose = gguf_compose,
};
