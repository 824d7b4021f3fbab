/* scan.h - reading all values of a file, with a progress bar. */
#ifndef SCAN_H
#define SCAN_H

#include "progress.h"

/* What was read so far, of all that is to be read. */
typedef struct scan {
    progress bar;
    int64_t i, n;         /* arrays */
    uint64_t done, total; /* bytes */
} scan;

/* times: how often each array will be read; only: one array, or NULL for all
 * that can be loaded. */
void scan_begin(scan *s, const arguments *a, const lb_file *f,
                const lb_entry *only, int times);
/* Calls fn for the values of an array: for chunks of rows if it is large and
 * dense, else once for all of it. Stops when fn fails; false and an error. */
bool scan_array(scan *s, lb_ctx *cx, lb_file *f, const lb_entry *e,
                bool (*fn)(void *user, lb_ctx *cx, lb_array *part), void *user);
/* Removes the bar, before other output. */
void scan_clear(scan *s);

#endif
