/* test_io_rules.c - for each rule of each container, a file that violates it
 * and the resulting message; and unusual files that are valid. Each is opened
 * from memory and with pread. The rules are those of the reference readers:
 * safetensors' tensor.rs, ggml's gguf.cpp, numpy's format.py.
 *
 * `test_io_rules --dump fuzz/corpus` writes them as seeds for the fuzzers.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "core/core.h"
#include "io/containers/container.h"

static lb_ctx *cx;
static const char *dump; /* destination, or NULL */

static void write_down(const uint8_t *bytes, size_t n)
{
    static int number;
    char path[256];
    for (int i = 0; lb_containers[i]; i++) {
        if (!lb_containers[i]->probe(bytes, n < LB_PROBE ? n : LB_PROBE))
            continue;
        snprintf(path, sizeof path, "%s/%s/rule-%03d.bin", dump,
                 lb_containers[i]->name, number++);
        FILE *f = fopen(path, "wb");
        CHECK(f && fwrite(bytes, 1, n, f) == n);
        if (f) fclose(f);
        return;
    }
}

static void judge(lb_reader *r, const char *name, const char *say)
{
    const char *got = r ? "" : lb_error(cx);
    const bool ok = say ? !r && strstr(got, say) : r != NULL;
    if (check_fails(ok))
        fprintf(stderr, "rules: %s: want \"%s\", got \"%s\"\n", name,
                say ? say : "", got);
    if (!r && say) CHECK_EQ_I(lb_error_status(cx), LB_E_CONTENT);
    lb_reader_close(r);
    lb_clear(cx);
}

/* say NULL: it is valid. */
static void expect(const char *name, const void *bytes, size_t n,
                   const char *say)
{
    uint8_t *some = malloc(n ? n : 1);
    memcpy(some, bytes, n);
    if (dump) write_down(some, n);
    judge(lb_reader_open_file(cx, lb_infile_wrap(cx, "test", some, n), NULL),
          name, say);
    free(some);
    const int fd = memfd_create("test", 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK_EQ_I(write(fd, bytes, n), n);
    judge(lb_reader_open(cx, path, &(lb_read_options){.no_map = true}), name,
          say);
    close(fd);
}

/* ---- safetensors --------------------------------------------------------- */

typedef struct text_rule {
    const char *text;
    int data; /* bytes that follow */
    const char *say;
} text_rule;

static const text_rule safetensors_rules[] = {
    {"{}", 0, NULL},
    {"{}      ", 0, NULL},
    {" \t\r\n{}", 0, NULL},
    {"{}", 1, "the tensors end at byte 0 of the data, which has 1 bytes"},
    {"{", 0, "no string at byte 1"},
    {"{}x", 0, "more than one value at byte 2"},
    {"{}\\", 0, "more than one value"},
    {"{\"a\"}", 0, "no colon at byte 4"},
    {"{\"a\":}", 0, "no value at byte 5"},
    {"{\"a\":1}", 0, "no object at byte 5"},
    {"{\"a\":{}}", 0, "tensor 'a' has no dtype"},
    {"{\"a\":{\"dtype\":\"U8\"}}", 0, "tensor 'a' has no shape"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 0, "no data_offsets"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, NULL},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 0,
     "file is truncated: tensor 'a' ends at byte 1, but there are only 0"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],"
     "\"x\":{\"y\":[1.5e-3,null,true,false,\"\\u00e9\"]}}}",
     1, NULL},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[],"
     "\"data_offsets\":[0,1]}}",
     1, "tensor 'a' has a duplicate dtype"},
    {"{\"a\":{\"dtype\":\"U9\",\"shape\":[],\"data_offsets\":[0,1]}}", 1,
     "dtype 'U9', which safetensors does not have"},
    {"{\"a\":{\"dtype\":8,\"shape\":[],\"data_offsets\":[0,1]}}", 1,
     "no string at byte 14"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,],\"data_offsets\":[0,1]}}", 1,
     "no value"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1,
     "a number that is not a non-negative integer at byte 28"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]}}", 1,
     "a number that is not a non-negative integer at byte 28"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[01],\"data_offsets\":[0,1]}}", 1,
     "neither a comma nor a closing bracket"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[9223372036854775808],"
     "\"data_offsets\":[0,1]}}",
     1, "a number that is too large at byte 28"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1,
     "data_offsets that are not [begin, end]"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}", 1,
     "data_offsets that are not [begin, end]"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,0]}}", 1,
     "not [begin, end]: got 1 and 0"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1,
     "has 1 bytes of data, but its shape and dtype U8 need 2"},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[2,1],\"data_offsets\":[0,1]}}", 1,
     NULL},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1,
     "with dtype F4 overflows or is not whole bytes"},
    {"{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]}}", 3,
     NULL},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[4294967296,4294967296],"
     "\"data_offsets\":[0,0]}}",
     0, "overflows or is not whole bytes"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2,
     "begins at byte 1 of the data, but the tensors before it end at 0"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
     3, "tensor 'b' begins at byte 1 of the data, but the"},
    {"{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
     "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
     2, NULL},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
     2, "duplicate tensor 'a'"},
    {"{\"\\u0000\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1,
     "a name that contains a 0"},
    {"{\"\\ud800\":{}}", 0, "no escape"},
    {"{\"\\ud83d\\ude00\":{\"dtype\":\"U8\",\"shape\":[],"
     "\"data_offsets\":[0,1]}}",
     1, NULL},
    {"{\"\\udc00\":{}}", 0, "no escape"},
    {"{\"\\ud83d\\u0041\":{}}", 0, "no escape"},
    {"{\"\\ud83d\\ue000\":{}}", 0, "no escape"},
    {"{\"\\ud83d\\ud83d\":{}}", 0, "no escape"},
    {"{\"\\u12g4\":{}}", 0, "no escape"},
    {"{\"\\x\":{}}", 0, "no escape"},
    {"{\"\xc0\x80\":{}}", 0, "invalid UTF-8"},
    {"{\"\xed\xa0\x80\":{}}", 0, "invalid UTF-8"},
    {"{\"a\n\":{}}", 0, "a control character at byte 3"},
    {"{\"__metadata__\":{\"a\":\"b\",\"c\":\"\"}}", 0, NULL},
    {"{\"__metadata__\":null}", 0, NULL},
    {"{\"__metadata__\":{\"a\":1}}", 0, "no string at byte 21"},
    {"{\"__metadata__\":[]}", 0, "no object at byte 16"},
    {"{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", 0,
     "duplicate metadata key 'a'"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "duplicate __meta"},
    {"{\"__metadata__\":null,\"__metadata__\":{}}", 0, "duplicate __meta"},
    {"{\"a\":{\"dtype\":\"U8\\u0000\",\"shape\":[],\"data_offsets\":[0,1]}}", 1,
     "dtype '', which safetensors does not have"},
    {"{\"a\":{\"dtype\\u0000\":1,\"dtype\":\"U8\",\"shape\":[],"
     "\"data_offsets\":[0,1]}}",
     1, NULL},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],"
     "\"x\":[1e308,-1E+308,1e-999]}}",
     1, NULL},
    {"{\"a\":{\"x\":1e309}}", 0, "a number that is too large at byte 10"},
    {"{\"a\":{\"x\":-1E999}}", 0, "a number that is too large at byte 10"},
    {"{\"a\":{\"x\":NaN}}", 0, "no value"},
    {"{\"a\":{\"x\":-Infinity}}", 0, "no number"},
    {"{\"a\":{\"x\":nul}}", 0, "no value"},
    {"{\"a\":{\"x\":1.}}", 0, "no number"},
    {"{\"a\":{\"x\":+1}}", 0, "no value"},
};

