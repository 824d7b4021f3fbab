/* test_io_layouts.c - groups of tensors that form one array: files of
 * bitsandbytes, and of numpy for other layouts, load with the values that those
 * programs decode (the file X.values next to X.safetensors), whole and by rows,
 * mapped and read with pread. Incomplete or inconsistent groups are refused
 * with a message.
 */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "core/core.h"
#include "io/layouts/entries.h"
#include "io_golden.h"
#include "refused.h"
#include "scratch.h"

#define GOLDEN "tests/golden/layouts/"

static lb_ctx *cx;

/* ---- files --------------------------------------------------------------- */

static size_t bytes_of(const lb_array *a)
{
    return (size_t)lb_size(a) * lb_dtype_size(lb_dtype_of(a));
}

static bool same(lb_array *got, lb_array *want)
{
    if (!got || !want || lb_dtype_of(got) != lb_dtype_of(want)) return false;
    const lb_shape a = lb_shape_of(got), b = lb_shape_of(want);
    const size_t n = bytes_of(want);
    uint8_t *x = malloc(n + 1), *y = malloc(n + 1);
    const bool ok = lb_shape_equal(&a, &b) && lb_read(cx, got, x, n) &&
                    lb_read(cx, want, y, n) && memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return ok;
}

static void check_rows(lb_file *f, const lb_entry *e, lb_array *want)
{
    const int64_t n = e->dim[0];
    for (int64_t lo = 0; lo <= n; lo += 1 + n / 9)
        for (int64_t hi = lo; hi <= n; hi += 1 + n / 7) {
            lb_array *got = lb_file_load_rows(cx, f, e->name, lo, hi);
            if (check_fails(same(got, lb_rows_of(cx, want, (lb_rows){lo, hi}))))
                fprintf(stderr, "layouts: %s: rows %d to %d: %s\n", e->name,
                        (int)lo, (int)hi, lb_error(cx));
            lb_clear(cx);
        }
}

static void check_file(const char *path, const char *values, bool no_map,
                       int groups)
{
    lb_file *f = lb_file_open(cx, path, &(lb_file_options){.no_map = no_map});
    lb_file *v = lb_file_open(cx, values, NULL);
    CHECK_EQ_S(lb_error(cx), "");
    CHECK(f && v);
    CHECK_EQ_I(lb_file_count(f), lb_file_count(v));
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        const lb_entry *e = lb_file_entry(f, i);
        lb_enter(cx);
        lb_array *got = lb_file_load(cx, f, e->name);
        lb_array *want = lb_file_load(cx, v, e->name);
        if (check_fails(same(got, want)))
            fprintf(stderr, "layouts: %s: %s: %s\n", path, e->name,
                    lb_error(cx));
        CHECK_EQ_S(lb_format_of(got), e->format);
        groups -= e->layout != NULL;
        check_rows(f, e, want);
        lb_leave(cx);
        lb_clear(cx);
    }
    CHECK_EQ_I(groups, 0);
    lb_file_close(f);
    /* Without a layout, each tensor is an array. */
    f = lb_file_open(cx, path, &(lb_file_options){.raw = true});
    CHECK_EQ_I(lb_file_count(f), f->r->n_tensors);
    lb_file_close(f);
    lb_file_close(v);
}

static void test_files(void)
{
    static const struct {
        const char *path, *values;
        int groups;
    } file[] = {
        {GOLDEN "bnb4.safetensors", GOLDEN "bnb4.values", 5},
        {GOLDEN "fp4.safetensors", GOLDEN "fp4.values", 1},
        {GOLDEN "bnb8.safetensors", GOLDEN "bnb8.values", 2},
        {GOLDEN "bitlinear", GOLDEN "bitlinear/model.values", 1},
        {GOLDEN "autobitlinear", GOLDEN "autobitlinear/model.values", 1},
        {GOLDEN "eformer.safetensors", GOLDEN "eformer.values", 7},
        /* descriptors with the layout's former name */
        {GOLDEN "seed.safetensors", GOLDEN "eformer.values", 7},
        {GOLDEN "native.safetensors", GOLDEN "native.values", 16},
    };
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        check_file(file[i].path, file[i].values, false, file[i].groups);
        check_file(file[i].path, file[i].values, true, file[i].groups);
    }
}

/* ---- a file in memory ---------------------------------------------------- */

