/* scan.h - reading all values of a file, with a progress bar. */
#ifndef SCAN_H
#define SCAN_H

#include "progress.h"

/* Progress of reading. */
typedef struct scan {
    progress bar;
    int64_t i, n;         /* arrays */
    uint64_t done, total; /* bytes */
} scan;

/* times: how often each array is read; only: a single array, or NULL for all
 * that can be loaded. */
void scan_begin(scan *s, const arguments *a, const lb_file *f,
                const lb_entry *only, int times);
/* Rows of a chunk of a large array; 0: it is loaded as a whole. */
int64_t rows_at_once(const lb_entry *e);
/* Calls fn with the values of an array, by such chunks. Stops when fn fails;
 * false and an error. */
bool scan_array(scan *s, lb_ctx *cx, lb_file *f, const lb_entry *e,
                bool (*fn)(void *user, lb_ctx *cx, lb_array *part), void *user);
/* Removes the bar, before other output. */
void scan_clear(scan *s);

#endif
