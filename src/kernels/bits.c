/* bits.c - see bits.h. Everything is written once, with the width a constant
 * where it is inlined, so that the loops over a byte unroll. */
#include "kernels/bits.h"

static inline void get(const int bits, const uint8_t *row, int64_t at,
                       int64_t n, uint8_t *out)
{
    const int per = 8 / bits, mask = (1 << bits) - 1;
    int64_t i = 0;
    for (; i < n && (at + i) % per; i++)
        out[i] = (uint8_t)(row[(at + i) / per] >> (at + i) % per * bits & mask);
    for (; i + per <= n; i += per) {
        const int byte = row[(at + i) / per];
        for (int j = 0; j < per; j++)
            out[i + j] = (uint8_t)(byte >> j * bits & mask);
    }
    for (; i < n; i++)
        out[i] = (uint8_t)(row[(at + i) / per] >> (at + i) % per * bits & mask);
}

/* The rest of a byte from its place j on. */
static inline int64_t put_some(const int bits, int fill, const uint8_t *in,
                               int64_t n, uint8_t *byte, int j)
{
    const int per = 8 / bits, mask = (1 << bits) - 1;
    int b = j ? *byte : fill;
    int64_t i = 0;
    for (; j < per && i < n; j++, i++)
        b = (b & ~(mask << j * bits)) | in[i] << j * bits;
    *byte = (uint8_t)b;
    return i;
}

static inline void put(const int bits, int fill, const uint8_t *in, int64_t n,
                       uint8_t *row, int64_t at)
{
    const int per = 8 / bits;
    int64_t i = 0;
    if (at % per && n)
        i = put_some(bits, fill, in, n, row + at / per, (int)(at % per));
    for (; i + per <= n; i += per) {
        int b = 0;
        for (int j = 0; j < per; j++)
            b |= in[i + j] << j * bits;
        row[(at + i) / per] = (uint8_t)b;
    }
    if (i < n) put_some(bits, fill, in + i, n - i, row + (at + i) / per, 0);
}

void lb_bits_get(int bits, const uint8_t *row, int64_t at, int64_t n,
                 uint8_t *out)
{
    if (bits == 1)
        get(1, row, at, n, out);
    else
        get(2, row, at, n, out);
}

void lb_bits_put(int bits, uint8_t filler, const uint8_t *in, int64_t n,
                 uint8_t *row, int64_t at)
{
    if (bits == 1)
        put(1, filler * 0xff, in, n, row, at);
    else
        put(2, filler * 0x55, in, n, row, at);
}
