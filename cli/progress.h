/* progress.h - progress of a long job on stderr: a bar on a terminal, one line
 * per array with --verbose, otherwise nothing. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "verb.h"

typedef struct progress {
    bool bar;           /* stderr is a terminal, without --quiet or --verbose */
    bool lines;         /* one line per array: --verbose */
    bool drawn;         /* the bar is visible; clear it before other output */
    double began, last; /* seconds */
} progress;

/* How far the job is. */
typedef struct progress_step {
    const char *name;     /* array being processed; may be NULL */
    int64_t i, n;         /* arrays finished, of n; n 0: not shown */
    uint64_t done, total; /* bytes of the source */
} progress_step;

/* From --quiet, --verbose and whether stderr is a terminal. */
void progress_begin(progress *p, const arguments *a);
/* Draws the bar, at most ten times a second. Call it as often as you like. */
void progress_at(progress *p, const progress_step *s);
/* Removes the bar, before other output. */
void progress_clear(progress *p);

/* The text of the bar, of at most width columns, after elapsed seconds. */
void progress_line(FILE *to, const progress_step *s, double elapsed, int width);

#endif
