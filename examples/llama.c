/* llama.c - a Llama with a cache of keys and values, compiled: the likelihood
 * of a text and its greedy continuation, as token numbers.
 *
 *     llama                                       random weights
 *     llama -f nf4 -n 32                          ... quantized to nf4
 *     llama -H 8 model.safetensors 1 306 17 99    continue these tokens
 *
 *     -f FORMAT   quantize the matrices first (default: as they are stored)
 *     -H N        number of heads (default: 8)
 *     -n N        number of tokens to generate (default: 16)
 *     -j N        number of threads (default: all cores)
 *     -e          run eagerly, not compiled
 *
 * Weights have the names that transformers gives them; all sizes but the number
 * of heads follow from their shapes.
 */
#include <lowbit_io.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 512, LAYERS = 64 }; /* positions of the cache, layers */

typedef struct llama {
    lb_tree *weights;
    int layers, heads;
    int64_t kv_heads, head; /* head: the size of one */
} llama;

static lb_array *weight(llama *m, int layer, const char *name)
{
    char full[96];
    if (layer < 0)
        snprintf(full, sizeof full, "%s.weight", name);
    else
        snprintf(full, sizeof full, "model.layers.%d.%s.weight", layer, name);
    return lb_tree_get(m->weights, full);
}

static lb_array *linear(lb_ctx *cx, llama *m, int layer, const char *name,
                        lb_array *x)
{
    return lb_linear(cx, x, weight(m, layer, name), NULL, NULL);
}

/* args: tokens, the position of the first one, keys and values of each layer.
 * out: logits of each token, the likeliest next token, new keys and values. */
static bool forward(lb_ctx *cx, lb_array *const *args, int n, lb_array **out,
                    int n_out, void *user)
{
    llama *m = user;
    const int64_t t = lb_size(args[0]);
    const lb_rope_options rope = {.axis = -3, .positions = args[1]};
    const lb_attention_options attention = {
        .causal = true,
        .q_positions_first = true,
        .kv_positions_first = true,
        .valid = lb_add(cx, args[1], lb_scalar_int(cx, t))};
    lb_array *zero = lb_scalar_int(cx, 0), *start[] = {args[1], zero, zero};
    lb_array *x =
        lb_embedding(cx, weight(m, -1, "model.embed_tokens"), args[0]);
    (void)n_out;
    memcpy(out + 2, args + 2, (size_t)(n - 2) * sizeof *out);
    for (int i = 0; i < m->layers; i++) {
        lb_array **keys = &out[2 + 2 * i], **values = keys + 1;
        lb_array *h = lb_rms_norm(cx, x, weight(m, i, "input_layernorm"), 1e-5);
        lb_array *q = linear(cx, m, i, "self_attn.q_proj", h);
        lb_array *k = linear(cx, m, i, "self_attn.k_proj", h);
        lb_array *v = linear(cx, m, i, "self_attn.v_proj", h);
        q = lb_reshape(cx, q, LB_SHAPE(t, m->heads, m->head));
        k = lb_reshape(cx, k, LB_SHAPE(t, m->kv_heads, m->head));
        v = lb_reshape(cx, v, LB_SHAPE(t, m->kv_heads, m->head));
        k = lb_rope(cx, k, &rope);
        lb_update_in_place(cx, keys, k, start);
        lb_update_in_place(cx, values, v, start);
        q = lb_rope(cx, q, &rope);
        h = lb_attention(cx, q, *keys, *values, &attention);
        h = lb_reshape(cx, h, LB_SHAPE(t, -1));
        x = lb_add(cx, x, linear(cx, m, i, "self_attn.o_proj", h));
        h = lb_rms_norm(cx, x, weight(m, i, "post_attention_layernorm"), 1e-5);
        h = lb_swiglu(cx, linear(cx, m, i, "mlp.gate_proj", h),
                      linear(cx, m, i, "mlp.up_proj", h));
        x = lb_add(cx, x, linear(cx, m, i, "mlp.down_proj", h));
    }
    x = lb_rms_norm(cx, x, weight(m, -1, "model.norm"), 1e-5);
    out[0] = linear(cx, m, -1, "lm_head", x);
    out[1] = lb_argmax(cx, out[0], -1, LB_I32);
    return lb_error_status(cx) == LB_OK;
}

