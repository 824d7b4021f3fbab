/* test_io_gguf_meta.c - GGUF metadata through other containers and back: every
 * type, bit for bit, in the same order; and the metadata that describes the
 * types in a model's GGUF file.
 */
#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "core/core.h"
#include "io/containers/container.h"
#include "io_golden.h"
#include "refused.h"
#include "scratch.h"

static lb_ctx *cx;
static char root[SCRATCH_MAX];

static scratch_path in(const char *name)
{
    return scratch_in(root, name, "");
}

/* ---- a GGUF file --------------------------------------------------------- */

enum { MOST = 64 };
static lb_meta meta[MOST];
static int64_t n_meta;

static void add(const char *key, lb_meta_type type, lb_meta_type item,
                uint64_t n, const void *bytes, uint64_t size)
{
    static uint8_t
        room[4096]; /* bytes may be a literal of the caller's block */
    static size_t used;
    if (size > sizeof room - used) exit(2);
    uint8_t *to = room + used;
    if (size) memcpy(to, bytes, size);
    used += size;
    meta[n_meta++] = (lb_meta){key, type, item, n, to, size};
}

static void add_text(const char *key, const char *text)
{
    add(key, LB_META_STRING, LB_META_U8, 1, text, strlen(text));
}

#define SCALAR(key, type, ...)                                                 \
    add(key, type, LB_META_U8, 1, (const uint8_t[]){__VA_ARGS__},              \
        sizeof((const uint8_t[]){__VA_ARGS__}))
#define ARRAY(key, item, n, ...)                                               \
    add(key, LB_META_ARRAY, item, n, (const uint8_t[]){__VA_ARGS__},           \
        sizeof((const uint8_t[]){__VA_ARGS__}))
#define LEN(n) n, 0, 0, 0, 0, 0, 0, 0

