/* value_counts.c - histograms of values and of codes, using all threads.
 *
 * Each thread has its own counts. They are integers: their sum does not depend
 * on the order. Neighbours often have the same value, and adding to the same
 * count takes longer than to different ones: so they are added to WAYS tables
 * in turn. */
#include <math.h>
#include <string.h>

#include "core/core.h"
#include "io/arrays/chunks.h"

/* A count of a way fits into 16 bits: a part has at most 2^14 elements. */
enum { CODES = 256, BLOCK = 256, WAYS = 4 };

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

/* Two values. Comparisons give masks: with branches, or with ?:, which gcc does
 * not vectorize, this takes four times as long. */
typedef double two __attribute__((vector_size(16)));
typedef int64_t two_masks __attribute__((vector_size(16)));

static inline two pick(two_masks m, two a, two b)
{
    return (two)((m & (two_masks)a) | (~m & (two_masks)b));
}

/* Bin bins + 2 is for what is not finite. Halved, because hi - lo may overflow;
 * lo may equal hi. */
static void find_bins(const value_counter *c, const two *v, int *bin)
{
    const two zero = {0}, half = zero + 0.5, n = zero + (double)c->bins;
    const two least = zero + c->lo, most = zero + c->hi;
    const two lo = least * half, span = most * half - lo;
    for (int i = 0; i < BLOCK / 2; i++) {
        two at = (v[i] * half - lo) / span * n;
        at = pick(at > zero, at, zero); /* also of NaN */
        at = pick(at < n, at, n - 1.0);
        at = pick(v[i] < least, n, at);
        at = pick(v[i] > most, n + 1.0, at);
        at = pick(v[i] * zero == zero, at, n + 2.0); /* 0 * infinity: NaN */
        bin[2 * i] = (int)at[0];
        bin[2 * i + 1] = (int)at[1];
    }
}

/* Elements lo <= i < hi, at most LB_CHUNK_PART. */
static void count_part(const value_counter *c, int64_t lo, int64_t hi,
                       int64_t *count)
{
    uint16_t way[WAYS][LB_HISTOGRAM_MOST + 3] = {{0}};
    union {
        two pair[BLOCK / 2];
        double one[BLOCK];
    } v;
    int bin[BLOCK];
    for (; lo < hi; lo += BLOCK) {
        const int n = (int)lb_min_i64(BLOCK, hi - lo);
        for (int i = 0; i < n; i++)
            v.one[i] = c->f32 ? (double)c->f32[lo + i] : c->f64[lo + i];
        for (int i = n; i < BLOCK; i++)
            v.one[i] = (double)NAN;
        find_bins(c, v.pair, bin);
        for (int i = 0; i < BLOCK; i++)
            way[i % WAYS][bin[i]]++;
    }
    for (int k = 0; k < WAYS; k++)
        for (int i = 0; i < c->bins + 2; i++)
            count[i] += way[k][i];
}

static void count_values(void *arg, int64_t lo, int64_t hi, int thread)
{
    const value_counter *c = arg;
    int64_t *count = c->count + (int64_t)thread * c->each;
    for (int64_t u = lo; u < hi; u++)
        count_part(c, u * LB_CHUNK_PART,
                   lb_min_i64((u + 1) * LB_CHUNK_PART, c->n), count);
}

static void count_codes(void *arg, int64_t lo, int64_t hi, int thread)
{
    const value_counter *c = arg;
    int64_t *count = c->count + (int64_t)thread * c->each;
    for (int64_t u = lo; u < hi; u++) {
        uint16_t way[WAYS][CODES] = {{0}};
        const int64_t end = lb_min_i64((u + 1) * LB_CHUNK_PART, c->n);
        for (int64_t i = u * LB_CHUNK_PART; i < end; i++)
            way[i % WAYS][c->codes[i]]++;
        for (int k = 0; k < WAYS * CODES; k++)
            count[k % CODES] += way[k / CODES][k % CODES];
    }
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
