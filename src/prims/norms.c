/* norms.c - softmax, log-softmax and norms of rows.
 *
 * Each is composed of reductions and elementwise calls, and is what these
 * compute: gradients, compiled programs and meshes see them (lb_prim.compose).
 * A plain call of rows that fit in L2 has an eval of its own instead, which
 * runs the same loops, in the same order, on a few rows at a time, so its bits
 * are the same. 16-bit floats are computed in f32 and rounded at the end.
 */
#include <string.h>

#include "core/core.h"
#include "lowbit_params.h"
#include "prims/elementwise.h"

enum {
    TILE = 2048,  /* elements that are computed together, if rows are short */
    UNIT = 16384, /* elements worth a thread: up to eight passes each */
    MOST_IN = 3   /* x, weight, bias */
};

extern const lb_prim lb_prim_softmax, lb_prim_log_softmax, lb_prim_rms_norm;
extern const lb_prim lb_prim_layer_norm;
extern const lb_prim lb_prim_reduce_sum, lb_prim_reduce_max;

/* ---- what is composed ---------------------------------------------------- */

/* The dtype to compute in. */
static lb_dtype wide_of(lb_dtype d)
{
    return d == LB_F64 ? LB_F64 : LB_F32;
}

/* Operand i in that dtype, of the numbers that the call sees. */
static lb_array *wide(lb_ctx *cx, const lb_call *c, int i)
{
    const lb_dtype to = wide_of(c->dtype);
    lb_array *a = c->in[i];
    /* Else the conversion would decode more digits than the call sees. */
    if (a->dtype != to && (a->store->fmt->relabel || a->store->sharding))
        a = lb_materialize(cx, a);
    return a ? lb_as(cx, a, to) : NULL;
}

static lb_array *number(lb_ctx *cx, lb_dtype dtype, double value)
{
    return lb_full(cx, dtype, (lb_shape){0}, value);
}

/* x minus its maximum along the axis, to keep exp in range. */
static lb_array *below_max(lb_ctx *cx, lb_array *x, const lb_axes *axis)
{
    lb_array *m = lb_reduce_max(cx, x, axis);
    if (!m) return NULL;
    lb_shape s = x->shape;
    s.dim[axis->axis[0]] = 1;
    return lb_sub(cx, x, lb_reshape(cx, m, s));
}

static lb_array *compose_softmax(lb_ctx *cx, const lb_call *c)
{
    const lb_softmax_params *p = c->params;
    const lb_axes axis = {1, {p->axis}};
    lb_array *x = wide(cx, c, 0);
    lb_array *e = x ? lb_exp(cx, below_max(cx, x, &axis)) : NULL;
    return lb_as(cx, lb_div(cx, e, lb_sum(cx, e, &axis, true)), c->dtype);
}

static lb_array *compose_log_softmax(lb_ctx *cx, const lb_call *c)
{
    const lb_softmax_params *p = c->params;
    const lb_axes axis = {1, {p->axis}};
    lb_array *x = wide(cx, c, 0);
    lb_array *d = x ? below_max(cx, x, &axis) : NULL;
    lb_array *s = lb_sum(cx, lb_exp(cx, d), &axis, true);
    return lb_as(cx, lb_sub(cx, d, lb_log(cx, s)), c->dtype);
}

/* x / sqrt(mean x^2 + eps) */
static lb_array *unit_rms(lb_ctx *cx, lb_array *x, const lb_axes *last,
                          double eps)
{
    lb_array *ms = lb_mean(cx, lb_mul(cx, x, x), last, true);
    lb_array *e = ms ? number(cx, ms->dtype, eps) : NULL;
    return lb_mul(cx, x, lb_rsqrt(cx, lb_add(cx, ms, e)));
}

/* y times the weight plus the bias, if there are any. */
static lb_array *affine(lb_ctx *cx, const lb_call *c, lb_array *y)
{
    const lb_norm_params *p = c->params;
    if (p->weight) y = lb_mul(cx, y, wide(cx, c, 1));
    if (p->bias) y = lb_add(cx, y, wide(cx, c, 1 + p->weight));
    return lb_as(cx, y, c->dtype);
}

