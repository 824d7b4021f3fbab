/* numbers.h - the values of a dtype's bits, independent of the library: as long
 * double (exact for all dtypes, because it has 64 bits of precision), and
 * errors in units of the last place. */
#ifndef LB_NUMBERS_H
#define LB_NUMBERS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lowbit.h"

typedef struct number_layout {
    int digits;  /* of the significand, with the hidden bit */
    int min_exp; /* the smallest normal value is 2^min_exp */
    int max_exp; /* all values are below 2^max_exp */
    int bits;
} number_layout;

/* Some emulators compute long double as double: then these results are not a
 * reference. */
static inline bool number_is_exact(void)
{
    volatile long double one = 1, little = 0x1p-63L;
    return one + little != one;
}

static inline number_layout number_layout_of(lb_dtype d)
{
    switch (d) {
    case LB_F16:
        return (number_layout){11, -14, 16, 16};
    case LB_BF16:
        return (number_layout){8, -126, 128, 16};
    case LB_F64:
        return (number_layout){53, -1022, 1024, 64};
    default:
        return (number_layout){24, -126, 128, 32};
    }
}

static inline bool number_is_float(lb_dtype d)
{
    return d >= LB_F32 && d <= LB_F64;
}

static inline bool number_is_signed(lb_dtype d)
{
    return d >= LB_I8 && d <= LB_I64;
}

static inline int number_bits(lb_dtype d)
{
    return d == LB_BOOL ? 1 : (int)lb_dtype_size(d) * 8;
}

static inline uint64_t number_raw(lb_dtype d, const void *at)
{
    uint64_t raw = 0;
    memcpy(&raw, at, lb_dtype_size(d)); /* little endian */
    return raw;
}

static inline long double number_from_float(lb_dtype d, uint64_t raw)
{
    const number_layout l = number_layout_of(d);
    const int m = l.digits - 1, e_bits = l.bits - l.digits;
    const uint64_t fraction = raw & (((uint64_t)1 << m) - 1);
    const int e = (int)(raw >> m & (((uint64_t)1 << e_bits) - 1));
    const long double sign = raw >> (l.bits - 1) & 1 ? -1 : 1;
    if (e == (1 << e_bits) - 1)
        return fraction ? (long double)NAN : sign * (long double)INFINITY;
    const uint64_t f = e ? fraction | (uint64_t)1 << m : fraction;
    return sign * ldexpl((long double)f, (e ? e : 1) - 1 + l.min_exp - m);
}

/* The value of an element. */
static inline long double number_at(lb_dtype d, const void *at)
{
    const uint64_t raw = number_raw(d, at);
    const int bits = number_bits(d);
    if (number_is_float(d)) return number_from_float(d, raw);
    if (!number_is_signed(d)) return (long double)raw;
    const uint64_t top = (uint64_t)1 << (bits - 1);
    return (long double)(int64_t)((raw ^ top) - top);
}

/* Distance in ulp of a float of dtype d from the exact value. Infinity stands
 * for the first power of two that overflows; NaN is only close to NaN, and zero
 * has a sign. */
static inline double number_ulps(lb_dtype d, long double got, long double want)
{
    const number_layout l = number_layout_of(d);
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0 : (double)INFINITY;
    if (want == 0 && got == 0)
        return !signbit(got) == !signbit(want) ? 0 : (double)INFINITY;
    const long double most = ldexpl(1, l.max_exp);
    const long double w = fabsl(want) > most ? copysignl(most, want) : want;
    const long double g = isinf(got) ? copysignl(most, got) : got;
    int e;
    frexpl(w, &e);
    if (e - 1 < l.min_exp) e = l.min_exp + 1;
    if (e > l.max_exp) e = l.max_exp;
    return (double)(fabsl(g - w) / ldexpl(1, e - l.digits));
}

/* splitmix64 */
static inline uint64_t number_draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

#endif
