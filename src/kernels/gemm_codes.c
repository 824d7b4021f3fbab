/* gemm_codes.c - which level makes panels of its own. */
#include "kernels/gemm_codes.h"

#include <stddef.h>

const lb_gemm_codes *lb_gemm_codes_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_gemm_codes_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_gemm_codes_avx2;
#endif
    (void)cpu;
    return NULL;
}
