/* memory.c - the heap of memory.h: size classes, cached blocks, counters.
 *
 * Eight classes per power of two, at least a cache line apart:
 *   64 128 192 ... 1024 | 1152 1280 ... 2048 | 2304 ...
 * A cached block contains its own list node. It is in two lists: that of its
 * class, used last in first out, so that a reused block is still in the CPU's
 * caches; and one of all cached blocks by age. If the cache is full, the oldest
 * blocks are freed: the program has stopped using their sizes, while the block
 * just freed is the most likely to be reused. For the same reason a block that
 * was not reused during STALE frees of others is freed: what a program needed
 * while it started does not stay.
 */
#include "base/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__has_feature)
#define FEATURE(x) __has_feature(x)
#else
#define FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || FEATURE(address_sanitizer)
#define HEAP_ASAN 1
#endif
/* Sanitizers abort above 1 TiB, where malloc returns NULL. */
#if defined(HEAP_ASAN) || defined(__SANITIZE_THREAD__) ||                      \
    FEATURE(thread_sanitizer) || FEATURE(memory_sanitizer)
#define LIBC_MAX ((size_t)1 << 39)
#else
#define LIBC_MAX PTRDIFF_MAX
#endif

/* Cached blocks are poisoned entirely; only functions that handle list nodes
 * may access them. */
#ifdef HEAP_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, size)   ASAN_POISON_MEMORY_REGION(p, size)
#define UNPOISON(p, size) ASAN_UNPOISON_MEMORY_REGION(p, size)
#define HANDLES_NODES     __attribute__((no_sanitize_address, noinline))
#else
#define POISON(p, size)   ((void)(p), (void)(size))
#define UNPOISON(p, size) ((void)(p), (void)(size))
#define HANDLES_NODES
#endif

#define ALIGN      64
#define LINE_SHIFT 6
/* Of sizes up to PTRDIFF_MAX: the largest shift is 59, see class_of. */
#define N_CLASSES ((59 - LINE_SHIFT) * 8 + 16)

#define HUGE_PAGE ((size_t)2 << 20)
/* From this size on, fewer TLB misses outweigh the rounding to pages. */
#define HUGE_MIN ((size_t)4 << 20)

/* Some thousand operations, or hundred tokens of a small model. */
#define STALE 16384

typedef struct node {
    struct node *class_next, *class_prev;
    struct node *newer, *older;
    size_t size;
    uint64_t when; /* lb_heap.frees */
} node;

_Static_assert(sizeof(node) <= ALIGN, "a node fits the smallest block");

struct lb_heap {
    pthread_mutex_t lock; /* guards all below but the allocator */
    size_t keep;
    size_t kept;
    size_t in_use;
    size_t peak;
    size_t live; /* blocks handed out */
    uint64_t frees;
    bool closed;
    node *newest, *oldest;
    lb_allocator allocator;
    node *classes[N_CLASSES];
};

static void *libc_alloc(void *user, size_t size, size_t align)
{
    (void)user;
    if (size > LIBC_MAX) return NULL;
    const bool huge = size >= HUGE_MIN;
    void *p = NULL;
    /* aligned_alloc requires a size that is a multiple of the alignment */
    if (posix_memalign(&p, huge ? HUGE_PAGE : align, size)) return NULL;
#ifdef MADV_HUGEPAGE
    if (huge) (void)madvise(p, size, MADV_HUGEPAGE); /* a wish, no more */
#endif
    return p;
}

static void libc_free(void *user, void *ptr, size_t size)
{
    (void)user;
    (void)size;
    free(ptr);
}

/* The class's number; *rounded is its size. 0 < size <= PTRDIFF_MAX.
 * Above 1024, 2^(shift+3) < size <= 2^(shift+4), in steps of 2^shift. */
static unsigned class_of(size_t size, size_t *rounded)
{
    unsigned shift = LINE_SHIFT;
    if (size > 1024) shift = 60u - (unsigned)__builtin_clzll(size - 1);
    const size_t steps = ((size - 1) >> shift) + 1;
    *rounded = steps << shift;
    return (shift - LINE_SHIFT) * 8 + (unsigned)steps - 1;
}

HANDLES_NODES static void keep_block(lb_heap *heap, node *b, size_t size,
                                     unsigned c)
{
    b->size = size;
    b->when = ++heap->frees;
    b->class_prev = NULL;
    b->class_next = heap->classes[c];
    if (b->class_next) b->class_next->class_prev = b;
    heap->classes[c] = b;
    b->newer = NULL;
    b->older = heap->newest;
    if (b->older)
        b->older->newer = b;
    else
        heap->oldest = b;
    heap->newest = b;
    heap->kept += size;
}

/* Of class c. */
HANDLES_NODES static void unkeep_block(lb_heap *heap, node *b, unsigned c)
{
    if (b->class_next) b->class_next->class_prev = b->class_prev;
    if (b->class_prev)
        b->class_prev->class_next = b->class_next;
    else
        heap->classes[c] = b->class_next;
    if (b->newer)
        b->newer->older = b->older;
    else
        heap->newest = b->older;
    if (b->older)
        b->older->newer = b->newer;
    else
        heap->oldest = b->newer;
    heap->kept -= b->size;
}

/* Removes the oldest blocks until at most `room` bytes are cached. Returns them
 * chained by class_next, for free_chain after the lock is released. */
