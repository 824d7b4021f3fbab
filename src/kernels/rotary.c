/* rotary.c - see rotary.h.
 */
#include "kernels/rotary.h"

#include <math.h>

/* ---- frequencies --------------------------------------------------------- */

#define TAU 6.283185307179586

/* Llama 3: wavelengths up to original/high are kept, those above original/low
 * are stretched by factor, between them it is interpolated. */
static double llama3(const lb_rope_params *p, double f)
{
    const double turns = p->original * f / TAU;
    if (turns >= p->high) return f;
    if (turns <= p->low) return f / p->factor;
    const double t = (turns - p->low) / (p->high - p->low);
    return (1 - t) * f / p->factor + t * f;
}

/* The pair whose frequency makes that many turns in the original length. */
static double pair_of_turns(const lb_rope_params *p, double turns,
                            int64_t pairs)
{
    return (double)pairs * log(p->original / (turns * TAU)) / log(p->base);
}

/* YaRN: pairs of fast rotations are kept, slow ones are stretched, in between a
 * ramp over the index of the pair. */
static void yarn(const lb_rope_params *p, int64_t pairs, double *f)
{
    double lo = floor(pair_of_turns(p, p->high, pairs));
    double hi = ceil(pair_of_turns(p, p->low, pairs));
    const double last = (double)(2 * pairs - 1);
    lo = lo > 0 ? lo : 0;
    hi = hi < last ? hi : last;
    if (lo == hi) hi += 0.001;
    for (int64_t i = 0; i < pairs; i++) {
        double t = ((double)i - lo) / (hi - lo);
        t = t < 0 ? 0 : t > 1 ? 1 : t;
        f[i] = t * f[i] / p->factor + (1 - t) * f[i];
    }
}

double lb_rotary_frequencies(const lb_rope_params *p, int64_t pairs, double *f)
{
    for (int64_t i = 0; i < pairs; i++) {
        f[i] = pow(p->base, -(double)i / (double)pairs);
        if (p->scaling == LB_ROPE_LINEAR) f[i] /= p->factor;
        if (p->scaling == LB_ROPE_LLAMA3) f[i] = llama3(p, f[i]);
    }
    if (p->scaling == LB_ROPE_YARN) yarn(p, pairs, f);
    return p->magnitude;
}

/* ---- angles -------------------------------------------------------------- */

/* Polynomials of fdlibm's kernels on [-pi/4, pi/4], error below 2^-58. */
static double sine(double r)
{
    const double z = r * r;
    const double p = -1.66666666666666324348e-01 +
                     z * (8.33333333332248946124e-03 +
                          z * (-1.98412698298579493134e-04 +
                               z * (2.75573137070700676789e-06 +
                                    z * (-2.50507602534068634195e-08 +
                                         z * 1.58969099521155010221e-10))));
    return r + r * z * p;
}

static double cosine(double r)
{
    const double z = r * r;
    const double p = 4.16666666666666019037e-02 +
                     z * (-1.38888888888741095749e-03 +
                          z * (2.48015872894767294178e-05 +
                               z * (-2.75573143513906633035e-07 +
                                    z * (2.08757232129817482790e-09 +
                                         z * -1.13596475577881948265e-11))));
    return 1 - (0.5 * z - z * z * p);
}

void lb_sincosd(double x, double *s, double *c)
{
    if (!(fabs(x) <= 0x1p20)) {
        *s = sin(x);
        *c = cos(x);
        return;
    }
    /* pi/2 in three parts of 33 bits: products with up to 2^20 are exact. */
    const double n = rint(x * 0.63661977236758134308);
    const double r = x - n * 1.57079632673412561417e+00 -
                     n * 6.07710050630396597660e-11 -
                     n * 2.02226624871116645580e-21;
    const double u = sine(r), v = cosine(r);
    switch ((int64_t)n & 3) {
    case 0:
        *s = u;
        *c = v;
        break;
    case 1:
        *s = v;
        *c = -u;
        break;
    case 2:
        *s = -u;
        *c = -v;
        break;
    default:
        *s = -v;
        *c = u;
    }
}

/* ---- rotations ----------------------------------------------------------- */

#define ROTATE(NAME, T)                                                        \
    void NAME(const T *x, const T *c, const T *s, int64_t pairs, int64_t tail, \
              bool interleaved, T *y)                                          \
    {                                                                          \
        const int64_t step = interleaved ? 2 : 1,                              \
                      at = interleaved ? 1 : pairs;                            \
        for (int64_t i = 0; i < pairs; i++) {                                  \
            const T u = x[i * step], v = x[i * step + at];                     \
            y[i * step] = u * c[i] - v * s[i];                                 \
            y[i * step + at] = v * c[i] + u * s[i];                            \
        }                                                                      \
        for (int64_t i = 2 * pairs; i < 2 * pairs + tail; i++)                 \
            y[i] = x[i];                                                       \
    }

ROTATE(lb_rotate_f32, float)
ROTATE(lb_rotate_f64, double)
