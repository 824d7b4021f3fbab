/* philox.c - Philox 4x32-10.
 *
 * Ten rounds on the counter (c0, c1, c2, c3); a round multiplies two words to
 * 64 bits and mixes the halves with the others and with the key:
 *
 *     (hi0, lo0) = 0xd2511f53 * c0        (hi1, lo1) = 0xcd9e8d57 * c2
 *     c' = (hi1 ^ c1 ^ k0, lo1, hi0 ^ c3 ^ k1, lo0)
 *
 * and the key moves on by two Weyl constants. For one key this is a bijection
 * of counters: different counters never give the same 128 bits.
 */
#include "kernels/philox.h"

void lb_philox(const uint32_t counter[4], const uint32_t key[2],
               uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1];
    uint32_t c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = UINT64_C(0xd2511f53) * c0;
        const uint64_t p1 = UINT64_C(0xcd9e8d57) * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9u; /* the golden ratio's fraction */
        k1 += 0xbb67ae85u; /* sqrt(3)'s */
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}
