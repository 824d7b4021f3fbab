/* dotint_pack_avx2.c - ratios, and rows of panels of w, with AVX2. */
#include "kernels/dotint.h"

#if defined(__x86_64__)
#include <float.h>
#include <string.h>

#include "kernels/x86/dotint_codes_avx2.h"
#include "kernels/x86/dotint_pack.h"

/* ---- ratios -------------------------------------------------------------- */

LB_TARGET("avx2")
LB_INLINE __m256i first_lanes(int64_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

/* Eight parts, or the first n of them. */
LB_TARGET("avx2")
LB_INLINE __m128i ratios_8(__m256 scale, __m256 lift, __m256 factor)
{
    const __m256i r =
        _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_mul_ps(scale, lift), factor));
    return _mm_packs_epi32(_mm256_castsi256_si128(r),
                           _mm256_extracti128_si256(r, 1));
}

LB_TARGET("avx2")
LB_INLINE float largest_scale(int64_t n, const float *s)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    __m256i most = _mm256_setzero_si256();
    for (; n > 0; n -= 8, s += 8) {
        const __m256 v =
            n >= 8 ? _mm256_loadu_ps(s) : _mm256_maskload_ps(s, first_lanes(n));
        most = _mm256_max_epi32(most,
                                _mm256_and_si256(_mm256_castps_si256(v), mask));
    }
    return lb_largest_of_8(most);
}

LB_TARGET("avx2")
LB_INLINE float row_ratios(int64_t n, const float *scale, float top,
                           int16_t *ratio)
{
    const float most = largest_scale(n, scale);
    if (!(most > 0 && most <= FLT_MAX)) {
        memset(ratio, 0, (size_t)n * sizeof *ratio);
        return most;
    }
    const float lift = most < 0x1p-100f ? 0x1p100f : 1;
    const __m256 l = _mm256_set1_ps(lift);
    const __m256 f = _mm256_set1_ps(top / (most * lift));
    for (; n >= 8; n -= 8, scale += 8, ratio += 8)
        _mm_storeu_si128((__m128i *)(void *)ratio,
                         ratios_8(_mm256_loadu_ps(scale), l, f));
    if (n) {
        int16_t rest[8];
        const __m256 v = _mm256_maskload_ps(scale, first_lanes(n));
        _mm_storeu_si128((__m128i *)(void *)rest, ratios_8(v, l, f));
        memcpy(ratio, rest, (size_t)n * sizeof *ratio);
    }
    return most;
}

/* Rows of eight, which blocks of 64 in a panel of 512 make, need no loops. */
LB_TARGET("avx2")
void lb_ratios_avx2(int64_t rows, int64_t n, const float *scale, int64_t step,
                    float top, int16_t *ratio, int64_t apart, float *most)
{
    for (int64_t r = 0; r < rows; r++, scale += step, ratio += apart)
        most[r] = n == 8 ? row_ratios(8, scale, top, ratio)
                         : row_ratios(n, scale, top, ratio);
}

/* ---- rows of panels ------------------------------------------------------ */

LB_TARGET("avx2")
LB_INLINE void pack_row(const form f, const lb_dotint_codes *w, int64_t j,
                        int16_t *to, lb_gaps gap)
{
    const tables t = tables_of(f, w);
    const __m256i slope = _mm256_set1_epi16((int16_t)slope_of(f, w));
    const __m256i least = _mm256_set1_epi16((int16_t)w->least);
    row at = row_of(f, w, j);
    for (int64_t left = w->depth; left > 0; left -= group_codes(f)) {
        __m256i v = next_group(f, &at, left);
        for (int i = 0; i < fields_of(f); i++, to += gap.next) {
            pair p = decode(f, &t, &v, at.now);
            if (is_line(f)) {
                p.a = _mm256_add_epi16(_mm256_mullo_epi16(p.a, slope), least);
                p.b = _mm256_add_epi16(_mm256_mullo_epi16(p.b, slope), least);
            }
            lb_put_16(to, p.a);
            lb_put_16(to + gap.second, p.b);
        }
    }
}

LB_TARGET("avx2")
static void pack(const lb_dotint_codes *w, int64_t j, int16_t *to, lb_gaps gap)
{
    switch (form_of(w)) {
    case FORM_BYTES:
        pack_row(FORM_BYTES, w, j, to, gap);
        break;
    case FORM_FIELD:
        pack_row(FORM_FIELD, w, j, to, gap);
        break;
    case FORM_FIELDS_4:
        pack_row(FORM_FIELDS_4, w, j, to, gap);
        break;
    case FORM_FIELDS_2:
        pack_row(FORM_FIELDS_2, w, j, to, gap);
        break;
    case FORM_BITS:
        pack_row(FORM_BITS, w, j, to, gap);
        break;
    case FORM_FINE_BYTES:
        pack_row(FORM_FINE_BYTES, w, j, to, gap);
        break;
    case FORM_FINE_FIELD:
        pack_row(FORM_FINE_FIELD, w, j, to, gap);
        break;
    case FORM_FINE_FIELDS:
        pack_row(FORM_FINE_FIELDS, w, j, to, gap);
        break;
    case FORM_WORDS:
    case FORM_FINE_WORDS: /* are rows of panels */
        break;
    }
}

void lb_pack_avx2(const lb_dotint_codes *w, int64_t j, int16_t *to,
                  int64_t apart)
{
    pack(w, j, to, lb_gaps_16(apart));
}

void lb_pack_avx2_32(const lb_dotint_codes *w, int64_t j, int16_t *to,
                     int64_t apart)
{
    pack(w, j, to, lb_gaps_32(apart));
}
#endif
