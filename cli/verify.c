/* verify.c - reads a result back and compares it with the source: errors must
 * be the ones measured while it was written, and arrays that were not quantized
 * must be unchanged. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "job_talk.h"

/* The sums were formed in other chunks. */
static bool is_near(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-4 * fabs(b);
}

/* Bytes of rows of the source that are loaded at a time. */
enum { CHUNK = 32 << 20 };

static int64_t rows_at_once(const lb_entry *e)
{
    const int64_t n = e->rank && e->dim[0] > 0 ? e->dim[0] : 1;
    const uint64_t row = e->nbytes / (uint64_t)n + 1;
    return row < CHUNK ? CHUNK / (int64_t)row : 1;
}

/* Rows lo to hi. A packed array is small: it is loaded as a whole. */
static lb_array *rows_of(lb_ctx *cx, lb_file *f, const char *name,
                         lb_array *whole, int64_t lo, int64_t hi)
{
    int64_t from[LB_MAX_RANK] = {lo}, to[LB_MAX_RANK] = {hi};
    if (!whole) return lb_file_load_rows(cx, f, name, lo, hi);
    for (int k = 1; k < lb_rank(whole); k++)
        to[k] = lb_dim(whole, k);
    return lb_slice(cx, whole, from, to, NULL);
}

static bool is_dense(const lb_entry *e)
{
    return e && e->format && strcmp(e->format, "dense") == 0;
}

/* The error of an array in the second file. */
static bool compare(lb_ctx *cx, lb_file *from, lb_file *to, const char *name,
                    lb_difference *d)
{
    const lb_entry *e = lb_file_find(from, name);
    /* Copied as bytes, whose checksums the library has compared: a tensor of an
     * unknown type, or one of several that form an array. */
    if (!e || !e->format) return true;
    const bool cut = is_dense(e) && e->rank && e->dim[0] > 0;
    const int64_t n = cut ? e->dim[0] : 1;
    const int64_t each = cut ? rows_at_once(e) : n;
    lb_enter(cx);
    lb_array *x = cut ? NULL : lb_file_load(cx, from, name);
    lb_array *y = cut && is_dense(lb_file_find(to, name))
                      ? NULL
                      : lb_file_load(cx, to, name);
    bool ok = !lb_error_status(cx);
    for (int64_t lo = 0; ok && lo < n; lo += each) {
        const int64_t hi = n - lo < each ? n : lo + each;
        lb_enter(cx);
        lb_array *a = cut ? rows_of(cx, from, name, NULL, lo, hi) : x;
        lb_array *b = cut ? rows_of(cx, to, name, y, lo, hi) : y;
        /* Some layouts do not record the dtype of the source. */
        if (a && b && lb_dtype_of(b) != lb_dtype_of(a))
            b = lb_convert(cx, b, lb_dtype_of(a));
        ok = lb_compare(cx, a, b, d);
        lb_leave(cx);
    }
    lb_leave(cx);
    return ok;
}

static verdict verify_row(const report_row *row, lb_ctx *cx, lb_file *from,
                          lb_file *to)
{
    lb_difference d = {0};
    if (!compare(cx, from, to, row->name, &d)) return complain_of(cx);
    const double is = lb_difference_nrmse(&d);
    const double was = lb_difference_nrmse(&row->error);
    if (row->kept ? d.apart == 0
                  : is_near(is, was) && d.nonfinite == row->error.nonfinite)
        return DONE;
    return complain(FAILED,
                    "verification failed: '%s' was written with nrmse %.6g "
                    "and reads back with %.6g",
                    show_name(row->name).s, row->kept ? 0 : was, is);
}

verdict verify_result(const report *r, lb_ctx *cx,
                      const lb_file_options *options)
{
    lb_file *from = lb_file_open(cx, r->source, options);
    lb_file *to = from ? lb_file_open(cx, r->result, options) : NULL;
    verdict v = to ? DONE : complain_of(cx);
    for (int64_t i = 0; v == DONE && i < r->n; i++)
        v = verify_row(&r->row[i], cx, from, to);
    lb_file_close(from);
    lb_file_close(to);
    return v;
}
