/* conv_dims.c - validates and normalizes a convolution's dimension numbers.
 *
 * Sizes as in XLA: an axis of n elements, dilated by d, has length (n - 1)*d +
 * 1 (0 if n is 0). The result has 1 + (input + pads - kernel) / stride
 * positions, and none if the kernel is longer than the padded input or the
 * input is empty.
 */
#include "matmul/conv_dims.h"

#include <string.h>

#include "core/core.h"

static const char who[] = "conv_general_dilated";

/* The axes of the two letters, and of the digits below spaces. */
static bool read_labels(lb_ctx *cx, const char *side, const char *given,
                        const char *letters, int rank, int axis[2], int *space)
{
    char text[LB_MAX_SPATIAL + 3] = {letters[0], letters[1], '0', '1', '2'};
    if (given[0])
        memcpy(text, given, sizeof text);
    else
        text[rank] = 0;
    int count[2 + LB_MAX_SPATIAL] = {0};
    const int n = (int)strnlen(text, sizeof text);
    bool fine = n == rank;
    for (int k = 0; k < n && fine; k++) {
        const char x = text[k];
        const int digit = x - '0';
        if (x == letters[0] || x == letters[1]) {
            axis[x == letters[1]] = k;
            fine = !count[x == letters[1]]++;
        } else if (digit >= 0 && digit < rank - 2) {
            space[digit] = k;
            fine = !count[2 + digit]++;
        } else {
            fine = false;
        }
    }
    if (fine) return true;
    return lb_fail(cx, LB_E_ARG,
                   "%s: labels \"%.*s\" for %s of rank %d; expected %c, %c "
                   "and the digits below %d, each once",
                   who, (int)sizeof text, text, side, rank, letters[0],
                   letters[1], rank - 2);
}

static bool dilated(int64_t n, int64_t by, int64_t *out)
{
    *out = 0;
    return n == 0 || (lb_mul_i64(n - 1, by, out) && lb_add_i64(*out, 1, out));
}

static bool read_space(lb_ctx *cx, const lb_conv_dims *d, int k,
                       lb_conv_space *s)
{
    s->stride = d->stride[k] ? d->stride[k] : 1;
    s->lhs_dilation = d->lhs_dilation[k] ? d->lhs_dilation[k] : 1;
    s->rhs_dilation = d->rhs_dilation[k] ? d->rhs_dilation[k] : 1;
    s->pad_lo = d->pad_lo[k];
    s->pad_hi = d->pad_hi[k];
    s->reversed = d->reversal[k];
    if (s->stride < 0 || s->lhs_dilation < 0 || s->rhs_dilation < 0)
        return lb_fail(cx, LB_E_ARG,
                       "%s: stride %lld, lhs dilation %lld and rhs dilation "
                       "%lld of spatial axis %d: must not be negative",
                       who, (long long)s->stride, (long long)s->lhs_dilation,
                       (long long)s->rhs_dilation, k);
    int64_t padded, window, farthest;
    if (!dilated(s->in, s->lhs_dilation, &padded) ||
        !lb_add_i64(padded, s->pad_lo, &padded) ||
        !lb_add_i64(padded, s->pad_hi, &padded) ||
        !dilated(s->kernel, s->rhs_dilation, &window) ||
        !lb_add_i64(lb_max_i64(padded, 0), window, &farthest) ||
        !lb_add_i64(farthest, s->pad_lo < 0 ? -(s->pad_lo + 1) : s->pad_lo,
                    &farthest))
        return lb_fail(cx, LB_E_SIZE,
                       "%s: spatial axis %d, %lld by %lld with padding %lld "
                       "and %lld, overflows",
                       who, k, (long long)s->in, (long long)s->kernel,
                       (long long)s->pad_lo, (long long)s->pad_hi);
    s->size =
        padded <= 0 || window > padded ? 0 : (padded - window) / s->stride + 1;
    /* With a single position the stride has no effect, and may overflow. */
    if (s->size < 2) s->stride = 1;
    return true;
}

