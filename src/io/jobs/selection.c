/* selection.c - which arrays are quantized, and how, by patterns of names.
 *
 * By priority: an exclusion keeps what it matches; the last matching override
 * determines the type; an inclusion adds arrays that the defaults
 * (lb_choose_weights) would keep; the defaults decide the rest.
 */
#include "io/jobs/selection.h"

#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "io/util/pattern.h"

typedef enum what { INCLUDE, EXCLUDE, OVERRIDE } what;
static const char *const kind_name[] = {"include", "exclude", "override"};

typedef struct pattern {
    struct pattern *next;
    what kind;
    const char *title; /* for messages: "include", or "FILE, line 3: include" */
    lb_pattern name;
    lb_rule_text rule; /* for overrides */
} pattern;

struct lb_selection {
    lb_arena arena; /* holds this struct */
    lb_patterns all;
    pattern *first, **last;
    const lb_infile *recipe; /* being read; NULL: none */
    int64_t line;            /* of the recipe */
};

lb_selection *lb_selection_open(lb_ctx *cx)
{
    if (!cx) return NULL;
    lb_arena arena = {.heap = cx->heap};
    lb_selection *s = lb_arena_alloc(cx, &arena, 1, sizeof *s);
    if (!s) return NULL;
    *s = (lb_selection){.arena = arena};
    s->last = &s->first;
    if (lb_patterns_open(cx, &s->all)) return s;
    lb_selection_close(s);
    return NULL;
}

void lb_selection_close(lb_selection *s)
{
    if (!s) return;
    for (pattern *p = s->first; p; p = p->next)
        lb_pattern_close(&p->name);
    lb_patterns_close(&s->all);
    lb_arena arena = s->arena; /* s itself is in this arena */
    lb_arena_free(&arena);
}

/* ---- patterns ------------------------------------------------------------ */

/* The name of a pattern in messages; NULL and an error. */
static const char *title_of(lb_ctx *cx, lb_selection *s, what kind)
{
    char text[LB_ERROR_SIZE];
    if (!s->recipe) return kind_name[kind];
    snprintf(text, sizeof text, "%s, line %lld: %s", LB_PATH(s->recipe->path),
             (long long)s->line, kind_name[kind]);
    return lb_arena_text(cx, &s->arena, text, strlen(text));
}

static bool add(lb_ctx *cx, lb_selection *s, what kind, const char *text,
                size_t n, const lb_rule_text *rule)
{
    pattern *p = lb_arena_alloc(cx, &s->arena, 1, sizeof *p);
    const char *title = p ? title_of(cx, s, kind) : NULL;
    if (!title || !lb_pattern_open(cx, &s->all, &s->arena, kind_name[kind],
                                   text, n, &p->name))
        return false;
    p->kind = kind;
    p->title = title;
    if (rule) p->rule = *rule;
    *s->last = p;
    s->last = &p->next;
    return true;
}

static bool add_override(lb_ctx *cx, lb_selection *s, const char *text,
                         size_t n)
{
    lb_rule_error why = {""}, said = {"no type"};
    bool any = false;
    lb_rule_text rule;
    /* Patterns may contain '=': tries each one, until what follows is a valid
     * type. */
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '=') continue;
        if (lb_rule_parse(cx, text + i + 1, n - i - 1, &rule, &why))
            return add(cx, s, OVERRIDE, text, i, &rule);
        if (!any && why.s[0]) said = why;
        any |= why.s[0] != 0;
    }
    return lb_fail(cx, LB_E_ARG,
                   "override '%s': %s (expected PATTERN=TYPE[:KEY=VALUE,...] "
                   "or PATTERN=keep)",
                   lb_quote(text, n, false).s, said.s);
}

bool lb_selection_include(lb_ctx *cx, lb_selection *s, const char *text)
{
    return s && text && add(cx, s, INCLUDE, text, strlen(text), NULL);
}

bool lb_selection_exclude(lb_ctx *cx, lb_selection *s, const char *text)
{
    return s && text && add(cx, s, EXCLUDE, text, strlen(text), NULL);
}

bool lb_selection_override(lb_ctx *cx, lb_selection *s, const char *text)
{
    return s && text && add_override(cx, s, text, strlen(text));
}

