/* affine_loops.h - affine_decode.h in loops that a compiler turns into vector
 * instructions. Each level includes it with
 *
 *   LOOP_FN     how its functions are declared
 *   LOOP_TABLE  the lb_affine_kernel to define, and LOOP_NAME its name
 *
 * No step depends on the width of vectors, so every level has the same bits.
 */
#include <string.h>

#include "kernels/affine_decode.h"

/* A single code, wherever it is. */
LOOP_FN uint8_t loop_affine_one(int bits, const uint8_t *row, int64_t at)
{
    const int64_t bit = at * bits;
    const int shift = (int)(bit & 7);
    uint32_t v = row[bit >> 3];
    if (shift + bits > 8) v |= (uint32_t)row[(bit >> 3) + 1] << 8;
    return (uint8_t)(v >> shift & ((1u << bits) - 1));
}

/* 8 codes in the low bits of v to 8 bytes: the upper four codes move to the
 * upper half of the word, then two of four, then one of two. */
LOOP_FN uint64_t loop_affine_spread(int bits, uint64_t v)
{
    const uint64_t four = ((uint64_t)1 << 4 * bits) - 1;
    const uint64_t two = (((uint64_t)1 << 2 * bits) - 1) * 0x100000001;
    const uint64_t one = (((uint64_t)1 << bits) - 1) * 0x1000100010001;
    v = (v & four) | (v >> 4 * bits & four) << 32;
    v = (v & two) | (v >> 2 * bits & two) << 16;
    return (v & one) | (v >> bits & one) << 8;
}

/* A function per width: shifts by constants become vectors. The bytes of eight
 * codes are put together one by one, because no more may be read. */
#define LOOP_AFFINE_EIGHTS(BITS)                                               \
    LOOP_FN void loop_affine_eights_##BITS(const uint8_t *restrict from,       \
                                           int64_t n, uint8_t *restrict out)   \
    {                                                                          \
        for (int64_t i = 0; i < n; i++) {                                      \
            uint64_t v = 0;                                                    \
            for (int b = 0; b < (BITS); b++)                                   \
                v |= (uint64_t)from[i * (BITS) + b] << 8 * b;                  \
            v = loop_affine_spread(BITS, v);                                   \
            memcpy(out + 8 * i, &v, sizeof v);                                 \
        }                                                                      \
    }
LOOP_AFFINE_EIGHTS(1)
LOOP_AFFINE_EIGHTS(2)
LOOP_AFFINE_EIGHTS(3)
LOOP_AFFINE_EIGHTS(5)
LOOP_AFFINE_EIGHTS(6)
LOOP_AFFINE_EIGHTS(7)

LOOP_FN void loop_affine_halves(const uint8_t *restrict from, int64_t n,
                                uint8_t *restrict out)
{
    for (int64_t i = 0; i < 4 * n; i++) {
        out[2 * i] = from[i] & 15;
        out[2 * i + 1] = from[i] >> 4;
    }
}

/* n eights of codes. */
LOOP_FN void loop_affine_whole(int bits, const uint8_t *from, int64_t n,
                               uint8_t *out)
{
    switch (bits) {
    case 1:
        loop_affine_eights_1(from, n, out);
        break;
    case 2:
        loop_affine_eights_2(from, n, out);
        break;
    case 3:
        loop_affine_eights_3(from, n, out);
        break;
    case 4:
        loop_affine_halves(from, n, out);
        break;
    case 5:
        loop_affine_eights_5(from, n, out);
        break;
    case 6:
        loop_affine_eights_6(from, n, out);
        break;
    case 7:
        loop_affine_eights_7(from, n, out);
        break;
    default:
        memcpy(out, from, (size_t)(8 * n));
    }
}

LOOP_FN void loop_affine_codes(int bits, const uint8_t *row, int64_t at,
                               int64_t n, uint8_t *out)
{
    int64_t i = 0;
    for (; i < n && (at + i) % 8; i++)
        out[i] = loop_affine_one(bits, row, at + i);
    const int64_t eights = (n - i) / 8;
    loop_affine_whole(bits, row + (at + i) / 8 * bits, eights, out + i);
    for (i += 8 * eights; i < n; i++)
        out[i] = loop_affine_one(bits, row, at + i);
}

LOOP_FN void loop_affine_span(const uint8_t *restrict code, int64_t n, float s,
                              float zero, float *restrict out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = s * ((float)code[i] - zero);
}

LOOP_FN void loop_affine_scale(const uint8_t *code, int64_t n, lb_spans s,
                               const float *each, float zero, float *out)
{
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        loop_affine_span(code + i, end - i, s.value[k], each ? each[k] : zero,
                         out + i);
        i = end;
    }
}

LOOP_FN void loop_affine_add(int64_t n, lb_spans bias, float *out)
{
    int64_t i = 0, end = lb_span_first(bias, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(bias, end, n)) {
        const float b = bias.value[k];
        for (; i < end; i++)
            out[i] += b;
    }
}

const lb_affine_kernel LOOP_TABLE = {
    .name = LOOP_NAME,
    .codes = loop_affine_codes,
    .scale = loop_affine_scale,
    .add = loop_affine_add,
};
