/* gguf_encode_avx2.c - GGUF's block types from numbers, with AVX2; what is done
 * is written in gguf_ref.c, and how bytes lie in the formats' files. */
#include "kernels/gguf_ref.h"

#if defined(__x86_64__)
#include <math.h>
#include <string.h>

#include "kernels/x86/encode_avx2.h"

AVX2 LB_INLINE void put_d(uint8_t *to, float d)
{
    const __m128i h = _mm_cvtps_ph(_mm_set_ss(d), _MM_FROUND_TO_NEAREST_INT);
    const uint16_t bits = (uint16_t)_mm_cvtsi128_si32(h);
    memcpy(to, &bits, sizeof bits);
}

AVX2 LB_INLINE float inverse(float d)
{
    const float id = 1 / d;
    return isfinite(id) ? id : 0;
}

AVX2 LB_INLINE __m256 load_abs(const float *x)
{
    return lb_abs8(_mm256_loadu_ps(x));
}

AVX2 LB_INLINE __m256 largest32(const float *x)
{
    return _mm256_max_ps(_mm256_max_ps(load_abs(x), load_abs(x + 8)),
                         _mm256_max_ps(load_abs(x + 16), load_abs(x + 24)));
}

AVX2 static float largest256(const float *x)
{
    __m256 m = largest32(x);
    for (int i = 32; i < 256; i += 32)
        m = _mm256_max_ps(m, largest32(x + i));
    return lb_max_of_8(m);
}

AVX2 static float first_of(const float *x, float most)
{
    for (int i = 0; i < 32 && most > 0; i++)
        if (fabsf(x[i]) == most) return x[i];
    return 0;
}

/* The first of 32 numbers with the largest |x|. Who is first only matters if
 * both signs have it. */
AVX2 LB_INLINE float signed_peak(const float *x)
{
    const __m256 a = _mm256_loadu_ps(x), b = _mm256_loadu_ps(x + 8);
    const __m256 c = _mm256_loadu_ps(x + 16), d = _mm256_loadu_ps(x + 24);
    const __m256 most = _mm256_max_ps(_mm256_max_ps(a, b), _mm256_max_ps(c, d));
    const __m256 least =
        _mm256_min_ps(_mm256_min_ps(a, b), _mm256_min_ps(c, d));
    const float up = lb_max_of_8(most);
    const float down = lb_max_of_8(_mm256_xor_ps(least, _mm256_set1_ps(-0.0f)));
    if (up == down) return first_of(x, up);
    return up > down ? up : -down;
}

/* ---- Q8_0, Q4_0 --------------------------------------------------------- */

/* Half away from zero: what is added to v is the number below 0.5, so that only
 * a half or more carries over, by rounding. */
AVX2 LB_INLINE __m256i round_away(__m256 v)
{
    const __m256 sign = _mm256_and_ps(v, _mm256_set1_ps(-0.0f));
    const __m256 half = _mm256_or_ps(sign, _mm256_set1_ps(0x1.fffffep-2f));
    return _mm256_cvttps_epi32(_mm256_add_ps(v, half));
}

AVX2 LB_INLINE __m256i q8_0_codes(const float *x, __m256 id)
{
    return round_away(_mm256_mul_ps(_mm256_loadu_ps(x), id));
}

AVX2 void lb_q8_0_encode_avx2(const float *x, int64_t blocks, uint8_t *to)
{
    for (; blocks > 0; blocks--, x += 32, to += 34) {
        const float d = lb_max_of_8(largest32(x)) / 127;
        const __m256 id = _mm256_set1_ps(inverse(d));
        const __m256i v =
            lb_bytes_in_fours(q8_0_codes(x, id), q8_0_codes(x + 8, id),
                              q8_0_codes(x + 16, id), q8_0_codes(x + 24, id));
        put_d(to, d);
        _mm256_storeu_si256((__m256i *)(void *)(to + 2), lb_sort_fours(v));
    }
}

