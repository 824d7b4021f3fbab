/* low_rank.c - W = base + A B: a matrix and a correction of rank R.
 *
 *     base (M,N)     an entry per element; any format, stays packed
 *     a    (M,1,R)   an entry of size R per row
 *     b    (1,N,R)   an entry of size R per column
 *
 *     w[i][j] = base[i][j] + sum of a[i][k] b[j][k], in f64, k upward
 *
 * Products with W are x base + (x A) B in f32; W is never decoded. Compared
 * with products of the decoded W, the error is about K + R roundings of 2^-24
 * relative to |x| (|base| + |A| |B|).
 */
#include "low_rank.h"

enum { BASE, A, B };

/* ---- reading ------------------------------------------------------------- */

static void low_rank_decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                            int64_t n, void *out)
{
    enum { PIECE = 64 }; /* chunks of R, so that any R fits on the stack */
    double sum[LB_RUN];
    float *w = out, a[PIECE], b[PIECE];
    const int64_t r = s->part[A].own;
    lb_tile_read_flat(cpu, s->part[BASE].a, lb_part_entry(s, BASE, first), n,
                      LB_C_F32, w);
    for (int64_t i = 0; i < n; i++)
        sum[i] = (double)w[i];
    for (int64_t k = 0; k < r; k += PIECE) {
        const int64_t m = r - k < PIECE ? r - k : PIECE;
        int64_t a_at = -1, b_at = -1; /* entries that were read */
        for (int64_t i = 0; i < n; i++) {
            /* Ask the table for the entry: axes may have been merged, and
             * (M,1) may have become (M). */
            const int64_t a_to = lb_part_entry(s, A, first + i) + k;
            const int64_t b_to = lb_part_entry(s, B, first + i) + k;
            if (a_to != a_at)
                lb_tile_read_flat(cpu, s->part[A].a, a_to, m, LB_C_F32, a);
            if (b_to != b_at)
                lb_tile_read_flat(cpu, s->part[B].a, b_to, m, LB_C_F32, b);
            a_at = a_to;
            b_at = b_to;
            for (int64_t j = 0; j < m; j++)
                sum[i] += (double)a[j] * (double)b[j];
        }
    }
    for (int64_t i = 0; i < n; i++)
        w[i] = (float)sum[i];
}

/* ---- products ------------------------------------------------------------ */

/* True if w is its whole store, plain or transposed, with a and b as above.
 * Moving blocks may have changed their shapes. */
static bool is_matrix(const lb_array *w, bool *transposed)
{
    const lb_store *s = w->store;
    const lb_array *a = s->part[A].a, *b = s->part[B].a;
    const int64_t *dim = s->shape.dim, stride[] = {dim[1], 1};
    if (w->shape.rank != 2 || s->shape.rank != 2 || lb_dim(a, 0) != dim[0] ||
        lb_dim(a, 1) != 1 || lb_dim(b, 0) != 1 || lb_dim(b, 1) != dim[1])
        return false;
    for (int turn = 0; turn < 2; turn++) {
        bool same = true;
        for (int k = 0; k < 2; k++) /* an axis of size 1 has any stride */
            same = same && w->shape.dim[k] == dim[k ^ turn] &&
                   (w->shape.dim[k] == 1 || w->stride[k] == stride[k ^ turn]);
        *transposed = turn;
        if (same) return true;
    }
    return false;
}

static bool is_small_float(lb_dtype dtype)
{
    return lb_ctype_of(dtype) == LB_C_F32;
}

/* w times x, or x times w, contracted over one axis of each. */
static lb_array *product(lb_ctx *cx, const lb_call *c, int operand, lb_array *w,
                         int w_axis, lb_array *x, int x_axis)
{
    const lb_dot_dims *asked = c->params;
    const lb_axes w_axes = {1, {w_axis}}, x_axes = {1, {x_axis}};
    const lb_dot_dims d = {
        .lhs_contract = operand ? x_axes : w_axes,
        .rhs_contract = operand ? w_axes : x_axes,
        .preferred = LB_F32,
        .precision = asked->precision,
    };
    return operand ? lb_dot_general(cx, x, w, &d)
                   : lb_dot_general(cx, w, x, &d);
}

