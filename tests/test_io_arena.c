/* test_io_arena.c - the arena: allocations do not overlap, stay inside the
 * blocks from the allocator, and are zero at first.
 */
#include <stdlib.h>

#include "check.h"
#include "core/core.h"
#include "io/util/arena.h"

/* ---- an allocator that checks for overruns ------------------------------- */

enum { FENCE = 64 };
static long blocks, trampled;

static void *fenced_alloc(void *user, size_t size, size_t align)
{
    void *p = NULL;
    (void)user;
    if (posix_memalign(&p, align, size + FENCE)) return NULL;
    memset(p, 0xaa, size + FENCE);
    blocks++;
    return p;
}

static void fenced_free(void *user, void *p, size_t size)
{
    (void)user;
    for (size_t i = 0; i < FENCE; i++)
        trampled += ((uint8_t *)p)[size + i] != 0xaa;
    blocks--;
    free(p);
}

/* ---- arenas -------------------------------------------------------------- */

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static bool all(const uint8_t *p, size_t n, uint8_t byte)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != byte) return false;
    return true;
}

static void test_arena(lb_ctx *cx, uint32_t seed, uint32_t most)
{
    enum { N = 3000 };
    lb_arena arena = {.heap = cx->heap};
    static uint8_t *p[N];
    static size_t size[N];
    uint32_t state = seed;
    for (int i = 0; i < N; i++) {
        size[i] = draw(&state) % most;
        if (i % 500 == 499) size[i] = (size_t)3 << 20; /* beyond a block */
        p[i] = lb_arena_alloc(cx, &arena, size[i], 1);
        CHECK(p[i] && (uintptr_t)p[i] % 16 == 0);
        CHECK(all(p[i], size[i], 0));
        memset(p[i], i & 0xff, size[i]);
    }
    for (int i = 0; i < N; i++)
        CHECK(all(p[i], size[i], (uint8_t)i));
    CHECK_EQ_S(lb_arena_text(cx, &arena, "text!", 4), "text");
    lb_arena_free(&arena);
    CHECK(!arena.last);
    CHECK(!lb_arena_alloc(cx, &arena, UINT64_MAX / 2, 4));
    CHECK_EQ_I(lb_error_status(cx), LB_E_NOMEM);
    lb_clear(cx);
    CHECK(!lb_arena_alloc(cx, &arena, PTRDIFF_MAX, 1));
    CHECK_EQ_I(lb_error_status(cx), LB_E_NOMEM);
    lb_clear(cx);
    lb_arena_free(&arena);
}

/* ---- growing bytes ------------------------------------------------------- */

static void test_bytes(lb_ctx *cx)
{
    lb_bytes b = {.heap = cx->heap};
    static uint8_t want[100000];
    size_t n = 0;
    uint32_t state = 5;
    while (n < sizeof want - 1000) {
        uint8_t some[1000];
        const size_t len = draw(&state) % sizeof some;
        memset(some, (int)(len & 0xff), len);
        memcpy(want + n, some, len);
        n += len;
        lb_bytes_put(&b, some, len);
    }
    CHECK(!b.failed && b.n == n && memcmp(b.at, want, n) == 0);
    b.n = 0;
    lb_bytes_u16(&b, 0x0201);
    lb_bytes_u32(&b, 0x06050403);
    lb_bytes_u64(&b, 0x0e0d0c0b0a090807);
    lb_bytes_text(&b, "%d-%s", 15, "x");
    lb_bytes_fill(&b, 9, 3);
    CHECK(b.n == 14 + 4 + 3 && all(b.at + 18, 3, 9));
    for (size_t i = 0; i < 14; i++)
        CHECK_EQ_I(b.at[i], i + 1);
    CHECK(memcmp(b.at + 14, "15-x", 4) == 0);
    CHECK_EQ_I(lb_get_u16(b.at), 0x0201);
    CHECK_EQ_I(lb_get_u32(b.at + 2), 0x06050403);
    CHECK(lb_get_u64(b.at + 6) == 0x0e0d0c0b0a090807);
    lb_bytes text = {.heap = b.heap};
    lb_bytes_text(&text, "%255s", "x");
    CHECK(!text.failed && text.n == 255);
    lb_bytes_text(&text, "%256s", "x"); /* too long, and no half of it */
    CHECK(text.failed && text.n == 255);
    lb_bytes_free(&text);
    lb_bytes_fill(&b, 0, SIZE_MAX - 5);
    CHECK(b.failed);
    lb_bytes_put(&b, "x", 1); /* stays so */
    CHECK(b.failed);
    lb_bytes_free(&b);
}

int main(void)
{
    const lb_allocator a = {fenced_alloc, fenced_free, NULL};
    lb_ctx *cx =
        lb_open(&(lb_options){.threads = 1, .allocator = &a, .keep_bytes = -1});
    const long before = blocks;
    for (uint32_t seed = 1; seed < 6; seed++)
        test_arena(cx, seed, 20u << 2 * seed);
    test_bytes(cx);
    CHECK_EQ_I(blocks, before);
    lb_close(cx);
    CHECK_EQ_I(blocks, 0);
    CHECK_EQ_I(trampled, 0);
    return check_report("arenas");
}
