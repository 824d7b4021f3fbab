/* gguf_ref.h - GGUF's block types from numbers, in portable C; what they look
 * like is drawn in the formats' files. Raw pointers only. */
#ifndef LB_GGUF_REF_H
#define LB_GGUF_REF_H

#include "lowbit_ext.h"

/* The levels of IQ4_NL, ascending. */
extern const int lb_iq4_nl_levels[16];

enum { LB_IQ4_NL_TRIES = 16 };
/* The inverse scales that IQ4_NL tries for a block whose number of the largest
 * |x| is m, which is not 0; and the scale they leave, given for each the sums
 * x^2 w x and x^2 w w of its levels w. */
void lb_iq4_nl_tries(float m, float *id);
float lb_iq4_nl_best(const float *sum_wx, const float *sum_ww);

/* Whole blocks of 32 or 256 numbers; those of each type, vector: AVX2's or
 * NEON's, if there is one; and the strongest of a level. */
typedef void lb_gguf_encoder(const float *x, int64_t blocks, uint8_t *to);
typedef struct lb_gguf_encoders {
    lb_gguf_encoder *ref, *vector;
} lb_gguf_encoders;
extern const lb_gguf_encoders lb_q8_0_encoders, lb_q4_0_encoders,
    lb_iq4_nl_encoders, lb_tq1_0_encoders, lb_tq2_0_encoders;
lb_gguf_encoder *lb_gguf_encoder_for(const lb_cpu *cpu,
                                     const lb_gguf_encoders *of);

extern lb_gguf_encoder lb_q8_0_encode_ref, lb_q4_0_encode_ref,
    lb_iq4_nl_encode_ref, lb_tq1_0_encode_ref, lb_tq2_0_encode_ref;
#if defined(__x86_64__)
extern lb_gguf_encoder lb_q8_0_encode_avx2, lb_q4_0_encode_avx2,
    lb_iq4_nl_encode_avx2, lb_tq1_0_encode_avx2, lb_tq2_0_encode_avx2;
#elif defined(__aarch64__)
extern lb_gguf_encoder lb_q8_0_encode_neon, lb_q4_0_encode_neon,
    lb_tq1_0_encode_neon, lb_tq2_0_encode_neon;
#endif

#endif
