/* elementwise.c - common code of all elementwise primitives: infer, plan, eval,
 * and the user function, which broadcasts and promotes. The arithmetic of each
 * is a row in lanes.c.
 *
 * Axes that are contiguous in every operand are merged first, so that row-major
 * arrays of equal shape are one long run.
 */
#include "prims/elementwise.h"

#include <string.h>

#include "core/core.h"
#include "lowbit_params.h"

enum {
    MAX_IN = 3,
    UNIT = 16 /* tiles: the minimum work for another thread */
};

static const lb_row *row_of(const lb_call *c)
{
    return (const lb_row *)(const void *)c->prim;
}

static int kind(lb_dtype d)
{
    static const int of[] = {[LB_C_F32] = LB_KIND_F,
                             [LB_C_F64] = LB_KIND_F,
                             [LB_C_I64] = LB_KIND_I,
                             [LB_C_U64] = LB_KIND_U,
                             [LB_C_BOOL] = LB_KIND_B};
    return of[lb_ctype_of(d)];
}

static const char *kinds_text(int kinds)
{
    switch (kinds) {
    case LB_KIND_F:
        return "floats";
    case LB_KIND_F | LB_KIND_I | LB_KIND_U:
        return "numeric dtypes, not bool";
    case LB_KIND_I | LB_KIND_U:
        return "integers";
    default:
        return "integers and bool";
    }
}

/* Operands must agree in shape and dtype. Exceptions with three operands: the
 * first of select is a bool, and it and the bounds of clamp may be scalars. */
bool lb_row_infer(lb_ctx *cx, lb_call *c)
{
    const lb_row *row = row_of(c);
    const char *who = c->prim->name;
    const lb_array *main = c->in[c->n_in == 3 ? 1 : 0];
    const bool select = row == &lb_row_select;
    for (int i = 0; i < c->n_in; i++) {
        const lb_array *a = c->in[i];
        const bool pred = select && i == 0;
        const lb_dtype want = pred ? LB_BOOL : main->dtype;
        const bool scalar = (row == &lb_row_clamp || pred) && !a->shape.rank;
        if (!scalar && !lb_shape_equal(&a->shape, &main->shape))
            return lb_fail(cx, LB_E_SHAPE,
                           "%s: operand %d has shape %s, not %s", who, i,
                           LB_SHOW(&a->shape), LB_SHOW(&main->shape));
        if (a->dtype != want)
            return lb_fail(cx, LB_E_DTYPE, "%s: operand %d is %s, not %s", who,
                           i, lb_dtype_name(a->dtype), lb_dtype_name(want));
    }
    if (!(row->kinds & kind(main->dtype)))
        return lb_fail(cx, LB_E_DTYPE, "%s: defined for %s, not for %s", who,
                       kinds_text(row->kinds), lb_dtype_name(main->dtype));
    c->shape = main->shape;
    c->dtype = row->to_bool ? LB_BOOL : main->dtype;
    if (row != &lb_row_integer_pow || lb_dtype_is_float(c->dtype)) return true;
    const lb_integer_pow_params *p = c->params;
    return p->exponent >= 0 ||
           lb_fail(cx, LB_E_ARG, "%s: negative exponent %d of %s", who,
                   p->exponent, lb_dtype_name(c->dtype));
}

/* Copies of the operands and the result with as few axes as possible. */
typedef struct {
    lb_array v[MAX_IN];
    const lb_array *in[MAX_IN];
    lb_shape shape;
    lb_tiling tiling;
    bool still[MAX_IN]; /* all tiles of that operand have the same elements */
} plan_t;

static void push_axis(plan_t *p, const lb_call *c, int k)
{
    const int64_t dim = c->shape.dim[k];
    const int last = p->shape.rank - 1;
    bool joins = last >= 0;
    int64_t stride[MAX_IN] = {0};
    for (int i = 0; i < c->n_in; i++) {
        stride[i] = c->in[i]->shape.rank ? c->in[i]->stride[k] : 0;
        joins = joins && p->v[i].stride[last] == dim * stride[i];
    }
    const int to = joins ? last : p->shape.rank++;
    p->shape.dim[to] = joins ? p->shape.dim[to] * dim : dim;
    for (int i = 0; i < c->n_in; i++)
        p->v[i].stride[to] = stride[i];
}

static void lay_out(const lb_call *c, plan_t *p)
{
    p->shape = (lb_shape){0};
    for (int i = 0; i < c->n_in; i++) {
        p->v[i] = *c->in[i];
        p->in[i] = &p->v[i];
    }
    for (int k = 0; k < c->shape.rank; k++)
        if (c->shape.dim[k] != 1) push_axis(p, c, k);
    for (int i = 0; i < c->n_in; i++)
        p->v[i].shape = p->shape;
    p->tiling = lb_tiling_for(&p->shape, p->in, c->n_in);
    for (int i = 0; i < c->n_in; i++) {
        p->still[i] = true;
        for (int k = 0; k < p->shape.rank; k++)
            if (p->tiling.count[k] > 1 && p->v[i].stride[k])
                p->still[i] = false;
    }
}

/* Scratch of each operand and of the result. */
static size_t tile_bytes(const plan_t *p)
{
    enum { LINE = 64 };
    return ((size_t)p->tiling.size * 8 + LINE - 1) / LINE * LINE;
}

_Static_assert(sizeof(plan_t) <= LB_PLAN_NOTE, "a plan's note has room");

