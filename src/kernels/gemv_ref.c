/* gemv_ref.c - vector times matrix in portable C, and the choice of a level.
 *
 * The order of the sums is drawn in gemv.h; products are rounded before they
 * are added, where the vector levels fuse.
 */
#include "kernels/gemv.h"

static float fold(const float *lane, int64_t step)
{
    float b0 = lane[0] + lane[4 * step];
    float b1 = lane[step] + lane[5 * step];
    float b2 = lane[2 * step] + lane[6 * step];
    float b3 = lane[3 * step] + lane[7 * step];
    return (b0 + b2) + (b1 + b3);
}

static void rows_ref(int64_t k, const float *x, const float *b, int64_t ldb,
                     int64_t n, float *y, bool first)
{
    for (int64_t j = 0; j < n; j++) {
        const float *row = b + j * ldb;
        float sum = first ? 0 : y[j];
        for (int64_t at = 0; at < k; at += LB_GEMV_KC) {
            float lane[LB_GEMV_LANES] = {0};
            int64_t kc = lb_gemv_panel(k, at);
            for (int64_t kk = 0; kk < kc; kk++)
                lane[kk % LB_GEMV_LANES] += x[at + kk] * row[at + kk];
            float s = fold(lane, 1);
            sum = first && at == 0 ? s : sum + s;
        }
        y[j] = sum;
    }
}

static void cols_ref(int64_t k, const float *x, const float *b, int64_t ldb,
                     int64_t n, float *y, bool first, float *acc)
{
    if (first)
        for (int64_t j = 0; j < n; j++)
            y[j] = 0;
    for (int64_t at = 0; at < k; at += LB_GEMV_KC) {
        int64_t kc = lb_gemv_panel(k, at);
        for (int64_t i = 0; i < LB_GEMV_LANES * n; i++)
            acc[i] = 0;
        for (int64_t kk = 0; kk < kc; kk++) {
            const float *row = b + (at + kk) * ldb;
            float *a = acc + kk % LB_GEMV_LANES * n, xk = x[at + kk];
            for (int64_t j = 0; j < n; j++)
                a[j] += xk * row[j];
        }
        for (int64_t j = 0; j < n; j++) {
            float s = fold(acc + j, n);
            y[j] = first && at == 0 ? s : y[j] + s;
        }
    }
}

const lb_gemv_kernel lb_gemv_ref = {"gemv ref", rows_ref, cols_ref};

const lb_gemv_kernel *lb_gemv_kernel_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_gemv_avx2;
#elif defined(__aarch64__)
    if (cpu->level == LB_LEVEL_NEON) return &lb_gemv_neon;
#endif
    (void)cpu;
    return &lb_gemv_ref;
}