static lb_verdict low_rank_dot(lb_ctx *cx, const lb_call *c, int operand,
                               lb_array **out)
{
    const lb_dot_dims *d = c->params;
    const lb_array *w = c->in[operand];
    lb_array *x = c->in[1 - operand];
    const lb_axes *w_axes = operand ? &d->rhs_contract : &d->lhs_contract;
    const lb_axes *x_axes = operand ? &d->lhs_contract : &d->rhs_contract;
    bool transposed;
    /* A 16-bit dtype would round every w[i][j], which needs W itself. */
    if (w->dtype != LB_F32 || !is_small_float(x->dtype) ||
        !is_small_float(c->dtype) || d->lhs_batch.n || w_axes->n != 1 ||
        !is_matrix(w, &transposed))
        return LB_DECLINED;
    const lb_part *p = w->store->part;
    lb_array *base = transposed ? lb_transpose(cx, p[BASE].a, NULL) : p[BASE].a;
    lb_array *a = lb_squeeze(cx, p[A].a, LB_AXES(1)); /* (M,R) */
    lb_array *b = lb_squeeze(cx, p[B].a, LB_AXES(0)); /* (N,R) */
    const bool over_m = w_axes->axis[0] == (transposed ? 1 : 0);
    const int x_axis = x_axes->axis[0];
    /* (..,R) for a right operand, (R,..) for a left one. */
    lb_array *xa = product(cx, c, operand, over_m ? a : b, 0, x, x_axis);
    lb_array *xab = product(cx, c, operand, over_m ? b : a, 1, xa,
                            operand ? lb_rank(xa) - 1 : 0);
    lb_array *y = lb_add(
        cx, product(cx, c, operand, base, w_axes->axis[0], x, x_axis), xab);
    /* inf (base + A B) is not inf base + inf A B: decode W instead. */
    const bool *finite = lb_data(lb_reduce_and(cx, lb_is_finite(cx, y), NULL));
    if (!finite) return LB_FAILED;
    if (!*finite) return LB_DECLINED;
    *out = lb_convert(cx, y, c->dtype);
    return *out ? LB_DONE : LB_FAILED;
}

static const lb_rule low_rank_rules[] = {
    {"dot_general", low_rank_dot},
    {NULL, NULL},
};

/* ---- the format ---------------------------------------------------------- */

const lb_format low_rank_format = {
    .struct_size = sizeof(lb_format),
    .name = "low_rank",
    .part = {{.name = "base", .firm = true}, {.name = "a"}, {.name = "b"}},
    .relabel = true,
    .decode = low_rank_decode,
    .rules = low_rank_rules,
};

/* ---- making one ---------------------------------------------------------- */

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_array *base = c->in[BASE], *a = c->in[A], *b = c->in[B];
    if (lb_rank(base) != 2 || lb_rank(a) != 2 || lb_rank(b) != 2 ||
        lb_dim(a, 0) != lb_dim(base, 0) || lb_dim(b, 1) != lb_dim(base, 1) ||
        lb_dim(a, 1) != lb_dim(b, 0) || lb_dim(a, 1) < 1)
        return lb_fail(
            cx, LB_E_SHAPE,
            "low_rank: shapes %s + %s %s are not (M,N) + (M,R) (R,N), "
            "R >= 1",
            LB_SHOW(&base->shape), LB_SHOW(&a->shape), LB_SHOW(&b->shape));
    if (!is_small_float(base->dtype) || !is_small_float(a->dtype) ||
        !is_small_float(b->dtype))
        return lb_fail(cx, LB_E_DTYPE,
                       "low_rank: dtypes %s, %s, %s must be f32, f16 or bf16",
                       lb_dtype_name(base->dtype), lb_dtype_name(a->dtype),
                       lb_dtype_name(b->dtype));
    c->shape = base->shape;
    c->dtype = base->dtype;
    return true;
}

static lb_verdict make(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    lb_array *base = c->in[BASE], *a = c->in[A], *b = c->in[B];
    const lb_part table[LB_MAX_PARTS] = {
        [BASE] = {.g = {1, 1}, .a = base},
        [A] = {.g = {1, 0}, .own = lb_dim(a, 1), .a = lb_expand(cx, a, 1)},
        [B] = {.g = {0, 1},
               .own = lb_dim(b, 0),
               .a = lb_expand(cx, lb_transpose(cx, b, NULL), 0)},
    };
    if (!table[A].a || !table[B].a) return LB_FAILED;
    *out = lb_make(cx, &low_rank_format, c->dtype, 0, &c->shape, table);
    return *out ? LB_DONE : LB_FAILED;
}

/* Gradients of base: dW; of A: dW B^T; of B: A^T dW. */
static lb_array *vjp(lb_ctx *cx, const lb_call *c, int operand, lb_array *out,
                     lb_array *dout)
{
    lb_array *d = dout;
    (void)out;
    lb_enter(cx);
    if (operand == A) d = lb_matmul(cx, dout, lb_transpose(cx, c->in[B], NULL));
    if (operand == B) d = lb_matmul(cx, lb_transpose(cx, c->in[A], NULL), dout);
    if (d && d->dtype != c->in[operand]->dtype)
        d = lb_convert(cx, d, c->in[operand]->dtype);
    lb_keep(cx, d);
    lb_leave(cx);
    return d;
}

/* The constructor is a primitive, so that a tape records its operands. */
static const lb_prim low_rank_prim = {
    .struct_size = sizeof(lb_prim),
    .name = "low_rank",
    .n_in = 3,
    .infer = infer,
    .move = make,
    .vjp = vjp,
};

lb_array *low_rank_make(lb_ctx *cx, lb_array *base, lb_array *a, lb_array *b)
{
    lb_array *in[] = {[BASE] = base, [A] = a, [B] = b};
    if (cx && (!base || !a || !b))
        lb_fail(cx, LB_E_NULL, "low_rank: %s is NULL",
                !base ? "base"
                : !a  ? "a"
                      : "b");
    return lb_bind(cx, &low_rank_prim, 3, in, NULL);
}
