/* neon.h - the intrinsics of NEON, and what kernels need to keep accumulators
 * in registers. Every aarch64 has NEON, so functions need no target. */
#ifndef LB_NEON_H
#define LB_NEON_H

#include <arm_neon.h>

#define LB_INLINE static inline __attribute__((always_inline))

/* Loops over accumulators must vanish, or these do not stay in registers. */
#if defined(__clang__)
#define LB_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LB_UNROLL _Pragma("GCC unroll 16")
#endif

#endif
