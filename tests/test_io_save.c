/* test_io_save.c - saving arrays. The contents of every file of another program
 * are loaded and saved in the same layout: same tensors and bytes (for
 * bitsandbytes, the same file). Every format goes through every layout that
 * can store it and back, planned as an array and as a config, with the same
 * result. Nothing is written if there is an error.
 */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "core/core.h"
#include "io/arrays/saver.h"
#include "io_golden.h"
#include "refused.h"
#include "scratch.h"
#include "toy_formats.h"

#define GOLDEN "tests/golden/layouts/"

static lb_ctx *cx;
static char out[SCRATCH_MAX];

/* ---- round trips --------------------------------------------------------- */

enum { MOST = 64 };

static bool save_all(lb_file *f, const char *path, const char *kind,
                     const char *layout)
{
    lb_planned list[MOST] = {0};
    lb_meta meta[MOST];
    int64_t n = 0, n_meta = 0;
    const lb_meta *m;
    for (; n < lb_file_count(f); n++) {
        list[n].name = lb_file_entry(f, n)->name;
        list[n].array = lb_file_load(cx, f, list[n].name);
    }
    for (int64_t i = 0; (m = lb_file_meta(f, i)); i++)
        if (strncmp(m->key, "lowbit.", 7) != 0) meta[n_meta++] = *m;
    const lb_save_options options = {.kind = kind,
                                     .layout = layout,
                                     .meta = meta,
                                     .n_meta = n_meta,
                                     .no_sync = true};
    return lb_save(cx, path, list, n, &options);
}

static bool same_tensors(const char *a, const char *b)
{
    lb_reader *x = lb_reader_open(cx, a, NULL),
              *y = lb_reader_open(cx, b, NULL);
    bool ok = x && y && x->n_tensors == y->n_tensors;
    for (int64_t i = 0; ok && i < x->n_tensors; i++) {
        const lb_tensor *s = &x->tensor[i], *t = lb_reader_find(y, s->name);
        ok = t && strcmp(s->type, t->type) == 0 && s->rank == t->rank &&
             s->size == t->size;
        for (int k = 0; ok && k < s->rank; k++)
            ok = s->dim[k] == t->dim[k];
        ok = ok && memcmp(lb_reader_at(x, s), lb_reader_at(y, t), s->size) == 0;
        if (!ok) fprintf(stderr, "save: %s: %s\n", a, s->name);
    }
    lb_reader_close(x);
    lb_reader_close(y);
    return ok;
}

static bool same_meta(const char *a, const char *b)
{
    lb_reader *x = lb_reader_open(cx, a, NULL),
              *y = lb_reader_open(cx, b, NULL);
    bool ok = x && y && x->n_meta == y->n_meta;
    for (int64_t i = 0; ok && i < x->n_meta; i++) {
        const lb_meta *s = &x->meta[i], *t = lb_reader_meta(y, s->key);
        ok =
            t && s->size == t->size && memcmp(s->bytes, t->bytes, s->size) == 0;
        if (!ok)
            fprintf(stderr, "save: %s: %.*s\nand %.*s\n", s->key, (int)s->size,
                    (const char *)s->bytes, t ? (int)t->size : 4,
                    t ? (const char *)t->bytes : "none");
    }
    lb_reader_close(x);
    lb_reader_close(y);
    return ok;
}

static void test_golden(void)
{
    static const struct {
        const char *path, *layout, *file;
        bool bytes, meta; /* that the bytes are equal, too */
    } row[] = {
        {GOLDEN "bnb4.safetensors", "bnb", NULL, true, true},
        {GOLDEN "bnb8.safetensors", "bnb", NULL, true, true},
        {GOLDEN "bitlinear", "bitnet", GOLDEN "bitlinear/model.safetensors",
         true, true},
        {GOLDEN "autobitlinear", "bitnet",
         GOLDEN "autobitlinear/model.safetensors", true, true},
        {GOLDEN "eformer.safetensors", "eformer", NULL, false, false},
        {GOLDEN "native.safetensors", "native", NULL, false, true},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *file = row[i].file ? row[i].file : row[i].path;
        lb_enter(cx);
        lb_file *f = lb_file_open(cx, row[i].path, NULL);
        CHECK(save_all(f, out, NULL, row[i].layout));
        CHECK_EQ_S(lb_error(cx), "");
        lb_file_close(f);
        lb_leave(cx);
        CHECK(same_tensors(file, out));
        if (row[i].bytes) CHECK(io_same_bytes(file, out));
        if (row[i].meta) CHECK(same_meta(file, out));
        lb_clear(cx);
    }
    /* Levels other than the name implies: readers would ignore them. */
    lb_file *f = lb_file_open(cx, GOLDEN "fp4.safetensors", NULL);
    REFUSED(save_all(f, out, NULL, "bnb"), LB_E_UNSUPPORTED,
            "which is nf4 (3,70)");
    CHECK(save_all(f, out, NULL, "native"));
    lb_file_close(f);
}

