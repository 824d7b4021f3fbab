/* arena.c - memory for many small objects of one lifetime, and growing buffers.
 */
#include "io/util/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- arenas -------------------------------------------------------------- */

enum { ALIGN = 16, BLOCK_LEAST = 4096, BLOCK_MOST = 1 << 20 };

typedef struct lb_arena_block {
    struct lb_arena_block *older;
    size_t got;  /* allocated size of this block */
    size_t size; /* requested size: the rest is poisoned for sanitizers */
    size_t used; /* bytes used, including this header */
} lb_arena_block;

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* Block sizes double up to a limit, so that few blocks suffice and little is
 * wasted. */
static lb_arena_block *new_block(lb_arena *arena, size_t need)
{
    const size_t head = round_up(sizeof(lb_arena_block));
    size_t size = arena->last ? arena->last->size * 2 : BLOCK_LEAST;
    if (size > BLOCK_MOST) size = BLOCK_MOST;
    if (size < need + head) size = need + head;
    size_t got;
    lb_arena_block *b = lb_heap_alloc(arena->heap, size, &got);
    if (!b) return NULL;
    *b = (lb_arena_block){arena->last, got, size, head};
    arena->last = b;
    return b;
}

void *lb_arena_alloc(lb_ctx *cx, lb_arena *arena, uint64_t n, size_t size)
{
    uint64_t bytes;
    const uint64_t most = PTRDIFF_MAX - 2 * BLOCK_LEAST;
    lb_arena_block *b = arena->last;
    if (__builtin_mul_overflow(n, (uint64_t)size, &bytes) || bytes > most) {
        lb_fail(cx, LB_E_NOMEM,
                "out of memory: %llu times %zu bytes exceed the address space",
                (unsigned long long)n, size);
        return NULL;
    }
    const size_t need = round_up((size_t)bytes);
    if (!b || b->size - b->used < need) b = new_block(arena, need);
    if (!b) {
        lb_fail(cx, LB_E_NOMEM, "out of memory");
        return NULL;
    }
    uint8_t *at = (uint8_t *)b + b->used;
    b->used += need;
    return memset(at, 0, need);
}

char *lb_arena_text(lb_ctx *cx, lb_arena *arena, const void *text, size_t n)
{
    char *to = lb_arena_alloc(cx, arena, (uint64_t)n + 1, 1);
    if (to && n) memcpy(to, text, n);
    return to;
}

void lb_arena_free(lb_arena *arena)
{
    while (arena->last) {
        lb_arena_block *b = arena->last;
        arena->last = b->older;
        lb_heap_free(arena->heap, b, b->got);
    }
}

/* ---- growing bytes ------------------------------------------------------- */

/* Reserves n more bytes; on failure, this and all later calls return false. */
static bool grow(lb_bytes *b, size_t n)
{
    size_t need, got;
    if (b->failed) return false;
    if (n <= b->got - b->n) return true;
    b->failed = true;
    if (!lb_add_size(b->n, n, &need) || need > PTRDIFF_MAX / 2) return false;
    const size_t size = need < 512 ? 1024 : need * 2;
    uint8_t *to = lb_heap_alloc(b->heap, size, &got);
    if (!to) return false;
    if (b->at) {
        memcpy(to, b->at, b->n);
        lb_heap_free(b->heap, b->at, b->heap_got);
    }
    b->at = to;
    b->got = size;
    b->heap_got = got;
    b->failed = false;
    return true;
}

void lb_bytes_put(lb_bytes *b, const void *from, size_t n)
{
    if (!n || !grow(b, n)) return;
    memcpy(b->at + b->n, from, n);
    b->n += n;
}

void lb_bytes_fill(lb_bytes *b, uint8_t byte, size_t n)
{
    if (!n || !grow(b, n)) return;
    memset(b->at + b->n, byte, n);
    b->n += n;
}

void lb_bytes_text(lb_bytes *b, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        b->failed = true; /* an internal error: the text is not truncated
                           * silently */
    else
        lb_bytes_put(b, text, (size_t)n);
}

static void put_number(lb_bytes *b, uint64_t v, size_t size)
{
    uint8_t byte[8];
    for (size_t i = 0; i < size; i++)
        byte[i] = (uint8_t)(v >> 8 * i);
    lb_bytes_put(b, byte, size);
}

void lb_bytes_u16(lb_bytes *b, uint16_t v)
{
    put_number(b, v, 2);
}

void lb_bytes_u32(lb_bytes *b, uint32_t v)
{
    put_number(b, v, 4);
}

void lb_bytes_u64(lb_bytes *b, uint64_t v)
{
    put_number(b, v, 8);
}

void lb_bytes_free(lb_bytes *b)
{
    if (b->at) lb_heap_free(b->heap, b->at, b->heap_got);
    b->at = NULL;
    b->n = b->got = b->heap_got = 0;
}
