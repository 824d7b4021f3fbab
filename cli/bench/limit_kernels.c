/* limit_kernels.c - portable kernels, and the selection by level. */
#include "limit_kernels.h"

#include <string.h>

/* The compiler must neither assume what is in memory nor remove work. */
#define OPAQUE(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")

enum { CHAINS = 32, LENGTH = 2048 };

static void fma_plain(int64_t rounds)
{
    float c[CHAINS] = {0}, *const keep = c;
    const float x = 0.999F, y = 1e-4F;
    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < CHAINS; i++)
            c[i] = c[i] * x + y;
    __asm__ volatile("" : : "r"(keep) : "memory");
}

static void dot16_plain(int64_t rounds)
{
    static const int16_t x[LENGTH], y[LENGTH];
    const int16_t *p = x, *q = y;
    int32_t sum = 0;
    for (int64_t r = 0; r < rounds; r++) {
        OPAQUE(p);
        OPAQUE(q);
        for (int i = 0; i < LENGTH; i++)
            sum += (int32_t)p[i] * q[i];
    }
    __asm__ volatile("" : : "r"(sum));
}

static void dot8_plain(int64_t rounds)
{
    static const int8_t x[LENGTH], y[LENGTH];
    const int8_t *p = x, *q = y;
    int32_t sum = 0;
    for (int64_t r = 0; r < rounds; r++) {
        OPAQUE(p);
        OPAQUE(q);
        for (int i = 0; i < LENGTH; i++)
            sum += (int32_t)p[i] * q[i];
    }
    __asm__ volatile("" : : "r"(sum));
}

static void lookup_plain(int64_t rounds)
{
    static const uint8_t table[16], index[LENGTH];
    const uint8_t *p = table, *q = index;
    uint32_t sum = 0;
    for (int64_t r = 0; r < rounds; r++) {
        OPAQUE(p);
        OPAQUE(q);
        for (int i = 0; i < LENGTH; i++)
            sum += p[q[i]];
    }
    __asm__ volatile("" : : "r"(sum));
}

static void read_plain(const void *from, size_t bytes, limit_walk walk)
{
    const uint64_t *p = from;
    uint64_t seen = 0;
    (void)walk;
    for (size_t i = 0; i < bytes / 8; i++)
        seen |= p[i];
    __asm__ volatile("" : : "r"(seen));
}

static void fill_plain(void *to, size_t bytes)
{
    memset(to, 0x5a, bytes); /* zeros may be faster than other values */
    __asm__ volatile("" : : "r"(to) : "memory");
}

limit_kernels limit_kernels_for(const char *isa)
{
    limit_kernels k = {
        .fma = {fma_plain, 2.0 * CHAINS},
        .dot16 = {dot16_plain, 2.0 * LENGTH},
        .dot8 = {dot8_plain, 2.0 * LENGTH},
        .lookup = {lookup_plain, LENGTH},
        .read = read_plain,
        .fill = fill_plain,
    };
#if defined(__x86_64__)
    limit_kernels_x86(isa, &k);
#else
    (void)isa;
#endif
    return k;
}