/* ---- every format -------------------------------------------------------- */

typedef struct variant {
    lb_quant_config config;
    const char *layouts; /* besides native: those that can store it */
} variant;

static const variant variants[] = {
    {{.format = "int8"}, " eformer"},
    {{.format = "int8", .axes = {1, {0}}}, " eformer"},
    {{.format = "int8", .block_size = 8}, ""},
    {{.format = "int8", .compat = LB_COMPAT_BNB_CPU}, " bnb"},
    {{.format = "nf4"}, " eformer"},
    {{.format = "nf4", .double_quant = true}, ""},
    {{.format = "nf4", .compat = LB_COMPAT_BNB_CPU}, " bnb"},
    {{.format = "nf4", .compat = LB_COMPAT_BNB_CPU, .block_size = 128}, " bnb"},
    {{.format = "nf4", .compat = LB_COMPAT_EFORMER}, " eformer"},
    {{.format = "ternary"}, " bitnet eformer"},
    {{.format = "ternary", .scale = LB_SCALE_NONE}, " eformer"},
    {{.format = "ternary", .scale = LB_SCALE_ROW}, ""},
    {{.format = "ternary", .meaning = LB_MEANS_INVERSE}, " bitnet"},
    {{.format = "binary"}, " eformer"},
    {{.format = "binary", .scale = LB_SCALE_BLOCK, .block_size = 32}, ""},
    {{.format = "dynamic8"}, ""},
    {{.format = "q8_0"}, ""},
    {{.format = "q4_0"}, ""},
    {{.format = "iq4_nl"}, ""},
    {{.format = "tq1_0"}, ""},
    {{.format = "tq2_0"}, ""},
};

/* In the format and decoded; with whole, also the dtype and the stored bytes,
 * which layouts of other programs do not keep. */
static bool same_array(lb_array *a, lb_array *b, bool whole)
{
    if (!whole) {
        b = lb_convert(cx, b, LB_F32);
        a = lb_convert(cx, a, LB_F32);
    }
    const size_t n = (size_t)lb_size(b) * lb_dtype_size(lb_dtype_of(b));
    uint8_t *x = malloc(n + 1), *y = malloc(n + 1);
    const bool ok = a && lb_dtype_of(a) == lb_dtype_of(b) &&
                    strcmp(lb_format_of(a), lb_format_of(b)) == 0 &&
                    (!whole || lb_nbytes(a) == lb_nbytes(b)) &&
                    lb_read(cx, a, x, n) && lb_read(cx, b, y, n) &&
                    memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return ok;
}

