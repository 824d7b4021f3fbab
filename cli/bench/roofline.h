/* roofline.h - measured products and the machine's limits as an SVG roofline
 * chart. */
#ifndef LB_BENCH_ROOFLINE_H
#define LB_BENCH_ROOFLINE_H

#include "cell.h"
#include "limits.h"

/* Whether the file can be written; if not, prints a message. An existing file
 * is unchanged. */
bool roofline_check(const char *file);

/* Draws cells measured with l->threads threads; false after a message. */
bool roofline_draw(const char *file, const cell *cells, int n, const limits *l);

#endif