static lb_array *compose_norm(lb_ctx *cx, const lb_call *c)
{
    const lb_norm_params *p = c->params;
    const lb_axes last = {1, {c->shape.rank - 1}};
    lb_array *x = wide(cx, c, 0);
    if (x && c->prim == &lb_prim_layer_norm)
        x = lb_sub(cx, x, lb_mean(cx, x, &last, true));
    return affine(cx, c, x ? unit_rms(cx, x, &last, p->eps) : NULL);
}

/* ---- infer --------------------------------------------------------------- */

static bool is_float(lb_ctx *cx, const lb_call *c, int i)
{
    return lb_dtype_is_float(c->in[i]->dtype) ||
           lb_fail(cx, LB_E_DTYPE, "%s: operand %d is %s, not a float",
                   c->prim->name, i, lb_dtype_name(c->in[i]->dtype));
}

static bool softmax_infer(lb_ctx *cx, lb_call *c)
{
    const lb_softmax_params *p = c->params;
    const lb_array *x = c->in[0];
    if (!is_float(cx, c, 0)) return false;
    if (p->axis < 0 || p->axis >= x->shape.rank)
        return lb_fail(cx, LB_E_AXIS, "%s: axis %d of an array of rank %d",
                       c->prim->name, p->axis, x->shape.rank);
    c->shape = x->shape;
    c->dtype = x->dtype;
    return true;
}

static bool norm_infer(lb_ctx *cx, lb_call *c)
{
    const lb_norm_params *p = c->params;
    const lb_array *x = c->in[0];
    const char *who = c->prim->name;
    const int want = 1 + p->weight + p->bias, last = x->shape.rank - 1;
    if (c->n_in != want)
        return lb_fail(cx, LB_E_ARG, "%s: %d operands, not %d", who, c->n_in,
                       want);
    if (p->bias && c->prim == &lb_prim_rms_norm)
        return lb_fail(cx, LB_E_ARG, "%s: it has no bias", who);
    if (last < 0)
        return lb_fail(cx, LB_E_SHAPE, "%s: a scalar has no last axis", who);
    for (int i = 0; i < c->n_in; i++) {
        const lb_shape *s = &c->in[i]->shape;
        if (!is_float(cx, c, i)) return false;
        if (i && (s->rank != 1 || s->dim[0] != x->shape.dim[last]))
            return lb_fail(cx, LB_E_SHAPE, "%s: %s has shape %s, not (%lld)",
                           who, i == 1 && p->weight ? "weight" : "bias",
                           LB_SHOW(s), (long long)x->shape.dim[last]);
    }
    c->shape = x->shape;
    c->dtype = x->dtype;
    return true;
}

/* ---- plan ---------------------------------------------------------------- */

/* What plan knows, in its note. */
typedef struct norm_job {
    lb_ctype c;
    size_t size;     /* of an element */
    int64_t rows, n; /* of x, and elements of each */
    int64_t tile;    /* rows of a tile */
    int64_t unit;    /* tiles of a unit */
    bool flat;       /* x, as two axes, is the view v[0] */
    lb_array v[MOST_IN];
    lb_fusion sum, max;
    lb_lanes_fn *add, *sub, *mul, *div, *exp, *log, *rsqrt;
} norm_job;
_Static_assert(sizeof(norm_job) <= LB_PLAN_NOTE, "a plan's note has room");

/* Scratch: tiles, then numbers of a tile's rows. */
enum { X, A, B, C, WEIGHT, BIAS, OUT, TILES };
enum { ROW_A, ROW_B, ROW_COUNT, ROW_EPS, ROWS };

static size_t tile_bytes(const norm_job *j)
{
    return ((size_t)(j->tile * j->n) * j->size + 63) / 64 * 64;
}

static size_t row_bytes(const norm_job *j)
{
    return ((size_t)j->tile * j->size + 63) / 64 * 64;
}

/* How reductions of rows run on a tile. */
static void set_reduction(const lb_call *c, const lb_prim *prim, lb_array *x,
                          lb_fusion *to)
{
    const lb_reduce_params params = {{1, {1}}};
    const lb_call r = {
        .prim = prim, .cpu = c->cpu, .n_in = 1, .in = &x, .params = &params};
    *to = (lb_fusion){0};
    prim->fuse(&r, to);
}