/* 16 bytes from 32 codes of four bits: element j is below element j + 16. */
AVX2 LB_INLINE void put_halves(__m256i a, __m256i b, __m256i c, __m256i d,
                               uint8_t *to)
{
    const __m256i v = lb_sort_fours(lb_bytes_in_fours(a, b, c, d));
    const __m128i low = _mm256_castsi256_si128(v);
    const __m128i high = _mm_slli_epi16(_mm256_extracti128_si256(v, 1), 4);
    _mm_storeu_si128((__m128i *)(void *)to, _mm_or_si128(low, high));
}

AVX2 LB_INLINE __m256i q4_0_codes(const float *x, __m256 id)
{
    const __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x), id);
    return _mm256_min_epi32(
        _mm256_cvttps_epi32(_mm256_add_ps(v, _mm256_set1_ps(8.5f))),
        _mm256_set1_epi32(15));
}

AVX2 void lb_q4_0_encode_avx2(const float *x, int64_t blocks, uint8_t *to)
{
    for (; blocks > 0; blocks--, x += 32, to += 18) {
        const float d = signed_peak(x) / -8;
        const __m256 id = _mm256_set1_ps(inverse(d));
        put_d(to, d);
        put_halves(q4_0_codes(x, id), q4_0_codes(x + 8, id),
                   q4_0_codes(x + 16, id), q4_0_codes(x + 24, id), to + 2);
    }
}

/* ---- IQ4_NL ------------------------------------------------------------- */

/* A binary search, as in nf4_encode_avx2.c: i is minus the code so far, and
 * tables lie in that order. Levels of even and odd codes are found with all but
 * the last bit of the code. */
typedef struct {
    __m256 first, low, high, of4, of8; /* halfway between levels */
    __m256 even, odd;                  /* levels */
} tree;

AVX2 LB_INLINE tree tree_of(void)
{
    float e[15], w[16];
    for (int k = 0; k < 16; k++)
        w[k] = (float)lb_iq4_nl_levels[k];
    for (int k = 0; k < 15; k++)
        e[k] = 0.5f * (w[k] + w[k + 1]);
    return (tree){
        _mm256_set1_ps(e[7]),
        _mm256_set1_ps(e[3]),
        _mm256_set1_ps(e[11]),
        _mm256_setr_ps(e[1], e[13], e[9], e[5], e[1], e[13], e[9], e[5]),
        _mm256_setr_ps(e[0], e[14], e[12], e[10], e[8], e[6], e[4], e[2]),
        _mm256_setr_ps(w[0], w[14], w[12], w[10], w[8], w[6], w[4], w[2]),
        _mm256_setr_ps(w[1], w[15], w[13], w[11], w[9], w[7], w[5], w[3]),
    };
}

/* A tie is the upper level's, and a NaN is above all. */
AVX2 LB_INLINE __m256i reaches(__m256 v, __m256 edge)
{
    return _mm256_castps_si256(_mm256_cmp_ps(v, edge, _CMP_NLT_UQ));
}

AVX2 LB_INLINE __m256i twice_and(__m256i i, __m256i bit)
{
    return _mm256_add_epi32(_mm256_add_epi32(i, i), bit);
}

/* All but the last bit, which is returned beside it. */
AVX2 LB_INLINE __m256i search(const tree *t, __m256 v, __m256i *bit)
{
    __m256i i = reaches(v, t->first);
    const __m256 second =
        _mm256_blendv_ps(t->low, t->high, _mm256_castsi256_ps(i));
    i = twice_and(i, reaches(v, second));
    i = twice_and(i, reaches(v, _mm256_permutevar_ps(t->of4, i)));
    *bit = reaches(v, _mm256_permutevar8x32_ps(t->of8, i));
    return i;
}

AVX2 LB_INLINE __m256i iq4_nl_codes(const tree *t, const float *x, __m256 id)
{
    __m256i bit;
    const __m256i i = search(t, _mm256_mul_ps(id, _mm256_loadu_ps(x)), &bit);
    return _mm256_sub_epi32(_mm256_setzero_si256(), twice_and(i, bit));
}

