/* histogram.c - counts, and how a terminal shows them. */
#include "histogram.h"

#include <float.h>
#include <langinfo.h>
#include <math.h>
#include <string.h>

enum { PIECE = 1 << 18 }; /* elements at a time */

/* ---- counting ------------------------------------------------------------ */

void histogram_span(histogram *h, const lb_findings *f, int bins)
{
    const double n = f->finite ? (double)f->finite : 1, mean = f->sum / n;
    const double var = f->squares / n - mean * mean;
    const double far = 4 * (var > 0 ? sqrt(var) : 0);
    *h = (histogram){.lo = fmax(f->least, mean - far),
                     .hi = fmin(f->most, mean + far),
                     .bins = bins};
    if (!(h->hi > h->lo)) { /* one number, or nearly */
        const double aside = fmax(0.5, fabs(f->most) * 1e-3);
        h->lo = f->least - (f->least == f->most ? aside : 0);
        h->hi = f->most + (f->least == f->most ? aside : 0);
        h->lo = fmax(h->lo, -DBL_MAX);
        h->hi = fmin(h->hi, DBL_MAX);
    }
}

static void count_one(histogram *h, double v)
{
    if (!isfinite(v)) return;
    if (v < h->lo)
        h->below++;
    else if (v > h->hi)
        h->above++;
    else {
        /* Of halves: the whole may be infinite. And there may be nothing
         * between the ends but them. */
        const double part = (v / 2 - h->lo / 2) / (h->hi / 2 - h->lo / 2);
        const int i = part > 0 ? (int)(part * h->bins) : 0;
        h->count[i < h->bins ? i : h->bins - 1]++;
    }
}

/* The next piece of a, which becomes a vector; NULL at the end, or on error. */
static lb_array *next_piece(lb_ctx *cx, lb_array *a, int64_t *at)
{
    const int64_t n = lb_size(a), lo = *at;
    const int64_t hi = n - lo < PIECE ? n : lo + PIECE;
    if (lo >= n) return NULL;
    *at = hi;
    return lb_slice(cx, lb_reshape(cx, a, LB_SHAPE(n)), &lo, &hi, NULL);
}

bool histogram_add(histogram *h, lb_ctx *cx, lb_array *a)
{
    bool ok = a != NULL;
    for (int64_t at = 0, n = lb_size(a); ok && at < n;) {
        lb_enter(cx);
        lb_array *p = next_piece(cx, a, &at);
        p = lb_convert(cx, lb_materialize(cx, p), LB_F64);
        const double *x = p ? lb_data(p) : NULL;
        ok = x != NULL;
        for (int64_t i = 0; ok && i < lb_size(p); i++)
            count_one(h, x[i]);
        lb_leave(cx);
    }
    return ok;
}

bool codes_add(code_counts *c, lb_ctx *cx, lb_array *a)
{
    bool ok = a != NULL;
    bool any = false;
    for (int64_t at = 0, n = lb_size(a); ok && at < n;) {
        lb_enter(cx);
        lb_array *p = next_piece(cx, a, &at);
        lb_array *codes = p ? lb_codes(cx, p) : NULL;
        const uint8_t *x = codes ? lb_data(codes) : NULL;
        ok = x != NULL;
        for (int64_t i = 0; ok && i < lb_size(codes); i++)
            c->count[x[i]]++;
        const bool is_signed = ok && lb_dtype_of(codes) == LB_I8;
        lb_leave(cx);
        if (!ok && lb_error_status(cx) == LB_E_UNSUPPORTED) {
            lb_clear(cx);
            return true;
        }
        any |= ok;
        c->least = is_signed ? -128 : 0;
        c->most = is_signed ? 127 : 255;
    }
    if (!any) return ok;
    while (c->least < c->most && !c->count[c->least & 255])
        c->least++;
    while (c->most > c->least && !c->count[c->most & 255])
        c->most--;
    return ok;
}

/* ---- drawing ------------------------------------------------------------- */

static bool has_unicode(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* Characters of three bytes each, one after the other. */
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
