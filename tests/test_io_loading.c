/* test_io_loading.c - weights that stay float because loaders require it, and
 * how config.json lists them: models of several kinds, with the weight names
 * of transformers, as nf4 for bitsandbytes and as ternary for BitNet. `make
 * interop` loads such models with transformers itself.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"
#include "lowbit_io.h"
#include "scratch.h"

enum { MOST = 12 };

/* why: "" if it is packed. */
typedef struct weight {
    const char *name, *why;
} weight;

typedef struct model {
    const char *config;
    weight weight[MOST];
    int rows[MOST];         /* of 64 values each; 0: 32 */
    const char *skip[MOST]; /* in this order; none: null, or for BitNet ... */
    const char *bitnet;     /* ... this alone */
} model;

#define EMBEDDING "embedding"
#define EXPERT    "transformers merges experts when loading"
#define MORE      "predictions.decoder", "proj_out", "output_projection"

#define BIAS "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"

static const model models[] = {
    {.config = "{\"model_type\": \"llama\"}",
     .weight = {{"model.embed_tokens.weight", EMBEDDING},
                {"model.layers.0.mlp.up_proj.weight", ""},
                {"lm_head.weight", "output head"}},
     .bitnet = "lm_head"},
    /* There is no head in the file: it is tied to the embedding. */
    {.config = "{\"model_type\": \"llama\", \"tie_word_embeddings\": true}",
     .weight = {{"model.embed_tokens.weight", EMBEDDING},
                {"model.layers.0.mlp.up_proj.weight", ""}},
     .skip = {"lm_head", MORE}},
    /* Loaded under another name. */
    {.config = "{\"model_type\": \"gpt_neox\"}",
     .weight = {{"embed_out.weight", "output head"},
                {"gpt_neox.embed_in.weight", EMBEDDING},
                {"gpt_neox.layers.0.mlp.dense.weight", ""}},
     .skip = {"gpt_neox.embed_in", "embed_out", "lm_head", MORE}},
    /* The last layer, which loaders without a list keep as float. */
    {.config = "{\"model_type\": \"llama\"}",
     .weight = {{"model.layers.0.mlp.up_proj.weight", ""},
                {"score.weight", "output head"}},
     .skip = {"score", "lm_head", MORE}},
    /* The name of a packed layer ends like that of a head. */
    {.config = "{}",
     .weight = {{"model.blocks.0.proj_out.weight", ""},
                {"model.embed_positions.weight", EMBEDDING}},
     .skip = {"model.embed_positions", "lm_head", "predictions.decoder",
              "output_projection"}},
    {.config = "{\"model_type\": \"mixtral\"}",
     .weight = {{"lm_head.weight", "output head"},
                {"model.layers.0.moe.experts.0.w1.weight", EXPERT},
                {"model.layers.0.moe.experts.11.w2.weight", EXPERT},
                {"model.layers.0.moe.gate.weight", "router"},
                {"model.layers.0.moe.shared_experts.up.weight", ""},
                {"model.layers.0.self_attn.q_proj.weight", ""}},
     .skip = {"model.layers.0.moe.gate", "(.*\\\\.)?experts\\\\.\\\\d+\\\\..*",
              "lm_head"}},
    {.config = "{\"model_type\": \"t5\"}",
     .weight = {{BIAS ".weight", EMBEDDING},
                {"encoder.block.0.layer.1.DenseReluDense.wi.weight", ""},
                {"encoder.block.0.layer.1.DenseReluDense.wo.weight",
                 "transformers keeps it in f32"},
                {"shared.weight", EMBEDDING}},
     .skip = {BIAS, "encoder.block.0.layer.1.DenseReluDense.wo", "shared",
              "lm_head", MORE}},
    /* A nested model has a kind of its own. */
    {.config = "{\"model_type\": \"blip-2\", \"text_config\": "
               "{\"x\": [{}], \"model_type\": \"t5\"}, \"model_type_\": 1}",
     .weight = {{"language_projection.weight", ""},
                {"text.wo.weight", "transformers keeps it in f32"}},
     .skip = {"text.wo", "lm_head", MORE}},
    /* Small layers are packed like large ones; other tensors are not. */
    {.config = "{\"model_type\": \"qwen2_moe\"}",
     .weight = {{"lm_head.weight", "output head"},
                {"model.layers.0.mixer.table", "tiny"},
                {"model.layers.0.mlp.gate.weight", "router"},
                {"model.layers.0.mlp.shared_expert_gate.weight", ""},
                {"model.layers.0.self_attn.k_proj.weight", ""}},
     .rows = {0, 4, 4, 4, 8},
     .skip = {"model.layers.0.mlp.gate", "lm_head"}},
    {.config = "{\"model_type\": \"falcon_h1\"}",
     .weight = {{"lm_head.weight", "output head"},
                {"model.layers.0.up_proj.weight", ""}},
     .bitnet = "lm_head"},
};
enum { N_MODELS = sizeof models / sizeof *models };

