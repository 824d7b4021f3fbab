/* roofline.h - cells as points under the machine's limits, as an SVG file. */
#ifndef LB_BENCH_ROOFLINE_H
#define LB_BENCH_ROOFLINE_H

#include "cell.h"
#include "limits.h"

/* Cells of l->threads threads; false after saying why the file could not be
 * written. */
bool roofline_draw(const char *file, const cell *cells, int n, const limits *l);

#endif
