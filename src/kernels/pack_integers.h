/* pack_integers.h - integers with scales (lb_integers) as bytes with one scale
 * for each LB_PACK_BLOCK of them, for panels of products.
 *
 *   number = scale * code + bias    rounded as pack_f32.h does it
 *
 * so that the bits are those of decoding and rounding the numbers. Raw pointers
 * only.
 */
#ifndef LB_PACK_INTEGERS_H
#define LB_PACK_INTEGERS_H

#include "lowbit_ext.h"

enum { LB_PACK_BLOCK = 64 };

/* n codes of a row; each `run` of them, 16 or a power of two above, share a
 * scale and a bias (NULL: there are none). Writes as many bytes, with signs, up
 * to a whole block, where there is anything beyond n, and the scale of each
 * block. Whole blocks of codes are read. */
typedef void lb_pack_integers_fn(const int8_t *code, const float *scale,
                                 const float *bias, int run, int64_t n,
                                 int8_t *to, float *block_scale);

/* NULL: decoding and rounding is as fast. */
lb_pack_integers_fn *lb_pack_integers_for(const lb_cpu *cpu);

lb_pack_integers_fn lb_pack_integers_ref;
#if defined(__x86_64__)
lb_pack_integers_fn lb_pack_integers_avx512;
#endif

#endif
