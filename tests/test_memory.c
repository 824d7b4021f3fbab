/* test_memory.c - the heap: size classes, reuse, limits, lifetime, threads.
 *
 * A counting allocator is the reference: the heap's own statistics must agree
 * with what it allocated and freed.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "check.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_ASAN 1
#endif
#endif
#ifdef HAVE_ASAN
#include <sanitizer/asan_interface.h>
#endif

#define MIB ((size_t)1 << 20)

/* Every block carries its size in a 64-byte head, to compare on free. */
typedef struct counter {
    atomic_long blocks, calls;
    atomic_llong bytes;
    atomic_int wrong; /* sizes, alignments */
    long fail_at;     /* the call that fails, from 1; 0: none */
    long fail_all;    /* all calls from this one on fail; 0: none */
} counter;

static void *count_alloc(void *user, size_t size, size_t align)
{
    counter *c = user;
    const long call = ++c->calls;
    if (align == 0 || align > 64 || (align & (align - 1))) c->wrong++;
    if (call == c->fail_at || (c->fail_all && call >= c->fail_all)) return NULL;
    if (size > SIZE_MAX / 4) return NULL;
    char *p = aligned_alloc(64, (size + 64 + 63) / 64 * 64);
    if (!p) return NULL;
    memcpy(p, &size, sizeof size);
    c->blocks++;
    c->bytes += (long long)size;
    return p + 64;
}

static void count_free(void *user, void *ptr, size_t size)
{
    counter *c = user;
    char *p = (char *)ptr - 64;
    size_t asked;
    memcpy(&asked, p, sizeof asked);
    if (asked != size) c->wrong++;
    c->blocks--;
    c->bytes -= (long long)size;
    free(p);
}

static lb_heap *open_counted(counter *c, size_t keep)
{
    *c = (counter){0};
    /* gone before the first use: the heap must have copied it */
    lb_allocator a = {count_alloc, count_free, c};
    lb_heap *heap = lb_heap_open(&a, keep);
    memset(&a, 0, sizeof a);
    return heap;
}

static void check_clean(counter *c)
{
    CHECK_EQ_I(c->blocks, 0);
    CHECK_EQ_I(c->bytes, 0);
    CHECK_EQ_I(c->wrong, 0);
}

static void test_classes(void)
{
    lb_heap *heap = lb_heap_open(NULL, 0);
    CHECK(heap != NULL);
    size_t last = 0;
    for (size_t size = 0; size < 70000; size += size < 5000 ? 1 : 37) {
        size_t got = 0;
        char *p = lb_heap_alloc(heap, size, &got);
        CHECK(p != NULL);
        if (!p) continue;
        CHECK_EQ_I((uintptr_t)p % 64, 0);
        CHECK(got >= size && got >= 64 && got % 64 == 0);
        if (size > 0) CHECK(got - size < 64 || (got - size) * 8 < size);
        CHECK(got >= last); /* larger requests never get less */
        CHECK_EQ_I(lb_heap_in_use(heap), got);
        memset(p, 1, size);
        lb_heap_free(heap, p, got);
        last = got;
    }
    /* a class's own size is in the class */
    for (size_t size = 64; size < 64 * MIB; size += size / 7) {
        size_t got = 0, again = 0;
        void *p = lb_heap_alloc(heap, size, &got);
        CHECK(p != NULL);
        lb_heap_free(heap, p, got);
        p = lb_heap_alloc(heap, got, &again);
        CHECK_EQ_I(again, got);
        lb_heap_free(heap, p, again);
    }
    lb_heap_close(heap);
}

static void test_huge(void)
{
    lb_heap *heap = lb_heap_open(NULL, 64 * MIB);
    const size_t sizes[] = {4 * MIB, 5 * MIB + 1, 33 * MIB};
    for (int i = 0; i < 3; i++) {
        size_t got = 0;
        char *p = lb_heap_alloc(heap, sizes[i], &got);
        CHECK(p != NULL);
        if (!p) continue;
        CHECK_EQ_I((uintptr_t)p % (2 * MIB), 0);
        p[0] = p[sizes[i] - 1] = 1;
        lb_heap_free(heap, p, got);
    }
    size_t got = 7;
    CHECK(lb_heap_alloc(heap, SIZE_MAX, &got) == NULL);
    CHECK(lb_heap_alloc(heap, (size_t)PTRDIFF_MAX + 1, &got) == NULL);
    CHECK(lb_heap_alloc(heap, (size_t)1 << 62, &got) == NULL);
    CHECK_EQ_I(lb_heap_in_use(heap), 0);
    lb_heap_free(heap, NULL, 64);
    lb_heap_close(heap);
}

