/* number_text.c - the decimal digits of a floating-point number.
 *
 * The C library converts correctly, so the shortest text is found by trying
 * more and more digits until they are read back as the same value. Its decimal
 * point depends on the locale and is skipped.
 */
#include "ops/number_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double lb_number_round(lb_dtype dtype, double x)
{
    if (dtype == LB_F64) return x;
    if (dtype == LB_F32) return (double)(float)x;
    if (x == 0 || !isfinite(x)) return x;
    const bool f16 = dtype == LB_F16;
    const int least = f16 ? -14 : -126, bits = f16 ? 10 : 7;
    const int e = ilogb(x);
    const double step = ldexp(1, (e < least ? least : e) - bits);
    const double y = nearbyint(x / step) * step;
    const double most = f16 ? 65504 : 0x1.fep127;
    return fabs(y) > most ? copysign(INFINITY, x) : y;
}

/* Significant decimal digits: d.ddd * 10^exponent. */
typedef struct {
    char digit[24];
    int n, exponent;
} number_digits;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes the digits of a "%e" text, without trailing zeros, but at least least
 * digits. */
static void take_digits(const char *s, int least, char *digit, int *n,
                        int *exponent)
{
    *n = 0;
    for (; *s && *s != 'e'; s++)
        if (is_digit(*s)) digit[(*n)++] = *s;
    while (*n > least && digit[*n - 1] == '0')
        --*n;
    *exponent = *s ? (int)strtol(s + 1, NULL, 10) : 0;
}

static number_digits shortest(lb_dtype dtype, double x)
{
    enum { MOST = 17 }; /* digits that identify any f64 */
    number_digits d;
    char s[64];
    for (int n = 1; n <= MOST; n++) {
        snprintf(s, sizeof s, "%.*e", n - 1, x);
        const double y =
            dtype == LB_F32 ? (double)strtof(s, NULL) : strtod(s, NULL);
        if (lb_number_round(dtype, y) == x) break;
    }
    take_digits(s, 1, d.digit, &d.n, &d.exponent);
    return d;
}

static int decimal_places(int exponent)
{
    const int e = exponent < 0 ? -exponent : exponent;
    return e >= 100 ? 3 : 2;
}

static void with_exponent(lb_number *to, double x, int least, int most,
                          const number_digits *d)
{
    char s[128], digit[96];
    int n = d->n;
    const char *from = d->digit;
    to->exponent = d->exponent;
    if (n - 1 < least || n - 1 > most) {
        snprintf(s, sizeof s, "%.*e", n - 1 < least ? least : most, x);
        take_digits(s, least + 1, digit, &n, &to->exponent);
        from = digit;
    }
    snprintf(to->before + strlen(to->before), 2, "%.1s", from);
    snprintf(to->after, sizeof to->after, "%.*s", n - 1, from + 1);
    to->exp_size = decimal_places(to->exponent);
}

static void without_exponent(lb_number *to, double x, int most,
                             const number_digits *d)
{
    char *before = to->before + strlen(to->before), *after = to->after;
    if (d->n - 1 - d->exponent <= most) {
        if (d->exponent < 0) *before++ = '0';
        for (int i = 0; i <= d->exponent; i++)
            *before++ = i < d->n ? d->digit[i] : '0';
        for (int i = d->exponent + 1; i < d->n; i++)
            *after++ = i < 0 ? '0' : d->digit[i];
        *before = *after = 0;
        return;
    }
    char s[512];
    const char *c = s;
    snprintf(s, sizeof s, "%.*f", most, x);
    while (is_digit(*c))
        *before++ = *c++;
    while (*c && !is_digit(*c))
        c++;
    while (is_digit(*c))
        *after++ = *c++;
    while (after > to->after && after[-1] == '0')
        after--;
    *before = *after = 0;
}

void lb_number_of(lb_number *to, lb_dtype dtype, double x, int least, int most,
                  bool exponent)
{
    *to = (lb_number){0};
    const number_digits d = shortest(dtype, fabs(x));
    if (signbit(x)) to->before[0] = '-';
    if (exponent)
        with_exponent(to, fabs(x), least, most, &d);
    else
        without_exponent(to, fabs(x), most, &d);
}
