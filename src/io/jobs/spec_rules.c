/* spec_rules.c - sharding specs for the arrays of a model, by patterns of
 * names.
 *
 * The first matching rule applies, as in JAX programs, whose rules end with a
 * catch-all.
 */
#include <string.h>

#include "core/core.h"
#include "io/arrays/mesh_arrays.h"
#include "io/util/pattern.h"

typedef struct spec_rule {
    struct spec_rule *next;
    lb_pattern name;
    const char *spec;
} spec_rule;

struct lb_rules {
    lb_arena arena; /* holds this struct */
    lb_patterns all;
    spec_rule *first, **last;
};

lb_rules *lb_rules_open(lb_ctx *cx)
{
    if (!cx) return NULL;
    lb_arena arena = {.heap = cx->heap};
    lb_rules *r = lb_arena_alloc(cx, &arena, 1, sizeof *r);
    if (!r) return NULL;
    *r = (lb_rules){.arena = arena};
    r->last = &r->first;
    if (lb_patterns_open(cx, &r->all)) return r;
    lb_rules_close(r);
    return NULL;
}

void lb_rules_close(lb_rules *r)
{
    if (!r) return;
    for (spec_rule *p = r->first; p; p = p->next)
        lb_pattern_close(&p->name);
    lb_patterns_close(&r->all);
    lb_arena arena = r->arena; /* r itself is in this arena */
    lb_arena_free(&arena);
}

/* Whether the syntax is that of a spec, whatever axes it names. */
static bool reads(lb_ctx *cx, const char *spec)
{
    static const lb_grid none = {0};
    lb_spec_report report = {0};
    lb_spec unread;
    lb_shape any = {.rank = LB_MAX_RANK};
    return lb_spec_parse(cx, &none, any, spec, &report, &unread);
}

static bool add(lb_ctx *cx, lb_rules *r, const char *text, size_t n)
{
    size_t at = n; /* specs contain no '=', but patterns may: the last one
                    * counts */
    while (at && text[at - 1] != '=')
        at--;
    spec_rule *p = lb_arena_alloc(cx, &r->arena, 1, sizeof *p);
    const char *spec =
        at ? lb_arena_text(cx, &r->arena, text + at, n - at) : "";
    if (!p || !spec) return false;
    if (at < 2)
        return lb_fail(cx, LB_E_ARG, "rule '%s': expected PATTERN=P(None, tp)",
                       lb_quote(text, n, false).s);
    if (!reads(cx, spec) || !lb_pattern_open(cx, &r->all, &r->arena, "rule",
                                             text, at - 1, &p->name))
        return false;
    p->spec = spec;
    *r->last = p;
    r->last = &p->next;
    return true;
}

bool lb_rules_add(lb_ctx *cx, lb_rules *r, const char *text)
{
    return r && text && add(cx, r, text, strlen(text));
}

/* ---- files --------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool read_lines(lb_ctx *cx, lb_rules *r, const lb_infile *f,
                       const char *text)
{
    const size_t n = (size_t)f->size;
    size_t at = 0;
    for (int64_t line = 1; at < n; line++) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t lo = at, hi = end ? (size_t)(end - text) : n;
        at = hi + 1;
        while (lo < hi && is_space(text[lo]))
            lo++;
        while (hi > lo && is_space(text[hi - 1]))
            hi--;
        if (lo == hi || text[lo] == '#' || add(cx, r, text + lo, hi - lo))
            continue;
        char why[LB_ERROR_SIZE];
        if (lb_error_status(cx) == LB_E_NOMEM) return false;
        memcpy(why, lb_error(cx), strlen(lb_error(cx)) + 1);
        lb_clear(cx);
        return lb_fail(cx, LB_E_CONTENT, "%s, line %lld: %s", LB_PATH(f->path),
                       (long long)line, why);
    }
    return true;
}

bool lb_rules_take(lb_ctx *cx, lb_rules *r, lb_infile *f)
{
    enum { MOST = 1 << 20 };
    if (!f) return false;
    if (f->size > MOST)
        return lb_refuse(cx, f, "has %llu bytes; the maximum is %d",
                         (unsigned long long)f->size, MOST);
    char *text = lb_arena_alloc(cx, &r->arena, f->size, 1);
    return text && lb_infile_read(cx, f, 0, (size_t)f->size, text) &&
           read_lines(cx, r, f, text);
}

bool lb_rules_read(lb_ctx *cx, lb_rules *r, const char *path)
{
    if (!cx || !r || !path || lb_error_status(cx)) return false;
    lb_infile *f = lb_infile_open(cx, path, true);
    const bool ok = lb_rules_take(cx, r, f);
    lb_infile_unref(f);
    return ok;
}

/* ---- placing ------------------------------------------------------------- */

static bool cuts(const lb_grid *grid, const lb_spec *spec)
{
    const lb_spec none = {0};
    return !lb_spec_equal(grid, spec, &none);
}

/* Why an array is not split; NULL: it is. */
static const char *why_whole(const lb_grid *grid, const lb_placement *p)
{
    if (cuts(grid, &p->spec)) return NULL;
    return p->dropped.n ? "no axis of the rule can be split"
                        : "the rule splits no axis";
}

/* Adds the array's name to an error. */
static bool name_it(lb_ctx *cx, const char *name)
{
    const lb_status status = lb_error_status(cx);
    char why[LB_ERROR_SIZE];
    memcpy(why, lb_error(cx), strlen(lb_error(cx)) + 1);
    lb_clear(cx);
    return lb_fail(cx, status, "'%s': %s", LB_NAME(name), why);
}

bool lb_rules_place(lb_ctx *cx, lb_rules *r, const lb_grid *grid, lb_file *f,
                    const char *name, bool relaxed, lb_placement *to)
{
    *to = (lb_placement){0};
    lb_group *g = r && grid ? lb_group_wanted(cx, f, name) : NULL;
    if (!g) return false;
    spec_rule *p = r->first;
    while (p && !lb_pattern_matches(&r->all, &p->name, name))
        p = p->next;
    to->entry = &g->entry;
    to->pattern = p ? p->name.text : NULL;
    const bool deep = g->entry.rank > LB_MAX_RANK;
    if (!p || !g->entry.rank || !g->entry.format || deep) {
        to->whole = !p               ? "no rule matches"
                    : !g->entry.rank ? "a scalar"
                    : deep           ? "too many axes"
                                     : "unsupported type";
        return true;
    }
    const bool clear = !lb_error_status(cx);
    if (!lb_group_spec(cx, grid, f, g, p->spec, relaxed ? &to->dropped : NULL,
                       &to->spec))
        return clear ? name_it(cx, name) : false;
    to->whole = why_whole(grid, to);
    return true;
}

bool lb_rules_check(lb_ctx *cx, const lb_rules *r, const lb_file *f)
{
    bool ok = r && f;
    const char *first = lb_file_count(f) ? lb_file_entry(f, 0)->name : "";
    for (const spec_rule *p = ok ? r->first : NULL; ok && p; p = p->next)
        ok = lb_pattern_check(cx, &p->name, "rule", lb_file_count(f), first);
    return ok;
}
