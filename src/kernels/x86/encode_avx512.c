/* encode_avx512.c - the encoders with AVX-512: 64 numbers at a time, and what
 * is left with masks. Compares give masks, which single bits are; statistics
 * have eight lanes by definition and stay those of AVX2. */
#include "kernels/encode.h"

#if defined(__x86_64__)
#include <math.h>
#include <string.h>

#include "kernels/x86/encode_avx2.h"
#include "kernels/x86/encode_avx512.h"

/* ---- the largest --------------------------------------------------------- */

AVX512 static uint32_t peak_bits(const float *x, int64_t n)
{
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    __m512i m0 = _mm512_setzero_si512(), m1 = m0;
    for (; n >= 32; n -= 32, x += 32) {
        const __m512i a = _mm512_loadu_si512((const void *)x);
        const __m512i b = _mm512_loadu_si512((const void *)(x + 16));
        m0 = _mm512_max_epu32(m0, _mm512_and_si512(magnitude, a));
        m1 = _mm512_max_epu32(m1, _mm512_and_si512(magnitude, b));
    }
    for (; n > 0; n -= 16, x += 16) {
        const __m512i a =
            _mm512_maskz_loadu_epi32(lb_first_16(n), (const void *)x);
        m0 = _mm512_max_epu32(m0, _mm512_and_si512(magnitude, a));
    }
    uint32_t lane[16], bits = 0;
    _mm512_storeu_si512((void *)lane, _mm512_max_epu32(m0, m1));
    for (int j = 0; j < 16; j++)
        bits = lane[j] > bits ? lane[j] : bits;
    return bits;
}

AVX512 LB_INLINE float largest_of(const float *x, int64_t n)
{
    __m512 m0 = _mm512_setzero_ps(), m1 = m0;
    for (; n >= 32; n -= 32, x += 32) {
        m0 = _mm512_max_ps(m0, _mm512_abs_ps(_mm512_loadu_ps(x)));
        m1 = _mm512_max_ps(m1, _mm512_abs_ps(_mm512_loadu_ps(x + 16)));
    }
    for (; n > 0; n -= 16, x += 16)
        m0 = _mm512_max_ps(m0, _mm512_abs_ps(lb_load_some(x, n)));
    return _mm512_reduce_max_ps(_mm512_max_ps(m0, m1));
}

AVX512 static void largest(const float *x, int64_t n, int64_t block,
                           float *most)
{
    for (int64_t i = 0; i < n; i += block)
        *most++ = largest_of(x + i, n - i < block ? n - i : block);
}

AVX512 static void raise(const float *x, int64_t n, float *most)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m512 a = _mm512_abs_ps(_mm512_loadu_ps(x + i));
        lb_fetch_next(x + i, n, 16);
        _mm512_storeu_ps(most + i, _mm512_max_ps(a, _mm512_loadu_ps(most + i)));
    }
    if (i == n) return;
    const __m512 a = _mm512_abs_ps(lb_load_some(x + i, n - i));
    _mm512_mask_storeu_ps(most + i, lb_first_16(n - i),
                          _mm512_max_ps(a, lb_load_some(most + i, n - i)));
}

/* ---- whole numbers ------------------------------------------------------- */

/* 64 codes. Saturation is the upper bound; the lower is -127. */
AVX512 LB_INLINE __m512i whole_64(const __m512i *v)
{
    const __m512i b = _mm512_permutexvar_epi32(lb_fours(), lb_bytes(v));
    return _mm512_max_epi8(b, _mm512_set1_epi8(-127));
}

/* One `by` for all, or one for each. How, each and inverts are constants where
 * this is inlined. */
AVX512 LB_INLINE void whole_run(lb_quotient how, bool each, bool inverts,
                                const float *x, int64_t n, const float *by,
                                int8_t *code)
{
    const lb_divisor all = lb_divisor_of(each ? 1 : *by);
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) {
        __m512i v[4];
        lb_fetch_next(x + i, n, 64);
        LB_UNROLL
        for (int j = 0; j < 4; j++) {
            const int64_t at = i + (int64_t)16 * j;
            lb_divisor d = all;
            if (each) d.by = _mm512_loadu_ps(by + at);
            v[j] = _mm512_cvtps_epi32(
                lb_quotient16(how, inverts, _mm512_loadu_ps(x + at), d));
        }
        _mm512_storeu_si512((void *)(code + i), whole_64(v));
    }
    if (i == n) return;
    __m512i v[4];
    for (int j = 0; j < 4; j++) {
        const int64_t at = i + (int64_t)16 * j, left = n - at;
        lb_divisor d = all;
        if (each) d.by = lb_load_some_or(all.by, by + at, left);
        v[j] = _mm512_cvtps_epi32(
            lb_quotient16(how, inverts, lb_load_some(x + at, left), d));
    }
    _mm512_mask_storeu_epi8((void *)(code + i), ~(__mmask64)0 >> (64 - (n - i)),
                            whole_64(v));
}

