/* optimizer.c - computes the next parameters from parameters and gradients.
 *
 *   sgd    v = momentum v + g;  w -= rate v  (nesterov: rate (g + momentum v))
 *   adam   m += (1 - beta1)(g - m);  s += (1 - beta2)(g^2 - s)
 *          w -= rate (m / (1 - beta1^t)) / (sqrt(s / (1 - beta2^t)) + eps)
 *   adamw  the same, and w -= rate decay w; the others add decay w to g
 *
 * Implemented with array operations, in f32 (f64 for f64 parameters). A
 * quantized state stores sqrt(s) instead of s: otherwise small values, by which
 * the update is divided, would be rounded to zero. A step is applied completely
 * or not at all.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "grad/optimizer.h"

enum { MAX_MOMENTS = 2, MAX_PARAMS_ARRAYS = 1 << 20 };

struct lb_optimizer {
    lb_ctx *cx;
    size_t got;
    lb_optimizer_config c;
    lb_quant_config state; /* c.state points to it, or is NULL */
    int n, moments;        /* moments: per parameter */
    int64_t step;
    int traced;        /* steps in the function that is being compiled */
    lb_array **moment; /* (n, moments), references */
    lb_array **next;   /* the moments computed by the current step */
    lb_array **param;  /* its parameters */
};

/* ---- the rate ------------------------------------------------------------ */

double lb_schedule_rate(const lb_optimizer_config *c, int64_t step)
{
    if (!c) return NAN;
    if (step < c->warmup)
        return c->rate * (double)(step + 1) / (double)c->warmup;
    if (c->schedule == LB_CONSTANT) return c->rate;
    const int64_t n = c->steps - c->warmup;
    const double part =
        step >= c->steps ? 1 : (double)(step - c->warmup) / (double)n;
    const double wave = 0.5 * (1 + cos(M_PI * part));
    return c->rate * (c->least + (1 - c->least) * wave);
}

/* ---- opening ------------------------------------------------------------- */

