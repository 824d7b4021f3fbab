/* dynamic8_ref.h - the 256 levels of dynamic8; blocks to codes and back. Raw
 * pointers only. */
#ifndef LB_DYNAMIC8_REF_H
#define LB_DYNAMIC8_REF_H

#include "lowbit_ext.h"

/* bitsandbytes' signed dynamic map, ascending; code 127 is 0. */
extern const float lb_dynamic8_map[256];

/* Codes of n numbers of a block whose largest magnitude is absmax. */
typedef void lb_dynamic8_encoder(lb_compat compat, float absmax, const float *x,
                                 int64_t n, uint8_t *code);
lb_dynamic8_encoder *lb_dynamic8_encoder_for(const lb_cpu *cpu);

extern lb_dynamic8_encoder lb_dynamic8_encode_ref;
#if defined(__x86_64__)
extern lb_dynamic8_encoder lb_dynamic8_encode_avx2;
#elif defined(__aarch64__)
extern lb_dynamic8_encoder lb_dynamic8_encode_neon;
#endif

#endif
