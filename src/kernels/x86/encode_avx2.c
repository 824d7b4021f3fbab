/* encode_avx2.c - the encoders with AVX2: largest numbers and whole ones are
 * here, others in the files of their families. Stronger levels use them, too:
 * most of the time memory decides. */
#include "kernels/encode.h"

#if defined(__x86_64__)
#include <math.h>
#include <string.h>

#include "kernels/x86/encode_avx2.h"

/* ---- the largest -------------------------------------------------------- */

AVX2 static uint32_t peak_bits(const float *x, int64_t n)
{
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i m0 = _mm256_setzero_si256(), m1 = m0, m2 = m0, m3 = m0;
    const __m256i *v = (const __m256i *)(const void *)x;
    int64_t i = 0;
    for (; i + 32 <= n; i += 32, v += 4) {
        m0 = _mm256_max_epu32(
            m0, _mm256_and_si256(magnitude, _mm256_loadu_si256(v)));
        m1 = _mm256_max_epu32(
            m1, _mm256_and_si256(magnitude, _mm256_loadu_si256(v + 1)));
        m2 = _mm256_max_epu32(
            m2, _mm256_and_si256(magnitude, _mm256_loadu_si256(v + 2)));
        m3 = _mm256_max_epu32(
            m3, _mm256_and_si256(magnitude, _mm256_loadu_si256(v + 3)));
    }
    uint32_t lane[8], bits = 0;
    m0 = _mm256_max_epu32(_mm256_max_epu32(m0, m1), _mm256_max_epu32(m2, m3));
    _mm256_storeu_si256((__m256i *)(void *)lane, m0);
    for (int j = 0; j < 8; j++)
        bits = lane[j] > bits ? lane[j] : bits;
    for (; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], sizeof u);
        u &= 0x7fffffff;
        bits = u > bits ? u : bits;
    }
    return bits;
}

/* Eight numbers may be looked at twice, so the last eight are the tail. */
AVX2 LB_INLINE float largest_of(const float *x, int64_t n)
{
    if (n < 8) {
        float most = 0;
        for (int64_t i = 0; i < n; i++)
            most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
        return most;
    }
    __m256 m0 = lb_abs8(_mm256_loadu_ps(x + n - 8)), m1 = m0, m2 = m0, m3 = m0;
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        m0 = _mm256_max_ps(m0, lb_abs8(_mm256_loadu_ps(x + i)));
        m1 = _mm256_max_ps(m1, lb_abs8(_mm256_loadu_ps(x + i + 8)));
        m2 = _mm256_max_ps(m2, lb_abs8(_mm256_loadu_ps(x + i + 16)));
        m3 = _mm256_max_ps(m3, lb_abs8(_mm256_loadu_ps(x + i + 24)));
    }
    for (; i + 8 <= n; i += 8)
        m0 = _mm256_max_ps(m0, lb_abs8(_mm256_loadu_ps(x + i)));
    return lb_max_of_8(
        _mm256_max_ps(_mm256_max_ps(m0, m1), _mm256_max_ps(m2, m3)));
}

AVX2 static void largest(const float *x, int64_t n, int64_t block, float *most)
{
    for (int64_t i = 0; i < n; i += block)
        *most++ = largest_of(x + i, n - i < block ? n - i : block);
}

AVX2 static void raise(const float *x, int64_t n, float *most)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256 a = lb_abs8(_mm256_loadu_ps(x + i));
        const __m256 b = lb_abs8(_mm256_loadu_ps(x + i + 8));
        float *to = most + i;
        lb_fetch_next(x + i, n, 16);
        _mm256_storeu_ps(to, _mm256_max_ps(a, _mm256_loadu_ps(to)));
        _mm256_storeu_ps(to + 8, _mm256_max_ps(b, _mm256_loadu_ps(to + 8)));
    }
    for (; i < n; i++)
        most[i] = fabsf(x[i]) > most[i] ? fabsf(x[i]) : most[i];
}

/* ---- whole numbers
 * --------------------------------------------------------------- */

/* A whole number, half to even. */
AVX2 LB_INLINE __m256i whole8(lb_quotient how, const float *x, __m256 by)
{
    return _mm256_cvtps_epi32(lb_quotient8(how, _mm256_loadu_ps(x), by));
}

