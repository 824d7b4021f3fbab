/* gemvq_x_avx2.c - the loops over a vector's numbers, compiled for AVX2. */
#include "kernels/gemvq.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define X_TARGET LB_TARGET("avx2")
#define X_TABLE  lb_gemvq_loops_avx2
#include "kernels/gemvq_x_loops.h"
#endif