/* "name dtype shape": its bytes are `fill`, or the given text. */
typedef struct piece {
    const char *name, *dtype, *shape;
    size_t size;
    const char *text;
} piece;

enum { PIECES = 24, ROOM = 1 << 16 };

static size_t compose(const piece *p, const char *meta, char *to)
{
    char *head = to + 8;
    size_t at = 0;
    int n = snprintf(head, ROOM / 2, "{%s", meta ? meta : "");
    for (int i = 0; i < PIECES && p[i].name; i++) {
        const size_t size = p[i].text ? strlen(p[i].text) : p[i].size;
        char shape[32];
        snprintf(shape, sizeof shape, "%zu", size);
        n += snprintf(head + n, ROOM / 2 - (size_t)n,
                      "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],"
                      "\"data_offsets\":[%zu,%zu]}",
                      i || meta ? "," : "", p[i].name, p[i].dtype,
                      p[i].shape ? p[i].shape : shape, at, at + size);
        at += size;
    }
    n += snprintf(head + n, ROOM / 2 - (size_t)n, "}");
    char *data = head + n;
    for (int i = 0; i < PIECES && p[i].name; i++) {
        const size_t size = p[i].text ? strlen(p[i].text) : p[i].size;
        memset(data, 0, size);
        if (p[i].text) memcpy(data, p[i].text, size);
        data += size;
    }
    for (int i = 0; i < 8; i++)
        to[i] = (char)((size_t)n >> 8 * i);
    return (size_t)(data - to);
}

static lb_file *open_pieces(const piece *p, const char *meta,
                            const lb_file_options *options)
{
    static char bytes[ROOM];
    const size_t n = compose(p, meta, bytes);
    return lb_file_of(
        cx, lb_reader_open_file(cx, lb_infile_wrap(cx, "test", bytes, n), NULL),
        options ? options : &(lb_file_options){0});
}

/* say NULL: the file opens, and its array `load`, if any, loads. */
static void expect(const piece *p, const char *meta, const char *say,
                   const char *load, int line)
{
    lb_file *f = open_pieces(p, meta, NULL);
    lb_array *a = f && load ? lb_file_load(cx, f, load) : NULL;
    const bool fine = f && (!load || a) && !lb_error_status(cx);
    const bool right = say ? !fine && strstr(lb_error(cx), say) &&
                                 (lb_error_status(cx) == LB_E_CONTENT ||
                                  lb_error_status(cx) == LB_E_UNSUPPORTED)
                           : fine;
    if (check_fails(right))
        fprintf(stderr, "%s:%d: want \"%s\", got %s \"%s\"\n", __FILE__, line,
                say ? say : "", lb_status_name(lb_error_status(cx)),
                lb_error(cx));
    lb_file_close(f);
    lb_clear(cx);
}
#define EXPECT(p, meta, say, load) expect(p, meta, say, load, __LINE__)

/* ---- bitsandbytes -------------------------------------------------------- */

#define STATE "w.quant_state.bitsandbytes__nf4"
#define GOOD                                                                   \
    "{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"bfloat16\", "   \
    "\"shape\": [2, 50]}"

