/* turn_avx512.h - sixteen by sixteen dwords, turned. */
#ifndef LB_TURN_AVX512_H
#define LB_TURN_AVX512_H

#include "kernels/x86/intrin.h"

/* Four by four in each quarter: to[d] has dword d of the rows' quarters. */
LB_TARGET("avx512f")
LB_INLINE void lb_turn_quarters(const __m512i *r, __m512i *to)
{
    const __m512i ab = _mm512_unpacklo_epi32(r[0], r[1]);
    const __m512i AB = _mm512_unpackhi_epi32(r[0], r[1]);
    const __m512i cd = _mm512_unpacklo_epi32(r[2], r[3]);
    const __m512i CD = _mm512_unpackhi_epi32(r[2], r[3]);
    to[0] = _mm512_unpacklo_epi64(ab, cd);
    to[1] = _mm512_unpackhi_epi64(ab, cd);
    to[2] = _mm512_unpacklo_epi64(AB, CD);
    to[3] = _mm512_unpackhi_epi64(AB, CD);
}

/* r[d]: dword d of each of 16 rows. */
LB_TARGET("avx512f")
LB_INLINE void lb_turn_16(__m512i *r)
{
    __m512i t[16];
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        lb_turn_quarters(r + 4 * q, t + 4 * q);
    LB_UNROLL
    for (int d = 0; d < 4; d++) { /* quarters 0 and 2, 1 and 3 */
        const __m512i even = _mm512_shuffle_i32x4(t[d], t[4 + d], 0x88);
        const __m512i odd = _mm512_shuffle_i32x4(t[d], t[4 + d], 0xdd);
        const __m512i even2 = _mm512_shuffle_i32x4(t[8 + d], t[12 + d], 0x88);
        const __m512i odd2 = _mm512_shuffle_i32x4(t[8 + d], t[12 + d], 0xdd);
        r[d] = _mm512_shuffle_i32x4(even, even2, 0x88);
        r[4 + d] = _mm512_shuffle_i32x4(odd, odd2, 0x88);
        r[8 + d] = _mm512_shuffle_i32x4(even, even2, 0xdd);
        r[12 + d] = _mm512_shuffle_i32x4(odd, odd2, 0xdd);
    }
}

#endif
