/* test_io_model_dir.c - model directories, quantized to directories.
 *
 * A model in two files with typical contents: norms, embeddings, a head, a
 * router next to layers with similar names, experts in one tensor. Weights that
 * the loader accepts only as floats stay floats and are listed in config.json;
 * other files are copied; the directory appears complete or not at all.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "core/core.h"
#include "io/containers/multi_file.h"
#include "io/layouts/descriptor.h"
#include "io/models/model_dir.h"
#include "refused.h"
#include "scratch.h"

static lb_ctx *cx;
static char root[SCRATCH_MAX];

static scratch_path in(const char *model, const char *name)
{
    const scratch_path p = scratch_in(root, model, "");
    return *name ? scratch_in(p.s, name, "") : p;
}

static void put_file(const char *dir, const char *name, const char *text)
{
    CHECK(scratch_put(in(dir, name).s, text));
}

static void check_file(const char *dir, const char *name, const char *want)
{
    static char text[8192];
    FILE *f = fopen(in(dir, name).s, "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f) fclose(f);
    CHECK_EQ_S(text, want);
}

static bool is_there(const char *dir, const char *name)
{
    return scratch_exists(in(dir, name).s);
}

/* ---- a model ------------------------------------------------------------- */

static const struct {
    const char *name;
    int shard, rank;
    int64_t dim[3];
} arrays[] = {
    {"model.embed_tokens.weight", 0, 2, {64, 64}},
    {"model.layers.0.mlp.experts.up", 0, 3, {2, 32, 64}},
    {"model.layers.0.mlp.gate.weight", 0, 2, {16, 64}},
    {"model.layers.0.mlp.gate_proj.weight", 0, 2, {96, 64}},
    {"model.layers.0.norm.weight", 0, 1, {64}},
    {"lm_head.weight", 1, 2, {64, 64}},
    {"model.layers.1.mlp.down_proj.weight", 1, 2, {64, 96}},
    {"model.layers.1.mlp.up_proj.weight", 1, 2, {96, 64}},
};
enum { N = sizeof arrays / sizeof *arrays };

static const char config_text[] = "{\n  \"dtype\": \"bfloat16\",\n"
                                  "  \"model_type\": \"test\"\n}\n";

/* With arrays in the native layout, which transformers must refuse. */
#define OWN_CONFIG                                                             \
    "\"quantization_config\": {\n    \"lowbit\": {\n      \"layout\": "        \
    "\"native\",\n      \"version\": \"" LB_VERSION_STRING "\"\n    }\n  }"
static const char native_text[] = "{\n  \"dtype\": \"bfloat16\",\n"
                                  "  \"model_type\": \"test\",\n"
                                  "  " OWN_CONFIG "\n}\n";

static lb_array *numbers(int i)
{
    return lb_random_normal(cx, (lb_key){5, (uint64_t)i}, LB_BF16,
                            lb_shape_make(arrays[i].rank, arrays[i].dim));
}

static void make_model(void)
{
    lb_tensor tensor[N] = {0};
    int64_t shard[N];
    CHECK(mkdir(in("model", "").s, 0777) == 0);
    for (int k = 0; k < 2; k++) {
        lb_planned list[N] = {0};
        int64_t n = 0;
        for (int i = 0; i < N; i++) {
            tensor[i].name = arrays[i].name;
            shard[i] = arrays[i].shard;
            if (arrays[i].shard == k)
                list[n++] =
                    (lb_planned){.name = arrays[i].name, .array = numbers(i)};
        }
        CHECK(lb_save(cx, in("model", lb_shard_name(k, 2).s).s, list, n, NULL));
    }
    CHECK(lb_shards_write_index(cx,
                                in("model", "model.safetensors.index.json").s,
                                tensor, shard, N, 2, 0, NULL));
    put_file("model", "config.json", config_text);
    put_file("model", "tokenizer.json", "{\"a\": 1}");
    put_file("model", "pytorch_model.bin", "the same in another form");
    put_file("model", ".hidden", "x");
    CHECK(mkdir(in("model", ".cache").s, 0777) == 0);
    put_file("model", ".cache/download", "x");
    CHECK(mkdir(in("model", "2_Dense").s, 0777) == 0);
    put_file("model", "2_Dense/config.json", "{\"quantization_config\": 1}");
    put_file("model", "2_Dense/model.safetensors", "weights of its own");
}