/* Nothing is packed in these, so nothing is listed. */
static const struct {
    const char *type, *name, *why;
} whole[] = {
    {"gpt2", "transformer.h.0.attn.c_attn.weight",
     "transformers does not quantize Conv1D layers"},
    {"falcon", "transformer.h.0.mlp.dense_h_to_4h.weight",
     "transformers does not quantize this kind of layer"},
    {"dinov2", "encoder.layer.0.mlp.weights_in.weight",
     "transformers merges or splits it when loading"},
};

static lb_ctx *cx;
static char root[SCRATCH_MAX];

static const char *in(const char *name)
{
    static char path[SCRATCH_MAX + 40];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static const char *read_text(const char *name)
{
    static char text[8192];
    FILE *f = fopen(in(name), "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f) fclose(f);
    return text;
}

static void make(const char *config, const weight *w, const int *rows)
{
    lb_planned list[MOST] = {0};
    int64_t n = 0;
    for (; n < MOST && w[n].name; n++)
        list[n] =
            (lb_planned){.name = w[n].name,
                         .array = lb_random_normal(
                             cx, (lb_key){3, 0}, LB_BF16,
                             LB_SHAPE(rows && rows[n] ? rows[n] : 32, 64))};
    CHECK(lb_save(cx, in("model/model.safetensors"), list, n, NULL));
    CHECK(scratch_put(in("model/config.json"), config));
}

static void note(void *user, const lb_written *w)
{
    const weight *want = user;
    while (want->name && strcmp(want->name, w->entry->name) != 0)
        want++;
    CHECK(want->name);
    if (want->name) CHECK_EQ_S(w->kept ? w->kept : "", want->why);
}

static void quantize(const char *layout, const weight *w)
{
    const bool bnb = strcmp(layout, "bnb") == 0;
    const lb_quantize_options o = {
        .struct_size = sizeof o,
        .layout = layout,
        .config = {.format = bnb ? "nf4" : "ternary",
                   .compat = bnb ? LB_COMPAT_BNB_CPU : LB_COMPAT_NATIVE,
                   .threshold = bnb ? 0 : LB_THRESHOLD_ABSMEAN,
                   .meaning = bnb ? 0 : LB_MEANS_INVERSE},
        .done = note,
        .done_user = (void *)(uintptr_t)w,
        .directory = true,
        .no_sync = true};
    char from[SCRATCH_MAX + 40];
    snprintf(from, sizeof from, "%s", in("model"));
    CHECK(lb_quantize_file(cx, from, in("out"), &o));
    CHECK_EQ_S(lb_error(cx), "");
    lb_clear(cx);
}

static void check_list(const char *key, const char *const *skip)
{
    char want[1024];
    int at = snprintf(want, sizeof want, "\"%s\": [", key);
    for (int i = 0; i < MOST && skip[i]; i++)
        at += snprintf(want + at, sizeof want - (size_t)at, "%s\n      \"%s\"",
                       i ? "," : "", skip[i]);
    snprintf(want + at, sizeof want - (size_t)at, "\n    ]");
    const char *text = read_text("out/config.json");
    CHECK(strstr(text, want));
    if (!strstr(text, want)) printf("expected %s in %s\n", want, text);
}

int main(void)
{
    cx = lb_open(&(lb_options){.threads = 1});
    CHECK(scratch_dir(root) && mkdir(in("model"), 0777) == 0);
    for (int i = 0; i < N_MODELS; i++) {
        const model *m = &models[i];
        const char *const head[] = {m->bitnet, NULL};
        lb_enter(cx);
        make(m->config, m->weight, m->rows);
        quantize("bnb", m->weight);
        if (m->skip[0])
            check_list("llm_int8_skip_modules", m->skip);
        else
            CHECK(strstr(read_text("out/config.json"),
                         "\"llm_int8_skip_modules\": null,"));
        quantize("bitnet", m->weight);
        check_list("modules_to_not_convert", m->skip[0] ? m->skip : head);
        lb_leave(cx);
    }
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        const weight one[MOST] = {{whole[i].name, whole[i].why}};
        char config[80];
        snprintf(config, sizeof config, "{\"model_type\": \"%s\"}",
                 whole[i].type);
        lb_enter(cx);
        make(config, one, NULL);
        quantize("bnb", one);
        CHECK_EQ_S(read_text("out/config.json"), config);
        lb_leave(cx);
    }
    lb_close(cx);
    scratch_remove(root);
    CHECK(!scratch_exists(root));
    return check_report("models for their loaders");
}
