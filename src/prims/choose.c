/* choose.c - lb_sample and lb_top_k: choices among the elements of the last
 * axis, made on the host, one row at a time.
 *
 * Candidates form a binary heap, the largest first and the lower index first
 * among equals; only as many are taken from it as are needed. Weights are
 * exponentials with the same bits on every machine, added up in f64 in a fixed
 * order, so equal logits give equal tokens everywhere.
 */
#include <math.h>
#include <string.h>

#include "core/core.h"
#include "kernels/mathf.h"

typedef struct candidate {
    float x;
    int32_t at;
} candidate;

/* ---- a heap -------------------------------------------------------------- */

/* NaN is the largest, as for lb_argmax. */
static bool before(candidate a, candidate b)
{
    if (isnan(a.x) || isnan(b.x))
        return isnan(a.x) && (!isnan(b.x) || a.at < b.at);
    return a.x > b.x || (a.x == b.x && a.at < b.at);
}

static void sink(candidate *c, int64_t n, int64_t i)
{
    const candidate x = c[i];
    for (int64_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && before(c[k + 1], c[k])) k++;
        if (before(x, c[k])) break;
        c[i] = c[k];
    }
    c[i] = x;
}

static void make_heap(candidate *c, int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sink(c, n, i);
}

/* The first of n goes to the place behind those that are left. */
static candidate take_first(candidate *c, int64_t n)
{
    const candidate first = c[0];
    c[0] = c[n - 1];
    c[n - 1] = first;
    sink(c, n - 1, 0);
    return first;
}

/* ---- rows ---------------------------------------------------------------- */

typedef struct choice_rows {
    lb_array *x; /* dense f32, row-major */
    const float *data;
    candidate *c;
    size_t got;
    int64_t count, n;
} choice_rows;

/* x in the open scope, and room for the candidates of a row. */
static bool rows_open(lb_ctx *cx, const char *who, lb_array *x, choice_rows *r)
{
    if (!x) return lb_fail(cx, LB_E_NULL, "%s: the array is NULL", who);
    if (!lb_has_elements(cx, who, x)) return false;
    if (!lb_dtype_is_float(x->dtype) || x->dtype == LB_F64)
        return lb_fail(cx, LB_E_DTYPE,
                       "%s: the array is %s, not f32, f16 or "
                       "bf16",
                       who, lb_dtype_name(x->dtype));
    if (!x->shape.rank)
        return lb_fail(cx, LB_E_SHAPE, "%s: a scalar has no last axis", who);
    x = lb_here(cx, x);
    x = x ? lb_materialize(cx, lb_as(cx, lb_materialize(cx, x), LB_F32)) : NULL;
    if (!x) return false;
    *r = (choice_rows){.x = x, .data = lb_data(x), .count = 1};
    for (int k = 0; k < x->shape.rank - 1; k++)
        r->count *= x->shape.dim[k];
    r->n = x->shape.dim[x->shape.rank - 1];
    if (r->n > INT32_MAX)
        return lb_fail(cx, LB_E_SIZE, "%s: %lld elements in a row", who,
                       (long long)r->n);
    size_t size;
    if (lb_mul_size((size_t)r->n, sizeof *r->c, &size))
        r->c = lb_heap_alloc(cx->heap, size ? size : 1, &r->got);
    return r->c ||
           lb_fail(cx, LB_E_NOMEM, "out of memory (%lld elements of a row)",
                   (long long)r->n);
}

static void load(const choice_rows *r, int64_t row)
{
    for (int64_t i = 0; i < r->n; i++)
        r->c[i] = (candidate){r->data[row * r->n + i], (int32_t)i};
}

/* ---- lb_top_k ------------------------------------------------------------ */

/* x[..., indices]: a gather, so that gradients pass. */
static lb_array *values_at(lb_ctx *cx, lb_array *x, lb_array *index)
{
    const int last = x->shape.rank - 1;
    lb_gather_dims d = {.index_vector_dim = last + 1,
                        .collapsed_slice_dims = {1, {last}},
                        .start_index_map = {1, {last}}};
    for (int k = 0; k < last; k++) {
        d.operand_batching_dims.axis[k] = k;
        d.start_indices_batching_dims.axis[k] = k;
    }
    d.operand_batching_dims.n = d.start_indices_batching_dims.n = last;
    for (int k = 0; k <= last; k++)
        d.slice_sizes[k] = lb_min_i64(x->shape.dim[k], 1);
    return lb_gather(cx, x, lb_expand(cx, index, last + 1), &d);
}

static lb_array *indices_of(lb_ctx *cx, lb_array *x, int64_t k)
{
    choice_rows r;
    if (!rows_open(cx, "top_k", x, &r)) return NULL;
    lb_array *out = NULL;
    if (k < 0 || k > r.n) {
        lb_fail(cx, LB_E_ARG,
                "top_k: k is %lld, but the last axis of %s has "
                "%lld elements",
                (long long)k, LB_SHOW(&x->shape), (long long)r.n);
    } else {
        lb_shape s = x->shape;
        s.dim[s.rank - 1] = k;
        out = lb_dense(cx, LB_I32, &s);
    }
    for (int64_t row = 0; row < r.count && out; row++) {
        load(&r, row);
        make_heap(r.c, r.n);
        for (int64_t i = 0; i < k; i++)
            ((int32_t *)out->store->data)[row * k + i] =
                take_first(r.c, r.n - i).at;
    }
    lb_heap_free(cx->heap, r.c, r.got);
    return out;
}

lb_array *lb_top_k(lb_ctx *cx, lb_array *x, int64_t k, lb_array **indices)
{
    if (indices) *indices = NULL;
    if (!cx) return NULL;
    lb_enter(cx);
    lb_array *at = indices_of(cx, x, k), *y = at ? values_at(cx, x, at) : NULL;
    if (y && indices) *indices = lb_keep(cx, at);
    return lb_leave_with(cx, y);
}

