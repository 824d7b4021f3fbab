/* panel.c - which level makes panels of its own. */
#include "kernels/panel.h"

#include <stddef.h>

const lb_panel *lb_panel_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level == LB_LEVEL_AVX2) return &lb_panel_avx2;
#endif
    (void)cpu;
    return NULL;
}
