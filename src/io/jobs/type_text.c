/* type_text.c - parses "TYPE:block_size=32,double_quant=yes", a type with
 * settings. */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "io/jobs/selection.h"

enum { WORDS = 5 };

/* Keys and their values: words, by their index, or an integer. */
static const struct {
    const char *key;
    const char *word[WORDS]; /* none: an integer */
} keys[] = {
    {"block_size", {NULL}},
    {"axis", {NULL}},
    {"double_quant", {"no", "yes"}},
    {"scale", {"", "none", "tensor", "row", "block"}},
    {"threshold", {"std", "absmean"}},
    {"compat", {"native", "eformer", "bnb-cuda", "bnb-cpu"}},
    {"nonfinite", {"error", "clamp"}},
};
enum { N = sizeof keys / sizeof *keys };

static void set(lb_quant_config *c, int key, int64_t v)
{
    switch (key) {
    case 0:
        c->block_size = v;
        break;
    case 1:
        c->axes = (lb_axes){.n = 1, .axis = {(int)v}};
        break;
    case 2:
        c->double_quant = v != 0;
        break;
    case 3:
        c->scale = (lb_scale)v;
        break;
    case 4:
        c->threshold = (lb_threshold)v;
        break;
    case 5:
        c->compat = (lb_compat)v;
        break;
    default:
        c->on_nonfinite = (lb_nonfinite)v;
    }
}

static bool is(const char *text, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(text, word, n) == 0;
}

/* An integer of up to nine digits. */
static bool number(const char *text, size_t n, int64_t *v)
{
    const bool minus = n && *text == '-';
    *v = 0;
    if (n - minus < 1 || n - minus > 9) return false;
    for (size_t i = minus; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        *v = 10 * *v + (text[i] - '0');
    }
    if (minus) *v = -*v;
    return true;
}

static bool parse_pair(const char *text, size_t n, lb_rule_text *rule)
{
    const char *equal = memchr(text, '=', n);
    if (!equal) return false;
    const size_t k = (size_t)(equal - text), m = n - k - 1;
    for (int i = 0; i < N; i++) {
        int64_t v = -1;
        if (!is(text, k, keys[i].key)) continue;
        if (!keys[i].word[0] && !number(equal + 1, m, &v)) return false;
        for (int w = 0; w < WORDS && keys[i].word[w]; w++)
            if (m && is(equal + 1, m, keys[i].word[w])) v = w;
        if (i == 5 && is(equal + 1, m, "seed")) v = LB_COMPAT_EFORMER;
        if (v < 0 && i != 1) return false; /* axes may be negative */
        set(&rule->config, i, v);
        rule->said |= 1u << i;
        return true;
    }
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool lb_rule_parse(const lb_ctx *cx, const char *text, size_t n,
                   lb_rule_text *rule, lb_rule_error *why)
{
    static const char wrong[] =
        "unknown key or invalid value; keys are block_size=N, axis=N, "
        "double_quant=yes|no, scale=none|tensor|row|block, "
        "threshold=std|absmean, compat=native|eformer|bnb-cuda|bnb-cpu, "
        "nonfinite=error|clamp";
    char name[32];
    size_t k = 0;
    *rule = (lb_rule_text){0};
    *why = (lb_rule_error){""};
    while (k < n && (is_letter(text[k]) || text[k] == '_' ||
                     (text[k] >= '0' && text[k] <= '9')))
        k++;
    if (!k || k >= sizeof name || (k < n && text[k] != ':')) return false;
    for (size_t i = 0; i < k; i++) /* case-insensitive */
        name[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 'a' - 'A'
                                                          : text[i]);
    name[k] = 0;
    rule->format = lb_find_format(cx, name);
    const bool keep = strcmp(name, "keep") == 0;
    if (!keep && (!rule->format || !lb_is_encodable(rule->format))) {
        snprintf(why->s, sizeof why->s, "unknown type '%s'%s", name,
                 lb_formats_near(cx, name).s);
        return false;
    }
    while (k < n) {
        const char *from = text + k + 1;
        const size_t rest = n - k - 1;
        const char *comma = memchr(from, ',', rest);
        const size_t m = comma ? (size_t)(comma - from) : rest;
        if (keep || !parse_pair(from, m, rule)) {
            snprintf(why->s, sizeof why->s, "%s", wrong);
            return false;
        }
        k += m + 1;
    }
    return true;
}

/* Settings for another format may not apply to this one. */
void lb_rule_apply(const lb_rule_text *rule, lb_quant_config *config)
{
    const bool same =
        strcmp(config->format ? config->format : "", rule->format->name) == 0;
    if (!same)
        *config = (lb_quant_config){.compat = config->compat,
                                    .on_nonfinite = config->on_nonfinite};
    const lb_quant_config *c = &rule->config;
    const int64_t value[N] = {c->block_size,   c->axes.n ? c->axes.axis[0] : 0,
                              c->double_quant, c->scale,
                              c->threshold,    c->compat,
                              c->on_nonfinite};
    config->format = rule->format->name;
    for (int i = 0; i < N; i++)
        if (rule->said >> i & 1) set(config, i, value[i]);
}
