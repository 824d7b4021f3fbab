/* gemv.h - f32 products of a vector with a matrix that lies in memory as it is.
 *
 * Packing pays only when what is packed is used often; for a few rows it does
 * not. The order of the sum is fixed and the same for both layouts, so that
 * the bits of an element depend on k alone: panels of LB_GEMV_KC, in each of
 * them lane l sums kk = l, l+8, l+16, ... from zero in order, and lanes fold
 * in halves: (l, l+4), (l, l+2), (l, l+1). Panels are added to y in order.
 */
#ifndef LB_GEMV_H
#define LB_GEMV_H

#include <stdbool.h>
#include <stdint.h>

#include "lowbit_ext.h"

enum {
    LB_GEMV_KC = 1024, /* 128 terms to a lane: the error stays that of 128 */
    LB_GEMV_LANES = 8,
    LB_GEMV_NB = 2048 /* most columns at once: lanes x columns are 64 KiB */
};

typedef struct lb_gemv_kernel {
    const char *name; /* "gemv avx2" */
    /* y[j] (+)= sum over kk < k of x[kk] * b[j*ldb + kk] for j < n; first: y
     * is set, not added to. Calls that split k at multiples of LB_GEMV_KC give
     * the bits of one call. */
    void (*rows)(int64_t k, const float *x, const float *b, int64_t ldb,
                 int64_t n, float *y, bool first);
    /* The same with b[kk*ldb + j], n <= LB_GEMV_NB. acc: room for
     * LB_GEMV_LANES * LB_GEMV_NB floats, aligned to 64. */
    void (*cols)(int64_t k, const float *x, const float *b, int64_t ldb,
                 int64_t n, float *y, bool first, float *acc);
} lb_gemv_kernel;

/* The length of the panel that begins at a multiple of LB_GEMV_KC. */
static inline int64_t lb_gemv_panel(int64_t k, int64_t at)
{
    return k - at < LB_GEMV_KC ? k - at : LB_GEMV_KC;
}

/* The strongest kernel of a level. */
const lb_gemv_kernel *lb_gemv_kernel_for(const lb_cpu *cpu);

extern const lb_gemv_kernel lb_gemv_ref;
#if defined(__x86_64__)
extern const lb_gemv_kernel lb_gemv_avx2;
#elif defined(__aarch64__)
extern const lb_gemv_kernel lb_gemv_neon;
#endif

#endif
