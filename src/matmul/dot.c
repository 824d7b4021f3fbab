/* dot.c - dot_general: the sum of products over any axes, batched over others.
 *
 * Each operand becomes a batch of matrices by naming its axes (matrix.h):
 *
 *   lhs (batch.., free.., contract..)   rhs (batch.., free.., contract..)
 *   out (batch.., free of lhs.., free of rhs..)
 *
 * and the product of matrices (product.h) does the rest. Nothing is copied or
 * transposed first. Sums run over the contracted axes in row-major order of
 * the lists that name them.
 */
#include <stddef.h>

#include "core/core.h"
#include "matmul/product.h"
#include "prims/cuts.h"

/* ---- what is computed --------------------------------------------------- */

typedef struct {
    lb_matrix a, b;
    lb_product product;
    _Alignas(max_align_t) char grid[LB_GRID];
} dot;
_Static_assert(sizeof(dot) <= LB_PLAN_NOTE, "a plan keeps it");

static int64_t add_axes(lb_dims *d, const lb_array *a, const lb_axes *list)
{
    int64_t n = 1;
    for (int i = 0; i < list->n; i++) {
        const int k = list->axis[i];
        n *= a->shape.dim[k];
        lb_dims_add(d, a->shape.dim[k], a->stride[k]);
    }
    lb_dims_end(d);
    return n;
}

static lb_axes free_axes(const lb_array *a, const lb_axes *batch,
                         const lb_axes *contract)
{
    lb_axes r = {0};
    unsigned used = 0;
    for (int i = 0; i < batch->n; i++)
        used |= 1u << batch->axis[i];
    for (int i = 0; i < contract->n; i++)
        used |= 1u << contract->axis[i];
    for (int k = 0; k < a->shape.rank; k++)
        if (!(used >> k & 1)) r.axis[r.n++] = k;
    return r;
}

/* Returns the rows. */
static int64_t make_matrix(lb_matrix *m, lb_ctype type, const lb_array *a,
                           const lb_axes *batch, const lb_axes *contract)
{
    const lb_axes rows = free_axes(a, batch, contract);
    m->source.type = type;
    m->a = a;
    m->batch.n = m->row.n = m->depth.n = 0;
    add_axes(&m->batch, a, batch);
    add_axes(&m->depth, a, contract);
    const int64_t n = add_axes(&m->row, a, &rows);
    lb_matrix_end(m);
    return n;
}

static int64_t size_of(const lb_array *a, const lb_axes *list)
{
    int64_t n = 1;
    for (int i = 0; i < list->n; i++)
        n *= a->shape.dim[list->axis[i]];
    return n;
}

static void put(const lb_product *p, const lb_work *w, int64_t batch, int64_t i,
                int64_t m, int64_t j, int64_t n, const void *tile)
{
    lb_array out = *w->out;
    out.shape = (lb_shape){3, {p->batch, p->m, p->n}};
    lb_row_major(&out.shape, out.stride);
    lb_tile_write(w->call->cpu, &out, (int64_t[]){batch, i, j},
                  (int64_t[]){1, m, n}, lb_product_tile(w->call), tile);
}

/* d holds pointers into itself: it stays where it is. */
static void prepare(const lb_call *c, dot *d)
{
    const lb_dot_dims *p = c->params;
    const lb_array *x = c->in[0], *y = c->in[1];
    const lb_ctype type = lb_product_type(c);
    d->product = (lb_product){
        .a = &d->a.source,
        .b = &d->b.source,
        .batch = size_of(x, &p->lhs_batch),
        .m = make_matrix(&d->a, type, x, &p->lhs_batch, &p->lhs_contract),
        .n = make_matrix(&d->b, type, y, &p->rhs_batch, &p->rhs_contract),
        .k = size_of(x, &p->lhs_contract),
        .in_place = lb_product_direct(c),
        .put = put,
        .precision = lb_product_precision(c, p->precision),
        .grid = d->grid,
    };
}

static void plan(const lb_call *c, lb_plan *plan)
{
    dot *const d = plan->note;
    prepare(c, d);
    lb_product_plan(&d->product, c, plan);
}

static void eval(const lb_work *w)
{
    lb_product_run(&((const dot *)w->plan->note)->product, w);
}

/* ---- checks ------------------------------------------------------------- */

static bool check_axes(lb_ctx *cx, const char *side, const lb_array *a,
                       const lb_axes *batch, const lb_axes *contract)
{
    const bool lhs = side[0] == 'l';
    const char *batched = lhs ? "batch axes of lhs" : "batch axes of rhs";
    const char *summed =
        lhs ? "contracted axes of lhs" : "contracted axes of rhs";
    if (!lb_axes_check(cx, "dot_general", batched, batch, a->shape.rank) ||
        !lb_axes_check(cx, "dot_general", summed, contract, a->shape.rank))
        return false;
    for (int i = 0; i < contract->n; i++)
        if (lb_axes_has(batch, contract->axis[i]))
            return lb_fail(cx, LB_E_AXIS,
                           "dot_general: axis %d of %s is both batched and "
                           "contracted",
                           contract->axis[i], side);
    return true;
}

