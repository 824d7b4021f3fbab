/* lanes_f32_avx2.c - elementwise functions of f32 with AVX2, eight at once.
 * No FMA, though the level has it: it would not give the reference's bits.
 */
#include "kernels/lanes_f32.h"

#if defined(__x86_64__)
#include <math.h>
#include <string.h>

#include "kernels/x86/intrin.h"

#define LANE_FN    LB_TARGET("avx2") LB_INLINE
#define LANE_RUN   LB_TARGET("avx2") static
#define LANE_TABLE lb_lanes_f32_avx2
#define LANE_NAME  "lanes avx2"
typedef float vf __attribute__((vector_size(32)));
typedef int32_t vi __attribute__((vector_size(32)));
typedef uint32_t vu __attribute__((vector_size(32)));
/* A NaN in x gives y, as in the functions that these replace. */
#define LANE_MIN(x, y) ((vf)_mm256_min_ps((__m256)(x), (__m256)(y)))
#define LANE_MAX(x, y) ((vf)_mm256_max_ps((__m256)(x), (__m256)(y)))
/* The fourth bit of i selects the half. */
#define LANE_LOOKUP(table, i)                                                  \
    ((vf)_mm256_blendv_ps(                                                     \
        _mm256_permutevar8x32_ps(_mm256_load_ps(table), (__m256i)(i)),         \
        _mm256_permutevar8x32_ps(_mm256_load_ps((table) + 8), (__m256i)(i)),   \
        _mm256_castsi256_ps(_mm256_slli_epi32((__m256i)(i), 28))))
#include "kernels/mathf_lanes.h"

LANE_FN vf root_of(vf x)
{
    return (vf)_mm256_sqrt_ps((__m256)x);
}

LANE_FN __m128 inverse_root_of_half(__m128 x)
{
    const __m256d root = _mm256_sqrt_pd(_mm256_cvtps_pd(x));
    return _mm256_cvtpd_ps(_mm256_div_pd(_mm256_set1_pd(1.0), root));
}

LANE_FN vf inverse_root_of(vf x)
{
    const __m256 v = (__m256)x;
    const __m128 lo = inverse_root_of_half(_mm256_castps256_ps128(v));
    const __m128 hi = inverse_root_of_half(_mm256_extractf128_ps(v, 1));
    return (vf)_mm256_insertf128_ps(_mm256_castps128_ps256(lo), hi, 1);
}

LANE_FN vi load_bools(const uint8_t *p)
{
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return (vi)_mm256_cvtepu8_epi32(bytes) != 0;
}

/* Packing goes by halves of the registers, which leaves groups of four in the
 * order a0 b0 c0 d0 a1 b1 c1 d1. */
LANE_FN void store_bools(uint8_t *to, vi a, vi b, vi c, vi d)
{
    const __m256i ab = _mm256_packs_epi32((__m256i)a, (__m256i)b);
    const __m256i cd = _mm256_packs_epi32((__m256i)c, (__m256i)d);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i all =
        _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd), order);
    _mm256_storeu_si256((__m256i *)(void *)to,
                        _mm256_and_si256(all, _mm256_set1_epi8(1)));
}

#include "kernels/lanes_f32_loops.h"
#endif
