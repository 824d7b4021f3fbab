/* report_warning.c - a warning about arrays that quantization has destroyed. */
#include <inttypes.h>
#include <string.h>

#include "report.h"

/* Below this cosine similarity a layer computes something else: rounding errors
 * are almost half as large as the weights. */
static const double least = 0.9;

static bool is_destroyed(const report_row *row)
{
    return !row->kept && row->error.apart &&
           lb_difference_cosine(&row->error) < least;
}

/* More precise types of the same file format. */
static const char *better_types(const report_row *row)
{
    const char *format = row->format ? row->format : "";
    return strncmp(format, "tq", 2) == 0 || strncmp(format, "iq", 2) == 0 ||
                   *format == 'q'
               ? "iq4_nl or q8_0"
               : "nf4 or int8";
}

bool report_warning(const report *r, char *to, size_t size)
{
    enum { NAMED = 3 };
    const report_row *named[NAMED], *worst = NULL;
    int64_t n = 0, quantized = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const report_row *row = &r->row[i];
        quantized += !row->kept;
        if (!is_destroyed(row)) continue;
        if (n < NAMED) named[n] = row;
        n++;
        if (!worst || lb_difference_cosine(&row->error) <
                          lb_difference_cosine(&worst->error))
            worst = row;
    }
    if (!worst) return false;
    int at =
        snprintf(to, size,
                 "%" PRId64 " of %" PRId64
                 " quantized array%s lost most of the information in the "
                 "weights (cosine similarity below %g, lowest %.3g), such as ",
                 n, quantized, quantized == 1 ? "" : "s", least,
                 lb_difference_cosine(&worst->error));
    for (int64_t i = 0; i < n && i < NAMED && (size_t)at < size; i++)
        at += snprintf(to + at, size - (size_t)at, "%s%s", i ? ", " : "",
                       show_name(named[i]->name).s);
    if ((size_t)at >= size) return true;
    if (r->target) /* which has chosen the types */
        snprintf(to + at, size - (size_t)at,
                 ". The model will not work; use a larger %s", r->target);
    else
        snprintf(to + at, size - (size_t)at,
                 ". The model will not work; use a type with more bits, such "
                 "as %s, or exclude these arrays",
                 better_types(worst));
    return true;
}
