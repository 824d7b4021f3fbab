/* affine_decode_avx512.c - affine_decode.h compiled for AVX-512. */
#include "kernels/affine_decode.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define LOOP_FN    LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq") static inline
#define LOOP_TABLE lb_affine_avx512
#define LOOP_NAME  "affine avx512"
#include "kernels/affine_loops.h"
#endif
