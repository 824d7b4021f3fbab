/* dotpair_avx2.h - parts of dotpair_avx2.c: tables of 16 sums of 16 bits, the
 * lower bytes of all and then the higher ones, and the results of 32 columns.
 */
#ifndef LB_DOTPAIR_AVX2_H
#define LB_DOTPAIR_AVX2_H

#include "kernels/x86/intrin.h"

/* Eight numbers; zeros where there are no more. */
LB_TARGET("avx2")
LB_INLINE __m256 lb_dotpair_load(int64_t n, const float *x)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i some = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
    return n >= 8 ? _mm256_loadu_ps(x) : _mm256_maskload_ps(x, some);
}

/* Sums of two times four numbers of 16 bits, of which the first two and the
 * last two lie in all lanes of a and of b, times their factors, and more:
 * entries 0 to 3 and 8 to 11 by factors [0], 4 to 7 and 12 to 15 by [1]. */
LB_TARGET("avx2")
LB_INLINE void lb_dotpair_put_table(__m256i x, const __m256i *first,
                                    const __m256i *last, __m256i more,
                                    uint8_t *to)
{
    const __m256i a = _mm256_shuffle_epi32(x, 0x00);
    const __m256i b = _mm256_shuffle_epi32(x, 0x55);
    __m256i t[2];
    LB_UNROLL
    for (int h = 0; h < 2; h++)
        t[h] = _mm256_add_epi32(_mm256_add_epi32(_mm256_madd_epi16(a, first[h]),
                                                 _mm256_madd_epi16(b, last[h])),
                                more);
    const __m256i all = _mm256_packus_epi32(t[0], t[1]);
    const __m256i bytes =
        _mm256_packus_epi16(_mm256_and_si256(all, _mm256_set1_epi16(255)),
                            _mm256_srli_epi16(all, 8));
    _mm256_store_si256((__m256i *)(void *)to,
                       _mm256_permute4x64_epi64(bytes, 0xd8));
}

/* One of its halves, twice. */
LB_TARGET("avx2")
LB_INLINE __m256i lb_dotpair_half(const uint8_t *at)
{
    return _mm256_broadcastsi128_si256(
        _mm_load_si128((const __m128i *)(const void *)at));
}

/* c = fma((base + slope * t) * ws, scale, c or, if first, 0), for 32 columns.
 */
LB_TARGET("avx2,fma")
LB_INLINE void lb_dotpair_put_columns(const __m256 *t, float slope, float base,
                                      float scale, const float *ws, bool first,
                                      float *c)
{
    LB_UNROLL
    for (int q = 0; q < 4; q++) {
        const __m256 sum =
            _mm256_fmadd_ps(t[q], _mm256_set1_ps(slope), _mm256_set1_ps(base));
        const __m256 old =
            first ? _mm256_setzero_ps() : _mm256_loadu_ps(c + 8 * q);
        const __m256 w = _mm256_mul_ps(sum, _mm256_loadu_ps(ws + 8 * q));
        _mm256_storeu_ps(c + 8 * q,
                         _mm256_fmadd_ps(w, _mm256_set1_ps(scale), old));
    }
}

#endif