/* Axes that pair up have equal sizes. */
static bool check_pairs(lb_ctx *cx, const char *what, const lb_array *x,
                        const lb_axes *xs, const lb_array *y, const lb_axes *ys)
{
    if (xs->n != ys->n)
        return lb_fail(cx, LB_E_AXIS,
                       "dot_general: %d %s axes of lhs, but %d of rhs", xs->n,
                       what, ys->n);
    for (int i = 0; i < xs->n; i++) {
        const int64_t m = x->shape.dim[xs->axis[i]];
        const int64_t n = y->shape.dim[ys->axis[i]];
        if (m != n)
            return lb_fail(cx, LB_E_SHAPE,
                           "dot_general: %s axis %d of lhs %s has size %lld, "
                           "but axis %d of rhs %s has %lld",
                           what, xs->axis[i], LB_SHOW(&x->shape), (long long)m,
                           ys->axis[i], LB_SHOW(&y->shape), (long long)n);
    }
    return true;
}

static void append(lb_shape *s, const lb_array *a, const lb_axes *list)
{
    for (int i = 0; i < list->n; i++, s->rank++)
        if (s->rank < LB_MAX_RANK)
            s->dim[s->rank] = a->shape.dim[list->axis[i]];
}

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_dot_dims *p = c->params;
    const lb_array *x = c->in[0], *y = c->in[1];
    if (!check_axes(cx, "lhs", x, &p->lhs_batch, &p->lhs_contract) ||
        !check_axes(cx, "rhs", y, &p->rhs_batch, &p->rhs_contract) ||
        !check_pairs(cx, "batch", x, &p->lhs_batch, y, &p->rhs_batch) ||
        !check_pairs(cx, "contracted", x, &p->lhs_contract, y,
                     &p->rhs_contract) ||
        !lb_product_dtype(cx, "dot_general", x->dtype, y->dtype, p->preferred,
                          p->precision, &c->dtype))
        return false;
    const lb_axes xf = free_axes(x, &p->lhs_batch, &p->lhs_contract);
    const lb_axes yf = free_axes(y, &p->rhs_batch, &p->rhs_contract);
    c->shape.rank = 0;
    append(&c->shape, x, &p->lhs_batch);
    append(&c->shape, x, &xf);
    append(&c->shape, y, &yf);
    if (c->shape.rank > LB_MAX_RANK)
        return lb_fail(cx, LB_E_SHAPE,
                       "dot_general: the result of %s and %s has rank %d, more "
                       "than %d",
                       LB_SHOW(&x->shape), LB_SHOW(&y->shape), c->shape.rank,
                       LB_MAX_RANK);
    return lb_shape_check(cx, "dot_general", &c->shape);
}

/* ---- gradients ----------------------------------------------------------- */

/* The axes of list in the order of the axes that pair up with them. */
static lb_axes in_order_of(const lb_axes *list, const lb_axes *with)
{
    lb_axes r = {0};
    for (int axis = 0; axis < LB_MAX_RANK; axis++)
        for (int i = 0; i < with->n; i++)
            if (with->axis[i] == axis) r.axis[r.n++] = list->axis[i];
    return r;
}

static void list_axes(int *to, int *n, const lb_axes *list)
{
    for (int i = 0; i < list->n; i++)
        to[(*n)++] = list->axis[i];
}

/* A product of dout and the other operand, over the other's free axes: a packed
 * one is read as it lies. The order of the two is chosen so that the result
 * need not be transposed, if it can be. */
static lb_array *vjp(lb_ctx *cx, const lb_call *c, int operand, lb_array *out,
                     lb_array *dout)
{
    const lb_dot_dims *p = c->params;
    const bool left = operand == 0;
    lb_array *mine = c->in[operand], *other = c->in[!operand];
    const lb_axes *my_batch = left ? &p->lhs_batch : &p->rhs_batch;
    const lb_axes *my_sum = left ? &p->lhs_contract : &p->rhs_contract;
    const lb_axes *its_batch = left ? &p->rhs_batch : &p->lhs_batch;
    const lb_axes *its_sum = left ? &p->rhs_contract : &p->lhs_contract;
    const lb_axes my_free = free_axes(mine, my_batch, my_sum);
    const lb_axes its_free = free_axes(other, its_batch, its_sum);
    const lb_axes sum = in_order_of(my_sum, its_sum);
    const int rank = mine->shape.rank;
    (void)out;
    lb_axes batch = {.n = my_batch->n}, over = {.n = its_free.n};
    for (int i = 0; i < batch.n; i++)
        batch.axis[i] = i;
    for (int i = 0; i < over.n; i++)
        over.axis[i] = batch.n + (left ? my_free.n : 0) + i;
    /* Which of my axes each axis of the result is. */
    int first[LB_MAX_RANK] = {0}, last[LB_MAX_RANK] = {0}, n = 0, m = 0;
    list_axes(first, &n, my_batch);
    list_axes(first, &n, &my_free);
    list_axes(first, &n, &sum);
    list_axes(last, &m, my_batch);
    list_axes(last, &m, &sum);
    list_axes(last, &m, &my_free);
    bool turned = true; /* other times dout is in place */
    for (int k = 0; k < rank; k++)
        turned = turned && last[k] == k;
    const lb_dot_dims d = {
        .lhs_contract = turned ? its_free : over,
        .rhs_contract = turned ? over : its_free,
        .lhs_batch = turned ? *its_batch : batch,
        .rhs_batch = turned ? batch : *its_batch,
        .preferred = mine->dtype,
        .precision = p->precision,
    };
    int perm[LB_MAX_RANK] = {0};
    for (int k = 0; k < rank; k++)
        perm[turned ? last[k] : first[k]] = k;
    lb_array *in[2] = {turned ? other : dout, turned ? dout : other};
    lb_enter(cx);
    lb_array *r = lb_bind(cx, c->prim, 2, in, &d);
    for (int k = 0; r && k < rank; k++)
        if (perm[k] != k) return lb_leave_with(cx, lb_transpose(cx, r, perm));
    return lb_leave_with(cx, r);
}

