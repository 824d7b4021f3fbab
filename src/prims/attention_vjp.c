/* attention_vjp.c - the gradient of attention, by blocks of queries.
 *
 *     s = scale q k^T    c = cap tanh(s / cap)    p = softmax(c + mask)
 *     dv = p^T dy        dp = dy v^T              dc = p (dp - sum(p dp))
 *     dq = scale ds k    dk = scale ds^T q        ds = dc (1 - (c/cap)^2)
 *
 * A program over arrays, so that it has a gradient itself, runs on packed keys
 * and on a mesh. A block has at most BLOCK scores per head and key: memory
 * grows with the number of keys, not with its square.
 */
#include "prims/attention.h"

enum { BLOCK = 64 }; /* queries */

typedef struct backward {
    lb_ctx *cx;
    lb_attend a;
    lb_array *q, *k, *v, *dy; /* (batch, kv heads, group, queries, d) and
                                   * (batch, kv heads, 1, keys, d), in f32 or
                                   * f64 */
    lb_array *valid;          /* (batch or 1, 1, 1, 1, 1) */
    lb_dtype dtype;
} backward;

/* In the order of `backward`. */
static lb_array *arrange(const backward *b, lb_array *x, bool kv)
{
    const lb_attend *a = &b->a;
    const int h = kv ? a->kh : a->qh, t = kv ? a->kt : a->qt;
    if (!x) return NULL;
    const int perm[] = {a->lead ? 0 : h, a->lead ? h : t,
                        a->lead ? t : a->lead + 2, 3};
    const int64_t n = x->shape.dim[t], size = x->shape.dim[a->lead + 2];
    /* Conversion alone would undo the rounding to 16 bits that eval sees. */
    if (x->dtype != b->dtype) x = lb_materialize(b->cx, x);
    x = lb_transpose(b->cx, x, perm);
    x = lb_reshape(b->cx, x,
                   LB_SHAPE(a->batch, a->kv_heads, kv ? 1 : a->group, n, size));
    return lb_as(b->cx, x, b->dtype);
}

/* The inverse, with the shape and dtype of an operand. */
static lb_array *put_back(const backward *b, lb_array *x, bool kv,
                          const lb_array *like)
{
    const lb_attend *a = &b->a;
    const int h = kv ? a->kh : a->qh, t = kv ? a->kt : a->qt;
    if (!x) return NULL;
    lb_shape s = {.rank = a->lead + 3};
    s.dim[0] = a->batch;
    s.dim[a->lead] = like->shape.dim[h];
    s.dim[a->lead + 1] = like->shape.dim[t];
    s.dim[a->lead + 2] = like->shape.dim[a->lead + 2];
    int perm[] = {0, 1, 2, 3};
    perm[h] = a->lead;
    perm[t] = a->lead + 1;
    x = lb_transpose(b->cx, lb_reshape(b->cx, x, s), perm);
    return lb_as(b->cx, x, like->dtype);
}

static lb_array *number(const backward *b, double x)
{
    return lb_full(b->cx, b->dtype, (lb_shape){0}, x);
}

/* x (..., m, d) y^T (..., n, d), and without the transpose (..., n, d). */
static lb_array *times_turned(const backward *b, lb_array *x, lb_array *y)
{
    return lb_matmul(b->cx, x, lb_transpose(b->cx, y, (int[]){0, 1, 2, 4, 3}));
}

/* Queries [from, from + n) of an array. */
static lb_array *some(const backward *b, lb_array *x, int64_t from, int64_t n)
{
    int64_t lo[5] = {0}, hi[5];
    if (!x) return NULL;
    for (int k = 0; k < 5; k++)
        hi[k] = x->shape.dim[k];
    lo[3] = from;
    hi[3] = from + n;
    return lb_slice(b->cx, x, lo, hi, NULL);
}

/* Which keys queries [from, from + n) see: (batch or 1, 1, 1, n, keys). */
static lb_array *mask(const backward *b, int64_t from, int64_t n)
{
    lb_ctx *cx = b->cx;
    const lb_attention_params *p = b->a.params;
    const lb_shape s = LB_SHAPE(1, 1, 1, n, b->a.keys);
    lb_array *key = lb_iota(cx, LB_I64, s, 4);
    lb_array *seen = lb_lt(cx, key, b->valid);
    if (!p->causal) return seen;
    lb_array *first =
        lb_add(cx, b->valid,
               lb_full_int(cx, LB_I64, (lb_shape){0}, from - b->a.queries));
    lb_array *at = lb_add(cx, lb_iota(cx, LB_I64, s, 3), first);
    seen = lb_and(cx, seen, lb_le(cx, key, at));
    if (!p->window) return seen;
    lb_array *w = lb_full_int(cx, LB_I64, (lb_shape){0}, p->window);
    return lb_and(cx, seen, lb_gt(cx, key, lb_sub(cx, at, w)));
}

/* Zeros where a key is not seen: a product with 0 would keep a NaN. */
static lb_array *where_seen(const backward *b, lb_array *seen, lb_array *x)
{
    return lb_select(b->cx, seen, x, number(b, 0));
}

/* The capped scores of a block and their softmax; zeros where nothing is
 * seen. */
