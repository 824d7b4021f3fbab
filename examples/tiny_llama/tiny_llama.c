/* tiny_llama.c - write a model directory as transformers loads it: a Llama with
 * four layers and random bf16 weights, config.json and model.safetensors.
 *
 *     tiny_llama DIR
 *     lowbit quantize DIR -o DIR-nf4 --type nf4
 *
 * The demo and anyone without a checkpoint at hand can try `lowbit` on it.
 */
#include <errno.h>
#include <lowbit_io.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LAYERS = 4, HIDDEN = 256, HEADS = 4, KV_HEADS = 2, INNER = 768 };
enum { VOCABULARY = 1024, HEAD = HIDDEN / HEADS, MOST = 16 * LAYERS };

typedef struct model {
    lb_ctx *cx;
    lb_planned list[MOST];
    char name[MOST][64];
    int n;
} model;

/* A matrix from N(0, 0.02^2), as Llama is initialized. */
static void add_matrix(model *m, const char *name, int64_t rows, int64_t cols)
{
    const lb_key key = {1, (uint64_t)m->n};
    lb_array *w = lb_random_normal(m->cx, key, LB_F32, LB_SHAPE(rows, cols));
    w = lb_convert(m->cx, lb_mul(m->cx, w, lb_scalar(m->cx, 0.02)), LB_BF16);
    snprintf(m->name[m->n], sizeof m->name[m->n], "%s.weight", name);
    m->list[m->n] = (lb_planned){.name = m->name[m->n], .array = w};
    m->n++;
}

/* The gain of a norm: ones. */
static void add_norm(model *m, const char *name)
{
    lb_array *one = lb_convert(m->cx, lb_scalar(m->cx, 1), LB_BF16);
    lb_array *w = lb_broadcast_to(m->cx, one, LB_SHAPE(HIDDEN));
    snprintf(m->name[m->n], sizeof m->name[m->n], "%s.weight", name);
    m->list[m->n] = (lb_planned){.name = m->name[m->n], .array = w};
    m->n++;
}

static void add_layer(model *m, int i)
{
    static const struct {
        const char *name;
        int rows, cols;
    } matrices[] = {{"self_attn.q_proj", HEADS * HEAD, HIDDEN},
                    {"self_attn.k_proj", KV_HEADS * HEAD, HIDDEN},
                    {"self_attn.v_proj", KV_HEADS * HEAD, HIDDEN},
                    {"self_attn.o_proj", HIDDEN, HEADS * HEAD},
                    {"mlp.gate_proj", INNER, HIDDEN},
                    {"mlp.up_proj", INNER, HIDDEN},
                    {"mlp.down_proj", HIDDEN, INNER}};
    char name[48];
    for (size_t k = 0; k < sizeof matrices / sizeof *matrices; k++) {
        snprintf(name, sizeof name, "model.layers.%d.%s", i, matrices[k].name);
        add_matrix(m, name, matrices[k].rows, matrices[k].cols);
    }
    snprintf(name, sizeof name, "model.layers.%d.input_layernorm", i);
    add_norm(m, name);
    snprintf(name, sizeof name, "model.layers.%d.post_attention_layernorm", i);
    add_norm(m, name);
}

static bool write_weights(lb_ctx *cx, const char *dir)
{
    static const char pt[] = "pt";
    const lb_meta format = {.key = "format",
                            .type = LB_META_STRING,
                            .n = 1,
                            .bytes = (const uint8_t *)pt,
                            .size = sizeof pt - 1};
    char path[4096];
    model m = {.cx = cx};
    add_matrix(&m, "model.embed_tokens", VOCABULARY, HIDDEN);
    for (int i = 0; i < LAYERS; i++)
        add_layer(&m, i);
    add_norm(&m, "model.norm");
    add_matrix(&m, "lm_head", VOCABULARY, HIDDEN);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    return lb_save(cx, path, m.list, m.n,
                   &(lb_save_options){.meta = &format, .n_meta = 1});
}

static bool write_config(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/config.json", dir);
    FILE *f = fopen(path, "w");
    if (!f) return false;
    fprintf(f,
            "{\n"
            "  \"architectures\": [\"LlamaForCausalLM\"],\n"
            "  \"model_type\": \"llama\",\n"
            "  \"vocab_size\": %d,\n"
            "  \"hidden_size\": %d,\n"
            "  \"intermediate_size\": %d,\n"
            "  \"num_hidden_layers\": %d,\n"
            "  \"num_attention_heads\": %d,\n"
            "  \"num_key_value_heads\": %d,\n"
            "  \"max_position_embeddings\": 512,\n"
            "  \"rms_norm_eps\": 1e-05,\n"
            "  \"tie_word_embeddings\": false,\n"
            "  \"torch_dtype\": \"bfloat16\"\n"
            "}\n",
            VOCABULARY, HIDDEN, INNER, LAYERS, HEADS, KV_HEADS);
    return !fclose(f);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: tiny_llama DIR\n");
        return 2;
    }
    if ((mkdir(argv[1], 0777) && errno != EEXIST) || !write_config(argv[1])) {
        fprintf(stderr, "tiny_llama: cannot write to %s: %s\n", argv[1],
                strerror(errno));
        return 1;
    }
    lb_ctx *cx = lb_open(NULL);
    const bool ok = cx && write_weights(cx, argv[1]);
    if (cx && !ok) fprintf(stderr, "tiny_llama: %s\n", lb_error(cx));
    lb_close(cx);
    return !ok;
}