static void put_safetensors(lb_bytes *b, const char *text, size_t n, int data)
{
    lb_bytes_u64(b, n);
    lb_bytes_put(b, text, n);
    lb_bytes_fill(b, 7, (size_t)data);
}

static void test_safetensors(void)
{
    const size_t n = sizeof safetensors_rules / sizeof *safetensors_rules;
    for (size_t i = 0; i < n; i++) {
        const text_rule *t = &safetensors_rules[i];
        lb_bytes b = {.heap = cx->heap};
        put_safetensors(&b, t->text, strlen(t->text), t->data);
        expect(t->text, b.at, b.n, t->say);
        lb_bytes_free(&b);
    }
    expect("NUL padding", "\x04\0\0\0\0\0\0\0{}\0\0", 12,
           "more than one value");
    expect("longer than the file", "\x03\0\0\0\0\0\0\0{}", 10,
           "a header of 3 bytes in a file of 10");
    expect("longer than the limit", "\x01\xe1\xf5\x05\0\0\0\0{}", 10,
           "a header of 100000001 bytes; the maximum is 100000000");
    expect("wrapping", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10,
           "a header of 18446744073709551615 bytes");
}

/* The maximum depth of serde_json, and one more. */
static void test_nesting(void)
{
    for (int deep = 125; deep <= 126; deep++) {
        lb_bytes b = {.heap = cx->heap}, text = {.heap = cx->heap};
        lb_bytes_text(&text, "{\"a\":{\"dtype\":\"U8\",\"shape\":[],"
                             "\"data_offsets\":[0,0],\"x\":");
        lb_bytes_fill(&text, '[', (size_t)deep);
        lb_bytes_fill(&text, ']', (size_t)deep);
        lb_bytes_text(&text, "}}");
        put_safetensors(&b, (const char *)text.at, text.n, 0);
        expect("nesting", b.at, b.n,
               deep == 125 ? "need 1" : "too deep nesting");
        lb_bytes_free(&b);
        lb_bytes_free(&text);
    }
}

