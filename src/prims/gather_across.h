/* gather_across.h - gather where the elements of a window lie far apart, and
 * those of different windows near each other: columns, single elements.
 *
 * Element e of window w goes from `a[s(e) + from(w)]` to `out[d(e) + to(w)]`.
 * So the windows of a group are looked up once, and for one element after the
 * other all of them are picked from the stretch of memory that they share; a
 * packed one is decoded for that, as far as windows need it.
 */
#ifndef LB_GATHER_ACROSS_H
#define LB_GATHER_ACROSS_H

#include "prims/windows.h"

typedef struct lb_across {
    const lb_windows *ws;
    const lb_array *a;
    const char *raw; /* a's elements, where they lie, or NULL */
    size_t size;     /* bytes of an element of the result */
    lb_ctype ctype;
    bool turned;                 /* a window's elements are together in out */
    int64_t stride[LB_MAX_RANK]; /* of the result */
    int64_t elements;            /* of a window */
    int64_t group, piece;        /* windows and elements of a unit */
    int64_t pieces, units;
} lb_across;

/* Whether that is the way to go. */
bool lb_across_fits(const lb_windows *ws, const lb_array *a);
lb_across lb_across_plan(const lb_windows *ws, const lb_call *c);
size_t lb_across_scratch(const lb_across *x); /* bytes, of each thread */
/* Units w->lo <= u < w->hi; fill: an element of the result, for windows that
 * do not fit. */
void lb_across_run(const lb_across *x, const lb_work *w, const void *fill);

#endif
