/* affine_decode.h - dense streams of small unsigned codes, to floats.
 *
 * A row is a stream of bits: code i is bits [i * bits, (i + 1) * bits), least
 * significant first, so that codes of 3, 5, 6 and 7 bits cross bytes:
 *
 *     byte      0        1        2            bits 3
 *     bits   76543210 76543210 76543210
 *     code   22111000 54443332 77766655
 *
 * Raw pointers only. All levels give the same bits.
 */
#ifndef LB_AFFINE_DECODE_H
#define LB_AFFINE_DECODE_H

#include "kernels/decode.h"

typedef struct lb_affine_kernel {
    const char *name; /* "affine avx2" */
    /* Codes [at, at + n) of a row, one per byte. */
    void (*codes)(int bits, const uint8_t *row, int64_t at, int64_t n,
                  uint8_t *out);
    /* out[i] = s * (code[i] - zero). each: a zero point for each value of s;
     * NULL: `zero` for all. */
    void (*scale)(const uint8_t *code, int64_t n, lb_spans s, const float *each,
                  float zero, float *out);
    /* out[i] += bias */
    void (*add)(int64_t n, lb_spans bias, float *out);
} lb_affine_kernel;

/* The strongest kernel of a level. */
const lb_affine_kernel *lb_affine_kernel_for(const lb_cpu *cpu);

extern const lb_affine_kernel lb_affine_ref;
#if defined(__x86_64__)
extern const lb_affine_kernel lb_affine_avx2, lb_affine_avx512;
#endif

/* The inverse of codes: n codes to the bytes of a stream, which begins with a
 * byte. Unused bits of the last byte are 0. */
void lb_affine_pack(int bits, const uint8_t *code, int64_t n, uint8_t *out);

#endif