/* Sums of eight tries; see try_all of gguf_ref.c. */
typedef struct {
    __m256 id, wx, ww;
} tries;

AVX2 LB_INLINE void try_one(const tree *t, __m256 x, __m256 weight, tries *s)
{
    __m256i bit;
    const __m256i i = search(t, _mm256_mul_ps(s->id, x), &bit);
    const __m256 w = _mm256_blendv_ps(_mm256_permutevar8x32_ps(t->even, i),
                                      _mm256_permutevar8x32_ps(t->odd, i),
                                      _mm256_castsi256_ps(bit));
    const __m256 p = _mm256_mul_ps(weight, w);
    s->wx = _mm256_add_ps(s->wx, _mm256_mul_ps(p, x));
    s->ww = _mm256_add_ps(s->ww, _mm256_mul_ps(p, w));
}

AVX2 static float best_scale(const tree *t, const float *x, float m)
{
    float id[LB_IQ4_NL_TRIES], wx[LB_IQ4_NL_TRIES], ww[LB_IQ4_NL_TRIES];
    const __m256 zero = _mm256_setzero_ps();
    lb_iq4_nl_tries(m, id);
    tries a = {_mm256_loadu_ps(id), zero, zero};
    tries b = {_mm256_loadu_ps(id + 8), zero, zero};
    for (int i = 0; i < 32; i++) {
        const __m256 v = _mm256_broadcast_ss(x + i);
        const __m256 weight = _mm256_mul_ps(v, v);
        try_one(t, v, weight, &a);
        try_one(t, v, weight, &b);
    }
    _mm256_storeu_ps(wx, a.wx);
    _mm256_storeu_ps(wx + 8, b.wx);
    _mm256_storeu_ps(ww, a.ww);
    _mm256_storeu_ps(ww + 8, b.ww);
    return lb_iq4_nl_best(wx, ww);
}

AVX2 void lb_iq4_nl_encode_avx2(const float *x, int64_t blocks, uint8_t *to)
{
    const tree t = tree_of();
    for (; blocks > 0; blocks--, x += 32, to += 18) {
        const float m = signed_peak(x);
        const float d = fabsf(m) < 1e-15f ? 0 : best_scale(&t, x, m);
        const __m256 id = _mm256_set1_ps(d != 0 ? 1 / d : 0);
        put_d(to, d);
        put_halves(iq4_nl_codes(&t, x, id), iq4_nl_codes(&t, x + 8, id),
                   iq4_nl_codes(&t, x + 16, id), iq4_nl_codes(&t, x + 24, id),
                   to + 2);
    }
}

/* ---- TQ1_0, TQ2_0 ------------------------------------------------------- */

/* 1 + x * id, rounded half away from zero: of |x * id| <= 1. */
AVX2 LB_INLINE __m256i sign8(const float *x, __m256 id)
{
    const __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x), id);
    const __m256 up = _mm256_cmp_ps(v, _mm256_set1_ps(0.5f), _CMP_GE_OQ);
    const __m256 down = _mm256_cmp_ps(v, _mm256_set1_ps(-0.5f), _CMP_LE_OQ);
    return _mm256_sub_epi32(_mm256_castps_si256(down), _mm256_castps_si256(up));
}

/* 32 codes in the order of lb_bytes_in_fours, minus 1 each. */
AVX2 LB_INLINE __m256i signs32(const float *x, __m256 id)
{
    return lb_bytes_in_fours(sign8(x, id), sign8(x + 8, id), sign8(x + 16, id),
                             sign8(x + 24, id));
}

