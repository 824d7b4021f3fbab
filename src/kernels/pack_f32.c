/* pack_f32.c - pack_f32.h in portable C, which is the specification, and which
 * level has what. */
#define PACK_FN    static inline
#define PACK_TABLE lb_pack_f32_ref
#include "kernels/pack_f32_loops.h"

const lb_pack_f32 *lb_pack_f32_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_pack_f32_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_pack_f32_avx2;
#endif
    (void)cpu;
    return &lb_pack_f32_ref;
}