void lb_row_plan(const lb_call *c, lb_plan *plan)
{
    plan_t *p = plan->note;
    lay_out(c, p);
    plan->per_thread = (size_t)(c->n_in + 1) * tile_bytes(p);
    plan->phases = 1;
    plan->units[0] = lb_ceil_div(p->tiling.tiles, UNIT);
    plan->kernel = "lanes";
}

lb_lanes_fn *lb_row_lanes(const lb_row *row, const lb_cpu *cpu, lb_ctype c)
{
    return c == LB_C_F32 && row->lane ? lb_lanes_f32_for(cpu)->run[row->lane]
                                      : row->run[c];
}

static bool equal_box(const lb_shape *shape, const int64_t *n, const int64_t *m)
{
    for (int k = 0; k < shape->rank; k++)
        if (n[k] != m[k]) return false;
    return true;
}

static int exponent_of(const lb_call *c)
{
    const lb_integer_pow_params *p = c->params;
    return row_of(c) == &lb_row_integer_pow ? p->exponent : 0;
}

void lb_row_eval(const lb_work *w)
{
    const lb_call *c = w->call;
    const lb_row *row = row_of(c);
    const lb_ctype to = lb_ctype_of(c->dtype);
    const lb_dtype last = c->in[c->n_in - 1]->dtype;
    lb_lanes_fn *run = lb_row_lanes(row, c->cpu, lb_ctype_of(last));
    const plan_t *p = w->plan->note;
    lb_array out = *w->out;
    out.shape = p->shape;
    lb_row_major(&out.shape, out.stride);
    lb_lanes l = {.bits = last == LB_BOOL ? 1 : (int)lb_dtype_size(last) * 8,
                  .exponent = exponent_of(c)};
    const size_t size = tile_bytes(p);
    const int64_t first = w->lo * UNIT;
    const int64_t end = lb_min_i64(w->hi * UNIT, p->tiling.tiles);
    int64_t was[LB_MAX_RANK] = {0};
    for (int64_t t = first; t < end; t++) {
        int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK] = {0};
        char *scratch = w->scratch;
        l.n = lb_tiling_box(&p->tiling, t, lo, n);
        const bool same = t > first && equal_box(&p->shape, n, was);
        memcpy(was, n, sizeof was);
        /* The tile of a scalar or row can be reused. */
        for (int i = 0; i < c->n_in; i++, scratch += size)
            if (!p->still[i] || !same)
                l.in[i] = lb_tile_peek(c->cpu, p->in[i], lo, n,
                                       lb_ctype_of(p->v[i].dtype), scratch);
        void *place = lb_tile_place(c->cpu, &out, lo, n, to);
        l.out = place ? place : scratch;
        run(&l);
        if (!place) lb_tile_write(c->cpu, &out, lo, n, to, l.out);
    }
}

/* Operands that f32 lanes take as a single element. */
static unsigned single_operands(const lb_row *row)
{
    if (!row->lane) return 0;
    if (row == &lb_row_select) return 1u << 1 | 1u << 2;
    if (row == &lb_row_clamp) return 1u << 0 | 1u << 2;
    return row->prim.n_in == 2 ? 1u << 0 | 1u << 1 : 0;
}

void lb_row_fuse(const lb_call *c, lb_fusion *to)
{
    const lb_dtype last = c->in[c->n_in - 1]->dtype;
    to->kind = LB_FUSE_LANES;
    to->run = lb_row_lanes(row_of(c), c->cpu, lb_ctype_of(last));
    to->lanes.bits = last == LB_BOOL ? 1 : (int)lb_dtype_size(last) * 8;
    to->lanes.exponent = exponent_of(c);
    if (lb_ctype_of(last) == LB_C_F32) to->ones = single_operands(row_of(c));
}

/* ---- the user function --------------------------------------------------- */

/* As in jax.numpy, a result is weak if no strong operand has its kind: an
 * integer and a weak 2.0 give a weak f32. */
static bool is_weak(const lb_array *a, lb_dtype met)
{
    return a->weak || lb_dtype_is_float(a->dtype) != lb_dtype_is_float(met) ||
           lb_dtype_is_int(a->dtype) != lb_dtype_is_int(met);
}

/* Float functions convert integers to f32; select's first operand does not take
 * part in promotion. */
static bool meet(lb_ctx *cx, const lb_row *row, lb_array **in, bool *weak)
{
    const int n = row->prim.n_in, skip = row == &lb_row_select;
    lb_array *const was[MAX_IN] = {in[0], n > 1 ? in[1] : NULL,
                                   n > 2 ? in[2] : NULL};
    *weak = true;
    if (!lb_meet_dtypes(cx, in + skip, n - skip)) return false;
    for (int i = skip; i < n; i++)
        *weak = *weak && was[i] && in[i] && is_weak(was[i], in[i]->dtype);
    for (int i = 0; i < n && row->kinds == LB_KIND_F; i++) {
        if (!in[i] || lb_dtype_is_float(in[i]->dtype)) continue;
        in[i] = lb_convert(cx, in[i], LB_F32);
        if (!in[i]) return false;
    }
    return lb_meet_shapes(cx, row->prim.name, in, n);
}

lb_array *lb_row_call(lb_ctx *cx, const lb_row *row, lb_array *const *in,
                      const void *params)
{
    if (!cx) return NULL;
    const int n = row->prim.n_in;
    lb_array *a[MAX_IN];
    bool weak;
    for (int i = 0; i < n; i++)
        a[i] = in[i];
    lb_enter(cx);
    lb_array *out =
        meet(cx, row, a, &weak) ? lb_bind(cx, &row->prim, n, a, params) : NULL;
    if (out && weak) out->weak = true;
    return lb_leave_with(cx, out);
}
