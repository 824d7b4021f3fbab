/* attend_avx2.c - see attend.h; 8 floats to a register.
 *
 * mix keeps a block of c in registers while it goes through the rows of v:
 * 1 row of 64 floats, 2 of 32, 4 of 16 or 6 of 16.
 */
#include "kernels/attend.h"

#if defined(__x86_64__)
#include <math.h>

#include "kernels/x86/intrin.h"

#define TARGET  LB_TARGET("avx2,fma")
#define LANE_FN TARGET LB_INLINE
enum { W = 8, COLS_1 = 8, COLS_2 = 4, COLS_4 = 2, COLS_6 = 2 };
typedef float vf __attribute__((vector_size(4 * W)));
typedef int32_t vi __attribute__((vector_size(4 * W)));
typedef uint32_t vu __attribute__((vector_size(4 * W)));
/* As in lanes_f32_avx2.c. */
#define LANE_MIN(x, y) ((vf)_mm256_min_ps((__m256)(x), (__m256)(y)))
#define LANE_MAX(x, y) ((vf)_mm256_max_ps((__m256)(x), (__m256)(y)))
#include "kernels/mathf_lanes.h"

typedef __m256 reg;
#define reg_load  _mm256_loadu_ps
#define reg_store _mm256_storeu_ps
#define reg_set   _mm256_set1_ps
#define reg_fma   _mm256_fmadd_ps
#define reg_mul   _mm256_mul_ps
#define reg_max   _mm256_max_ps
typedef __m256i some;
#define reg_load_some(p, mask)     _mm256_maskload_ps(p, mask)
#define reg_store_some(p, mask, x) _mm256_maskstore_ps(p, mask, x)

/* The first n of 8 lanes. */
LANE_FN some first(int n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane);
}

/* Of 16 lanes, l and l + 8 together. */
LANE_FN __m256 half_max(reg x)
{
    return x;
}

LANE_FN __m256 half_sum(const vf *total)
{
    return (__m256)(total[0] + total[1]);
}

#include "kernels/x86/attend_loops.h"

const lb_attend_kernel lb_attend_avx2 = {"attend avx2", mix, most, weigh,
                                         times};
#endif
