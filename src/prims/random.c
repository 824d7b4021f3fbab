/* random.c - random bits, uniform and normal values, permutations.
 *
 * Every element is a fixed function of (key, its row-major index i),
 * independent of threads, tiles and machines:
 *
 *     word w = word w%4 of Philox(counter = (w/4, stream), key = seed)
 *              as 32-bit halves, low first
 *     i up to 32 bits wide: bits = word i; narrower integers: its low bits
 *     i 64 bits wide:       bits = word 2i | word 2i+1 << 32
 *     uniform: u = top P bits / 2^P, P = 24 f32, 11 f16, 8 bf16, 53 f64;
 *              x = lo + u*(hi - lo) in f64, rounded to the dtype and clamped
 *              to lo <= x < hi
 *     normal:  the quantile of (bits + 1/2) / 2^32 (f64: 2^64)
 *     permutation: for i = n-1 down to 1 swap i with j <= i: j is the next
 *              draw (a word; two if i >= 2^32), truncated to the bits of i,
 *              that is not above i. Words are used in order, from word 0.
 *
 * Different functions with the same key use the same words: fold a key for each
 * use.
 */
#include <math.h>

#include "core/core.h"
#include "kernels/mathf.h"
#include "kernels/philox.h"
#include "lowbit_params.h"

extern const lb_prim lb_prim_random_bits, lb_prim_random_uniform,
    lb_prim_random_normal, lb_prim_random_permutation;

/* ---- words -------------------------------------------------------------- */

static void block_at(lb_key key, uint64_t block, uint32_t out[4])
{
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32),
                                 (uint32_t)key.stream,
                                 (uint32_t)(key.stream >> 32)};
    const uint32_t seed[2] = {(uint32_t)key.seed, (uint32_t)(key.seed >> 32)};
    lb_philox(counter, seed, out);
}

/* Words [first, first + n). first is a multiple of 4, and out has space for n
 * rounded up to one. */
static void words(lb_key key, uint64_t first, int64_t n, uint32_t *out)
{
    for (int64_t k = 0; k < n; k += 4) {
        block_at(key, (first + (uint64_t)k) / 4, out + k);
    }
}

/* Philox is a bijection of (n, stream), so different n give different keys. The
 * seed is changed so that the words used for folding differ from those used for
 * values. */
lb_key lb_key_fold(lb_key key, uint64_t n)
{
    uint32_t w[4];
    key.seed ^= UINT64_C(0xa5a5a5a5a5a5a5a5);
    block_at(key, n, w);
    return (lb_key){.seed = w[0] | (uint64_t)w[1] << 32,
                    .stream = w[2] | (uint64_t)w[3] << 32};
}

/* ---- tiles --------------------------------------------------------------- */

/* A thread's scratch: the words of a tile, and the tile. */
typedef struct tile_scratch {
    uint32_t word[2 * LB_RUN];
    union {
        float f32[LB_RUN];
        double f64[LB_RUN];
        uint64_t u64[LB_RUN]; /* also for i64: the same bits */
    } tile;
} tile_scratch;

static void plan_tiles(const lb_call *c, lb_plan *plan)
{
    plan->per_thread = sizeof(tile_scratch);
    plan->phases = 1;
    plan->units[0] = lb_ceil_div(lb_shape_size(&c->shape), LB_RUN);
    plan->kernel = "philox";
}

static bool is_wide(lb_dtype dtype)
{
    return lb_dtype_size(dtype) == 8;
}

/* Computes the words for tile u of the result; returns its number of elements,
 * which start at *first. */
static int64_t draw_tile(const lb_work *w, lb_key key, int64_t u,
                         int64_t *first)
{
    tile_scratch *s = w->scratch;
    *first = u * LB_RUN;
    const int64_t n =
        lb_min_i64(LB_RUN, lb_shape_size(&w->call->shape) - *first);
    const int per = is_wide(w->call->dtype) ? 2 : 1;
    words(key, (uint64_t)*first * (uint64_t)per, n * per, s->word);
    return n;
}

