/* rotary.h - rotary position embedding: frequencies, angles, rotations.
 *
 * Pair i of a row is rotated by the angle position * frequency[i]:
 *
 *     u' = u cos - v sin        halves        u = x[i],    v = x[i + pairs]
 *     v' = v cos + u sin        interleaved   u = x[2i],   v = x[2i + 1]
 *
 * Angles are computed in double precision, also where models were trained with
 * f32 angles: at position 100,000 an f32 angle is off by 0.004.
 */
#ifndef LB_ROTARY_H
#define LB_ROTARY_H

#include <stdint.h>

#include "lowbit_params.h"

/* The frequencies of the pairs; returns the factor of sines and cosines. */
double lb_rotary_frequencies(const lb_rope_params *p, int64_t pairs,
                             double *frequency);

/* Sine and cosine, within 1e-15 of the exact values up to 2^20; the same bits
 * everywhere. Beyond that, and for NaN and infinities, the C library's. */
void lb_sincosd(double x, double *s, double *c);

/* y = x rotated; x and y may be equal. tail: elements behind the pairs, which
 * are copied. */
void lb_rotate_f32(const float *x, const float *c, const float *s,
                   int64_t pairs, int64_t tail, bool interleaved, float *y);
void lb_rotate_f64(const double *x, const double *c, const double *s,
                   int64_t pairs, int64_t tail, bool interleaved, double *y);

#endif
