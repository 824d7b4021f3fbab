/* philox.h - Philox 4x32-10 (Salmon et al., SC'11): 128 random bits from a
 * counter and a key, the same everywhere. */
#ifndef LB_PHILOX_H
#define LB_PHILOX_H

#include <stdint.h>

void lb_philox(const uint32_t counter[4], const uint32_t key[2],
               uint32_t out[4]);

#endif
