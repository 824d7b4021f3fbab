/* dotturn.c - which level has kernels of dotturn.h. */
#include "kernels/dotturn.h"

#include <stddef.h>

const lb_dotturn *lb_dotturn_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level == LB_LEVEL_AVX2) return &lb_dotturn_avx2;
#endif
    (void)cpu;
    return NULL;
}
