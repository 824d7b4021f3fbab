/* hf_rules.c - which weights transformers loads quantized.
 *
 * It replaces linear layers, whose weights are matrices named P.weight, except
 * the output head. Embeddings and experts stored in one tensor are other kinds
 * of layers. Some models have weights that look like linear layers but are not:
 * the exceptions below are from version 5.22.
 */
#include <ctype.h>
#include <string.h>

#include "io/layouts/entries.h"
#include "io/util/json_text.h"

static const char own_kind[] =
    "transformers does not quantize this kind of layer";
static const char turned[] = "transformers does not quantize Conv1D layers";
static const char kept_f32[] = "transformers keeps it in f32";
static const char merged[] = "transformers merges or splits it when loading";

/* Models by model_type (*: a prefix), and a part of the weight's name. */
static const struct {
    const char *type, *part, *why;
} exceptions[] = {
    {"falcon", "", own_kind},
    {"esm", "trunk.", own_kind},
    /* Conv1D: a linear layer with transposed weights */
    {"gpt2", "", turned},
    {"openai-gpt", "", turned},
    {"imagegpt", "", turned},
    {"decision_transformer", "", turned},
    {"clvp", "", turned},
    /* _keep_in_fp32_modules */
    {"t5", ".wo.", kept_f32},
    {"mt5", ".wo.", kept_f32},
    {"umt5", ".wo.", kept_f32},
    {"udop", ".wo.", kept_f32},
    {"pop2piano", ".wo.", kept_f32},
    {"blip-2", "qformer", kept_f32},
    {"longcat_flash", "classifier", kept_f32},
    {"deepseek_v4", ".compressor.", kept_f32},
    {"deepseek_v4", ".o_a_proj.", own_kind},
    {"*", "indexer.weights_proj", kept_f32},
    /* conversion_mapping.py */
    {"radio", "attn.qkv", merged},
    {"hrm_text", "gate_up_proj", merged},
    {"hrm_text", "gqkv_proj", merged},
    {"dinov2*", "mlp.weights_in", merged},
    {"kimi_k*", "wqkv", merged},
    {"minimax_m3*", ".gate_proj", merged},
    {"minimax_m3*", ".up_proj", merged},
    {"molmo2*", "att_proj", merged},
    {"molmo2*", "ff_proj", merged},
    {"step3p*", "moe.", merged},
    {"nomic_bert", "Wqkv", merged},
    {"jina_embeddings_v3", "Wqkv", merged},
    {"gte", "qkv_proj", merged},
    {"gte", "up_gate_proj", merged},
    {"qianfan_ocr*", "attn.qkv", merged},
    {"unlimited_ocr*", "qkv_proj", merged},
    {"sapiens2", "w12", merged},
    {"tipsv2*", "w12", merged},
    {"tipsv2*", "attn.qkv", merged},
    {"inkling*", "w13_dn", merged},
    {"gradium_phonon*", "in_proj", merged},
    {"nemo_speechlm*", "w_qkv", merged},
    {"mistral_large4", "attention.wq", merged},
    {"mistral_large4", "attention.wk", merged},
};

static bool is_type(const char *type, const char *wanted)
{
    const size_t n = strcspn(wanted, "*");
    return strncmp(type, wanted, n) == 0 && (wanted[n] || !type[n]);
}

static const char *find_exception(const char *type, const char *name)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (is_type(type, exceptions[i].type) &&
            strstr(name, exceptions[i].part))
            return exceptions[i].why;
    return NULL;
}

bool lb_name_is_expert(const char *name)
{
    static const char word[] = "experts.";
    const char *at = name;
    while ((at = strstr(at, word))) {
        const bool whole = at == name || at[-1] == '.';
        at += sizeof word - 1;
        if (whole && isdigit((unsigned char)*at)) return true;
    }
    return false;
}

const char *lb_linear_only(const lb_model_config *c, const lb_entry *e)
{
    size_t n;
    const char *why = NULL;
    const char *role = lb_name_role(e->name);
    if (lb_role_is_embedding(role))
        return "transformers does not quantize embeddings";
    if (lb_role_is_head(role))
        return "transformers does not quantize the output head";
    if (e->rank != 2) return "transformers quantizes matrices only";
    if (!lb_name_ends(e->name, ".weight", &n))
        return "transformers quantizes arrays named *.weight only";
    if (lb_name_is_expert(e->name))
        return "transformers merges experts when loading";
    for (int i = 0; !why && i < c->n_types; i++)
        why = find_exception(c->type[i], e->name);
    return why;
}

void lb_put_texts(lb_bytes *to, const char *const *text, int64_t n)
{
    if (!text) {
        lb_bytes_text(to, "null");
        return;
    }
    lb_bytes_text(to, "[");
    for (int64_t i = 0; i < n; i++) {
        lb_bytes_text(to, "%s\n      ", i ? "," : "");
        lb_json_put(to, text[i], strlen(text[i]), true);
    }
    lb_bytes_text(to, n ? "\n    ]" : "]");
}