/* ---- recipes ------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Splits "WORD REST" and strips spaces. Skips empty lines and comments (#). */
static bool read_line(lb_ctx *cx, lb_selection *s, const char *line, size_t n)
{
    while (n && is_space(*line)) {
        line++;
        n--;
    }
    while (n && is_space(line[n - 1]))
        n--;
    if (!n || *line == '#') return true;
    size_t k = 0;
    while (k < n && !is_space(line[k]))
        k++;
    size_t rest = k;
    while (rest < n && is_space(line[rest]))
        rest++;
    for (int i = INCLUDE; rest < n && i <= OVERRIDE; i++) {
        if (strlen(kind_name[i]) != k || memcmp(line, kind_name[i], k) != 0)
            continue;
        return i == OVERRIDE ? add_override(cx, s, line + rest, n - rest)
                             : add(cx, s, (what)i, line + rest, n - rest, NULL);
    }
    return lb_fail(cx, LB_E_ARG,
                   "'%s': expected include PATTERN, exclude PATTERN or "
                   "override PATTERN=TYPE[:KEY=VALUE,...]",
                   lb_quote(line, n, false).s);
}

static bool read_lines(lb_ctx *cx, lb_selection *s, const lb_infile *f,
                       const char *text)
{
    size_t at = 0;
    const size_t n = (size_t)f->size;
    for (s->line = 1; at < n; s->line++) {
        const char *end = memchr(text + at, '\n', n - at);
        const size_t k = end ? (size_t)(end - text) - at : n - at;
        const bool clear = !lb_error_status(cx);
        if (!read_line(cx, s, text + at, k)) {
            char why[LB_ERROR_SIZE];
            if (!clear || lb_error_status(cx) != LB_E_ARG) return false;
            memcpy(why, lb_error(cx), strlen(lb_error(cx)) + 1);
            lb_clear(cx);
            return lb_fail(cx, LB_E_CONTENT, "%s, line %lld: %s",
                           LB_PATH(f->path), (long long)s->line, why);
        }
        at += k + 1;
    }
    return true;
}

bool lb_selection_read(lb_ctx *cx, lb_selection *s, lb_infile *f)
{
    enum { MOST = 1 << 20 };
    if (f->size > MOST)
        return lb_fail(cx, LB_E_CONTENT,
                       "%s: has %llu bytes; the maximum is %d",
                       LB_PATH(f->path), (unsigned long long)f->size, MOST);
    char *text = lb_arena_alloc(cx, &s->arena, f->size, 1);
    if (!text || !lb_infile_read(cx, f, 0, (size_t)f->size, text)) return false;
    s->recipe = f;
    const bool ok = read_lines(cx, s, f, text);
    s->recipe = NULL;
    return ok;
}

bool lb_selection_recipe(lb_ctx *cx, lb_selection *s, const char *path)
{
    if (!s || !path) return false;
    lb_infile *f = lb_infile_open(cx, path, true);
    const bool ok = f && lb_selection_read(cx, s, f);
    lb_infile_unref(f);
    return ok;
}

/* ---- choosing ------------------------------------------------------------ */

static bool is_float(lb_dtype d)
{
    return d == LB_F32 || d == LB_F16 || d == LB_BF16 || d == LB_F64;
}

const char *lb_selection_choose(void *selection, const lb_entry *e,
                                lb_quant_config *config)
{
    lb_selection *s = selection;
    const pattern *how = NULL;
    bool in = false, out = false;
    for (pattern *p = s->first; p; p = p->next) {
        if (!lb_pattern_matches(&s->all, &p->name, e->name)) continue;
        in |= p->kind == INCLUDE;
        out |= p->kind == EXCLUDE;
        if (p->kind == OVERRIDE) how = p;
    }
    if (out) return "excluded";
    if (how && !how->rule.format) return "kept by an override";
    if (how) lb_rule_apply(&how->rule, config);
    /* An override by layer does not mean the layer's norms and biases. */
    if (((in && e->rank >= 1) || (how && e->rank >= 2)) && e->format &&
        is_float(e->dtype))
        return NULL;
    return lb_choose_weights(NULL, e, config);
}

bool lb_selection_asks(lb_selection *s, const char *name)
{
    for (pattern *p = s->first; p; p = p->next)
        if (p->kind != EXCLUDE && lb_pattern_matches(&s->all, &p->name, name))
            return true;
    return false;
}

bool lb_selection_check(lb_ctx *cx, const lb_quantize_options *o,
                        int64_t arrays, const char *first)
{
    bool ok = true;
    for (const pattern *p = o->selection->first; ok && p; p = p->next) {
        char text[LB_ERROR_SIZE];
        if (p->name.matched || p->name.trouble || (!o->warn && !o->strict)) {
            ok = lb_pattern_check(cx, &p->name, p->title, arrays, first);
            continue;
        }
        lb_pattern_unmatched(&p->name, p->title, arrays, first, text,
                             sizeof text);
        if (o->strict)
            ok = lb_fail(cx, LB_E_DENIED, "%s", text);
        else
            o->warn(o->warn_user, text);
    }
    return ok;
}
