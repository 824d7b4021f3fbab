/* attention.c - attention: softmax(scale q k^T + mask) v, without the matrix of
 * scores.
 *
 *     operands   q, k, v, valid: a number of keys, for all batches or for each
 *     eval       blocks of keys, one after the other, with a running maximum
 *                and sum per query (attention_f32.c)
 *     vjp        the scores again, for some queries at a time, as a program
 *                over arrays (attention_vjp.c)
 */
#include "prims/attention.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "prims/cuts.h"

lb_attend lb_attend_of(const lb_call *c)
{
    const lb_attention_params *p = c->params;
    const lb_shape *q = &c->in[0]->shape, *k = &c->in[1]->shape;
    const int lead = q->rank - 3;
    lb_attend a = {.params = p, .lead = lead, .batch = lead ? q->dim[0] : 1};
    a.qh = lead + p->q_positions_first;
    a.qt = lead + !p->q_positions_first;
    a.kh = lead + p->kv_positions_first;
    a.kt = lead + !p->kv_positions_first;
    a.heads = q->dim[a.qh];
    a.queries = q->dim[a.qt];
    a.kv_heads = k->dim[a.kh];
    a.keys = k->dim[a.kt];
    a.group = a.kv_heads ? a.heads / a.kv_heads : 0;
    a.d = q->dim[lead + 2];
    a.dv = c->in[2]->shape.dim[lead + 2];
    return a;
}

int64_t lb_attend_valid(const lb_call *c, const lb_attend *a, int64_t batch)
{
    const lb_array *v = c->in[3];
    const int64_t i = v->shape.rank ? batch : 0;
    if (lb_dtype_is_unsigned(v->dtype)) {
        uint64_t u = 0;
        lb_tile_read_flat(c->cpu, v, i, 1, LB_C_U64, &u);
        return u < (uint64_t)a->keys ? (int64_t)u : a->keys;
    }
    int64_t n = 0;
    lb_tile_read_flat(c->cpu, v, i, 1, LB_C_I64, &n);
    return lb_max_i64(lb_min_i64(n, a->keys), 0);
}

void lb_attend_seen(const lb_attend *a, int64_t valid, int64_t query,
                    int64_t *lo, int64_t *hi)
{
    const int64_t at = valid - a->queries + query;
    const int64_t window = a->params->window;
    *hi = a->params->causal ? lb_min_i64(valid, at + 1) : valid;
    *lo = window && at + 1 > window ? at + 1 - window : 0;
}

void lb_attend_box(const lb_attend *a, bool kv, int64_t batch, int64_t head,
                   int64_t first, int64_t n, int64_t size, int64_t *lo,
                   int64_t *count)
{
    const int h = kv ? a->kh : a->qh, t = kv ? a->kt : a->qt;
    lo[0] = batch;
    count[0] = 1;
    lo[h] = head;
    count[h] = 1;
    lo[t] = first;
    count[t] = n;
    lo[a->lead + 2] = 0;
    count[a->lead + 2] = size;
}

/* ---- infer --------------------------------------------------------------- */

static bool is_wide(const lb_call *c)
{
    for (int i = 0; i < 3; i++)
        if (c->in[i]->dtype == LB_F64) return true;
    return false;
}

/* x, which scores are multiplied with or divided by, is 0 or a normal number of
 * the type of the scores. */
static bool check_factor(lb_ctx *cx, const lb_call *c, const char *name,
                         double x)
{
    const double least = is_wide(c) ? DBL_MIN : FLT_MIN;
    const double most = is_wide(c) ? DBL_MAX : FLT_MAX;
    if (x == 0 || (fabs(x) >= least && fabs(x) <= most)) return true;
    return lb_fail(cx, LB_E_ARG,
                   "attention: %s is %g, but scores are %s: it must be 0 or "
                   "have an absolute value from %.3g to %.3g",
                   name, x, is_wide(c) ? "f64" : "f32", least, most);
}

static bool check_params(lb_ctx *cx, const lb_call *c)
{
    const lb_attention_params *p = c->params;
    if (p->window < 0 || (p->window && !p->causal))
        return lb_fail(cx, LB_E_ARG, "attention: window is %lld%s",
                       (long long)p->window,
                       p->window < 0 ? "" : ", but the mask is not causal");
    if (p->soft_cap < 0)
        return lb_fail(cx, LB_E_ARG, "attention: soft_cap is %g, negative",
                       p->soft_cap);
    return check_factor(cx, c, "scale", p->scale) &&
           check_factor(cx, c, "soft_cap", p->soft_cap);
}