static lb_array *weights(const backward *b, lb_array *q, lb_array *seen,
                         lb_array **capped)
{
    lb_ctx *cx = b->cx;
    const double cap = b->a.params->soft_cap;
    lb_array *s =
        lb_mul(cx, times_turned(b, q, b->k), number(b, b->a.params->scale));
    if (cap > 0)
        s = lb_mul(cx, lb_tanh(cx, lb_mul(cx, s, number(b, 1 / cap))),
                   number(b, cap));
    *capped = s;
    const double least = b->dtype == LB_F64 ? -1e300 : -3e38;
    s = lb_softmax(cx, lb_select(cx, seen, s, number(b, least)), -1);
    return where_seen(b, seen, s);
}

/* The gradient of the products q k^T. */
static lb_array *of_scores(const backward *b, lb_array *p, lb_array *capped,
                           lb_array *seen, lb_array *dy)
{
    lb_ctx *cx = b->cx;
    const double cap = b->a.params->soft_cap;
    lb_array *dp = where_seen(b, seen, times_turned(b, dy, b->v));
    /* sum(p dp) is also dy y, but y may have been rounded to 16 bits. */
    lb_array *sum = lb_sum(cx, lb_mul(cx, p, dp), LB_AXES(-1), true);
    lb_array *ds = lb_mul(cx, p, lb_sub(cx, dp, sum));
    if (cap > 0) {
        lb_array *u = lb_mul(cx, capped, number(b, 1 / cap));
        ds = lb_mul(cx, ds, lb_sub(cx, number(b, 1), lb_mul(cx, u, u)));
    }
    return lb_mul(cx, ds, number(b, b->a.params->scale));
}

/* x^T y, added up over the heads that share keys: (batch, kv heads, 1, m, n) */
static lb_array *turned_times(const backward *b, lb_array *x, lb_array *y)
{
    lb_ctx *cx = b->cx;
    x = lb_matmul(cx, lb_transpose(cx, x, (int[]){0, 1, 2, 4, 3}), y);
    return lb_sum(cx, x, LB_AXES(2), true);
}

/* The part of a gradient that queries [from, from + n) have: rows of dq, or a
 * term of dk or dv. */
static lb_array *part(const backward *b, int operand, int64_t from, int64_t n)
{
    lb_array *q = some(b, b->q, from, n), *dy = some(b, b->dy, from, n);
    lb_array *capped, *seen = mask(b, from, n);
    lb_array *p = weights(b, q, seen, &capped);
    if (operand == 2) return turned_times(b, p, dy);
    lb_array *ds = of_scores(b, p, capped, seen, dy);
    return operand ? turned_times(b, ds, q) : lb_matmul(b->cx, ds, b->k);
}

/* Adds up the parts, or joins them in pairs: a list of them would need room. */
static lb_array *all_parts(const backward *b, int operand)
{
    lb_ctx *cx = b->cx;
    lb_array *sum = NULL;
    for (int64_t from = 0; from < b->a.queries; from += BLOCK) {
        const int64_t n = lb_min_i64(BLOCK, b->a.queries - from);
        lb_enter(cx);
        lb_array *own = part(b, operand, from, n), *was = sum;
        if (sum)
            own = operand ? lb_add(cx, sum, own)
                          : lb_concatenate(cx, (lb_array *[]){sum, own}, 2, 3);
        sum = lb_leave_with(cx, own);
        if (was) lb_drop(cx, was);
        if (!sum) return NULL;
    }
    return sum;
}

lb_array *lb_attend_vjp(lb_ctx *cx, const lb_call *c, int operand,
                        lb_array *out, lb_array *dout)
{
    (void)out;
    backward b = {.cx = cx, .a = lb_attend_of(c), .dtype = LB_F32};
    if (!lb_shape_size(&c->in[operand]->shape) || !lb_shape_size(&c->shape) ||
        !b.a.keys)
        return NULL;
    for (int i = 0; i < 3; i++)
        if (c->in[i]->dtype == LB_F64) b.dtype = LB_F64;
    lb_enter(cx);
    b.q = arrange(&b, c->in[0], false);
    b.k = arrange(&b, c->in[1], true);
    b.v = arrange(&b, c->in[2], true);
    b.dy = arrange(&b, dout, false);
    const int64_t batches = c->in[3]->shape.rank ? b.a.batch : 1;
    const lb_dtype d = c->in[3]->dtype;
    b.valid = c->in[3]; /* at most keys; a u64 may exceed an i64 */
    if (d == LB_U64)
        b.valid =
            lb_min(cx, b.valid, lb_full_int(cx, d, (lb_shape){0}, b.a.keys));
    b.valid = lb_as(cx, b.valid, LB_I64);
    b.valid = lb_clamp(cx, lb_full_int(cx, LB_I64, (lb_shape){0}, 0), b.valid,
                       lb_full_int(cx, LB_I64, (lb_shape){0}, b.a.keys));
    b.valid = lb_reshape(cx, b.valid, LB_SHAPE(batches, 1, 1, 1, 1));
    if (operand == 0) { /* dq = ds k: what is behind the valid keys is not 0 */
        lb_array *at = lb_iota(cx, LB_I64, LB_SHAPE(1, 1, 1, b.a.keys, 1), 3);
        b.k = where_seen(&b, lb_lt(cx, at, b.valid), b.k);
    }
    lb_array *g = b.valid && b.dy ? all_parts(&b, operand) : NULL;
    return lb_leave_with(cx, put_back(&b, g, operand > 0, c->in[operand]));
}