/* Saved as an array, and planned from a config: the same file. */
static void round_trip(lb_array *q, lb_dtype dtype, lb_shape shape,
                       const lb_quant_config *config, const char *layout)
{
    const lb_planned here = {.name = "x.weight", .array = q};
    const lb_planned later = {
        .name = "x.weight", .dtype = dtype, .shape = shape, .config = config};
    const lb_save_options options = {
        .layout = layout,
        .no_sync = true,
        .kind = strcmp(layout, "gguf") == 0 ? "gguf" : NULL};
    char other[SCRATCH_MAX + 8];
    snprintf(other, sizeof other, "%s.other", out);
    CHECK(lb_save(cx, out, &here, 1, &options));
    CHECK_EQ_S(lb_error(cx), "");
    lb_saver *s = lb_saver_open(cx, other, &later, 1, &options);
    CHECK_EQ_I(lb_saver_next(s), 0);
    if (strcmp(layout, "bitnet") == 0) {
        /* planned with a scale of the array's dtype */
        REFUSED(
            lb_saver_put(cx, s, q), LB_E_ARG,
            "'x.weight_scale' was planned with 2 bytes, but has at least 4");
        lb_saver_close(cx, s, false);
    } else {
        CHECK(lb_saver_put(cx, s, q));
        CHECK_EQ_I(lb_saver_next(s), -1);
        CHECK(lb_saver_close(cx, s, true));
        CHECK(io_same_bytes(out, other));
        unlink(other);
    }
    lb_file *f = lb_file_open(
        cx, out,
        &(lb_file_options){.linear_class = config->meaning ? "bitlinear"
                                                           : "autobitlinear"});
    const char *name = lb_file_entry(f, 0) ? lb_file_entry(f, 0)->name : "";
    lb_array *back = lb_file_load(cx, f, name);
    if (check_fails(same_array(back, q, strcmp(layout, "native") == 0)))
        fprintf(stderr, "save: %s as %s: %s\n", config->format, layout,
                lb_error(cx));
    lb_file_close(f);
    lb_clear(cx);
}

static void test_formats(void)
{
    static const char *const layouts[] = {"native", "bnb", "bitnet", "eformer"};
    static const int64_t dims[][3] = {{2, 8, 256}, {2, 12, 70}, {1, 256, 0}};
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++)
        for (int d = 0; d < 3; d++)
            for (int l = 0; l < 4; l++) {
                const variant *it = &variants[v];
                const lb_shape shape =
                    lb_shape_make((int)dims[d][0], dims[d] + 1);
                char word[16];
                snprintf(word, sizeof word, " %s", layouts[l]);
                const bool has = l == 0 || strstr(it->layouts, word);
                /* for vectors, a scale for each element is useless */
                if (d == 2 && (l || it->config.axes.n)) continue;
                lb_enter(cx);
                lb_array *x =
                    lb_random_normal(cx, (lb_key){7, v}, LB_BF16, shape);
                lb_array *q = lb_quantize(cx, x, &it->config);
                CHECK_EQ_S(lb_error(cx), "");
                if (has)
                    round_trip(q, LB_BF16, shape, &it->config, layouts[l]);
                else
                    REFUSED(
                        lb_save(cx, out,
                                &(lb_planned){.name = "x.weight", .array = q},
                                1, &(lb_save_options){.layout = layouts[l]}),
                        LB_E_UNSUPPORTED, "cannot store 'x.weight'");
                lb_leave(cx);
            }
}

/* bitsandbytes' double quantization must exist in order to be planned. */
static void test_nested(void)
{
    const lb_quant_config config = {
        .format = "nf4", .compat = LB_COMPAT_BNB_CPU, .double_quant = true};
    lb_array *x =
        lb_random_normal(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(70, 300));
    lb_array *q = lb_quantize(cx, x, &config);
    const lb_planned here = {.name = "w", .array = q};
    const lb_planned later = {.name = "w",
                              .dtype = LB_F32,
                              .shape = LB_SHAPE(70, 300),
                              .config = &config};
    const lb_save_options options = {.layout = "bnb", .no_sync = true};
    CHECK(lb_save(cx, out, &here, 1, &options));
    CHECK(same_array(lb_load(cx, out, "w"), q, false));
    REFUSED(lb_saver_open(cx, out, &later, 1, &options) != NULL,
            LB_E_UNSUPPORTED, "depends on nested_offset");
}

/* ---- kinds --------------------------------------------------------------- */

