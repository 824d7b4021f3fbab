/* reduce_avx2.c - sum, prod, max and min of f32 with AVX2.
 *
 * vmaxps gives its second operand where one is a NaN or both are zeros. So the
 * two ways round give both operands there: together their bits are a zero
 * with a minus only if both have one, and a NaN is put back. The other way
 * with vminps, where either bit will do for zeros, and NaNs stay NaNs.
 */
#include "kernels/reducer.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/intrin.h"

#define REDUCE_FN           LB_TARGET("avx2") static
#define VBYTES              32
#define SUM(a, b)           ((a) + (b))
#define PROD(a, b)          ((a) * (b))
#define MAX(a, b)           ((vf)larger((__m256)(a), (__m256)(b)))
#define MIN(a, b)           ((vf)smaller((__m256)(a), (__m256)(b)))
#define LOAD_SOME(p, n, r)  ((vf)some(p, n, (__m256)(r)))
#define OTHER_HALF(b, a, n) ((b) = (vf)other_half((__m256)(a), n))
typedef float vf __attribute__((vector_size(32)));

LB_TARGET("avx2") LB_INLINE __m256 larger(__m256 a, __m256 b)
{
    const __m256 x = _mm256_max_ps(a, b), y = _mm256_max_ps(b, a);
    return _mm256_or_ps(_mm256_and_ps(x, y), _mm256_cmp_ps(x, y, _CMP_UNORD_Q));
}

LB_TARGET("avx2") LB_INLINE __m256 smaller(__m256 a, __m256 b)
{
    return _mm256_or_ps(_mm256_min_ps(a, b), _mm256_min_ps(b, a));
}

/* n is a constant where this is inlined. */
LB_TARGET("avx2") LB_INLINE __m256 other_half(__m256 a, const size_t n)
{
    return n == 16  ? _mm256_permute2f128_ps(a, a, 1)
           : n == 8 ? _mm256_permute_ps(a, 0x4e)
                    : _mm256_permute_ps(a, 0xb1);
}

LB_TARGET("avx2") LB_INLINE __m256 some(const float *p, int64_t n, __m256 rest)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i on = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
    return _mm256_blendv_ps(rest, _mm256_maskload_ps(p, on),
                            _mm256_castsi256_ps(on));
}

#define T       float
#define OP      SUM
#define NAME(x) x##_sum
#include "kernels/reduce_lanes.h"
#define T       float
#define OP      PROD
#define NAME(x) x##_prod
#include "kernels/reduce_lanes.h"
#define T       float
#define OP      MAX
#define NAME(x) x##_max
#include "kernels/reduce_lanes.h"
#define T       float
#define OP      MIN
#define NAME(x) x##_min
#include "kernels/reduce_lanes.h"

const lb_reducer *const lb_reducers_f32_avx2[LB_REDUCE_OR + 1] = {
    [LB_REDUCE_SUM] = &reducer_sum,
    [LB_REDUCE_PROD] = &reducer_prod,
    [LB_REDUCE_MAX] = &reducer_max,
    [LB_REDUCE_MIN] = &reducer_min,
};
#endif