static bool check_dtypes(lb_ctx *cx, const lb_call *c)
{
    static const char *const name[] = {"q", "k", "v"};
    for (int i = 0; i < 3; i++)
        if (!lb_dtype_is_float(c->in[i]->dtype))
            return lb_fail(cx, LB_E_DTYPE, "attention: %s is %s, not a float",
                           name[i], lb_dtype_name(c->in[i]->dtype));
    return lb_dtype_is_int(c->in[3]->dtype) ||
           lb_fail(cx, LB_E_DTYPE,
                   "attention: the number of valid keys is %s, not an integer",
                   lb_dtype_name(c->in[3]->dtype));
}

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_shape *q = &c->in[0]->shape, *k = &c->in[1]->shape;
    const lb_shape *v = &c->in[2]->shape, *n = &c->in[3]->shape;
    if (!check_dtypes(cx, c) || !check_params(cx, c)) return false;
    if (q->rank < 3 || q->rank > 4 || k->rank != q->rank || v->rank != q->rank)
        return lb_fail(cx, LB_E_SHAPE,
                       "attention: q, k and v have shapes %s, %s and %s: each "
                       "must have 3 axes, or 4 with batches",
                       LB_SHOW(q), LB_SHOW(k), LB_SHOW(v));
    const lb_attend a = lb_attend_of(c);
    const int last = a.lead + 2;
    bool same = q->dim[last] == k->dim[last];
    for (int i = 0; i < last; i++)
        same = same && k->dim[i] == v->dim[i];
    if (!same || (a.lead && k->dim[0] != q->dim[0]))
        return lb_fail(cx, LB_E_SHAPE,
                       "attention: q %s, k %s and v %s do not fit together",
                       LB_SHOW(q), LB_SHOW(k), LB_SHOW(v));
    if (a.kv_heads ? a.heads % a.kv_heads : a.heads)
        return lb_fail(cx, LB_E_SHAPE,
                       "attention: %lld heads of q are no multiple of %lld "
                       "heads of k",
                       (long long)a.heads, (long long)a.kv_heads);
    if (n->rank > 1 || (n->rank && (!a.lead || n->dim[0] != a.batch)))
        return lb_fail(cx, LB_E_SHAPE,
                       "attention: the number of valid keys has shape %s, but "
                       "must be a scalar or one per batch of q %s",
                       LB_SHOW(n), LB_SHOW(q));
    c->dtype = c->in[0]->dtype;
    c->shape = *q;
    c->shape.dim[last] = a.dv;
    return true;
}

/* ---- the primitive ------------------------------------------------------- */

static void plan(const lb_call *c, lb_plan *p)
{
    if (is_wide(c))
        lb_attend_plan_f64(c, p);
    else
        lb_attend_plan_f32(c, p);
}

static void eval(const lb_work *w)
{
    if (is_wide(w->call))
        lb_attend_eval_f64(w);
    else
        lb_attend_eval_f32(w);
}

/* Batches, and heads if each has keys of its own. */
static bool shard(const lb_call *c, lb_cuts *to)
{
    const lb_attend a = lb_attend_of(c);
    for (int i = 0; i < 3; i++) {
        if (a.lead) to->in[i][0] = 1;
        if (a.group == 1) to->in[i][i ? a.kh : a.qh] = 2;
    }
    if (a.lead) to->out[0] = 1;
    if (a.group == 1) to->out[a.qh] = 2;
    if (c->in[3]->shape.rank) to->in[3][0] = 1;
    return true;
}

static int64_t operations(const lb_call *c)
{
    const lb_attend a = lb_attend_of(c);
    return 2 * a.batch * a.heads * a.queries * a.keys * (a.d + a.dv);
}

const lb_prim lb_prim_attention = {
    .struct_size = sizeof(lb_prim),
    .name = "attention",
    .params_size = sizeof(lb_attention_params),
    .params_exact = offsetof(lb_attention_params, kv_positions_first) + 1,
    .n_in = 4,
    .infer = infer,
    .plan = plan,
    .eval = eval,
    .vjp = lb_attend_vjp,
    .shard = shard,
    .operations = operations,
};

/* ---- lb_attention -------------------------------------------------------- */

static bool read_options(lb_ctx *cx, const lb_attention_options *options,
                         lb_attention_options *o)
{
    *o = (lb_attention_options){0};
    if (!options) return true;
    const size_t size =
        options->struct_size ? options->struct_size : sizeof *options;
    if (size < offsetof(lb_attention_options, valid))
        return lb_fail(cx, LB_E_ARG, "attention: options.struct_size is %zu",
                       size);
    memcpy(o, options, size < sizeof *o ? size : sizeof *o);
    return true;
}

lb_array *lb_attention(lb_ctx *cx, lb_array *q, lb_array *k, lb_array *v,
                       const lb_attention_options *options)
{
    lb_attention_options o;
    if (!cx || !read_options(cx, options, &o)) return NULL;
    const int64_t d = lb_dim(q, -1);
    const lb_attention_params p = {
        .scale = o.scale != 0 ? o.scale
                 : d > 0      ? 1 / sqrt((double)d)
                              : 1,
        .soft_cap = o.soft_cap,
        .window = o.window,
        .causal = o.causal,
        .q_positions_first = o.q_positions_first,
        .kv_positions_first = o.kv_positions_first,
    };
    lb_array *valid = o.valid;
    lb_enter(cx);
    if (!valid) valid = lb_scalar_int(cx, INT64_MAX);
    return lb_leave_with(cx, lb_bind(cx, &lb_prim_attention, 4,
                                     (lb_array *[]){q, k, v, valid}, &p));
}