static const text_rule index_rules[] = {
    {"{\"weight_map\":{}}", 0, NULL},
    {"{}              ", 0, "no \"weight_map\""},
    {"{\"weight_map\":[]}", 0, "no object"},
    {"{\"weight_map\":{\"a\":1}}", 0, "no string"},
    {"{\"weight_map\":{\"a\":\"\"}}", 0, "not a file name in"},
    {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", 0, "not a file name in"},
    {"{\"weight_map\":{\"a\":\"..\"}}", 0, "not a file name in"},
    {"{\"weight_map\":{\"a\":\"../x\"}}", 0, "not a file name in"},
    {"{\"weight_map\":{\"a\":\"b\\\\c\"}}", 0, "not a file name in"},
    {"{\"weight_map\":{\"a\":\"b\\u0000c\"}}", 0, "not a file name in"},
    {"{\"weight_map\":{},\"weight_map\":{}}", 0, "duplicate weight_map"},
    {"{\"metadata\":{\"total_size\":1},\"weight_map\":{}} x", 0,
     "more than one value"},
};

/* ---- GGUF ---------------------------------------------------------------- */

static lb_bytes gguf; /* being composed */

static void head(uint32_t version, uint64_t tensors, uint64_t values)
{
    lb_bytes_free(&gguf);
    gguf = (lb_bytes){.heap = cx->heap};
    lb_bytes_put(&gguf, "GGUF", 4);
    lb_bytes_u32(&gguf, version);
    lb_bytes_u64(&gguf, tensors);
    lb_bytes_u64(&gguf, values);
}

static void string(const char *s)
{
    lb_bytes_u64(&gguf, strlen(s));
    lb_bytes_put(&gguf, s, strlen(s));
}

static void tensor(const char *name, uint32_t rank, const int64_t *dim,
                   uint32_t type, uint64_t offset)
{
    string(name);
    lb_bytes_u32(&gguf, rank);
    for (uint32_t i = 0; i < rank; i++)
        lb_bytes_u64(&gguf, (uint64_t)dim[i]);
    lb_bytes_u32(&gguf, type);
    lb_bytes_u64(&gguf, offset);
}

/* Pads the header to 32 and adds data. */
static void data(size_t n)
{
    lb_bytes_fill(&gguf, 0, -gguf.n % 32);
    lb_bytes_fill(&gguf, 5, n);
}

static void gguf_is(const char *name, const char *say)
{
    expect(name, gguf.at, gguf.n, say);
}

static void test_gguf_heads(void)
{
    head(3, 0, 0);
    gguf_is("empty", NULL);
    head(2, 0, 0);
    gguf_is("version 2", NULL);
    const uint32_t versions[] = {0, 1, 4, 0x03000000};
    for (int i = 0; i < 4; i++) {
        head(versions[i], 0, 0);
        gguf_is("version", "(supported: 2 and 3)");
    }
    head(3, 1, 0);
    gguf_is("no tensor", "of tensors is 1, but only 8 bytes are left");
    head(3, UINT64_MAX, 0);
    gguf_is("tensors", "the number of tensors is 18446744073709551615");
    head(3, 0, (uint64_t)1 << 62);
    gguf_is("values", "the number of values is 4611686018427387904");
}

static void value(const char *key, uint32_t type)
{
    head(3, 0, 1);
    string(key);
    lb_bytes_u32(&gguf, type);
}

static void array(uint32_t item, uint64_t n)
{
    lb_bytes_u32(&gguf, item);
    lb_bytes_u64(&gguf, n);
}

static void test_gguf_values(void)
{
    value("", 0);
    lb_bytes_fill(&gguf, 0, 4);
    gguf_is("empty key", "has 0 bytes, not 1 to");
    value("k", 13);
    lb_bytes_fill(&gguf, 0, 8);
    gguf_is("type", "key 'k' has unknown type 13 (known: 0 to 12)");
    value("k", 12);
    lb_bytes_fill(&gguf, 0, 7);
    gguf_is("cut", "a value: 8 bytes at offset 37, but only 7 are left");
    value("k", 8);
    lb_bytes_u64(&gguf, 3);
    lb_bytes_put(&gguf, "ab", 2);
    gguf_is("cut string", "3 bytes at offset 45, but only 2 are left");
    value("k", 8);
    lb_bytes_u64(&gguf, UINT64_MAX);
    gguf_is("huge string", "a string of 18446744073709551615 bytes");
    value("k", 9);
    array(4, UINT64_MAX / 4 + 2);
    lb_bytes_fill(&gguf, 0, 16);
    gguf_is("wrapping array", "an array of 4611686018427387905 items");
    value("k", 9);
    array(8, 3);
    lb_bytes_fill(&gguf, 0, 16);
    gguf_is("cut array", "an array of 3 items, but only 16 bytes are left");
    value("k", 9);
    array(13, 0);
    gguf_is("items", "key 'k' has unknown type 13");
    value("k\001", 0);
    gguf.at[32] = 0;
    lb_bytes_fill(&gguf, 0, 1);
    gguf_is("0 in a key", "a key at byte 32 contains a 0");
    head(3, 0, 2);
    for (int i = 0; i < 2; i++) {
        string("same");
        lb_bytes_u32(&gguf, 0);
        lb_bytes_fill(&gguf, 0, 1);
    }
    gguf_is("twice", "duplicate metadata key 'same'");
}

/* Nested arrays: eight levels, and not nine; the cost of wide ones is linear.
 */
static void test_gguf_nesting(void)
{
    for (int deep = 8; deep <= 9; deep++) {
        value("k", 9);
        for (int i = 1; i < deep; i++)
            array(9, 1);
        array(0, 2);
        lb_bytes_fill(&gguf, 1, 2);
        gguf_is("deep", deep == 8 ? NULL : "arrays nested deeper than 8");
    }
    value("k", 9);
    array(9, 1000);
    for (int i = 0; i < 1000; i++)
        array(0, 0);
    gguf_is("wide", NULL);
}

static void alignment(uint32_t type, uint64_t v)
{
    value("general.alignment", type);
    if (type == 4)
        lb_bytes_u32(&gguf, (uint32_t)v);
    else
        lb_bytes_u64(&gguf, v);
}

static void test_gguf_alignment(void)
{
    alignment(4, 64);
    gguf_is("alignment", NULL);
    alignment(4, 0);
    gguf_is("alignment 0", "not a power of two, stored as u32");
    alignment(4, 33);
    gguf_is("alignment 33", "not a power of two, stored as u32");
    alignment(10, 32);
    gguf_is("alignment u64", "not a power of two, stored as u32");
    /* larger than the file: it would have tensors */
    alignment(4, 0x80000000u);
    gguf.at[8] = 1;
    tensor("a", 0, NULL, 24, 0);
    lb_bytes_fill(&gguf, 0, 64);
    gguf_is("alignment 2^31", "padding of the header: 2147483");
}

static void one(const char *name, uint32_t rank, const int64_t *dim,
                uint32_t type, uint64_t offset, size_t bytes, const char *say)
{
    head(3, 1, 0);
    tensor(name, rank, dim, type, offset);
    data(bytes);
    gguf_is(say ? say : name, say);
}

static void test_gguf_tensors(void)
{
    static const char long_name[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    const int64_t huge = (int64_t)1 << 62;
    one("scalar", 0, NULL, 0, 0, 32, NULL);
    one("rank 4", 4, (const int64_t[]){1, 2, 3, 4}, 24, 0, 32, NULL);
    one("zero", 2, (const int64_t[]){0, 5}, 0, 0, 0, NULL);
    one("", 1, (const int64_t[]){8}, 0, 0, 32, NULL);
    one(long_name + 1, 1, (const int64_t[]){8}, 0, 0, 32, NULL);
    one(long_name, 1, (const int64_t[]){8}, 0, 0, 32,
        "a tensor's name at byte 32 has 64 bytes, not 0 to 63");
    one("a", 5, (const int64_t[]){1, 1, 1, 1, 1}, 0, 0, 32,
        "has rank 5; the maximum is 4");
    one("a", 1, (const int64_t[]){-1}, 0, 0, 32, "dimension 0 is negative");
    one("a", 1, (const int64_t[]){8}, 43, 0, 32, "type 43 (known: 0 to 42)");
    one("a", 1, (const int64_t[]){8}, 0x80000000u, 0, 32, "type 2147483648");
    one("a", 1, (const int64_t[]){32}, 4, 0, 32,
        "type 4 (Q4_2), which was removed");
    one("a", 1, (const int64_t[]){33}, 8, 0, 64, "block size of Q8_0, 32");
    one("a", 0, NULL, 8, 0, 64, "rows of 1 elements");
    one("a", 2, (const int64_t[]){32, 2}, 8, 0, 96, NULL);
    one("a", 2, (const int64_t[]){huge, 4}, 24, 0, 32, "overflows");
    one("a", 1, (const int64_t[]){huge}, 0, 0, 32, "overflows");
    one("a", 1, (const int64_t[]){huge}, 24, 0, 32,
        "tensor 'a' ends at byte 4611686018427387904, but there are only 32");
    one("a", 1, (const int64_t[]){INT64_MAX}, 24, 0, 32,
        "tensor 'a' ends at byte 9223372036854775807, but there are only 32");
    one("a", 1, (const int64_t[]){8}, 0, 32, 64,
        "tensor 'a' has offset 32, but the tensors before it end at 0");
    /* Without its padding, or part of it, the last tensor is complete. */
    one("a", 1, (const int64_t[]){7}, 0, 0, 31, NULL);
    one("a", 1, (const int64_t[]){7}, 0, 0, 28, NULL);
    one("a", 1, (const int64_t[]){7}, 0, 0, 27,
        "file is truncated: tensor 'a' ends at byte 28, but there are only 27 "
        "bytes of data");
    for (int lacks = 0; lacks < 5; lacks++) { /* the one before must have it */
        head(3, 2, 0);
        tensor("a", 1, (const int64_t[]){7}, 0, 0);
        tensor("b", 1, (const int64_t[]){1}, 0, 32);
        data(36 - (size_t)lacks);
        gguf_is("two", lacks ? "tensor 'b' ends at byte 36" : NULL);
    }
    for (int n = 28; n <= 32; n++) { /* an empty tensor has no bytes to miss */
        head(3, 2, 0);
        tensor("a", 1, (const int64_t[]){7}, 0, 0);
        tensor("b", 1, (const int64_t[]){0}, 0, 32);
        data((size_t)n);
        gguf_is("empty", NULL);
    }
    one("a", 1, (const int64_t[]){7}, 0, 0, 99, NULL); /* bytes after all */
    head(3, 2, 0);
    for (int i = 0; i < 2; i++)
        tensor("same", 1, (const int64_t[]){8}, 0, i ? 32 : 0);
    data(64);
    gguf_is("twice", "duplicate tensor 'same'");
}

/* ---- npy ----------------------------------------------------------------- */

#define NPY(DESCR, FORTRAN, SHAPE)                                             \
    "{'descr': " DESCR ", 'fortran_order': " FORTRAN ", 'shape': " SHAPE ", }"

static const text_rule npy_rules[] = {
    {NPY("'<f4'", "False", "(2,)") "\n", 8, NULL},
    {NPY("'<f4'", "False", "(2,)"), 8, NULL},
    {NPY("'<f4'", "True", "(2, 1)"), 9, NULL}, /* bytes after all */
    {NPY("\"<f4\"", "False", "(2L,)"), 8, NULL},
    {"{'shape':(2,),'descr':'f4','fortran_order':False}", 8, NULL},
    {NPY("'<f4'", "False", "()"), 4, NULL},
    {NPY("'<f4'", "False", "(1,2,)"), 8, NULL},
    {NPY("'|S0'", "False", "(3,)"), 0, NULL},
    {NPY("'<m8[ns]'", "False", "(1,)"), 8, NULL},
    {NPY("'<f4'", "False", "(2,)"), 7,
     "an array of 8 bytes at offset 67 in a file of 74 bytes"},
    {NPY("'<f4'", "False", "(2)"), 8, "its shape is not a tuple"},
    {NPY("'<f4'", "False", "[2]"), 8, "not a tuple"},
    {NPY("'<f4'", "False", "(2"), 8, "no value at byte 54"},
    {NPY("'<f4'", "False", "(-2,)"), 8,
     "axis 0 of its shape is not an integer from"},
    {NPY("'<f4'", "False", "(2 2)"), 8, "no comma"},
    {NPY("'<f4'", "False", "(2, 99999999999999999999)"), 8,
     "axis 1 of its shape is not an integer from 0 to 9223372036854775807"},
    {NPY("'<f8'", "False", "(4294967296,4294967296)"), 8, "overflows"},
    {NPY("'<f4'", "0", "(2,)"), 8, "not a bool"},
    {NPY("'<f4'", "Falsey", "(2,)"), 8, "no value at byte 34"},
    {NPY("'|O'", "False", "(2,)"), 8, "Python objects"},
    {NPY("'|O8'", "False", "(2,)"), 8, "Python objects"},
    {NPY("[('a', '|O')]", "False", "(2,)"), 8, "Python objects"},
    {NPY("'<f3'", "False", "(2,)"), 8, "'<f3' is not a numpy dtype"},
    {NPY("'<x'", "False", "(2,)"), 8, "'<x' is not a numpy dtype"},
    {NPY("''", "False", "(2,)"), 8, "'' is not a numpy dtype"},
    {NPY("'<V9999999999'", "False", "(2,)"), 8, "is not a numpy dtype"},
    {NPY("4", "False", "(2,)"), 8, "neither a string"},
    {NPY("[('a', '<i4'), ('b', '>f8', (2, 3))]", "False", "(1,)"), 52, NULL},
    {NPY("[('a', [('b', '<i2')])]", "False", "(2,)"), 4, NULL},
    {NPY("[('a', '<i4'", "False", "(1,)"), 4, "no comma"},
    {NPY("[[[[[[[[[[[[", "False", "(1,)"), 4, "no value"},
    {NPY("[('a', '|V999999999', (9999, 9999, 9999))]", "False", "(1,)"), 4,
     "invalid shape"},
    {NPY("[('a', '|V999999999', (3,))]", "False", "(1,)"), 4,
     "a field that is too large"},
    {NPY("u'<f4'", "False", "(2,)"), 8, NULL}, /* Python 2 */
    {NPY("'f'", "False", "(2,)"), 8, NULL},
    {NPY("'>d'", "False", "(1,)"), 8, NULL},
    {NPY("'float32'", "False", "(2,)"), 8, NULL},
    {NPY("'<float32'", "False", "(2,)"), 8, "is not a numpy dtype"},
    {NPY("'?'", "False", "(8,)"), 8, NULL},
    {NPY("'<M8[25us]'", "False", "(1,)"), 8, NULL},
    {NPY("'<M8[xx]'", "False", "(1,)"), 8, "is not a numpy dtype"},
    {NPY("'<M8['", "False", "(1,)"), 8, "is not a numpy dtype"},
    {NPY("'<f4'", "False", "(02,)"), 8, "no number at byte 53"},
    {NPY("'<f4'", "False", "(00,)"), 0, NULL},
    {NPY("'<f4'", "False", "(0, 9223372036854775807)"), 0, "overflows"},
    {"{'descr': '<f4', 'shape': (2,), }", 8, "no key fortran_order"},
    {"{'descr': '<f4', 'descr': '<f4', }", 8, "unknown or duplicate"},
    {"{'descr': '<f4', 'more': 1, }", 8, "unknown or duplicate"},
    {NPY("'<f4'", "False", "(2,)") " x", 8, "more than one value at byte 58"},
    {"['descr']", 8, "not a dict"},
    {"{'descr", 8, "an unterminated string"},
    {"", 8, "no value at byte 0"},
};

/* Spellings of Python and numpy, valid and invalid. */
static const text_rule npy_spellings[] = {
    {NPY("'<' 'f4'", "False", "(2,)"), 8, NULL},
    {NPY("'\\x3cf\\64'", "False", "(2,)"), 8, NULL},
    {NPY("r'<f4'", "(True)", "((2),)"), 8, NULL},
    {NPY("\"\"\"<f4\"\"\"", "False", "(0x2,)"), 8, NULL},
    {NPY("'<\\\nf4'", "\\\n False", "(0b1_0, +1)"), 8, NULL},
    {NPY("'<f4'", "False", "(2, # and so on\r\n)") "\n\n# end", 8, NULL},
    {"\n" NPY("'<f4'", "False", "(-0, 3)"), 0, NULL},
    {"\f" NPY("'<f4'", "False", "(2 L L,)") "\n  ", 8, NULL},
    {" \t" NPY("'<f4'", "False", "(2,)"), 8, NULL},
    {"\n " NPY("'<f4'", "False", "(2,)"), 8, "an indented line"},
    {NPY("'<f4'", "False", "(2,)") "\\\n", 8, "line continuation"},
    {NPY("'<f4'", "False", "(2,)") ",", 8, "its header is not a dict"},
    {NPY("'<f4'", "False", "(2, 3\vL)"), 8, "no comma"},
    {NPY("'<f4'", "False", "(2LL,)"), 8, "no number"},
    {NPY("'<f4'", "False", "(2_,)"), 8, "no number"},
    {NPY("'<f4'", "False", "(True,)"), 8, "axis 0 of its shape"},
    {NPY("'<f4'", "False", "(2.0,)"), 8, "axis 0 of its shape"},
    {NPY("'<f4'", "False", "(2e0j,)"), 8, "axis 0 of its shape"},
    {NPY("'<f4'", "False", "(-9223372036854775808,)"), 8, "axis 0 of its"},
    {NPY("'<f4'", "False", "(--2,)"), 8, "no value"},
    {NPY("'<f4'", "False", "(-(-2),)"), 8, "a sign that is not"},
    {NPY("'<f4'", "False", "(1+1,)"), 8, "no comma"},
    {NPY("'<f4'", "not True", "(2,)"), 8, "no value"},
    {NPY("'<f4'", "None", "(2,)"), 8, "not a bool"},
    {NPY("f'<f4'", "False", "(2,)"), 8, "no value"},
    {NPY("b'<f4'", "False", "(2,)"), 8, "neither a string"},
    {NPY("'<f4' b''", "False", "(2,)"), 8, "next to bytes"},
    {NPY("b'\xe9'", "False", "(2,)"), 8, "non-ASCII characters in bytes"},
    {NPY("'2 3f4'", "False", "(0,)"), 0, "its descr has more than one value"},
    {NPY("'\\N{LESS-THAN SIGN}f4'", "False", "(2,)"), 8, "by its name"},
    {NPY("'\\x3'", "False", "(2,)"), 8, "no escape"},
    {NPY("'<f4\n'", "False", "(2,)"), 8, "an unterminated string"},
    {NPY("'<f4'", "False", "(2,)") ", **{}", 8, "no value"},
    {"{'descr', '<f4'}", 8, "is not a dict"},
    {"{'descr': '<f4', 'shape'}", 8, "neither a dict nor a set"},
    {NPY("set()", "False", "(2,)"), 8, "neither a string"},
    {NPY("[('a', 'f4'), ('b', 'f4'), ('a', 'f4')]", "False", "()"), 12,
     "two fields called 'a'"},
    {NPY("[('\\xe9', 'f4'), ('\xe9', 'f4')]", "False", "()"), 8,
     "two fields called"},
    {NPY("[(('t', 'a'), 'f4'), ('t', 'f4')]", "False", "()"), 8,
     "two fields called 't'"},
    {NPY("[((1, 'a'), 'f4'), ((1, 'b'), 'f4')]", "False", "()"), 8, NULL},
    {NPY("[('', '|V4'), ('', 'f4', (2,)), ('', 'f4')]", "False", "()"), 16,
     NULL},
    {NPY("[('', 'f4'), ('', 'f4')]", "False", "()"), 8, "two fields called"},
    {NPY("[(1, 'f4')]", "False", "()"), 4, "a field without a name"},
    {NPY("['ab']", "False", "()"), 4, "that is not a name and a descr"},
    {NPY("[('a', 'f4', 2), ('b', 'f4', [3])]", "False", "()"), 20, NULL},
    {NPY("[('a', 'f4', True)]", "False", "()"), 4, "invalid shape"},
    {NPY("[('a', 'f4', (-1,))]", "False", "()"), 4, "invalid shape"},
    {NPY("[('a', 'S', 5), ('b', 'f4', 'i4')]", "False", "()"), 9, NULL},
    {NPY("[('a', 'S', (5,))]", "False", "()"), 9, "an invalid string size"},
    {NPY("[('a', 'f4', 'i8')]", "False", "()"), 8, "types of different sizes"},
    {NPY("[('a', 'i4, 2f8,(2,2)u1')]", "False", "()"), 24, NULL},
    {NPY("[('a', 'f4 i4,f4')]", "False", "()"), 8, "not a numpy dtype"},
    {NPY("[('a', '<2>f4')]", "False", "()"), 8, "not a numpy dtype"},
    {NPY("'2f4'", "False", "(0, 3)"), 0, NULL},
    {NPY("'2f4'", "False", "(3,)"), 24, "elements are arrays of 2"},
    {NPY("('f4', (1, 1))", "False", "(3,)"), 12, NULL},
    {NPY("'float32,O'", "False", "(2,)"), 24, "Python objects"},
};

/* numpy's names of the types it reads. */
static const struct {
    const char *descr, *type;
    int size, swap;
} npy_types[] = {
    {"'f 4'", "<f4", 4, 0},
    {"'>f04'", ">f4", 4, 4},
    {"'=half'", NULL, 0, 0},
    {"'half'", "<f2", 2, 0},
    {"'>?'", "|b1", 1, 0},
    {"'>g'", ">f16", 16, 16},
    {"'>F'", ">c8", 8, 4},
    {"'c'", "|S1", 1, 0},
    {"'a5'", "|S5", 5, 0},
    {"'>U3'", ">U3", 12, 4},
    {"'str'", "<U0", 0, 0},
    {"'V'", "|V0", 0, 0},
    {"'M'", "<M8", 8, 0},
    {"'m8[generic]'", "<m8", 8, 0},
    {"'>datetime64[25us]'", ">M8[25us]", 8, 8},
    {"'M8[D/24]'", "<M8[h]", 8, 0},
    {"'M8[W/14]'", "<M8[12h]", 8, 0},
    {"'M8[us/500]'", "<M8[2ns]", 8, 0},
    {"'M8[as/2]'", NULL, 0, 0},
    {"'M8[s/0]'", NULL, 0, 0},
    {"'M8[2147483648s]'", NULL, 0, 0},
    {"'M8[-1s]'", NULL, 0, 0},
    {"'S2147483648'", NULL, 0, 0},
    {"'U536870912'", NULL, 0, 0},
    {"'f-4'", NULL, 0, 0},
    {"'b8'", NULL, 0, 0},
    {"'<a'", NULL, 0, 0},
    {"('>i2', ())", ">i2", 2, 2},
    {"('U', 2)", "<U2", 8, 0},
    {"([('a', 'f4')], 1)", "([('a', 'f4')], 1)", 4, 0},
};

static void put_npy(lb_bytes *b, int major, const char *text, size_t n)
{
    lb_bytes_put(b, "\x93NUMPY", 6);
    lb_bytes_put(b, (const uint8_t[]){(uint8_t)major, 0}, 2);
    if (major == 1)
        lb_bytes_u16(b, (uint16_t)n);
    else
        lb_bytes_u32(b, (uint32_t)n);
    lb_bytes_put(b, text, n);
}

static void test_npy_texts(const text_rule *t, size_t n)
{
    lb_bytes b = {.heap = cx->heap};
    for (; n--; t++) {
        b.n = 0;
        put_npy(&b, 1, t->text, strlen(t->text));
        lb_bytes_fill(&b, 3, (size_t)t->data);
        expect(t->text, b.at, b.n, t->say);
    }
    lb_bytes_free(&b);
}

static void test_npy_types(void)
{
    for (size_t i = 0; i < sizeof npy_types / sizeof *npy_types; i++) {
        lb_bytes b = {.heap = cx->heap}, text = {.heap = cx->heap};
        lb_bytes_text(&text, NPY("%s", "False", "()"), npy_types[i].descr);
        put_npy(&b, 3, (const char *)text.at, text.n);
        lb_bytes_fill(&b, 1, 16);
        lb_reader *r = lb_reader_open_file(
            cx, lb_infile_wrap(cx, "test", b.at, b.n), NULL);
        const lb_tensor *t = r ? r->tensor : NULL;
        const char *type = npy_types[i].type;
        if (check_fails(!t == !type && (!t || strcmp(t->type, type) == 0)))
            fprintf(stderr, "rules: %s: want %s, got %s\n", npy_types[i].descr,
                    type ? type : "none", t ? t->type : "none");
        if (t) CHECK_EQ_I(t->size, npy_types[i].size);
        if (t) CHECK_EQ_I(t->swap, npy_types[i].swap);
        lb_reader_close(r);
        lb_clear(cx);
        lb_bytes_free(&text);
        lb_bytes_free(&b);
    }
}

static void test_npy(void)
{
    lb_bytes b = {.heap = cx->heap};
    test_npy_texts(npy_rules, sizeof npy_rules / sizeof *npy_rules);
    b.n = 0;
    put_npy(&b, 3, "{'\xff'", 4);
    expect("Latin-1 in version 3", b.at, b.n, "is not UTF-8");
    b.n = 0;
    const char *python2 = NPY("'<f4'", "False", "(2L,)");
    put_npy(&b, 3, python2, strlen(python2));
    lb_bytes_fill(&b, 0, 8);
    expect("an L in version 3", b.at, b.n, "no number");
    b.n = 0;
    put_npy(&b, 1, "{'a\0b'", 7);
    expect("a 0 in the header", b.at, b.n, "its header contains a 0");
    b.n = 0;
    put_npy(&b, 2, "", 0);
    b.at[8] = 0x11, b.at[9] = 0x27; /* 10001 */
    lb_bytes_fill(&b, ' ', 20000);
    expect("long header", b.at, b.n,
           "a header of 10001 bytes; the maximum is 10000");
    lb_bytes_free(&b);
    expect("nothing", "", 0, "the file is empty");
    expect("no kind", "no known file", 13, "unknown file format");
}

/* Ranks up to numpy's 64; brackets up to Python's 200, of which 198 make 99
 * nested fields; and up to 10000 characters, whatever their size in bytes. */
static void test_npy_many(void)
{
    for (int more = 0; more <= 1; more++) {
        lb_bytes b = {.heap = cx->heap}, text = {.heap = cx->heap};
        lb_bytes_text(&text,
                      "{'descr': '|u1', 'fortran_order': False, 'shape': (");
        for (int i = 0; i < 64 + more; i++)
            lb_bytes_text(&text, "1,");
        lb_bytes_text(&text, ")}");
        put_npy(&b, 2, (const char *)text.at, text.n);
        lb_bytes_fill(&b, 1, 1);
        expect("rank", b.at, b.n,
               more ? "a shape with 65 axes; the maximum is 64" : NULL);
        lb_bytes_free(&b);
        text.n = 0;
        lb_bytes_text(&text, "{'descr': ");
        for (int i = 0; i < 99 + more; i++)
            lb_bytes_text(&text, "[('a', ");
        lb_bytes_text(&text, "'|u1'");
        for (int i = 0; i < 99 + more; i++)
            lb_bytes_text(&text, ")]");
        lb_bytes_text(&text, ", 'fortran_order': False, 'shape': ()}");
        put_npy(&b, 1, (const char *)text.at, text.n);
        lb_bytes_fill(&b, 1, 1);
        expect("fields", b.at, b.n, more ? "too deeply nested" : NULL);
        lb_bytes_free(&b);
        text.n = 0;
        lb_bytes_text(&text, NPY("'|u1'", "False", "(1,)") "#");
        for (int i = (int)text.n; i < 10000 + more; i++)
            lb_bytes_text(&text, "\xc3\xa9");
        put_npy(&b, 3, (const char *)text.at, text.n);
        lb_bytes_fill(&b, 1, 1);
        if (!dump)
            expect("characters", b.at, b.n, more ? "maximum is 10000" : NULL);
        lb_bytes_free(&b);
        lb_bytes_free(&text);
    }
}

/* Other spellings that the reference readers accept. */
static void test_spellings(void)
{
    static const text_rule rules[] = {
        {"{\"a\":[\"U8\",[2],[0,2]]}", 2, NULL},
        {"{\"a\":[\"U8\",[2]]}", 2, "tensor 'a' has no data_offsets"},
        {"{\"a\":[\"U8\",[2],[0,2],1]}", 2, "a fourth field"},
        {"{\"a\":[{\"U8\":null},[2],[0,2]]}", 2, NULL},
        {"{\"a\":[{\"U8\":1},[2],[0,2]]}", 2, "no null"},
        {"{\"a\":[{},[2],[0,2]]}", 2, "no null"},
        {"{\"a\":[{\"U8\":null,\"x\":1},[2],[0,2]]}", 2, "two dtypes"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        lb_bytes b = {.heap = cx->heap};
        put_safetensors(&b, rules[i].text, strlen(rules[i].text),
                        rules[i].data);
        expect(rules[i].text, b.at, b.n, rules[i].say);
        lb_bytes_free(&b);
    }
    one("none of many", 3, (const int64_t[]){0, INT64_MAX, INT64_MAX}, 0, 0, 0,
        NULL);
    lb_bytes_free(&gguf);
    test_npy_texts(npy_spellings, sizeof npy_spellings / sizeof *npy_spellings);
    test_npy_types();
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--dump") == 0) dump = argv[2];
    cx = lb_open(&(lb_options){.threads = 1});
    const size_t before = lb_bytes_in_use(cx);
    test_safetensors();
    test_nesting();
    for (size_t i = 0; i < sizeof index_rules / sizeof *index_rules; i++)
        expect(index_rules[i].text, index_rules[i].text,
               strlen(index_rules[i].text), index_rules[i].say);
    test_gguf_heads();
    test_gguf_values();
    test_gguf_nesting();
    test_gguf_alignment();
    test_gguf_tensors();
    lb_bytes_free(&gguf);
    test_npy();
    test_npy_many();
    test_spellings();
    CHECK_EQ_I(lb_bytes_in_use(cx), before);
    lb_close(cx);
    return check_report("rules of files");
}
