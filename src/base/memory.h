/* memory.h - the library's only source of memory: a heap that caches freed
 * blocks.
 *
 * Without the cache every result would be written to fresh pages, which halves
 * the speed of elementwise operations. Blocks are cached until they have not
 * been reused for long (memory.c), by size class: eight
 * classes per power of two, so at most an eighth is wasted. The heap counts its
 * blocks, because arrays may outlive the context that opened it.
 */
#ifndef LB_MEMORY_H
#define LB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lowbit.h"

typedef struct lb_heap lb_heap;

/* allocator: NULL for malloc and free. keep: maximum bytes of cached blocks.
 * Returns NULL when out of memory. */
lb_heap *lb_heap_open(const lb_allocator *allocator, size_t keep);
/* Frees cached blocks now, and the heap itself with its last block in use. */
void lb_heap_close(lb_heap *heap);

/* size bytes aligned to 64, or NULL. Any thread. *got is the size of the block
 * (of its class), which lb_heap_free requires. Size 0 counts as 1. Exported for
 * liblowbit-io only (cmake/lowbit.map). */
LB_API void *lb_heap_alloc(lb_heap *heap, size_t size, size_t *got);
LB_API void lb_heap_free(lb_heap *heap, void *ptr, size_t got);
/* Frees the cached blocks; returns their total bytes. */
size_t lb_heap_trim(lb_heap *heap);
size_t lb_heap_in_use(lb_heap *heap);
size_t lb_heap_peak(lb_heap *heap);

/* Checked arithmetic: false on overflow, with *out undefined. */
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
