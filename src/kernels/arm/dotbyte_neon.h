/* dotbyte_neon.h - panels of bytes for NEON: what packing and tiles share. */
#ifndef LB_DOTBYTE_NEON_H
#define LB_DOTBYTE_NEON_H

#include "kernels/dotbyte.h"

enum { LB_DOTBYTE_NEON_NR = 16, LB_DOTBYTE_NEON_BIAS = 128 };

void lb_dotbyte_along_neon(const lb_dotbyte_codes *c, const uint8_t *from,
                           int64_t step, int64_t n, int64_t ahead, uint8_t *to);
void lb_dotbyte_across_neon(const lb_dotbyte_codes *c, const uint8_t *from,
                            int64_t step, int64_t n, int64_t bytes,
                            int64_t ahead, uint8_t *to, int64_t panel);
int32_t lb_dotbyte_round_neon(int64_t n, const float *x, float factor,
                              int planes, int fields, int8_t *to, int64_t apart,
                              int64_t plane);

#endif
