/* affine_decode_avx2.c - affine_decode.h compiled for AVX2. */
#include "kernels/affine_decode.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define LOOP_FN    LB_TARGET("avx2") static inline
#define LOOP_TABLE lb_affine_avx2
#define LOOP_NAME  "affine avx2"
#include "kernels/affine_loops.h"
#endif