AVX512 LB_INLINE void whole_by(bool each, bool inverts, lb_quotient how,
                               const float *x, int64_t n, const float *by,
                               int8_t *code)
{
    switch (how) {
    case LB_QUOTIENT:
        whole_run(LB_QUOTIENT, each, inverts, x, n, by, code);
        return;
    case LB_PRODUCT:
        whole_run(LB_PRODUCT, each, false, x, n, by, code);
        return;
    case LB_QUOTIENT_F16:
        whole_run(LB_QUOTIENT_F16, each, inverts, x, n, by, code);
        return;
    case LB_QUOTIENT_BF16:
        whole_run(LB_QUOTIENT_BF16, each, inverts, x, n, by, code);
        return;
    }
}

AVX512 static void whole(lb_quotient how, const float *x, int64_t n, float by,
                         int8_t *code)
{
    if (lb_has_inverse(how, by))
        whole_by(false, true, how, x, n, &by, code);
    else
        whole_by(false, false, how, x, n, &by, code);
}

AVX512 static void whole_each(lb_quotient how, const float *x, int64_t n,
                              const float *by, int8_t *code)
{
    whole_by(true, false, how, x, n, by, code);
}

/* ---- ternary ------------------------------------------------------------- */

AVX512 LB_INLINE __m512i signs_16(__m512 v, __m512 cut, __m512 minus)
{
    const __mmask16 over = _mm512_cmp_ps_mask(v, cut, _CMP_GT_OQ);
    const __mmask16 under = _mm512_cmp_ps_mask(v, minus, _CMP_LT_OQ);
    const __m512i code =
        _mm512_mask_mov_epi32(_mm512_set1_epi32(1), over, _mm512_set1_epi32(2));
    return _mm512_mask_mov_epi32(code, under, _mm512_setzero_si512());
}

/* The codes of 64 numbers, four to a byte. */
AVX512 LB_INLINE __m128i ternary_64(const __m512i *code)
{
    const __m512i two =
        _mm512_maddubs_epi16(lb_bytes(code), _mm512_set1_epi16(4 << 8 | 1));
    const __m512i four =
        _mm512_madd_epi16(two, _mm512_set1_epi32(16 << 16 | 1));
    return _mm512_cvtepi32_epi8(_mm512_permutexvar_epi32(lb_fours(), four));
}

AVX512 static void ternary(const float *x, int64_t n, float cut, uint8_t *byte)
{
    const __m512 plus = _mm512_set1_ps(cut), minus = _mm512_set1_ps(-cut);
    int64_t i = 0;
    __m512i v[4];
    for (; i + 64 <= n; i += 64) {
        lb_fetch_next(x + i, n, 64);
        LB_UNROLL
        for (int j = 0; j < 4; j++)
            v[j] = signs_16(_mm512_loadu_ps(x + i + (ptrdiff_t)16 * j), plus,
                            minus);
        _mm_storeu_si128((__m128i *)(void *)(byte + i / 4), ternary_64(v));
    }
    if (i == n) return;
    for (int j = 0; j < 4; j++) { /* zeros follow: their code is the filler */
        const int64_t at = i + (int64_t)16 * j;
        v[j] = signs_16(lb_load_some(x + at, n - at), plus, minus);
    }
    _mm_mask_storeu_epi8((void *)(byte + i / 4), lb_first_16((n - i + 3) / 4),
                         ternary_64(v));
}

/* ---- binary -------------------------------------------------------------- */

AVX512 LB_INLINE uint64_t not_below(__m512 v)
{
    return _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GE_OQ);
}

AVX512 static void binary(const float *x, int64_t n, uint8_t *byte)
{
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) {
        lb_fetch_next(x + i, n, 64);
        const uint64_t bits = not_below(_mm512_loadu_ps(x + i)) |
                              not_below(_mm512_loadu_ps(x + i + 16)) << 16 |
                              not_below(_mm512_loadu_ps(x + i + 32)) << 32 |
                              not_below(_mm512_loadu_ps(x + i + 48)) << 48;
        memcpy(byte + i / 8, &bits, sizeof bits);
    }
    for (; i < n; i += 16) { /* places left over hold 0 */
        const __mmask16 some = lb_first_16(n - i);
        const uint64_t bits = not_below(lb_load_some(x + i, n - i)) & some;
        const int64_t bytes = (n - i + 7) / 8;
        memcpy(byte + i / 8, &bits, (size_t)(bytes < 2 ? bytes : 2));
    }
}

/* ---- the table ----------------------------------------------------------- */

const lb_encode_kernel lb_encode_avx512 = {
    .name = "encode avx512",
    .peak_bits = peak_bits,
    .largest = largest,
    .raise = raise,
    .totals = lb_totals_avx2,
    .moments = lb_moments_avx2,
    .whole = whole,
    .whole_each = whole_each,
    .ternary = ternary,
    .binary = binary,
};
#endif