/* Divides n into groups of equal size. */
static bool divides(lb_ctx *cx, const char *what, int64_t n, int64_t groups,
                    int64_t *each)
{
    *each = n / groups;
    if (n % groups == 0) return true;
    return lb_fail(cx, LB_E_SHAPE,
                   "%s: %lld %s cannot be divided into %lld groups", who,
                   (long long)n, what, (long long)groups);
}

static bool read_groups(lb_ctx *cx, const lb_shape *lhs, const lb_shape *rhs,
                        const lb_conv_dims *d, lb_conv *v)
{
    const int64_t fg = d->feature_groups ? d->feature_groups : 1;
    const int64_t bg = d->batch_groups ? d->batch_groups : 1;
    if (fg < 1 || bg < 1 || (fg > 1 && bg > 1))
        return lb_fail(
            cx, LB_E_ARG,
            "%s: %lld feature groups and %lld batch groups: both must "
            "be positive, and one of them 1",
            who, (long long)fg, (long long)bg);
    v->groups = fg * bg;
    v->by_batch = bg > 1;
    if (!divides(cx, "batches of lhs", lhs->dim[v->lhs_b], bg, &v->batch) ||
        !divides(cx, "features of lhs", lhs->dim[v->lhs_f], fg,
                 &v->in_features) ||
        !divides(cx, "output features of rhs", rhs->dim[v->rhs_o], v->groups,
                 &v->out_features))
        return false;
    if (rhs->dim[v->rhs_i] == v->in_features) return true;
    return lb_fail(cx, LB_E_SHAPE,
                   "%s: rhs %s has %lld input features, but lhs %s has %lld "
                   "in each of %lld groups",
                   who, LB_SHOW(rhs), (long long)rhs->dim[v->rhs_i],
                   LB_SHOW(lhs), (long long)v->in_features, (long long)fg);
}

bool lb_conv_read(lb_ctx *cx, const lb_shape *lhs, const lb_shape *rhs,
                  const lb_conv_dims *d, lb_conv *v)
{
    *v = (lb_conv){.spaces = lhs->rank - 2, .positions = 1, .volume = 1};
    int l[2] = {0}, r[2] = {0}, o[2] = {0};
    int ls[LB_MAX_SPATIAL] = {0}, rs[LB_MAX_SPATIAL] = {0},
        os[LB_MAX_SPATIAL] = {0};
    if (lhs->rank != rhs->rank || v->spaces < 0 || v->spaces > LB_MAX_SPATIAL)
        return lb_fail(cx, LB_E_SHAPE,
                       "%s: lhs %s and rhs %s must have the same rank, from 2 "
                       "to %d",
                       who, LB_SHOW(lhs), LB_SHOW(rhs), LB_MAX_SPATIAL + 2);
    if (!read_labels(cx, "lhs", d->lhs, "bf", lhs->rank, l, ls) ||
        !read_labels(cx, "rhs", d->rhs, "oi", lhs->rank, r, rs) ||
        !read_labels(cx, "out", d->out, "bf", lhs->rank, o, os))
        return false;
    v->lhs_b = l[0], v->lhs_f = l[1];
    v->rhs_o = r[0], v->rhs_i = r[1];
    v->out_b = o[0], v->out_f = o[1];
    if (!read_groups(cx, lhs, rhs, d, v)) return false;
    for (int k = 0; k < v->spaces; k++) {
        lb_conv_space *s = &v->space[k];
        *s = (lb_conv_space){.lhs = ls[k], .rhs = rs[k], .out = os[k]};
        s->in = lhs->dim[ls[k]];
        s->kernel = rhs->dim[rs[k]];
        if (!read_space(cx, d, k, s)) return false;
    }
    const lb_shape shape = lb_conv_shape(v);
    if (!lb_shape_check(cx, who, &shape)) return false;
    for (int k = 0; k < v->spaces; k++) {
        v->positions *= v->space[k].size;
        v->volume *= v->space[k].kernel;
    }
    return true;
}

lb_shape lb_conv_shape(const lb_conv *v)
{
    lb_shape s = {.rank = v->spaces + 2};
    s.dim[v->out_b] = v->batch;
    s.dim[v->out_f] = v->out_features * v->groups;
    for (int k = 0; k < v->spaces; k++)
        s.dim[v->space[k].out] = v->space[k].size;
    return s;
}