/* ---- results ------------------------------------------------------------- */

typedef struct seen {
    int quantized, kept, resumed;
    char why[N][64];
    int64_t stop_at;
    double dd;
    const char *intrudes; /* where another file appears meanwhile */
} seen;

static void note(void *user, const lb_written *w)
{
    seen *s = user;
    s->quantized += !w->kept;
    s->kept += w->kept != NULL;
    s->resumed += w->resumed;
    s->dd += w->error.dd;
    for (int i = 0; i < N; i++)
        if (strcmp(arrays[i].name, w->entry->name) == 0)
            snprintf(s->why[i], sizeof s->why[i], "%s", w->kept ? w->kept : "");
    if (s->stop_at && w->i + 1 >= s->stop_at) _exit(7);
    if (s->intrudes) put_file(s->intrudes, "thesis.txt", "x");
}

static lb_quantize_options options(const char *layout, lb_quant_config config,
                                   seen *s)
{
    return (lb_quantize_options){.struct_size = sizeof(lb_quantize_options),
                                 .layout = layout,
                                 .config = config,
                                 .done = note,
                                 .done_user = s,
                                 .directory = true,
                                 .no_sync = true};
}

static void remove_dir(const char *dir)
{
    scratch_remove(in(dir, "").s);
    CHECK(!is_there(dir, ""));
}

static void check_arrays(const char *dir, const lb_quant_config *config,
                         const seen *s)
{
    lb_file *f = lb_file_open(cx, in(dir, "").s, NULL);
    CHECK_EQ_I(lb_file_count(f), N);
    for (int i = 0; i < N; i++) {
        lb_enter(cx);
        lb_array *want = numbers(i);
        if (!s->why[i][0]) want = lb_quantize(cx, want, config);
        lb_array *got = lb_file_load(cx, f, arrays[i].name);
        lb_difference d = {0};
        CHECK(got && lb_compare(cx, want, got, &d) && !d.apart);
        if (got) CHECK_EQ_S(lb_format_of(got), lb_format_of(want));
        lb_leave(cx);
    }
    lb_file_close(f);
    CHECK_EQ_S(lb_error(cx), "");
}

/* A shard can be read by itself: it describes its own arrays only. */
static void check_shards(const char *dir, const seen *s)
{
    const size_t prefix = strlen(LB_DESCRIPTION);
    const lb_meta *m;
    for (int k = 0; k < 2; k++) {
        int64_t mine = 0, packed = 0, described = 0;
        lb_file *f = lb_file_open(cx, in(dir, lb_shard_name(k, 2).s).s, NULL);
        for (int i = 0; i < N; i++) {
            mine += arrays[i].shard == k;
            packed += arrays[i].shard == k && !s->why[i][0];
        }
        for (int64_t i = 0; (m = lb_file_meta(f, i)); i++)
            described += strncmp(m->key, LB_DESCRIPTION, prefix) == 0;
        CHECK_EQ_I(lb_file_count(f), mine);
        CHECK_EQ_I(described, packed);
        lb_file_close(f);
    }
}

/* Files of others are not lost: neither in a directory with the name of the
 * partial one, nor in the old one if they appear while a job runs. */