HANDLES_NODES static node *evict(lb_heap *heap, size_t room)
{
    node *chain = NULL;
    while (heap->kept > room) {
        node *b = heap->oldest;
        size_t rounded;
        unkeep_block(heap, b, class_of(b->size, &rounded));
        b->class_next = chain;
        chain = b;
    }
    return chain;
}

/* Puts the oldest two blocks, if they are stale, before the chain: two for each
 * block that may become stale. */
HANDLES_NODES static node *evict_stale(lb_heap *heap, node *chain)
{
    for (int i = 0; i < 2; i++) {
        node *b = heap->oldest;
        size_t rounded;
        if (!b || heap->frees - b->when < STALE) break;
        unkeep_block(heap, b, class_of(b->size, &rounded));
        b->class_next = chain;
        chain = b;
    }
    return chain;
}

/* Without the lock: unmapping is slow, and the allocator is user code. */
HANDLES_NODES static size_t free_chain(const lb_allocator *a, node *chain)
{
    size_t total = 0;
    while (chain) {
        node *next = chain->class_next;
        const size_t size = chain->size;
        UNPOISON(chain, size);
        a->free(a->user, chain, size);
        total += size;
        chain = next;
    }
    return total;
}

static void destroy(lb_heap *heap)
{
    const lb_allocator a = heap->allocator;
    pthread_mutex_destroy(&heap->lock);
    a.free(a.user, heap, sizeof *heap);
}

lb_heap *lb_heap_open(const lb_allocator *allocator, size_t keep)
{
    const lb_allocator libc = {libc_alloc, libc_free, NULL};
    const lb_allocator a = allocator ? *allocator : libc;
    lb_heap *heap = a.alloc(a.user, sizeof *heap, ALIGN);
    if (!heap) return NULL;
    *heap = (lb_heap){.keep = keep, .allocator = a};
    if (pthread_mutex_init(&heap->lock, NULL)) {
        a.free(a.user, heap, sizeof *heap);
        return NULL;
    }
    return heap;
}

void lb_heap_close(lb_heap *heap)
{
    pthread_mutex_lock(&heap->lock);
    heap->closed = true;
    heap->keep = 0;
    node *chain = evict(heap, 0);
    /* The last free destroys the heap, possibly before the lines below. */
    const lb_allocator a = heap->allocator;
    const bool last = heap->live == 0;
    pthread_mutex_unlock(&heap->lock);
    free_chain(&a, chain);
    if (last) destroy(heap);
}

static void count_block(lb_heap *heap, size_t size)
{
    heap->live++;
    heap->in_use += size;
    if (heap->in_use > heap->peak) heap->peak = heap->in_use;
}

void *lb_heap_alloc(lb_heap *heap, size_t size, size_t *got)
{
    if (size == 0) size = 1;
    if (size > PTRDIFF_MAX) return NULL;
    size_t rounded;
    const unsigned c = class_of(size, &rounded);

    pthread_mutex_lock(&heap->lock);
    void *p = heap->classes[c];
    if (p) {
        unkeep_block(heap, p, c);
        count_block(heap, rounded);
    }
    pthread_mutex_unlock(&heap->lock);

    if (!p) {
        const lb_allocator *a = &heap->allocator;
        p = a->alloc(a->user, rounded, ALIGN);
        /* free cached blocks before failing */
        if (!p && lb_heap_trim(heap)) p = a->alloc(a->user, rounded, ALIGN);
        if (!p) return NULL;
        pthread_mutex_lock(&heap->lock);
        count_block(heap, rounded);
        pthread_mutex_unlock(&heap->lock);
    }
    UNPOISON(p, size);
    POISON((char *)p + size, rounded - size);
    *got = rounded;
    return p;
}

void lb_heap_free(lb_heap *heap, void *ptr, size_t got)
{
    if (!ptr) return;
    size_t rounded; /* is got */
    const unsigned c = class_of(got, &rounded);

    pthread_mutex_lock(&heap->lock);
    node *chain = NULL;
    const bool keeps = got <= heap->keep;
    if (keeps) {
        chain = evict(heap, heap->keep - got);
        keep_block(heap, ptr, got, c);
        chain = evict_stale(heap, chain);
        POISON(ptr, got);
    }
    heap->live--;
    heap->in_use -= got;
    const bool last = heap->closed && heap->live == 0;
    const lb_allocator a = heap->allocator;
    pthread_mutex_unlock(&heap->lock);

    free_chain(&a, chain);
    if (!keeps) {
        UNPOISON(ptr, got);
        a.free(a.user, ptr, got);
    }
    if (last) destroy(heap);
}

size_t lb_heap_trim(lb_heap *heap)
{
    pthread_mutex_lock(&heap->lock);
    node *chain = evict(heap, 0);
    pthread_mutex_unlock(&heap->lock);
    return free_chain(&heap->allocator, chain);
}

size_t lb_heap_in_use(lb_heap *heap)
{
    pthread_mutex_lock(&heap->lock);
    const size_t n = heap->in_use;
    pthread_mutex_unlock(&heap->lock);
    return n;
}

size_t lb_heap_peak(lb_heap *heap)
{
    pthread_mutex_lock(&heap->lock);
    const size_t n = heap->peak;
    pthread_mutex_unlock(&heap->lock);
    return n;
}
