/* cursor.c - reads a header of unknown length step by step. */
#include "io/util/cursor.h"

static bool inside(lb_cursor *c, uint64_t n, const char *what)
{
    if (n <= lb_cursor_left(c)) return true;
    return lb_refuse(
        c->cx, c->r->file[0],
        "%s: %llu bytes at offset %llu, but only %llu are left in the file",
        what, (unsigned long long)n, (unsigned long long)c->at,
        (unsigned long long)lb_cursor_left(c));
}

/* Loads the window so that it contains the next n bytes. */
static bool slide(lb_cursor *c, size_t n)
{
    if (c->at >= c->window_at && c->at - c->window_at <= c->window_n &&
        n <= c->window_n - (c->at - c->window_at))
        return true;
    const uint64_t left = lb_cursor_left(c);
    c->window_at = c->at;
    c->window_n = left < sizeof c->window ? (size_t)left : sizeof c->window;
    return lb_infile_read(c->cx, c->r->file[0], c->at, c->window_n, c->window);
}

const uint8_t *lb_cursor_take(lb_cursor *c, size_t n, const char *what)
{
    if (!inside(c, n, what)) return NULL;
    const uint8_t *p = lb_infile_at(c->r->file[0], c->at, n);
    if (!p) {
        if (!slide(c, n)) return NULL;
        p = c->window + (c->at - c->window_at);
    }
    c->at += n;
    return p;
}

bool lb_cursor_u32(lb_cursor *c, const char *what, uint32_t *v)
{
    const uint8_t *p = lb_cursor_take(c, 4, what);
    if (p) *v = lb_get_u32(p);
    return p != NULL;
}

bool lb_cursor_u64(lb_cursor *c, const char *what, uint64_t *v)
{
    const uint8_t *p = lb_cursor_take(c, 8, what);
    if (p) *v = lb_get_u64(p);
    return p != NULL;
}

bool lb_cursor_skip(lb_cursor *c, uint64_t n, const char *what)
{
    if (!inside(c, n, what)) return false;
    c->at += n;
    return true;
}

const uint8_t *lb_cursor_span(lb_cursor *c, uint64_t offset, uint64_t n)
{
    const uint8_t *p = lb_infile_at(c->r->file[0], offset, n);
    if (p) return p;
    uint8_t *to = lb_arena_alloc(c->cx, &c->r->arena, n, 1);
    if (!to) return NULL;
    const bool ok = lb_infile_read(c->cx, c->r->file[0], offset, (size_t)n, to);
    return ok ? to : NULL;
}
