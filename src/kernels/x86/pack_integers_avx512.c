/* pack_integers_avx512.c - pack_integers.h with AVX-512. A block is four
 * registers of numbers; magnitudes are compared as their bits are. */
#include "kernels/pack_integers.h"

#if defined(__x86_64__)
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/pack_f32.h"
#include "kernels/x86/intrin.h"

#define AVX512 LB_TARGET("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq")

enum { PARTS = 4, LANES = 16, BITS_INFINITE = 0x7f800000 };

AVX512
LB_INLINE float largest_of(__m512i bits)
{
    const __m256i a = _mm256_max_epi32(_mm512_castsi512_si256(bits),
                                       _mm512_extracti64x4_epi64(bits, 1));
    __m128i b = _mm_max_epi32(_mm256_castsi256_si128(a),
                              _mm256_extracti128_si256(a, 1));
    b = _mm_max_epi32(b, _mm_shuffle_epi32(b, 0x4e));
    b = _mm_max_epi32(b, _mm_shuffle_epi32(b, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(b));
}

/* Of n numbers, at most a block. */
AVX512
LB_INLINE void pack_block(const int8_t *code, const float *scale,
                          const float *bias, int shift, int64_t n, int8_t *to,
                          float *block_scale)
{
    const __m512i sign = _mm512_set1_epi32(0x7fffffff);
    __m512 v[PARTS];
    __m512i bits = _mm512_setzero_si512();
    LB_UNROLL
    for (int i = 0; i < PARTS; i++) {
        const int64_t left = n - (int64_t)i * LANES;
        const __mmask16 mask = (__mmask16)(left >= LANES ? 0xffff
                                           : left <= 0   ? 0
                                                         : (1u << left) - 1);
        const ptrdiff_t run = (ptrdiff_t)i * LANES >> shift;
        v[i] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(
            (const __m128i *)(const void *)(code + (ptrdiff_t)i * LANES))));
        if (left <= 0) continue;
        v[i] = _mm512_mul_ps(_mm512_set1_ps(scale[run]), v[i]);
        if (bias) v[i] = _mm512_add_ps(v[i], _mm512_set1_ps(bias[run]));
        v[i] = _mm512_maskz_mov_ps(mask, v[i]);
        bits = _mm512_max_epi32(
            bits, _mm512_and_si512(_mm512_castps_si512(v[i]), sign));
    }
    const float most = largest_of(bits);
    int32_t order;
    memcpy(&order, &most, sizeof order);
    const bool finite = order < BITS_INFINITE;
    const float top = LB_PACK_MOST_BYTE;
    const float lift = most < 0x1p-100f ? 0x1p100f : 1;
    const float factor = most > 0 && finite ? top / (most * lift) : 0;
    *block_scale = finite ? most / top : (float)NAN;
    LB_UNROLL
    for (int i = 0; i < PARTS; i++) {
        const __m512 by = _mm512_set1_ps(factor);
        const __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(
            lift > 1 ? _mm512_mul_ps(v[i], _mm512_set1_ps(lift)) : v[i], by));
        const __m128i bytes =
            factor > 0 ? _mm512_cvtepi32_epi8(whole) : _mm_setzero_si128();
        _mm_storeu_si128((__m128i *)(void *)(to + (ptrdiff_t)i * LANES), bytes);
    }
}

AVX512
void lb_pack_integers_avx512(const int8_t *code, const float *scale,
                             const float *bias, int run, int64_t n, int8_t *to,
                             float *block_scale)
{
    const int shift = __builtin_ctz((unsigned)run);
    int64_t k = 0;
    for (; k + LB_PACK_BLOCK <= n; k += LB_PACK_BLOCK)
        pack_block(code + k, scale + (k >> shift),
                   bias ? bias + (k >> shift) : NULL, shift, LB_PACK_BLOCK,
                   to + k, block_scale++);
    if (k < n)
        pack_block(code + k, scale + (k >> shift),
                   bias ? bias + (k >> shift) : NULL, shift, n - k, to + k,
                   block_scale);
}
#endif
