/* attend_avx512.c - see attend.h; 16 floats to a register.
 *
 * mix keeps a block of c in registers while it goes through the rows of v:
 * 1 row of 128 floats, 2 of 128, 4 of 64 or 6 of 64.
 */
#include "kernels/attend.h"

#if defined(__x86_64__)
#include <math.h>
#include <string.h>

#include "kernels/x86/intrin.h"

#define TARGET  LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq")
#define LANE_FN TARGET LB_INLINE
enum { W = 16 };
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

/* The first n of 16 lanes. */
TARGET
LB_INLINE __mmask16 lanes(int n)
{
    return (__mmask16)((1u << n) - 1);
}

/* One block of c: rows and vectors are constants where this is inlined. */
TARGET
LB_INLINE void block(const int rows, const int vectors, int64_t n,
                     const float *p, int64_t ldp, const float *v, int64_t ldv,
                     float *c, int64_t ldc)
{
    __m512 acc[6][8];
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        LB_UNROLL
    for (int k = 0; k < vectors; k++)
        acc[i][k] = _mm512_loadu_ps(c + i * ldc + k * W);
    for (int64_t j = 0; j < n; j++) {
        LB_UNROLL
        for (int k = 0; k < vectors; k++) {
            const __m512 x = _mm512_loadu_ps(v + j * ldv + k * W);
            LB_UNROLL
            for (int i = 0; i < rows; i++)
                acc[i][k] = _mm512_fmadd_ps(_mm512_set1_ps(p[i * ldp + j]), x,
                                            acc[i][k]);
        }
    }
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        LB_UNROLL
    for (int k = 0; k < vectors; k++)
        _mm512_storeu_ps(c + i * ldc + k * W, acc[i][k]);
}

/* Fewer than W columns. */
TARGET
static void edge(int m, int64_t n, int64_t left, const float *p, int64_t ldp,
                 const float *v, int64_t ldv, float *c, int64_t ldc)
{
    const __mmask16 mask = lanes((int)left);
    for (int i = 0; i < m; i++) {
        __m512 acc = _mm512_maskz_loadu_ps(mask, c + i * ldc);
        for (int64_t j = 0; j < n; j++)
            acc =
                _mm512_fmadd_ps(_mm512_set1_ps(p[i * ldp + j]),
                                _mm512_maskz_loadu_ps(mask, v + j * ldv), acc);
        _mm512_mask_storeu_ps(c + i * ldc, mask, acc);
    }
}

/* All columns of some rows. */
TARGET
LB_INLINE void strip(const int rows, const int vectors, int64_t n, int64_t dim,
                     const float *p, int64_t ldp, const float *v, int64_t ldv,
                     float *c, int64_t ldc)
{
    int64_t d = 0;
    for (; d + vectors * W <= dim; d += vectors * W)
        block(rows, vectors, n, p, ldp, v + d, ldv, c + d, ldc);
    for (; d + W <= dim; d += W)
        block(rows, 1, n, p, ldp, v + d, ldv, c + d, ldc);
    if (d < dim) edge(rows, n, dim - d, p, ldp, v + d, ldv, c + d, ldc);
}

TARGET
static void mix(int64_t m, int64_t n, int64_t dim, const float *p, int64_t ldp,
                const float *v, int64_t ldv, float *c, int64_t ldc)
{
    int64_t i = 0;
    for (; i + 6 <= m; i += 6)
        strip(6, 4, n, dim, p + i * ldp, ldp, v, ldv, c + i * ldc, ldc);
    for (; i + 4 <= m; i += 4)
        strip(4, 4, n, dim, p + i * ldp, ldp, v, ldv, c + i * ldc, ldc);
    for (; i + 2 <= m; i += 2)
        strip(2, 8, n, dim, p + i * ldp, ldp, v, ldv, c + i * ldc, ldc);
    if (i < m) strip(1, 8, n, dim, p + i * ldp, ldp, v, ldv, c + i * ldc, ldc);
}

/* Sums and maxima fold in halves: (l, l + 8), (l, l + 4), ... */
LANE_FN float fold_max(__m512 x)
{
    const __m256 y =
        _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 m =
        _mm_max_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}

LANE_FN float fold_sum(__m256 y)
{
    __m128 m =
        _mm_add_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    m = _mm_add_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_add_ss(m, _mm_shuffle_ps(m, m, 1)));
}

TARGET
static float most(const float *x, int64_t n)
{
    __m512 m = _mm512_set1_ps(-INFINITY), l = m;
    int64_t i = 0;
    /* The second operand is the result where the first is a NaN. */
    for (; i + 2 * W <= n; i += 2 * W) {
        m = _mm512_max_ps(_mm512_loadu_ps(x + i), m);
        l = _mm512_max_ps(_mm512_loadu_ps(x + i + W), l);
    }
    float r = fold_max(_mm512_max_ps(l, m));
    for (; i < n; i++)
        r = x[i] > r ? x[i] : r;
    return r;
}

TARGET
static void times(float *x, int64_t n, float by)
{
    const __m512 f = _mm512_set1_ps(by);
    int64_t i = 0;
    for (; i + W <= n; i += W)
        _mm512_storeu_ps(x + i, _mm512_mul_ps(_mm512_loadu_ps(x + i), f));
    for (; i < n; i++)
        x[i] *= by;
}

LANE_FN vf load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

TARGET
static float weigh(float *x, int64_t n, float most)
{
    enum { VECS = 16 / W };
    vf total[VECS] = {{0}};
    float lane[16];
    for (int64_t i = 0; i < n; i += 16) {
        const int64_t left = n - i < 16 ? n - i : 16;
        float *to = x + i;
        if (left < 16) {
            for (int l = 0; l < 16; l++)
                lane[l] = l < left ? to[l] : -INFINITY;
            to = lane;
        }
        for (int k = 0; k < VECS; k++) {
            const vf y = exp_of(load(to + k * W) - splat(most));
            total[k] += y;
            memcpy(to + k * W, &y, sizeof y);
        }
        if (left < 16) memcpy(x + i, lane, (size_t)left * sizeof *x);
    }
    return fold_sum(_mm256_add_ps(_mm512_castps512_ps256((__m512)total[0]),
                                  _mm512_extractf32x8_ps((__m512)total[0], 1)));
}

const lb_attend_kernel lb_attend_avx512 = {"attend avx512", mix, most, weigh,
                                           times};
#endif