/* ---- weights ------------------------------------------------------------ */

static void add_random(lb_ctx *cx, lb_tree *t, const char *name, lb_shape shape)
{
    const lb_key key = {1, (uint64_t)lb_tree_count(t)};
    const double size = shape.rank > 1 ? 1 / sqrt((double)shape.dim[1]) : 0;
    lb_array *w = lb_random_normal(cx, key, LB_F32, shape);
    w = lb_mul(cx, w, lb_scalar(cx, size));
    lb_tree_set(t, name, size != 0 ? w : lb_add(cx, w, lb_scalar(cx, 1)));
}

/* 5 layers, 64 wide, 8 heads that share 4 keys and values. */
static lb_tree *random_weights(lb_ctx *cx)
{
    static const struct {
        const char *name;
        int rows, cols;
    } list[] = {
        {"input_layernorm", 64, 0},   {"self_attn.q_proj", 64, 64},
        {"self_attn.k_proj", 32, 64}, {"self_attn.v_proj", 32, 64},
        {"self_attn.o_proj", 64, 64}, {"post_attention_layernorm", 64, 0},
        {"mlp.gate_proj", 172, 64},   {"mlp.up_proj", 172, 64},
        {"mlp.down_proj", 64, 172}};
    lb_tree *t = lb_tree_open(cx);
    char name[96];
    add_random(cx, t, "model.embed_tokens.weight", LB_SHAPE(512, 64));
    for (int i = 0; i < 5; i++)
        for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
            snprintf(name, sizeof name, "model.layers.%d.%s.weight", i,
                     list[k].name);
            add_random(cx, t, name,
                       list[k].cols ? LB_SHAPE(list[k].rows, list[k].cols)
                                    : LB_SHAPE(list[k].rows));
        }
    add_random(cx, t, "model.norm.weight", LB_SHAPE(64));
    add_random(cx, t, "lm_head.weight", LB_SHAPE(512, 64));
    return t;
}

/* Gets the sizes, and quantizes all matrices to format, if there is one. */
static bool prepare(lb_ctx *cx, llama *m, const char *format)
{
    const lb_quant_config config = {.format = format};
    char name[96];
    for (m->layers = 0; m->layers < LAYERS; m->layers++) {
        snprintf(name, sizeof name, "model.layers.%d.self_attn.q_proj.weight",
                 m->layers);
        if (!lb_tree_has(m->weights, name)) break;
    }
    lb_array *q = weight(m, 0, "self_attn.q_proj");
    lb_array *k = weight(m, 0, "self_attn.k_proj");
    if (!q || !k) return false;
    m->head = lb_dim(q, 0) / m->heads;
    m->kv_heads = lb_dim(k, 0) / (m->head ? m->head : 1);
    if (m->head * m->heads != lb_dim(q, 0) || m->head % 2 != 0 ||
        m->kv_heads * m->head != lb_dim(k, 0) || !m->kv_heads ||
        m->heads % m->kv_heads != 0) {
        fprintf(stderr,
                "llama: %d heads do not fit %lld rows of q_proj and "
                "%lld of k_proj (see -H)\n",
                m->heads, (long long)lb_dim(q, 0), (long long)lb_dim(k, 0));
        return false;
    }
    if (!lb_tree_has(m->weights, "lm_head.weight"))
        lb_tree_set(m->weights, "lm_head.weight",
                    weight(m, -1, "model.embed_tokens"));
    for (int i = 0; format && i < lb_tree_count(m->weights); i++)
        if (lb_rank(lb_tree_at(m->weights, i)) == 2 &&
            !lb_tree_quantize_at(m->weights, i, &config, NULL))
            return false;
    return lb_error_status(cx) == LB_OK;
}

/* ---- text --------------------------------------------------------------- */

typedef struct decoder {
    lb_ctx *cx;
    llama *model;
    lb_compiled *compiled; /* NULL: run eagerly */
    int64_t position;
    lb_array *cache[2 * LAYERS]; /* keys and values */
    lb_array *next;              /* likeliest next token; a reference */
} decoder;

