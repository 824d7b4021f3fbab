/* histogram.h - histograms of values and codes, and how they are shown on a
 * terminal. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include "verb.h"

enum { CODES_MOST = 256 };

/* Bins over the range of an array's values, or over four standard deviations on
 * either side of their mean, if that is narrower. */
void histogram_span(lb_histogram *h, const lb_findings *f, int bins);

/* Counts by code, for formats with one code per value. */
typedef struct code_counts {
    int least, most;           /* codes that occur; least > most: none */
    int64_t count[CODES_MOST]; /* code c at c & 255 */
} code_counts;

/* Adds an array's codes; does nothing if its format has none. False and an
 * error on failure. */
bool codes_add(code_counts *c, lb_ctx *cx, lb_array *a);

/* Draws a bar of v / most of width columns, in eighths if the locale is UTF-8.
 * Returns the columns drawn. */
int put_bar(FILE *to, double v, double most, int width);
/* One column per bin, in eight heights: "▁▂▅█▅▂▁". */
void put_spark(FILE *to, const int64_t *count, int n);

#endif
