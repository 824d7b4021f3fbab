/* apart_avx512.c - distances of numbers with AVX-512; see kernels/apart.h. */
#include "kernels/apart.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define AVX512 LB_TARGET("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")

enum { LANES = LB_APART_LANES, BLOCK = LB_APART_BLOCK };
enum { AA, BB, AB, DD, SUMS };

/* Of f64: the first eight lanes, and the others. */
typedef struct {
    __m512d low, high;
} wide;

AVX512 LB_INLINE bool is_tame(__m512 sum)
{
    return _mm512_cmp_ps_mask(sum, _mm512_set1_ps(LB_APART_MOST), _CMP_LT_OQ) ==
               0xffff &&
           _mm512_cmp_ps_mask(sum, _mm512_set1_ps(LB_APART_LEAST),
                              _CMP_GT_OQ) != 0;
}

AVX512 LB_INLINE void widen(__m512 sum, wide *to)
{
    to->low =
        _mm512_add_pd(to->low, _mm512_cvtps_pd(_mm512_castps512_ps256(sum)));
    to->high = _mm512_add_pd(to->high,
                             _mm512_cvtps_pd(_mm512_extractf32x8_ps(sum, 1)));
}

/* apart and max go on from what they are. */
AVX512 LB_INLINE void add_block(const float *a, const float *b, __m512 *sum,
                                __m512i *apart, __m512 *max)
{
    LB_UNROLL for (int q = 0; q < SUMS; q++) sum[q] = _mm512_setzero_ps();
    LB_UNROLL for (int i = 0; i < BLOCK; i += LANES)
    {
        const __m512 x = _mm512_loadu_ps(a + i), y = _mm512_loadu_ps(b + i);
        const __m512 e = _mm512_abs_ps(_mm512_sub_ps(x, y));
        sum[AA] = _mm512_add_ps(sum[AA], _mm512_mul_ps(x, x));
        sum[BB] = _mm512_add_ps(sum[BB], _mm512_mul_ps(y, y));
        sum[AB] = _mm512_add_ps(sum[AB], _mm512_mul_ps(x, y));
        sum[DD] = _mm512_add_ps(sum[DD], _mm512_mul_ps(e, e));
        *max = _mm512_max_ps(*max, e);
        *apart =
            _mm512_mask_add_epi32(*apart, _mm512_cmp_ps_mask(x, y, _CMP_NEQ_UQ),
                                  *apart, _mm512_set1_epi32(1));
    }
}

AVX512 LB_INLINE double joined(double start, const wide *w)
{
    double lane[LANES];
    _mm512_storeu_pd(lane, w->low);
    _mm512_storeu_pd(lane + 8, w->high);
    for (int k = 0; k < LANES; k++)
        start += lane[k];
    return start;
}

AVX512 void lb_apart_avx512(const float *a, const float *b, int64_t n,
                            lb_apart *to)
{
    wide all[SUMS];
    LB_UNROLL for (int q = 0; q < SUMS; q++) all[q].low = all[q].high =
        _mm512_setzero_pd();
    __m512i apart = _mm512_setzero_si512();
    __m512 max = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += BLOCK) {
        __m512 sum[SUMS], most = max;
        __m512i more = apart;
        add_block(a + i, b + i, sum, &more, &most);
        if (!is_tame(sum[AA]) || !is_tame(sum[BB])) {
            lb_apart_wild(a + i, b + i, to);
            continue;
        }
        apart = more;
        max = most;
        LB_UNROLL for (int q = 0; q < SUMS; q++) widen(sum[q], &all[q]);
    }
    to->aa = joined(to->aa, &all[AA]);
    to->bb = joined(to->bb, &all[BB]);
    to->ab = joined(to->ab, &all[AB]);
    to->dd = joined(to->dd, &all[DD]);
    int32_t count[LANES];
    _mm512_storeu_si512((void *)count, apart);
    for (int k = 0; k < LANES; k++)
        to->apart += count[k];
    const double most = (double)_mm512_reduce_max_ps(max);
    if (most > to->max) to->max = most;
}
#endif