/* One part at a time is missing or changed; or the content of the blob. */
static void test_bnb4(void)
{
    static const piece good[PIECES] = {
        {"w", "U8", "50,1", 50, NULL},
        {"w.absmax", "F32", "2", 8, NULL},
        {"w.quant_map", "F32", "16", 64, NULL},
        {STATE, "U8", NULL, 0, GOOD},
    };
    static const struct {
        int at;
        piece with;
        const char *say;
    } change[] = {
        {0, {"v", "U8", "50,1", 50, NULL}, "has no weight tensor"},
        {0,
         {"w", "U8", "49,1", 49, NULL},
         "'w' has 49 bytes, but 100 4-bit codes need 50"},
        {0, {"w", "BF16", "25", 50, NULL}, NULL},
        {1, {"w.other", "F32", "2", 8, NULL}, "'w' has no tensor absmax"},
        {1,
         {"w.absmax", "F32", "3", 12, NULL},
         "needs absmax with type f32 and shape (2), but it is F32 (3)"},
        {1, {"w.absmax", "I32", "2", 8, NULL}, "but it is I32 (2)"},
        {1, {"w.absmax", "F32", "2,1", 8, NULL}, "but it is F32 (2,1)"},
        {2,
         {"w.quant_map", "F32", "15", 60, NULL},
         "needs quant_map with type f32 and shape (16), but it is F32 (15)"},
        {3,
         {STATE, "U8", "5000", 5000, NULL},
         "5000 bytes; the maximum is 4096"},
    };
    static const struct {
        const char *text, *say;
    } state[] = {
        {"", "no object"},
        {"{}", "missing keys"},
        {"{\"quant_type\": \"fp4\"}",
         "a quant_type that differs from its name"},
        {"{\"blocksize\": 64, \"blocksize\": 64}", "a key twice"},
        {"{\"shape\": [1,1,1,1,1,1,1,1,1]}", "too many dimensions"},
        {"{\"shape\": [-1]}", "not a non-negative integer"},
        {"{\"dtype\": \"int8\"}", "a dtype that is not a float type"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 63, \"dtype\": \"float32\", "
         "\"shape\": [100]}",
         "an invalid blocksize"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 0, \"dtype\": \"float32\", "
         "\"shape\": [100]}",
         "an invalid blocksize"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"float32\", "
         "\"shape\": [4611686018427387904, 4]}",
         "a shape that overflows"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"float32\", "
         "\"shape\": [100], \"nested_offset\": 1e999}",
         "a number that is too large"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"float32\", "
         "\"shape\": [100], \"nested_offset\": 1}",
         "missing keys"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"float32\", "
         "\"shape\": [100], \"nested_blocksize\": 256, \"nested_dtype\": "
         "\"float16\"}",
         "a nested_dtype other than float32"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"float32\", "
         "\"shape\": [100], \"nested_blocksize\": 256, \"nested_offset\": 0.5}",
         "needs absmax with type u8 and shape (2), but it is F32 (2)"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"float32\", "
         "\"shape\": [100], \"more\": [{}]} ",
         NULL},
        {GOOD "x", "more than one value"},
    };
    EXPECT(good, NULL, NULL, "w");
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        piece p[PIECES];
        memcpy(p, good, sizeof p);
        p[change[i].at] = change[i].with;
        EXPECT(p, NULL, change[i].say, "w");
    }
    for (size_t i = 0; i < sizeof state / sizeof *state; i++) {
        piece p[PIECES];
        memcpy(p, good, sizeof p);
        p[3].text = state[i].text;
        EXPECT(p, NULL, state[i].say, "w");
    }
}

/* A tensor belongs to one array only. */
static void test_twice(void)
{
    static const piece both[PIECES] = {
        {"w.weight", "U8", "50,1", 50, NULL},
        {"w.weight.absmax", "F32", "2", 8, NULL},
        {"w.weight.quant_map", "F32", "16", 64, NULL},
        {"w.weight.quant_state.bitsandbytes__nf4", "U8", NULL, 0, GOOD},
        {"w.weight.quant_state.bitsandbytes__fp4", "U8", NULL, 0,
         "{\"quant_type\": \"fp4\", \"blocksize\": 64, \"dtype\": "
         "\"bfloat16\", \"shape\": [2, 50]}"},
    };
    EXPECT(both, NULL, "is part of both 'w.weight' and 'w.weight'", NULL);
}

static void test_bnb8(void)
{
    static const piece good[PIECES] = {
        {"w.weight", "I8", "3,4", 12, NULL},
        {"w.SCB", "F32", "3", 12, NULL},
        {"w.weight_format", "U8", "", 1, NULL},
    };
    piece p[PIECES];
    EXPECT(good, NULL, NULL, "w.weight");
    memcpy(p, good, sizeof p);
    p[1] = (piece){"w.SCB", "F32", "4", 16, NULL};
    EXPECT(p, NULL, "needs SCB with type f32 and shape (3), but it is F32 (4)",
           NULL);
    memcpy(p, good, sizeof p);
    p[0] = (piece){"w.weight", "I8", "12", 12, NULL};
    EXPECT(p, NULL, "has an SCB, but its rank is 1, not 2", NULL);
    memcpy(p, good, sizeof p);
    p[2] = (piece){"w.weight_format", "U8", "", 1, "\001"};
    EXPECT(p, NULL, "'w.weight_format' is 1: only 0", NULL);
    memcpy(p, good, sizeof p);
    p[0].text = "\200...........";
    EXPECT(p, NULL, "'w.weight': int8: code -128 of element 0", "w.weight");
}

