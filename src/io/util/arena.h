/* arena.h - memory for many small objects of one lifetime.
 *
 * An open file is described by many small blocks (names, shapes, values) of the
 * same lifetime. One call frees them all, on every path.
 */
#ifndef LB_ARENA_H
#define LB_ARENA_H

#include "base/memory.h"
#include "lowbit_ext.h"

typedef struct lb_arena {
    lb_heap *heap;
    struct lb_arena_block *last; /* the block with free space */
} lb_arena;

/* n items of size bytes, zeroed, with maximal alignment; NULL and an error if
 * out of memory. n may be 0. An arena that is zero except for its heap is
 * empty. */
void *lb_arena_alloc(lb_ctx *cx, lb_arena *arena, uint64_t n, size_t size);
/* A copy of n bytes, terminated by a 0. */
char *lb_arena_text(lb_ctx *cx, lb_arena *arena, const void *text, size_t n);
void lb_arena_free(lb_arena *arena);

/* A growing buffer, for composing headers. Running out of memory sets `failed`,
 * and later calls do nothing: check it once at the end. */
typedef struct lb_bytes {
    lb_heap *heap;
    uint8_t *at;
    size_t n, got;
    size_t heap_got;
    bool failed; /* out of memory */
} lb_bytes;
void lb_bytes_put(lb_bytes *b, const void *from, size_t n);
void lb_bytes_fill(lb_bytes *b, uint8_t byte, size_t n);
void lb_bytes_text(lb_bytes *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));  /* at most 255 characters */
void lb_bytes_u16(lb_bytes *b, uint16_t v); /* little-endian, as are the next
                                             * two */
void lb_bytes_u32(lb_bytes *b, uint32_t v);
void lb_bytes_u64(lb_bytes *b, uint64_t v);
void lb_bytes_free(lb_bytes *b);

/* Little-endian integers at any alignment. */
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
