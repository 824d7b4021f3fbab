/* audit.c - statistics of an array, and invalid values in it.
 *
 * Invalid are NaN and infinities, codes that the format does not define, and
 * scales that are negative or not finite, which no encoder writes. (A scale
 * that divides may be infinite, for blocks of zeros, but not 0.)
 *
 * All threads share the work. Each part of a chunk is summed by itself and the
 * parts are added in order, so the result does not depend on the threads. Parts
 * without NaN and infinities are summed in lanes, which compilers vectorize.
 */
#include <math.h>
#include <string.h>

#include "core/core.h"
#include "io/arrays/chunks.h"

enum { PARTS = LB_CHUNK / LB_CHUNK_PART, LANES = 8 };

lb_dtype lb_chunk_dtype(lb_dtype d)
{
    return d == LB_F32 || lb_dtype_size(d) <= 2 ? LB_F32 : LB_F64;
}

const void *lb_chunk(lb_ctx *cx, lb_array *a, lb_dtype as, int64_t lo,
                     int64_t hi)
{
    /* Decode before converting: converting a quantized array changes its
     * logical dtype, so that values would no longer be rounded to it. */
    lb_array *p = lb_materialize(cx, lb_slice(cx, a, &lo, &hi, NULL));
    p = lb_materialize(cx, lb_convert(cx, p, as));
    return p ? lb_data(p) : NULL;
}

static void note(lb_flaw *flaw, int64_t i)
{
    if (!flaw->n++) flaw->first = i;
}

/* ---- values -------------------------------------------------------------- */

/* A chunk of elements, in f32 or, if that is NULL, f64; or of codes. */
typedef struct chunk_scan {
    const float *f32;
    const double *f64;
    const uint8_t *codes;
    const lb_code_kind *kind;
    int64_t n, first; /* number of elements, and index of the first */
    lb_findings part[PARTS];
} chunk_scan;

static void add_value(lb_findings *f, double v, int64_t i)
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

static bool all_finite(const float *x, int64_t n)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t wild = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        wild |= (bits & exponent) == exponent;
    }
    return !wild;
}

/* Finite values, at least LANES; all but the last n % LANES, which it returns.
 */
static int64_t add_lanes(lb_findings *f, const float *x, int64_t n)
{
    double sum[LANES] = {0}, squares[LANES] = {0};
    float least[LANES], most[LANES];
    int32_t zeros[LANES] = {0};
    const int64_t end = n / LANES * LANES;
    memcpy(least, x, sizeof least);
    memcpy(most, x, sizeof most);
    for (int64_t i = 0; i < end; i += LANES)
        for (int k = 0; k < LANES; k++) {
            const float v = x[i + k];
            const double d = (double)v;
            least[k] = v < least[k] ? v : least[k];
            most[k] = v > most[k] ? v : most[k];
            zeros[k] += v == 0;
            sum[k] += d;
            squares[k] += d * d;
        }
    f->finite = end;
    f->least = f->most = (double)x[0];
    for (int k = 0; k < LANES; k++) {
        f->least = fmin(f->least, (double)least[k]);
        f->most = fmax(f->most, (double)most[k]);
        f->zeros += zeros[k];
        f->sum += sum[k];
        f->squares += squares[k];
    }
    return n - end;
}

static void scan_parts(void *arg, int64_t lo, int64_t hi, int thread)
{
    chunk_scan *s = arg;
    (void)thread;
    for (int64_t u = lo; u < hi; u++) {
        const int64_t end = lb_min_i64((u + 1) * LB_CHUNK_PART, s->n);
        int64_t i = u * LB_CHUNK_PART;
        lb_findings f = {0};
        if (s->f32 && end - i >= LANES && all_finite(s->f32 + i, end - i))
            i = end - add_lanes(&f, s->f32 + i, end - i);
        for (; i < end; i++)
            add_value(&f, s->f32 ? (double)s->f32[i] : s->f64[i], s->first + i);
        s->part[u] = f;
    }
}

/* Whether some codes of a format are invalid. */
static bool has_invalid(const lb_code_kind *k)
{
    return k->bits && (k->most - k->least) / k->step + 1 < 1 << k->bits;
}

static void scan_codes(void *arg, int64_t lo, int64_t hi, int thread)
{
    chunk_scan *s = arg;
    const lb_code_kind *k = s->kind;
    (void)thread;
    for (int64_t u = lo; u < hi; u++) {
        const int64_t end = lb_min_i64((u + 1) * LB_CHUNK_PART, s->n);
        for (int64_t i = u * LB_CHUNK_PART; i < end; i++) {
            const int code =
                k->least < 0 ? (int8_t)s->codes[i] : (int)s->codes[i];
            if (code < k->least || code > k->most)
                note(&s->part[u].code, s->first + i);
        }
    }
}

