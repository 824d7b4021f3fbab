/* cursor.h - reading a header of unknown length, step by step.
 *
 * Every step is held against what is left of the file. Small things are looked
 * at in the map or in a window; long ones stay in the map or go to the arena.
 */
#ifndef LB_CURSOR_H
#define LB_CURSOR_H

#include "io/containers/container.h"

typedef struct lb_cursor {
    lb_ctx *cx;
    lb_reader *r; /* whose file[0] it is, and whose arena */
    uint64_t at;  /* the next byte */
    uint64_t window_at;
    size_t window_n;
    uint8_t window[4096]; /* where there is no map */
} lb_cursor;

static inline uint64_t lb_cursor_left(const lb_cursor *c)
{
    return c->r->file[0]->size - c->at;
}
/* The next n <= 4096 bytes, which it passes; valid until the next call. what:
 * for the sentence, "what, 8 bytes at 123, .." NULL and an error. */
const uint8_t *lb_cursor_take(lb_cursor *c, size_t n, const char *what);
bool lb_cursor_u32(lb_cursor *c, const char *what, uint32_t *v);
bool lb_cursor_u64(lb_cursor *c, const char *what, uint64_t *v);
bool lb_cursor_skip(lb_cursor *c, uint64_t n, const char *what);
/* n bytes from offset on, passed already; valid while the reader is open. */
const uint8_t *lb_cursor_span(lb_cursor *c, uint64_t offset, uint64_t n);

#endif
