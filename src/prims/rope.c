/* rope.c - rope: rotary position embedding along the last axis.
 *
 * Phase 0 computes sines and cosines once per position, in double precision;
 * phase 1 rotates the rows of all heads.
 */
#include <math.h>
#include <string.h>

#include "kernels/rotary.h"
#include "lowbit_params.h"
#include "prims/cuts.h"

enum { ROWS = 64 }; /* rows, and positions, of a unit */

static bool check_params(lb_ctx *cx, const lb_rope_params *p, const lb_shape *s)
{
    const int64_t last = s->dim[s->rank - 1];
    if (p->axis < 0 || p->axis >= s->rank - 1)
        return lb_fail(cx, LB_E_AXIS,
                       "rope: axis %d of %s does not count positions", p->axis,
                       LB_SHOW(s));
    if (p->dims < 0 || p->dims % 2 || p->dims > last)
        return lb_fail(cx, LB_E_SHAPE,
                       "rope: %lld of the last axis of %s are to be rotated, "
                       "not an even number of up to %lld",
                       (long long)p->dims, LB_SHOW(s), (long long)last);
    if (!(p->base > 0) || !isfinite(p->base) || !isfinite(p->magnitude))
        return lb_fail(cx, LB_E_ARG, "rope: base %g, magnitude %g", p->base,
                       p->magnitude);
    if (p->scaling == LB_ROPE_NONE) return true;
    if (p->scaling < 0 || p->scaling > LB_ROPE_YARN)
        return lb_fail(cx, LB_E_ARG, "rope: scaling %d", (int)p->scaling);
    if (!(p->factor > 0) || !isfinite(p->factor))
        return lb_fail(cx, LB_E_ARG, "rope: factor %g", p->factor);
    if (p->scaling == LB_ROPE_LINEAR) return true;
    if (!(p->low > 0 && p->high > p->low && p->original > 0) ||
        !isfinite(p->high) || !isfinite(p->original))
        return lb_fail(cx, LB_E_ARG,
                       "rope: low %g, high %g and original length %g: they "
                       "must be positive, and high above low",
                       p->low, p->high, p->original);
    return p->scaling != LB_ROPE_YARN || p->base > 1 ||
           lb_fail(cx, LB_E_ARG, "rope: yarn needs a base above 1, not %g",
                   p->base);
}

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_rope_params *p = c->params;
    const lb_array *x = c->in[0], *at = c->in[1];
    if (x->shape.rank < 2)
        return lb_fail(cx, LB_E_SHAPE,
                       "rope: %s has no axis of positions and one of a head",
                       LB_SHOW(&x->shape));
    if (!lb_dtype_is_float(x->dtype))
        return lb_fail(cx, LB_E_DTYPE, "rope: the array is %s, not a float",
                       lb_dtype_name(x->dtype));
    if (!lb_dtype_is_int(at->dtype))
        return lb_fail(cx, LB_E_DTYPE, "rope: positions are %s, not integers",
                       lb_dtype_name(at->dtype));
    if (!check_params(cx, p, &x->shape)) return false;
    const int64_t n = x->shape.dim[p->axis];
    if (at->shape.rank > 1 || (at->shape.rank && at->shape.dim[0] != n))
        return lb_fail(cx, LB_E_SHAPE,
                       "rope: positions have shape %s, but must be a scalar or "
                       "of shape (%lld)",
                       LB_SHOW(&at->shape), (long long)n);
    c->shape = x->shape;
    c->dtype = x->dtype;
    return true;
}

/* ---- eval ---------------------------------------------------------------- */

typedef struct rope_grid {
    lb_ctype type;
    size_t size; /* of a number */
    int64_t pairs, last, positions, rows;
    int64_t per_position; /* rows that follow each other with one position */
} rope_grid;

static rope_grid grid_of(const lb_call *c)
{
    const lb_rope_params *p = c->params;
    const lb_shape *s = &c->shape;
    rope_grid g = {.type = lb_ctype_of(c->dtype),
                   .pairs = p->dims / 2,
                   .last = s->dim[s->rank - 1],
                   .positions = s->dim[p->axis],
                   .rows = 1,
                   .per_position = 1};
    g.size = lb_ctype_size(g.type);
    for (int k = 0; k < s->rank - 1; k++) {
        g.rows *= s->dim[k];
        if (k > p->axis) g.per_position *= s->dim[k];
    }
    if (!g.last) g.rows = 0;
    return g;
}

