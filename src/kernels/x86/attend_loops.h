/* attend_loops.h - the loops of attend.h, for both widths of registers. Before
 * including it, a file defines TARGET and LANE_FN, W (floats of a register),
 * vf, exp_of and splat (mathf_lanes.h), reg and some (a register, and a mask of
 * its lanes) with the operations reg_*, and the registers of a row of mix:
 * COLS_1, COLS_2, COLS_4 and COLS_6 with that many rows at a
 * time.
 */
#ifndef LB_ATTEND_LOOPS_H
#define LB_ATTEND_LOOPS_H

#include <math.h>
#include <string.h>

#include "kernels/attend.h"
#include "kernels/x86/intrin.h"

/* One block of c: rows and vectors are constants where this is inlined. */
TARGET
LB_INLINE void block(const int rows, const int vectors, int64_t n,
                     const float *p, int64_t ldp, const float *v, int64_t ldv,
                     float *c, int64_t ldc)
{
    reg acc[6][8];
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        LB_UNROLL
    for (int k = 0; k < vectors; k++)
        acc[i][k] = reg_load(c + i * ldc + k * W);
    for (int64_t j = 0; j < n; j++) {
        LB_UNROLL
        for (int k = 0; k < vectors; k++) {
            const reg x = reg_load(v + j * ldv + k * W);
            LB_UNROLL
            for (int i = 0; i < rows; i++)
                acc[i][k] = reg_fma(reg_set(p[i * ldp + j]), x, acc[i][k]);
        }
    }
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        LB_UNROLL
    for (int k = 0; k < vectors; k++)
        reg_store(c + i * ldc + k * W, acc[i][k]);
}

/* Fewer than W columns. */
TARGET
static void edge(int m, int64_t n, int64_t left, const float *p, int64_t ldp,
                 const float *v, int64_t ldv, float *c, int64_t ldc)
{
    const some mask = first((int)left);
    for (int i = 0; i < m; i++) {
        reg acc = reg_load_some(c + i * ldc, mask);
        for (int64_t j = 0; j < n; j++)
            acc = reg_fma(reg_set(p[i * ldp + j]),
                          reg_load_some(v + j * ldv, mask), acc);
        reg_store_some(c + i * ldc, mask, acc);
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
        strip(6, COLS_6, n, dim, p + i * ldp, ldp, v, ldv, c + i * ldc, ldc);
    for (; i + 4 <= m; i += 4)
        strip(4, COLS_4, n, dim, p + i * ldp, ldp, v, ldv, c + i * ldc, ldc);
    for (; i + 2 <= m; i += 2)
        strip(2, COLS_2, n, dim, p + i * ldp, ldp, v, ldv, c + i * ldc, ldc);
    if (i < m)
        strip(1, COLS_1, n, dim, p + i * ldp, ldp, v, ldv, c + i * ldc, ldc);
}

/* Sums and maxima fold in halves: (l, l + 8), (l, l + 4), ... */
LANE_FN float fold_max(__m256 y)
{
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
    reg m = reg_set(-INFINITY), l = m;
    int64_t i = 0;
    /* The second operand is the result where the first is a NaN. */
    for (; i + 2 * W <= n; i += 2 * W) {
        m = reg_max(reg_load(x + i), m);
        l = reg_max(reg_load(x + i + W), l);
    }
    float r = fold_max(half_max(reg_max(l, m)));
    for (; i < n; i++)
        r = x[i] > r ? x[i] : r;
    return r;
}

TARGET
static void times(float *x, int64_t n, float by)
{
    const reg f = reg_set(by);
    int64_t i = 0;
    for (; i + W <= n; i += W)
        reg_store(x + i, reg_mul(reg_load(x + i), f));
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
    return fold_sum(half_sum(total));
}

#endif
