/* module_match.c - see module_match.h. */
#include "io/models/module_match.h"

#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "io/util/pattern.h"

/* The module of a query, as a string. */
typedef struct {
    lb_ctx *cx;
    lb_file *f;
    const lb_settings *s;
    const char *module;
} module_query;

static int64_t count_below(const module_query *q, const char *prefix, size_t n,
                           const char *key, int64_t most)
{
    char path[1200];
    const int k = snprintf(path, sizeof path, "%.*s|%s", (int)n, prefix, key);
    return k > 0 && (size_t)k < sizeof path ? lb_setting_count(q->s, path, most)
                                            : 0;
}

/* A pattern that is none is a fault of the file. */
static bool bad_pattern(const module_query *q)
{
    char why[LB_ERROR_SIZE];
    if (lb_error_status(q->cx) != LB_E_ARG) return false;
    memcpy(why, lb_error(q->cx), strlen(lb_error(q->cx)) + 1);
    lb_clear(q->cx);
    return lb_refuse(q->cx, q->f->r->file[0], "%s", why);
}

/* Python's re.match, which is anchored at the start. */
static bool matches(const module_query *q, const char *pattern, bool *yes)
{
    lb_patterns all = {0};
    lb_pattern p = {0};
    char text[1200];
    const int n = snprintf(text, sizeof text, "^(?:%s)", pattern);
    *yes = false;
    if (n < 0 || (size_t)n >= sizeof text) return true;
    bool ok = lb_patterns_open(q->cx, &all) &&
              lb_pattern_open(q->cx, &all, &q->f->arena, "config.json", text,
                              (size_t)n, &p);
    if (ok) *yes = lb_pattern_matches(&all, &p, q->module);
    lb_pattern_close(&p);
    lb_patterns_close(&all);
    return ok || bad_pattern(q);
}

/* "re:PATTERN", the module, its last words, or a class such as "Linear". */
static bool is_target(const module_query *q, const char *target, bool *yes)
{
    size_t n;
    if (strncmp(target, "re:", 3) == 0) return matches(q, target + 3, yes);
    *yes =
        strcmp(target, q->module) == 0 || lb_name_ends(q->module, target, &n);
    return true;
}

/* Whether a class of modules is named: it has no dot and is capitalized. */
static bool is_class(const char *target)
{
    return target[0] >= 'A' && target[0] <= 'Z' && !strchr(target, '.');
}

/* config_groups|NAME|targets|I and config_groups|NAME|weights|num_bits. A group
 * whose targets name the module comes before one of a class. */
static bool of_groups(const module_query *q, lb_module_settings *to)
{
    static const char top[] = "config_groups|", part[] = "|targets|";
    bool named = false;
    for (int64_t i = 0; i < q->s->n; i++) {
        const lb_setting *it = &q->s->item[i];
        const char *end = strstr(it->path, part);
        if (strncmp(it->path, top, strlen(top)) != 0 || !end || !*it->text)
            continue;
        const size_t n = (size_t)(end - it->path);
        const bool class = is_class(it->text);
        bool yes = class;
        if (!class && !is_target(q, it->text, &yes)) return false;
        if (!yes || named || (class && to->bits)) continue;
        named = !class;
        to->bits = count_below(q, it->path, n, "weights|num_bits", 8);
        to->group_size =
            count_below(q, it->path, n, "weights|group_size", INT32_MAX);
    }
    return true;
}

/* module_quant_configs|REGEX|num_bits, the first that matches. */
static bool of_patterns(const module_query *q, lb_module_settings *to)
{
    static const char top[] = "module_quant_configs|", end[] = "|num_bits";
    char pattern[1200];
    for (int64_t i = 0; i < q->s->n; i++) {
        const lb_setting *it = &q->s->item[i];
        size_t n;
        bool yes = false;
        if (strncmp(it->path, top, strlen(top)) != 0 ||
            !lb_name_ends(it->path, end, &n) || n < strlen(top))
            continue;
        snprintf(pattern, sizeof pattern, "%.*s", (int)(n - strlen(top)),
                 it->path + strlen(top));
        if (!matches(q, pattern, &yes)) return false;
        if (!yes) continue;
        to->bits = it->number >= 1 && it->number <= 8 ? (int64_t)it->number : 0;
        return true;
    }
    return true;
}

bool lb_module_settings_of(lb_ctx *cx, lb_file *f, const char *name, size_t n,
                           lb_module_settings *to)
{
    const lb_settings *s = lb_settings_of(cx, f);
    char *module = lb_arena_alloc(cx, &f->arena, n + 1, 1);
    *to = (lb_module_settings){0};
    if (!s || !module) return false;
    memcpy(module, name, n);
    const module_query q = {cx, f, s, module};
    to->bits = count_below(&q, module, n, "bits", 8);
    to->group_size = count_below(&q, module, n, "group_size", INT32_MAX);
    if (!to->bits && !of_patterns(&q, to)) return false;
    if (!to->bits && !of_groups(&q, to)) return false;
    if (!to->bits) to->bits = lb_setting_count(s, "bits", 8);
    if (!to->bits) to->bits = lb_setting_count(s, "num_bits", 8);
    if (!to->group_size)
        to->group_size = lb_setting_count(s, "group_size", INT32_MAX);
    return true;
}