/* ---- lb_sample ----------------------------------------------------------- */

static bool read_options(lb_ctx *cx, const lb_sample_options *options,
                         lb_sample_options *o)
{
    *o = (lb_sample_options){.temperature = 1};
    if (options) {
        const size_t size =
            options->struct_size ? options->struct_size : sizeof *options;
        if (size < sizeof *options)
            return lb_fail(cx, LB_E_ARG, "sample: options.struct_size is %zu",
                           size);
        *o = *options;
    }
    if (!(o->temperature >= 0) || isinf(o->temperature))
        return lb_fail(cx, LB_E_ARG, "sample: temperature is %g",
                       o->temperature);
    if (o->top_k < 0 || !(o->top_p >= 0 && o->top_p <= 1) ||
        !(o->min_p >= 0 && o->min_p <= 1))
        return lb_fail(cx, LB_E_ARG,
                       "sample: top_k is %lld, top_p %g, min_p %g: top_k must "
                       "not be negative, the others be from 0 to 1",
                       (long long)o->top_k, o->top_p, o->min_p);
    return true;
}

/* exp((x - most) / temperature), also where most is infinite. */
static float weight(float x, float most, double temperature)
{
    if (x == most) return 1;
    return lb_expf((float)(((double)x - (double)most) / temperature));
}

/* The candidate behind whose predecessors u of the weight is. The first n are
 * in the order of the sum. */
static int32_t pick(const candidate *c, int64_t n, double u)
{
    double total = 0, sum = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++)
        total += (double)c[i].x;
    for (int64_t i = 0; i < n; i++) {
        if (!(c[i].x > 0)) continue;
        last = i;
        sum += (double)c[i].x;
        if (sum > u * total) break;
    }
    return c[last].at;
}

/* Sorted candidates up to top_k and top_p, to the end of the heap's array in
 * reverse; returns their number. */
static int64_t select_best(const lb_sample_options *o, candidate *c, int64_t n)
{
    const int64_t most = o->top_k && o->top_k < n ? o->top_k : n;
    double total = 0, sum = 0;
    int64_t k = 0;
    make_heap(c, n);
    if (most == n)
        for (int64_t i = 0; i < n; i++)
            total += (double)c[i].x;
    const bool nucleus = o->top_p > 0 && o->top_p < 1;
    for (; k < most; k++) {
        const candidate x = take_first(c, n - k);
        sum += (double)x.x;
        if (nucleus && most == n && sum >= o->top_p * total) return k + 1;
        if (most < n) total += (double)x.x;
    }
    if (!nucleus) return k;
    sum = 0;
    for (int64_t i = 0; i < k; i++) {
        sum += (double)c[n - 1 - i].x;
        if (sum >= o->top_p * total) return i + 1;
    }
    return k;
}

/* One token; c are the candidates of the row. */
static int32_t choose(const lb_sample_options *o, candidate *c, int64_t n,
                      double u)
{
    candidate best = c[0];
    for (int64_t i = 1; i < n; i++)
        if (before(c[i], best)) best = c[i];
    if (o->temperature == 0) return best.at;
    for (int64_t i = 0; i < n; i++)
        c[i].x = weight(c[i].x, best.x, o->temperature);
    const bool sorted = o->top_k || (o->top_p > 0 && o->top_p < 1);
    if (sorted) {
        const int64_t k = select_best(o, c, n);
        for (int64_t i = 0; i < k / 2; i++) {
            const candidate x = c[n - k + i];
            c[n - k + i] = c[n - 1 - i];
            c[n - 1 - i] = x;
        }
        c += n - k;
        n = k;
    }
    for (int64_t i = 0; i < n; i++)
        if (c[i].x < (float)o->min_p) c[i].x = 0;
    return pick(c, n, u);
}

/* False if a row has no token to choose. */
static bool check_row(lb_ctx *cx, const choice_rows *r, int64_t row)
{
    bool any = false;
    for (int64_t i = 0; i < r->n; i++) {
        const float x = r->data[row * r->n + i];
        if (isnan(x))
            return lb_fail(cx, LB_E_ARG,
                           "sample: logit %lld of row %lld is NaN",
                           (long long)i, (long long)row);
        any = any || x > -INFINITY;
    }
    return any ||
           lb_fail(cx, LB_E_ARG,
                   "sample: none of the %lld logits of row %lld is above "
                   "-inf",
                   (long long)r->n, (long long)row);
}

static lb_array *tokens_of(lb_ctx *cx, lb_key key, lb_array *logits,
                           const lb_sample_options *o)
{
    choice_rows r;
    if (!rows_open(cx, "sample", logits, &r)) return NULL;
    lb_shape s = logits->shape;
    s.rank--;
    lb_array *u = lb_random_uniform(cx, key, LB_F64, s, 0, 1);
    const double *number = u ? lb_data(u) : NULL;
    lb_array *out = number ? lb_dense(cx, LB_I32, &s) : NULL;
    int32_t *token = out ? out->store->data : NULL;
    for (int64_t row = 0; row < r.count && token; row++) {
        if (!check_row(cx, &r, row)) {
            out = NULL;
            break;
        }
        load(&r, row);
        token[row] = choose(o, r.c, r.n, number[row]);
    }
    lb_heap_free(cx->heap, r.c, r.got);
    return out;
}

lb_array *lb_sample(lb_ctx *cx, lb_key key, lb_array *logits,
                    const lb_sample_options *options)
{
    lb_sample_options o;
    if (!cx || !read_options(cx, options, &o)) return NULL;
    lb_enter(cx);
    return lb_leave_with(cx, tokens_of(cx, key, logits, &o));
}