static uint64_t wide_bits(const uint32_t *word, int64_t i)
{
    return word[2 * i] | (uint64_t)word[2 * i + 1] << 32;
}

static void write_tile(const lb_work *w, int64_t first, int64_t n, lb_ctype c)
{
    const tile_scratch *s = w->scratch;
    lb_tile_write_flat(w->call->cpu, w->out, first, n, c, &s->tile);
}

static bool infer_params(lb_ctx *cx, lb_call *c, const lb_random_params *p)
{
    c->shape = p->shape;
    c->dtype = p->dtype;
    return lb_shape_check(cx, c->prim->name, &p->shape);
}

static bool infer_float(lb_ctx *cx, lb_call *c, const lb_random_params *p)
{
    if (!lb_dtype_is_float(p->dtype))
        return lb_fail(cx, LB_E_DTYPE,
                       "%s: dtype %s (%d) is not one of f32, f16, bf16, f64",
                       c->prim->name, lb_dtype_name(p->dtype), (int)p->dtype);
    return infer_params(cx, c, p);
}

/* ---- random_bits -------------------------------------------------------- */

static bool bits_infer(lb_ctx *cx, lb_call *c)
{
    const lb_random_params *p = c->params;
    if (!lb_dtype_is_int(p->dtype))
        return lb_fail(cx, LB_E_DTYPE,
                       "%s: dtype %s (%d) is not an integer of 8 to 64 bits",
                       c->prim->name, lb_dtype_name(p->dtype), (int)p->dtype);
    return infer_params(cx, c, p);
}

static void bits_eval(const lb_work *w)
{
    const lb_random_params *p = w->call->params;
    tile_scratch *s = w->scratch;
    const bool wide = is_wide(p->dtype);
    for (int64_t u = w->lo, first; u < w->hi; u++) {
        const int64_t n = draw_tile(w, p->key, u, &first);
        /* Writing wraps to the dtype, which keeps the low bits. */
        for (int64_t i = 0; i < n; i++)
            s->tile.u64[i] = wide ? wide_bits(s->word, i) : s->word[i];
        write_tile(w, first, n, lb_ctype_of(p->dtype));
    }
}

const lb_prim lb_prim_random_bits = {
    .struct_size = sizeof(lb_prim),
    .name = "random_bits",
    .element_ns = 4,
    .params_size = sizeof(lb_random_params),
    .params_exact = offsetof(lb_random_params, dtype) + sizeof(lb_dtype),
    .infer = bits_infer,
    .plan = plan_tiles,
    .eval = bits_eval,
};

/* ---- random_uniform ----------------------------------------------------- */

typedef struct float_kind {
    int digits;     /* bits of the significand, including the implicit one */
    int min_exp;    /* of the smallest normal number, 2^min_exp */
    double largest; /* finite number */
} float_kind;

static float_kind kind_of(lb_dtype dtype)
{
    switch (dtype) {
    case LB_F16:
        return (float_kind){11, -14, 0x1.ffcp15};
    case LB_BF16:
        return (float_kind){8, -126, 0x1.fep127};
    case LB_F64:
        return (float_kind){53, -1022, 0x1.fffffffffffffp1023};
    default:
        return (float_kind){24, -126, 0x1.fffffep127};
    }
}

/* The largest value of the dtype that is not above x. */
static double round_down(lb_dtype dtype, double x)
{
    if (dtype == LB_F64) return x;
    const float_kind kind = kind_of(dtype);
    int e;
    frexp(x, &e); /* |x| in [2^(e-1), 2^e) */
    const int unit =
        (e - 1 > kind.min_exp ? e - 1 : kind.min_exp) - (kind.digits - 1);
    return ldexp(floor(ldexp(x, -unit)), unit);
}

