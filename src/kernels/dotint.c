/* dotint.c - which kernel a level has. */
#include "kernels/dotint.h"

const lb_dotint *lb_dotint_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512VNNI) return &lb_dotint_vnni;
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_dotint_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_dotint_avx2;
#elif defined(__aarch64__)
    if (cpu->level == LB_LEVEL_NEON) return &lb_dotint_neon;
#endif
    (void)cpu;
    return &lb_dotint_ref;
}
