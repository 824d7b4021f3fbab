/* nf4_encode_avx512.c - codes of nf4 with AVX-512: a guess, then one compare;
 * see nf4_encode_avx2.c. All edges are one register. */
#include "kernels/nf4_ref.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/encode_avx2.h"
#include "kernels/x86/encode_avx512.h"

/* Products may be infinite, or NaN, which has the code 0 as -1 has. */
AVX512 LB_INLINE __m512 within(lb_quotient how, __m512 v)
{
    if (how != LB_PRODUCT) return v;
    return _mm512_min_ps(_mm512_max_ps(v, _mm512_set1_ps(-1)),
                         _mm512_set1_ps(1));
}

AVX512 LB_INLINE __m512i codes_16(__m512 edges, __m512 v)
{
    const __m512 slope = _mm512_fnmadd_ps(
        _mm512_abs_ps(v), _mm512_set1_ps(5.5f), _mm512_set1_ps(12.9f));
    const __m512i k =
        _mm512_cvttps_epi32(_mm512_fmadd_ps(v, slope, _mm512_set1_ps(7.24f)));
    const __mmask16 above =
        _mm512_cmp_ps_mask(v, _mm512_permutexvar_ps(k, edges), _CMP_GT_OQ);
    return _mm512_mask_add_epi32(k, above, k, _mm512_set1_epi32(1));
}

/* The codes of 64 numbers, two to a byte. */
AVX512 LB_INLINE __m256i pairs_64(const __m512i *code)
{
    const __m512i b = _mm512_permutexvar_epi32(lb_fours(), lb_bytes(code));
    return _mm512_cvtepi16_epi8(
        _mm512_maddubs_epi16(b, _mm512_set1_epi16(1 << 8 | 16)));
}

/* next: how far the next run is. How and inverts are constants. */
AVX512 LB_INLINE void encode_block(__m512 edges, lb_quotient how, bool inverts,
                                   const float *x, int64_t n, int64_t next,
                                   float by, uint8_t *byte)
{
    const lb_divisor all = lb_divisor_of(by);
    __m512i v[4];
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) {
        lb_fetch_next(x + i, next, 64);
        LB_UNROLL
        for (int j = 0; j < 4; j++) {
            const __m512 some = _mm512_loadu_ps(x + i + (ptrdiff_t)16 * j);
            v[j] = codes_16(
                edges, within(how, lb_quotient16(how, inverts, some, all)));
        }
        _mm256_storeu_si256((__m256i *)(void *)(byte + i / 2), pairs_64(v));
    }
    if (i == n) return;
    for (int j = 0; j < 4; j++) { /* zeros follow, the odd place gets theirs */
        const int64_t at = i + (int64_t)16 * j;
        const __m512 some = lb_load_some(x + at, n - at);
        v[j] = codes_16(edges,
                        within(how, lb_quotient16(how, inverts, some, all)));
    }
    const int64_t bytes = (n - i + 1) / 2;
    _mm256_mask_storeu_epi8((void *)(byte + i / 2),
                            ~(__mmask32)0 >> (32 - bytes), pairs_64(v));
}

AVX512 LB_INLINE void encode_blocks(const float *edge, lb_quotient how,
                                    const float *x, int64_t n, int64_t block,
                                    const float *by, uint8_t *byte)
{
    const __m512 edges = lb_load_some(edge, 15);
    for (int64_t i = 0; i < n; i += block, by++) {
        const int64_t m = n - i < block ? n - i : block;
        if (lb_has_inverse(how, *by))
            encode_block(edges, how, true, x + i, m, n, *by, byte + i / 2);
        else
            encode_block(edges, how, false, x + i, m, n, *by, byte + i / 2);
    }
}

AVX512 void lb_nf4_encode_avx512(const float *edge, lb_quotient how,
                                 const float *x, int64_t n, int64_t block,
                                 const float *by, uint8_t *byte)
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
