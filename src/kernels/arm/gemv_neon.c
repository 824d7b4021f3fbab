/* gemv_neon.c - vector times matrix with NEON.
 *
 * rows: two registers hold the eight lanes of one row; four rows go together,
 * which hides the latency of the FMA. cols: four columns to a register, one
 * row of the matrix after the other, the lanes in L1 and L2. What is left of
 * a row or a column goes lane by lane, fused as well.
 */
#include "kernels/gemv.h"

#if defined(__aarch64__)
#include "kernels/arm/neon.h"

LB_INLINE void put(float *y, float s, bool set)
{
    *y = set ? s : *y + s;
}

static void row1(int64_t k, const float *x, const float *b, float *y, bool set)
{
    lb_eight a = lb_eight_zero();
    int64_t kk = 0;
    for (; kk + 8 <= k; kk += 8)
        a = lb_eight_fma(a, lb_eight_load(x + kk), lb_eight_load(b + kk));
    if (kk < k) a = lb_eight_fma_some(a, x + kk, b + kk, k - kk);
    put(y, lb_eight_sum(a), set);
}

static void row4(int64_t k, const float *x, const float *b, int64_t ldb,
                 float *y, bool set)
{
    const float *b1 = b + ldb, *b2 = b1 + ldb, *b3 = b2 + ldb;
    lb_eight a0 = lb_eight_zero(), a1 = a0, a2 = a0, a3 = a0;
    int64_t kk = 0;
    for (; kk + 8 <= k; kk += 8) {
        const lb_eight v = lb_eight_load(x + kk);
        a0 = lb_eight_fma(a0, v, lb_eight_load(b + kk));
        a1 = lb_eight_fma(a1, v, lb_eight_load(b1 + kk));
        a2 = lb_eight_fma(a2, v, lb_eight_load(b2 + kk));
        a3 = lb_eight_fma(a3, v, lb_eight_load(b3 + kk));
    }
    if (kk < k) {
        a0 = lb_eight_fma_some(a0, x + kk, b + kk, k - kk);
        a1 = lb_eight_fma_some(a1, x + kk, b1 + kk, k - kk);
        a2 = lb_eight_fma_some(a2, x + kk, b2 + kk, k - kk);
        a3 = lb_eight_fma_some(a3, x + kk, b3 + kk, k - kk);
    }
    put(y, lb_eight_sum(a0), set);
    put(y + 1, lb_eight_sum(a1), set);
    put(y + 2, lb_eight_sum(a2), set);
    put(y + 3, lb_eight_sum(a3), set);
}

static void rows_neon(int64_t k, const float *x, const float *b, int64_t ldb,
                      int64_t n, float *y, bool first)
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

/* One row of n columns onto its lane. */
static void one_row(float x, const float *b, int64_t n, float *acc)
{
    int64_t j = 0;
    for (; j + 8 <= n; j += 8) {
        vst1q_f32(acc + j,
                  vfmaq_n_f32(vld1q_f32(acc + j), vld1q_f32(b + j), x));
        vst1q_f32(acc + j + 4,
                  vfmaq_n_f32(vld1q_f32(acc + j + 4), vld1q_f32(b + j + 4), x));
    }
    for (; j < n; j++)
        acc[j] = fmaf(x, b[j], acc[j]);
}

/* y (+)= the folded lanes of n columns. */
static void fold_columns(const float *acc, int64_t ld, int64_t n, float *y,
                         bool set)
{
    for (int64_t j = 0; j < n; j++) {
        float b[4];
        for (int l = 0; l < 4; l++)
            b[l] = acc[l * ld + j] + acc[(l + 4) * ld + j];
        put(y + j, (b[0] + b[2]) + (b[1] + b[3]), set);
    }
}

static void cols_neon(int64_t k, const float *x, const float *b, int64_t ldb,
                      int64_t n, float *y, bool first, float *acc)
{
    const int64_t ld = (n + 7) & ~(int64_t)7;
    for (int64_t j = 0; j < n && k == 0 && first; j++)
        y[j] = 0;
    for (int64_t at = 0; at < k; at += LB_GEMV_KC) {
        const int64_t kc = lb_gemv_panel(k, at);
        for (int64_t i = 0; i < LB_GEMV_LANES * ld; i += 4)
            vst1q_f32(acc + i, vdupq_n_f32(0));
        for (int64_t kk = 0; kk < kc; kk++)
            one_row(x[at + kk], b + (at + kk) * ldb, n,
                    acc + kk % LB_GEMV_LANES * ld);
        fold_columns(acc, ld, n, y, first && at == 0);
    }
}

const lb_gemv_kernel lb_gemv_neon = {"gemv neon", rows_neon, cols_neon};
#endif
