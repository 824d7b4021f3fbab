/* apart_avx2.c - distances of numbers with AVX2; see kernels/apart.h. Eight
 * lanes of a block, then the other eight: so all sums stay in registers. */
#include "kernels/apart.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define AVX2 LB_TARGET("avx2,fma,f16c")

enum { LANES = LB_APART_LANES, BLOCK = LB_APART_BLOCK, HALF = 8 };
enum { AA, BB, AB, DD, SUMS };

typedef struct {
    __m256 sum[SUMS], max;
    __m256i apart;
} half;

AVX2 LB_INLINE void add_half(const float *a, const float *b, half *h)
{
    __m256 sum[SUMS], max = h->max;
    __m256i apart = h->apart;
    LB_UNROLL for (int q = 0; q < SUMS; q++) sum[q] = _mm256_setzero_ps();
    LB_UNROLL for (int i = 0; i < BLOCK; i += LANES)
    {
        const __m256 x = _mm256_loadu_ps(a + i), y = _mm256_loadu_ps(b + i);
        const __m256 e =
            _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_sub_ps(x, y));
        sum[AA] = _mm256_add_ps(sum[AA], _mm256_mul_ps(x, x));
        sum[BB] = _mm256_add_ps(sum[BB], _mm256_mul_ps(y, y));
        sum[AB] = _mm256_add_ps(sum[AB], _mm256_mul_ps(x, y));
        sum[DD] = _mm256_add_ps(sum[DD], _mm256_mul_ps(e, e));
        max = _mm256_max_ps(max, e);
        apart = _mm256_sub_epi32(
            apart, _mm256_castps_si256(_mm256_cmp_ps(x, y, _CMP_NEQ_UQ)));
    }
    LB_UNROLL for (int q = 0; q < SUMS; q++) h->sum[q] = sum[q];
    h->max = max;
    h->apart = apart;
}

AVX2 LB_INLINE bool are_tame(__m256 a, __m256 b)
{
    const __m256 most = _mm256_set1_ps(LB_APART_MOST);
    const __m256 least = _mm256_set1_ps(LB_APART_LEAST);
    const __m256 all = _mm256_and_ps(_mm256_cmp_ps(a, most, _CMP_LT_OQ),
                                     _mm256_cmp_ps(b, most, _CMP_LT_OQ));
    const __m256 some = _mm256_or_ps(_mm256_cmp_ps(a, least, _CMP_GT_OQ),
                                     _mm256_cmp_ps(b, least, _CMP_GT_OQ));
    return _mm256_movemask_ps(all) == 0xff && _mm256_movemask_ps(some);
}

AVX2 LB_INLINE void widen(__m256 sum, double *to)
{
    const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(sum));
    const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(sum, 1));
    _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), low));
    _mm256_storeu_pd(to + 4, _mm256_add_pd(_mm256_loadu_pd(to + 4), high));
}

AVX2 static void join(const half *h, lb_apart *to)
{
    float most[HALF];
    int32_t count[HALF];
    _mm256_storeu_ps(most, h->max);
    _mm256_storeu_si256((__m256i *)(void *)count, h->apart);
    for (int k = 0; k < HALF; k++) {
        to->apart += count[k];
        if ((double)most[k] > to->max) to->max = (double)most[k];
    }
}

AVX2 void lb_apart_avx2(const float *a, const float *b, int64_t n, lb_apart *to)
{
    double all[SUMS][LANES] = {{0}};
    half kept[2];
    LB_UNROLL for (int j = 0; j < 2; j++)
    {
        kept[j].max = _mm256_setzero_ps();
        kept[j].apart = _mm256_setzero_si256();
    }
    for (int64_t i = 0; i < n; i += BLOCK) {
        half h[2] = {kept[0], kept[1]};
        add_half(a + i, b + i, &h[0]);
        add_half(a + i + HALF, b + i + HALF, &h[1]);
        if (!are_tame(h[0].sum[AA], h[1].sum[AA]) ||
            !are_tame(h[0].sum[BB], h[1].sum[BB])) {
            lb_apart_wild(a + i, b + i, to);
            continue;
        }
        LB_UNROLL for (int j = 0; j < 2; j++)
        {
            kept[j] = h[j];
            LB_UNROLL for (int q = 0; q < SUMS; q++)
                widen(h[j].sum[q], all[q] + j * HALF);
        }
    }
    for (int k = 0; k < LANES; k++) {
        to->aa += all[AA][k];
        to->bb += all[BB][k];
        to->ab += all[AB][k];
        to->dd += all[DD][k];
    }
    join(&kept[0], to);
    join(&kept[1], to);
}
#endif