static void test_reuse(void)
{
    counter c;
    lb_heap *heap = open_counted(&c, MIB);
    size_t got1, got2, got3;
    void *a = lb_heap_alloc(heap, 1000, &got1);
    void *b = lb_heap_alloc(heap, 1000, &got2);
    CHECK(a && b && a != b);
    lb_heap_free(heap, a, got1);
    lb_heap_free(heap, b, got2);
    const long calls = c.calls;
    /* the last one freed comes first, for any size of its class */
    CHECK(lb_heap_alloc(heap, 1024, &got2) == b);
    CHECK(lb_heap_alloc(heap, 961, &got1) == a);
    CHECK_EQ_I(got1, 1024);
    CHECK_EQ_I(c.calls, calls);
    void *d = lb_heap_alloc(heap, 960, &got3); /* the class below */
    CHECK(d != a && d != b);
    CHECK_EQ_I(c.calls, calls + 1);
    CHECK_EQ_I(lb_heap_in_use(heap), got1 + got2 + got3);
    lb_heap_free(heap, a, got1);
    lb_heap_free(heap, b, got2);
    lb_heap_free(heap, d, got3);

    CHECK_EQ_I(lb_heap_in_use(heap), 0);
    CHECK_EQ_I(lb_heap_trim(heap), 1024 + 1024 + 960);
    CHECK_EQ_I(lb_heap_trim(heap), 0);
    CHECK_EQ_I(c.blocks, 1); /* the heap itself */
    CHECK_EQ_I(lb_heap_peak(heap), got1 + got2 + got3);
    lb_heap_close(heap);
    check_clean(&c);
}

/* Over the limit the oldest are freed, and never more is kept than allowed. */
static void test_limit(void)
{
    counter c;
    lb_heap *heap = open_counted(&c, 4096);
    size_t got[5];
    void *p[5];
    for (int i = 0; i < 5; i++)
        p[i] = lb_heap_alloc(heap, 1024, &got[i]);
    void *small = NULL;
    size_t small_got;
    small = lb_heap_alloc(heap, 64, &small_got);
    for (int i = 0; i < 5; i++)
        lb_heap_free(heap, p[i], got[i]);
    /* p[0] was freed for p[4]; now p[1] is freed for small */
    lb_heap_free(heap, small, small_got);
    CHECK_EQ_I(c.blocks, 1 + 3 + 1);
    CHECK(lb_heap_alloc(heap, 1024, &got[0]) == p[4]);
    CHECK(lb_heap_alloc(heap, 1024, &got[1]) == p[3]);
    CHECK(lb_heap_alloc(heap, 1024, &got[2]) == p[2]);
    CHECK(lb_heap_alloc(heap, 64, &small_got) == small);
    CHECK_EQ_I(lb_heap_trim(heap), 0);
    lb_heap_free(heap, small, small_got);

    /* larger than the limit: freed at once, and nothing is evicted for it */
    void *large = lb_heap_alloc(heap, 4097, &got[3]);
    lb_heap_free(heap, large, got[3]);
    CHECK_EQ_I(lb_heap_trim(heap), 64);
    lb_heap_free(heap, p[4], got[0]);
    lb_heap_free(heap, p[3], got[1]);
    lb_heap_free(heap, p[2], got[2]);

    /* exactly the limit: everything else is freed */
    large = lb_heap_alloc(heap, 4096, &got[3]);
    lb_heap_free(heap, large, got[3]);
    CHECK_EQ_I(lb_heap_trim(heap), 4096);
    CHECK_EQ_I(c.blocks, 1);
    lb_heap_close(heap);
    check_clean(&c);

    heap = open_counted(&c, 0);
    small = lb_heap_alloc(heap, 1, &small_got);
    lb_heap_free(heap, small, small_got);
    CHECK_EQ_I(c.blocks, 1);
    lb_heap_close(heap);
    check_clean(&c);

    heap = open_counted(&c, SIZE_MAX);
    small = lb_heap_alloc(heap, 1, &small_got);
    lb_heap_free(heap, small, small_got);
    CHECK_EQ_I(lb_heap_trim(heap), 64);
    lb_heap_close(heap);
    check_clean(&c);
}

/* What a program needed once is given back after a while; what it uses again
 * and again stays. */
