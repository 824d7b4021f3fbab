/* pattern.h - matching names by Perl-compatible regular expressions. */
#ifndef LB_PATTERN_H
#define LB_PATTERN_H

#include "io/util/arena.h"

/* Shared by all patterns of a set: the PCRE2 context, on the context's heap. */
typedef struct lb_patterns {
    void *memory, *limits, *match;
} lb_patterns;

typedef struct lb_pattern {
    const char *text;
    void *code;
    bool matched; /* matched at least one name */
    int trouble;  /* the PCRE2 error code of a match that was aborted */
} lb_pattern;

bool lb_patterns_open(lb_ctx *cx, lb_patterns *all);
void lb_patterns_close(lb_patterns *all);
/* Compiles n characters. what: names the pattern in messages. The text is
 * copied to the arena. Must be freed. */
bool lb_pattern_open(lb_ctx *cx, const lb_patterns *all, lb_arena *arena,
                     const char *what, const char *text, size_t n,
                     lb_pattern *p);
void lb_pattern_close(lb_pattern *p);
/* Whether it matches anywhere in a name (unanchored). */
bool lb_pattern_matches(const lb_patterns *all, lb_pattern *p,
                        const char *name);
/* An error if a match was aborted, or if no name has matched. arrays, first:
 * number of names and the first one, for the message. */
bool lb_pattern_check(lb_ctx *cx, const lb_pattern *p, const char *what,
                      int64_t arrays, const char *first);
/* The message for a pattern that matches no name. */
void lb_pattern_unmatched(const lb_pattern *p, const char *what, int64_t arrays,
                          const char *first, char *to, size_t size);

#endif
