/* arena.h - small things that live and go together, from a heap.
 *
 * What an opened file is described by (names, shapes, values) is many small
 * blocks of one lifetime. Freeing them is one call, on every path.
 */
#ifndef LB_ARENA_H
#define LB_ARENA_H

#include "base/memory.h"
#include "lowbit_ext.h"

typedef struct lb_arena {
    lb_heap *heap;
    struct lb_arena_block *last; /* the one that has room */
} lb_arena;

/* n items of size bytes, zeroed, aligned for anything; or NULL and an error.
 * n 0 is served. An arena of zeros but for its heap is empty. */
void *lb_arena_alloc(lb_ctx *cx, lb_arena *arena, uint64_t n, size_t size);
/* n bytes and a 0 after them. */
char *lb_arena_text(lb_ctx *cx, lb_arena *arena, const void *text, size_t n);
void lb_arena_free(lb_arena *arena);

/* A growing run of bytes, from a heap: what a header is composed in. That
 * there was no memory stays noted: one look at the end is enough. */
typedef struct lb_bytes {
    lb_heap *heap;
    uint8_t *at;
    size_t n, got;
    size_t heap_got;
    bool failed; /* there was no memory */
} lb_bytes;
void lb_bytes_put(lb_bytes *b, const void *from, size_t n);
void lb_bytes_fill(lb_bytes *b, uint8_t byte, size_t n);
void lb_bytes_text(lb_bytes *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));  /* at most 255 characters */
void lb_bytes_u16(lb_bytes *b, uint16_t v); /* little-endian, as the next */
void lb_bytes_u32(lb_bytes *b, uint32_t v);
void lb_bytes_u64(lb_bytes *b, uint64_t v);
void lb_bytes_free(lb_bytes *b);

/* Little-endian numbers from anywhere. */
static inline uint32_t lb_get_u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}
static inline uint32_t lb_get_u32(const uint8_t *p)
{
    return lb_get_u16(p) | lb_get_u16(p + 2) << 16;
}
static inline uint64_t lb_get_u64(const uint8_t *p)
{
    return (uint64_t)lb_get_u32(p) | (uint64_t)lb_get_u32(p + 4) << 32;
}

#endif
