/* lanes_f32_avx512.c - elementwise functions of f32 with AVX-512, sixteen at
 * once. No FMA, though the level has it: it would not give the reference's
 * bits.
 */
#include "kernels/lanes_f32.h"

#if defined(__x86_64__)
#include <math.h>
#include <string.h>

#include "kernels/x86/intrin.h"

#define LANE_FN    LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq") LB_INLINE
#define LANE_RUN   LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq") static
#define LANE_TABLE lb_lanes_f32_avx512
#define LANE_NAME  "lanes avx512"
typedef float vf __attribute__((vector_size(64)));
typedef int32_t vi __attribute__((vector_size(64)));
typedef uint32_t vu __attribute__((vector_size(64)));
typedef uint8_t vb __attribute__((vector_size(16)));
typedef float half_f __attribute__((vector_size(32)));
typedef double half_d __attribute__((vector_size(64)));
/* A NaN in x gives y, as in the functions that these replace; scalef rounds
 * once. */
#define LANE_MIN(x, y) ((vf)_mm512_min_ps((__m512)(x), (__m512)(y)))
#define LANE_MAX(x, y) ((vf)_mm512_max_ps((__m512)(x), (__m512)(y)))
#define LANE_LOOKUP(table, i)                                                  \
    ((vf)_mm512_permutexvar_ps((__m512i)(i), _mm512_load_ps(table)))
#ifndef LB_SIMDE /* which does not round it */
#define LANE_SCALE(y, k) ((vf)_mm512_scalef_ps((__m512)(y), (__m512)(k)))
#endif
#include "kernels/mathf_lanes.h"

LANE_FN vf root_of(vf x)
{
    __m512 v;
    memcpy(&v, &x, sizeof v);
    v = _mm512_sqrt_ps(v);
    memcpy(&x, &v, sizeof x);
    return x;
}

LANE_FN void inverse_root_of_half(float *x)
{
    half_f f;
    half_d d;
    __m512d root;
    memcpy(&f, x, sizeof f);
    d = __builtin_convertvector(f, half_d);
    memcpy(&root, &d, sizeof root);
    root = _mm512_sqrt_pd(root);
    memcpy(&d, &root, sizeof d);
    f = __builtin_convertvector(1.0 / d, half_f);
    memcpy(x, &f, sizeof f);
}

LANE_FN vf inverse_root_of(vf x)
{
    float half[2][8];
    memcpy(half, &x, sizeof half);
    inverse_root_of_half(half[0]);
    inverse_root_of_half(half[1]);
    memcpy(&x, half, sizeof x);
    return x;
}

LANE_FN vi load_bools(const uint8_t *p)
{
    vb bytes;
    memcpy(&bytes, p, sizeof bytes);
    return __builtin_convertvector(bytes, vi) != 0;
}

LANE_FN void store_16(uint8_t *to, vi mask)
{
    const vb bytes = __builtin_convertvector(mask & 1, vb);
    memcpy(to, &bytes, sizeof bytes);
}

LANE_FN void store_bools(uint8_t *to, vi a, vi b, vi c, vi d)
{
    store_16(to, a);
    store_16(to + 16, b);
    store_16(to + 32, c);
    store_16(to + 48, d);
}

#include "kernels/lanes_f32_loops.h"
#endif
