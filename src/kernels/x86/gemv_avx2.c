/* gemv_avx2.c - vector times matrix with AVX2 and FMA.
 *
 * rows: a register holds the eight lanes of one row; four rows go together,
 * which is four streams from memory and hides the latency of the FMA.
 * cols: eight registers hold the eight lanes of eight columns; wide matrices go
 * row by row, with the lanes in L1 and L2, so that memory is read in long runs.
 * Stronger levels use this too: memory decides.
 */
#include "kernels/gemv.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define AVX2 LB_TARGET("avx2,fma")

enum { NARROW = 64 }; /* columns whose matrix is taken to be in L1 or L2 */

/* The first n (1 .. 8) lanes. */
AVX2 static __m256i first_lanes(int64_t n)
{
    __m256i i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), i);
}

AVX2 static float fold(__m256 a)
{
    __m128 b =
        _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

/* acc + x * b in the lanes of mask, acc as it was in the others. */
AVX2 static __m256 step_masked(const float *x, const float *b, __m256i mask,
                               __m256 acc)
{
    __m256 r = _mm256_fmadd_ps(_mm256_maskload_ps(x, mask),
                               _mm256_maskload_ps(b, mask), acc);
    return _mm256_blendv_ps(acc, r, _mm256_castsi256_ps(mask));
}

AVX2 static void put(float *y, float s, bool set)
{
    *y = set ? s : *y + s;
}

AVX2 static void row1(int64_t k, const float *x, const float *b, float *y,
                      bool set)
{
    __m256 a = _mm256_setzero_ps();
    int64_t kk = 0;
    for (; kk + 8 <= k; kk += 8)
        a = _mm256_fmadd_ps(_mm256_loadu_ps(x + kk), _mm256_loadu_ps(b + kk),
                            a);
    if (kk < k) a = step_masked(x + kk, b + kk, first_lanes(k - kk), a);
    put(y, fold(a), set);
}

AVX2 static void row4(int64_t k, const float *x, const float *b, int64_t ldb,
                      float *y, bool set)
{
    const float *b1 = b + ldb, *b2 = b1 + ldb, *b3 = b2 + ldb;
    __m256 a0 = _mm256_setzero_ps(), a1 = a0, a2 = a0, a3 = a0;
    int64_t kk = 0;
    for (; kk + 8 <= k; kk += 8) {
        __m256 v = _mm256_loadu_ps(x + kk);
        a0 = _mm256_fmadd_ps(v, _mm256_loadu_ps(b + kk), a0);
        a1 = _mm256_fmadd_ps(v, _mm256_loadu_ps(b1 + kk), a1);
        a2 = _mm256_fmadd_ps(v, _mm256_loadu_ps(b2 + kk), a2);
        a3 = _mm256_fmadd_ps(v, _mm256_loadu_ps(b3 + kk), a3);
    }
    if (kk < k) {
        __m256i mask = first_lanes(k - kk);
        a0 = step_masked(x + kk, b + kk, mask, a0);
        a1 = step_masked(x + kk, b1 + kk, mask, a1);
        a2 = step_masked(x + kk, b2 + kk, mask, a2);
        a3 = step_masked(x + kk, b3 + kk, mask, a3);
    }
    put(y, fold(a0), set);
    put(y + 1, fold(a1), set);
    put(y + 2, fold(a2), set);
    put(y + 3, fold(a3), set);
}

AVX2 static void rows_avx2(int64_t k, const float *x, const float *b,
                           int64_t ldb, int64_t n, float *y, bool first)
{
    int64_t j = 0;
    for (; j < n && k == 0 && first; j++)
        y[j] = 0;
    for (; j + 4 <= n; j += 4)
        for (int64_t at = 0; at < k; at += LB_GEMV_KC)
            row4(lb_gemv_panel(k, at), x + at, b + j * ldb + at, ldb, y + j,
                 first && at == 0);
    for (; j < n; j++)
        for (int64_t at = 0; at < k; at += LB_GEMV_KC)
            row1(lb_gemv_panel(k, at), x + at, b + j * ldb + at, y + j,
                 first && at == 0);
}

/* Rows [0, k) of up to eight columns, onto the lanes at acc, acc + ld, ...;
 * k begins at lane 0. */
AVX2 static void strip(int64_t k, const float *x, const float *b, int64_t ldb,
                       __m256i mask, float *acc, int64_t ld)
{
    __m256 a0 = _mm256_load_ps(acc), a1 = _mm256_load_ps(acc + ld);
    __m256 a2 = _mm256_load_ps(acc + 2 * ld), a3 = _mm256_load_ps(acc + 3 * ld);
    __m256 a4 = _mm256_load_ps(acc + 4 * ld), a5 = _mm256_load_ps(acc + 5 * ld);
    __m256 a6 = _mm256_load_ps(acc + 6 * ld), a7 = _mm256_load_ps(acc + 7 * ld);
    int64_t kk = 0;
    bool full = _mm256_movemask_epi8(mask) == -1;
    for (; full && kk + 8 <= k; kk += 8, b += 8 * ldb) {
        const float *v = x + kk, *c = b + 4 * ldb;
        a0 = _mm256_fmadd_ps(_mm256_set1_ps(v[0]), _mm256_loadu_ps(b), a0);
        a1 =
            _mm256_fmadd_ps(_mm256_set1_ps(v[1]), _mm256_loadu_ps(b + ldb), a1);
        a2 = _mm256_fmadd_ps(_mm256_set1_ps(v[2]), _mm256_loadu_ps(b + 2 * ldb),
                             a2);
        a3 = _mm256_fmadd_ps(_mm256_set1_ps(v[3]), _mm256_loadu_ps(b + 3 * ldb),
                             a3);
        a4 = _mm256_fmadd_ps(_mm256_set1_ps(v[4]), _mm256_loadu_ps(c), a4);
        a5 =
            _mm256_fmadd_ps(_mm256_set1_ps(v[5]), _mm256_loadu_ps(c + ldb), a5);
        a6 = _mm256_fmadd_ps(_mm256_set1_ps(v[6]), _mm256_loadu_ps(c + 2 * ldb),
                             a6);
        a7 = _mm256_fmadd_ps(_mm256_set1_ps(v[7]), _mm256_loadu_ps(c + 3 * ldb),
                             a7);
    }
    _mm256_store_ps(acc, a0), _mm256_store_ps(acc + ld, a1);
    _mm256_store_ps(acc + 2 * ld, a2), _mm256_store_ps(acc + 3 * ld, a3);
    _mm256_store_ps(acc + 4 * ld, a4), _mm256_store_ps(acc + 5 * ld, a5);
    _mm256_store_ps(acc + 6 * ld, a6), _mm256_store_ps(acc + 7 * ld, a7);
    for (; kk < k; kk++, b += ldb) {
        float *a = acc + kk % LB_GEMV_LANES * ld;
        __m256 v = _mm256_maskload_ps(b, mask);
        _mm256_store_ps(
            a, _mm256_fmadd_ps(_mm256_set1_ps(x[kk]), v, _mm256_load_ps(a)));
    }
}

/* One row of n columns onto its lane. */
AVX2 static void one_row(float x, const float *b, int64_t n, float *acc)
{
    const __m256 v = _mm256_set1_ps(x);
    int64_t j = 0;
    for (; j + 8 <= n; j += 8)
        _mm256_store_ps(acc + j, _mm256_fmadd_ps(v, _mm256_loadu_ps(b + j),
                                                 _mm256_load_ps(acc + j)));
    if (j == n) return;
    const __m256 rest = _mm256_maskload_ps(b + j, first_lanes(n - j));
    _mm256_store_ps(acc + j, _mm256_fmadd_ps(v, rest, _mm256_load_ps(acc + j)));
}

/* Rows [0, k) of n columns onto their lanes. */
AVX2 static void onto_lanes(int64_t k, const float *x, const float *b,
                            int64_t ldb, int64_t n, float *acc, int64_t ld)
{
    if (n > NARROW)
        for (int64_t kk = 0; kk < k; kk++)
            one_row(x[kk], b + kk * ldb, n, acc + kk % LB_GEMV_LANES * ld);
    else
        for (int64_t j = 0; j < n; j += 8)
            strip(k, x, b + j, ldb, first_lanes(n - j < 8 ? n - j : 8), acc + j,
                  ld);
}

/* y (+)= the folded lanes of up to eight columns. */
AVX2 static void fold_strip(const float *acc, int64_t ld, __m256i mask,
                            float *y, bool set)
{
    __m256 b[4];
    for (int l = 0; l < 4; l++)
        b[l] = _mm256_add_ps(_mm256_load_ps(acc + l * ld),
                             _mm256_load_ps(acc + (l + 4) * ld));
    __m256 s =
        _mm256_add_ps(_mm256_add_ps(b[0], b[2]), _mm256_add_ps(b[1], b[3]));
    if (!set) s = _mm256_add_ps(_mm256_maskload_ps(y, mask), s);
    _mm256_maskstore_ps(y, mask, s);
}

AVX2 static void cols_avx2(int64_t k, const float *x, const float *b,
                           int64_t ldb, int64_t n, float *y, bool first,
                           float *acc)
{
    int64_t ld = (n + 7) & ~(int64_t)7;
    for (int64_t j = 0; j < n && k == 0 && first; j++)
        y[j] = 0;
    for (int64_t at = 0; at < k; at += LB_GEMV_KC) {
        const int64_t kc = lb_gemv_panel(k, at);
        for (int64_t i = 0; i < LB_GEMV_LANES * ld; i += 8)
            _mm256_store_ps(acc + i, _mm256_setzero_ps());
        onto_lanes(kc, x + at, b + at * ldb, ldb, n, acc, ld);
        for (int64_t j = 0; j < n; j += 8)
            fold_strip(acc + j, ld, first_lanes(n - j < 8 ? n - j : 8), y + j,
                       first && at == 0);
    }
}

const lb_gemv_kernel lb_gemv_avx2 = {"gemv avx2", rows_avx2, cols_avx2};
#endif
