/* unpack_avx2.h - what unpacking with AVX2 has in common, and its functions for
 * dtypes of 16 bits. */
#ifndef LB_UNPACK_AVX2_H
#define LB_UNPACK_AVX2_H

#include "kernels/convert.h"
#include "kernels/unpack.h"
#include "kernels/x86/decode_avx2.h"

/* Codes that are few: their numbers are rounded to 16 bits once for a scale,
 * and looked up. As in unpack.h, of runs that unpack_avx2.c takes. */
void lb_unpack_halves_16(const float *level, const uint8_t *byte, int64_t n,
                         lb_spans s, lb_sink to);
void lb_unpack_fields_16(lb_fields f, const uint8_t *byte, int64_t n,
                         lb_spans s, lb_sink to);
void lb_unpack_halves32_16(const int8_t *level, const uint8_t *from, int64_t n,
                           lb_sink to);
void lb_unpack_pairs256_16(const uint8_t *from, int64_t n, lb_sink to);
void lb_unpack_trits256_16(const uint8_t *from, int64_t n, lb_sink to);

enum { LB_UNPACK_SOME = 16 }; /* elements to a step */

AVX2 __attribute__((noinline, unused)) static __m256i
lb_bf16_with_nans(__m256 a, __m256 b)
{
    float x[LB_UNPACK_SOME];
    uint16_t y[LB_UNPACK_SOME];
    _mm256_storeu_ps(x, a);
    _mm256_storeu_ps(x + 8, b);
    lb_store_run(LB_C_F32, x, LB_BF16, LB_UNPACK_SOME, y);
    return _mm256_loadu_si256((const __m256i *)(const void *)y);
}

/* Rounded to nearest even, in the high halves of dwords; no NaNs. */
AVX2 LB_INLINE __m256i lb_bf16_of(__m256 x)
{
    const __m256i u = _mm256_castps_si256(x), one = _mm256_set1_epi32(1);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), one);
    return _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)),
                            odd);
}

AVX2 LB_INLINE __m256i lb_high_halves(__m256i x)
{
    return _mm256_srli_epi32(x, 16);
}

/* Sixteen numbers rounded to 16 bits. */
AVX2 LB_INLINE __m256i lb_halved(const lb_dtype d, __m256 a, __m256 b)
{
    if (d == LB_F16)
        return _mm256_set_m128i(_mm256_cvtps_ph(b, 0), _mm256_cvtps_ph(a, 0));
    if (_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)))
        return lb_bf16_with_nans(a, b);
    return _mm256_permute4x64_epi64(
        _mm256_packus_epi32(lb_high_halves(lb_bf16_of(a)),
                            lb_high_halves(lb_bf16_of(b))),
        0xd8);
}

/* Past the caches, to memory that is aligned to 16: large blocks of malloc are
 * not to more. */
AVX2 LB_INLINE void lb_stream_32(void *out, __m256i v)
{
    if ((uintptr_t)out % 32 == 0) {
        _mm256_stream_si256(out, v);
        return;
    }
    __m128i *half = out;
    _mm_stream_si128(half, _mm256_castsi256_si128(v));
    _mm_stream_si128(half + 1, _mm256_extracti128_si256(v, 1));
}

/* Sixteen elements of 16 bits from i on. */
AVX2 LB_INLINE void lb_put_16(lb_sink to, int64_t i, __m256i v)
{
    void *out = (uint16_t *)to.out + i;
    if (to.past)
        lb_stream_32(out, v);
    else
        _mm256_storeu_si256(out, v);
}

#endif
