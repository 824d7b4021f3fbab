/* neon.h - the intrinsics of NEON, and what kernels need to keep accumulators
 * in registers. Every aarch64 has NEON, so functions need no target. */
#ifndef LB_NEON_H
#define LB_NEON_H

#include <arm_neon.h>
#include <math.h>
#include <stdint.h>

#define LB_INLINE static inline __attribute__((always_inline))

/* Loops over accumulators must vanish, or these do not stay in registers. */
#if defined(__clang__)
#define LB_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LB_UNROLL _Pragma("GCC unroll 16")
#endif

/* Asks for the line of p[n], which may lie past the end of the array: such an
 * address is never a pointer to C. */
#define LB_FETCH(p, n)                                                         \
    __builtin_prefetch(                                                        \
        (const void *)((uintptr_t)(p) + (uintptr_t)(n) * sizeof *(p)), 0, 3)

/* Nothing, but the value is in a register from here on, and not before: where
 * gcc loads all it can at once, accumulators go to memory. */
#define LB_KEEP(v) __asm__ volatile("" : "+w"(v))

/* ---- eight lanes, as sums along the depth have them ---------------------- */

typedef struct lb_eight {
    float32x4_t lo, hi; /* lanes 0..3 and 4..7 */
} lb_eight;

LB_INLINE lb_eight lb_eight_zero(void)
{
    return (lb_eight){vdupq_n_f32(0), vdupq_n_f32(0)};
}

LB_INLINE lb_eight lb_eight_load(const float *p)
{
    return (lb_eight){vld1q_f32(p), vld1q_f32(p + 4)};
}

LB_INLINE lb_eight lb_eight_fma(lb_eight acc, lb_eight x, lb_eight w)
{
    return (lb_eight){vfmaq_f32(acc.lo, x.lo, w.lo),
                      vfmaq_f32(acc.hi, x.hi, w.hi)};
}

/* The same for the first n < 8 lanes; others keep what they have. */
static inline lb_eight lb_eight_fma_some(lb_eight acc, const float *x,
                                         const float *w, int64_t n)
{
    float lane[8];
    vst1q_f32(lane, acc.lo);
    vst1q_f32(lane + 4, acc.hi);
    for (int64_t l = 0; l < n; l++)
        lane[l] = fmaf(x[l], w[l], lane[l]);
    return lb_eight_load(lane);
}

/* Halves to halves: (l, l+4), (l, l+2), (l, l+1). */
LB_INLINE float lb_eight_sum(lb_eight a)
{
    const float32x4_t b = vaddq_f32(a.lo, a.hi);
    const float32x2_t c = vadd_f32(vget_low_f32(b), vget_high_f32(b));
    return vget_lane_f32(c, 0) + vget_lane_f32(c, 1);
}

#endif