/* The smallest and largest x of the dtype with lo <= x < hi; if there is none,
 * smallest > largest. */
static double smallest(const lb_random_uniform_params *p)
{
    return -round_down(p->of.dtype, -p->lo);
}

static double largest(const lb_random_uniform_params *p)
{
    return round_down(p->of.dtype, nextafter(p->hi, -(double)INFINITY));
}

static bool uniform_infer(lb_ctx *cx, lb_call *c)
{
    const lb_random_uniform_params *p = c->params;
    if (!infer_float(cx, c, &p->of)) return false;
    const char *name = lb_dtype_name(p->of.dtype);
    const double bound = kind_of(p->of.dtype).largest;
    if (!(p->lo >= -bound && p->hi <= bound && p->lo < p->hi))
        return lb_fail(cx, LB_E_ARG,
                       "%s: lo %.17g and hi %.17g must be finite in %s (at "
                       "most %g), and lo below hi",
                       c->prim->name, p->lo, p->hi, name, bound);
    if (!isfinite(p->hi - p->lo))
        return lb_fail(cx, LB_E_ARG,
                       "%s: hi - lo is too large for f64 with lo %.17g and hi "
                       "%.17g",
                       c->prim->name, p->lo, p->hi);
    if (smallest(p) > largest(p))
        return lb_fail(cx, LB_E_ARG,
                       "%s: no %s value x satisfies %.17g <= x < %.17g",
                       c->prim->name, name, p->lo, p->hi);
    return true;
}

