/* attend_avx512.c - see attend.h; 16 floats to a register.
 *
 * mix keeps a block of c in registers while it goes through the rows of v:
 * 1 row of 128 floats, 2 of 128, 4 of 64 or 6 of 64.
 */
#include "kernels/attend.h"

#if defined(__x86_64__)
#include <math.h>

#include "kernels/x86/intrin.h"

#define TARGET  LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq")
#define LANE_FN TARGET LB_INLINE
enum { W = 16, COLS_1 = 8, COLS_2 = 8, COLS_4 = 4, COLS_6 = 4 };
typedef float vf __attribute__((vector_size(4 * W)));
typedef int32_t vi __attribute__((vector_size(4 * W)));
typedef uint32_t vu __attribute__((vector_size(4 * W)));
/* As in lanes_f32_avx512.c. */
#define LANE_MIN(x, y) ((vf)_mm512_min_ps((__m512)(x), (__m512)(y)))
#define LANE_MAX(x, y) ((vf)_mm512_max_ps((__m512)(x), (__m512)(y)))
#ifndef LB_SIMDE /* which does not round it */
#define LANE_SCALE(y, k) ((vf)_mm512_scalef_ps((__m512)(y), (__m512)(k)))
#endif
#include "kernels/mathf_lanes.h"

typedef __m512 reg;
#define reg_load  _mm512_loadu_ps
#define reg_store _mm512_storeu_ps
#define reg_set   _mm512_set1_ps
#define reg_fma   _mm512_fmadd_ps
#define reg_mul   _mm512_mul_ps
#define reg_max   _mm512_max_ps
typedef __mmask16 some;
#define reg_load_some(p, mask)     _mm512_maskz_loadu_ps(mask, p)
#define reg_store_some(p, mask, x) _mm512_mask_storeu_ps(p, mask, x)

/* The first n of 16 lanes. */
LANE_FN some first(int n)
{
    return (__mmask16)((1u << n) - 1);
}

/* Lanes l and l + 8 together. */
LANE_FN __m256 half_max(reg x)
{
    return _mm256_max_ps(_mm512_castps512_ps256(x),
                         _mm512_extractf32x8_ps(x, 1));
}

LANE_FN __m256 half_sum(const vf *total)
{
    return _mm256_add_ps(_mm512_castps512_ps256((__m512)total[0]),
                         _mm512_extractf32x8_ps((__m512)total[0], 1));
}

#include "kernels/x86/attend_loops.h"

const lb_attend_kernel lb_attend_avx512 = {"attend avx512", mix, most, weigh,
                                           times};
#endif
