/* gemvq_avx512.h - what the AVX-512 kernels of gemvq.h share.
 *
 * A lane of 32 bits holds 32/bits codes, and a vector 16 lanes: a group. A
 * shift and a lookup that minds only the low bits of a lane give 16 levels.
 */
#ifndef LB_GEMVQ_AVX512_H
#define LB_GEMVQ_AVX512_H

#include "kernels/gemvq.h"
#include "kernels/gemvq_sets.h"
#include "kernels/x86/intrin.h"

#define AVX512_ISA "avx512f,avx512bw,avx512vl,avx512dq,avx2,fma"
#define AVX512     LB_TARGET(AVX512_ISA)
#define VNNI       LB_TARGET("avx512vnni," AVX512_ISA)

#define AVX512_INLINE AVX512 LB_INLINE

/* gemvq_few_avx512.c: a few rows of x at once. */
void lb_gemvq_few8_avx512(const lb_gemvq_cols *c, int rows);
void lb_gemvq_few4_128_avx512(const lb_gemvq_cols *c, int rows);
void lb_gemvq_few4_64_avx512(const lb_gemvq_cols *c, int rows);
void lb_gemvq_few2_avx512(const lb_gemvq_cols *c, int rows);
void lb_gemvq_few1_avx512(const lb_gemvq_cols *c, int rows);

/* Slots of f32: fields of lanes, the first of all 16 lanes first. */
#define ORDER8                                                                 \
    {                                                                          \
        {64},                                                                  \
        {                                                                      \
            1                                                                  \
        }                                                                      \
    }
#define ORDER4                                                                 \
    {                                                                          \
        {16, 8},                                                               \
        {                                                                      \
            8, 1                                                               \
        }                                                                      \
    }
#define ORDER2                                                                 \
    {                                                                          \
        {16, 16},                                                              \
        {                                                                      \
            16, 1                                                              \
        }                                                                      \
    }
#define ORDER1                                                                 \
    {                                                                          \
        {16, 32},                                                              \
        {                                                                      \
            32, 1                                                              \
        }                                                                      \
    }

AVX512_INLINE __m512 to_f32(__m512i v)
{
#if defined(LB_SIMDE) /* lacks it */
    const __m256 low = _mm256_cvtepi32_ps(_mm512_castsi512_si256(v));
    const __m256 high = _mm256_cvtepi32_ps(_mm512_extracti64x4_epi64(v, 1));
    return _mm512_castpd_ps(
        _mm512_insertf64x4(_mm512_castps_pd(_mm512_castps256_ps512(low)),
                           _mm256_castps_pd(high), 1));
#else
    return _mm512_cvtepi32_ps(v);
#endif
}

AVX512_INLINE __m512i madd_i16(__m512i a, __m512i b)
{
#if defined(LB_SIMDE) /* has the wrong alias */
    return simde_mm512_madd_epi16(a, b);
#else
    return _mm512_madd_epi16(a, b);
#endif
}

/* sum and the products of pairs of 16 bits, whose sums in lanes of 32 bits the
 * caller knows to fit. Compilers copy the sum of the intrinsic before and
 * after; through SIMDe both ways are the first, whose bits are the same. */
AVX512_INLINE __m512i add_products(__m512i sum, __m512i a, __m512i b, bool vnni)
{
#if !defined(LB_SIMDE)
    if (vnni) {
        __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
        return sum;
    }
#endif
    (void)vnni;
    return _mm512_add_epi32(sum, madd_i16(a, b));
}

AVX512_INLINE __m128i load_16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

AVX512_INLINE __m256i load_32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* Codes, and the line that will be wanted next from memory. */
AVX512_INLINE __m512i load_codes(const uint8_t *p, int64_t ahead)
{
    _mm_prefetch((const char *)p + ahead, _MM_HINT_T0);
    return _mm512_loadu_si512((const void *)p);
}

/* Sixteen columns from one on, of 2 bits or 1, of which t are the sums of codes
 * times x; two roundings, as the reference has them. */
AVX512_INLINE void put_16(const lb_gemvq_flush *f, __m512i t, int64_t at)
{
    int32_t *const whole = f->whole + at;
    float *const y = f->y + at;
    if (!f->begins) t = _mm512_add_epi32(t, _mm512_load_si512(whole));
    if (!f->ends) {
        _mm512_store_si512(whole, t);
        return;
    }
    const __m512i least = _mm512_set1_epi32(f->table->least * f->x_sum);
    const __m512i step = _mm512_set1_epi32(f->table->step);
    const __m512 unit = _mm512_set1_ps(*f->x_scale);
    t = _mm512_add_epi32(_mm512_mullo_epi32(t, step), least);
    _mm512_store_ps(
        y, _mm512_add_ps(_mm512_load_ps(y), _mm512_mul_ps(to_f32(t), unit)));
}

/* Levels of 14 bits, twice. */
AVX512_INLINE __m512i load_halves(const lb_gemvq_table *t)
{
    const __m128i b0 =
        _mm_loadu_si128((const __m128i *)(const void *)t->half[0]);
    const __m128i b1 =
        _mm_loadu_si128((const __m128i *)(const void *)t->half[1]);
    const __m256i both = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_unpacklo_epi8(b0, b1)),
        _mm_unpackhi_epi8(b0, b1), 1);
    return _mm512_broadcast_i64x4(both);
}

/* Lane i of n scales that serve 16/n lanes each. */
AVX512_INLINE __m512 spread_scales(const float *from, int n)
{
    if (n == 16) return _mm512_loadu_ps(from);
    if (n == 1) return _mm512_set1_ps(*from);
    __m512 v;
    if (n == 8)
        v = _mm512_castps256_ps512(_mm256_loadu_ps(from));
    else if (n == 4)
        v = _mm512_castps128_ps512(_mm_loadu_ps(from));
    else
        v = _mm512_castps128_ps512(_mm_castsi128_ps(
            _mm_loadl_epi64((const __m128i *)(const void *)from)));
    const __m512i lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const int shift = n == 8 ? 1 : n == 4 ? 2 : 3;
    return _mm512_permutexvar_ps(_mm512_srli_epi32(lane, (uint8_t)shift), v);
}

AVX512_INLINE __m256 halves_ps(__m512 v)
{
    return _mm256_add_ps(
        _mm512_castps512_ps256(v),
        _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1)));
}

AVX512_INLINE __m256i halves_i32(__m512i v)
{
    return _mm256_add_epi32(_mm512_castsi512_si256(v),
                            _mm512_extracti64x4_epi64(v, 1));
}

/* Adds up the lanes of each, in halves. */
AVX512_INLINE __m128 fold_four(const __m512 *a)
{
    const __m256 ab = _mm256_hadd_ps(halves_ps(a[0]), halves_ps(a[1]));
    const __m256 cd = _mm256_hadd_ps(halves_ps(a[2]), halves_ps(a[3]));
    const __m256 s = _mm256_hadd_ps(ab, cd);
    return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

AVX512_INLINE __m128i fold_four_i32(const __m512i *a)
{
    const __m256i ab = _mm256_hadd_epi32(halves_i32(a[0]), halves_i32(a[1]));
    const __m256i cd = _mm256_hadd_epi32(halves_i32(a[2]), halves_i32(a[3]));
    const __m256i s = _mm256_hadd_epi32(ab, cd);
    return _mm_add_epi32(_mm256_castsi256_si128(s),
                         _mm256_extracti128_si256(s, 1));
}

#endif