static void test_strangers(void)
{
    seen s = {0};
    const lb_quant_config nf4 = {.format = "nf4"};
    lb_quantize_options o = options("native", nf4, &s);
    const scratch_path from = in("model", ""), to = in("native", "");
    CHECK(mkdir(in("native.partial", "").s, 0777) == 0);
    put_file("native.partial", "model.safetensors", "x");
    put_file("native.partial", "thesis.txt", "x");
    REFUSED(lb_quantize_file(cx, from.s, to.s, &o), LB_E_ARG,
            "native.partial holds 'thesis.txt', which is not part");
    check_file("native.partial", "model.safetensors", "x");
    check_file("native.partial", "thesis.txt", "x");
    CHECK(unlink(in("native.partial", "thesis.txt").s) == 0);
    CHECK(lb_quantize_file(cx, from.s, to.s, &o));
    CHECK(!is_there("native.partial", ""));
    s.intrudes = "native";
    REFUSED(lb_quantize_file(cx, from.s, to.s, &o), LB_E_ARG,
            "native holds 'thesis.txt', which is not part");
    check_file("native", "thesis.txt", "x");
    CHECK(unlink(in("native", "thesis.txt").s) == 0);
    check_arrays("native", &nf4, &s);
    /* The complete output still exists and need not be made again. */
    s = (seen){0};
    o.resume = true;
    CHECK(lb_quantize_file(cx, from.s, to.s, &o));
    CHECK(s.resumed == s.quantized + s.kept && s.resumed > 0);
    CHECK(!is_there("native.partial", ""));
    check_arrays("native", &nf4, &s);
}

static void test_native(void)
{
    seen s = {0};
    const lb_quant_config nf4 = {.format = "nf4"};
    const lb_quantize_options o = options("native", nf4, &s);
    CHECK(lb_quantize_file(cx, in("model", "").s, in("native/", "").s, &o));
    CHECK(s.quantized == 4 && s.kept == 4);
    CHECK_EQ_S(s.why[0], "embedding");
    CHECK_EQ_S(s.why[1], "");
    CHECK_EQ_S(s.why[2], "router");
    CHECK_EQ_S(s.why[5], "output head");
    check_arrays("native", &nf4, &s);
    check_file("native", "config.json", native_text);
    check_file("native", "tokenizer.json", "{\"a\": 1}");
    CHECK(!is_there("native", "pytorch_model.bin"));
    check_file("native", ".hidden", "x");
    check_file("native", "2_Dense/config.json", "{\"quantization_config\": 1}");
    check_file("native", "2_Dense/model.safetensors", "weights of its own");
    CHECK(!is_there("native", ".cache") && !is_there("native.partial", ""));
    CHECK(!is_there("native", ".lowbit-job"));
    /* Replaces itself, something else, a similar directory. */
    CHECK(!lb_quantize_file(cx, in("native", "").s, in("native", "").s, &o));
    CHECK(strstr(lb_error(cx), "already quantized"));
    lb_clear(cx);
    CHECK(!lb_quantize_file(cx, in("model", "").s, in("model", "").s, &o));
    CHECK(strstr(lb_error(cx), "is also the input"));
    lb_clear(cx);
    put_file("native", "thesis.txt", "x");
    CHECK(!lb_quantize_file(cx, in("model", "").s, in("native", "").s, &o));
    CHECK(strstr(lb_error(cx), "holds 'thesis.txt'"));
    lb_clear(cx);
    CHECK(unlink(in("native", "thesis.txt").s) == 0);
    CHECK(lb_quantize_file(cx, in("model", "").s, in("native", "").s, &o));
    CHECK(!is_there("native.partial", ""));
    check_arrays("native", &nf4, &s);
    check_shards("native", &s);
}

