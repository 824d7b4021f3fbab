/* affine_decode.c - affine_decode.h in portable C, and the choice of a level.
 */
#include "kernels/affine_decode.h"

#define LOOP_FN    static inline
#define LOOP_TABLE lb_affine_ref
#define LOOP_NAME  "affine ref"
#include "kernels/affine_loops.h"

void lb_affine_pack(int bits, const uint8_t *code, int64_t n, uint8_t *out)
{
    uint32_t word = 0;
    int held = 0; /* bits in word */
    for (int64_t i = 0; i < n; i++) {
        word |= (uint32_t)code[i] << held;
        for (held += bits; held >= 8; held -= 8, word >>= 8)
            *out++ = (uint8_t)word;
    }
    if (held) *out = (uint8_t)word;
}

const lb_affine_kernel *lb_affine_kernel_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_affine_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_affine_avx2;
#endif
    (void)cpu;
    return &lb_affine_ref;
}
