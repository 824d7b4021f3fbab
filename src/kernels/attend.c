/* attend.c - the choice of a level, and the portable reference.
 */
#include "kernels/attend.h"

#include <math.h>

#include "kernels/mathf.h"

const lb_attend_kernel *lb_attend_kernel_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_attend_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_attend_avx2;
#endif
    (void)cpu;
    return &lb_attend_ref;
}

static void mix(int64_t m, int64_t n, int64_t dim, const float *p, int64_t ldp,
                const float *v, int64_t ldv, float *c, int64_t ldc)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const float x = p[i * ldp + j];
            for (int64_t d = 0; d < dim; d++)
                c[i * ldc + d] += x * v[j * ldv + d];
        }
}

static float most(const float *x, int64_t n)
{
    float m = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

static float weigh(float *x, int64_t n, float most)
{
    float lane[16] = {0};
    for (int64_t i = 0; i < n; i++) {
        x[i] = lb_expf(x[i] - most);
        lane[i % 16] += x[i];
    }
    for (int half = 8; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

static void times(float *x, int64_t n, float by)
{
    for (int64_t i = 0; i < n; i++)
        x[i] *= by;
}

const lb_attend_kernel lb_attend_ref = {"attend ref", mix, most, weigh, times};
