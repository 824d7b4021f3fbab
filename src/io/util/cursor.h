/* cursor.h - reads a header of unknown length step by step.
 *
 * Each step checks the remaining size of the file. Short fields are read from
 * the map or from a window; long ones stay in the map or are copied to the
 * arena.
 */
#ifndef LB_CURSOR_H
#define LB_CURSOR_H

#include "io/containers/container.h"

typedef struct lb_cursor {
    lb_ctx *cx;
    lb_reader *r; /* provides file[0] and the arena */
    uint64_t at;  /* offset of the next byte */
    uint64_t window_at;
    size_t window_n;
    uint8_t window[4096]; /* used if the file is not mapped */
} lb_cursor;

static inline uint64_t lb_cursor_left(const lb_cursor *c)
{
    return c->r->file[0]->size - c->at;
}
/* Returns the next n <= 4096 bytes and advances; valid until the next call.
 * what: names the field in the message ("WHAT: 8 bytes at offset 123, ...").
 * NULL and an error if the file is too short. */
const uint8_t *lb_cursor_take(lb_cursor *c, size_t n, const char *what);
bool lb_cursor_u32(lb_cursor *c, const char *what, uint32_t *v);
bool lb_cursor_u64(lb_cursor *c, const char *what, uint64_t *v);
bool lb_cursor_skip(lb_cursor *c, uint64_t n, const char *what);
/* n bytes at an offset before the cursor; valid while the reader is open. */
const uint8_t *lb_cursor_span(lb_cursor *c, uint64_t offset, uint64_t n);

#endif
