/* context.c - see context.h. All follows from these names, and the shapes:
 *
 *   k_proj, v_proj (attn_k, attn_v)    a row per cached value
 *   qkv_proj (attn_qkv)                rows of queries, keys and values; there
 *                                      are as many queries as columns of o_proj
 *   kv_a_proj_with_mqa (attn_kv_a_mqa) DeepSeek: what is cached instead
 *   embed_tokens (token_embd)          one row is read, unless it is also the
 *                                      output head
 */
#include "context.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

typedef struct context_needs {
    int layers;          /* that have a cache; 0: not recognized */
    uint64_t each;       /* bytes of a token's keys and values, as f16 */
    uint64_t weights;    /* bytes of all arrays */
    uint64_t read;       /* of these, bytes that each token reads */
    bool experts;        /* it has experts, ... */
    double experts_used; /* ... of which this part is read; 1: unknown */
} context_needs;

typedef enum role { OTHER, KEYS, VALUES, FUSED, OUT, EMBEDDING, HEAD } role;

static const struct {
    const char *name;
    role role;
} roles[] = {
    {"k_proj", KEYS},
    {"v_proj", VALUES},
    {"attn_k", KEYS},
    {"attn_v", VALUES},
    {"kv_a_proj_with_mqa", KEYS},
    {"attn_kv_a_mqa", KEYS},
    {"qkv_proj", FUSED},
    {"attn_qkv", FUSED},
    {"query_key_value", FUSED},
    {"Wqkv", FUSED},
    {"o_proj", OUT},
    {"attn_output", OUT},
    {"out_proj", OUT},
    {"attention.dense", OUT},
    {"embed_tokens", EMBEDDING},
    {"token_embd", EMBEDDING},
    {"wte", EMBEDDING},
    {"embed_in", EMBEDDING},
    {"lm_head", HEAD},
    {"embed_out", HEAD},
};

/* Whether the name, without a final ".weight", is word or ends with .word. */
static bool is_called(const char *name, const char *word)
{
    static const char weight[] = ".weight";
    size_t n = strlen(name), m = strlen(word);
    if (n < sizeof weight || strcmp(name + n + 1 - sizeof weight, weight) != 0)
        return false;
    n -= sizeof weight - 1;
    return n >= m && memcmp(name + n - m, word, m) == 0 &&
           (n == m || name[n - m - 1] == '.');
}

static role role_of(const lb_entry *e)
{
    if (e->rank != 2 || strstr(e->name, "vision") || strstr(e->name, "visual"))
        return OTHER;
    if (strcmp(e->name, "output.weight") == 0) return HEAD;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (is_called(e->name, roles[i].name)) return roles[i].role;
    return OTHER;
}

static bool is_expert(const char *name)
{
    return strstr(name, ".experts.") || strstr(name, "_exps.");
}

/* A number of GGUF's metadata whose key ends so; 0: none. */
static uint64_t number(const lb_file *f, const char *end)
{
    const lb_meta *m;
    const size_t n = strlen(end);
    for (int64_t i = 0; (m = lb_file_meta(f, i)); i++) {
        const size_t k = strlen(m->key);
        if (m->type != LB_META_U32 || k < n || strcmp(m->key + k - n, end) != 0)
            continue;
        return (uint64_t)m->bytes[0] | (uint64_t)m->bytes[1] << 8 |
               (uint64_t)m->bytes[2] << 16 | (uint64_t)m->bytes[3] << 24;
    }
    return 0;
}

static context_needs context_of(const lb_file *f)
{
    context_needs c = {.experts_used = 1};
    const uint64_t all = number(f, ".expert_count");
    const uint64_t used = number(f, ".expert_used_count");
    uint64_t queries = 0, values = 0, embedding = 0, experts = 0;
    bool head = false, fused = false;
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        const lb_entry *e = lb_file_entry(f, i);
        const role r = role_of(e);
        c.weights += e->nbytes;
        head = head || r == HEAD;
        if (r == EMBEDDING) embedding += e->nbytes;
        if (r == OUT) queries += (uint64_t)e->dim[1];
        if (is_expert(e->name)) experts += e->nbytes;
        if (r != KEYS && r != VALUES && r != FUSED) continue;
        fused = fused || r == FUSED;
        values += (uint64_t)e->dim[0];
        c.layers += r != VALUES;
    }
    if (fused) values = values > queries ? values - queries : 0;
    c.each = 2 * values;
    c.experts = experts > 0;
    if (c.experts && all && used && used <= all)
        c.experts_used = (double)used / (double)all;
    c.read = c.weights - (head ? embedding : 0) -
             (uint64_t)((double)experts * (1 - c.experts_used));
    return c;
}

