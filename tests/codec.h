/* codec.h - for tests of formats: rounding in double precision, input values,
 * making arrays of them and reading them. Independent of the library's
 * arithmetic.
 *
 * A quotient or root of two f32 values, rounded to double and then to f32, f16
 * or bf16, is correctly rounded: 53 bits are more than 2 * 24 + 2.
 */
#ifndef LB_CODEC_H
#define LB_CODEC_H

#include <stdlib.h>

#include "check.h"
#include "core/core.h"
#include "lowbit_ext.h"
#include "numbers.h"

/* Nearest value with `digits` significant bits that is a multiple of 2^least,
 * ties to even. */
static inline double codec_digits(double x, int digits, int least)
{
    int e;
    if (x == 0 || !isfinite(x)) return x;
    frexp(x, &e);
    e = e - digits > least ? e - digits : least;
    return ldexp(nearbyint(ldexp(x, -e)), e);
}

static inline double codec_round(lb_dtype d, double x)
{
    const number_layout l = number_layout_of(d);
    const double y = codec_digits(x, l.digits, l.min_exp - l.digits + 1);
    return fabs(y) >= ldexp(1, l.max_exp) ? copysign((double)INFINITY, y) : y;
}

/* x, a finite value of dtype d, to its bits. */
static inline void codec_put(lb_dtype d, void *p, double x)
{
    const number_layout l = number_layout_of(d);
    const int m = l.digits - 1;
    int e = l.min_exp;
    if (x != 0) frexp(x, &e);
    e = e - 1 > l.min_exp ? e - 1 : l.min_exp;
    uint64_t raw = (uint64_t)ldexp(fabs(x), m - e);
    /* The hidden bit, if set, adds one to the exponent. */
    if (x != 0) raw += (uint64_t)(e - l.min_exp) << m;
    raw |= (uint64_t)(signbit(x) != 0) << (l.bits - 1);
    memcpy(p, &raw, lb_dtype_size(d));
}

static inline double codec_get(lb_dtype d, const void *p)
{
    return (double)number_at(d, p);
}

/* ---- input values -------------------------------------------------------- */

enum codec_sample {
    CODEC_NORMAL,
    CODEC_HEAVY,
    CODEC_OFFSET, /* a large mean, a small spread */
    CODEC_TIES,   /* halves from -127 to 127 */
    CODEC_LEVELS, /* multiples of 1/127 */
    CODEC_ZEROS,  /* both of them */
    CODEC_ONE,    /* a single nonzero value */
    CODEC_TINY,   /* around the smallest normal value */
    CODEC_SUBNORMAL,
    CODEC_HUGE, /* up to the largest value */
    CODEC_KINDS
};

/* n values of dtype d. */
static inline void codec_fill(int kind, lb_dtype d, int64_t n, uint64_t seed,
                              double *x)
{
    const number_layout l = number_layout_of(d == LB_F64 ? LB_F32 : d);
    const double huge = ldexp(2 - ldexp(1, 1 - l.digits), l.max_exp - 1);
    for (int64_t i = 0; i < n; i++) {
        double z = 0;
        for (int k = 0; k < 12; k++)
            z += (double)(number_draw(&seed) >> 11) * 0x1p-53;
        z -= 6; /* approximately normally distributed */
        const double u = (double)(number_draw(&seed) % 255) - 127;
        const double smallest = ldexp(1, l.min_exp - l.digits + 1);
        const double of[CODEC_KINDS] = {
            [CODEC_NORMAL] = z,
            [CODEC_HEAVY] = z * z * z,
            [CODEC_OFFSET] = 1000 + z / 8,
            [CODEC_TIES] = i == n / 2 ? 127 : u / 2,
            [CODEC_LEVELS] = u / 127,
            [CODEC_ZEROS] = u < 0 ? -0.0 : 0.0,
            [CODEC_ONE] = i == n / 3 ? -0.75 : 0,
            [CODEC_TINY] = u * ldexp(1, l.min_exp - 3),
            [CODEC_SUBNORMAL] = u * smallest,
            [CODEC_HUGE] = i == n / 2 ? huge : u / 128 * huge,
        };
        x[i] = codec_round(d, of[kind]);
    }
}

/* ---- arrays -------------------------------------------------------------- */

static inline lb_array *codec_array(lb_ctx *cx, lb_dtype d, lb_shape shape,
                                    const double *x)
{
    const int64_t n = lb_shape_size(&shape);
    const size_t size = lb_dtype_size(d);
    char *raw = (char *)malloc((size_t)n * size + 1);
    if (!raw) exit(2);
    for (int64_t i = 0; i < n; i++)
        codec_put(d, raw + (size_t)i * size, x[i]);
    lb_array *a = lb_from(cx, d, shape, raw);
    free(raw);
    return a;
}

/* The values of an array of n elements of any dtype; NaN if a is NULL. */
static inline void codec_read(lb_ctx *cx, lb_array *a, int64_t n, double *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)NAN;
    if (!a || lb_size(a) != n) return;
    const size_t size = lb_dtype_size(a->dtype);
    char *raw = (char *)malloc((size_t)n * size + 1);
    if (!raw) exit(2);
    if (lb_read(cx, a, raw, (size_t)n * size))
        for (int64_t i = 0; i < n; i++)
            x[i] = codec_get(a->dtype, raw + (size_t)i * size);
    free(raw);
}