static void test_bitnet(void)
{
    static const piece good[PIECES] = {
        {"w.weight", "U8", "1,4", 4, NULL},
        {"w.weight_scale", "F32", "1", 4, NULL},
    };
    EXPECT(good, NULL, NULL, NULL); /* is listed ... */
    EXPECT(good, NULL, "cannot tell whether", "w.weight");
    lb_file_options options = {.linear_class = "autobitlinear"};
    lb_file *f = open_pieces(good, NULL, &options);
    CHECK(lb_file_load(cx, f, "w.weight"));
    lb_file_close(f);
    options.linear_class = "linear";
    CHECK(!open_pieces(good, NULL, &options));
    CHECK(
        strstr(lb_error(cx), "linear_class is 'linear'; it must be bitlinear"));
    lb_clear(cx);
    piece p[PIECES];
    memcpy(p, good, sizeof p);
    p[0].text = "\377\377\377\377";
    options.linear_class = "bitlinear";
    f = open_pieces(p, NULL, &options);
    CHECK(!lb_file_load(cx, f, "w.weight"));
    CHECK(strstr(lb_error(cx), "'w.weight': ternary: code 2 of element 0"));
    CHECK_EQ_I(lb_error_status(cx), LB_E_CONTENT);
    lb_clear(cx);
    lb_file_close(f);
    /* Other programs use such names for other values. */
    memcpy(p, good, sizeof p);
    p[1] = (piece){"w.weight_scale", "F32", "4", 16, NULL};
    EXPECT(p, NULL, NULL, "w.weight_scale");
}

/* ---- native -------------------------------------------------------------- */

#define META(text) "\"__metadata__\":{\"lowbit.w\":\"" text "\"}"
#define ARRAY(format, shape, parts)                                            \
    META("{\\\"layout\\\":\\\"native\\\",\\\"format\\\":\\\"" format           \
         "\\\",\\\"dtype\\\":\\\"f32\\\",\\\"shape\\\":" shape                 \
         ",\\\"parts\\\":{" parts "}}")
#define PART(name, groups) "\\\"" name "\\\":{\\\"groups\\\":" groups "}"
#define OWN(name, groups, own)                                                 \
    "\\\"" name "\\\":{\\\"groups\\\":" groups ",\\\"own\\\":" own "}"
#define GOOD_PARTS PART("codes", "[1,1]") "," PART("scale", "[1,0]")

static void test_native(void)
{
    static const piece good[PIECES] = {
        {"w.codes", "I8", "3,4", 12, NULL},
        {"w.scale", "F32", "3,1", 12, NULL},
    };
    static const struct {
        const char *meta, *say;
    } rule[] = {
        {ARRAY("int8", "[3,4]", GOOD_PARTS), NULL},
        {META(""), "lowbit.w has no object"},
        {META("{}"), "no format or no dtype"},
        {META("{\\\"layout\\\":\\\"native\\\"}"), "no format or no dtype"},
        {ARRAY("none", "[3,4]", GOOD_PARTS), "unknown format 'none'"},
        {ARRAY("dense", "[3,4]", GOOD_PARTS), "unknown format 'dense'"},
        {ARRAY("int8", "[3,5]", GOOD_PARTS),
         "needs codes with type any and shape (3,5)"},
        {ARRAY("int8", "[12]", GOOD_PARTS), "groups that do not match"},
        {ARRAY("int8", "[3,4]", PART("codes", "[1,1]")),
         "a layout that this format does not produce"},
        {ARRAY("int8", "[3,4]", GOOD_PARTS "," PART("scale", "[1,0]")),
         "a duplicate part"},
        {ARRAY("int8", "[3,4]", GOOD_PARTS "," PART("zero", "[1,0]")),
         "'w' has no tensor 'w.zero'"},
        {ARRAY("int8", "[3,4]", GOOD_PARTS "," PART("", "[1,0]")),
         "a part without a name"},
        {ARRAY("int8", "[3,8]",
               PART("codes", "[1,2]") "," PART("scale", "[1,0]")),
         "a layout that this format does not produce"},
        {ARRAY("nf4", "[3,16]",
               PART("codes", "[1,4]") "," PART("absmax", "[1,64]")),
         "'w' has no tensor 'w.absmax'"},
        {ARRAY("ternary", "[3,16]",
               PART("codes", "[1,4]") "," PART("scale", "[1,0]")),
         "codes of ternary is i8, not u8"},
        {ARRAY("int8", "[3,4]",
               PART("codes", "[1,1]") "," PART("scale", "[1,9]")),
         NULL}, /* a block longer than a row */
        {ARRAY("int8", "[3,4]",
               OWN("codes", "[1,1]", "0") "," PART("scale", "[1,0]")),
         NULL},
        {ARRAY("int8", "[3,4]",
               OWN("codes", "[1,1]", "1") "," PART("scale", "[1,0]")),
         "needs codes with type any and shape (3,4,1)"},
        {ARRAY("int8", "[4611686018427387904,4]", GOOD_PARTS),
         "invalid shapes"},
        {ARRAY("int8", "[1,1,1,1,1,1,1,1,1]", GOOD_PARTS),
         "too many dimensions"},
        {META("{\\\"layout\\\":\\\"native\\\",\\\"dtype\\\":\\\"f31\\\"}"),
         "an unknown dtype"},
        {ARRAY("int8", "[3,4]",
               GOOD_PARTS "," PART("a", "[1,0]") "," PART(
                   "b", "[1,0]") "," PART("c", "[1,0]") "," PART("d", "[1,0]")),
         "too many parts"},
        {ARRAY("int8", "[1099511627776,4]",
               OWN("codes", "[1,1]", "2147483647")),
         "groups that overflow"},
    };
    for (size_t i = 0; i < sizeof rule / sizeof *rule; i++)
        EXPECT(good, rule[i].meta, rule[i].say,
               strstr(rule[i].meta, "layout") ? "w" : "w.codes");
}

