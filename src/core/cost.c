/* cost.c - what a call costs, roughly, and whether it is worth the pool.
 *
 * Handing work to a worker that is awake, waiting for it, and fetching its part
 * of the result from another core's cache costs the caller 0.3 to 1 us. So a
 * call stays on the calling thread if it takes less than a few times that, and
 * is then planned for one thread: it costs what it costs in a context that has
 * only one. Estimates are for one thread of a fast core (AMD Zen 5): a slower
 * one takes longer for the work, and for handing it over as well. They need not
 * be exact: near the limit both ways take about as long.
 *
 * `lowbit bench` and bench/bench_small.c show the effect.
 */
#include "core/core.h"

/* Estimated ns from which on the pool is used. */
static const double from_ns = 3000;

/* What fits into L2 is read and written fastest by the core that has it there:
 * two of them take up to twice as long, because each finds half of it in the
 * cache of the other. */
static const double alone = 1200e3;

/* Reading or writing a byte, decoding an element of a packed operand; an
 * addition or multiplication of a product of floats, with decoding, and of one
 * without vector kernels. */
static const double byte_ns = 1.0 / 100, decoded_ns = 0.5,
                    operation_ns = 1.0 / 64, plain_ns = 1;

/* Elements that are read: repeated ones once. */
static double elements(const lb_array *a)
{
    double n = 1;
    for (int k = 0; k < a->shape.rank; k++)
        if (a->stride[k]) n *= (double)a->shape.dim[k];
    return n;
}

double lb_call_ns(const lb_call *c)
{
    const lb_prim *p = c->prim;
    const double made = (double)lb_shape_size(&c->shape);
    double bytes = made * (double)lb_dtype_size(c->dtype), decoded = 0;
    double most = made;
    for (int i = 0; i < c->n_in; i++) {
        const lb_array *a = c->in[i];
        double n = elements(a);
        /* A few elements of a large operand may be moved. */
        if (p->moves && n > made) n = made;
        bytes += n * (double)lb_dtype_size(a->dtype);
        if (!a->store->data) decoded += n;
        if (n > most) most = n;
    }
    if (bytes < alone) bytes = 0;
    const double ns = bytes * byte_ns + most * (double)p->element_ns;
    if (!p->operations) return ns + decoded * decoded_ns;
    const lb_dtype dtype = c->n_in ? c->in[0]->dtype : c->dtype;
    const bool fast = lb_ctype_of(dtype) == LB_C_F32;
    return ns + (double)p->operations(c) * (fast ? operation_ns : plain_ns);
}

int lb_threads_for(const lb_ctx *cx, double ns)
{
    return cx->shares_all || ns >= from_ns ? lb_pool_threads(cx->pool) : 1;
}
