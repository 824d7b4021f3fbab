/* matmul.c - numpy's matmul on top of dot_general.
 *
 *   (..., M, K) x (..., K, N) -> (..., M, N), batch axes broadcast
 *   a vector (K) on the left has no M, on the right no N
 *
 * If rhs has no batch axes, those of lhs are merged with M: one large product.
 * Otherwise both are broadcast, which copies nothing.
 */
#include "core/core.h"

/* The batch axes that both broadcast to; false if they do not broadcast. */
static bool meet_batches(const lb_shape *a, const lb_shape *b, lb_shape *out)
{
    const int na = a->rank - 2, nb = b->rank - 2;
    out->rank = na > nb ? na : nb;
    for (int k = 0; k < out->rank; k++) {
        const int i = k - out->rank + na, j = k - out->rank + nb;
        const int64_t m = i < 0 ? 1 : a->dim[i], n = j < 0 ? 1 : b->dim[j];
        if (m != n && m != 1 && n != 1) return false;
        out->dim[k] = m == 1 ? n : m;
    }
    return true;
}

static lb_array *spread(lb_ctx *cx, lb_array *a, lb_shape batch)
{
    const int rank = a->shape.rank;
    batch.dim[batch.rank++] = a->shape.dim[rank - 2];
    batch.dim[batch.rank++] = a->shape.dim[rank - 1];
    return lb_shape_equal(&a->shape, &batch) ? a
                                             : lb_broadcast_to(cx, a, batch);
}

static lb_array *batched(lb_ctx *cx, lb_array *a, lb_array *b, lb_dot_dims *d)
{
    lb_shape batch;
    if (!meet_batches(&a->shape, &b->shape, &batch)) {
        lb_fail(cx, LB_E_SHAPE,
                "matmul: the batch axes of %s and %s do not broadcast",
                LB_SHOW(&a->shape), LB_SHOW(&b->shape));
        return NULL;
    }
    const int n = batch.rank;
    lb_enter(cx);
    a = spread(cx, a, batch);
    b = spread(cx, b, batch);
    d->lhs_batch.n = d->rhs_batch.n = n;
    for (int k = 0; k < n; k++)
        d->lhs_batch.axis[k] = d->rhs_batch.axis[k] = k;
    d->lhs_contract.axis[0] = n + 1;
    d->rhs_contract.axis[0] = n;
    return lb_leave_with(cx, a && b ? lb_dot_general(cx, a, b, d) : NULL);
}

lb_array *lb_matmul(lb_ctx *cx, lb_array *a, lb_array *b)
{
    if (!cx) return NULL;
    if (!a || !b) {
        lb_fail(cx, LB_E_NULL, "matmul: operand %d is NULL", a ? 1 : 0);
        return NULL;
    }
    const int m = a->shape.rank, n = b->shape.rank;
    if (!m || !n) {
        lb_fail(cx, LB_E_SHAPE, "matmul: operand %d is a scalar", m ? 1 : 0);
        return NULL;
    }
    lb_dot_dims d = {
        .lhs_contract = {1, {m - 1}},
        .rhs_contract = {1, {n > 1 ? n - 2 : 0}},
    };
    const int64_t ka = a->shape.dim[m - 1];
    const int64_t kb = b->shape.dim[d.rhs_contract.axis[0]];
    if (ka != kb) {
        lb_fail(cx, LB_E_SHAPE,
                "matmul: %s has %lld columns, but %s has %lld rows",
                LB_SHOW(&a->shape), (long long)ka, LB_SHOW(&b->shape),
                (long long)kb);
        return NULL;
    }
    if (m == 1 || n <= 2) return lb_dot_general(cx, a, b, &d);
    return batched(cx, a, b, &d);
}