/* Groups that a format does not produce, but decodes: of scales, not of codes,
 * of which it would read more bytes than there are. */
static void test_own_groups(void)
{
    static const struct {
        const char *format, *codes, *codes_shape, *scale, *scale_shape;
        const char *codes_type, *scale_type, *say;
    } rule[] = {
        {"fp8_e4m3", PART("codes", "[1,1]"), "4,64", PART("scale", "[3,7]"),
         "2,10", "U8", "F32", NULL},
        {"fp8_e4m3", OWN("codes", "[1,64]", "1"), "4,1,1",
         PART("scale", "[3,7]"), "2,10", "U8", "F32", "cannot be decoded"},
        {"fp8_e4m3", PART("codes", "[4,1]"), "1,64", PART("scale", "[3,7]"),
         "2,10", "U8", "F32", "cannot be decoded"},
        {"fp8_e4m3", PART("codes", "[1,1]"), "4,64", PART("scale", "[3,7]"),
         "2,10", "I8", "F32", "cannot be decoded"},
        {"fp8_e4m3", PART("codes", "[1,1]"), "4,64", PART("scale", "[3,7]"),
         "2,10", "U8", "I32", "cannot be decoded"},
        {"fp8_e4m3", PART("codes", "[1,1]"), "4,64", OWN("scale", "[3,7]", "1"),
         "2,10,1", "U8", "F32", "cannot be decoded"},
        {"mxfp4", OWN("codes", "[1,64]", "1"), "4,1,1", PART("scale", "[3,7]"),
         "2,10", "U8", "F32", "cannot be decoded"},
        {"gguf_nvfp4", OWN("blocks", "[1,64]", "36"), "4,1,36",
         PART("scale", "[3,7]"), "2,10", "U8", "F32", NULL},
        {"gguf_nvfp4", OWN("blocks", "[1,64]", "1"), "4,1,1",
         PART("scale", "[3,7]"), "2,10", "U8", "F32", "cannot be decoded"},
        {"gguf_nvfp4", OWN("blocks", "[0,64]", "36"), "1,1,36",
         PART("scale", "[3,7]"), "2,10", "U8", "F32", "cannot be decoded"},
    };
    for (size_t i = 0; i < sizeof rule / sizeof *rule; i++) {
        const bool blocks = strstr(rule[i].codes, "blocks") != NULL;
        const char *shape = rule[i].codes_shape;
        char meta[1024];
        const size_t codes = strcmp(shape, "4,64") == 0     ? 256
                             : strcmp(shape, "1,64") == 0   ? 64
                             : strcmp(shape, "4,1,36") == 0 ? 144
                             : strcmp(shape, "1,1,36") == 0 ? 36
                                                            : 4;
        const piece p[PIECES] = {
            {blocks ? "w.blocks" : "w.codes", rule[i].codes_type, shape, codes,
             NULL},
            {"w.scale", rule[i].scale_type, rule[i].scale_shape, 80, NULL},
        };
        snprintf(meta, sizeof meta,
                 META("{\\\"layout\\\":\\\"native\\\",\\\"format\\\":\\\"%s"
                      "\\\",\\\"dtype\\\":\\\"f32\\\",\\\"shape\\\":[4,64],"
                      "\\\"parts\\\":{%s,%s}}"),
                 rule[i].format, rule[i].codes, rule[i].scale);
        EXPECT(p, meta, rule[i].say, "w");
    }
}