static void plan(const lb_call *c, lb_plan *plan)
{
    const rope_grid g = grid_of(c);
    *plan = (lb_plan){
        .shared = (size_t)(2 * g.positions * g.pairs) * g.size,
        .per_thread =
            (size_t)g.pairs * sizeof(double) + (size_t)(2 * g.last) * g.size,
        .phases = 2,
        .units = {lb_ceil_div(g.positions, ROWS), lb_ceil_div(g.rows, ROWS)},
        .kernel = "rotate rows",
    };
    if (!g.rows) plan->units[0] = 0;
}

static double position(const lb_call *c, int64_t i)
{
    const lb_array *at = c->in[1];
    const bool each = at->shape.rank == 1;
    if (lb_dtype_is_unsigned(at->dtype)) {
        uint64_t u = 0;
        lb_tile_read_flat(c->cpu, at, each ? i : 0, 1, LB_C_U64, &u);
        return (double)u + (each ? 0 : (double)i);
    }
    int64_t n = 0;
    lb_tile_read_flat(c->cpu, at, each ? i : 0, 1, LB_C_I64, &n);
    return (double)n + (each ? 0 : (double)i);
}

/* Cosines, then sines, of positions [lo, hi). */
static void make_table(const lb_work *w, const rope_grid *g, int64_t lo,
                       int64_t hi)
{
    const lb_rope_params *p = w->call->params;
    double *f = w->scratch, s, c;
    const double magnitude = lb_rotary_frequencies(p, g->pairs, f);
    const double sign = p->inverse ? -magnitude : magnitude;
    for (int64_t t = lo; t < hi; t++) {
        const double at = position(w->call, t);
        for (int64_t i = 0; i < g->pairs; i++) {
            const int64_t to = 2 * t * g->pairs + i;
            lb_sincosd(at * f[i], &s, &c);
            if (g->type == LB_C_F64) {
                ((double *)w->shared)[to] = c * magnitude;
                ((double *)w->shared)[to + g->pairs] = s * sign;
            } else {
                ((float *)w->shared)[to] = (float)(c * magnitude);
                ((float *)w->shared)[to + g->pairs] = (float)(s * sign);
            }
        }
    }
}

static void rotate(const lb_work *w, const rope_grid *g, int64_t row)
{
    const lb_call *c = w->call;
    const lb_rope_params *p = c->params;
    const int last = c->shape.rank - 1;
    int64_t lo[LB_MAX_RANK] = {0}, n[LB_MAX_RANK], left = row;
    for (int k = last - 1; k >= 0; k--) {
        lo[k] = left % c->shape.dim[k];
        left /= c->shape.dim[k];
        n[k] = 1;
    }
    n[last] = g->last;
    char *room = (char *)w->scratch + (size_t)g->pairs * sizeof(double);
    char *to = lb_tile_place(c->cpu, w->out, lo, n, g->type), *y = to;
    if (!to) y = room + (size_t)g->last * g->size;
    const void *x = lb_tile_peek(c->cpu, c->in[0], lo, n, g->type, room);
    const size_t at = (size_t)(2 * lo[p->axis] * g->pairs) * g->size;
    const char *cosines = (const char *)w->shared + at;
    const char *sines = cosines + (size_t)g->pairs * g->size;
    const int64_t tail = g->last - 2 * g->pairs;
    if (g->type == LB_C_F64)
        lb_rotate_f64(x, (const void *)cosines, (const void *)sines, g->pairs,
                      tail, p->interleaved, (void *)y);
    else
        lb_rotate_f32(x, (const void *)cosines, (const void *)sines, g->pairs,
                      tail, p->interleaved, (void *)y);
    if (!to) lb_tile_write(c->cpu, w->out, lo, n, g->type, y);
}

static void eval(const lb_work *w)
{
    const rope_grid g = grid_of(w->call);
    if (w->phase == 0) {
        make_table(w, &g, w->lo * ROWS, lb_min_i64(w->hi * ROWS, g.positions));
        return;
    }
    const int64_t end = lb_min_i64(w->hi * ROWS, g.rows);
    for (int64_t row = w->lo * ROWS; row < end; row++)
        rotate(w, &g, row);
}

