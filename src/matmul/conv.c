/* conv.c - conv_general_dilated: convolution as a matrix product.
 *
 *   windows (positions, depth) x weights (features, depth), for each group
 *
 * Positions are (batch, space...) of the result, the depth is (input feature,
 * kernel space...), row-major, which is the order of each sum. Which of the two
 * is A depends on the result's layout, so that tiles are written contiguously.
 */
#include <stddef.h>

#include "core/core.h"
#include "matmul/conv_dims.h"
#include "matmul/conv_windows.h"
#include "matmul/product.h"
#include "prims/cuts.h"

typedef struct {
    lb_conv v;
    lb_conv_windows windows;
    lb_matrix elements; /* the windows, if they are a view of the input */
    lb_matrix weights;
    lb_product product;
    bool features_first; /* A is the weights */
} conv;

/* Plan state. */
typedef struct {
    conv d;
    _Alignas(max_align_t) char grid[LB_GRID];
} conv_kept;
_Static_assert(sizeof(conv_kept) <= LB_PLAN_NOTE, "a plan has room for it");

/* Whether the windows are a view of the input: each window is one element (any
 * stride), or there is one window per image (any dilation; as in the gradient
 * of a kernel of one element); and no window needs padding. */
static bool is_view(const lb_conv *v)
{
    for (int k = 0; k < v->spaces; k++) {
        const lb_conv_space *s = &v->space[k];
        if (s->pad_lo != 0 || s->pad_hi > 0 || s->lhs_dilation != 1 ||
            (s->reversed && s->kernel > 1))
            return false;
    }
    return v->volume == 1 || v->positions == 1;
}

/* With fewer than two elements the stride has no effect, and may overflow. */
static void add_axis(lb_dims *d, int64_t n, int64_t stride, int64_t times)
{
    lb_dims_add(d, n, n > 1 ? stride * times : 0);
}

static void make_elements(lb_matrix *m, const lb_array *a, const lb_conv *v)
{
    const int64_t sb = a->stride[v->lhs_b], sf = a->stride[v->lhs_f];
    m->a = a;
    lb_dims_add(&m->batch, v->groups,
                v->by_batch ? sb * v->batch : sf * v->in_features);
    lb_dims_add(&m->row, v->batch, sb);
    for (int k = 0; k < v->spaces; k++)
        add_axis(&m->row, v->space[k].size, a->stride[v->space[k].lhs],
                 v->space[k].stride);
    lb_dims_add(&m->depth, v->in_features, sf);
    for (int k = 0; k < v->spaces; k++)
        add_axis(&m->depth, v->space[k].kernel, a->stride[v->space[k].lhs],
                 v->space[k].rhs_dilation);
}

static void make_weights(lb_matrix *m, const lb_array *a, const lb_conv *v)
{
    const int64_t so = a->stride[v->rhs_o];
    m->a = a;
    lb_dims_add(&m->batch, v->groups, so * v->out_features);
    lb_dims_add(&m->row, v->out_features, so);
    lb_dims_add(&m->depth, v->in_features, a->stride[v->rhs_i]);
    for (int k = 0; k < v->spaces; k++)
        lb_dims_add(&m->depth, v->space[k].kernel, a->stride[v->space[k].rhs]);
}

static void end(lb_matrix *m, lb_ctype type)
{
    m->source.type = type;
    lb_dims_end(&m->batch);
    lb_dims_end(&m->row);
    lb_dims_end(&m->depth);
    lb_matrix_end(m);
}

/* Whether the product's result (group, rows, columns) has the same layout as
 * the convolution's. */
static bool lies_alike(const conv *d)
{
    const lb_conv *v = &d->v;
    int last = d->features_first ? v->out_f : -1;
    if (v->batch != 1) {
        if (v->out_b < last) return false;
        last = v->out_b;
    }
    for (int k = 0; k < v->spaces; k++) {
        if (v->space[k].out < last) return false;
        last = v->space[k].out;
    }
    return d->features_first || (v->groups == 1 && v->out_f > last);
}

/* ---- writing ------------------------------------------------------------- */

/* The box of positions starting at p along the last axis of (batch, space...),
 * at most `most`; returns their number. */
static int64_t box_at(const lb_conv *v, int64_t p, int64_t most, int64_t *lo,
                      int64_t *n)
{
    const int last = v->spaces - 1;
    const int axis = last >= 0 ? v->space[last].out : v->out_b;
    for (int k = last; k >= 0; p /= v->space[k--].size) {
        lo[v->space[k].out] = p % v->space[k].size;
        n[v->space[k].out] = 1;
    }
    lo[v->out_b] = p;
    n[v->out_b] = 1;
    const int64_t size = last >= 0 ? v->space[last].size : v->batch;
    n[axis] = lb_min_i64(most, size - lo[axis]);
    return n[axis];
}