/* Tokens that fit besides the weights; -1: not even these. */
static double context_fits(const context_needs *c, uint64_t memory)
{
    if (memory < c->weights) return -1;
    return c->each ? (double)((memory - c->weights) / c->each) : 0;
}

static double context_speed(const context_needs *c, uint64_t tokens,
                            double bandwidth)
{
    const double read = (double)c->read + (double)tokens * (double)c->each;
    return read > 0 ? bandwidth / read : 0;
}

/* ---- text ---------------------------------------------------------------- */

bool context_read(const arguments *a, context_options *o)
{
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    double gigabytes = 50;
    *o = (context_options){
        .memory = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0};
    if (!argument_number(a, OPTION_CONTEXT, 1, INT64_C(1) << 40, &o->tokens) ||
        !argument_bytes(a, OPTION_MEMORY, 1, &o->memory) ||
        !argument_real(a, OPTION_BANDWIDTH, 1e-3, 1e6, &gigabytes))
        return false;
    o->bandwidth = 1e9 * gigabytes;
    return true;
}

static double cache_bytes(const context_needs *c, const context_options *o)
{
    return (double)c->each * (double)o->tokens;
}

void context_json(json *j, const lb_file *f, const context_options *o)
{
    const context_needs c = context_of(f);
    if (!o->tokens || !c.layers) {
        json_string(j, NULL);
        return;
    }
    json_open(j, '{');
    json_int(json_key(j, "tokens"), o->tokens);
    json_int(json_key(j, "layers"), c.layers);
    json_uint(json_key(j, "cache_bytes_per_token"), c.each);
    json_double(json_key(j, "cache_bytes"), cache_bytes(&c, o));
    json_uint(json_key(j, "read_bytes_per_token"), c.read);
    json_double(json_key(j, "experts_read"), c.experts_used);
    json_uint(json_key(j, "memory"), o->memory);
    json_double(json_key(j, "tokens_that_fit"), context_fits(&c, o->memory));
    json_double(json_key(j, "bandwidth"), o->bandwidth);
    json_double(json_key(j, "tokens_per_second"),
                context_speed(&c, (uint64_t)o->tokens, o->bandwidth));
    json_close(j, '}');
}

void context_print(const lb_file *f, const context_options *o)
{
    const context_needs c = context_of(f);
    if (!o->tokens) return;
    if (!c.layers) {
        puts("context: no key and value projections of a known architecture");
        return;
    }
    const double cache = cache_bytes(&c, o);
    const double fits = context_fits(&c, o->memory);
    printf("context of %" PRId64 " token%s: cache of %s in f16 (%d layer%s, %s "
           "per token)\n",
           o->tokens, o->tokens == 1 ? "" : "s", show_bytes((uint64_t)cache).s,
           c.layers, c.layers == 1 ? "" : "s", show_bytes(c.each).s);
    printf("memory: %s with the weights, of %s: ",
           show_bytes((uint64_t)(cache + (double)c.weights)).s,
           show_bytes(o->memory).s);
    if (fits < 0)
        puts("the weights do not fit");
    else
        printf("%s, up to %s tokens\n",
               fits >= (double)o->tokens ? "fits" : "does not fit",
               show_count(fits).s);
    printf(
        "speed: at most %.3g tokens/s at %.3g GB/s, because each token reads "
        "%s of weights%s and the cache\n",
        context_speed(&c, (uint64_t)o->tokens, o->bandwidth),
        o->bandwidth / 1e9, show_bytes(c.read).s,
        c.experts && c.experts_used == 1 ? " (all experts)" : "");
}
