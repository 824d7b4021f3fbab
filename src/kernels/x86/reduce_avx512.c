/* reduce_avx512.c - max and min of f32 with AVX-512.
 *
 * vrangeps takes +0 for larger than -0, and a number for larger than a NaN,
 * which is put back. Sums and products are those of AVX2: their lanes are a
 * single chain of additions at either width, but the order of max and min does
 * not matter, so that four chains run at once.
 */
#include "kernels/reducer.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/intrin.h"

#define AVX512    "avx512f,avx512bw,avx512vl,avx512dq"
#define REDUCE_FN LB_TARGET(AVX512) static
#define VBYTES    64
#define ANY_ORDER
#define MAX(a, b)           ((vf)larger((__m512)(a), (__m512)(b)))
#define MIN(a, b)           ((vf)smaller((__m512)(a), (__m512)(b)))
#define LOAD_SOME(p, n, r)  ((vf)some(p, n, (__m512)(r)))
#define OTHER_HALF(b, a, n) ((b) = (vf)other_half((__m512)(a), n))
typedef float vf __attribute__((vector_size(64)));

LB_TARGET(AVX512) LB_INLINE __m512 nan_if(__mmask16 any, __m512 x)
{
    return _mm512_castsi512_ps(
        _mm512_mask_set1_epi32(_mm512_castps_si512(x), any, -1));
}

#ifndef LB_SIMDE
#define LARGER(a, b)  _mm512_range_ps(a, b, 5)
#define SMALLER(a, b) _mm512_range_ps(a, b, 4)
#else /* which mistakes zeros; see reduce_avx2.c */
#define LARGER(a, b)  _mm512_and_ps(_mm512_max_ps(a, b), _mm512_max_ps(b, a))
#define SMALLER(a, b) _mm512_or_ps(_mm512_min_ps(a, b), _mm512_min_ps(b, a))
#endif

LB_TARGET(AVX512) LB_INLINE __m512 larger(__m512 a, __m512 b)
{
    return nan_if(_mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), LARGER(a, b));
}

LB_TARGET(AVX512) LB_INLINE __m512 smaller(__m512 a, __m512 b)
{
    return nan_if(_mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), SMALLER(a, b));
}

/* n is a constant where this is inlined. */
LB_TARGET(AVX512) LB_INLINE __m512 other_half(__m512 a, const size_t n)
{
    return n == 32   ? _mm512_shuffle_f32x4(a, a, 0x4e)
           : n == 16 ? _mm512_shuffle_f32x4(a, a, 0xb1)
           : n == 8  ? _mm512_permute_ps(a, 0x4e)
                     : _mm512_permute_ps(a, 0xb1);
}

LB_TARGET(AVX512) LB_INLINE __m512 some(const float *p, int64_t n, __m512 rest)
{
    return _mm512_mask_loadu_ps(rest, (__mmask16)((1u << n) - 1), p);
}

#define T       float
#define OP      MAX
#define NAME(x) x##_max
#include "kernels/reduce_lanes.h"
#define T       float
#define OP      MIN
#define NAME(x) x##_min
#include "kernels/reduce_lanes.h"

const lb_reducer *const lb_reducers_f32_avx512[LB_REDUCE_OR + 1] = {
    [LB_REDUCE_MAX] = &reducer_max,
    [LB_REDUCE_MIN] = &reducer_min,
};
#endif
