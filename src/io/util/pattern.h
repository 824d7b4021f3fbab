/* pattern.h - names by regular expressions, as Perl has them. */
#ifndef LB_PATTERN_H
#define LB_PATTERN_H

#include "io/util/arena.h"

/* What all patterns of a set share: PCRE2's own, with memory of the heap. */
typedef struct lb_patterns {
    void *memory, *limits, *match;
} lb_patterns;

typedef struct lb_pattern {
    const char *text;
    void *code;
    bool matched; /* some name that was asked about */
    int trouble;  /* PCRE2's, of a match that was given up */
} lb_pattern;

bool lb_patterns_open(lb_ctx *cx, lb_patterns *all);
void lb_patterns_close(lb_patterns *all);
/* Of n characters; what: the word for it in sentences; the text is copied to
 * the arena. It must be freed. */
bool lb_pattern_open(lb_ctx *cx, const lb_patterns *all, lb_arena *arena,
                     const char *what, const char *text, size_t n,
                     lb_pattern *p);
void lb_pattern_close(lb_pattern *p);
/* Whether it matches anywhere in a name. */
bool lb_pattern_matches(const lb_patterns *all, lb_pattern *p,
                        const char *name);
/* An error if it has matched no name that was asked about, or could not be
 * matched; arrays, first: as sentences count and name them. */
bool lb_pattern_check(lb_ctx *cx, const lb_pattern *p, const char *what,
                      int64_t arrays, const char *first);
/* The message about a pattern that has matched no name. */
void lb_pattern_unmatched(const lb_pattern *p, const char *what, int64_t arrays,
                          const char *first, char *to, size_t size);

#endif
