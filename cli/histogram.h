/* histogram.h - how often numbers and codes occur in an array. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include "verb.h"

enum { BINS_MOST = 200, CODES_MOST = 256 };

/* Of the finite numbers; those outside of lo .. hi are counted apart. */
typedef struct histogram {
    double lo, hi;
    int bins;
    int64_t count[BINS_MOST], below, above;
} histogram;

/* Bins over what an array's numbers span, or four standard deviations on either
 * side of their mean, if that is less. */
void histogram_span(histogram *h, const lb_findings *f, int bins);
/* Adds an array's numbers. False and the context's error. */
bool histogram_add(histogram *h, lb_ctx *cx, lb_array *a);

/* By code; of arrays whose format has one for each number. */
typedef struct code_counts {
    int least, most;           /* codes that were met; least > most: none */
    int64_t count[CODES_MOST]; /* of code c at c & 255 */
} code_counts;

/* Adds an array's codes; nothing, if its format has none. False and an error
 * otherwise. */
bool codes_add(code_counts *c, lb_ctx *cx, lb_array *a);

/* A bar of width columns for v of most, in eighths where the terminal has
 * Unicode. Returns the columns that it takes. */
int put_bar(FILE *to, double v, double most, int width);
/* Eight heights, one column for each bin: "▁▂▅█▅▂▁". */
void put_spark(FILE *to, const int64_t *count, int n);

#endif