static void test_kinds(void)
{
    lb_array *x =
        lb_random_normal(cx, (lb_key){3, 4}, LB_F32, LB_SHAPE(4, 256));
    lb_array *h = lb_convert(cx, x, LB_F16);
    for (size_t v = 16; v < 21; v++) { /* GGUF's own types */
        const variant *it = &variants[v];
        lb_array *q = lb_quantize(cx, x, &it->config);
        const lb_planned list[] = {
            {.name = "t", .array = lb_transpose(cx, x, NULL)},
            {.name = "q", .array = q},
            {.name = "h", .array = h}};
        CHECK(lb_save(cx, out, list, 3,
                      &(lb_save_options){.kind = "gguf", .no_sync = true}));
        CHECK(same_array(lb_load(cx, out, "q"), q, true));
        CHECK(same_array(lb_load(cx, out, "h"), h, true));
        CHECK(same_array(lb_load(cx, out, "t"), list[0].array, true));
    }
    const lb_planned two[] = {
        {.name = "x", .array = x},
        {.name = "none", .array = lb_zeros(cx, LB_I8, LB_SHAPE(0, 3))},
        {.name = "h", .array = h}};
    CHECK(lb_save(cx, out, two, 3,
                  &(lb_save_options){.kind = "npz", .no_sync = true}));
    CHECK(same_array(lb_load(cx, out, "h"), h, true));
    CHECK(lb_save(cx, out, two, 1,
                  &(lb_save_options){.kind = "npy", .no_sync = true}));
    lb_file *f = lb_file_open(cx, out, NULL);
    CHECK(same_array(lb_file_load(cx, f, lb_file_entry(f, 0)->name), x, true));
    lb_file_close(f);
    CHECK_EQ_S(lb_error(cx), "");
    const lb_planned q = {.name = "q",
                          .array = lb_quantize(cx, x, &variants[0].config)};
    REFUSED(lb_save(cx, out, &q, 1, &(lb_save_options){.kind = "npz"}),
            LB_E_UNSUPPORTED, "");
    REFUSED(lb_save(cx, out, two, 1, &(lb_save_options){.kind = "zip"}),
            LB_E_ARG, "unknown file type 'zip'");
}

/* ---- refusals ------------------------------------------------------------ */

static void test_refused(void)
{
    lb_array *x = lb_random_normal(cx, (lb_key){3, 4}, LB_F32, LB_SHAPE(4, 64));
    const lb_quant_config nf4 = {.format = "nf4"};
    lb_array *q = lb_quantize(cx, x, &nf4);
    const lb_planned two[] = {{.name = "x", .array = x},
                              {.name = "q", .array = q}};
    const lb_save_options options = {.no_sync = true};
    CHECK(lb_save(cx, out, two, 2, &options));
    size_t n = 0, m = 0;
    uint8_t *old = io_slurp(out, &n);
    lb_saver *s = lb_saver_open(cx, out, two, 2, &options);
    REFUSED(lb_saver_put(cx, s, q), LB_E_ARG,
            "'x' was planned as dense f32 (4,64), but is nf4 f32 (4,64)");
    CHECK_EQ_I(lb_saver_next(s), -1);
    CHECK(!lb_saver_put(cx, s, x));
    CHECK(!lb_saver_close(cx, s, true));
    s = lb_saver_open(cx, out, two, 2, &options);
    CHECK(lb_saver_put(cx, s, x));
    REFUSED(lb_saver_close(cx, s, true), LB_E_ARG,
            "save: array 'q' was planned but not written");
    s = lb_saver_open(cx, out, two, 2, &options);
    REFUSED(lb_saver_put(cx, s, NULL), LB_E_NULL, "the array is NULL");
    lb_saver_close(cx, s, false);
    s = lb_saver_open(cx, out, two, 1, &options);
    CHECK(lb_saver_put(cx, s, x));
    REFUSED(lb_saver_put(cx, s, x), LB_E_ARG, "more arrays than were planned");
    CHECK(!lb_saver_close(cx, s, true));
    lb_file *f = lb_file_open(cx, out, NULL);
    const lb_save_options over = {.input = &f, .n_inputs = 1};
    REFUSED(lb_save(cx, out, two, 2, &over), LB_E_ARG, "is also the input");
    lb_file_close(f);
    const lb_planned view = {.name = "v", .array = lb_transpose(cx, q, NULL)};
    REFUSED(lb_save(cx, out, &view, 1, &options), LB_E_UNSUPPORTED,
            "'v' is a view of part of a nf4 array");
    const lb_planned same[] = {two[0], two[0]};
    REFUSED(lb_save(cx, out, same, 2, &options), LB_E_ARG,
            "duplicate tensor 'x'");
    const lb_planned both = {.name = "x", .array = x, .config = &nf4};
    REFUSED(lb_save(cx, out, &both, 1, &options), LB_E_ARG,
            "both an array and a description");
    REFUSED(lb_save(cx, out, &(lb_planned){.array = x}, 1, &options), LB_E_NULL,
            "without a name");
    REFUSED(lb_save(cx, NULL, two, 2, &options), LB_E_NULL,
            "the path or the list");
    REFUSED(lb_save(cx, out, two, 2, &(lb_save_options){.struct_size = 2}),
            LB_E_ARG, "options.struct_size is 2");
    uint8_t *now = io_slurp(out, &m);
    CHECK(old && now && n == m && memcmp(old, now, n) == 0);
    free(old);
    free(now);
    CHECK(!lb_saver_close(cx, NULL, true));
}

