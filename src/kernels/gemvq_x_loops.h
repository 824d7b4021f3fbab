/* gemvq_x_loops.h - the loops over a vector's numbers, to be compiled for more
 * than one level: the same operations in the same order, so the same bits.
 *
 * X_TARGET is the attribute of the functions that X_TABLE will name.
 */
#include <math.h>
#include <string.h>

#include "kernels/gemvq.h"
#include "kernels/gemvq_sets.h"

#define X_FN static inline __attribute__((always_inline))

X_FN size_t slot_size(lb_gemvq_kind kind)
{
    return kind == LB_GEMVQ_F32 ? 4 : kind == LB_GEMVQ_I8 ? 1 : 2;
}

X_FN int64_t panel_of(lb_gemvq_kind kind)
{
    return kind == LB_GEMVQ_I16 ? LB_GEMVQ_I16_PANEL : LB_GEMVQ_I8_PANEL;
}

/* The bits of the largest magnitude: what is not finite is larger than all. */
X_FN int32_t largest(const float *x, int64_t n)
{
    int32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t u;
        memcpy(&u, &x[i], sizeof u);
        u &= INT32_MAX;
        most = u > most ? u : most;
    }
    return most;
}

X_FN float as_float(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

X_TARGET static void range(lb_gemvq_x *x)
{
    const float most = as_float(largest(x->number, x->k));
    if (most == 0 || !isfinite(most) || (most >= 0x1p-60f && most <= 0x1p60f))
        return;
    /* Downwards no farther than need be: small numbers may get lost. */
    const int e = ilogbf(most) - (most > 1 ? 60 : 0);
    const double by = ldexp(1, -e);
    for (int64_t i = 0; i < x->k; i++)
        x->number[i] = (float)(by * (double)x->number[i]);
    x->unit *= ldexp(1, e);
}

X_FN float round_all(const float *x, int64_t n, float most, int32_t *to)
{
    const float size = as_float(largest(x, n));
    if (size == 0 || !isfinite(size)) {
        memset(to, 0, (size_t)n * sizeof *to);
        return size == 0 ? 0 : NAN;
    }
    /* Next to numbers near 1, which there are, smaller ones do not count. */
    const float top = size < 0x1p-100f ? 0x1p-100f : size;
    const float by = most / top;
    for (int64_t i = 0; i < n; i++) /* to the nearest, ties to even */
        to[i] = (int32_t)((x[i] * by + 0x1.8p23f) - 0x1.8p23f);
    return top / most;
}

/* Numbers of a panel to where they belong. */
X_FN void put_i16(const lb_gemvq_kernel *q, const uint16_t *place_of,
                  const int32_t *whole, int64_t groups, int16_t *to)
{
    const int n = q->group;
    for (int64_t g = 0; g < groups; g++, whole += n, to += n)
        for (int s = 0; s < n; s++)
            to[s] = (int16_t)whole[place_of[s]];
}

/* Every 4th or 8th byte, n of them; strides that compilers know. */
X_FN void every(const int8_t *from, int stride, int n, int8_t *to)
{
    for (int i = 0; i < n && stride == 4; i++)
        to[i] = from[4 * i];
    for (int i = 0; i < n && stride == 8; i++)
        to[i] = from[8 * i];
}

/* Vectors of as many numbers as a group has bytes, one for each code of a byte:
 * of high and of low in turns, or of low alone. */
X_FN void put_i8(const lb_gemvq_kernel *q, bool high_first,
                 const int32_t *whole, int64_t n, int8_t *to)
{
    int8_t high[LB_GEMVQ_I8_PANEL], low[LB_GEMVQ_I8_PANEL];
    const int per = 8 / q->bits, width = q->group / per;
    for (int64_t i = 0; i < n; i++) {
        low[i] = (int8_t)(uint8_t)whole[i];
        high[i] = (int8_t)((whole[i] + 128) >> 8);
    }
    for (int64_t g = 0; g < n; g += q->group)
        for (int f = 0; f < per; f++) {
            const int64_t at = g + (high_first ? per - 1 - f : f);
            if (q->kind == LB_GEMVQ_I8X2) {
                every(high + at, per, width, to);
                to += width;
            }
            every(low + at, per, width, to);
            to += width;
        }
}

X_FN void order_whole(const lb_gemvq_kernel *q, bool high_first, lb_gemvq_x *x)
{
    int32_t whole[LB_GEMVQ_I8_PANEL];
    uint16_t place_of[LB_GEMVQ_GROUP] = {0};
    const int64_t panel = panel_of(q->kind), n = x->groups * q->group;
    const float most = q->kind == LB_GEMVQ_I16    ? LB_GEMVQ_X16
                       : q->kind == LB_GEMVQ_I8X2 ? LB_GEMVQ_X8X2
                                                  : LB_GEMVQ_X8;
    if (q->kind == LB_GEMVQ_I16) lb_gemvq_places(q, high_first, place_of);
    for (int64_t at = 0, p = 0; at < n; at += panel, p++) {
        const int64_t m = n - at < panel ? n - at : panel;
        x->x_scale[p] = round_all(x->number + at, m, most, whole);
        x->x_sum[p] = 0;
        for (int64_t i = 0; i < m; i++)
            x->x_sum[p] += whole[i];
        if (q->kind == LB_GEMVQ_I16)
            put_i16(q, place_of, whole, m / q->group, (int16_t *)x->slots + at);
        else
            put_i8(q, high_first, whole, m,
                   (int8_t *)x->slots + at * (int64_t)slot_size(q->kind));
    }
}

X_FN void order_f32(const lb_gemvq_kernel *q, bool high_first, lb_gemvq_x *x)
{
    uint16_t place_of[LB_GEMVQ_GROUP] = {0};
    float *to = x->slots;
    const float *from = x->number;
    lb_gemvq_places(q, high_first, place_of);
    for (int64_t g = 0; g < x->groups; g++, from += q->group, to += q->group)
        for (int s = 0; s < q->group; s++)
            to[s] = from[place_of[s]];
}

X_TARGET static void order(const lb_gemvq_kernel *q, bool high_first,
                           lb_gemvq_x *x)
{
    for (int64_t i = x->k; i < x->groups * q->group; i++)
        x->number[i] = 0;
    if (q->kind == LB_GEMVQ_F32)
        order_f32(q, high_first, x);
    else
        order_whole(q, high_first, x);
}

X_TARGET static float round_numbers(const float *x, int64_t n, float most,
                                    int32_t *to)
{
    return round_all(x, n, most, to);
}

X_TARGET static void tops(const float *x, int64_t lines, const float *scale,
                          int64_t step, int64_t n, int32_t *restrict top)
{
    for (int64_t k = 0; k < lines; k++, scale += step)
        for (int64_t i = 0; i < n; i++) {
            const float t = x[k] * scale[i];
            int32_t bits;
            memcpy(&bits, &t, sizeof bits);
            bits &= INT32_MAX;
            top[i] = bits > top[i] ? bits : top[i];
        }
}

X_TARGET static void units(const int32_t *restrict top, int64_t n, float most,
                           float unit, float *restrict scale,
                           float *restrict by)
{
    /* Bits of magnitudes are in the order of these. */
    const int32_t small = 0x0d800000, beyond = 0x7f800000; /* 2^-100, inf */
    for (int64_t i = 0; i < n; i++) {
        const float size = as_float(top[i] < small ? small : top[i]);
        scale[i] = size / most * unit;
        by[i] = most / size;
    }
    for (int64_t i = 0; i < n; i++)
        if (top[i] >= beyond) {
            scale[i] = NAN;
            by[i] = 0;
        }
}

/* The nearest whole number in the low bits, for magnitudes below 2^15. */
X_FN uint32_t nearest(float x)
{
    uint32_t u;
    x += 0x1.8p23f;
    memcpy(&u, &x, sizeof u);
    return u & 0xffff;
}

X_TARGET static void pairs(const float *x, const float *const *scale,
                           const float *restrict by, int64_t n,
                           int32_t *restrict to)
{
    const float *restrict a = scale[0], *restrict b = scale[1];
    const float xa = x[0], xb = x[1];
    for (int64_t i = 0; i < n; i++)
        to[i] = (int32_t)(nearest(xa * a[i] * by[i]) |
                          nearest(xb * b[i] * by[i]) << 16);
}

const lb_gemvq_loops X_TABLE = {range, order, round_numbers,
                                tops,  units, pairs};