/* Bytes as in the file. Empty ones have no literal. */
static void add_scalars(void)
{
    SCALAR("u8", LB_META_U8, 255);
    SCALAR("i8", LB_META_I8, 0x80);
    SCALAR("u16", LB_META_U16, 0xff, 0xff);
    SCALAR("i16", LB_META_I16, 0, 0x80);
    SCALAR("u32", LB_META_U32, 0xff, 0xff, 0xff, 0xff);
    SCALAR("i32", LB_META_I32, 0, 0, 0, 0x80);
    SCALAR("u64", LB_META_U64, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
    SCALAR("i64", LB_META_I64, 0, 0, 0, 0, 0, 0, 0, 0x80);
    SCALAR("i64.minus", LB_META_I64, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
           0xff);
    SCALAR("f32", LB_META_F32, 0xcd, 0xcc, 0xcc, 0x3d); /* 0.1 */
    SCALAR("f32.minus_zero", LB_META_F32, 0, 0, 0, 0x80);
    SCALAR("f32.least", LB_META_F32, 1, 0, 0, 0); /* 1e-45 */
    SCALAR("f32.most", LB_META_F32, 0xff, 0xff, 0x7f, 0x7f);
    SCALAR("f32.nan", LB_META_F32, 0x34, 0x12, 0xc0, 0xff); /* payload */
    SCALAR("f32.signalling", LB_META_F32, 1, 0, 0x80, 0x7f);
    SCALAR("f64", LB_META_F64, 0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0xbf);
    SCALAR("f64.third", LB_META_F64, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5,
           0x3f);
    SCALAR("f64.inf", LB_META_F64, 0, 0, 0, 0, 0, 0, 0xf0, 0xff);
    SCALAR("bool.false", LB_META_BOOL, 0);
    SCALAR("bool.true", LB_META_BOOL, 1);
    SCALAR("bool.odd", LB_META_BOOL, 2);
    SCALAR("general.alignment", LB_META_U32, 64, 0, 0, 0);
}

static void add_strings(void)
{
    add_text("general.architecture", "llama");
    add_text("empty", "");
    add_text("quoted", "h\xc3\xa9llo \"x\" \\ \n\x01");
    add_text("latin", "caf\xe9"); /* not UTF-8 */
    add("zero", LB_META_STRING, LB_META_U8, 1, "a\0b", 3);
    add_text("gguf", "a name that is taken");
    add_text("gguf.u8", "another");
    add_text("lowbit.w", "{}");
    add_text("format", "not pt");
}

static void add_arrays(void)
{
    ARRAY("a.u8", LB_META_U8, 3, 0, 1, 255);
    ARRAY("a.i16", LB_META_I16, 2, 0xff, 0xff, 1, 0);
    ARRAY("a.f32", LB_META_F32, 2, 0, 0, 0xc0, 0x7f, 0, 0, 0x80, 0x3f);
    ARRAY("a.bool", LB_META_BOOL, 3, 1, 0, 7);
    add("a.none", LB_META_ARRAY, LB_META_STRING, 0, "", 0);
    add("a.none.u64", LB_META_ARRAY, LB_META_U64, 0, "", 0);
    ARRAY("a.string", LB_META_STRING, 4, LEN(1), 'a', LEN(0), LEN(2), 0xc3,
          0xa9, LEN(1), 0xff);
    ARRAY("a.array", LB_META_ARRAY, 2, 0, 0, 0, 0, LEN(2), 5, 6, /* u8: 5, 6 */
          9, 0, 0, 0, LEN(2),                                    /* arrays: */
          8, 0, 0, 0, LEN(1), LEN(2), 'h', 'i',                  /* "hi" */
          11, 0, 0, 0, LEN(0));                                  /* i64: none */
}

static const int64_t square[] = {32, 64}, line[] = {64};
static const lb_tensor tensors[] = {
    {.name = "z.weight", .type = "F16", .rank = 2, .dim = square},
    {.name = "a.bias", .type = "F32", .rank = 1, .dim = line},
    {.name = "m.weight", .type = "F32", .rank = 2, .dim = square},
    {.name = "b.weight", .type = "F16", .rank = 2, .dim = square},
};
enum { N = sizeof tensors / sizeof *tensors };

static void write_gguf(const char *path, const lb_meta *m, int64_t n)
{
    uint8_t bytes[32 * 64 * 4];
    lb_writer *w = lb_writer_open(cx, lb_container_named("gguf"), path, tensors,
                                  N, m, n, NULL);
    CHECK(w != NULL);
    for (size_t i = 0; i < sizeof bytes; i++) /* finite as f16 and f32 */
        bytes[i] = (uint8_t)(i * 7 % 60);
    for (int64_t i; w && (i = lb_writer_next(w)) >= 0;)
        CHECK(lb_writer_put(cx, w, bytes, w->tensor[i].size));
    CHECK(lb_writer_close(cx, w, true));
}

static bool convert(const char *from, const char *to, const char *kind)
{
    const lb_convert_options o = {.struct_size = sizeof o,
                                  .kind = kind,
                                  .keep = true,
                                  .no_sync = true,
                                  .directory = strcmp(kind, "dir") == 0};
    lb_convert_options c = o;
    if (c.directory) c.kind = NULL;
    return lb_convert_file(cx, in(from).s, in(to).s, &c);
}

/* ---- round trips --------------------------------------------------------- */

static void test_round_trips(void)
{
    static const char *const way[][2] = {
        {"t.safetensors", "safetensors"}, {"t.npz", "npz"}, {"t", "dir"}};
    add_scalars();
    add_strings();
    add_arrays();
    CHECK(n_meta > 30);
    write_gguf(in("t.gguf").s, meta, n_meta);
    for (int i = 0; i < 3; i++) {
        CHECK(convert("t.gguf", way[i][0], way[i][1]));
        CHECK(convert(way[i][0], "back.gguf", "gguf"));
        CHECK_EQ_S(lb_error(cx), "");
        if (check_fails(io_same_bytes(in("t.gguf").s, in("back.gguf").s)))
            fprintf(stderr, "%s: different bytes\n", way[i][0]);
    }
    /* The strings are the same in every container. */
    CHECK(convert("t.safetensors", "u.npz", "npz"));
    CHECK(convert("u.npz", "u.safetensors", "safetensors"));
    CHECK(convert("u.safetensors", "back.gguf", "gguf"));
    CHECK(io_same_bytes(in("t.gguf").s, in("back.gguf").s));
    CHECK_EQ_S(lb_error(cx), "");
}

/* A decimal comma in the locale does not affect the file. */
static void test_locale(void)
{
    const bool comma = setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL;
    CHECK(convert("t.gguf", "locale.safetensors", "safetensors"));
    setlocale(LC_NUMERIC, "C");
    CHECK(io_same_bytes(in("t.safetensors").s, in("locale.safetensors").s));
    if (!comma) fprintf(stderr, "no locale with a decimal comma: not tested\n");
}

/* Strings by name, as other programs find them. */
static void test_readable(void)
{
    lb_file *f = lb_file_open(cx, in("t.safetensors").s, NULL);
    static const char *const want[][2] = {
        {"general.architecture", "llama"},
        {"format", "not pt"},
        {"gguf.u32", "{\"type\":\"u32\",\"value\":4294967295}"},
        {"gguf.i64", "{\"type\":\"i64\",\"value\":-9223372036854775808}"},
        {"gguf.f32", "{\"type\":\"f32\",\"value\":0.1}"},
        {"gguf.bool.true", "{\"type\":\"bool\",\"value\":true}"},
        {"gguf.f32.nan",
         "{\"type\":\"f32\",\"value\":{\"bytes\":\"3412c0ff\"}}"},
        {"gguf.latin",
         "{\"type\":\"string\",\"value\":{\"bytes\":\"636166e9\"}}"},
        {"gguf.gguf", "{\"type\":\"string\",\"value\":\"a name that is "
                      "taken\"}"},
        {"gguf.a.array",
         "{\"type\":\"array\",\"of\":\"array\",\"value\":[{\"of\":\"u8\","
         "\"value\":[5,6]},{\"of\":\"array\",\"value\":[{\"of\":\"string\","
         "\"value\":[\"hi\"]},{\"of\":\"i64\",\"value\":[]}]}]}"},
    };
    CHECK(f != NULL);
    for (size_t i = 0; f && i < sizeof want / sizeof *want; i++) {
        const lb_meta *m = lb_file_find_meta(f, want[i][0]);
        char text[512] = "";
        CHECK(m && m->type == LB_META_STRING && m->size < sizeof text);
        if (m && m->size < sizeof text) memcpy(text, m->bytes, m->size);
        CHECK_EQ_S(text, want[i][1]);
    }
    lb_file_close(f);
}

/* Ordinary metadata of safetensors, through GGUF and back. */
static void test_ordinary(void)
{
    const lb_meta m[] = {
        {"author", LB_META_STRING, LB_META_U8, 1, (const uint8_t *)"me", 2},
        {"format", LB_META_STRING, LB_META_U8, 1, (const uint8_t *)"pt", 2}};
    lb_array *a = lb_random_normal(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(4, 8));
    const lb_planned p = {.name = "w", .array = a};
    const lb_save_options o = {.struct_size = sizeof o, .meta = m, .n_meta = 2};
    CHECK(lb_save(cx, in("o.safetensors").s, &p, 1, &o));
    CHECK(convert("o.safetensors", "o.gguf", "gguf"));
    CHECK(convert("o.safetensors", "o.npz", "npz"));
    CHECK(convert("o.gguf", "p.safetensors", "safetensors"));
    CHECK(convert("o.npz", "q.safetensors", "safetensors"));
    CHECK(io_same_bytes(in("o.safetensors").s, in("q.safetensors").s));
    lb_file *f = lb_file_open(cx, in("p.safetensors").s, NULL);
    for (int i = 0; f && i < 2; i++) {
        const lb_meta *its = lb_file_find_meta(f, m[i].key);
        CHECK(its && its->size == 2 && memcmp(its->bytes, m[i].bytes, 2) == 0);
    }
    CHECK(f != NULL);
    lb_file_close(f);
}

/* ---- wrong texts --------------------------------------------------------- */

static void refuse_text(const char *key, const char *text, const char *say)
{
    const char order[] = "{\"version\":1,\"keys\":[\"x\"],\"tensors\":[]}";
    const lb_meta m[] = {{"gguf", LB_META_STRING, LB_META_U8, 1,
                          (const uint8_t *)order, sizeof order - 1},
                         {key, LB_META_STRING, LB_META_U8, 1,
                          (const uint8_t *)text, strlen(text)}};
    const bool only = strcmp(key, "gguf") == 0;
    lb_array *a = lb_random_normal(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(4, 8));
    const lb_planned p = {.name = "w", .array = a};
    const lb_save_options o = {
        .struct_size = sizeof o, .meta = m + only, .n_meta = 2 - only};
    CHECK(lb_save(cx, in("wrong.safetensors").s, &p, 1, &o));
    REFUSED(convert("wrong.safetensors", "wrong.gguf", "gguf"), LB_E_CONTENT,
            say);
    CHECK(!scratch_exists(in("wrong.gguf").s));
}

static void test_wrong(void)
{
    static const char range[] = "a number out of range for its type";
    refuse_text("gguf.x", "5", "metadata 'gguf.x' has no object at byte 0");
    refuse_text("gguf.x", "{}", "a missing entry");
    refuse_text("gguf.x", "{\"value\":5}", "an unexpected entry");
    refuse_text("gguf.x", "{\"type\":\"u9\",\"value\":5}", "an unknown type");
    refuse_text("gguf.x", "{\"type\":\"u8\",\"value\":256}", range);
    refuse_text("gguf.x", "{\"type\":\"u8\",\"value\":-1}", range);
    refuse_text("gguf.x", "{\"type\":\"i8\",\"value\":128}", range);
    refuse_text("gguf.x", "{\"type\":\"i8\",\"value\":-129}", range);
    refuse_text("gguf.x", "{\"type\":\"u64\",\"value\":18446744073709551616}",
                range);
    refuse_text("gguf.x", "{\"type\":\"u32\",\"value\":1.5}", range);
    refuse_text("gguf.x", "{\"type\":\"u32\",\"value\":\"5\"}", range);
    refuse_text("gguf.x", "{\"type\":\"f32\",\"value\":1e39}", range);
    refuse_text("gguf.x", "{\"type\":\"bool\",\"value\":1}", "no bool");
    refuse_text("gguf.x", "{\"type\":\"f32\",\"value\":{\"bytes\":\"00\"}}",
                "bytes of the wrong length");
    refuse_text("gguf.x", "{\"type\":\"string\",\"value\":{\"bytes\":\"0g\"}}",
                "bytes that are not hexadecimal");
    refuse_text("gguf.x", "{\"type\":\"u8\",\"value\":5} 6",
                "more than one value");
    refuse_text("gguf.x", "{\"type\":\"array\",\"of\":\"u8\",\"value\":5}",
                "no array");
    refuse_text("gguf", "{\"version\":2}", "a version other than 1");
    refuse_text("gguf", "{\"version\":1,\"keys\":5}", "no array");
    char deep[512] = "{\"type\":\"array\",\"of\":\"array\",\"value\":[";
    for (int i = 0; i < 8; i++)
        strcat(deep, "{\"of\":\"array\",\"value\":[");
    for (int i = 0; i < 8; i++)
        strcat(deep, "]}");
    strcat(deep, "]}");
    refuse_text("gguf.x", deep, "arrays nested too deeply");
}

/* ---- file type metadata -------------------------------------------------- */

static void check_types(const char *path, int64_t version, int64_t type)
{
    lb_file *f = lb_file_open(cx, in(path).s, NULL);
    const char *const key[] = {"general.quantization_version",
                               "general.file_type"};
    const int64_t want[] = {version, type};
    CHECK(f != NULL);
    for (int i = 0; f && i < 2; i++) {
        const lb_meta *m = lb_file_find_meta(f, key[i]);
        CHECK_EQ_I(m ? (int64_t)lb_get_u32(m->bytes) : -1, want[i]);
        CHECK(!m || m->type == LB_META_U32);
    }
    lb_file_close(f);
}

static void quantize(const char *from, const char *to, const char *type,
                     double bits)
{
    lb_quantize_options o = {.struct_size = sizeof o,
                             .kind = "gguf",
                             .no_sync = true,
                             .config = {.format = type},
                             .target_bits = bits};
    CHECK(lb_quantize_file(cx, in(from).s, in(to).s, &o));
    CHECK_EQ_S(lb_error(cx), "");
}

static void test_file_type(void)
{
    static const struct {
        const char *format;
        int64_t number;
    } types[] = {{"q8_0", 7}, {"q4_0", 2}, {"iq4_nl", 25}};
    const lb_meta m[] = {{"general.architecture", LB_META_STRING, LB_META_U8, 1,
                          (const uint8_t *)"llama", 5},
                         {"general.file_type", LB_META_U32, LB_META_U8, 1,
                          (const uint8_t[]){1, 0, 0, 0}, 4},
                         {"general.name", LB_META_STRING, LB_META_U8, 1,
                          (const uint8_t *)"x", 1}};
    write_gguf(in("model.gguf").s, m, 3);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        quantize("model.gguf", "q.gguf", types[i].format, 0);
        check_types("q.gguf", 2, types[i].number);
        /* llama-quantize writes them last, in this order */
        lb_file *f = lb_file_open(cx, in("q.gguf").s, NULL);
        CHECK(f && lb_file_meta(f, 3) && !lb_file_meta(f, 4));
        if (f) CHECK_EQ_S(lb_file_meta(f, 1)->key, "general.name");
        if (f) CHECK_EQ_S(lb_file_meta(f, 3)->key, "general.file_type");
        lb_file_close(f);
    }
    quantize("model.gguf", "q.gguf", NULL, 9);
    check_types("q.gguf", 2, 7); /* the type of most weights */
    /* If types do not change, neither do the metadata. */
    CHECK(convert("model.gguf", "same.gguf", "gguf"));
    CHECK(io_same_bytes(in("model.gguf").s, in("same.gguf").s));
    lb_convert_options c = {
        .struct_size = sizeof c, .kind = "gguf", .no_sync = true};
    quantize("model.gguf", "q.gguf", "q8_0", 0);
    static const struct {
        lb_dtype dtype;
        int64_t number;
    } dense[] = {{LB_F32, 0}, {LB_F16, 1}, {LB_BF16, 32}};
    for (int i = 0; i < 3; i++) {
        c.dtype = dense[i].dtype;
        CHECK(lb_convert_file(cx, in("q.gguf").s, in("d.gguf").s, &c));
        check_types("d.gguf", 2, dense[i].number);
    }
    /* Arrays that are not a model get none. */
    write_gguf(in("arrays.gguf").s, NULL, 0);
    quantize("arrays.gguf", "q.gguf", "q8_0", 0);
    check_types("q.gguf", -1, -1);
}

int main(void)
{
    cx = lb_open(NULL);
    CHECK(cx && scratch_dir(root));
    test_round_trips();
    test_locale();
    test_readable();
    test_ordinary();
    test_wrong();
    test_file_type();
    scratch_remove(root);
    lb_close(cx);
    return check_report("GGUF metadata");
}
