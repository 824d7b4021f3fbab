/* histogram.c - histograms, and how they are shown on a terminal. */
#include "histogram.h"

#include <float.h>
#include <langinfo.h>
#include <math.h>
#include <string.h>

/* ---- counting ------------------------------------------------------------ */

void histogram_span(lb_histogram *h, const lb_findings *f, int bins)
{
    const double n = f->finite ? (double)f->finite : 1, mean = f->sum / n;
    const double var = f->squares / n - mean * mean;
    const double far = 4 * (var > 0 ? sqrt(var) : 0);
    *h = (lb_histogram){.lo = fmax(f->least, mean - far),
                        .hi = fmin(f->most, mean + far),
                        .bins = bins};
    if (!(h->hi > h->lo)) { /* all values are equal, or nearly */
        const double aside = fmax(0.5, fabs(f->most) * 1e-3);
        h->lo = f->least - (f->least == f->most ? aside : 0);
        h->hi = f->most + (f->least == f->most ? aside : 0);
        h->lo = fmax(h->lo, -DBL_MAX);
        h->hi = fmin(h->hi, DBL_MAX);
    }
}

/* The range of codes that occur; c->least > c->most if none does. */
static void find_range(code_counts *c, bool is_signed)
{
    c->least = is_signed ? -128 : 0;
    c->most = is_signed ? 127 : 255;
    while (c->least < c->most && !c->count[c->least & 255])
        c->least++;
    while (c->most > c->least && !c->count[c->most & 255])
        c->most--;
}

bool codes_add(code_counts *c, lb_ctx *cx, lb_array *a)
{
    if (!a) return false;
    if (!lb_size(a)) return true;
    if (!lb_count_codes(cx, a, c->count)) {
        if (lb_error_status(cx) != LB_E_UNSUPPORTED) return false;
        lb_clear(cx);
        return true;
    }
    lb_enter(cx);
    const int64_t lo = 0, hi = 1;
    lb_array *flat = lb_reshape(cx, a, LB_SHAPE(lb_size(a)));
    lb_array *one = lb_codes(cx, lb_slice(cx, flat, &lo, &hi, NULL));
    if (one) find_range(c, lb_dtype_of(one) == LB_I8);
    lb_leave(cx);
    return one != NULL;
}

/* ---- drawing ------------------------------------------------------------- */

static bool has_unicode(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* The k-th character of a string of characters of three bytes each. */
static void put_third(FILE *to, const char *all, int k)
{
    fwrite(all + 3 * k, 1, 3, to);
}

int put_bar(FILE *to, double v, double most, int width)
{
    static const char part[] = "▏▎▍▌▋▊▉";
    const int eighths = most > 0 ? (int)lround(8 * width * v / most) : 0;
    const bool unicode = has_unicode();
    const int whole = unicode ? eighths / 8 : (eighths + 4) / 8;
    for (int i = 0; i < whole; i++)
        fputs(unicode ? "█" : "#", to);
    if (unicode && eighths % 8) put_third(to, part, eighths % 8 - 1);
    return whole + (unicode && eighths % 8);
}

void put_spark(FILE *to, const int64_t *count, int n)
{
    static const char ascii[] = " .:-=+*#@";
    int64_t most = 1;
    const bool unicode = has_unicode();
    for (int i = 0; i < n; i++)
        if (count[i] > most) most = count[i];
    for (int i = 0; i < n; i++) {
        const double v = 8 * (double)count[i] / (double)most;
        const int k = count[i] ? (int)fmax(1, ceil(v)) : 0;
        if (unicode && k)
            put_third(to, "▁▂▃▄▅▆▇█", k - 1);
        else
            fputc(ascii[k], to);
    }
}