AVX2 void lb_tq2_0_encode_avx2(const float *x, int64_t blocks, uint8_t *to)
{
    const __m256i ones = _mm256_set1_epi8(0x55); /* the 1 of each code */
    for (; blocks > 0; blocks--, to += 66) {
        const float d = largest256(x);
        const __m256 id = _mm256_set1_ps(inverse(d));
        for (int g = 0; g < 2; g++, x += 128) {
            /* v0 + 4 (v1 + 4 (v2 + 4 v3)), each -1 .. 1 */
            __m256i v = signs32(x + 96, id);
            for (int k = 2; k >= 0; k--) {
                v = _mm256_add_epi8(v, v);
                v = _mm256_add_epi8(_mm256_add_epi8(v, v),
                                    signs32(x + 32 * k, id));
            }
            v = lb_sort_fours(_mm256_add_epi8(v, ones));
            _mm256_storeu_si256((__m256i *)(void *)(to + 32 * g), v);
        }
        put_d(to + 64, d);
    }
}

/* ceil(t * 256 / 243) = t + (13 t + 242) / 243 for t < 243; 17261 / 2^22 is
 * 1/243 and so little more that quotients up to 3388 are right. */
AVX2 LB_INLINE __m256i spread16(__m256i t)
{
    const __m256i n = _mm256_add_epi16(
        _mm256_mullo_epi16(t, _mm256_set1_epi16(13)), _mm256_set1_epi16(242));
    const __m256i q = _mm256_mulhi_epu16(n, _mm256_set1_epi16(17261));
    return _mm256_add_epi16(t, _mm256_srli_epi16(q, 6));
}

/* 32 bytes from t, in any order. */
AVX2 LB_INLINE __m256i spread(__m256i t)
{
    const __m256i zero = _mm256_setzero_si256();
    return _mm256_packus_epi16(spread16(_mm256_unpacklo_epi8(t, zero)),
                               spread16(_mm256_unpackhi_epi8(t, zero)));
}

AVX2 LB_INLINE __m256i thrice_and(__m256i t, __m256i v)
{
    return _mm256_add_epi8(_mm256_add_epi8(t, _mm256_add_epi8(t, t)), v);
}

AVX2 LB_INLINE __m256i codes16(const float *x, __m256 id)
{
    const __m256i zero = _mm256_setzero_si256();
    return lb_bytes_in_fours(sign8(x, id), sign8(x + 8, id), zero, zero);
}

AVX2 LB_INLINE __m256i codes4(const float *x, float id)
{
    float four[8] = {x[0], x[1], x[2], x[3]};
    const __m256i zero = _mm256_setzero_si256();
    return lb_bytes_in_fours(sign8(four, _mm256_set1_ps(id)), zero, zero, zero);
}

AVX2 void lb_tq1_0_encode_avx2(const float *x, int64_t blocks, uint8_t *to)
{
    const __m256i ones = _mm256_set1_epi8(121); /* 1 + 3 + 9 + 27 + 81 */
    for (; blocks > 0; blocks--, x += 256, to += 54) {
        const float d = largest256(x);
        const __m256 id = _mm256_set1_ps(inverse(d));
        __m256i a = signs32(x, id), b = codes16(x + 160, id);
        __m256i c = codes4(x + 240, inverse(d));
        for (int k = 1; k < 5; k++) {
            a = thrice_and(a, signs32(x + 32 * k, id));
            b = thrice_and(b, codes16(x + 160 + 16 * k, id));
            if (k < 4) c = thrice_and(c, codes4(x + 240 + 4 * k, inverse(d)));
        }
        /* The fifth of c is code 0: without its 1, and times 3 all the same. */
        c = thrice_and(c, _mm256_set1_epi8(-1));
        a = lb_sort_fours(spread(_mm256_add_epi8(a, ones)));
        b = lb_sort_fours(spread(_mm256_add_epi8(b, ones)));
        c = spread(_mm256_add_epi8(c, ones));
        _mm256_storeu_si256((__m256i *)(void *)to, a);
        _mm_storeu_si128((__m128i *)(void *)(to + 32),
                         _mm256_castsi256_si128(b));
        const int last = _mm_cvtsi128_si32(_mm256_castsi256_si128(c));
        memcpy(to + 48, &last, sizeof last);
        put_d(to + 52, d);
    }
}
#endif