static lb_lanes_fn *loop(const lb_call *c, const lb_row *row, lb_ctype type)
{
    return lb_row_lanes(row, c->cpu, type);
}

static void set_operands(const lb_call *c, norm_job *j)
{
    for (int i = 0; i < c->n_in; i++)
        j->v[i] = *c->in[i];
    const lb_shape two = {2, {j->rows, j->n}};
    lb_array x = j->v[0];
    x.shape = two;
    j->flat = lb_restride(&j->v[0], &two, x.stride);
    if (j->flat) j->v[0] = x;
}

static void plan(const lb_call *c, lb_plan *p)
{
    norm_job *j = p->note;
    const lb_shape *s = &c->shape;
    j->c = lb_ctype_of(wide_of(c->dtype));
    j->size = lb_ctype_size(j->c);
    j->n = s->dim[s->rank - 1];
    j->rows = 1;
    for (int k = 0; k < s->rank - 1; k++)
        j->rows *= s->dim[k];
    j->tile = lb_min_i64(lb_max_i64(TILE / j->n, 1), j->rows);
    j->unit = lb_max_i64(UNIT / (j->tile * j->n), 1);
    set_operands(c, j);
    lb_array x = {.dtype = wide_of(c->dtype), .shape = {2, {j->rows, j->n}}};
    set_reduction(c, &lb_prim_reduce_sum, &x, &j->sum);
    set_reduction(c, &lb_prim_reduce_max, &x, &j->max);
    j->add = loop(c, &lb_row_add, j->c);
    j->sub = loop(c, &lb_row_sub, j->c);
    j->mul = loop(c, &lb_row_mul, j->c);
    j->div = loop(c, &lb_row_div, j->c);
    j->exp = loop(c, &lb_row_exp, j->c);
    j->log = loop(c, &lb_row_log, j->c);
    j->rsqrt = loop(c, &lb_row_rsqrt, j->c);
    p->per_thread = TILES * tile_bytes(j) + ROWS * row_bytes(j);
    p->phases = 1;
    p->units[0] = lb_ceil_div(lb_ceil_div(j->rows, j->tile), j->unit);
    p->kernel = "rows";
}

/* Rows along the last axis; longer ones are divided among threads. */
static bool norm_suits(const lb_call *c)
{
    const int64_t n = c->shape.dim[c->shape.rank - 1];
    return n <= LB_FUSE_COLS && lb_shape_size(&c->shape) > 0;
}

static bool softmax_suits(const lb_call *c)
{
    const lb_softmax_params *p = c->params;
    return p->axis == c->shape.rank - 1 && norm_suits(c);
}

/* ---- eval ---------------------------------------------------------------- */

/* One thread's buffers, and the tile at hand. */
typedef struct norm_tile {
    const norm_job *j;
    char *a, *b, *c;             /* tiles */
    char *ra, *rb, *count, *eps; /* numbers of each row */
    const void *w, *v;           /* tiles of the weight and bias, or NULL */
    const void *x;
    int64_t rows;
} norm_tile;

static void each(lb_lanes_fn *run, int64_t n, const void *x, const void *y,
                 void *out)
{
    const lb_lanes l = {.n = n, .in = {x, y}, .out = out};
    run(&l);
}

/* Operations on all elements, and on one number of each row. */
static void all(const norm_tile *t, lb_lanes_fn *run, const void *x,
                const void *y, void *out)
{
    each(run, t->rows * t->j->n, x, y, out);
}

static void per_row(const norm_tile *t, lb_lanes_fn *run, const void *x,
                    const void *y, void *out)
{
    each(run, t->rows, x, y, out);
}

static void reduce(const norm_tile *t, const lb_fusion *how, const void *x,
                   void *out)
{
    how->reduce(how, x, t->rows, t->j->n, out);
}