static inline bool codec_bytes_equal(lb_ctx *cx, lb_array *a, lb_array *b)
{
    if (!a || !b) return !a && !b;
    if (a->dtype != b->dtype || !lb_shape_equal(&a->shape, &b->shape))
        return false;
    a = lb_materialize(cx, a);
    b = lb_materialize(cx, b);
    return a && b &&
           (!lb_size(a) ||
            !memcmp(a->store->data, b->store->data,
                    (size_t)lb_size(a) * lb_dtype_size(a->dtype)));
}

/* Two quantized arrays are equal, part by part and bit by bit. */
static inline bool codec_same(lb_ctx *cx, const lb_array *a, const lb_array *b)
{
    if (!a || !b || a->dtype != b->dtype || a->store->fmt != b->store->fmt ||
        a->store->meaning != b->store->meaning ||
        !lb_shape_equal(&a->shape, &b->shape))
        return false;
    bool ok = true;
    lb_enter(cx);
    for (int p = 0; p < LB_MAX_PARTS; p++)
        ok = ok &&
             !memcmp(a->store->part[p].g, b->store->part[p].g,
                     sizeof a->store->part[p].g) &&
             codec_bytes_equal(cx, a->store->part[p].a, b->store->part[p].a);
    lb_leave(cx);
    return ok;
}

/* Equal values; -0 differs from 0, NaN equals NaN. */
static inline bool codec_equal(double a, double b)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b && !signbit(a) == !signbit(b);
}

/* Decoding any run of a row equals that part of decoding all of it. */
static inline bool codec_runs_agree(const lb_array *a, uint64_t seed)
{
    const lb_store *s = a->store;
    const lb_cpu cpu = {.level = LB_LEVEL_REF};
    const int rank = s->shape.rank;
    const int64_t size = lb_shape_size(&s->shape);
    const int64_t row = rank ? s->shape.dim[rank - 1] : 1;
    for (int k = 0; size && k < 200; k++) {
        float one, run[LB_RUN];
        const int64_t first = (int64_t)(number_draw(&seed) % (uint64_t)size);
        int64_t n = row - first % row < LB_RUN ? row - first % row : LB_RUN;
        n = 1 + (int64_t)(number_draw(&seed) % (uint64_t)n);
        s->fmt->decode(&cpu, s, first, n, run);
        for (int64_t i = 0; i < n; i++) {
            s->fmt->decode(&cpu, s, first + i, 1, &one);
            if (!codec_equal((double)one, (double)run[i])) return false;
        }
    }
    return true;
}

/* The same from every element on, in runs of many lengths, against lb_read. */
static inline void codec_every_run(lb_ctx *cx, lb_array *a)
{
    const lb_cpu cpu = {.level = LB_LEVEL_REF};
    CHECK(a != NULL);
    if (!a) return;
    const lb_store *s = a->store;
    const int64_t row = s->shape.dim[s->shape.rank - 1];
    const int64_t size = lb_shape_size(&s->shape);
    float run[LB_RUN], *all = calloc((size_t)size + 1, sizeof *all);
    if (!all) abort();
    CHECK(lb_read(cx, a, all, (size_t)size * sizeof *all));
    for (int64_t first = 0; first < size; first++) {
        const int64_t left = row - first % row;
        for (int64_t n = 1; n <= left && n <= LB_RUN; n += n < 9 ? 1 : 41) {
            s->fmt->decode(&cpu, s, first, n, run);
            if (check_fails(!memcmp(run, all + first, (size_t)n * sizeof *run)))
                fprintf(stderr, "first %d, n %d\n", (int)first, (int)n);
        }
    }
    free(all);
}

/* The result of lb_quantize, by a format that encodes in phases, with the units
 * of each phase run one by one, the last first. *shared: bytes shared by the
 * units. */
static inline lb_array *codec_backward(lb_ctx *cx, lb_array *a,
                                       const lb_quant_config *config,
                                       size_t *shared)
{
    lb_quant q;
    lb_layout l;
    lb_plan plan = {0};
    if (!a || !lb_quant_of(cx, "test", config, a->shape.rank, &q) ||
        !lb_layout_of(cx, &q, a->dtype, &a->shape, &l))
        return NULL;
    lb_array *out = lb_layout_alloc(cx, &q, &l, &a->shape);
    if (!out) return NULL;
    if (q.format->prepare) q.format->prepare(&q, out->store);
    const lb_call call = {
        .cpu = &cx->cpu, .threads = 1, .n_in = 1, .in = &a, .params = &q};
    q.format->encode_plan(&call, &plan);
    *shared = plan.shared;
    int64_t trouble = INT64_MAX;
    lb_work w = {.call = &call, .out = out, .plan = &plan, .trouble = &trouble};
    w.shared = aligned_alloc(64, (plan.shared / 64 + 1) * 64);
    w.scratch = aligned_alloc(64, (plan.per_thread / 64 + 1) * 64);
    if (!w.shared || !w.scratch) exit(2);
    for (; w.phase < plan.phases; w.phase++)
        for (w.lo = plan.units[w.phase] - 1; w.lo >= 0; w.lo--) {
            w.hi = w.lo + 1;
            q.format->encode(&w);
        }
    free(w.shared);
    free(w.scratch);
    return out;
}

/* The call failed with this status, and its message contains a digit or the
 * given text. */
static inline bool codec_refused(lb_ctx *cx, const lb_array *a, lb_status want)
{
    const bool ok =
        !a && lb_error_status(cx) == want &&
        (strpbrk(lb_error(cx), "0123456789") || strstr(lb_error(cx), " is "));
    if (!ok)
        fprintf(stderr, "%s, not %s: \"%s\"\n",
                lb_status_name(lb_error_status(cx)), lb_status_name(want),
                lb_error(cx));
    lb_clear(cx);
    return ok;
}

#endif
