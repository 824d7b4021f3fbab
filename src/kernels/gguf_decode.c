/* gguf_decode.c - gguf_decode.h in portable C, and the choice of a level. */
#include "kernels/gguf_decode.h"

#include <stdbool.h>

const int8_t lb_gguf_e2m1[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                 0, -1, -2, -3, -4, -6, -8, -12};
const int8_t lb_gguf_iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113};

#define LOOP_FN      static inline
#define LOOP_TABLE   lb_gguf_decoders_ref
#define LOOP_READERS lb_gguf_readers_ref
#include "kernels/gguf_loops.h"

const lb_gguf_decoders *lb_gguf_decoders_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_gguf_decoders_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_gguf_decoders_avx2;
#endif
    (void)cpu;
    return &lb_gguf_decoders_ref;
}

const lb_gguf_readers *lb_gguf_readers_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_gguf_readers_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_gguf_readers_avx2;
#endif
    (void)cpu;
    return &lb_gguf_readers_ref;
}