/* More nested parts than a group supports. */
static void test_many_parts(void)
{
    enum { LEAVES = 19 };
    static char name[LEAVES][16], meta[ROOM / 4];
    piece p[PIECES] = {0};
    size_t n = 0;
    int leaf = 0;
#define SAY(...) n += (size_t)snprintf(meta + n, sizeof meta - n, __VA_ARGS__)
#define BEGIN                                                                  \
    "{\\\"layout\\\":\\\"native\\\",\\\"format\\\":\\\"nf4\\\","               \
    "\\\"dtype\\\":\\\"f32\\\",\\\"shape\\\":[1],\\\"parts\\\":{"
    SAY("\"__metadata__\":{\"lowbit.w\":\"" BEGIN);
    for (int i = 0; i < 4; i++) {
        SAY("%s\\\"%c\\\":{\\\"groups\\\":[1],\\\"array\\\":" BEGIN,
            i ? "," : "", 'a' + i);
        for (int k = 0; k < 4; k++) {
            SAY("%s\\\"%c\\\":{\\\"groups\\\":[1]", k ? "," : "", 'a' + k);
            const int below = i || k ? 0 : 4; /* the first is one more array */
            if (below) SAY(",\\\"array\\\":" BEGIN);
            for (int m = 0; m < (below ? below : 1); m++) {
                snprintf(name[leaf], sizeof name[leaf], "w.%c.%c%s%c", 'a' + i,
                         'a' + k, below ? "." : "", below ? 'a' + m : 0);
                if (below)
                    SAY("%s\\\"%c\\\":{\\\"groups\\\":[1]}", m ? "," : "",
                        'a' + m);
                p[leaf] = (piece){name[leaf], "U8", "1", 1, NULL};
                leaf++;
            }
            SAY(below ? "}}}" : "}");
        }
        SAY("}}}");
    }
    SAY("}}\"}");
    CHECK_EQ_I(leaf, LEAVES);
    EXPECT(p, meta, "'w' has more than 16 parts", NULL);
#undef SAY
#undef BEGIN
}

/* A descriptor is a string; GGUF has values of other types. */
static void test_no_text(void)
{
    static const int64_t dim[] = {4};
    static const uint8_t number[4] = {1};
    char path[SCRATCH_MAX];
    const lb_tensor t = {
        .name = "w.codes", .type = "I8", .rank = 1, .dim = dim};
    const lb_meta m = {"lowbit.w", LB_META_U32, 0, 1, number, 4};
    CHECK(scratch_file(path));
    lb_writer *w = lb_writer_open(cx, lb_container_named("gguf"), path, &t, 1,
                                  &m, 1, NULL);
    CHECK(w && lb_writer_put(cx, w, number, 4) && lb_writer_close(cx, w, true));
    REFUSED(lb_file_open(cx, path, NULL), LB_E_CONTENT,
            "'lowbit.w' is not text");
    unlink(path);
}

/* An array and a tensor with the same name. */
static void test_names(void)
{
    static const piece both[PIECES] = {
        {"w", "F32", "1", 4, NULL},
        {"w.codes", "I8", "3,4", 12, NULL},
        {"w.scale", "F32", "3,1", 12, NULL},
    };
    EXPECT(both, ARRAY("int8", "[3,4]", GOOD_PARTS),
           "two arrays are called 'w'", NULL);
}

int main(void)
{
    cx = lb_open(&(lb_options){.threads = 1});
    test_files(); /* the context's lists have reached their final size */
    const size_t before = lb_bytes_in_use(cx);
    lb_enter(cx);
    test_files();
    test_bnb4();
    test_twice();
    test_bnb8();
    test_bitnet();
    test_native();
    test_own_groups();
    test_many_parts();
    test_no_text();
    test_names();
    lb_leave(cx);
    CHECK_EQ_I(lb_bytes_in_use(cx), before);
    lb_close(cx);
    return check_report("layouts of files");
}