static void test_stale(void)
{
    enum { STALE = 16384 };
    counter c;
    lb_heap *heap = open_counted(&c, 100 * MIB);
    size_t once_got[3], often_got, got;
    void *once[3];
    for (int i = 0; i < 3; i++)
        once[i] = lb_heap_alloc(heap, (size_t)(i + 1) * MIB, &once_got[i]);
    for (int i = 0; i < 3; i++)
        lb_heap_free(heap, once[i], once_got[i]);
    void *often = lb_heap_alloc(heap, 9 * MIB, &often_got);
    lb_heap_free(heap, often, often_got);
    for (int k = 0; k < 2 * STALE; k++) {
        if (k % (STALE / 2) == STALE / 4) {
            const long calls = c.calls;
            CHECK(lb_heap_alloc(heap, 9 * MIB, &often_got) == often);
            CHECK_EQ_I(c.calls, calls);
            lb_heap_free(heap, often, often_got);
        }
        void *few = lb_heap_alloc(heap, 64, &got);
        lb_heap_free(heap, few, got);
        if (k == STALE / 2) CHECK_EQ_I(c.blocks, 1 + 3 + 1 + 1);
    }
    CHECK_EQ_I(c.blocks,
               1 + 1 + 1); /* the heap, the small and the often used */
    CHECK_EQ_I(lb_heap_trim(heap), 64 + often_got);
    lb_heap_close(heap);
    check_clean(&c);
}

static void test_peak(void)
{
    lb_heap *heap = lb_heap_open(NULL, MIB);
    CHECK_EQ_I(lb_heap_peak(heap), 0);
    size_t a_got, b_got;
    void *a = lb_heap_alloc(heap, 2048, &a_got);
    void *b = lb_heap_alloc(heap, 4096, &b_got);
    CHECK_EQ_I(lb_heap_peak(heap), 6144);
    lb_heap_free(heap, a, a_got);
    CHECK_EQ_I(lb_heap_in_use(heap), 4096);
    a = lb_heap_alloc(heap, 1024, &a_got);
    CHECK_EQ_I(lb_heap_peak(heap), 6144);
    lb_heap_free(heap, b, b_got);
    lb_heap_free(heap, a, a_got);
    CHECK_EQ_I(lb_heap_in_use(heap), 0);
    CHECK_EQ_I(lb_heap_peak(heap), 6144);
    lb_heap_close(heap);
}

static void test_close_with_live_blocks(void)
{
    counter c;
    lb_heap *heap = open_counted(&c, MIB);
    size_t got[3];
    char *p[3];
    for (int i = 0; i < 3; i++)
        p[i] = lb_heap_alloc(heap, 5000, &got[i]);
    lb_heap_free(heap, p[2], got[2]);
    lb_heap_close(heap);
    CHECK_EQ_I(c.blocks, 3); /* the heap, two alive; the kept one is gone */
    memset(p[0], 1, 5000);
    lb_heap_free(heap, p[0], got[0]);
    CHECK_EQ_I(c.blocks, 2);
    memset(p[1], 1, 5000);
    lb_heap_free(heap, p[1], got[1]);
    check_clean(&c);
}

static void test_failing_allocator(void)
{
    counter c = {.fail_at = 1};
    const lb_allocator a = {count_alloc, count_free, &c};
    CHECK(lb_heap_open(&a, 0) == NULL);
    check_clean(&c);

    lb_heap *heap = open_counted(&c, MIB);
    size_t got = 12345, other;
    void *q = lb_heap_alloc(heap, 128, &other);
    c.fail_at = c.calls + 1;
    CHECK(lb_heap_alloc(heap, 100000, &got) == NULL);
    CHECK_EQ_I(lb_heap_in_use(heap), 128);
    CHECK_EQ_I(lb_heap_peak(heap), 128);
    void *p = lb_heap_alloc(heap, 100000, &got);
    CHECK(p != NULL);
    lb_heap_free(heap, p, got);

    /* kept blocks are freed before an allocation fails */
    c.fail_at = c.calls + 1;
    p = lb_heap_alloc(heap, 1000, &got);
    CHECK(p != NULL);
    CHECK_EQ_I(lb_heap_trim(heap), 0);
    /* but it does not try a third time */
    lb_heap_free(heap, p, got);
    c.fail_all = c.calls + 1;
    CHECK(lb_heap_alloc(heap, 2000, &got) == NULL);
    CHECK_EQ_I(c.calls, c.fail_all + 1);
    lb_heap_free(heap, q, other);
    /* cached blocks need no allocator */
    CHECK(lb_heap_alloc(heap, 128, &other) == q);
    lb_heap_free(heap, q, other);
    lb_heap_close(heap);
    check_clean(&c);
}

#ifdef HAVE_ASAN
/* Kept blocks and the slack behind a block are out of bounds. */
static void test_poison(void)
{
    lb_heap *heap = lb_heap_open(NULL, MIB);
    size_t got;
    char *p = lb_heap_alloc(heap, 130, &got);
    CHECK(!__asan_address_is_poisoned(p + 129));
    CHECK(__asan_address_is_poisoned(p + 130));
    CHECK(__asan_address_is_poisoned(p + got - 1));
    lb_heap_free(heap, p, got);
    CHECK(__asan_address_is_poisoned(p));
    CHECK(__asan_address_is_poisoned(p + 129));
    CHECK(lb_heap_alloc(heap, 192, &got) == p);
    CHECK(!__asan_region_is_poisoned(p, 192));
    lb_heap_free(heap, p, got);
    lb_heap_close(heap);
}
#endif

