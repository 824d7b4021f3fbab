/* gemvq_rows_int_avx2.c - a vector of whole numbers times lines of codes, AVX2.
 *
 *   8 bits      widened, times x of 16 bits: a lane sums a panel's 64 products,
 *               64 * 128 * 32767 < 2^31
 *   4 bits      levels of 14 bits, their bytes looked up apart and put
 *               together, times x of 16 bits: a lane sums at most eight
 *               products, 8 * 8191 * 32767 < 2^31
 *   2 or 1 bit  codes stay bytes, the unsigned side of vpmaddubsw, whose pairs
 *               cannot saturate: 2 * 3 * 128 = 768 for two bits, 256 for one.
 *               A panel of 1024 codes is 32 pairs in each lane of 16 bits: at
 *               most 32 * 768 = 24576
 */
#include "kernels/gemvq.h"

#if defined(__x86_64__)
#include "kernels/x86/gemvq_avx2.h"

enum { R = LB_GEMVQ_ROWS };

AVX2_INLINE __m256i load_x(const void *x, int i)
{
    return _mm256_load_si256((const __m256i *)x + i);
}

/* ---- 8 bits ------------------------------------------------------------- */

AVX2_INLINE __m256i add_products(__m256i sum, __m256i w, __m256i x)
{
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(w, x));
    LB_KEEP(sum);
    return sum;
}

/* Bytes at even places, then those at odd ones. */
AVX2 static void rows8(const lb_gemvq_rows *r, float *y)
{
    enum { PER = LB_GEMVQ_I16_PANEL / 32 };
    __m256 a[R];
    LB_UNROLL
    for (int i = 0; i < R; i++)
        a[i] = _mm256_setzero_ps();
    for (int64_t g = 0, p = 0; g < r->groups; p++) {
        const int64_t end = r->groups - g < PER ? r->groups : g + PER;
        const __m256 x_scale = _mm256_broadcast_ss(r->x_scale + p);
        __m256i t[R];
        LB_UNROLL
        for (int i = 0; i < R; i++)
            t[i] = _mm256_setzero_si256();
        for (; g < end; g++) {
            const int16_t *x = (const int16_t *)r->x + 32 * g;
            const __m256i x0 = load_x(x, 0), x1 = load_x(x, 1);
            LB_UNROLL
            for (int i = 0; i < R; i++) {
                const __m256i v = load_group(r, i, g);
                const __m256i even = _mm256_slli_epi16(v, 8);
                t[i] = add_products(t[i], _mm256_srai_epi16(even, 8), x0);
                t[i] = add_products(t[i], _mm256_srai_epi16(v, 8), x1);
            }
        }
        LB_UNROLL
        for (int i = 0; i < R; i++)
            a[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(t[i]), x_scale, a[i]);
    }
    _mm_storeu_ps(y, fold4(a[0], a[1], a[2], a[3]));
}

/* ---- 4 bits ------------------------------------------------------------- */

/* Products of 64 codes; t[0]: of 16 of each 32 codes, t[1]: of the rest. */
AVX2_INLINE void group4(__m256i half0, __m256i half1, __m256i low, __m256i v,
                        const int16_t *x, __m256i *t)
{
    const __m256i c0 = low_half(v, low), c1 = high_half(v, low);
    const __m256i a0 = _mm256_shuffle_epi8(half0, c0);
    const __m256i a1 = _mm256_shuffle_epi8(half1, c0);
    const __m256i b0 = _mm256_shuffle_epi8(half0, c1);
    const __m256i b1 = _mm256_shuffle_epi8(half1, c1);
    t[0] = _mm256_add_epi32(
        _mm256_madd_epi16(_mm256_unpacklo_epi8(a0, a1), load_x(x, 0)),
        _mm256_madd_epi16(_mm256_unpacklo_epi8(b0, b1), load_x(x, 2)));
    t[1] = _mm256_add_epi32(
        _mm256_madd_epi16(_mm256_unpackhi_epi8(a0, a1), load_x(x, 1)),
        _mm256_madd_epi16(_mm256_unpackhi_epi8(b0, b1), load_x(x, 3)));
}

