/* few_avx2.c - the 4x3 dot kernel for AVX2 with FMA.
 *
 *              w: 3 rows           12 accumulators of 8 lanes along the depth,
 *           +----+----+----+       three loads of w, one of x at a time: all
 *   x: 4    | r  | r  | r  |       16 registers. 12 FMAs against 7 loads per
 *   rows    +----+----+----+       step keep both FMA units busy.
 *
 * LB_KEEP holds what was loaded in its register: gcc would rather load it once
 * more for each FMA, and there are not enough loads in a cycle for that.
 */
#include "kernels/few.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define AVX2 LB_TARGET("avx2,fma")

enum { MANY = 3, LANES = 8 };

/* (l, l+4) of a in the lower half and of b in the upper one. */
AVX2 LB_INLINE __m256 fold_2(__m256 a, __m256 b)
{
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20),
                         _mm256_permute2f128_ps(a, b, 0x31));
}

/* The four sums of lanes, in order. */
AVX2 LB_INLINE __m128 fold_4(const __m256 *r)
{
    const __m256 ac = fold_2(r[0], r[2]), bd = fold_2(r[1], r[3]);
    const __m256 s =
        _mm256_add_ps(_mm256_unpacklo_ps(ac, bd), _mm256_unpackhi_ps(ac, bd));
    const __m128 lo = _mm256_castps256_ps128(s);
    const __m128 hi = _mm256_extractf128_ps(s, 1);
    return _mm_add_ps(_mm_movelh_ps(lo, hi), _mm_movehl_ps(hi, lo));
}

/* The last step, of fewer than 8: other lanes keep what they have. */
AVX2 LB_INLINE void last_step(const int h, const int n, const float *x,
                              const float *w, int64_t ldw, int left,
                              __m256 r[MANY][LB_FEW_ROWS])
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(left), lane);
    LB_UNROLL
    for (int j = 0; j < n; j++) {
        const __m256 v = _mm256_maskload_ps(w + j * ldw, mask);
        LB_UNROLL
        for (int i = 0; i < h; i++) {
            const __m256 s =
                _mm256_fmadd_ps(_mm256_loadu_ps(x + i * LANES), v, r[j][i]);
            r[j][i] = _mm256_blendv_ps(r[j][i], s, _mm256_castsi256_ps(mask));
        }
    }
}

LB_INLINE void fetch(uintptr_t at)
{
    __builtin_prefetch((const void *)at, 0, 3);
}

/* h and n are constants where this is inlined. */
AVX2 LB_INLINE void tile(const int h, const int n, int64_t k, const float *x,
                         const float *w, int64_t ldw, float *t, bool first,
                         lb_few_next next)
{
    __m256 r[MANY][LB_FEW_ROWS];
    LB_UNROLL
    for (int j = 0; j < MANY; j++) {
        LB_UNROLL
        for (int i = 0; i < LB_FEW_ROWS; i++)
            r[j][i] = _mm256_setzero_ps();
    }
    int64_t kk = LANES, at = 0;
    for (; kk <= k; kk += LANES) {
        __m256 v[MANY];
        LB_UNROLL
        for (int j = 0; j < n; j++) {
            if (next.at) fetch(next.at + (uintptr_t)(at + j * next.ld));
            v[j] = _mm256_loadu_ps(w + j * ldw);
            LB_KEEP(v[j]);
        }
        LB_UNROLL
        for (int i = 0; i < h; i++) {
            __m256 u = _mm256_loadu_ps(x + i * LANES);
            LB_KEEP(u);
            LB_UNROLL
            for (int j = 0; j < n; j++)
                r[j][i] = _mm256_fmadd_ps(u, v[j], r[j][i]);
        }
        x += h * LANES;
        w += LANES;
        at += next.step;
    }
    if (kk - k < LANES) last_step(h, n, x, w, ldw, (int)(k - kk + LANES), r);
    LB_UNROLL
    for (int j = 0; j < n; j++) {
        __m128 s = fold_4(r[j]);
        if (!first) s = _mm_add_ps(_mm_loadu_ps(t + j * LB_FEW_ROWS), s);
        _mm_storeu_ps(t + j * LB_FEW_ROWS, s);
    }
}

AVX2 LB_INLINE void rows(const int h, int64_t k, const float *x, const float *w,
                         int64_t ldw, int n, float *t, bool first,
                         lb_few_next next)
{
    const lb_few_next nothing = {0};
    if (n == MANY)
        tile(h, MANY, k, x, w, ldw, t, first, next);
    else
        for (int j = 0; j < n; j++)
            tile(h, 1, k, x, w + j * ldw, ldw, t + j * LB_FEW_ROWS, first,
                 nothing);
}

AVX2 static void dots(int h, int64_t k, const float *x, const float *w,
                      int64_t ldw, int n, float *t, bool first,
                      lb_few_next next)
{
    switch (h) {
    case 4:
        rows(4, k, x, w, ldw, n, t, first, next);
        return;
    case 3:
        rows(3, k, x, w, ldw, n, t, first, next);
        return;
    case 2:
        rows(2, k, x, w, ldw, n, t, first, next);
        return;
    default:
        rows(1, k, x, w, ldw, n, t, first, next);
    }
}

AVX2 static void add(int64_t n, float *to, const float *from)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        _mm256_storeu_ps(to + i, _mm256_add_ps(_mm256_loadu_ps(to + i),
                                               _mm256_loadu_ps(from + i)));
    for (; i < n; i++)
        to[i] += from[i];
}

AVX2 static void copy(const float *from, int64_t ld, int64_t n, int nr,
                      float *to, int64_t step, int64_t ahead)
{
    for (int64_t i = 0; i < n; i++, from += 2 * LANES, to += step) {
        LB_UNROLL
        for (int r = 0; r < LB_FEW_TOGETHER; r++) {
            const float *const p = from + r * ld;
            if (ahead) LB_FETCH(p, ahead);
            _mm256_storeu_ps(to + r * nr, _mm256_loadu_ps(p));
            _mm256_storeu_ps(to + r * nr + LANES, _mm256_loadu_ps(p + LANES));
        }
    }
}

const lb_few_kernel lb_few_avx2 = {.name = "few avx2 4x3",
                                   .lanes = LANES,
                                   .many = MANY,
                                   .dots = dots,
                                   .add = add,
                                   .copy = copy};
#endif
