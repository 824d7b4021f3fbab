/* dotf32.c - the order of dotf32.h, and which level has a kernel.
 *
 * A group is 32 bytes, whose codes are taken apart like this by 8 lanes:
 *
 *   8 bits   every fourth byte, from the first one on, then from the next one
 *   4 bits   all low nibbles, then all high ones; of each the bytes 0..3 and
 *            16..19, then 4..7 and 20..23, and so on: as bytes unpack
 *   2, 1     a lane has four bytes, and each vector the next field of them
 *
 * and by 16: bytes in order; else a lane has two bytes, as above.
 */
#include "kernels/dotf32.h"

enum { BYTES = 32 };

int64_t lb_dotf32_group(int bits)
{
    return bits == 8 ? BYTES : BYTES * 8 / bits;
}

int64_t lb_dotf32_unit(int bits)
{
    return bits == 8 ? BYTES : lb_dotf32_group(bits) / 2;
}

/* Which byte, and which of its fields counted from the lowest. */
static void locate(int lanes, int bits, int i, int *byte, int *field)
{
    const int lane = i % lanes, v = i / lanes, each = BYTES / lanes;
    if (lanes == 16 && bits == 8) {
        *byte = i;
    } else if (lanes == 8 && bits == 4) {
        *byte = v % 4 * 4 + lane % 4 + lane / 4 * 16;
        *field = v / 4;
    } else {
        *byte = lane * each + v * bits / 8;
        *field = v % (8 / bits);
    }
}

void lb_dotf32_order(int lanes, int bits, bool high_first, uint8_t *place)
{
    const int n = (int)lb_dotf32_group(bits), fields = 8 / bits;
    for (int i = 0; i < n; i++) {
        int byte = i, field = 0;
        locate(lanes, bits, i, &byte, &field);
        if (high_first) field = fields - 1 - field;
        place[i] = (uint8_t)(byte * fields + field);
    }
}

const lb_dotf32 *lb_dotf32_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_dotf32_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_dotf32_avx2;
#endif
    (void)cpu;
    return NULL;
}
