/* pack_f32_avx512.c - pack_f32.h compiled for AVX-512. */
#include "kernels/pack_f32.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define PACK_FN    LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq") static inline
#define PACK_TABLE lb_pack_f32_avx512
#include "kernels/pack_f32_loops.h"
#endif
