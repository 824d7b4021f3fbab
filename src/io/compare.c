/* compare.c - how far one array is from another.
 *
 * Pieces of both are decoded to f32 (f64 where that would lose something) and
 * their squares and products summed: 128 numbers in f32, in lanes whose order
 * is fixed, and those sums in f64. So the figures are the same for every number
 * of threads and every CPU, and it costs little next to decoding. Blocks whose
 * squares leave f32's range, or that hold what is not finite, are added up one
 * number at a time.
 */
#include <math.h>

#include "core/core.h"
#include "io/pieces.h"

enum { LANES = 8, BLOCK = 16 * LANES };

/* ---- sums ---------------------------------------------------------------- */

/* Numbers of which one is not finite have no distance: they are counted, unless
 * they are the same. */
static void add_one(lb_difference *d, double a, double b)
{
    if (!isfinite(a) || !isfinite(b)) {
        if (a == b || (isnan(a) && isnan(b))) return;
        d->apart++;
        d->nonfinite++;
        return;
    }
    const double e = fabs(a - b);
    d->aa += a * a;
    d->bb += b * b;
    d->ab += a * b;
    d->dd += e * e;
    d->apart += a != b;
    if (e > d->max) d->max = e;
}

/* Sums of f32 that are too large, too small or not finite say nothing. */
static bool in_range(float v)
{
    return v > 1e-20f && v < 1e30f;
}

/* Of what is padded or was never trained there may be much. */
static bool all_zero(const float *x)
{
    bool zero = true;
    for (int i = 0; i < BLOCK; i++)
        zero &= x[i] == 0;
    return zero;
}

static void add_block(lb_difference *d, const float *a, const float *b)
{
    float aa[LANES] = {0}, bb[LANES] = {0}, ab[LANES] = {0}, dd[LANES] = {0};
    float max[LANES] = {0};
    int32_t apart[LANES] = {0};
    for (int i = 0; i < BLOCK; i += LANES)
        for (int k = 0; k < LANES; k++) {
            const float x = a[i + k], y = b[i + k], e = fabsf(x - y);
            aa[k] += x * x;
            bb[k] += y * y;
            ab[k] += x * y;
            dd[k] += e * e;
            max[k] = e > max[k] ? e : max[k];
            apart[k] += x != y;
        }
    float all_aa = 0, all_bb = 0, all_ab = 0, all_dd = 0;
    for (int k = 0; k < LANES; k++) {
        all_aa += aa[k];
        all_bb += bb[k];
        all_ab += ab[k];
        all_dd += dd[k];
    }
    if (!in_range(all_aa) || !in_range(all_bb)) {
        if (all_zero(a) && all_zero(b)) return;
        for (int i = 0; i < BLOCK; i++)
            add_one(d, (double)a[i], (double)b[i]);
        return;
    }
    d->aa += (double)all_aa;
    d->bb += (double)all_bb;
    d->ab += (double)all_ab;
    d->dd += (double)all_dd;
    for (int k = 0; k < LANES; k++) {
        d->apart += apart[k];
        if ((double)max[k] > d->max) d->max = (double)max[k];
    }
}

static void add_f32(lb_difference *d, const float *a, const float *b, int64_t n)
{
    int64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        add_block(d, a + i, b + i);
    for (; i < n; i++)
        add_one(d, (double)a[i], (double)b[i]);
}

static void add_f64(lb_difference *d, const double *a, const double *b,
                    int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        add_one(d, a[i], b[i]);
}

/* ---- arrays -------------------------------------------------------------- */

static bool same_shape(const lb_array *a, const lb_array *b)
{
    bool same = lb_rank(a) == lb_rank(b);
    for (int k = 0; same && k < lb_rank(a); k++)
        same = lb_dim(a, k) == lb_dim(b, k);
    return same;
}

bool lb_compare(lb_ctx *cx, lb_array *a, lb_array *b, lb_difference *d)
{
    if (!a || !b || !d) return false;
    if (!same_shape(a, b))
        return lb_fail(cx, LB_E_SHAPE,
                       "compare: arrays of %lld and %lld elements have "
                       "different shapes",
                       (long long)lb_size(a), (long long)lb_size(b));
    const int64_t n = lb_size(a);
    const bool narrow = lb_piece_dtype(lb_dtype_of(a)) == LB_F32 &&
                        lb_piece_dtype(lb_dtype_of(b)) == LB_F32;
    const lb_dtype as = narrow ? LB_F32 : LB_F64;
    lb_enter(cx);
    lb_array *x = lb_reshape(cx, a, LB_SHAPE(n));
    lb_array *y = lb_reshape(cx, b, LB_SHAPE(n));
    bool ok = x && y;
    for (int64_t lo = 0; ok && lo < n; lo += LB_PIECE) {
        const int64_t hi = n - lo < LB_PIECE ? n : lo + LB_PIECE;
        lb_enter(cx);
        const void *p = lb_piece(cx, x, as, lo, hi);
        const void *q = lb_piece(cx, y, as, lo, hi);
        ok = p && q;
        if (ok && narrow)
            add_f32(d, p, q, hi - lo);
        else if (ok)
            add_f64(d, p, q, hi - lo);
        lb_leave(cx);
    }
    lb_leave(cx);
    if (ok) d->n += n;
    return ok;
}

/* ---- figures ------------------------------------------------------------- */

double lb_difference_nrmse(const lb_difference *d)
{
    if (!d || d->nonfinite) return (double)NAN;
    if (d->dd == 0) return 0;
    return d->aa > 0 ? sqrt(d->dd / d->aa) : (double)INFINITY;
}

double lb_difference_cosine(const lb_difference *d)
{
    if (!d || d->nonfinite) return (double)NAN;
    if (d->dd == 0) return 1;
    const double norms = sqrt(d->aa) * sqrt(d->bb);
    return norms > 0 ? d->ab / norms : 0;
}