static void put(const lb_product *p, const lb_work *w, int64_t group, int64_t i,
                int64_t m, int64_t j, int64_t n, const void *tile)
{
    const conv *d = p->user;
    const lb_conv *v = &d->v;
    const lb_ctype type = lb_product_tile(w->call);
    const size_t size = lb_ctype_size(type);
    const char *from = tile;
    int64_t lo[LB_MAX_RANK], count[LB_MAX_RANK];
    if (!d->features_first) {
        for (int64_t r = 0, run; r < m; r += run) {
            run = box_at(v, i + r, m - r, lo, count);
            lo[v->out_f] = group * v->out_features + j;
            count[v->out_f] = n;
            lb_tile_write(w->call->cpu, w->out, lo, count, type,
                          from + (size_t)(r * n) * size);
        }
        return;
    }
    for (int64_t c = 0, run; c < n; c += run) {
        run = box_at(v, j + c, n - c, lo, count);
        count[v->out_f] = 1;
        for (int64_t r = 0; r < m; r++) {
            lo[v->out_f] = group * v->out_features + i + r;
            lb_tile_write(w->call->cpu, w->out, lo, count, type,
                          from + (size_t)(r * n + c) * size);
        }
    }
}

/* ---- the primitive ------------------------------------------------------ */

/* d contains pointers to itself: it must not be moved. */
static void prepare(const lb_call *c, conv *d)
{
    const lb_ctype type = lb_product_type(c);
    *d = (conv){0};
    lb_conv_read(NULL, &c->in[0]->shape, &c->in[1]->shape, c->params, &d->v);
    const lb_conv *v = &d->v;
    const lb_source *x = &d->windows.source, *y = &d->weights.source;
    make_weights(&d->weights, c->in[1], v);
    end(&d->weights, type);
    if (is_view(v)) {
        make_elements(&d->elements, c->in[0], v);
        end(&d->elements, type);
        x = &d->elements.source;
    } else {
        lb_conv_windows_make(&d->windows, c->in[0], v, type);
    }
    d->features_first = v->out_f != v->spaces + 1;
    d->product = (lb_product){
        .a = d->features_first ? y : x,
        .b = d->features_first ? x : y,
        .batch = v->groups,
        .m = d->features_first ? v->out_features : v->batch * v->positions,
        .n = d->features_first ? v->batch * v->positions : v->out_features,
        .k = v->in_features * v->volume,
        .in_place = lb_product_direct(c) && lies_alike(d),
        .put = put,
        .precision = lb_product_precision(
            c, ((const lb_conv_dims *)c->params)->precision),
        .user = d,
    };
}

static void plan(const lb_call *c, lb_plan *plan)
{
    conv_kept *const k = plan->note;
    prepare(c, &k->d);
    k->d.product.grid = k->grid;
    lb_product_plan(&k->d.product, c, plan);
}

static void eval(const lb_work *w)
{
    lb_product_run(&((const conv_kept *)w->plan->note)->d.product, w);
}

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_conv_dims *p = c->params;
    const lb_array *x = c->in[0], *y = c->in[1];
    lb_conv v;
    if (!lb_product_dtype(cx, "conv_general_dilated", x->dtype, y->dtype,
                          p->preferred, p->precision, &c->dtype) ||
        !lb_conv_read(cx, &x->shape, &y->shape, p, &v))
        return false;
    c->shape = lb_conv_shape(&v);
    return true;
}

/* Partial sums of 16-bit floats stay f32 until they are combined. */
static lb_array *share(lb_ctx *cx, const lb_share *p)
{
    const lb_call *c = p->whole;
    lb_conv_dims d = *(const lb_conv_dims *)c->params;
    if (p->partial && lb_is_16_bits(c->dtype)) d.preferred = LB_F32;
    return lb_bind(cx, c->prim, 2, p->in, &d);
}

/* Spatial axes and groups are not cut. */
static bool shard(const lb_call *c, lb_cuts *to)
{
    enum { BATCH = 1, OUT, IN };
    lb_conv v;
    if (!lb_conv_read(NULL, &c->in[0]->shape, &c->in[1]->shape, c->params, &v))
        return false;
    if (!v.by_batch || v.groups == 1)
        lb_cuts_pair(to, BATCH, 0, v.lhs_b, v.out_b);
    if (v.groups == 1) {
        lb_cuts_pair(to, OUT, 1, v.rhs_o, v.out_f);
        lb_cuts_pair(to, IN, 0, v.lhs_f, -1);
        lb_cuts_pair(to, IN, 1, v.rhs_i, -1);
    }
    to->run = share;
    return true;
}

static int64_t operations(const lb_call *c)
{
    lb_conv v;
    if (!lb_conv_read(NULL, &c->in[0]->shape, &c->in[1]->shape, c->params, &v))
        return 0;
    return 2 * lb_shape_size(&c->shape) * v.in_features * v.volume;
}

const lb_prim lb_prim_conv_general_dilated = {
    .struct_size = sizeof(lb_prim),
    .name = "conv_general_dilated",
    .element_ns = 4,
    .params_size = sizeof(lb_conv_dims),
    .params_exact = offsetof(lb_conv_dims, reversal) + LB_MAX_SPATIAL,
    .n_in = 2,
    .infer = infer,
    .plan = plan,
    .eval = eval,
    .vjp = lb_conv_vjp,
    .shard = shard,
    .operations = operations,
};

lb_array *lb_conv_general_dilated(lb_ctx *cx, lb_array *lhs, lb_array *rhs,
                                  const lb_conv_dims *dims)
{
    lb_array *in[2] = {lhs, rhs};
    const lb_prim *prim = &lb_prim_conv_general_dilated;
    if (!cx || !lhs || !rhs || lb_product_meets(in))
        return lb_bind(cx, prim, 2, in, dims);
    lb_enter(cx);
    lb_array *out =
        lb_meet_dtypes(cx, in, 2) ? lb_bind(cx, prim, 2, in, dims) : NULL;
    return lb_leave_with(cx, out);
}