/* ---- a whole file -------------------------------------------------------- */

typedef struct seen {
    int quantized, kept, declined;
} seen;

static void note(void *user, const lb_written *w)
{
    seen *s = user;
    s->quantized += !w->kept;
    s->kept += w->kept != NULL;
    s->declined += w->kept && strstr(w->kept, "cannot store") != NULL;
    CHECK(w->i < w->n && w->nbytes > 0);
}

static const char *spare(void *user, const lb_entry *e, lb_quant_config *config)
{
    if (strcmp(e->name, user) == 0) return "spared";
    if (e->rank == 3) config->format = "int8"; /* another for experts */
    return lb_choose_weights(NULL, e, config);
}

static void test_file(void)
{
    const lb_key key = {11, 12};
    lb_array *w = lb_random_normal(cx, key, LB_BF16, LB_SHAPE(66, 100));
    const lb_planned model[] = {
        {.name = "model.embed_tokens.weight", .array = w},
        {.name = "model.layers.0.mlp.up.weight", .array = w},
        {.name = "model.layers.0.mlp.down.weight", .array = w},
        {.name = "model.layers.0.experts.weight",
         .array = lb_random_normal(cx, key, LB_F32, LB_SHAPE(4, 32, 64))},
        {.name = "model.layers.0.norm.weight", .array = w},
        {.name = "model.layers.0.mlp.up.bias",
         .array = lb_random_normal(cx, key, LB_F32, LB_SHAPE(2000))},
        {.name = "tiny", .array = lb_zeros(cx, LB_F32, LB_SHAPE(3, 3))},
        {.name = "ids", .array = lb_zeros(cx, LB_I32, LB_SHAPE(64, 64))},
        {.name = "lm_head.weight", .array = w},
    };
    enum { N = sizeof model / sizeof *model };
    const lb_meta pt = {.key = "format",
                        .type = LB_META_STRING,
                        .n = 1,
                        .bytes = (const uint8_t *)"pt",
                        .size = 2};
    char to[SCRATCH_MAX + 8];
    snprintf(to, sizeof to, "%s.nf4", out);
    CHECK(lb_save(cx, out, model, N,
                  &(lb_save_options){.meta = &pt, .n_meta = 1}));
    seen s = {0};
    lb_quantize_options o = {.choose = spare,
                             .choose_user = (char[]){"model.layers.0.mlp.down"
                                                     ".weight"},
                             .done = note,
                             .done_user = &s,
                             .no_sync = true};
    CHECK(lb_quantize_file(cx, out, to, &o));
    CHECK_EQ_S(lb_error(cx), "");
    CHECK(s.quantized == 2 && s.kept == 7 && s.declined == 0);
    lb_file *f = lb_file_open(cx, to, NULL);
    CHECK_EQ_I(lb_file_count(f), N);
    const lb_meta *m = lb_file_find_meta(f, "format");
    CHECK(m && m->size == 2 && memcmp(m->bytes, "pt", 2) == 0);
    CHECK(same_array(lb_file_load(cx, f, model[1].name),
                     lb_quantize(cx, w, NULL), true));
    CHECK(same_array(lb_file_load(cx, f, model[2].name), w, true));
    CHECK_EQ_S(lb_file_find(f, model[3].name)->format, "int8");
    lb_file_close(f);
    /* What the layout cannot store stays dense: 66 rows are not a multiple of
     * 4. */
    s = (seen){0};
    o = (lb_quantize_options){.config = {.format = "ternary"},
                              .layout = "bitnet",
                              .done = note,
                              .done_user = &s,
                              .no_sync = true};
    CHECK(lb_quantize_file(cx, out, to, &o));
    CHECK(s.quantized == 0 && s.declined == 3);
    /* Scales of the model's dtype, and an offset that must be in the header. */
    const lb_planned rows = {
        .name = "a.weight",
        .array = lb_random_normal(cx, key, LB_BF16, LB_SHAPE(64, 100))};
    char small[SCRATCH_MAX + 8];
    snprintf(small, sizeof small, "%s.small", out);
    CHECK(lb_save(cx, small, &rows, 1, NULL));
    CHECK(lb_quantize_file(cx, small, to, &o));
    f = lb_file_open(cx, to, &(lb_file_options){.raw = true});
    CHECK_EQ_I(lb_file_find(f, "a.weight_scale")->dtype, LB_BF16);
    lb_file_close(f);
    const lb_quantize_options nested = {.config = {.format = "nf4",
                                                   .compat = LB_COMPAT_BNB_CPU,
                                                   .double_quant = true},
                                        .layout = "bnb"};
    CHECK(lb_quantize_file(cx, small, to, &nested));
    CHECK(same_array(lb_load(cx, to, "a.weight"),
                     lb_quantize(cx, rows.array, &nested.config), false));
    CHECK_EQ_S(lb_error(cx), "");
    unlink(small);
    CHECK(lb_quantize_file(cx, out, to, &o));
    /* Errors keep the old file. */
    o.max_memory = 1000;
    REFUSED(lb_quantize_file(cx, out, to, &o), LB_E_ARG,
            "max_memory is 1000; at least 1000000 bytes are needed");
    o.max_memory = 0;
    REFUSED(lb_quantize_file(cx, out, out, &o), LB_E_ARG, "is also the input");
    o.config.format = "nf5";
    REFUSED(lb_quantize_file(cx, out, to, &o), LB_E_ARG, "unknown format");
    REFUSED(lb_quantize_file(cx, "no/such", to, &o), LB_E_FILE, "cannot open");
    REFUSED(lb_quantize_file(cx, GOLDEN "bnb4.safetensors", to, NULL),
            LB_E_UNSUPPORTED, "already quantized");
    REFUSED(
        lb_quantize_file(cx, out, to, &(lb_quantize_options){.struct_size = 1}),
        LB_E_ARG, "options.struct_size is 1");
    o.config.format = "nf4";
    REFUSED(lb_quantize_file(cx, NULL, to, &o), LB_E_NULL,
            "quantize_file: a path is NULL");
    REFUSED(lb_quantize_file(cx, out, NULL, &o), LB_E_NULL,
            "quantize_file: a path is NULL");
    CHECK(!lb_quantize_file(NULL, out, to, &o));
    f = lb_file_open(cx, to, NULL);
    CHECK_EQ_I(lb_file_count(f), N);
    lb_file_close(f);
    unlink(to);
}