static void test_loaded(void)
{
    seen s = {0};
    const lb_quant_config nf4 = {.format = "nf4", .compat = LB_COMPAT_BNB_CPU};
    const lb_quantize_options o = options("bnb", nf4, &s);
    CHECK(lb_quantize_file(cx, in("model", "").s, in("bnb", "").s, &o));
    CHECK_EQ_S(s.why[1], "transformers quantizes matrices only");
    check_arrays("bnb", &nf4, &s);
    /* The router's name is a prefix of a packed layer's. */
    check_file(
        "bnb", "config.json",
        "{\n  \"dtype\": \"bfloat16\",\n  \"model_type\": \"test\",\n"
        "  \"quantization_config\": {\n    \"_load_in_4bit\": true,\n"
        "    \"_load_in_8bit\": false,\n"
        "    \"bnb_4bit_compute_dtype\": \"bfloat16\",\n"
        "    \"bnb_4bit_quant_storage\": \"uint8\",\n"
        "    \"bnb_4bit_quant_type\": \"nf4\",\n"
        "    \"bnb_4bit_use_double_quant\": false,\n"
        "    \"llm_int8_enable_fp32_cpu_offload\": false,\n"
        "    \"llm_int8_has_fp16_weight\": false,\n"
        "    \"llm_int8_skip_modules\": [\n"
        "      \"model.layers.0.mlp.gate$\",\n      \"lm_head\"\n    ],\n"
        "    \"llm_int8_threshold\": 6.0,\n"
        "    \"load_in_4bit\": true,\n    \"load_in_8bit\": false,\n"
        "    \"quant_method\": \"bitsandbytes\"\n  }\n}\n");
    /* Weights that the configuration lists as quantized, but are float, must be
     * quantized that way; an empty configuration has no effect. */
    put_file("model", "config.json",
             "{\"quantization_config\": {\"quant_method\": \"bitnet\"}, "
             "\"x\": 2}");
    REFUSED(lb_quantize_file(cx, in("model", "").s, in("no", "").s, &o),
            LB_E_UNSUPPORTED,
            "quantized with bitnet (according to config.json)");
    const lb_quant_config ternary = {.format = "ternary",
                                     .threshold = LB_THRESHOLD_ABSMEAN,
                                     .meaning = LB_MEANS_INVERSE};
    const lb_quantize_options b = options("bitnet", ternary, &s);
    CHECK(lb_quantize_file(cx, in("model", "").s, in("bitnet", "").s, &b));
    check_file(
        "bitnet", "config.json",
        "{\"quantization_config\": {\n    \"quant_method\": \"bitnet\",\n"
        "    \"linear_class\": \"bitlinear\",\n"
        "    \"quantization_mode\": \"offline\",\n"
        "    \"modules_to_not_convert\": [\n"
        "      \"model.layers.0.mlp.gate$\",\n      \"lm_head\"\n    ]\n"
        "  }, \"x\": 2}");
    put_file("model", "config.json", "{\"quantization_config\": {}, \"x\": 2}");
    const lb_quantize_options plain = options("native", nf4, &s);
    CHECK(lb_quantize_file(cx, in("model", "").s, in("plain", "").s, &plain));
    check_file("plain", "config.json", "{" OWN_CONFIG ", \"x\": 2}");
    put_file("model", "config.json", config_text);
    CHECK_EQ_S(lb_error(cx), "");
}

/* ---- resuming ------------------------------------------------------------ */

