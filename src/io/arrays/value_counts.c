/* value_counts.c - histograms of values and of codes, using all threads.
 *
 * Each thread has its own counts. They are integers: their sum does not depend
 * on the order. */
#include <math.h>
#include <string.h>

#include "core/core.h"
#include "io/arrays/chunks.h"

enum { CODES = 256 };

typedef struct value_counter {
    const float *f32; /* values, or */
    const double *f64;
    const uint8_t *codes;
    int64_t n;
    double lo, hi;
    int bins;
    int64_t *count; /* for each thread: bins, below and above; or codes */
    int each;       /* counts per thread */
} value_counter;

/* ---- values -------------------------------------------------------------- */

static void add_value(const value_counter *c, double v, int64_t *count)
{
    if (!isfinite(v)) return;
    if (v < c->lo)
        count[c->bins]++;
    else if (v > c->hi)
        count[c->bins + 1]++;
    else {
        /* Halved, because hi - lo may overflow; lo may equal hi. */
        const double part = (v / 2 - c->lo / 2) / (c->hi / 2 - c->lo / 2);
        const int i = part > 0 ? (int)(part * c->bins) : 0;
        count[i < c->bins ? i : c->bins - 1]++;
    }
}

static void count_values(void *arg, int64_t lo, int64_t hi, int thread)
{
    const value_counter *c = arg;
    int64_t *count = c->count + (int64_t)thread * c->each;
    const int64_t end = lb_min_i64(hi * LB_CHUNK_PART, c->n);
    for (int64_t i = lo * LB_CHUNK_PART; i < end; i++)
        add_value(c, c->f32 ? (double)c->f32[i] : c->f64[i], count);
}

static void count_codes(void *arg, int64_t lo, int64_t hi, int thread)
{
    const value_counter *c = arg;
    int64_t *count = c->count + (int64_t)thread * c->each;
    const int64_t end = lb_min_i64(hi * LB_CHUNK_PART, c->n);
    for (int64_t i = lo * LB_CHUNK_PART; i < end; i++)
        count[c->codes[i]]++;
}

/* ---- arrays -------------------------------------------------------------- */

/* Elements lo <= i < hi of the vector a. */
static bool count_chunk(lb_ctx *cx, lb_array *a, int64_t lo, int64_t hi,
                        value_counter *c)
{
    const int64_t parts = lb_ceil_div(hi - lo, LB_CHUNK_PART);
    c->n = hi - lo;
    if (!c->bins) {
        lb_array *codes = lb_codes(cx, lb_slice(cx, a, &lo, &hi, NULL));
        if (!codes) return false;
        c->codes = lb_data(codes);
        lb_pool_run(cx->pool, parts, count_codes, c);
        return true;
    }
    const lb_dtype as = lb_chunk_dtype(lb_dtype_of(a));
    const void *values = lb_chunk(cx, a, as, lo, hi);
    c->f32 = as == LB_F32 ? values : NULL;
    c->f64 = as == LB_F32 ? NULL : values;
    if (values) lb_pool_run(cx->pool, parts, count_values, c);
    return values != NULL;
}

static bool count_array(lb_ctx *cx, lb_array *a, value_counter *c, int64_t *to)
{
    const int64_t n = lb_size(a);
    const int threads = lb_threads(cx);
    const size_t size = (size_t)threads * (size_t)c->each * sizeof *c->count;
    size_t got;
    c->count = lb_heap_alloc(cx->heap, size, &got);
    if (!c->count) return lb_fail(cx, LB_E_NOMEM, "out of memory");
    memset(c->count, 0, size);
    lb_enter(cx);
    lb_array *flat = lb_reshape(cx, a, LB_SHAPE(n));
    bool ok = flat != NULL;
    for (int64_t lo = 0; ok && lo < n; lo += LB_CHUNK) {
        lb_enter(cx);
        ok = count_chunk(cx, flat, lo, lb_min_i64(n, lo + LB_CHUNK), c);
        lb_leave(cx);
    }
    lb_leave(cx);
    for (int64_t i = 0; ok && i < (int64_t)threads * c->each; i++)
        to[i % c->each] += c->count[i];
    lb_heap_free(cx->heap, c->count, got);
    return ok;
}

bool lb_count_values(lb_ctx *cx, lb_array *a, lb_histogram *h)
{
    if (!a || !h) return false;
    if (h->bins < 1 || h->bins > LB_HISTOGRAM_MOST || !(h->lo <= h->hi))
        return lb_fail(cx, LB_E_ARG,
                       "count_values: %d bins from %g to %g (between 1 and %d "
                       "bins are possible)",
                       h->bins, h->lo, h->hi, LB_HISTOGRAM_MOST);
    int64_t all[LB_HISTOGRAM_MOST + 2] = {0};
    value_counter c = {
        .lo = h->lo, .hi = h->hi, .bins = h->bins, .each = h->bins + 2};
    if (!count_array(cx, a, &c, all)) return false;
    for (int i = 0; i < h->bins; i++)
        h->count[i] += all[i];
    h->below += all[h->bins];
    h->above += all[h->bins + 1];
    return true;
}

bool lb_count_codes(lb_ctx *cx, lb_array *a, int64_t count[256])
{
    if (!a || !count) return false;
    value_counter c = {.each = CODES};
    return count_array(cx, a, &c, count);
}