/* ---- arrays that differ from their plan -------------------------------- */

/* Puts an array that agrees with the plan except for its format. */
static bool put_other(const lb_planned *plan, lb_array *a)
{
    lb_saver *s = lb_saver_open(cx, out, plan, 1, NULL);
    CHECK(s != NULL);
    const bool ok = lb_saver_put(cx, s, a);
    return lb_saver_close(cx, s, ok) && ok;
}

static void test_other_parts(void)
{
    const lb_quant_config rows = {.format = "int8"};
    const lb_quant_config columns = {.format = "int8",
                                     .axes = {.n = 1, .axis = {0}}};
    const lb_quant_config scaled = {.format = "ternary",
                                    .scale = LB_SCALE_TENSOR};
    const lb_quant_config plain = {.format = "ternary", .scale = LB_SCALE_NONE};
    lb_array *x = lb_random_normal(cx, (lb_key){3, 4}, LB_F32, LB_SHAPE(8, 4));
    lb_planned p = {
        .name = "a", .dtype = LB_F32, .shape = LB_SHAPE(8, 4), .config = &rows};
    REFUSED(put_other(&p, lb_quantize(cx, x, &columns)), LB_E_ARG,
            "'a.scale' was planned with 32 bytes, but has 16");
    p.config = &columns;
    REFUSED(put_other(&p, lb_quantize(cx, x, &rows)), LB_E_ARG,
            "'a.scale' was planned with 16 bytes, but has at least 32");
    p.config = &scaled;
    REFUSED(put_other(&p, lb_quantize(cx, x, &plain)), LB_E_ARG,
            "'a' has different parts than planned");
    lb_saver *s = lb_saver_open(cx, out, &p, 1, NULL);
    REFUSED(lb_saver_piece(cx, s, x), LB_E_ARG,
            "'a' was planned as ternary f32, but is dense f32");
    CHECK(!lb_saver_close(cx, s, true));
}

