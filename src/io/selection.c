/* selection.c - which arrays are quantized, and how, by patterns of names.
 *
 * In order of weight: an exclusion keeps what it matches; the last override
 * that matches says how; an inclusion takes in what the defaults would leave
 * (lb_choose_weights); and the defaults decide the rest.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "io/selection.h"

#include <pcre2.h>
#include <string.h>

#include "core/core.h"
#include "io/arena.h"

typedef enum what { INCLUDE, EXCLUDE, OVERRIDE } what;
static const char *const kind_name[] = {"include", "exclude", "override"};

typedef struct pattern {
    struct pattern *next;
    what kind;
    const char *text;
    pcre2_code *code;
    lb_rule_text rule; /* of an override */
    bool matched;
    int trouble; /* PCRE2's, of a match that was given up */
} pattern;

struct lb_selection {
    lb_heap *heap;
    lb_arena arena; /* holds this */
    pcre2_general_context *memory;
    pcre2_match_context *limits;
    pcre2_match_data *match;
    pattern *first, **last;
};

/* ---- PCRE2's memory ------------------------------------------------------ */

/* The heap wants to know the size of what it gets back. */
enum { HEAD = 64 };

static void *take(size_t size, void *heap)
{
    size_t got;
    uint8_t *p =
        size > SIZE_MAX - HEAD ? NULL : lb_heap_alloc(heap, size + HEAD, &got);
    if (!p) return NULL;
    memcpy(p, &got, sizeof got);
    return p + HEAD;
}

static void give(void *at, void *heap)
{
    size_t got;
    if (!at) return;
    memcpy(&got, (uint8_t *)at - HEAD, sizeof got);
    lb_heap_free(heap, (uint8_t *)at - HEAD, got);
}

lb_selection *lb_selection_open(lb_ctx *cx)
{
    if (!cx) return NULL;
    lb_arena arena = {.heap = cx->heap};
    lb_selection *s = lb_arena_alloc(cx, &arena, 1, sizeof *s);
    if (!s) return NULL;
    *s = (lb_selection){.heap = cx->heap, .arena = arena};
    s->last = &s->first;
    s->memory = pcre2_general_context_create(take, give, cx->heap);
    if (s->memory) s->limits = pcre2_match_context_create(s->memory);
    if (s->memory) s->match = pcre2_match_data_create(1, s->memory);
    if (s->limits && s->match) {
        /* A name is short: what needs more steps than this is a trap. */
        pcre2_set_match_limit(s->limits, 1000000);
        pcre2_set_heap_limit(s->limits, 10000); /* KiB */
        return s;
    }
    lb_fail(cx, LB_E_NOMEM, "out of memory");
    lb_selection_close(s);
    return NULL;
}

void lb_selection_close(lb_selection *s)
{
    if (!s) return;
    for (pattern *p = s->first; p; p = p->next)
        pcre2_code_free(p->code);
    pcre2_match_data_free(s->match);
    pcre2_match_context_free(s->limits);
    pcre2_general_context_free(s->memory);
    lb_arena arena = s->arena; /* which s is in */
    lb_arena_free(&arena);
}

/* ---- patterns ------------------------------------------------------------ */

static bool add(lb_ctx *cx, lb_selection *s, what kind, const char *text,
                size_t n, const lb_rule_text *rule)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    PCRE2_UCHAR why[128] = "";
    pattern *p = lb_arena_alloc(cx, &s->arena, 1, sizeof *p);
    char *copy = lb_arena_text(cx, &s->arena, text, n);
    pcre2_compile_context *c = pcre2_compile_context_create(s->memory);
    if (!p || !copy || !c) {
        pcre2_compile_context_free(c);
        return lb_fail(cx, LB_E_NOMEM, "out of memory");
    }
    p->code =
        pcre2_compile((PCRE2_SPTR)copy, n, PCRE2_NEVER_UTF, &error, &at, c);
    pcre2_compile_context_free(c);
    if (!p->code && error == PCRE2_ERROR_HEAP_FAILED)
        return lb_fail(cx, LB_E_NOMEM, "out of memory");
    if (!p->code) {
        pcre2_get_error_message(error, why, sizeof why);
        return lb_fail(cx, LB_E_ARG, "%s '%s': %s, at character %zu",
                       kind_name[kind], LB_NAME(copy), (const char *)why, at);
    }
    p->kind = kind;
    p->text = copy;
    if (rule) p->rule = *rule;
    *s->last = p;
    s->last = &p->next;
    return true;
}

