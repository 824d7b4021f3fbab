/* diff_stats.c - error statistics of two arrays.
 *
 * Both are decoded to f32 (f64 where f32 is not exact), and squares and
 * products are summed by all threads in a fixed order (core/distance.h): the
 * result is the same for every number of threads and every CPU.
 */
#include <math.h>

#include "core/distance.h"
#include "io/arrays/chunks.h"

/* ---- arrays -------------------------------------------------------------- */

static bool same_shape(const lb_array *a, const lb_array *b)
{
    bool same = lb_rank(a) == lb_rank(b);
    for (int k = 0; same && k < lb_rank(a); k++)
        same = lb_dim(a, k) == lb_dim(b, k);
    return same;
}

static bool is_float(lb_dtype d)
{
    return d == LB_F32 || d == LB_F16 || d == LB_BF16 || d == LB_F64;
}

/* Elements lo <= i < hi of a vector, converted to floats if needed. */
static lb_array *some(lb_ctx *cx, lb_array *a, lb_dtype as, int64_t lo,
                      int64_t hi)
{
    lb_array *x = lb_slice(cx, a, &lo, &hi, NULL);
    if (is_float(lb_dtype_of(a))) return x;
    return lb_materialize(cx, lb_convert(cx, x, as));
}

static void add(lb_difference *d, const lb_apart *s)
{
    d->apart += s->apart;
    d->nonfinite += s->nonfinite;
    d->aa += s->aa;
    d->bb += s->bb;
    d->ab += s->ab;
    d->dd += s->dd;
    if (s->max > d->max) d->max = s->max;
}

bool lb_compare(lb_ctx *cx, lb_array *a, lb_array *b, lb_difference *d)
{
    if (!a || !b || !d) return false;
    if (!same_shape(a, b))
        return lb_fail(cx, LB_E_SHAPE,
                       "compare: arrays of %lld and %lld elements have "
                       "different shapes",
                       (long long)lb_size(a), (long long)lb_size(b));
    const int64_t n = lb_size(a), most = LB_DISTANCE_MOST;
    const bool narrow = lb_chunk_dtype(lb_dtype_of(a)) == LB_F32 &&
                        lb_chunk_dtype(lb_dtype_of(b)) == LB_F32;
    const lb_dtype as = narrow ? LB_F32 : LB_F64;
    lb_enter(cx);
    lb_array *x = lb_reshape(cx, a, LB_SHAPE(n));
    lb_array *y = lb_reshape(cx, b, LB_SHAPE(n));
    bool ok = x && y;
    for (int64_t lo = 0; ok && lo < n; lo += most) {
        const int64_t hi = n - lo < most ? n : lo + most;
        lb_apart sum = {0};
        lb_enter(cx);
        lb_array *p = some(cx, x, as, lo, hi);
        lb_array *q = some(cx, y, as, lo, hi);
        ok = p && q &&
             lb_distance_add(cx, p, q, narrow ? LB_C_F32 : LB_C_F64, &sum);
        add(d, &sum);
        lb_leave(cx);
    }
    lb_leave(cx);
    if (ok) d->n += n;
    return ok;
}

/* ---- results ------------------------------------------------------------- */

static bool has_finite(const lb_difference *d)
{
    return d && (!d->nonfinite || d->nonfinite < d->n);
}

double lb_difference_nrmse(const lb_difference *d)
{
    if (!has_finite(d)) return (double)NAN;
    if (d->dd == 0) return 0;
    return d->aa > 0 ? sqrt(d->dd / d->aa) : (double)INFINITY;
}

double lb_difference_cosine(const lb_difference *d)
{
    if (!has_finite(d)) return (double)NAN;
    if (d->dd == 0) return 1;
    const double norms = sqrt(d->aa) * sqrt(d->bb);
    return norms > 0 ? d->ab / norms : 0;
}