/* A group of a line onto its sum. */
AVX2_INLINE __m256 add_group4(__m256i half0, __m256i half1, __m256i low,
                              const lb_gemvq_rows *r, int i, int64_t g,
                              int unit, __m256 sum)
{
    __m256i t[2];
    __m256 s[2];
    group4(half0, half1, low, load_codes(r->codes[i] + 32 * g),
           (const int16_t *)r->x + 64 * g, t);
    spread_units(r->scale[i], g, unit, r->shift, s);
    if (unit > 16) {
        const __m256i both = _mm256_add_epi32(t[0], t[1]);
        return _mm256_fmadd_ps(_mm256_cvtepi32_ps(both), s[0], sum);
    }
    sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(t[0]), s[0], sum);
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(t[1]), s[1], sum);
}

AVX2_INLINE void all4(const lb_gemvq_rows *r, float *y, int unit)
{
    enum { PER = LB_GEMVQ_I16_PANEL / 64 };
    const __m256i half0 = load_twice(r->table->half[0]);
    const __m256i half1 = load_twice(r->table->half[1]);
    const __m256i low = _mm256_set1_epi8(15);
    __m256 a[R];
    LB_UNROLL
    for (int i = 0; i < R; i++)
        a[i] = _mm256_setzero_ps();
    for (int64_t g = 0, p = 0; g < r->groups; p++) {
        const int64_t end = r->groups - g < PER ? r->groups : g + PER;
        const __m256 x_scale = _mm256_broadcast_ss(r->x_scale + p);
        __m256 t[R];
        LB_UNROLL
        for (int i = 0; i < R; i++)
            t[i] = _mm256_setzero_ps();
        for (; g < end; g++) {
            LB_UNROLL
            for (int i = 0; i < R; i++) {
                t[i] = add_group4(half0, half1, low, r, i, g, unit, t[i]);
                LB_KEEP(t[i]);
            }
        }
        LB_UNROLL
        for (int i = 0; i < R; i++)
            a[i] = _mm256_fmadd_ps(t[i], x_scale, a[i]);
    }
    _mm_storeu_ps(y, _mm_mul_ps(fold4(a[0], a[1], a[2], a[3]),
                                _mm_set1_ps(r->table->half_unit)));
}

AVX2 static void rows4_64(const lb_gemvq_rows *r, float *y)
{
    all4(r, y, 64);
}
AVX2 static void rows4_32(const lb_gemvq_rows *r, float *y)
{
    all4(r, y, 32);
}
AVX2 static void rows4_16(const lb_gemvq_rows *r, float *y)
{
    all4(r, y, 16);
}

/* ---- 2 bits or 1 ------------------------------------------------------- */

AVX2_INLINE void add_pairs(__m256i *sum, __m256i codes, __m256i x)
{
    *sum = _mm256_add_epi16(*sum, _mm256_maddubs_epi16(codes, x));
    LB_KEEP(*sum);
}

/* The sums over groups [g, end) of `lines` lines from line i on. */
AVX2_INLINE void signs_panel(const lb_gemvq_rows *r, int i, int lines,
                             int64_t g, int64_t end, int bits, bool two,
                             __m256i *sum)
{
    const int fields = 8 / bits;
    const __m256i mask = _mm256_set1_epi8((char)((1 << bits) - 1));
    const __m256i *x = (const __m256i *)r->x + g * fields * (two ? 2 : 1);
    __m256i high[R], low[R];
    LB_UNROLL
    for (int l = 0; l < lines; l++)
        high[l] = low[l] = _mm256_setzero_si256();
    for (; g < end; g++, x += fields * (two ? 2 : 1)) {
        __m256i v[R];
        LB_UNROLL
        for (int l = 0; l < lines; l++) {
            v[l] = load_codes(r->codes[i + l] + 32 * g);
            LB_KEEP(v[l]);
        }
        LB_UNROLL
        for (int f = 0; f < fields; f++) {
            LB_UNROLL
            for (int l = 0; l < lines; l++) {
                const __m256i c =
                    _mm256_and_si256(_mm256_srli_epi16(v[l], bits * f), mask);
                add_pairs(&high[l], c, load_x(x, two ? 2 * f : f));
                if (two) add_pairs(&low[l], c, load_x(x, 2 * f + 1));
            }
        }
    }
    LB_UNROLL
    for (int l = 0; l < lines; l++) {
        sum[l] = _mm256_madd_epi16(high[l], _mm256_set1_epi16(two ? 256 : 1));
        if (two)
            sum[l] = _mm256_add_epi32(
                sum[l], _mm256_madd_epi16(low[l], _mm256_set1_epi16(1)));
    }
}

