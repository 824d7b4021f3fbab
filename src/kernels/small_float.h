/* small_float.h - floats of 8 and 4 bits, many at a time.
 *
 *   E4M3  seee emmm   (1 + m/8) 2^(e-7), or m 2^-9 if e is 0; 7f and ff are
 *                     NaN, there are no infinities ("fn"); at most 448
 *   E5M2  seee eemm   (1 + m/4) 2^(e-15), or m 2^-16; infinities and NaNs as in
 *                     f16, of which it is the upper byte; at most 57344
 *   E2M1  seem        (1 + m/2) 2^(e-1), or m/2; at most 6. Two in a byte, the
 *                     first in the low half
 *
 * The portable functions of small_float.c define the bits. Raw pointers only.
 */
#ifndef LB_SMALL_FLOAT_H
#define LB_SMALL_FLOAT_H

#include "kernels/decode.h"

typedef enum lb_small { LB_E4M3, LB_E5M2, LB_E2M1 } lb_small;

/* Values of n codes times their scales (or divided by them). skip: 1 if the
 * first is in the high half of a byte of E2M1, else 0. */
typedef void lb_small_decoder(const uint8_t *from, int64_t skip, int64_t n,
                              lb_spans s, float *out);
typedef struct lb_small_decoders {
    lb_small_decoder *times[3], *divided[3]; /* by lb_small */
} lb_small_decoders;

/* The best of a level. All give the same bits. */
const lb_small_decoders *lb_small_decoders_for(const lb_cpu *cpu);

extern const lb_small_decoders lb_small_decoders_ref;
#if defined(__x86_64__)
extern const lb_small_decoders lb_small_decoders_avx2, lb_small_decoders_avx512;
#endif

/* Codes, each in a byte, of n finite values x / scale (or x * scale): the
 * nearest, ties to even, at most the largest finite one. If x / scale is not a
 * number or scale is infinite, the codes are those of zeros. */
void lb_small_encode(lb_small kind, const float *x, int64_t n, float scale,
                     bool times, uint8_t *code);
/* The largest finite value. */
float lb_small_largest(lb_small kind);

/* Powers of two: 2^(e - 127), of a byte e up to 254. */
static inline uint32_t lb_e8m0_bits(uint32_t e)
{
    return e ? e << 23 : 0x00400000u;
}
#endif