static void stop_after(int64_t n, lb_quantize_options o)
{
    const pid_t child = fork();
    if (child == 0) {
        seen s = {.stop_at = n};
        lb_ctx *own = lb_open(&(lb_options){.threads = 1});
        o.done_user = &s;
        lb_quantize_file(own, in("model", "").s, in("again", "").s, &o);
        _exit(0);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static bool same_as(const char *dir, const char *name)
{
    char command[2 * sizeof(scratch_path) + 16];
    snprintf(command, sizeof command, "cmp -s '%s' '%s'", in("native", name).s,
             in(dir, name).s);
    return system(command) == 0;
}

static void test_resume(void)
{
    seen s = {0};
    const lb_quant_config nf4 = {.format = "nf4"};
    lb_quantize_options o = options("native", nf4, &s);
    for (int64_t k = 1; k <= N; k++) {
        stop_after(k, o);
        CHECK(!is_there("again", "") && is_there("again.partial", ""));
        s = (seen){0};
        o.resume = true;
        CHECK(lb_quantize_file(cx, in("model", "").s, in("again", "").s, &o));
        CHECK_EQ_I(s.resumed, k);
        CHECK(s.quantized + s.kept == N);
        CHECK(same_as("again", lb_shard_name(0, 2).s));
        CHECK(same_as("again", lb_shard_name(1, 2).s));
        CHECK(same_as("again", "model.safetensors.index.json"));
        CHECK(same_as("again", "config.json"));
        CHECK(!is_there("again.partial", ""));
        remove_dir("again");
    }
    /* A partial output of another job is not resumed. */
    o.config.block_size = 32;
    stop_after(6, o);
    o.config.block_size = 0;
    s = (seen){0};
    CHECK(lb_quantize_file(cx, in("model", "").s, in("again", "").s, &o));
    CHECK(s.resumed == 0 && same_as("again", lb_shard_name(0, 2).s));
    remove_dir("again");
    o.layout = "eformer";
    stop_after(6, o);
    o.layout = "native";
    s = (seen){0};
    CHECK(lb_quantize_file(cx, in("model", "").s, in("again", "").s, &o));
    CHECK(s.resumed == 0 && same_as("again", lb_shard_name(0, 2).s));
    remove_dir("again");
    /* Errors that an earlier run did not measure are measured on request. */
    seen all = {0};
    o.measure = true;
    o.done_user = &all;
    CHECK(lb_quantize_file(cx, in("model", "").s, in("again", "").s, &o));
    remove_dir("again");
    o.measure = false;
    stop_after(6, o);
    s = (seen){0};
    o.measure = true;
    o.done_user = &s;
    CHECK(lb_quantize_file(cx, in("model", "").s, in("again", "").s, &o));
    CHECK(s.resumed == 6 && all.dd > 0 && s.dd == all.dd);
}

/* An error in the middle keeps the old files and leaves no others. */
static void test_error(void)
{
    seen s = {0};
    const lb_quant_config nf4 = {.format = "nf4"};
    const lb_quantize_options o = options("native", nf4, &s);
    put_file("model", "config.json", "{\"no\": }");
    CHECK(!lb_quantize_file(cx, in("model", "").s, in("native", "").s, &o));
    CHECK(lb_error_status(cx) == LB_E_CONTENT);
    lb_clear(cx);
    check_file("native", "config.json", native_text);
    CHECK(!is_there("native.partial", ""));
    put_file("model", "config.json", config_text);
}

/* config.json is formatted like Python's json; its size is limited. */
static void test_config(void)
{
#define ODD                                                                    \
    "{\"time_step_limit\": [0.0, Infinity], \"a\": "                           \
    "-Infinity, \"b\": NaN, \"c\": 1e999"
    enum { LARGE = (1 << 24) + 1 };
    seen s = {0};
    lb_model_config c = {0};
    lb_bytes out = {.heap = cx->heap};
    const lb_quant_config nf4 = {.format = "nf4"};
    const lb_quantize_options o = options("native", nf4, &s);
    put_file("model", "config.json", ODD "}");
    CHECK(lb_quantize_file(cx, in("model", "").s, in("odd", "").s, &o));
    CHECK_EQ_S(lb_error(cx), "");
    check_file("odd", "config.json", ODD ",\n  " OWN_CONFIG "\n}");
    put_file("model", "config.json", config_text);
    uint8_t *large = malloc(LARGE);
    CHECK(large != NULL);
    memset(large, ' ', LARGE);
    lb_infile *f = lb_infile_wrap(cx, "config.json", large, LARGE);
    REFUSED(lb_model_json(cx, f, NULL, &out), LB_E_CONTENT,
            "config.json: has 16777217 bytes; the maximum is 16777216");
    REFUSED(lb_model_config_read(cx, f, &c), LB_E_CONTENT,
            "config.json: has 16777217 bytes; the maximum is 16777216");
    lb_infile_unref(f);
    free(large);
    /* Each removal reads the text again: at most 64. */
    for (int n = 64; n <= 65; n++) {
        lb_bytes text = {.heap = cx->heap};
        lb_bytes_free(&out);
        out = (lb_bytes){.heap = cx->heap};
        lb_bytes_text(&text, "{\"a\": 1");
        for (int i = 0; i < n; i++)
            lb_bytes_text(&text, ", \"compression_config\": {}");
        lb_bytes_text(&text, "}");
        f = lb_infile_wrap(cx, "config.json", text.at, text.n);
        if (n == 64)
            CHECK(lb_model_json(cx, f, NULL, &out));
        else
            REFUSED(lb_model_json(cx, f, NULL, &out), LB_E_CONTENT,
                    "config.json: has more than 64 quantization settings");
        lb_infile_unref(f);
        lb_bytes_free(&text);
    }
    lb_bytes_free(&out);
}

/* ---- without a layout ---------------------------------------------------- */

static void keep_text(void *user, const char *text)
{
    snprintf(user, 256, "%s", text);
}

/* Without --layout: the layout that is chosen, and why. */
static void chosen(const lb_quantize_options *how, const char *layout,
                   const char *why)
{
    char text[256] = "";
    lb_quantize_options o = *how;
    o.note = keep_text;
    o.note_user = text;
    CHECK(lb_quantize_file(cx, in("model", "").s, in("chosen", "").s, &o));
    CHECK_EQ_S(lb_error(cx), "");
    CHECK_EQ_S(text, why);
    lb_file *f = lb_file_open(cx, in("chosen", "").s, NULL);
    int packed = 0;
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        const lb_entry *e = lb_file_entry(f, i);
        if (!e->layout) continue;
        CHECK_EQ_S(e->layout, layout);
        packed++;
    }
    CHECK(packed > 0);
    lb_file_close(f);
    remove_dir("chosen");
}

static void test_chosen(void)
{
#define ONLY "layout native, which only lowbit loads"
    seen s = {0};
    lb_quantize_options o = options(NULL, (lb_quant_config){0}, &s);
    o.config.format = "nf4";
    chosen(&o, "bnb", "layout bnb, which transformers loads");
    o.config.double_quant = true;
    chosen(&o, "bnb", "layout bnb, which transformers loads");
    o.config = (lb_quant_config){.format = "int8"};
    chosen(&o, "bnb", "layout bnb, which transformers loads");
    o.config = (lb_quant_config){.format = "ternary"};
    chosen(&o, "bitnet", "layout bitnet, which transformers loads");
    o.config.scale = LB_SCALE_ROW;
    chosen(&o, "native",
           ONLY ": layout bitnet does not support these settings");
    o.config = (lb_quant_config){.format = "int8", .block_size = 32};
    chosen(&o, "native", ONLY ": layout bnb does not support these settings");
    o.config = (lb_quant_config){.format = "binary"};
    chosen(&o, "native", ONLY ": transformers does not support this type");
    o.config = (lb_quant_config){.format = "nf4"};
    o.target_bits = 10;
    chosen(&o, "native", ONLY ": target sizes mix types");
    o.target_bits = 0;
    o.strict = true; /* bitsandbytes has no arrays of rank 3 */
    chosen(&o, "native",
           ONLY ": layout bnb cannot store every requested array");
    o.strict = false;
    o.selection = lb_selection_open(cx);
    CHECK(lb_selection_override(cx, o.selection, "up_proj=keep"));
    chosen(&o, "bnb", "layout bnb, which transformers loads");
    CHECK(lb_selection_override(cx, o.selection, "down=int8"));
    chosen(
        &o, "native",
        ONLY
        ": layout bnb requires one type with the same settings for all arrays");
    lb_selection_close(o.selection);
    o.selection = lb_selection_open(cx);
    CHECK(lb_selection_include(cx, o.selection, "lm_head"));
    chosen(&o, "native",
           ONLY ": layout bnb cannot store every requested array");
    lb_selection_close(o.selection);
}

int main(void)
{
    cx = lb_open(&(lb_options){.threads = 2});
    CHECK(scratch_dir(root));
    lb_enter(cx);
    make_model();
    test_native();
    test_strangers();
    test_loaded();
    test_resume();
    test_error();
    test_config();
    test_chosen();
    lb_leave(cx);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    remove_dir("");
    return check_report("directories of models");
}
