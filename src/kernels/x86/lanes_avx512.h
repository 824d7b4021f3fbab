/* lanes_avx512.h - sixteen lanes of f32: some of them, and levels in them. */
#ifndef LB_LANES_AVX512_H
#define LB_LANES_AVX512_H

#include "kernels/x86/intrin.h"

/* The first n of 16 lanes; none, or all, past either end. */
LB_INLINE __mmask16 lb_first_lanes(int n)
{
    return (__mmask16)(n <= 0 ? 0 : n >= 16 ? 0xffff : (1 << n) - 1);
}

/* Sixteen levels, the few there are again and again; of 8 bits none. */
LB_TARGET("avx512f")
LB_INLINE __m512 lb_level_lanes(const int bits, const float *level)
{
    float all[16] = {0};
    for (int i = 0; i < 16 && bits < 8; i++)
        all[i] = level[i & ((1 << bits) - 1)];
    return _mm512_loadu_ps(all);
}

#endif
