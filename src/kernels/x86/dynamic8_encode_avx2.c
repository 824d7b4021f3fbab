/* dynamic8_encode_avx2.c - codes of dynamic8 with AVX2.
 *
 * Where codes go by places (all but bnb-cuda), a place p stands for the number
 * a / 65535, a = |2p - 65535|, with the sign of that. The levels of one sign
 * are seven rows, row k of 2^k equal steps over [0.1, 1] * 10^(k-6), numbered
 * m = 2^k + j from 1 on; no place is in the rows 0 and 1. So
 *
 *     m = a * slope[k] + base[k], rounded down and kept in its row
 *
 * where a compare finds the row, and the code is 127 + m or 127 - m. In f32 it
 * is right for all of the 65,536 places: test_encode tries them.
 */
#include "kernels/dynamic8_ref.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/encode_avx2.h"

/* Row 2, then from row 6 down to row 3: the order of minus how many of the
 * limits of rows were reached, of which three bits count. */
typedef struct {
    __m256 slope, base, begin;
} rows;

AVX2 LB_INLINE rows rows_of(void)
{
    /* 2^k / (0.9 * 10^(k-6)) / 65535, and 2^k * 8 / 9 */
    static const float slope[5] = {
        (float)(4 / 0.9e-4 / 65535), (float)(8 / 0.9e-3 / 65535),
        (float)(16 / 0.9e-2 / 65535), (float)(32 / 0.9e-1 / 65535),
        (float)(64 / 0.9 / 65535)};
    static const float base[5] = {(float)(32 / 9.0), (float)(64 / 9.0),
                                  (float)(128 / 9.0), (float)(256 / 9.0),
                                  (float)(512 / 9.0)};
    return (rows){
        _mm256_setr_ps(slope[0], 0, 0, 0, slope[4], slope[3], slope[2],
                       slope[1]),
        _mm256_setr_ps(base[0], 0, 0, 0, base[4], base[3], base[2], base[1]),
        _mm256_setr_ps(4, 0, 0, 0, 64, 32, 16, 8),
    };
}

/* Places of v; NaN goes to the first. */
AVX2 LB_INLINE __m256i places(__m256 v)
{
    const __m256 one = _mm256_set1_ps(1), half = _mm256_set1_ps(0.5f);
    v = _mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(-1)), one);
    v = _mm256_mul_ps(_mm256_add_ps(v, one), half);
    v = _mm256_mul_ps(v, _mm256_set1_ps(65535));
    return _mm256_cvttps_epi32(_mm256_add_ps(v, half));
}

/* Rows begin halfway from the last level of the row before. */
AVX2 LB_INLINE __m256i row_of(__m256i a)
{
    const __m256i i =
        _mm256_add_epi32(_mm256_cmpgt_epi32(a, _mm256_set1_epi32(8)),
                         _mm256_cmpgt_epi32(a, _mm256_set1_epi32(72)));
    const __m256i k =
        _mm256_add_epi32(_mm256_cmpgt_epi32(a, _mm256_set1_epi32(692)),
                         _mm256_cmpgt_epi32(a, _mm256_set1_epi32(6738)));
    return _mm256_add_epi32(i, k);
}

/* Codes minus 127: -127 .. 128. */
AVX2 LB_INLINE __m256i codes(const rows *r, __m256i place)
{
    const __m256i s = _mm256_sub_epi32(_mm256_add_epi32(place, place),
                                       _mm256_set1_epi32(65535));
    const __m256i a = _mm256_abs_epi32(s), i = row_of(a);
    const __m256 slope = _mm256_permutevar8x32_ps(r->slope, i);
    const __m256 base = _mm256_permutevar8x32_ps(r->base, i);
    const __m256 begin = _mm256_permutevar8x32_ps(r->begin, i);
    const __m256 last =
        _mm256_sub_ps(_mm256_add_ps(begin, begin), _mm256_set1_ps(1));
    __m256 m = _mm256_mul_ps(_mm256_cvtepi32_ps(a), slope);
    m = _mm256_min_ps(_mm256_max_ps(_mm256_add_ps(m, base), begin), last);
    const __m256i n = _mm256_sign_epi32(_mm256_cvttps_epi32(m), s);
    /* The level 1 has no twin of the other sign. */
    return _mm256_sub_epi32(n, _mm256_cmpgt_epi32(s, _mm256_set1_epi32(65304)));
}

/* zeros: a zero has the code of 0, which no place has. */
AVX2 LB_INLINE __m256i codes8(const rows *r, bool zeros, const float *x,
                              __m256 by)
{
    const __m256 v = _mm256_loadu_ps(x);
    if (!zeros) return codes(r, places(_mm256_mul_ps(v, by)));
    const __m256 some = _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NEQ_UQ);
    return _mm256_and_si256(codes(r, places(_mm256_div_ps(v, by))),
                            _mm256_castps_si256(some));
}

AVX2 LB_INLINE void put32(const rows *r, bool zeros, const float *x, __m256 by,
                          uint8_t *code)
{
    const __m256i a = codes8(r, zeros, x, by);
    const __m256i b = codes8(r, zeros, x + 8, by);
    const __m256i c = codes8(r, zeros, x + 16, by);
    const __m256i d = codes8(r, zeros, x + 24, by);
    /* 128 would saturate: 127 is added before it becomes a byte. */
    const __m256i zero = _mm256_set1_epi16(127);
    const __m256i v =
        _mm256_packus_epi16(_mm256_add_epi16(_mm256_packs_epi32(a, b), zero),
                            _mm256_add_epi16(_mm256_packs_epi32(c, d), zero));
    _mm256_storeu_si256((__m256i *)(void *)code, lb_sort_fours(v));
}

AVX2 LB_INLINE void encode(bool zeros, float by, const float *x, int64_t n,
                           uint8_t *code)
{
    const rows r = rows_of();
    const __m256 all = _mm256_set1_ps(by);
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        lb_fetch_next(x + i, n, 32);
        put32(&r, zeros, x + i, all, code + i);
    }
    if (i < n) {
        float rest[32] = {0};
        uint8_t bytes[32];
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *x);
        put32(&r, zeros, rest, all, bytes);
        memcpy(code + i, bytes, (size_t)(n - i));
    }
}

AVX2 void lb_dynamic8_encode_avx2(lb_compat compat, float absmax,
                                  const float *x, int64_t n, uint8_t *code)
{
    if (compat == LB_COMPAT_BNB_CUDA)
        lb_dynamic8_encode_ref(compat, absmax, x, n, code);
    else if (compat == LB_COMPAT_BNB_CPU)
        encode(false, 1.0f / absmax, x, n, code);
    else
        encode(true, absmax, x, n, code);
}
#endif