/* `count` times the same element. */
static void fill(size_t size, const void *from, int64_t count, void *to)
{
    if (size == 4) {
        uint32_t x, *p = to;
        memcpy(&x, from, 4);
        for (int64_t i = 0; i < count; i++)
            p[i] = x;
    } else {
        uint64_t x, *p = to;
        memcpy(&x, from, 8);
        for (int64_t i = 0; i < count; i++)
            p[i] = x;
    }
}

/* Repeats the number of each row for all of its elements. */
static void *spread(const norm_tile *t, const char *from, char *to)
{
    const size_t size = t->j->size;
    for (int64_t r = 0; r < t->rows; r++)
        fill(size, from + (size_t)r * size, t->j->n,
             to + (size_t)(r * t->j->n) * size);
    return to;
}

static void softmax(const norm_tile *t, void *out)
{
    const norm_job *j = t->j;
    reduce(t, &j->max, t->x, t->ra);
    all(t, j->sub, t->x, spread(t, t->ra, t->b), t->a);
    all(t, j->exp, t->a, NULL, t->b);
    reduce(t, &j->sum, t->b, t->ra);
    all(t, j->div, t->b, spread(t, t->ra, t->a), out);
}

static void log_softmax(const norm_tile *t, void *out)
{
    const norm_job *j = t->j;
    reduce(t, &j->max, t->x, t->ra);
    all(t, j->sub, t->x, spread(t, t->ra, t->b), t->a);
    all(t, j->exp, t->a, NULL, t->b);
    reduce(t, &j->sum, t->b, t->ra);
    per_row(t, j->log, t->ra, NULL, t->rb);
    all(t, j->sub, t->a, spread(t, t->rb, t->b), out);
}

/* The mean of a tile's rows, in rb. */
static void mean(const norm_tile *t, const void *x)
{
    reduce(t, &t->j->sum, x, t->ra);
    per_row(t, t->j->div, t->ra, t->count, t->rb);
}

/* x may be b. */
static void rms_norm(const norm_tile *t, const void *x, void *out)
{
    const norm_job *j = t->j;
    all(t, j->mul, x, x, t->a);
    mean(t, t->a);
    per_row(t, j->add, t->rb, t->eps, t->ra);
    per_row(t, j->rsqrt, t->ra, NULL, t->rb);
    void *y = t->w || t->v ? t->c : out, *z = t->v ? t->a : out;
    all(t, j->mul, x, spread(t, t->rb, t->a), y);
    if (t->w) all(t, j->mul, y, t->w, z);
    if (t->v) all(t, j->add, t->w ? z : y, t->v, out);
}

static void layer_norm(const norm_tile *t, void *out)
{
    mean(t, t->x);
    all(t, t->j->sub, t->x, spread(t, t->rb, t->a), t->b);
    rms_norm(t, t->b, out);
}

/* Rows [first, first + t->rows) of x. */
static const void *read_rows(const norm_job *j, const lb_cpu *cpu,
                             int64_t first, int64_t rows, void *tile)
{
    const lb_array *x = &j->v[0];
    if (j->flat)
        return lb_tile_peek(cpu, x, (int64_t[]){first, 0},
                            (int64_t[]){rows, j->n}, j->c, tile);
    lb_tile_read_flat(cpu, x, first * j->n, rows * j->n, j->c, tile);
    return tile;
}

/* Operand i, a vector, for each row of a tile. */
static const void *read_vector(const norm_job *j, const lb_cpu *cpu, int i,
                               char *tile)
{
    const size_t row = (size_t)j->n * j->size;
    const char *from =
        lb_tile_peek(cpu, &j->v[i], (int64_t[]){0}, &j->n, j->c, tile);
    if (j->tile == 1) return from;
    for (int64_t r = 0; r < j->tile; r++)
        memmove(tile + (size_t)r * row, from, row);
    return tile;
}

static void fill_number(const norm_job *j, double value, void *to)
{
    const float f = (float)value;
    fill(j->size, j->size == 4 ? (const void *)&f : &value, j->tile, to);
}

