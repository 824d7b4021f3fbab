/* pack_f32_avx2.c - pack_f32.h compiled for AVX2. */
#include "kernels/pack_f32.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define PACK_FN    LB_TARGET("avx2") static inline
#define PACK_TABLE lb_pack_f32_avx2
#include "kernels/pack_f32_loops.h"
#endif