static bool add_override(lb_ctx *cx, lb_selection *s, const char *text,
                         size_t n)
{
    const char *why = NULL, *said = NULL;
    lb_rule_text rule;
    /* Patterns may have such signs, too: what comes after the right one is a
     * rule from its begin to its end. */
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '=') continue;
        if (lb_rule_parse(cx, text + i + 1, n - i - 1, &rule, &why))
            return add(cx, s, OVERRIDE, text, i, &rule);
        if (why && !said) said = why;
    }
    return lb_fail(cx, LB_E_ARG,
                   "override '%s': %s; it is PATTERN=TYPE[:KEY=VALUE,..], or "
                   "PATTERN=keep",
                   lb_quote(text, n, false).s, said ? said : "no type");
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

/* "WORD REST", without spaces around; empty lines and those with # are none. */
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
                   "'%s': a line is include PATTERN, exclude PATTERN or "
                   "override PATTERN=TYPE[:KEY=VALUE,..]",
                   lb_quote(line, n, false).s);
}

static bool read_lines(lb_ctx *cx, lb_selection *s, const lb_infile *f,
                       const char *text)
{
    size_t at = 0;
    const size_t n = (size_t)f->size;
    for (int64_t line = 1; at < n; line++) {
        const char *end = memchr(text + at, '\n', n - at);
        const size_t k = end ? (size_t)(end - text) - at : n - at;
        const bool clear = !lb_error_status(cx);
        if (!read_line(cx, s, text + at, k)) {
            char why[LB_ERROR_SIZE];
            if (!clear || lb_error_status(cx) != LB_E_ARG) return false;
            memcpy(why, lb_error(cx), strlen(lb_error(cx)) + 1);
            lb_clear(cx);
            return lb_fail(cx, LB_E_CONTENT, "%s, line %lld: %s",
                           LB_PATH(f->path), (long long)line, why);
        }
        at += k + 1;
    }
    return true;
}

bool lb_selection_read(lb_ctx *cx, lb_selection *s, lb_infile *f)
{
    enum { MOST = 1 << 20 };
    if (f->size > MOST)
        return lb_fail(cx, LB_E_CONTENT, "%s: has %llu bytes, more than %d",
                       LB_PATH(f->path), (unsigned long long)f->size, MOST);
    char *text = lb_arena_alloc(cx, &s->arena, f->size, 1);
    return text && lb_infile_read(cx, f, 0, (size_t)f->size, text) &&
           read_lines(cx, s, f, text);
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

static bool matches(lb_selection *s, pattern *p, const char *name)
{
    const int n = pcre2_match(p->code, (PCRE2_SPTR)name, strlen(name), 0, 0,
                              s->match, s->limits);
    if (n >= 0) p->matched = true;
    if (n < 0 && n != PCRE2_ERROR_NOMATCH) p->trouble = n;
    return n >= 0;
}

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
        if (!matches(s, p, e->name)) continue;
        in |= p->kind == INCLUDE;
        out |= p->kind == EXCLUDE;
        if (p->kind == OVERRIDE) how = p;
    }
    if (out) return "excluded";
    if (how && !how->rule.format) return "kept by an override";
    if (how) lb_rule_apply(&how->rule, config);
    if ((in || how) && e->format && e->rank >= 1 && is_float(e->dtype))
        return NULL;
    return lb_choose_weights(NULL, e, config);
}

bool lb_selection_check(lb_ctx *cx, const lb_selection *s, int64_t arrays,
                        const char *first)
{
    for (const pattern *p = s->first; p; p = p->next) {
        PCRE2_UCHAR why[128] = "";
        if (p->trouble == PCRE2_ERROR_NOMEMORY)
            return lb_fail(cx, LB_E_NOMEM, "out of memory");
        if (p->trouble) {
            pcre2_get_error_message(p->trouble, why, sizeof why);
            return lb_fail(cx, LB_E_ARG, "%s '%s': %s", kind_name[p->kind],
                           LB_NAME(p->text), (const char *)why);
        }
        if (!p->matched)
            return lb_fail(cx, LB_E_ARG,
                           "%s '%s' matches none of the names of %lld arrays, "
                           "of which the first is '%s'",
                           kind_name[p->kind], LB_NAME(p->text),
                           (long long)arrays, LB_NAME(first));
    }
    return true;
}