static bool check_fractions(lb_ctx *cx, const lb_optimizer_config *c)
{
    const struct {
        const char *name;
        double v, below;
    } of[] = {{"rate", c->rate, HUGE_VAL},
              {"momentum", c->momentum, 1},
              {"beta1", c->beta1, 1},
              {"beta2", c->beta2, 1},
              {"eps", c->eps, HUGE_VAL},
              {"decay", c->decay, HUGE_VAL},
              {"clip_norm", c->clip_norm, HUGE_VAL},
              {"least", c->least, 1 + 1e-15}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (!(of[i].v >= 0 && of[i].v < of[i].below))
            return lb_fail(cx, LB_E_ARG, "optimizer: %s is %g, out of range",
                           of[i].name, of[i].v);
    return true;
}

static bool check_config(lb_ctx *cx, const lb_optimizer_config *c)
{
    if ((unsigned)c->method > LB_ADAMW || (unsigned)c->schedule > LB_COSINE)
        return lb_fail(cx, LB_E_ARG,
                       "optimizer: invalid method %d or schedule %d",
                       (int)c->method, (int)c->schedule);
    if (c->warmup < 0 || (c->schedule != LB_CONSTANT && c->steps <= c->warmup))
        return lb_fail(cx, LB_E_ARG,
                       "optimizer: warmup is %lld and steps %lld, but warmup "
                       "must be from 0 to steps - 1",
                       (long long)c->warmup, (long long)c->steps);
    return check_fractions(cx, c);
}

static bool read_config(lb_ctx *cx, const lb_optimizer_config *config,
                        lb_optimizer_config *c)
{
    *c = (lb_optimizer_config){0};
    if (config) {
        const size_t size =
            config->struct_size ? config->struct_size : sizeof *c;
        if (size < offsetof(lb_optimizer_config, momentum))
            return lb_fail(cx, LB_E_ARG,
                           "optimizer: struct_size is %zu, too small", size);
        memcpy(c, config, size < sizeof *c ? size : sizeof *c);
    }
    if (c->rate == 0) c->rate = c->method == LB_SGD ? 1e-2 : 1e-3;
    if (c->beta1 == 0) c->beta1 = 0.9;
    if (c->beta2 == 0) c->beta2 = 0.999;
    if (c->eps == 0) c->eps = 1e-8;
    return check_config(cx, c);
}

static lb_dtype dtype_of(const lb_array *a)
{
    return a->dtype == LB_F64 ? LB_F64 : LB_F32;
}

/* Converts an array to the format of the state. */
static lb_array *stored(lb_optimizer *o, lb_array *a)
{
    return a && o->c.state ? lb_quantize(o->cx, a, o->c.state) : a;
}

static bool begin(lb_optimizer *o, lb_array *const *params)
{
    lb_ctx *cx = o->cx;
    for (int i = 0; i < o->n; i++) {
        const lb_array *w = params[i];
        if (!w || !lb_dtype_is_float(w->dtype))
            return lb_fail(cx, w ? LB_E_DTYPE : LB_E_NULL,
                           "optimizer: parameter %d is %s%s, not a float array",
                           i, w ? lb_dtype_name(w->dtype) : "NULL",
                           w ? LB_SHOW(&w->shape) : "");
        for (int k = 0; k < o->moments; k++) {
            lb_array *zero = lb_zeros(cx, dtype_of(w), w->shape);
            zero = lb_cut_like(cx, zero, w, false);
            zero = zero ? lb_materialize(cx, zero) : NULL;
            zero = stored(o, zero);
            if (!zero) return false;
            o->moment[i * o->moments + k] = lb_ref(zero);
        }
    }
    return true;
}

/* A compiled function holds pointers to the state, and runs without seeing it
 * being opened, read or restored. */
static bool not_traced(lb_ctx *cx, const char *what)
{
    if (!cx->tracer) return true;
    return lb_fail(cx, LB_E_UNSUPPORTED,
                   "optimizer: %s inside a compiled function; only "
                   "lb_optimizer_step can be compiled",
                   what);
}

lb_optimizer *lb_optimizer_open(lb_ctx *cx, const lb_optimizer_config *config,
                                lb_array *const *params, int n)
{
    lb_optimizer_config c;
    size_t got;
    if (!cx || !not_traced(cx, "opened") || !read_config(cx, config, &c))
        return NULL;
    if (n < 1 || n > MAX_PARAMS_ARRAYS || !params) {
        lb_fail(cx, LB_E_ARG, "optimizer: the number of parameters is %d",
                params ? n : 0);
        return NULL;
    }
    const int moments = c.method != LB_SGD ? 2 : c.momentum > 0 ? 1 : 0;
    const size_t pointers = (size_t)n * (2 * MAX_MOMENTS + 1);
    const size_t size = sizeof(lb_optimizer) + pointers * sizeof(lb_array *);
    lb_optimizer *o = lb_heap_alloc(cx->heap, size, &got);
    if (!o) {
        lb_fail(cx, LB_E_NOMEM, "out of memory (an optimizer)");
        return NULL;
    }
    memset(o, 0, size);
    o->cx = cx;
    o->got = got;
    o->c = c;
    o->n = n;
    o->moments = moments;
    o->moment = (lb_array **)(void *)(o + 1);
    o->next = o->moment + (size_t)n * MAX_MOMENTS;
    o->param = o->next + (size_t)n * MAX_MOMENTS;
    if (c.state && !lb_config_read(cx, "optimizer", c.state, &o->state)) {
        lb_heap_free(cx->heap, o, got);
        return NULL;
    }
    o->c.state = c.state ? &o->state : NULL;
    lb_enter(cx);
    const bool ok = begin(o, params);
    lb_leave(cx);
    if (ok) return o;
    lb_optimizer_close(o);
    return NULL;
}

void lb_optimizer_close(lb_optimizer *o)
{
    if (!o) return;
    for (int i = 0; i < o->n * o->moments; i++)
        lb_unref(o->moment[i]);
    lb_heap_free(o->cx->heap, o, o->got);
}

/* ---- a step -------------------------------------------------------------- */

/* The sum of squares of all gradients, in f64 if `wide`. */
static lb_array *squares(lb_optimizer *o, lb_array *const *grads, bool wide)
{
    lb_ctx *cx = o->cx;
    lb_array *sum = NULL;
    for (int i = 0; i < o->n; i++) {
        lb_enter(cx);
        lb_array *g = lb_as(cx, grads[i], wide ? LB_F64 : dtype_of(grads[i]));
        lb_array *s = g ? lb_reduce_sum(cx, lb_mul(cx, g, g), NULL) : NULL;
        sum = lb_leave_with(cx, s && i ? lb_add(cx, sum, s) : s);
        if (!sum) return NULL;
    }
    return sum;
}

static bool read_scalar(lb_ctx *cx, lb_array *a, double *v)
{
    float f = 0;
    if (a->dtype == LB_F64) return lb_read(cx, a, v, sizeof *v);
    if (!lb_read(cx, a, &f, sizeof f)) return false;
    *v = (double)f;
    return true;
}

/* clip_norm over the root of sum, if that is below 1. */
static lb_array *clip_by(lb_optimizer *o, lb_array *sum)
{
    lb_ctx *cx = o->cx;
    lb_array *most = lb_scalar(cx, o->c.clip_norm);
    return lb_min(cx, lb_div(cx, most, lb_sqrt(cx, sum)), lb_scalar(cx, 1));
}

/* The same choice where the sum is not known yet: both are computed. */
static bool traced_clip_factor(lb_optimizer *o, lb_array *const *grads,
                               lb_array *sum, lb_array **out)
{
    lb_ctx *cx = o->cx;
    lb_array *wide = squares(o, grads, true);
    lb_array *narrow_by = clip_by(o, sum), *wide_by = clip_by(o, wide);
    *out = lb_select(cx, lb_is_finite(cx, sum),
                     narrow_by ? lb_convert(cx, narrow_by, LB_F64) : NULL,
                     wide_by ? lb_convert(cx, wide_by, LB_F64) : NULL);
    return *out != NULL;
}

/* The factor for all gradients: clip_norm / norm, if that is below 1; NULL: no
 * clipping. */
static bool clip_factor(lb_optimizer *o, lb_array *const *grads, lb_array **out)
{
    lb_ctx *cx = o->cx;
    double v;
    *out = NULL;
    if (o->c.clip_norm <= 0) return true;
    lb_array *sum = squares(o, grads, false);
    if (cx->tracer && sum) return traced_clip_factor(o, grads, sum, out);
    if (!sum || !read_scalar(cx, sum, &v)) return false;
    /* The square of 1e20 overflows f32; an infinite norm would scale all
     * gradients to zero. */
    if (!isfinite(v)) sum = squares(o, grads, true);
    if (!sum) return false;
    *out = clip_by(o, sum);
    *out = lb_here(cx, *out); /* the same on all ranks */
    return *out != NULL;
}

/* Factors that change from step to step. A compiled step computes them in each
 * run: `which` is a factor, plus FACTORS for each step before it in the same
 * function. */
enum { RATE, RATE_BY_UP1, BY_ROOT_UP2, RATE_DECAY, FACTORS };

static double factor(void *user, int which)
{
    const lb_optimizer *o = user;
    const int64_t step = o->step + which / FACTORS;
    const double rate = lb_schedule_rate(&o->c, step), t = (double)step + 1;
    switch (which % FACTORS) {
    case RATE_BY_UP1:
        return rate / (1 - pow(o->c.beta1, t));
    case BY_ROOT_UP2:
        return 1 / sqrt(1 - pow(o->c.beta2, t));
    case RATE_DECAY:
        return rate * o->c.decay;
    default:
        return rate;
    }
}

static lb_array *scaled(lb_optimizer *o, lb_array *a, int which)
{
    lb_ctx *cx = o->cx;
    lb_tracer *t = cx->tracer;
    lb_array *by =
        t ? t->number(t, factor, o, which + FACTORS * (o->traced - 1))
          : lb_scalar(cx, factor(o, which));
    return by ? lb_mul(cx, a, by) : NULL;
}

static lb_array *times(lb_ctx *cx, lb_array *a, double v)
{
    return lb_mul(cx, a, lb_scalar(cx, v));
}

/* a + (1 - beta)(b - a) */
static lb_array *toward(lb_ctx *cx, lb_array *a, lb_array *b, double beta)
{
    return lb_add(cx, a, times(cx, lb_sub(cx, b, a), 1 - beta));
}

static lb_array *by_sgd(lb_optimizer *o, lb_array *const *moment, lb_array *g,
                        lb_array **next)
{
    lb_ctx *cx = o->cx;
    if (!o->moments) return scaled(o, g, RATE);
    lb_array *v = lb_as(cx, moment[0], g->dtype);
    v = v ? lb_add(cx, times(cx, v, o->c.momentum), g) : NULL;
    next[0] = stored(o, v);
    if (o->c.nesterov && v) v = lb_add(cx, g, times(cx, v, o->c.momentum));
    return scaled(o, v, RATE);
}

static lb_array *by_adam(lb_optimizer *o, lb_array *const *moment, lb_array *g,
                         lb_array **next)
{
    lb_ctx *cx = o->cx;
    lb_array *m = moment[0], *s = moment[1];
    if (o->c.state) s = lb_mul(cx, s, s);
    m = toward(cx, m, g, o->c.beta1);
    s = toward(cx, s, lb_mul(cx, g, g), o->c.beta2);
    lb_array *root = lb_sqrt(cx, s);
    next[0] = stored(o, m);
    next[1] = stored(o, o->c.state ? root : s);
    root = lb_add(cx, scaled(o, root, BY_ROOT_UP2), lb_scalar(cx, o->c.eps));
    return lb_div(cx, scaled(o, m, RATE_BY_UP1), root);
}

/* The moments of parameter i when a step begins. */
static bool moments_of(lb_optimizer *o, int i, lb_array **moment)
{
    lb_tracer *t = o->cx->tracer;
    for (int k = 0; k < o->moments; k++) {
        lb_array **slot = &o->moment[i * o->moments + k];
        moment[k] = t ? t->get(t, slot) : *slot;
        if (!moment[k]) return false;
    }
    return true;
}

/* The next value of parameter i and of its moments. */
static lb_array *advance(lb_optimizer *o, int i, lb_array *w, lb_array *g,
                         lb_array *clip)
{
    lb_ctx *cx = o->cx;
    const lb_dtype was = w->dtype, d = dtype_of(w);
    lb_array *moment[MAX_MOMENTS];
    if (!moments_of(o, i, moment)) return NULL;
    lb_array **next = o->next + (size_t)i * (size_t)o->moments;
    const bool own = o->c.method == LB_ADAMW;
    g = lb_cut_like(cx, g, w, false);
    w = g ? lb_as(cx, w, d) : NULL;
    g = w ? lb_as(cx, g, d) : NULL;
    if (g && clip) g = lb_mul(cx, g, lb_convert(cx, clip, d));
    if (g && o->c.decay > 0 && !own)
        g = lb_add(cx, g, times(cx, w, o->c.decay));
    if (!g) return NULL;
    lb_array *by = o->c.method == LB_SGD ? by_sgd(o, moment, g, next)
                                         : by_adam(o, moment, g, next);
    for (int k = 0; k < o->moments && by; k++)
        if (!next[k]) return NULL;
    if (by && o->c.decay > 0 && own)
        by = lb_add(cx, by, scaled(o, w, RATE_DECAY));
    lb_array *to = by ? lb_sub(cx, w, by) : NULL;
    return to ? lb_as(cx, to, was) : NULL;
}

/* The first moment of parameter i; NULL: there is none. */
static const lb_array *kept_of(const lb_optimizer *o, int i)
{
    return o->moments ? o->moment[i * o->moments] : NULL;
}

static bool was_opened_for(const lb_optimizer *o, int i, const lb_array *w)
{
    const lb_array *m = kept_of(o, i);
    /* A state config may specify another dtype. */
    return !m || (lb_shape_equal(&w->shape, &m->shape) &&
                  (o->c.state || m->dtype == dtype_of(w)));
}

static bool check_step(lb_optimizer *o, lb_array *const *params,
                       lb_array *const *grads)
{
    if (!params || !grads)
        return lb_fail(o->cx, LB_E_NULL, "optimizer: the list of %s is NULL",
                       params ? "gradients" : "parameters");
    for (int i = 0; i < o->n; i++) {
        const lb_array *w = params[i], *g = grads[i], *m = kept_of(o, i);
        if (!w || !g)
            return lb_fail(o->cx, LB_E_NULL, "optimizer: %s %d is NULL",
                           w ? "gradient" : "parameter", i);
        if (!lb_dtype_is_float(w->dtype) || !lb_dtype_is_float(g->dtype) ||
            !lb_shape_equal(&w->shape, &g->shape) || !was_opened_for(o, i, w))
            return lb_fail(o->cx, LB_E_SHAPE,
                           "optimizer: parameter %d is %s%s, its gradient "
                           "%s%s%s%s%s",
                           i, lb_dtype_name(w->dtype), LB_SHOW(&w->shape),
                           lb_dtype_name(g->dtype), LB_SHOW(&g->shape),
                           m ? ", its state " : "",
                           m ? lb_dtype_name(m->dtype) : "",
                           m ? LB_SHOW(&m->shape) : "");
    }
    return true;
}

static bool run(lb_optimizer *o, lb_array *const *params,
                lb_array *const *grads)
{
    lb_array *clip;
    if (!clip_factor(o, grads, &clip)) return false;
    for (int i = 0; i < o->n; i++) {
        lb_enter(o->cx);
        o->param[i] = advance(o, i, params[i], grads[i], clip);
        for (int k = 0; k < o->moments && o->param[i]; k++)
            lb_keep(o->cx, o->next[i * o->moments + k]);
        lb_leave_with(o->cx, o->param[i]);
        if (!o->param[i]) return false;
    }
    return true;
}

bool lb_optimizer_step(lb_optimizer *o, lb_array **params,
                       lb_array *const *grads)
{
    if (!o || !check_step(o, params, grads)) return false;
    lb_ctx *cx = o->cx;
    lb_tracer *t = cx->tracer;
    if (t && (o->traced = t->advance(t, &o->step)) < 0) return false;
    lb_enter(cx);
    bool ok = run(o, params, grads);
    for (int i = 0; i < o->n * o->moments && ok; i++) {
        if (t) {
            ok = t->set(t, &o->moment[i], o->next[i]);
            continue;
        }
        lb_ref(o->next[i]);
        lb_unref(o->moment[i]);
        o->moment[i] = o->next[i];
    }
    for (int i = 0; i < o->n && ok; i++)
        params[i] = lb_keep(cx, o->param[i]);
    lb_leave(cx);
    if (ok && !t) o->step++;
    return ok;
}

/* ---- saving and restoring the state -------------------------------------- */

int lb_optimizer_size(const lb_optimizer *o)
{
    return o->n;
}

int64_t lb_optimizer_steps(const lb_optimizer *o)
{
    return o ? o->step : -1;
}

int lb_optimizer_count(const lb_optimizer *o)
{
    return o ? 1 + o->n * o->moments : 0;
}

lb_array *lb_optimizer_state(lb_optimizer *o, int i, char *name, size_t size)
{
    static const char *const of[3][MAX_MOMENTS] = {
        {"momentum", ""}, {"mean", "square"}, {"mean", "root"}};
    if (!o || !not_traced(o->cx, "state is read")) return NULL;
    if (i < 0 || i >= lb_optimizer_count(o)) {
        lb_fail(o->cx, LB_E_ARG,
                "optimizer: array %d of %d does not exist in the state", i,
                lb_optimizer_count(o));
        return NULL;
    }
    if (!i) {
        if (name) snprintf(name, size, "optimizer.step");
        return lb_full_int(o->cx, LB_I64, lb_shape_make(1, (int64_t[]){1}),
                           o->step);
    }
    const int which = o->c.method == LB_SGD ? 0 : o->c.state ? 2 : 1;
    if (name)
        snprintf(name, size, "optimizer.%d.%s", (i - 1) / o->moments,
                 of[which][(i - 1) % o->moments]);
    /* A view, so that it belongs to the caller's scope. */
    return lb_reshape(o->cx, o->moment[i - 1], o->moment[i - 1]->shape);
}

/* Its storage format, that of the slice if it is sharded. */
static const lb_format *format_of(const lb_array *a)
{
    if (a->store->sharding) a = a->store->part[0].a;
    return a->store->fmt;
}

/* Restores the moments, each sharded like its parameter. */
static bool take_moments(lb_optimizer *o, lb_array *const *moment)
{
    bool ok = true;
    lb_enter(o->cx);
    for (int i = 0; i < o->n * o->moments && ok; i++) {
        o->next[i] = lb_cut_like(o->cx, moment[i], o->moment[i], false);
        ok = o->next[i] != NULL;
    }
    for (int i = 0; i < o->n * o->moments && ok; i++) {
        lb_ref(o->next[i]);
        lb_unref(o->moment[i]);
        o->moment[i] = o->next[i];
    }
    lb_leave(o->cx);
    return ok;
}

bool lb_optimizer_restore(lb_optimizer *o, lb_array *const *state, int n)
{
    if (!o || !not_traced(o->cx, "state is restored")) return false;
    lb_ctx *cx = o->cx;
    if (!state || n != lb_optimizer_count(o))
        return lb_fail(cx, LB_E_ARG, "optimizer: %d arrays for a state of %d",
                       state ? n : 0, lb_optimizer_count(o));
    for (int i = 0; i < n; i++) {
        const lb_array *a = state[i], *was = i ? o->moment[i - 1] : NULL;
        const bool fits =
            a &&
            (was ? a->dtype == was->dtype && format_of(a) == format_of(was) &&
                       lb_shape_equal(&a->shape, &was->shape)
                 : a->dtype == LB_I64 && lb_shape_size(&a->shape) == 1);
        if (!fits)
            return lb_fail(cx, LB_E_ARG,
                           "optimizer: array %d of the state is %s %s%s, not "
                           "%s %s%s",
                           i, a ? lb_format_of(a) : "NULL",
                           a ? lb_dtype_name(a->dtype) : "",
                           a ? LB_SHOW(&a->shape) : "",
                           was ? lb_format_of(was) : "dense",
                           was ? lb_dtype_name(was->dtype) : "i64",
                           was ? LB_SHOW(&was->shape) : "(1)");
    }
    const int64_t step = lb_item_int(cx, state[0]);
    if (step < 0)
        return lb_fail(cx, LB_E_ARG, "optimizer: step %lld is negative",
                       (long long)step);
    if (!take_moments(o, state + 1)) return false;
    o->step = step;
    return true;
}
