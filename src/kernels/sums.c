/* sums.c - see sums.h. */
#include "kernels/sums.h"

#include <math.h>
#include <string.h>

enum { LANES = 8 };

static double fold(const double *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* What counts of x: it, or 0. As bits, or the compiler makes it a jump that no
 * processor foresees. */
static inline float kept(float x, float least)
{
    uint32_t bits;
    x = fabsf(x);
    memcpy(&bits, &x, sizeof bits);
    bits &= 0u - (uint32_t)(x > least);
    memcpy(&x, &bits, sizeof x);
    return x;
}

lb_total lb_total_above(const float *x, int64_t n, float least)
{
    double sum[LANES] = {0};
    int count[LANES] = {0}, all = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            sum[j] += (double)kept(x[i + j], least);
            count[j] += fabsf(x[i + j]) > least;
        }
    for (int j = 0; i + j < n; j++) {
        sum[j] += (double)kept(x[i + j], least);
        count[j] += fabsf(x[i + j]) > least;
    }
    for (int j = 0; j < LANES; j++)
        all += count[j];
    return (lb_total){(double)all, fold(sum)};
}

lb_total lb_total_join(lb_total a, lb_total b)
{
    return (lb_total){a.n + b.n, a.sum + b.sum};
}

static double sum_of(const float *x, int64_t n)
{
    double sum[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            sum[j] += (double)x[i + j];
    for (int j = 0; i + j < n; j++)
        sum[j] += (double)x[i + j];
    return fold(sum);
}

static inline double square(double d)
{
    return d * d;
}

lb_moments lb_moments_of(const float *x, int64_t n)
{
    if (n <= 0) return (lb_moments){0, 0, 0};
    const double mean = sum_of(x, n) / (double)n;
    double m2[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            m2[j] += square((double)x[i + j] - mean);
    for (int j = 0; i + j < n; j++)
        m2[j] += square((double)x[i + j] - mean);
    return (lb_moments){(double)n, mean, fold(m2)};
}

/* Chan, Golub and LeVeque's: what the means differ by adds to the distances. */
lb_moments lb_moments_join(lb_moments a, lb_moments b)
{
    if (a.n == 0 || b.n == 0) return a.n == 0 ? b : a;
    const double n = a.n + b.n, d = b.mean - a.mean, part = b.n / n;
    return (lb_moments){n, a.mean + d * part,
                        (a.m2 + b.m2) + d * d * (a.n * part)};
}

static inline float larger(float a, float b)
{
    return a > b ? a : b;
}

float lb_largest_abs(const float *x, int64_t n)
{
    float most[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            most[j] = larger(fabsf(x[i + j]), most[j]);
    for (int j = 0; i + j < n; j++)
        most[j] = larger(fabsf(x[i + j]), most[j]);
    for (int j = 1; j < LANES; j++)
        most[0] = larger(most[j], most[0]);
    return most[0];
}