/* ---- among ranks -------------------------------------------------------- */

/* Partial sums of 16-bit floats stay f32 until all are added up. */
static lb_array *share(lb_ctx *cx, const lb_share *p)
{
    const lb_call *c = p->whole;
    lb_dot_dims d = *(const lb_dot_dims *)c->params;
    if (p->partial && lb_is_16_bits(c->dtype)) d.preferred = LB_F32;
    return lb_bind(cx, c->prim, 2, p->in, &d);
}

/* By columns or rows of the result and along the batch nothing is exchanged;
 * what is cut along the sum is added up. */
static bool shard(const lb_call *c, lb_cuts *to)
{
    const lb_dot_dims *p = c->params;
    const lb_axes xf = free_axes(c->in[0], &p->lhs_batch, &p->lhs_contract);
    const lb_axes yf = free_axes(c->in[1], &p->rhs_batch, &p->rhs_contract);
    int label = 1, at = 0;
    for (int i = 0; i < p->lhs_batch.n; i++, label++, at++) {
        lb_cuts_pair(to, label, 0, p->lhs_batch.axis[i], at);
        lb_cuts_pair(to, label, 1, p->rhs_batch.axis[i], at);
    }
    for (int i = 0; i < xf.n; i++)
        lb_cuts_pair(to, label++, 0, xf.axis[i], at++);
    for (int i = 0; i < yf.n; i++)
        lb_cuts_pair(to, label++, 1, yf.axis[i], at++);
    for (int i = 0; i < p->lhs_contract.n; i++, label++) {
        lb_cuts_pair(to, label, 0, p->lhs_contract.axis[i], -1);
        lb_cuts_pair(to, label, 1, p->rhs_contract.axis[i], -1);
    }
    to->run = share;
    return true;
}

static int64_t operations(const lb_call *c)
{
    const lb_dot_dims *d = c->params;
    int64_t n = 2 * lb_shape_size(&c->shape);
    for (int i = 0; i < d->lhs_contract.n; i++)
        n *= c->in[0]->shape.dim[d->lhs_contract.axis[i]];
    return n;
}

const lb_prim lb_prim_dot_general = {
    .struct_size = sizeof(lb_prim),
    .name = "dot_general",
    .params_size = sizeof(lb_dot_dims),
    .n_in = 2,
    .infer = infer,
    .plan = plan,
    .eval = eval,
    .vjp = vjp,
    .shard = shard,
    .operations = operations,
};

/* ---- the function ------------------------------------------------------- */

lb_array *lb_dot_general(lb_ctx *cx, lb_array *lhs, lb_array *rhs,
                         const lb_dot_dims *dims)
{
    lb_array *in[2] = {lhs, rhs};
    if (!cx || !lhs || !rhs || !dims)
        return lb_bind(cx, &lb_prim_dot_general, 2, in, dims);
    lb_dot_dims d = *dims;
    const int m = lhs->shape.rank, n = rhs->shape.rank;
    if (!lb_axes_fix(cx, "dot_general", &dims->lhs_batch, m, &d.lhs_batch) ||
        !lb_axes_fix(cx, "dot_general", &dims->rhs_batch, n, &d.rhs_batch) ||
        !lb_axes_fix(cx, "dot_general", &dims->lhs_contract, m,
                     &d.lhs_contract) ||
        !lb_axes_fix(cx, "dot_general", &dims->rhs_contract, n,
                     &d.rhs_contract))
        return NULL;
    if (lb_product_meets(in))
        return lb_bind(cx, &lb_prim_dot_general, 2, in, &d);
    lb_enter(cx);
    lb_array *out = lb_meet_dtypes(cx, in, 2)
                        ? lb_bind(cx, &lb_prim_dot_general, 2, in, &d)
                        : NULL;
    return lb_leave_with(cx, out);
}
