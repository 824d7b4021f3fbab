/* gguf_decode.h - decoders of the GGUF block types that lowbit reads but does
 * not write. Raw pointers only.
 */
#ifndef LB_GGUF_DECODE_H
#define LB_GGUF_DECODE_H

#include "kernels/convert.h"

/* Name, values and bytes of a block. */
#define LB_GGUF_TYPES(X)                                                       \
    X(q4_1, 32, 20)                                                            \
    X(q5_0, 32, 22)                                                            \
    X(q5_1, 32, 24)                                                            \
    X(q2_k, 256, 84)                                                           \
    X(q3_k, 256, 110)                                                          \
    X(q4_k, 256, 144)                                                          \
    X(q5_k, 256, 176)                                                          \
    X(q6_k, 256, 210)                                                          \
    X(iq4_xs, 256, 136)                                                        \
    X(iq3_s, 256, 110)                                                         \
    X(iq3_xxs, 256, 98)                                                        \
    X(iq2_s, 256, 82)                                                          \
    X(iq2_xs, 256, 74)                                                         \
    X(iq2_xxs, 256, 66)                                                        \
    X(iq1_m, 256, 56)                                                          \
    X(iq1_s, 256, 50)                                                          \
    X(gguf_mxfp4, 32, 17)                                                      \
    X(q2_0, 64, 18)                                                            \
    X(q1_0, 128, 18)

/* The same for types whose values are then multiplied by a scale that is stored
 * elsewhere. */
#define LB_GGUF_SCALED(X)                                                      \
    X(gguf_nvfp4, 64, 36)                                                      \
    X(i2_s, 128, 32)

/* n whole blocks. */
typedef void lb_gguf_decoder(const uint8_t *from, int64_t n, float *out);
typedef struct lb_gguf_decoders {
#define LB_GGUF_MEMBER(NAME, LEN, SIZE) lb_gguf_decoder *NAME;
    LB_GGUF_TYPES(LB_GGUF_MEMBER)
    LB_GGUF_SCALED(LB_GGUF_MEMBER)
} lb_gguf_decoders;

/* The best of a level. All give the same bits. */
const lb_gguf_decoders *lb_gguf_decoders_for(const lb_cpu *cpu);

extern const lb_gguf_decoders lb_gguf_decoders_ref;
#if defined(__x86_64__)
extern const lb_gguf_decoders lb_gguf_decoders_avx2, lb_gguf_decoders_avx512;
#endif

/* Levels of 4-bit codes: twice those of E2M1, and IQ4_NL's. */
extern const int8_t lb_gguf_e2m1[16], lb_gguf_iq4[16];

/* Grids of ggml, a point per entry: coordinates of 2 bits (IQ1 and IQ2) or 3
 * (IQ3), the first in the lowest. */
extern const uint16_t lb_gguf_iq2_xxs[256], lb_gguf_iq2_xs[512],
    lb_gguf_iq2_s[1024], lb_gguf_iq3_xxs[256], lb_gguf_iq3_s[512],
    lb_gguf_iq1[2048];
#endif