/* ---- gradient, sharding -------------------------------------------------- */

/* The transpose of a rotation turns back. */
static lb_array *vjp(lb_ctx *cx, const lb_call *c, int operand, lb_array *out,
                     lb_array *dout)
{
    (void)operand, (void)out;
    lb_rope_params p = *(const lb_rope_params *)c->params;
    p.inverse = !p.inverse;
    return lb_bind(cx, c->prim, 2, (lb_array *[]){dout, c->in[1]}, &p);
}

static bool shard(const lb_call *c, lb_cuts *to)
{
    const lb_rope_params *p = c->params;
    const bool each = c->in[1]->shape.rank == 1;
    for (int k = 0; k < c->shape.rank - 1; k++)
        if (k != p->axis || each) lb_cuts_pair(to, k + 1, 0, k, k);
    if (each) to->in[1][0] = p->axis + 1;
    return true;
}

const lb_prim lb_prim_rope = {
    .struct_size = sizeof(lb_prim),
    .name = "rope",
    .params_size = sizeof(lb_rope_params),
    .params_exact = offsetof(lb_rope_params, inverse) + 1,
    .n_in = 2,
    .infer = infer,
    .plan = plan,
    .eval = eval,
    .vjp = vjp,
    .shard = shard,
};

/* ---- lb_rope ------------------------------------------------------------- */

static bool read_options(lb_ctx *cx, const lb_rope_options *options,
                         lb_rope_options *o)
{
    *o = (lb_rope_options){0};
    if (!options) return true;
    const size_t size =
        options->struct_size ? options->struct_size : sizeof *options;
    if (size < offsetof(lb_rope_options, scaling))
        return lb_fail(cx, LB_E_ARG, "rope: options.struct_size is %zu", size);
    memcpy(o, options, size < sizeof *o ? size : sizeof *o);
    return true;
}

static double or_default(double value, double standard)
{
    return value == 0 ? standard : value;
}

/* The axis of positions, counted from the front; errors name the user's. */
static bool find_axis(lb_ctx *cx, const lb_rope_options *o, const lb_shape *s,
                      int *axis)
{
    const int given = o->axis ? o->axis : -2;
    if (s->rank < 2)
        return lb_fail(cx, LB_E_SHAPE,
                       "rope: %s has no axis of positions and one of a head",
                       LB_SHOW(s));
    return lb_axis_fix(cx, "rope", given, s->rank, axis) &&
           (*axis < s->rank - 1 ||
            lb_fail(cx, LB_E_AXIS,
                    "rope: axis %d of %s is the last one, which is rotated: "
                    "it cannot count positions",
                    given, LB_SHOW(s)));
}

static lb_rope_params params_of(const lb_rope_options *o, const lb_shape *s,
                                int axis)
{
    const bool yarn = o->scaling == LB_ROPE_YARN;
    lb_rope_params p = {
        .axis = axis,
        .interleaved = o->interleaved,
        .scaling = o->scaling,
        .dims = o->dims ? o->dims : s->dim[s->rank - 1],
        .base = or_default(o->base, 10000),
        .factor = or_default(o->factor, 1),
        .low = or_default(o->low, 1),
        .high = or_default(o->high, yarn ? 32 : 4),
        .original = (double)(o->original ? o->original : 8192),
        .magnitude = o->magnitude,
    };
    if (p.magnitude == 0)
        p.magnitude = yarn && p.factor > 1 ? 0.1 * log(p.factor) + 1 : 1;
    return p;
}

lb_array *lb_rope(lb_ctx *cx, lb_array *x, const lb_rope_options *options)
{
    lb_rope_options o;
    if (!cx || !read_options(cx, options, &o)) return NULL;
    lb_array *at = o.positions;
    int axis = 0;
    if (x && !find_axis(cx, &o, &x->shape, &axis)) return NULL;
    const lb_rope_params p =
        x ? params_of(&o, &x->shape, axis) : (lb_rope_params){0};
    lb_enter(cx);
    if (x && !lb_dtype_is_float(x->dtype)) x = lb_as(cx, x, LB_F32);
    if (!at) at = lb_scalar_int(cx, o.offset);
    return lb_leave_with(
        cx, lb_bind(cx, &lb_prim_rope, 2, (lb_array *[]){x, at}, &p));
}
