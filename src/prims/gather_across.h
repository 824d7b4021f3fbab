/* gather_across.h - gather if elements of one window are far apart, and those
 * of different windows close together: columns, single elements.
 *
 * Element e of window w goes from `a[s(e) + from(w)]` to `out[d(e) + to(w)]`.
 * So the windows of a group are looked up once, and then, for one element after
 * the other, all windows are picked from the memory range that they share. If
 * the operand is packed, the needed parts of that range are decoded first.
 */
#ifndef LB_GATHER_ACROSS_H
#define LB_GATHER_ACROSS_H

#include "prims/windows.h"

typedef struct lb_across {
    const lb_windows *ws;
    const lb_array *a;
    const char *raw; /* a's elements if they can be read directly, else NULL */
    size_t size;     /* bytes per element of the result */
    lb_ctype ctype;
    bool turned;                 /* the elements of a window are contiguous in
                                  * out: transpose */
    int64_t stride[LB_MAX_RANK]; /* of the result */
    int64_t elements;            /* per window */
    int64_t group, piece;        /* windows and elements per unit */
    int64_t pieces, units;
} lb_across;

/* Whether this algorithm is suitable. */
bool lb_across_fits(const lb_windows *ws, const lb_array *a);
lb_across lb_across_plan(const lb_windows *ws, const lb_call *c);
size_t lb_across_scratch(const lb_across *x); /* bytes per thread */
/* Units w->lo <= u < w->hi. fill: an element of the result, for windows that do
 * not fit. */
void lb_across_run(const lb_across *x, const lb_work *w, const void *fill);

#endif
