/* nf4_encode_avx2.c - codes of nf4 with AVX2: a guess, then one compare.
 *
 * The fifteen edges lie like quantiles of a normal distribution, and
 *
 *     u(v) = v (12.9 - 5.5 |v|) + 7.24,    -1 <= v <= 1
 *
 * grows and takes edge k to k + 0.25 .. k + 0.75, for every compat's edges. So
 * with k = u rounded down, v lies between the edges k - 1 and k + 1, and the
 * code is k or, above edge k, k + 1: exact, whatever u was rounded by.
 */
#include "kernels/nf4_ref.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/encode_avx2.h"

typedef struct {
    __m256 below, above; /* edges of v < 0: 0 .. 7; of others: 8 .. 14, 7 */
} edges;

AVX2 LB_INLINE edges edges_of(const float *e)
{
    return (edges){
        _mm256_loadu_ps(e),
        _mm256_setr_ps(e[8], e[9], e[10], e[11], e[12], e[13], e[14], e[7]),
    };
}

/* Products may be infinite, or NaN, which has the code 0 as -1 has. */
AVX2 LB_INLINE __m256 load(lb_quotient how, const float *x, __m256 by)
{
    const __m256 v = lb_quotient8(how, _mm256_loadu_ps(x), by);
    if (how != LB_PRODUCT) return v;
    return _mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(-1)),
                         _mm256_set1_ps(1));
}

AVX2 LB_INLINE __m256i guess(__m256 v)
{
    const __m256 slope = _mm256_fnmadd_ps(lb_abs8(v), _mm256_set1_ps(5.5f),
                                          _mm256_set1_ps(12.9f));
    return _mm256_cvttps_epi32(
        _mm256_fmadd_ps(v, slope, _mm256_set1_ps(7.24f)));
}

/* The place of k is its lower three bits. */
AVX2 LB_INLINE __m256i codes8(const edges *e, __m256 v)
{
    const __m256i k = guess(v);
    const __m256 edge =
        _mm256_blendv_ps(_mm256_permutevar8x32_ps(e->above, k),
                         _mm256_permutevar8x32_ps(e->below, k), v);
    return _mm256_sub_epi32(
        k, _mm256_castps_si256(_mm256_cmp_ps(v, edge, _CMP_GT_OQ)));
}

/* 32 codes as 16 numbers of 16 bits that fit in bytes. */
AVX2 LB_INLINE __m256i pairs(const edges *e, lb_quotient how, const float *x,
                             __m256 by)
{
    const __m256i b = lb_bytes_in_fours(
        codes8(e, load(how, x, by)), codes8(e, load(how, x + 8, by)),
        codes8(e, load(how, x + 16, by)), codes8(e, load(how, x + 24, by)));
    return _mm256_maddubs_epi16(lb_sort_fours(b),
                                _mm256_set1_epi16(1 << 8 | 16));
}

AVX2 LB_INLINE void put64(const edges *e, lb_quotient how, const float *x,
                          __m256 by, uint8_t *byte)
{
    const __m256i a = pairs(e, how, x, by), b = pairs(e, how, x + 32, by);
    const __m256i v = _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8);
    _mm256_storeu_si256((__m256i *)(void *)byte, v);
}

AVX2 LB_INLINE void put32(const edges *e, lb_quotient how, const float *x,
                          __m256 by, uint8_t *byte)
{
    const __m256i a = pairs(e, how, x, by);
    const __m256i v = _mm256_permute4x64_epi64(_mm256_packus_epi16(a, a), 0xd8);
    _mm_storeu_si128((__m128i *)(void *)byte, _mm256_castsi256_si128(v));
}

/* next: how far the next run is. */
AVX2 LB_INLINE void encode_block(const edges *e, lb_quotient how,
                                 const float *x, int64_t n, int64_t next,
                                 float by, uint8_t *byte)
{
    const __m256 all = _mm256_set1_ps(by);
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) {
        lb_fetch_next(x + i, next, 64);
        put64(e, how, x + i, all, byte + i / 2);
    }
    for (; i + 32 <= n; i += 32)
        put32(e, how, x + i, all, byte + i / 2);
    if (i < n) { /* zeros follow, and the odd place gets their code */
        float rest[32] = {0};
        uint8_t bytes[16];
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *x);
        put32(e, how, rest, all, bytes);
        memcpy(byte + i / 2, bytes, (size_t)(n - i + 1) / 2);
    }
}

AVX2 LB_INLINE void encode_blocks(const float *edge, lb_quotient how,
                                  const float *x, int64_t n, int64_t block,
                                  const float *by, uint8_t *byte)
{
    const edges e = edges_of(edge);
    for (int64_t i = 0; i < n; i += block)
        encode_block(&e, how, x + i, n - i < block ? n - i : block, n, *by++,
                     byte + i / 2);
}

AVX2 void lb_nf4_encode_avx2(const float *edge, lb_quotient how, const float *x,
                             int64_t n, int64_t block, const float *by,
                             uint8_t *byte)
{
    switch (how) {
    case LB_QUOTIENT:
        encode_blocks(edge, LB_QUOTIENT, x, n, block, by, byte);
        return;
    case LB_PRODUCT:
        encode_blocks(edge, LB_PRODUCT, x, n, block, by, byte);
        return;
    case LB_QUOTIENT_F16:
        encode_blocks(edge, LB_QUOTIENT_F16, x, n, block, by, byte);
        return;
    case LB_QUOTIENT_BF16:
        encode_blocks(edge, LB_QUOTIENT_BF16, x, n, block, by, byte);
        return;
    }
}
#endif