/* External formats: unknown to the context, with too long a name, or with too
 * many nested parts. */
static void test_outside(void)
{
    static const lb_shape shape = {.rank = 2, .dim = {4, 6}};
    lb_array *a = toy_block_make(cx, &shape, 2, 1);
    lb_planned p = {.name = "a", .array = a};
    REFUSED(lb_save(cx, out, &p, 1, NULL), LB_E_ARG,
            "'a': unknown format 'toy_block' in this context");
    static lb_format named;
    named = toy_block;
    named.name = "a_format_that_is_called_by_too_many_words";
    p.array = lb_make(cx, &named, LB_F32, 0, &shape, a->store->part);
    REFUSED(lb_save(cx, out, &p, 1, NULL), LB_E_UNSUPPORTED,
            "by_too_many_words': the name is too long for a file");
    const lb_quant_config many = {
        .format = "nf4", .double_quant = true, .decode = LB_DECODE_POLY};
    lb_array *sum = lb_quantize(
        cx, lb_random_normal(cx, (lb_key){5, 6}, LB_F32, shape), &many);
    for (uint32_t i = 0; i < 6; i++)
        sum = toy_sum_make(cx, sum, 1, i);
    CHECK(lb_add_format(cx, &toy_sum));
    p.array = sum;
    REFUSED(lb_save(cx, out, &p, 1, NULL), LB_E_UNSUPPORTED,
            "'a' has 17 parts; the maximum is 16");
}

/* ---- samples for other programs ------------------------------------------ */

/* Every format in native files, and the decoded values: for checks by other
 * programs (tools/interop_files.py). */
static bool write_samples(const char *native, const char *values)
{
    enum { N = sizeof variants / sizeof *variants };
    static char name[N][8];
    lb_planned list[N] = {0}, decoded[N] = {0};
    for (size_t v = 0; v < N; v++) {
        const lb_shape shape = v % 2 ? LB_SHAPE(12, 70) : LB_SHAPE(3, 5, 33);
        const lb_dtype dtype = (lb_dtype)(LB_F32 + v % 3);
        lb_array *x = lb_random_normal(cx, (lb_key){9, v}, dtype, shape);
        snprintf(name[v], sizeof name[v], "v%zu", v);
        list[v].name = decoded[v].name = name[v];
        list[v].array = lb_quantize(cx, x, &variants[v].config);
        decoded[v].array =
            lb_convert(cx, lb_materialize(cx, list[v].array), LB_F32);
    }
    return lb_save(cx, native, list, N, NULL) &&
           lb_save(cx, values, decoded, N, NULL);
}

int main(int argc, char **argv)
{
    cx = lb_open(&(lb_options){.threads = 2});
    if (argc == 4 && strcmp(argv[1], "--write") == 0) {
        if (write_samples(argv[2], argv[3])) return 0;
        fprintf(stderr, "test_io_save: %s\n", lb_error(cx));
        return 1;
    }
    CHECK(scratch_file(out));
    test_golden();
    const size_t before = lb_bytes_in_use(cx);
    lb_enter(cx);
    test_golden();
    test_formats();
    test_nested();
    test_kinds();
    test_refused();
    test_file();
    lb_leave(cx);
    CHECK_EQ_I(lb_bytes_in_use(cx), before);
    test_other_parts();
    test_outside(); /* the last: it adds to the context */
    lb_close(cx);
    unlink(out);
    return check_report("arrays to files");
}
