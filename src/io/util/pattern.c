/* pattern.c - matching names by regular expressions (PCRE2, on the context's
 * heap). */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "io/util/pattern.h"

#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "io/util/infile.h"

/* ---- PCRE2's memory ------------------------------------------------------ */

/* Freeing needs the size of the allocation. */
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

bool lb_patterns_open(lb_ctx *cx, lb_patterns *all)
{
    *all = (lb_patterns){0};
    all->memory = pcre2_general_context_create(take, give, cx->heap);
    if (all->memory) all->limits = pcre2_match_context_create(all->memory);
    if (all->memory) all->match = pcre2_match_data_create(1, all->memory);
    if (!all->limits || !all->match)
        return lb_fail(cx, LB_E_NOMEM, "out of memory");
    /* Names are short: a match that exceeds this limit is pathological. */
    pcre2_set_match_limit(all->limits, 1000000);
    pcre2_set_heap_limit(all->limits, 10000); /* KiB */
    return true;
}

void lb_patterns_close(lb_patterns *all)
{
    pcre2_match_data_free(all->match);
    pcre2_match_context_free(all->limits);
    pcre2_general_context_free(all->memory);
}

/* ---- patterns ------------------------------------------------------------ */

bool lb_pattern_open(lb_ctx *cx, const lb_patterns *all, lb_arena *arena,
                     const char *what, const char *text, size_t n,
                     lb_pattern *p)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    PCRE2_UCHAR why[128] = "";
    *p = (lb_pattern){0};
    if (!n) /* more likely a mistake than every name */
        return lb_fail(cx, LB_E_ARG,
                       "%s '': the pattern is empty (. matches every name)",
                       what);
    char *copy = lb_arena_text(cx, arena, text, n);
    pcre2_compile_context *c = pcre2_compile_context_create(all->memory);
    *p = (lb_pattern){.text = copy};
    if (!copy || !c) {
        pcre2_compile_context_free(c);
        return lb_fail(cx, LB_E_NOMEM, "out of memory");
    }
    p->code =
        pcre2_compile((PCRE2_SPTR)copy, n, PCRE2_NEVER_UTF, &error, &at, c);
    pcre2_compile_context_free(c);
    if (p->code) return true;
    if (error == PCRE2_ERROR_HEAP_FAILED)
        return lb_fail(cx, LB_E_NOMEM, "out of memory");
    pcre2_get_error_message(error, why, sizeof why);
    return lb_fail(cx, LB_E_ARG, "%s '%s': %s, at character %zu", what,
                   LB_NAME(copy), (const char *)why, at);
}

void lb_pattern_close(lb_pattern *p)
{
    pcre2_code_free(p->code);
}

bool lb_pattern_matches(const lb_patterns *all, lb_pattern *p, const char *name)
{
    const int n = pcre2_match(p->code, (PCRE2_SPTR)name, strlen(name), 0, 0,
                              all->match, all->limits);
    if (n >= 0) p->matched = true;
    if (n < 0 && n != PCRE2_ERROR_NOMATCH) p->trouble = n;
    return n >= 0;
}

void lb_pattern_unmatched(const lb_pattern *p, const char *what, int64_t arrays,
                          const char *first, char *to, size_t size)
{
    snprintf(to, size, "%s '%s' matches none of the %lld array%s (e.g. '%s')",
             what, LB_NAME(p->text), (long long)arrays, arrays == 1 ? "" : "s",
             LB_NAME(first));
}

bool lb_pattern_check(lb_ctx *cx, const lb_pattern *p, const char *what,
                      int64_t arrays, const char *first)
{
    PCRE2_UCHAR why[128] = "";
    if (p->trouble == PCRE2_ERROR_NOMEMORY)
        return lb_fail(cx, LB_E_NOMEM, "out of memory");
    if (p->trouble) {
        pcre2_get_error_message(p->trouble, why, sizeof why);
        return lb_fail(cx, LB_E_ARG, "%s '%s': %s", what, LB_NAME(p->text),
                       (const char *)why);
    }
    if (p->matched) return true;
    char text[LB_ERROR_SIZE];
    lb_pattern_unmatched(p, what, arrays, first, text, sizeof text);
    return lb_fail(cx, LB_E_ARG, "%s", text);
}
