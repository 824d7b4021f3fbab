/* memory.h - the one source of memory: a heap that keeps freed blocks.
 *
 * Immutable results would otherwise always land on fresh pages, which halves
 * the speed of everything elementwise. Blocks are kept by size class: eight
 * per doubling, so at most an eighth is wasted. A heap outlives its context
 * while arrays do, so it counts its blocks.
 */
#ifndef LB_MEMORY_H
#define LB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lowbit.h"

typedef struct lb_heap lb_heap;

/* allocator NULL: the C library's. keep: bytes of freed blocks to hold on to.
 * NULL when out of memory. */
lb_heap *lb_heap_open(const lb_allocator *allocator, size_t keep);
/* The owner lets go: kept blocks are freed now, the heap with its last one. */
void lb_heap_close(lb_heap *heap);

/* size bytes aligned to 64, or NULL. Any thread. *got is the size to give to
 * lb_heap_free (the class's). size 0 is served as 1. Both are seen by
 * liblowbit-io, and by nobody else outside (cmake/lowbit.map). */
LB_API void *lb_heap_alloc(lb_heap *heap, size_t size, size_t *got);
LB_API void lb_heap_free(lb_heap *heap, void *ptr, size_t got);
/* Frees the kept blocks; returns their bytes. */
size_t lb_heap_trim(lb_heap *heap);
size_t lb_heap_in_use(lb_heap *heap);
size_t lb_heap_peak(lb_heap *heap);

/* Checked arithmetic: false on overflow, and then *out is not to be used. */
static inline bool lb_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool lb_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool lb_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool lb_add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

#endif
