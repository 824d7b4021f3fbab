/* draws.h - reproducible random values for tests of kernels. */
#ifndef LB_DRAWS_H
#define LB_DRAWS_H

#include <stdint.h>

static inline uint32_t random_bits(void)
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (uint32_t)(x >> 32);
}

static inline float random_float(void) /* in [-1, 1) */
{
    return (float)((int32_t)random_bits() >> 8) / 8388608.0f;
}

static inline int random_within(int most)
{
    return (int)(random_bits() % (uint32_t)(2 * most + 1)) - most;
}

static inline int64_t up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

#endif
