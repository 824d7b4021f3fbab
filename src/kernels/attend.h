/* attend.h - inner loops of attention that gemm.h and few.h do not have: rows
 * of weights times values, and the exponentials of rows of scores.
 */
#ifndef LB_ATTEND_H
#define LB_ATTEND_H

#include <stdint.h>

#include "lowbit_ext.h"

typedef struct lb_attend_kernel {
    const char *name; /* "attend avx2" */
    /* c[i*ldc + d] += sum over j < n of p[i*ldp + j] * v[j*ldv + d], for
     * i < m and d < dim: over j in order, added to c one by one. */
    void (*mix)(int64_t m, int64_t n, int64_t dim, const float *p, int64_t ldp,
                const float *v, int64_t ldv, float *c, int64_t ldc);
    /* The largest that is not a NaN; -inf if there is none. */
    float (*most)(const float *x, int64_t n);
    /* x[i] = exp(x[i] - most), with the bits of lb_expf. Returns their sum: 16
     * lanes, each over i, i + 16, ..., that fold in halves. */
    float (*weigh)(float *x, int64_t n, float most);
    void (*times)(float *x, int64_t n, float by);
} lb_attend_kernel;

/* The strongest kernel of a level. */
const lb_attend_kernel *lb_attend_kernel_for(const lb_cpu *cpu);

extern const lb_attend_kernel lb_attend_ref;
#if defined(__x86_64__)
extern const lb_attend_kernel lb_attend_avx2, lb_attend_avx512;
#endif

#endif
