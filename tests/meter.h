/* meter.h - an allocator that counts, and fails on demand. */
#ifndef LB_METER_H
#define LB_METER_H

#include <stdlib.h>

#include "lowbit.h"

typedef struct meter {
    long count, fail_at, failed; /* allocations: so far, to fail, failed */
    long blocks;                 /* in use */
} meter;

static inline void *meter_alloc(void *user, size_t size, size_t align)
{
    meter *m = user;
    void *p = NULL;
    const bool now = ++m->count == m->fail_at;
    m->failed += now;
    if (now || posix_memalign(&p, align, size)) return NULL;
    m->blocks++;
    return p;
}

static inline void meter_free(void *user, void *p, size_t size)
{
    meter *m = user;
    (void)size;
    m->blocks--;
    free(p);
}

#endif