static void set_tile(const norm_job *j, const lb_work *w, norm_tile *t)
{
    const lb_call *c = w->call;
    const size_t size = tile_bytes(j);
    char *const at = w->scratch, *const row = at + TILES * size;
    *t = (norm_tile){.j = j,
                     .a = at + A * size,
                     .b = at + B * size,
                     .c = at + C * size,
                     .ra = row + ROW_A * row_bytes(j),
                     .rb = row + ROW_B * row_bytes(j),
                     .count = row + ROW_COUNT * row_bytes(j),
                     .eps = row + ROW_EPS * row_bytes(j)};
    if (c->prim != &lb_prim_rms_norm && c->prim != &lb_prim_layer_norm) return;
    const lb_norm_params *p = c->params;
    fill_number(j, (double)j->n, t->count);
    fill_number(j, p->eps, t->eps);
    if (p->weight) t->w = read_vector(j, c->cpu, 1, at + WEIGHT * size);
    if (p->bias) t->v = read_vector(j, c->cpu, 1 + p->weight, at + BIAS * size);
}

static void run_tile(const lb_prim *prim, const norm_tile *t, void *out)
{
    if (prim == &lb_prim_softmax)
        softmax(t, out);
    else if (prim == &lb_prim_log_softmax)
        log_softmax(t, out);
    else if (prim == &lb_prim_rms_norm)
        rms_norm(t, t->x, out);
    else
        layer_norm(t, out);
}

static void eval(const lb_work *w)
{
    const norm_job *j = w->plan->note;
    const lb_cpu *cpu = w->call->cpu;
    const int64_t step = j->unit * j->tile;
    const int64_t end = lb_min_i64(w->hi * step, j->rows);
    char *const tiles = w->scratch;
    norm_tile t;
    set_tile(j, w, &t);
    lb_array out = *w->out;
    out.shape = (lb_shape){2, {j->rows, j->n}};
    lb_row_major(&out.shape, out.stride);
    for (int64_t r = w->lo * step; r < end; r += j->tile) {
        const int64_t lo[2] = {r, 0};
        const int64_t n[2] = {lb_min_i64(j->tile, end - r), j->n};
        t.rows = n[0];
        t.x = read_rows(j, cpu, r, n[0], tiles + X * tile_bytes(j));
        void *place = lb_tile_place(cpu, &out, lo, n, j->c);
        void *to = place ? place : tiles + OUT * tile_bytes(j);
        run_tile(w->call->prim, &t, to);
        if (!place) lb_tile_write(cpu, &out, lo, n, j->c, to);
    }
}

/* ---- the primitives ------------------------------------------------------ */

#define SOFTMAX(NAME)                                                          \
    const lb_prim lb_prim_##NAME = {                                           \
        .struct_size = sizeof(lb_prim),                                        \
        .name = #NAME,                                                         \
        .params_size = sizeof(lb_softmax_params),                              \
        .n_in = 1,                                                             \
        .infer = softmax_infer,                                                \
        .plan = plan,                                                          \
        .eval = eval,                                                          \
        .compose = compose_##NAME,                                             \
        .suits = softmax_suits,                                                \
        .element_ns = 0.5F,                                                    \
    };
SOFTMAX(softmax)
SOFTMAX(log_softmax)

#define NORM(NAME)                                                             \
    const lb_prim lb_prim_##NAME = {                                           \
        .struct_size = sizeof(lb_prim),                                        \
        .name = #NAME,                                                         \
        .params_size = sizeof(lb_norm_params),                                 \
        .params_exact = offsetof(lb_norm_params, bias) + sizeof(bool),         \
        .n_in = -1,                                                            \
        .infer = norm_infer,                                                   \
        .plan = plan,                                                          \
        .eval = eval,                                                          \
        .compose = compose_norm,                                               \
        .suits = norm_suits,                                                   \
        .element_ns = 0.2F,                                                    \
    };
NORM(rms_norm)
NORM(layer_norm)

/* ---- the user's functions ------------------------------------------------ */

/* As any conversion, that of a packed array with a 16-bit dtype decodes to more
 * digits than the array shows: it is made where these functions compute. */
static bool has_digits(const lb_array *a, lb_dtype wide)
{
    return a->store->fmt->relabel && a->dtype != wide;
}

typedef struct norm_work {
    lb_ctx *cx;
    lb_dtype dtype; /* of the result */
    bool weak;
} norm_work;

