/* dottab.c - which level has kernels of dottab.h. */
#include "kernels/dottab.h"

#include <stddef.h>

const lb_dottab *lb_dottab_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level == LB_LEVEL_AVX2) return &lb_dottab_avx2;
#endif
    (void)cpu;
    return NULL;
}
