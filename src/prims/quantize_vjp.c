/* quantize_vjp.c - the straight-through estimator: the identity for any format;
 * with clipping, the identity where the value was within the range that its
 * scale allows.
 *
 * This range is what the array would decode to if all of its codes were the
 * largest: an array with the same scales and with constant code bytes, decoded
 * by the format's own decoder.
 */
#include "prims/quantize_vjp.h"

#include <math.h>
#include <string.h>

#include "core/core.h"

/* The stored bits of the code that decodes to the largest value. */
static int largest_code(const lb_format *fmt, const lb_levels *numbers)
{
    const lb_code_kind *k = &fmt->codes;
    int best = 0;
    if (k->bits == 8) return k->most;
    for (int i = 1; i <= (k->most - k->least) / k->step; i++)
        if (fabsf(numbers->level[i]) > fabsf(numbers->level[best])) best = i;
    return best;
}

static lb_array *range_of(lb_ctx *cx, lb_array *q)
{
    const lb_store *s = q->store;
    lb_levels numbers = {.scale = 0};
    if (!s->fmt->codes.bits || !s->fmt->levels ||
        !s->fmt->levels(&cx->cpu, s, &numbers)) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "quantize: the gradient of %s cannot be clipped: the format "
                "does not define its values as levels times scales",
                s->fmt->name);
        return NULL;
    }
    lb_part table[LB_MAX_PARTS];
    memcpy(table, s->part, sizeof table);
    lb_array *codes = lb_dense(cx, s->part[0].a->dtype, &s->part[0].a->shape);
    if (!codes) return NULL;
    int byte = largest_code(s->fmt, &numbers);
    for (int bits = s->fmt->codes.bits; bits < 8; bits *= 2)
        byte |= byte << bits;
    memset(codes->store->data, byte, codes->store->data_size);
    table[0].a = codes;
    lb_array *all = lb_make_like(cx, s, q->dtype, &s->shape, table);
    if (!all) return NULL;
    lb_array view = *q;
    view.store = all->store;
    return lb_view(cx, &view);
}

/* Scales are rounded: the values they were computed from may be slightly
 * outside. */
static lb_array *inside(lb_ctx *cx, lb_array *x, lb_array *q)
{
    enum { STEPS = 256 }; /* bf16 has as many steps from 1 to 2 */
    lb_array *range = range_of(cx, q);
    if (!range) return NULL;
    range = lb_abs(cx, lb_convert(cx, range, LB_F32));
    range = lb_mul(cx, range, lb_scalar(cx, 1 + 1.0 / STEPS));
    return lb_le(cx, lb_abs(cx, lb_convert(cx, x, LB_F32)), range);
}

lb_array *lb_quantize_vjp(lb_ctx *cx, const lb_call *c, int operand,
                          lb_array *out, lb_array *dout)
{
    const lb_quant *q = c->params;
    (void)operand;
    if (!q->clip_gradient) return lb_as(cx, dout, c->in[0]->dtype);
    lb_enter(cx);
    lb_array *d = lb_as(cx, dout, c->in[0]->dtype);
    lb_array *in = d ? inside(cx, c->in[0], out) : NULL;
    return lb_leave_with(cx,
                         in ? lb_select(cx, in, d, lb_scalar(cx, 0)) : NULL);
}
