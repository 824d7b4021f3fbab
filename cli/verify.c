/* verify.c - what was written, read again and held against the source: errors
 * must be those that were measured while it was written, and what stayed as it
 * was must be the same. */
#include <inttypes.h>
#include <math.h>

#include "job_talk.h"

/* Sums were formed in other pieces. */
static bool is_near(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-4 * fabs(b);
}

static verdict verify_row(const report_row *row, lb_ctx *cx, lb_file *from,
                          lb_file *to)
{
    lb_difference d = {0};
    lb_enter(cx);
    lb_array *a = lb_file_load(cx, from, row->name);
    lb_array *b = lb_file_load(cx, to, row->name);
    /* Some layouts do not say what dtype an array had. */
    if (a && b && lb_dtype_of(b) != lb_dtype_of(a))
        b = lb_convert(cx, b, lb_dtype_of(a));
    const bool ok = lb_compare(cx, a, b, &d);
    lb_leave(cx);
    if (!ok) return complain_of(cx);
    const double is = lb_difference_nrmse(&d);
    const double was = lb_difference_nrmse(&row->error);
    if (row->kept ? d.apart == 0 : is_near(is, was)) return DONE;
    return complain(FAILED,
                    "'%.200s' is read back with an error of %.6g, and was "
                    "written with one of %.6g",
                    row->name, is, row->kept ? 0 : was);
}

verdict verify_result(const report *r, lb_ctx *cx,
                      const lb_file_options *options)
{
    lb_file *from = lb_file_open(cx, r->source, NULL);
    lb_file *to = from ? lb_file_open(cx, r->result, options) : NULL;
    verdict v = to ? DONE : complain_of(cx);
    for (int64_t i = 0; v == DONE && i < r->n; i++)
        v = verify_row(&r->row[i], cx, from, to);
    lb_file_close(from);
    lb_file_close(to);
    return v;
}
