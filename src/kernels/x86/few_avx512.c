/* few_avx512.c - the 4x6 dot kernel for AVX-512F.
 *
 * As few_avx2.c, with 16 lanes: 24 accumulators, six loads of w, one of x at a
 * time: 31 of the 32 registers. 24 FMAs against 10 loads per step.
 */
#include "kernels/few.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define AVX512 LB_TARGET("avx512f")

enum { MANY = 6, LANES = 16 };

/* (l, l+8), then (l, l+4) of a in the lower half and of b in the upper one. */
AVX512 LB_INLINE __m256 half(__m512 a)
{
    const __m256d hi = _mm512_extractf64x4_pd(_mm512_castps_pd(a), 1);
    return _mm256_add_ps(_mm512_castps512_ps256(a), _mm256_castpd_ps(hi));
}

AVX512 LB_INLINE __m256 fold_2(__m512 a, __m512 b)
{
    const __m256 x = half(a), y = half(b);
    return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20),
                         _mm256_permute2f128_ps(x, y, 0x31));
}

/* The four sums of lanes, in order. */
AVX512 LB_INLINE __m128 fold_4(const __m512 *r)
{
    const __m256 ac = fold_2(r[0], r[2]), bd = fold_2(r[1], r[3]);
    const __m256 s =
        _mm256_add_ps(_mm256_unpacklo_ps(ac, bd), _mm256_unpackhi_ps(ac, bd));
    const __m128 lo = _mm256_castps256_ps128(s);
    const __m128 hi = _mm256_extractf128_ps(s, 1);
    return _mm_add_ps(_mm_movelh_ps(lo, hi), _mm_movehl_ps(hi, lo));
}

LB_INLINE void fetch(uintptr_t at)
{
    __builtin_prefetch((const void *)at, 0, 3);
}

/* h and n are constants where this is inlined. */
AVX512 LB_INLINE void tile(const int h, const int n, int64_t k, const float *x,
                           const float *w, int64_t ldw, float *t, bool first,
                           lb_few_next next)
{
    __m512 r[MANY][LB_FEW_ROWS];
    LB_UNROLL
    for (int j = 0; j < MANY; j++) {
        LB_UNROLL
        for (int i = 0; i < LB_FEW_ROWS; i++)
            r[j][i] = _mm512_setzero_ps();
    }
    int64_t kk = LANES, at = 0;
    for (; kk <= k; kk += LANES) {
        __m512 v[MANY];
        LB_UNROLL
        for (int j = 0; j < n; j++) {
            if (next.at) fetch(next.at + (uintptr_t)(at + j * next.ld));
            v[j] = _mm512_loadu_ps(w + j * ldw);
            LB_KEEP_512(v[j]);
        }
        LB_UNROLL
        for (int i = 0; i < h; i++) {
            __m512 u = _mm512_loadu_ps(x + i * LANES);
            LB_KEEP_512(u);
            LB_UNROLL
            for (int j = 0; j < n; j++)
                r[j][i] = _mm512_fmadd_ps(u, v[j], r[j][i]);
        }
        x += h * LANES;
        w += LANES;
        at += next.step;
    }
    if (kk - k < LANES) { /* other lanes keep what they have */
        const __mmask16 mask = (__mmask16)((1 << (k - kk + LANES)) - 1);
        LB_UNROLL
        for (int j = 0; j < n; j++) {
            const __m512 v = _mm512_maskz_loadu_ps(mask, w + j * ldw);
            LB_UNROLL
            for (int i = 0; i < h; i++) {
                const __m512 s =
                    _mm512_fmadd_ps(_mm512_loadu_ps(x + i * LANES), v, r[j][i]);
                r[j][i] = _mm512_mask_blend_ps(mask, r[j][i], s);
            }
        }
    }
    LB_UNROLL
    for (int j = 0; j < n; j++) {
        __m128 s = fold_4(r[j]);
        if (!first) s = _mm_add_ps(_mm_loadu_ps(t + j * LB_FEW_ROWS), s);
        _mm_storeu_ps(t + j * LB_FEW_ROWS, s);
    }
}

AVX512 LB_INLINE void rows(const int h, int64_t k, const float *x,
                           const float *w, int64_t ldw, int n, float *t,
                           bool first, lb_few_next next)
{
    const lb_few_next nothing = {0};
    if (n == MANY)
        tile(h, MANY, k, x, w, ldw, t, first, next);
    else
        for (int j = 0; j < n; j++)
            tile(h, 1, k, x, w + j * ldw, ldw, t + j * LB_FEW_ROWS, first,
                 nothing);
}

AVX512 static void dots(int h, int64_t k, const float *x, const float *w,
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

AVX512 static void add(int64_t n, float *to, const float *from)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        _mm512_storeu_ps(to + i, _mm512_add_ps(_mm512_loadu_ps(to + i),
                                               _mm512_loadu_ps(from + i)));
    for (; i < n; i++)
        to[i] += from[i];
}

AVX512 static void copy(const float *from, int64_t ld, int64_t n, int nr,
                        float *to, int64_t step, int64_t ahead)
{
    for (int64_t i = 0; i < n; i++, from += 2 * LANES, to += step) {
        LB_UNROLL
        for (int r = 0; r < LB_FEW_TOGETHER; r++) {
            const float *const p = from + r * ld;
            if (ahead) LB_FETCH(p, ahead);
            if (ahead) LB_FETCH(p, ahead + LANES);
            _mm512_storeu_ps(to + r * nr, _mm512_loadu_ps(p));
            _mm512_storeu_ps(to + r * nr + LANES, _mm512_loadu_ps(p + LANES));
        }
    }
}

const lb_few_kernel lb_few_avx512 = {.name = "few avx512 4x6",
                                     .lanes = LANES,
                                     .many = MANY,
                                     .dots = dots,
                                     .add = add,
                                     .copy = copy};
#endif
