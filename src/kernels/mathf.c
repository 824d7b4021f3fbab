/* mathf.c - see mathf.h: functions of mathf_lanes.h for one number, and normal
 * quantiles.
 *
 * Only + - * / sqrt, comparisons and integer operations, in a fixed order and
 * each rounded once, so that the bits are the same everywhere. R of lb_logd is
 * a fit by tools/gen_mathf_coefficients.py too.
 */
#include "kernels/mathf.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define LANE_FN static inline __attribute__((always_inline))
typedef float vf __attribute__((vector_size(4)));
typedef int32_t vi __attribute__((vector_size(4)));
typedef uint32_t vu __attribute__((vector_size(4)));
#include "kernels/mathf_lanes.h"

/* As LN2_HIGH, LN2_LOW and SQRT_HALF; integers below 2^21. */
static const double LN2_HIGH_D = 0x1.62e42feep-1,
                    LN2_LOW_D = 0x1.a39ef35793c76p-33;
static const uint64_t SQRT_HALF_D = UINT64_C(0x3fe6a09e667f3bcd);

float lb_expf(float x)
{
    return exp_of((vf){x})[0];
}

float lb_logf(float x)
{
    return log_of((vf){x})[0];
}

float lb_tanhf(float x)
{
    return tanh_of((vf){x})[0];
}

float lb_logisticf(float x)
{
    return logistic_of((vf){x})[0];
}

float lb_erff(float x)
{
    return erf_of((vf){x})[0];
}

/* Wichura's AS 241 (Applied Statistics 37, 1988), PPND7 and PPND16: with
 * p = q + 1/2, q times a rational function of 0.425^2 - q^2 in the middle, and
 * one of sqrt(-log(tail)) outside. Working on |q| makes the result exactly odd.
 * With 32 bits the tail is 2^-33 or more and the root stays below 4.8: PPND7's
 * piece from 5 on is not needed. */
float lb_normalf(uint32_t bits)
{
    const int32_t signed_bits = (int32_t)(bits ^ SIGN);
    const int32_t m = signed_bits < 0 ? ~signed_bits : signed_bits;
    const float q = ((float)m + 0.5f) * 0x1p-32f;
    const float tail = ((float)(INT32_MAX - m) + 0.5f) * 0x1p-32f;
    const float r = 0.180625f - q * q;
    const float mid =
        q *
        (((59.109374720f * r + 159.29113202f) * r + 50.434271938f) * r +
         3.3871327179f) /
        (((67.187563600f * r + 78.757757664f) * r + 17.895169469f) * r + 1.0f);
    const float t = sqrtf(-lb_logf(tail)) - 1.6f;
    const float out =
        (((0.17023821103f * t + 1.3067284816f) * t + 2.7568153900f) * t +
         1.4234372777f) /
        ((0.12021132975f * t + 0.73700164250f) * t + 1.0f);
    const float y = q <= 0.425f ? mid : out;
    return with_sign_of((vf){y}, (vf)((vu){~bits}))[0];
}

static inline double poly8(const double c[8], double x)
{
    return c[0] +
           x * (c[1] +
                x * (c[2] +
                     x * (c[3] +
                          x * (c[4] + x * (c[5] + x * (c[6] + x * c[7]))))));
}

/* As lb_logf; R with error 2^-59.5. */
double lb_logd(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    const bool tiny = u < UINT64_C(0x0010000000000000);
    const double scaled = tiny ? x * 0x1p52 : x;
    memcpy(&u, &scaled, sizeof u);
    u -= SQRT_HALF_D;
    const double k = (double)((int64_t)u >> 52) - (tiny ? 52.0 : 0.0);
    u = (u & UINT64_C(0x000fffffffffffff)) + SQRT_HALF_D;
    double f;
    memcpy(&f, &u, sizeof f);
    f -= 1.0;
    const double s = f / (2.0 + f);
    const double z = s * s;
    static const double c[8] = {0.0,
                                0x1.5555555555592p-1,
                                0x1.999999997ff64p-2,
                                0x1.24924941db35bp-2,
                                0x1.c71c521a2a685p-3,
                                0x1.74663b9fccc7ap-3,
                                0x1.39a20bfaa88a5p-3,
                                0x1.2f024e682aff2p-3};
    const double R = poly8(c, z);
    const double h = 0.5 * f * f;
    double y = k * LN2_HIGH_D + (f - (h - (s * (h + R) + k * LN2_LOW_D)));
    y = x < (double)INFINITY ? y : x;
    y = x < 0.0 ? (double)NAN : y;
    return x == 0.0 ? -(double)INFINITY : y;
}

double lb_normald(uint64_t bits)
{
    /* clang-format off */
    static const double a[8] = {
        3.3871328727963666080e0,  1.3314166789178437745e2,
        1.9715909503065514427e3,  1.3731693765509461125e4,
        4.5921953931549871457e4,  6.7265770927008700853e4,
        3.3430575583588128105e4,  2.5090809287301226727e3};
    static const double b[8] = {
        1.0,                      4.2313330701600911252e1,
        6.8718700749205790830e2,  5.3941960214247511077e3,
        2.1213794301586595867e4,  3.9307895800092710610e4,
        2.8729085735721942674e4,  5.2264952788528545610e3};
    static const double c[8] = {
        1.42343711074968357734e0, 4.63033784615654529590e0,
        5.76949722146069140550e0, 3.64784832476320460504e0,
        1.27045825245236838258e0, 2.41780725177450611770e-1,
        2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[8] = {
        1.0,                      2.05319162663775882187e0,
        1.67638483018380384940e0, 6.89767334985100004550e-1,
        1.48103976427480074590e-1, 1.51986665636164571966e-2,
        5.47593808499534494600e-4, 1.05075007164441684324e-9};
    static const double e[8] = {
        6.65790464350110377720e0, 5.46378491116411436990e0,
        1.78482653991729133580e0, 2.96560571828504891230e-1,
        2.65321895265761230930e-2, 1.24266094738807843860e-3,
        2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double f[8] = {
        1.0,                      5.99832206555887937690e-1,
        1.36929880922735805310e-1, 1.48753612908506148525e-2,
        7.86869131145613259100e-4, 1.84631831751005468180e-5,
        1.42151175831644588870e-7, 2.04426310338993978564e-15};
    /* clang-format on */
    const bool negative = bits >> 63 == 0;
    const uint64_t m = (negative ? ~bits : bits) & (uint64_t)INT64_MAX;
    const double q = ((double)m + 0.5) * 0x1p-64;
    const double tail = ((double)((uint64_t)INT64_MAX - m) + 0.5) * 0x1p-64;
    const double r = 0.180625 - q * q;
    const double mid = q * poly8(a, r) / poly8(b, r);
    const double t = sqrt(-lb_logd(tail));
    const double near = poly8(c, t - 1.6) / poly8(d, t - 1.6);
    const double far = poly8(e, t - 5.0) / poly8(f, t - 5.0);
    const double y = q <= 0.425 ? mid : t <= 5.0 ? near : far;
    return negative ? -y : y;
}
