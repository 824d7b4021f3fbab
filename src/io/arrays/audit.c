/* audit.c - the numbers of an array, and whether they can be right.
 *
 * What no sound array holds: NaN and infinities; codes that its format does
 * not have; scales that are not finite, or below zero, which no encoder
 * writes. (Of scales that divide: 0. That of zeros is infinite there.)
 */
#include <math.h>
#include <string.h>

#include "core/core.h"
#include "io/arrays/chunks.h"

lb_dtype lb_piece_dtype(lb_dtype d)
{
    return d == LB_F32 || lb_dtype_size(d) <= 2 ? LB_F32 : LB_F64;
}

const void *lb_piece(lb_ctx *cx, lb_array *a, lb_dtype as, int64_t lo,
                     int64_t hi)
{
    /* Dense first: to convert a quantized array changes its label, and then its
     * numbers are no longer rounded to what they were labelled. */
    lb_array *p = lb_materialize(cx, lb_slice(cx, a, &lo, &hi, NULL));
    p = lb_materialize(cx, lb_convert(cx, p, as));
    return p ? lb_data(p) : NULL;
}

static void note(lb_flaw *flaw, int64_t i)
{
    if (!flaw->n++) flaw->first = i;
}

/* ---- numbers ------------------------------------------------------------- */

static void see(lb_findings *f, double v, int64_t i)
{
    if (!isfinite(v)) {
        note(isnan(v) ? &f->nan : &f->inf, i);
        return;
    }
    if (!f->finite++) f->least = f->most = v;
    if (v < f->least) f->least = v;
    if (v > f->most) f->most = v;
    f->zeros += v == 0;
    f->sum += v;
    f->squares += v * v;
}

static bool see_piece(lb_ctx *cx, lb_array *a, int64_t lo, int64_t hi,
                      lb_findings *f)
{
    const lb_dtype as = lb_piece_dtype(lb_dtype_of(a));
    const void *p = lb_piece(cx, a, as, lo, hi);
    if (!p) return false;
    const float *x = p;
    const double *y = p;
    for (int64_t i = 0; i < hi - lo; i++)
        see(f, as == LB_F32 ? (double)x[i] : y[i], f->n + i);
    return true;
}

/* ---- what is stored ------------------------------------------------------ */

static bool see_codes(lb_ctx *cx, lb_array *a, int64_t lo, int64_t hi,
                      lb_findings *f)
{
    const lb_code_kind *k = &a->store->fmt->codes;
    if (!k->bits) return true;
    lb_array *codes = lb_codes(cx, lb_slice(cx, a, &lo, &hi, NULL));
    if (!codes) return false;
    const uint8_t *u = lb_data(codes);
    for (int64_t i = 0; i < hi - lo; i++) {
        const int code = k->least < 0 ? (int8_t)u[i] : u[i];
        if (code < k->least || code > k->most) note(&f->code, f->n + i);
    }
    return true;
}

static bool is_flawed(float s, bool divides)
{
    return divides ? !(s > 0) : !(s >= 0) || isinf(s);
}

static bool see_scales(lb_ctx *cx, lb_array *scale, bool divides,
                       lb_findings *f)
{
    const int64_t n = lb_size(scale);
    lb_array *flat = lb_reshape(cx, scale, LB_SHAPE(n));
    bool ok = flat != NULL;
    for (int64_t lo = 0; ok && lo < n; lo += LB_PIECE) {
        const int64_t hi = n - lo < LB_PIECE ? n : lo + LB_PIECE;
        lb_enter(cx);
        const float *s = lb_piece(cx, flat, LB_F32, lo, hi);
        ok = s != NULL;
        for (int64_t i = 0; ok && i < hi - lo; i++)
            if (is_flawed(s[i], divides)) note(&f->scale, f->scales + i);
        lb_leave(cx);
        f->scales += hi - lo;
    }
    return ok;
}

/* ---- all ----------------------------------------------------------------- */

bool lb_examine(lb_ctx *cx, lb_array *a, lb_findings *f)
{
    if (!a || !f) return false;
    const int64_t n = lb_size(a);
    lb_enter(cx);
    lb_array *flat = lb_reshape(cx, a, LB_SHAPE(n));
    bool ok = flat != NULL;
    for (int64_t lo = 0; ok && lo < n; lo += LB_PIECE) {
        const int64_t hi = n - lo < LB_PIECE ? n : lo + LB_PIECE;
        lb_enter(cx);
        ok = see_piece(cx, flat, lo, hi, f) && see_codes(cx, flat, lo, hi, f);
        lb_leave(cx);
        if (ok) f->n += hi - lo;
    }
    const lb_store *s = a->store;
    for (int p = 0; ok && p < LB_MAX_PARTS && s->fmt->part[p].name; p++)
        if (s->fmt->part[p].scale && s->part[p].a)
            ok =
                see_scales(cx, s->part[p].a, s->meaning == LB_MEANS_INVERSE, f);
    lb_leave(cx);
    return ok;
}

bool lb_findings_sound(const lb_findings *f)
{
    return f && !f->nan.n && !f->inf.n && !f->code.n && !f->scale.n;
}