/* Opens a scope. x as a float; NULL on error. */
static lb_array *begin(norm_work *w, lb_ctx *cx, const char *who, lb_array *x)
{
    *w = (norm_work){.cx = cx, .dtype = LB_F32};
    if (!cx) return NULL;
    lb_enter(cx);
    if (!x) {
        lb_fail(cx, LB_E_NULL, "%s: the array is NULL", who);
        return NULL;
    }
    w->weak = x->weak;
    if (!lb_dtype_is_float(x->dtype)) return lb_as(cx, x, LB_F32);
    w->dtype = x->dtype;
    return has_digits(x, wide_of(x->dtype)) ? lb_as(cx, x, wide_of(x->dtype))
                                            : x;
}

static lb_array *end(const norm_work *w, lb_array *y)
{
    if (!w->cx) return NULL;
    y = y ? lb_as(w->cx, y, w->dtype) : NULL;
    if (y && w->weak) y->weak = true;
    return lb_leave_with(w->cx, y);
}

static lb_array *along(lb_ctx *cx, const lb_prim *prim, lb_array *x, int axis)
{
    norm_work w;
    lb_softmax_params p = {0};
    x = begin(&w, cx, prim->name, x);
    if (!x || !lb_axis_fix(cx, prim->name, axis, x->shape.rank, &p.axis))
        return end(&w, NULL);
    return end(&w, lb_bind(cx, prim, 1, &x, &p));
}

lb_array *lb_softmax(lb_ctx *cx, lb_array *x, int axis)
{
    return along(cx, &lb_prim_softmax, x, axis);
}

lb_array *lb_log_softmax(lb_ctx *cx, lb_array *x, int axis)
{
    return along(cx, &lb_prim_log_softmax, x, axis);
}

/* A weight or bias must be a vector along the last axis. */
static bool fits_last(lb_ctx *cx, const char *who, const char *what,
                      const lb_array *v, const lb_array *x)
{
    const int64_t n = x->shape.dim[x->shape.rank - 1];
    if (!v || (v->shape.rank == 1 && v->shape.dim[0] == n)) return true;
    return lb_fail(cx, LB_E_SHAPE, "%s: %s has shape %s, not (%lld)", who, what,
                   LB_SHOW(&v->shape), (long long)n);
}

/* A weight or bias: eval reads 16-bit floats and floats of x's dtype itself. */
static lb_array *vector(lb_ctx *cx, lb_array *v, const lb_array *x)
{
    const lb_dtype wide = wide_of(x->dtype);
    const bool as_is = v->dtype == LB_F32 || v->dtype == LB_F16 ||
                       v->dtype == LB_BF16 || v->dtype == wide;
    return as_is && !has_digits(v, wide) ? v : lb_as(cx, v, wide);
}

static lb_array *norm(lb_ctx *cx, const lb_prim *prim, lb_array *x,
                      lb_array *weight, lb_array *bias, double eps)
{
    norm_work w;
    const char *who = prim->name;
    const lb_norm_params p = {eps, weight != NULL, bias != NULL};
    x = begin(&w, cx, who, x);
    if (!x) return end(&w, NULL);
    if (!x->shape.rank)
        lb_fail(cx, LB_E_SHAPE, "%s: a scalar has no last axis", who);
    if (!x->shape.rank || !fits_last(cx, who, "weight", weight, x) ||
        !fits_last(cx, who, "bias", bias, x))
        return end(&w, NULL);
    lb_array *in[MOST_IN] = {x};
    int n = 1;
    if (weight) in[n++] = vector(cx, weight, x);
    if (bias) in[n++] = vector(cx, bias, x);
    return end(&w, lb_bind(cx, prim, n, in, &p));
}

lb_array *lb_rms_norm(lb_ctx *cx, lb_array *x, lb_array *weight, double eps)
{
    return norm(cx, &lb_prim_rms_norm, x, weight, NULL, eps);
}

lb_array *lb_layer_norm(lb_ctx *cx, lb_array *x, lb_array *weight,
                        lb_array *bias, double eps)
{
    return norm(cx, &lb_prim_layer_norm, x, weight, bias, eps);
}
