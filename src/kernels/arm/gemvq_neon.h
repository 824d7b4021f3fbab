/* gemvq_neon.h - what the NEON kernels of gemvq.h share: the order in which
 * codes come out of registers, and levels of whole numbers. */
#ifndef LB_GEMVQ_NEON_H
#define LB_GEMVQ_NEON_H

#include "kernels/arm/neon.h"
#include "kernels/gemvq.h"
#include "kernels/gemvq_sets.h"

/* Of 16 bytes all first fields, of `n` to a byte, then all second ones; then of
 * the next 16. */
#define LB_FIELDS_NEON(n)                                                      \
    {                                                                          \
        {16, n, 2},                                                            \
        {                                                                      \
            n, 1, 16 * (n)                                                     \
        }                                                                      \
    }

/* Levels of 14 bits, their bytes apart. */
typedef struct lb_half_levels {
    uint8x16_t low, high;
} lb_half_levels;

LB_INLINE lb_half_levels lb_half_levels_of(const lb_gemvq_table *t)
{
    return (lb_half_levels){vld1q_u8(t->half[0]), vld1q_u8(t->half[1])};
}

/* Sixteen indices to two vectors, in order. */
LB_INLINE void lb_look_up_halves(const lb_half_levels *l, uint8x16_t index,
                                 int16x8_t *to)
{
    const uint8x16_t low = vqtbl1q_u8(l->low, index);
    const uint8x16_t high = vqtbl1q_u8(l->high, index);
    to[0] = vreinterpretq_s16_u8(vzip1q_u8(low, high));
    to[1] = vreinterpretq_s16_u8(vzip2q_u8(low, high));
}

#endif