/* As many lines together as have room for their sums in registers. */
AVX2_INLINE void signs(const lb_gemvq_rows *r, float *y, int bits, bool two)
{
    const int64_t per = LB_GEMVQ_I8_PANEL / (256 / bits);
    const __m128i step = _mm_set1_epi32(r->table->step);
    __m128 sum = _mm_setzero_ps();
    for (int64_t g = 0, p = 0; g < r->groups; g += per, p++) {
        const int64_t end = r->groups - g < per ? r->groups : g + per;
        __m256i t[R];
        LB_UNROLL
        for (int i = 0; i < R; i += two ? 2 : R)
            signs_panel(r, i, two ? 2 : R, g, end, bits, two, t + i);
        const __m128i least = _mm_set1_epi32(r->table->least * r->x_sum[p]);
        const __m128i whole = _mm_add_epi32(
            _mm_mullo_epi32(fold4_i32(t[0], t[1], t[2], t[3]), step), least);
        sum = _mm_add_ps(sum, _mm_mul_ps(_mm_cvtepi32_ps(whole),
                                         _mm_set1_ps(r->x_scale[p])));
    }
    _mm_storeu_ps(y, sum);
}

AVX2 static void rows2_i8x2(const lb_gemvq_rows *r, float *y)
{
    signs(r, y, 2, true);
}
AVX2 static void rows2_i8(const lb_gemvq_rows *r, float *y)
{
    signs(r, y, 2, false);
}
AVX2 static void rows1_i8x2(const lb_gemvq_rows *r, float *y)
{
    signs(r, y, 1, true);
}
AVX2 static void rows1_i8(const lb_gemvq_rows *r, float *y)
{
    signs(r, y, 1, false);
}

#define NF4_ORDER                                                              \
    {                                                                          \
        {8, 2, 2, 2},                                                          \
        {                                                                      \
            2, 32, 16, 1                                                       \
        }                                                                      \
    }

const lb_gemvq_kernel lb_gemvq_rows_int_avx2[] = {
    {"gemv q8 i16 avx2",
     8,
     LB_GEMVQ_I16,
     32,
     0,
     1,
     {{16, 2}, {2, 1}},
     .rows = rows8},
    {"gemv q4 i16 avx2", 4, LB_GEMVQ_I16, 64, 64, 1, NF4_ORDER,
     .rows = rows4_64},
    {"gemv q4 i16 avx2", 4, LB_GEMVQ_I16, 64, 32, 1, NF4_ORDER,
     .rows = rows4_32},
    {"gemv q4 i16 avx2", 4, LB_GEMVQ_I16, 64, 16, 1, NF4_ORDER,
     .rows = rows4_16},
    {"gemv q2 i8x2 avx2",
     2,
     LB_GEMVQ_I8X2,
     128,
     0,
     1,
     {{32, 4}, {4, 1}},
     .rows = rows2_i8x2},
    {"gemv q1 i8x2 avx2",
     1,
     LB_GEMVQ_I8X2,
     256,
     0,
     1,
     {{32, 8}, {8, 1}},
     .rows = rows1_i8x2},
    {"gemv q2 i8 avx2",
     2,
     LB_GEMVQ_I8,
     128,
     0,
     1,
     {{32, 4}, {4, 1}},
     .rows = rows2_i8},
    {"gemv q1 i8 avx2",
     1,
     LB_GEMVQ_I8,
     256,
     0,
     1,
     {{32, 8}, {8, 1}},
     .rows = rows1_i8},
    {0},
};
#endif
