/* mathf.h - exp, log, tanh, logistic and erf in f32, and the bits of normals.
 *
 * Portable arithmetic only (+ - * / sqrt and integer operations, each rounded
 * once, no fused multiply-adds), so that every machine, compiler and vector
 * form gives the same bits. Written without branches on data where that is
 * possible, as a vector form will be. Errors are the largest over all 2^32
 * arguments, in ulp of the correct result (2^-149 where it is subnormal);
 * tests/test_mathf.c holds them against double precision. A NaN gives a NaN.
 */
#ifndef LB_MATHF_H
#define LB_MATHF_H

#include <stdint.h>

/* 0.99 ulp. Overflows to inf, goes through the subnormals to 0. */
float lb_expf(float x);
/* 0.84 ulp. -inf at both zeros, NaN below. */
float lb_logf(float x);
/* 2.01 ulp. Odd, also in the sign of zero. */
float lb_tanhf(float x);
/* 2.41 ulp, also where the result is subnormal. 1/(1 + e^-x). */
float lb_logisticf(float x);
/* 1.32 ulp. Odd, also in the sign of zero. */
float lb_erff(float x);
/* Uniform bits to a normal number (mean 0, variance 1): the quantile of
 * (bits + 0.5) / 2^32, off by at most 4.4e-7 of itself, for all bits; in
 * absolute value from 2.9e-10 to 6.34. ~bits gives its negative. */
float lb_normalf(uint32_t bits);

/* The same of 64 bits, and the log it needs. Sampled, as 2^64 are too many:
 * at most 0.9 ulp for the log and 2e-15 of itself for the quantile, which
 * reaches 9.16. */
double lb_logd(double x);
double lb_normald(uint64_t bits);

#endif
