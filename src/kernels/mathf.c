/* mathf.c - exp, log, tanh, logistic, erf and normal quantiles, in portable
 * arithmetic.
 *
 * Only + - * / sqrt, comparisons and integer operations, in a fixed order and
 * each rounded once, so that the bits are the same everywhere. Both sides of
 * every choice are computed and one is selected: a vector form repeats the
 * lines below lane by lane. Specials are put in by selects at the end, and
 * arguments are clamped first so that nothing undefined happens on the way.
 *
 * The polynomials are minimax fits by tools/gen_mathf_coefficients.py; the
 * errors noted there are relative to the function's value.
 */
#include "kernels/mathf.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ln2 in two parts: the high one times an integer below 2^9 (f64: 2^21) is
 * exact. */
static const float LN2_HIGH = 0x1.62e4p-1f, LN2_LOW = 0x1.7f7d1cp-20f;
static const double LN2_HIGH_D = 0x1.62e42feep-1,
                    LN2_LOW_D = 0x1.a39ef35793c76p-33;
static const float LOG2_E = 0x1.715476p+0f;
/* Adding this to |x| < 2^22 leaves the nearest integer in the low bits. */
static const float ROUNDER = 0x1.8p23f;
static const uint32_t SIGN = 0x80000000u;
/* NaNs that are made here; what 0/0 gives differs between machines. */
static const uint32_t QUIET_NAN = 0x7fc00000u;
/* m in [sqrt(1/2), sqrt(2)): the mantissas that log works on begin here. */
static const uint32_t SQRT_HALF = 0x3f3504f3u;
static const uint64_t SQRT_HALF_D = UINT64_C(0x3fe6a09e667f3bcd);

static inline uint32_t to_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float to_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float magnitude(float x)
{
    return to_float(to_bits(x) & ~SIGN);
}

static inline float with_sign_of(float x, float sign)
{
    return to_float(to_bits(x) | (to_bits(sign) & SIGN));
}

/* e^x for x in [-104, 89]: x = k ln2 + r, |r| <= ln2/2, e^x = 2^k e^r.
 * (e^r - 1 - r) / r^2, error 2^-28.2. 2^k is applied in two halves: the first
 * product is exact, so that a subnormal result is rounded only once. */
static inline float exp_inside(float x)
{
    const float t = x * LOG2_E + ROUNDER;
    const float kf = t - ROUNDER;
    const int32_t k = (int32_t)(to_bits(t) - to_bits(ROUNDER));
    const float r = (x - kf * LN2_HIGH) - kf * LN2_LOW;
    const float p =
        0x1.fffffcp-2f +
        r * (0x1.55548cp-3f +
             r * (0x1.555858p-5f + r * (0x1.123de2p-7f + r * 0x1.6ac778p-10f)));
    const float y = 1.0f + (r + r * r * p);
    const int32_t half = k >> 1;
    const float first = to_float((uint32_t)(half + 127) << 23);
    const float second = to_float((uint32_t)(k - half + 127) << 23);
    return y * first * second;
}

float lb_expf(float x)
{
    float y = x < 89.0f ? x : 89.0f;
    y = exp_inside(y > -104.0f ? y : -104.0f);
    return x == x ? y : x;
}

/* x = 2^k (1 + f); s = f / (2 + f); log(1 + f) = 2 atanh(s) = 2s + s R(s^2)
 * with error 2^-30.2. 2s = f - f^2/2 + s f^2/2 keeps f, which is exact, as the
 * leading term. */
float lb_logf(float x)
{
    const float tiny = to_bits(x) < 0x00800000u ? 1.0f : 0.0f;
    const float scaled = tiny != 0.0f ? x * 0x1p23f : x;
    const uint32_t u = to_bits(scaled) - SQRT_HALF;
    const float k = (float)((int32_t)u >> 23) - 23.0f * tiny;
    const float f = to_float((u & 0x007fffffu) + SQRT_HALF) - 1.0f;
    const float s = f / (2.0f + f);
    const float z = s * s;
    const float R =
        z * (0x1.55557ap-1f + z * (0x1.995ed8p-2f + z * 0x1.31e03cp-2f));
    const float h = 0.5f * f * f;
    float y = k * LN2_HIGH + (f - (h - (s * (h + R) + k * LN2_LOW)));
    y = x < INFINITY ? y : x; /* inf and NaN */
    y = x < 0.0f ? to_float(QUIET_NAN) : y;
    return x == 0.0f ? -INFINITY : y;
}

/* Below 1 an odd polynomial, (tanh(x)/x - 1) / x^2 with error 2^-27.7 of
 * tanh; above, 1 - 2/(e^2x + 1). */
float lb_tanhf(float x)
{
    float a = magnitude(x);
    a = a < 10.0f ? a : 10.0f; /* tanh(10) is 1 - 4e-9: 1 */
    const float z = a * a;
    const float p =
        -0x1.55553cp-2f +
        z * (0x1.110be4p-3f +
             z * (-0x1.b9623ap-5f +
                  z * (0x1.6009a4p-6f +
                       z * (-0x1.045fdep-7f +
                            z * (0x1.2d9f82p-9f + z * -0x1.77caa4p-12f)))));
    const float near = a + a * (z * p);
    const float far = 1.0f - 2.0f / (exp_inside(2.0f * a) + 1.0f);
    const float y = with_sign_of(a < 1.0f ? near : far, x);
    return x == x ? y : x;
}

/* Through e^-|x| on both sides, which never overflows: 1/(1 + e^-x) for x >= 0
 * and e^x/(1 + e^x) below, where the quotient follows e^x down to the smallest
 * subnormal. */
float lb_logisticf(float x)
{
    float a = magnitude(x);
    a = a < 104.0f ? a : 104.0f;
    const float e = exp_inside(-a);
    const float y = (x < 0.0f ? e : 1.0f) / (1.0f + e);
    return x == x ? y : x;
}

/* Below 1 an odd polynomial, erf(x)/x - 1 with error 2^-29.4; above,
 * 1 - e^-g where g = -log(erfc(x)) is a polynomial, error 2^-29.6 of erf. */
float lb_erff(float x)
{
    float a = magnitude(x);
    a = a < 4.0f ? a : 4.0f; /* erf(4) is 1 - 1.5e-8: 1 */
    const float z = a * a;
    const float p =
        0x1.06eba8p-3f +
        z * (-0x1.81273ep-2f +
             z * (0x1.ce2ce6p-4f +
                  z * (-0x1.b7f71ap-6f +
                       z * (0x1.53f224p-8f +
                            z * (-0x1.a3515ep-11f + z * 0x1.4771fcp-14f)))));
    const float g =
        0x1.662b2ap-12f +
        a * (0x1.2088e8p+0f +
             a * (0x1.46baf2p-1f +
                  a * (0x1.a6532ap-4f +
                       a * (-0x1.65cb6cp-6f +
                            a * (0x1.825b26p-9f + a * -0x1.86de34p-13f)))));
    const float near = a + a * p;
    const float far = 1.0f - exp_inside(-g);
    const float y = with_sign_of(a < 1.0f ? near : far, x);
    return x == x ? y : x;
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
    return to_float(to_bits(y) | (~bits & SIGN));
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
    y = x < 0.0 ? (double)to_float(QUIET_NAN) : y;
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