/* ---- threads ------------------------------------------------------------ */

typedef struct job {
    lb_heap *heap;
    uint32_t seed;
    long wrong;
} job;

#define SLOTS 16

static bool filled(const unsigned char *p, size_t n, unsigned char with)
{
    return p[0] == with && p[n / 2] == with && p[n - 1] == with;
}

/* Every block is filled with its owner's mark: a block handed out twice, or
 * list nodes written into a used one, would be detected. */
static void *churn(void *arg)
{
    job *j = arg;
    unsigned char *p[SLOTS] = {0};
    size_t size[SLOTS] = {0}, got[SLOTS] = {0};
    uint32_t x = j->seed;
    for (int i = 0; i < 20000; i++) {
        x = x * 1664525u + 1013904223u;
        const int s = (int)(x >> 28);
        const unsigned char mark = (unsigned char)(j->seed * 16 + (uint32_t)s);
        if (p[s]) {
            if (!filled(p[s], size[s], mark)) j->wrong++;
            lb_heap_free(j->heap, p[s], got[s]);
            p[s] = NULL;
        } else {
            size[s] = 1 + (x >> 8) % 3000;
            p[s] = lb_heap_alloc(j->heap, size[s], &got[s]);
            if (p[s])
                memset(p[s], mark, size[s]);
            else
                j->wrong++;
        }
        if (i % 5000 == 4999) lb_heap_trim(j->heap);
    }
    for (int s = 0; s < SLOTS; s++)
        lb_heap_free(j->heap, p[s], got[s]);
    return NULL;
}

static void test_threads(void)
{
    counter c;
    lb_heap *heap = open_counted(&c, 20000); /* small: evicts often */
    pthread_t id[4];
    job jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = (job){.heap = heap, .seed = (uint32_t)i + 1};
        CHECK_EQ_I(pthread_create(&id[i], NULL, churn, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(id[i], NULL);
        CHECK_EQ_I(jobs[i].wrong, 0);
    }
    CHECK_EQ_I(lb_heap_in_use(heap), 0);
    CHECK(lb_heap_peak(heap) > 0);
    CHECK(lb_heap_trim(heap) <= 20000);
    CHECK_EQ_I(c.blocks, 1);
    lb_heap_close(heap);
    check_clean(&c);
}

typedef struct block {
    lb_heap *heap;
    void *ptr;
    size_t got;
} block;

static void *free_one(void *arg)
{
    const block *b = arg;
    lb_heap_free(b->heap, b->ptr, b->got);
    return NULL;
}

/* Closed and emptied from several threads at once: freed exactly once. */
static void test_close_race(void)
{
    for (int round = 0; round < 200; round++) {
        counter c;
        lb_heap *heap = open_counted(&c, MIB);
        block blocks[3];
        pthread_t id[3];
        for (int i = 0; i < 3; i++) {
            blocks[i].heap = heap;
            blocks[i].ptr = lb_heap_alloc(heap, 300, &blocks[i].got);
        }
        for (int i = 0; i < 3; i++)
            CHECK_EQ_I(pthread_create(&id[i], NULL, free_one, &blocks[i]), 0);
        lb_heap_close(heap);
        for (int i = 0; i < 3; i++)
            pthread_join(id[i], NULL);
        check_clean(&c);
    }
}

static void test_checked_arithmetic(void)
{
    size_t z;
    int64_t i;
    CHECK(lb_mul_size(1u << 16, 1u << 15, &z) && z == (size_t)1 << 31);
    CHECK(!lb_mul_size(SIZE_MAX / 2 + 1, 2, &z));
    CHECK(lb_add_size(SIZE_MAX - 1, 1, &z) && z == SIZE_MAX);
    CHECK(!lb_add_size(SIZE_MAX, 1, &z));
    CHECK(lb_mul_i64(INT64_MIN, 1, &i) && i == INT64_MIN);
    CHECK(!lb_mul_i64(INT64_MIN, -1, &i));
    CHECK(lb_add_i64(INT64_MAX, INT64_MIN, &i) && i == -1);
    CHECK(!lb_add_i64(INT64_MIN, -1, &i));
}

int main(void)
{
    test_classes();
    test_huge();
    test_reuse();
    test_limit();
    test_stale();
    test_peak();
    test_close_with_live_blocks();
    test_failing_allocator();
#ifdef HAVE_ASAN
    test_poison();
#endif
    test_threads();
    test_close_race();
    test_checked_arithmetic();
    return check_report("memory");
}