static double clamp(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static void uniform_eval(const lb_work *w)
{
    const lb_random_uniform_params *p = w->call->params;
    tile_scratch *s = w->scratch;
    const bool wide = is_wide(p->of.dtype);
    const int digits = kind_of(p->of.dtype).digits;
    const int drop = (wide ? 64 : 32) - digits;
    const double unit = ldexp(1.0, -digits), span = p->hi - p->lo;
    /* Both are values of the dtype, and rounding to nearest is monotonic:
     * clamping before rounding is equivalent to clamping after. */
    const double lo = smallest(p), hi = largest(p);
    for (int64_t u = w->lo, first; u < w->hi; u++) {
        const int64_t n = draw_tile(w, p->of.key, u, &first);
        for (int64_t i = 0; i < n; i++) {
            const uint64_t bits = wide ? wide_bits(s->word, i) : s->word[i];
            const double part = (double)(bits >> drop) * unit;
            s->tile.f64[i] = clamp(p->lo + part * span, lo, hi);
        }
        write_tile(w, first, n, LB_C_F64); /* rounds once, to any float dtype */
    }
}

const lb_prim lb_prim_random_uniform = {
    .struct_size = sizeof(lb_prim),
    .name = "random_uniform",
    .element_ns = 5,
    .params_size = sizeof(lb_random_uniform_params),
    .params_exact = offsetof(lb_random_params, dtype) + sizeof(lb_dtype),
    .infer = uniform_infer,
    .plan = plan_tiles,
    .eval = uniform_eval,
};

/* ---- random_normal ------------------------------------------------------ */

static bool normal_infer(lb_ctx *cx, lb_call *c)
{
    return infer_float(cx, c, c->params);
}

static void normal_eval(const lb_work *w)
{
    const lb_random_params *p = w->call->params;
    tile_scratch *s = w->scratch;
    const bool wide = is_wide(p->dtype);
    for (int64_t u = w->lo, first; u < w->hi; u++) {
        const int64_t n = draw_tile(w, p->key, u, &first);
        for (int64_t i = 0; i < n; i++) {
            if (wide)
                s->tile.f64[i] = lb_normald(wide_bits(s->word, i));
            else
                s->tile.f32[i] = lb_normalf(s->word[i]);
        }
        write_tile(w, first, n, lb_ctype_of(p->dtype));
    }
}

const lb_prim lb_prim_random_normal = {
    .struct_size = sizeof(lb_prim),
    .name = "random_normal",
    .element_ns = 20,
    .params_size = sizeof(lb_random_params),
    .params_exact = offsetof(lb_random_params, dtype) + sizeof(lb_dtype),
    .infer = normal_infer,
    .plan = plan_tiles,
    .eval = normal_eval,
};

/* ---- random_permutation ------------------------------------------------- */

static bool permutation_infer(lb_ctx *cx, lb_call *c)
{
    const lb_random_permutation_params *p = c->params;
    if (p->n < 0)
        return lb_fail(cx, LB_E_ARG, "%s: n is %lld, but must not be negative",
                       c->prim->name, (long long)p->n);
    c->shape = lb_shape_make(1, &p->n);
    c->dtype = LB_I64;
    return lb_shape_check(cx, c->prim->name, &c->shape);
}

static void permutation_plan(const lb_call *c, lb_plan *plan)
{
    plan->phases = 1;
    plan->units[0] = c->shape.dim[0] > 0; /* each swap depends on the previous
                                           * ones */
    plan->kernel = "fisher-yates";
}

/* Words one at a time, in order. */
typedef struct word_stream {
    lb_key key;
    uint64_t next;
    uint32_t block[4];
} word_stream;

static uint32_t next_word(word_stream *s)
{
    if (s->next % 4 == 0) block_at(s->key, s->next / 4, s->block);
    return s->block[s->next++ % 4];
}

/* Uniform in 0 ... i: rejects draws above i, which avoids bias; on average
 * fewer than every second draw. */
static uint64_t next_up_to(word_stream *s, uint64_t i)
{
    const uint64_t mask = UINT64_MAX >> __builtin_clzll(i | 1);
    uint64_t j;
    do {
        j = next_word(s);
        if (mask > UINT32_MAX) j |= (uint64_t)next_word(s) << 32;
        j &= mask;
    } while (j > i);
    return j;
}

static void permutation_eval(const lb_work *w)
{
    const lb_random_permutation_params *p = w->call->params;
    int64_t *at = w->out->store->data; /* dense, row-major i64: all of it */
    for (int64_t i = 0; i < p->n; i++)
        at[i] = i;
    word_stream s = {.key = p->key};
    for (int64_t i = p->n - 1; i > 0; i--) {
        const uint64_t j = next_up_to(&s, (uint64_t)i);
        const int64_t t = at[i];
        at[i] = at[j];
        at[j] = t;
    }
}

const lb_prim lb_prim_random_permutation = {
    .struct_size = sizeof(lb_prim),
    .name = "random_permutation",
    .element_ns = 4,
    .params_size = sizeof(lb_random_permutation_params),
    .infer = permutation_infer,
    .plan = permutation_plan,
    .eval = permutation_eval,
};

/* ---- public functions ---------------------------------------------------- */

lb_array *lb_random_bits(lb_ctx *cx, lb_key key, lb_dtype dtype, lb_shape shape)
{
    const lb_random_params p = {key, dtype, shape};
    return lb_bind(cx, &lb_prim_random_bits, 0, NULL, &p);
}

lb_array *lb_random_uniform(lb_ctx *cx, lb_key key, lb_dtype dtype,
                            lb_shape shape, double lo, double hi)
{
    const lb_random_uniform_params p = {{key, dtype, shape}, lo, hi};
    return lb_bind(cx, &lb_prim_random_uniform, 0, NULL, &p);
}

lb_array *lb_random_normal(lb_ctx *cx, lb_key key, lb_dtype dtype,
                           lb_shape shape)
{
    const lb_random_params p = {key, dtype, shape};
    return lb_bind(cx, &lb_prim_random_normal, 0, NULL, &p);
}

lb_array *lb_random_permutation(lb_ctx *cx, lb_key key, int64_t n)
{
    const lb_random_permutation_params p = {key, n};
    return lb_bind(cx, &lb_prim_random_permutation, 0, NULL, &p);
}
