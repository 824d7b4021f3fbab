/* default_policy.c - the default choice of arrays to quantize, from metadata
 * only. */
#include <string.h>

#include "io/layouts/entries.h"

static const char norm[] = "norm", embedding[] = "embedding";
static const char head[] = "output head", router[] = "router";
static const char tiny[] = "tiny";

/* Parts of names of arrays that should keep their precision: they are small,
 * and the model is sensitive to them. */
static const struct {
    const char *word, *why;
} kept[] = {
    {"embed_out", head},  {"lm_head", head},    {"norm", norm},
    {"embed", embedding}, {"embd.", embedding}, {"wte.", embedding},
    {"wpe.", embedding},  {"router", router},   {"attention_bias.", embedding},
};

/* Whole names, or the end of a name after a dot. */
static const struct {
    const char *name, *why;
} kept_whole[] = {
    {"output.weight", head},
    {"gate.weight", router},
    {"score.weight", head},
    {"shared.weight", embedding}, /* T5 and BART */
    {"pos_emb.weight", embedding},
};

const char *lb_name_role(const char *name)
{
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strstr(name, kept[i].word)) return kept[i].why;
    for (size_t i = 0; i < sizeof kept_whole / sizeof *kept_whole; i++) {
        const size_t n = strlen(name), k = strlen(kept_whole[i].name);
        if (n >= k && strcmp(name + n - k, kept_whole[i].name) == 0 &&
            (n == k || name[n - k - 1] == '.'))
            return kept_whole[i].why;
    }
    return NULL;
}

bool lb_role_is_embedding(const char *role)
{
    return role == embedding;
}

bool lb_role_is_head(const char *role)
{
    return role == head;
}

bool lb_role_is_tiny(const char *role)
{
    return role == tiny;
}

static bool is_float(lb_dtype d)
{
    return d == LB_F32 || d == LB_F16 || d == LB_BF16 || d == LB_F64;
}

const char *lb_choose_weights(void *user, const lb_entry *e,
                              lb_quant_config *config)
{
    enum { TINY = 1024 };
    double n = 1; /* cannot overflow */
    (void)user;
    (void)config;
    if (!e->format) return "unsupported type";
    if (strcmp(e->format, "dense") != 0) return "already quantized";
    if (!is_float(e->dtype)) return "not a float type";
    if (e->rank == 0) return "scalar";
    if (e->rank == 1) return "1-D";
    const char *role = lb_name_role(e->name);
    if (role) return role;
    for (int k = 0; k < e->rank; k++)
        n *= (double)e->dim[k];
    return n < TINY ? tiny : NULL;
}
