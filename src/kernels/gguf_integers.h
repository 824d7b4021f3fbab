/* gguf_integers.h - GGUF blocks as integers of 8 bits, whose runs share a scale
 * and perhaps a bias:
 *
 *   value = scale * code + bias
 *
 * with the same operations in f32 as decoders have, so with the same bits. Raw
 * pointers only.
 */
#ifndef LB_GGUF_INTEGERS_H
#define LB_GGUF_INTEGERS_H

#include <stdbool.h>

#include "lowbit_ext.h"

/* Name, values and bytes of a block, values of a run, whether there are biases.
 * Those of decode.h have its names; levels32 is halves32 with levels. */
#define LB_GGUF_INTEGER_TYPES(X)                                               \
    X(bytes32, 32, 34, 32, false)                                              \
    X(halves32, 32, 18, 32, false)                                             \
    X(levels32, 32, 18, 32, false)                                             \
    X(trits256, 256, 54, 256, false)                                           \
    X(pairs256, 256, 66, 256, false)                                           \
    X(q4_1, 32, 20, 32, true)                                                  \
    X(q5_0, 32, 22, 32, false)                                                 \
    X(q5_1, 32, 24, 32, true)                                                  \
    X(q2_k, 256, 84, 16, true)                                                 \
    X(q3_k, 256, 110, 16, false)                                               \
    X(q4_k, 256, 144, 32, true)                                                \
    X(q5_k, 256, 176, 32, true)                                                \
    X(q6_k, 256, 210, 16, false)                                               \
    X(iq4_xs, 256, 136, 32, false)                                             \
    X(q2_0, 64, 18, 64, false)                                                 \
    X(q1_0, 128, 18, 128, false)

/* n whole blocks; bias may be NULL for types without. */
typedef void lb_gguf_reader(const uint8_t *from, int64_t n, int8_t *code,
                            float *scale, float *bias);
typedef struct lb_gguf_readers {
#define LB_GGUF_READER(NAME, ...) lb_gguf_reader *NAME;
    LB_GGUF_INTEGER_TYPES(LB_GGUF_READER)
#undef LB_GGUF_READER
} lb_gguf_readers;

/* The best of a level. All give the same. */
const lb_gguf_readers *lb_gguf_readers_for(const lb_cpu *cpu);

extern const lb_gguf_readers lb_gguf_readers_ref;
#if defined(__x86_64__)
extern const lb_gguf_readers lb_gguf_readers_avx2, lb_gguf_readers_avx512;
#endif
#endif
