/* gguf_integers.c - GGUF's block types as integers (lb_integers). */
#include "formats/gguf_block.h"

#define INTEGERS(NAME, LEN, SIZE, RUN, BIAS)                                   \
    static void read_##NAME(const lb_cpu *cpu, const lb_store *s,              \
                            int64_t first, int64_t n, int8_t *code,            \
                            float *scale, float *bias)                         \
    {                                                                          \
        lb_gguf_readers_for(cpu)->NAME(lb_gguf_block_at(s, first),             \
                                       ((n) + (LEN)-1) / (LEN), code, scale,   \
                                       bias);                                  \
    }                                                                          \
    const lb_integers lb_integers_##NAME = {(LEN), (RUN), (BIAS), read_##NAME};
LB_GGUF_INTEGER_TYPES(INTEGERS)
