/* dotbyte_turn.h - codes from lines to quads, with AVX-512. */
#ifndef LB_DOTBYTE_TURN_H
#define LB_DOTBYTE_TURN_H

#include <stddef.h>

#include "kernels/x86/turn_avx512.h"

#define LB_AVX512_PACK LB_TARGET("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq")

LB_AVX512_PACK
LB_INLINE __m512i lb_load_4x16(const uint8_t *p, int64_t step)
{
    const int64_t four = 4 * step;
    __m512i v = _mm512_castsi128_si512(
        _mm_loadu_si128((const __m128i *)(const void *)p));
    v = _mm512_inserti32x4(
        v, _mm_loadu_si128((const __m128i *)(const void *)(p + four)), 1);
    v = _mm512_inserti32x4(
        v, _mm_loadu_si128((const __m128i *)(const void *)(p + 2 * four)), 2);
    return _mm512_inserti32x4(
        v, _mm_loadu_si128((const __m128i *)(const void *)(p + 3 * four)), 3);
}

/* Pieces of 16 bytes of each of 16 lines, as lb_turn_quarters takes them: lane
 * l of r[p][a] is piece p of line 4l + a, and what comes of r[p] are its quads,
 * each of all lines in order. All that are wanted of a line are loaded
 * together: where lines are a power of 2 apart, a cache has no room for all
 * sixteen, and those that come again would have left it. pieces is a constant
 * where this is inlined. */
LB_AVX512_PACK
LB_INLINE void lb_load_pieces(const int pieces, const uint8_t *from,
                              int64_t step, __m512i (*r)[4])
{
    LB_UNROLL
    for (int a = 0; a < 4; a++) {
        LB_UNROLL
        for (int p = 0; p < pieces; p++)
            r[p][a] = lb_load_4x16(from + a * step + (ptrdiff_t)16 * p, step);
    }
}

/* What packing asks for while it does the 64 bytes from b on of n: eight lines
 * of the second half. */
LB_INLINE void lb_ask_half(const uint8_t *from, int64_t step, int64_t n,
                           int64_t ahead, int64_t b)
{
    const int64_t half = (n / 64 + 1) / 2 * 64;
    const int64_t at = ahead + half + b / 128 * 64 + b / 64 % 2 * 8 * step;
    for (int l = 0; l < 8 && ahead; l++)
        __builtin_prefetch(
            (const void *)((uintptr_t)from + (uintptr_t)(at + l * step)), 0, 2);
}

/* Dwords of a line in such an order that what unpacks of them is in order. */
LB_AVX512_PACK
LB_INLINE __m512i lb_line_of(const uint8_t *p, __mmask64 mask)
{
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(
        order, _mm512_maskz_loadu_epi8(mask, (const void *)p));
}

#endif