/* 32 codes. Saturation is the upper bound; the lower is -127. */
AVX2 LB_INLINE void put32(__m256i a, __m256i b, __m256i c, __m256i d,
                          int8_t *code)
{
    const __m256i v = lb_sort_fours(lb_bytes_in_fours(a, b, c, d));
    _mm256_storeu_si256((__m256i *)(void *)code,
                        _mm256_max_epi8(v, _mm256_set1_epi8(-127)));
}

AVX2 LB_INLINE void whole32(lb_quotient how, const float *x, __m256 by,
                            int8_t *code)
{
    put32(whole8(how, x, by), whole8(how, x + 8, by), whole8(how, x + 16, by),
          whole8(how, x + 24, by), code);
}

AVX2 LB_INLINE void whole_run(lb_quotient how, const float *x, int64_t n,
                              float by, int8_t *code)
{
    const __m256 all = _mm256_set1_ps(by);
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        lb_fetch_next(x + i, n, 32);
        whole32(how, x + i, all, code + i);
    }
    if (i < n) {
        float rest[32] = {0};
        int8_t codes[32];
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *x);
        whole32(how, rest, all, codes);
        memcpy(code + i, codes, (size_t)(n - i));
    }
}

AVX2 static void whole(lb_quotient how, const float *x, int64_t n, float by,
                       int8_t *code)
{
    switch (how) {
    case LB_QUOTIENT:
        whole_run(LB_QUOTIENT, x, n, by, code);
        return;
    case LB_PRODUCT:
        whole_run(LB_PRODUCT, x, n, by, code);
        return;
    case LB_QUOTIENT_F16:
        whole_run(LB_QUOTIENT_F16, x, n, by, code);
        return;
    case LB_QUOTIENT_BF16:
        whole_run(LB_QUOTIENT_BF16, x, n, by, code);
        return;
    }
}

AVX2 LB_INLINE __m256i whole8_each(lb_quotient how, const float *x,
                                   const float *by)
{
    return whole8(how, x, _mm256_loadu_ps(by));
}

AVX2 LB_INLINE void whole32_each(lb_quotient how, const float *x,
                                 const float *by, int8_t *code)
{
    put32(whole8_each(how, x, by), whole8_each(how, x + 8, by + 8),
          whole8_each(how, x + 16, by + 16), whole8_each(how, x + 24, by + 24),
          code);
}

AVX2 LB_INLINE void whole_run_each(lb_quotient how, const float *x, int64_t n,
                                   const float *by, int8_t *code)
{
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        lb_fetch_next(x + i, n, 32);
        whole32_each(how, x + i, by + i, code + i);
    }
    if (i < n) {
        float rest[32] = {0}, bys[32];
        int8_t codes[32];
        for (int j = 0; j < 32; j++)
            bys[j] = 1;
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *x);
        memcpy(bys, by + i, (size_t)(n - i) * sizeof *x);
        whole32_each(how, rest, bys, codes);
        memcpy(code + i, codes, (size_t)(n - i));
    }
}

AVX2 static void whole_each(lb_quotient how, const float *x, int64_t n,
                            const float *by, int8_t *code)
{
    switch (how) {
    case LB_QUOTIENT:
        whole_run_each(LB_QUOTIENT, x, n, by, code);
        return;
    case LB_PRODUCT:
        whole_run_each(LB_PRODUCT, x, n, by, code);
        return;
    case LB_QUOTIENT_F16:
        whole_run_each(LB_QUOTIENT_F16, x, n, by, code);
        return;
    case LB_QUOTIENT_BF16:
        whole_run_each(LB_QUOTIENT_BF16, x, n, by, code);
        return;
    }
}

/* ---- the table ---------------------------------------------------------- */

const lb_encode_kernel lb_encode_avx2 = {
    .name = "encode avx2",
    .peak_bits = peak_bits,
    .largest = largest,
    .raise = raise,
    .totals = lb_totals_avx2,
    .moments = lb_moments_avx2,
    .whole = whole,
    .whole_each = whole_each,
    .ternary = lb_ternary_avx2,
    .binary = lb_binary_avx2,
};
#endif