static void add_flaws(lb_flaw *to, const lb_flaw *more)
{
    if (!to->n) to->first = more->first;
    to->n += more->n;
}

static void add_part(lb_findings *to, const lb_findings *part)
{
    add_flaws(&to->nan, &part->nan);
    add_flaws(&to->inf, &part->inf);
    add_flaws(&to->code, &part->code);
    if (!part->finite) return;
    if (!to->finite || part->least < to->least) to->least = part->least;
    if (!to->finite || part->most > to->most) to->most = part->most;
    to->finite += part->finite;
    to->zeros += part->zeros;
    to->sum += part->sum;
    to->squares += part->squares;
}

/* Elements lo <= i < hi of the vector a. */
static bool scan_chunk(lb_ctx *cx, lb_array *a, int64_t lo, int64_t hi,
                       lb_findings *f)
{
    const lb_dtype as = lb_chunk_dtype(lb_dtype_of(a));
    const void *values = lb_chunk(cx, a, as, lo, hi);
    if (!values) return false;
    chunk_scan s = {.n = hi - lo, .first = f->n, .kind = &a->store->fmt->codes};
    const int64_t parts = lb_ceil_div(s.n, LB_CHUNK_PART);
    if (as == LB_F32)
        s.f32 = values;
    else
        s.f64 = values;
    lb_pool_run(cx->pool, parts, scan_parts, &s);
    if (has_invalid(s.kind)) {
        lb_array *codes = lb_codes(cx, lb_slice(cx, a, &lo, &hi, NULL));
        if (!codes) return false;
        s.codes = lb_data(codes);
        lb_pool_run(cx->pool, parts, scan_codes, &s);
    }
    for (int64_t u = 0; u < parts; u++)
        add_part(f, &s.part[u]);
    f->n += s.n;
    return true;
}

/* ---- scales -------------------------------------------------------------- */

/* Which scales are valid. */
typedef struct scale_rule {
    bool divides, negative;
} scale_rule;

static bool is_flawed(float s, scale_rule r)
{
    const float size = r.negative ? fabsf(s) : s;
    return r.divides ? !(size > 0) : !(size >= 0) || isinf(s);
}

static bool scan_scales(lb_ctx *cx, lb_array *scale, scale_rule rule,
                        lb_findings *f)
{
    const int64_t n = lb_size(scale);
    lb_array *flat = lb_reshape(cx, scale, LB_SHAPE(n));
    bool ok = flat != NULL;
    for (int64_t lo = 0; ok && lo < n; lo += LB_CHUNK) {
        const int64_t hi = lb_min_i64(n, lo + LB_CHUNK);
        lb_enter(cx);
        const float *s = lb_chunk(cx, flat, LB_F32, lo, hi);
        ok = s != NULL;
        for (int64_t i = 0; ok && i < hi - lo; i++)
            if (is_flawed(s[i], rule)) note(&f->scale, f->scales + i);
        lb_leave(cx);
        f->scales += hi - lo;
    }
    return ok;
}

/* Counts zero points that are no code of k. */
static bool scan_zeros(lb_ctx *cx, lb_array *zero, const lb_code_kind *k,
                       lb_findings *f)
{
    const int64_t n = lb_size(zero);
    if (zero->dtype >= LB_F32 && zero->dtype <= LB_F64) return true;
    lb_array *flat = lb_reshape(cx, zero, LB_SHAPE(n));
    bool ok = flat != NULL;
    for (int64_t lo = 0; ok && lo < n; lo += LB_CHUNK) {
        const int64_t hi = lb_min_i64(n, lo + LB_CHUNK);
        lb_enter(cx);
        const float *z = lb_chunk(cx, flat, LB_F32, lo, hi);
        ok = z != NULL;
        for (int64_t i = 0; ok && i < hi - lo; i++)
            f->outer_zeros += z[i] < (float)k->least || z[i] > (float)k->most;
        lb_leave(cx);
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
    for (int64_t lo = 0; ok && lo < n; lo += LB_CHUNK) {
        lb_enter(cx);
        ok = scan_chunk(cx, flat, lo, lb_min_i64(n, lo + LB_CHUNK), f);
        lb_leave(cx);
    }
    const lb_store *s = a->store;
    for (int p = 0; ok && p < LB_MAX_PARTS && s->fmt->part[p].name; p++) {
        if (s->fmt->part[p].integers && s->part[p].a)
            ok = scan_zeros(cx, s->part[p].a, &s->fmt->codes, f);
        if (s->fmt->part[p].scale && s->part[p].a)
            ok = scan_scales(cx, s->part[p].a,
                             (scale_rule){s->meaning == LB_MEANS_INVERSE,
                                          s->fmt->part[p].negative},
                             f);
    }
    lb_leave(cx);
    return ok;
}

bool lb_findings_sound(const lb_findings *f)
{
    return f && !f->nan.n && !f->inf.n && !f->code.n && !f->scale.n;
}
