/* progress.h - how far a long job is, on stderr: a bar where somebody looks at
 * a terminal, otherwise a line for each array, or nothing. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "verb.h"

typedef struct progress {
    bool bar;   /* it is a terminal, and --verbose does not want lines */
    bool lines; /* a line for each array */
    bool drawn; /* the bar is there, and must go before anything else is said */
    double began, last; /* seconds */
} progress;

/* As --quiet, --verbose and stderr are. */
void progress_begin(progress *p, const arguments *a);
/* At work on name, with so many of so many bytes behind it. Draws no more often
 * than can be seen. */
void progress_at(progress *p, const char *name, uint64_t done, uint64_t total);
/* Takes the bar away, for something else to be said. */
void progress_clear(progress *p);

#endif
