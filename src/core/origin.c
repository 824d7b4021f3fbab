/* origin.c - lb_options.debug: finds arrays that are used after being freed.
 *
 * The view of an array whose last reference is gone stays until the context is
 * closed. Its store is replaced by one without elements, marked dead, which
 * every operation refuses (lb_is_alive). The shape and dtype, and the operation
 * that made the array, are kept for the message.
 *
 * Arrays may outlive the context and be released by any thread. The list of
 * views is therefore closed atomically: a view that ends later is freed at
 * once. The last array frees the record.
 */
#include "core/core.h"

extern const lb_format lb_format_dense;

struct lb_origin {
    struct lb_debug *debug;
    const char *by; /* the operation; NULL: not known */
    lb_array *a;
    void *block; /* of the view */
    size_t block_got, got;
    bool ended;
    lb_origin *next; /* in the list of views that have ended */
};

struct lb_debug {
    lb_heap *heap;
    size_t got;
    int64_t refs;     /* atomic: the context and all origins */
    lb_origin *ended; /* atomic; `closed` after lb_debug_close */
    lb_origin closed;
    lb_traced dead;
    lb_store store; /* of all views that have ended */
};

static void release(struct lb_debug *d)
{
    if (__atomic_sub_fetch(&d->refs, 1, __ATOMIC_ACQ_REL)) return;
    lb_heap_free(d->heap, d, d->got);
}

static void free_origin(lb_origin *o)
{
    struct lb_debug *d = o->debug;
    lb_heap_free(d->heap, o, o->got);
    release(d);
}

struct lb_debug *lb_debug_open(lb_heap *heap)
{
    size_t got;
    struct lb_debug *d = lb_heap_alloc(heap, sizeof *d, &got);
    if (!d) return NULL;
    *d = (struct lb_debug){
        .heap = heap,
        .got = got,
        .refs = 1,
        .dead = {.trace = -1, .dead = true},
    };
    d->store = (lb_store){
        .refs = 1,
        .heap = heap,
        .fmt = &lb_format_dense,
        .shape = {1, {0}},
        .traced = &d->dead,
    };
    return d;
}

void lb_debug_close(struct lb_debug *d)
{
    lb_origin *o = __atomic_exchange_n(&d->ended, &d->closed, __ATOMIC_ACQ_REL);
    while (o) {
        lb_origin *next = o->next;
        lb_heap_free(d->heap, o->block, o->block_got);
        free_origin(o);
        o = next;
    }
    release(d);
}

lb_origin *lb_origin_new(lb_ctx *cx, lb_array *a, void *block, size_t got)
{
    size_t own;
    lb_origin *o = lb_heap_alloc(cx->heap, sizeof *o, &own);
    if (!o) {
        lb_fail(cx, LB_E_NOMEM, "out of memory");
        return NULL;
    }
    *o = (lb_origin){.debug = cx->debug,
                     .by = cx->making,
                     .a = a,
                     .block = block,
                     .block_got = got,
                     .got = own};
    __atomic_add_fetch(&cx->debug->refs, 1, __ATOMIC_RELAXED);
    return o;
}

bool lb_origin_end(lb_origin *o)
{
    struct lb_debug *d = o->debug;
    if (o->ended) return true; /* released once too often */
    lb_store *was = o->a->store;
    lb_origin *first = __atomic_load_n(&d->ended, __ATOMIC_ACQUIRE);
    o->a->store = &d->store;
    while (was && first != &d->closed) {
        o->next = first;
        o->ended = true;
        if (__atomic_compare_exchange_n(&d->ended, &first, o, true,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return true;
    }
    o->a->store = was;
    free_origin(o);
    return false;
}

const char *lb_origin_name(const lb_origin *o)
{
    return o ? o->by : NULL;
}
