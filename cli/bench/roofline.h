/* roofline.h - cells as points under the machine's limits, as an SVG file. */
#ifndef LB_BENCH_ROOFLINE_H
#define LB_BENCH_ROOFLINE_H

#include "cell.h"
#include "limits.h"

/* Whether such a file can be written; says why if not, and leaves what is there
 * as it is. */
bool roofline_check(const char *file);

/* Cells of l->threads threads; false after saying why the file could not be
 * written. */
bool roofline_draw(const char *file, const cell *cells, int n, const limits *l);

#endif
