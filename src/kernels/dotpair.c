/* dotpair.c - which level has kernels of dotpair.h. */
#include "kernels/dotpair.h"

#include <stddef.h>

const lb_dotpair *lb_dotpair_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level == LB_LEVEL_AVX2) return &lb_dotpair_avx2;
#endif
    (void)cpu;
    return NULL;
}