/* Appends tokens; returns their logits, in the open scope. */
static lb_array *append(decoder *d, lb_array *tokens)
{
    const int n = 2 + 2 * d->model->layers;
    lb_array *in[2 + 2 * LAYERS] = {tokens}, *out[2 + 2 * LAYERS];
    in[1] = lb_full_int(d->cx, LB_I32, lb_shape_make(0, NULL), d->position);
    memcpy(in + 2, d->cache, sizeof d->cache);
    if (!(d->compiled ? lb_run_many(d->compiled, in, n, out)
                      : forward(d->cx, in, n, out, n, d->model)))
        return NULL;
    memcpy(d->cache, out + 2, (size_t)(n - 2) * sizeof *out);
    lb_unref(d->next);
    d->next = lb_ref(out[1]);
    d->position += lb_size(tokens);
    return out[0];
}

/* Prints the tokens' mean negative log-likelihood, then the next n. */
static bool run(decoder *d, const int32_t *token, int n_tokens, int n)
{
    lb_ctx *cx = d->cx;
    struct timespec from, to;
    lb_enter(cx);
    lb_array *text = lb_from(cx, LB_I32, LB_SHAPE(n_tokens), token);
    lb_array *logits = append(d, text);
    if (n_tokens > 1 && logits) {
        logits = lb_slice(cx, logits, (int64_t[]){0, 0},
                          (int64_t[]){n_tokens - 1, lb_dim(logits, 1)}, NULL);
        text = lb_slice(cx, text, (int64_t[]){1}, (int64_t[]){n_tokens}, NULL);
        printf("nll %.5f\n",
               lb_item(cx, lb_mean(cx, lb_cross_entropy(cx, logits, text), NULL,
                                   false)));
    }
    lb_leave(cx);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < n && lb_error_status(cx) == LB_OK; i++) {
        lb_enter(cx);
        lb_array *last =
            lb_slice(cx, d->next, (int64_t[]){lb_size(d->next) - 1},
                     (int64_t[]){lb_size(d->next)}, NULL);
        printf(i ? " %d" : "%d", (int)lb_item_int(cx, last));
        if (i + 1 < n) append(d, last);
        lb_leave(cx);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    if (n > 0) printf("\n");
    if (n > 1)
        fprintf(stderr, "%.1f us per token\n",
                (1e6 * (double)(to.tv_sec - from.tv_sec) +
                 1e-3 * (double)(to.tv_nsec - from.tv_nsec)) /
                    (n - 1));
    return lb_error_status(cx) == LB_OK;
}

int main(int argc, char **argv)
{
    llama m = {.heads = 8};
    const char *format = NULL;
    int option, n = 16, n_tokens = 1, threads = 0;
    int32_t token[MOST] = {1};
    bool eager = false;
    while ((option = getopt(argc, argv, "f:H:n:j:e")) != -1)
        switch (option) {
        case 'f':
            format = optarg;
            break;
        case 'H':
            m.heads = atoi(optarg);
            break;
        case 'n':
            n = atoi(optarg);
            break;
        case 'j':
            threads = atoi(optarg);
            break;
        case 'e':
            eager = true;
            break;
        default:
            return 2;
        }
    const char *file = optind < argc ? argv[optind++] : NULL;
    if (optind < argc) n_tokens = 0;
    for (; optind < argc && n_tokens < MOST; optind++)
        token[n_tokens++] = atoi(argv[optind]);
    if (m.heads < 1 || n < 0 || n_tokens + n > MOST) {
        fprintf(stderr, "llama: at most %d tokens, and at least 1 head\n",
                MOST);
        return 2;
    }
    lb_ctx *cx = lb_open(&(lb_options){.threads = threads});
    decoder d = {.cx = cx, .model = &m};
    m.weights = file ? lb_tree_load(cx, file) : random_weights(cx);
    bool ok = m.weights && prepare(cx, &m, format);
    if (ok) {
        if (!eager)
            d.compiled =
                lb_compile_many(cx, forward, 2 + 2 * m.layers, &m, NULL);
        const lb_shape cache = LB_SHAPE(MOST, m.kv_heads, m.head);
        for (int i = 0; i < 2 * m.layers; i++)
            d.cache[i] = lb_zeros(cx, LB_F32, cache);
        ok = run(&d, token, n_tokens, n);
        lb_unref(d.next);
    }
    if (lb_error_status(cx)) fprintf(stderr, "llama: %s\n", lb_error(cx));
    lb_compiled_close(d.compiled);
    lb_tree_close(m.weights);
    lb_close(cx);
    return !ok;
}
