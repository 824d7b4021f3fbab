/* attention_codes.c - keys and values in 8-bit codes with a scale per row.
 *
 *     q . (scale code) = scale (q . code)
 *     sum of w (scale code) = sum of (w scale) code
 *
 * So codes are converted many rows at a time, without their scales.
 */
#include "kernels/decode.h"
#include "prims/attention.h"

/* Whether each row of the last axis is a stored row with one scale. A scale
 * that several rows share does not count, even if it has one row here: a rank
 * with a slice must compute as without a mesh. */
static bool has_row_scales(const lb_array *x, const lb_part *scale)
{
    const lb_store *s = x->store;
    const int last = s->shape.rank - 1, axis = x->shape.rank - 1;
    const int64_t size = x->shape.dim[axis];
    if (last < 0 || !size || s->shape.dim[last] != size || scale->g[last] ||
        scale->own || x->stride[axis] != 1 || x->offset % size)
        return false;
    for (int k = 0; k < last; k++)
        if (scale->g[k] != 1) return false;
    for (int k = 0; k < axis; k++)
        if (x->stride[k] % size) return false;
    return scale->a->dtype == LB_F32;
}

lb_attend_codes lb_attend_codes_of(const lb_cpu *cpu, const lb_array *x)
{
    const lb_store *s = x->store;
    const lb_format *f = s->fmt;
    const lb_code_kind *codes = &f->codes;
    lb_levels level = {0};
    lb_attend_codes c = {0};
    if (s->data || x->dtype != LB_F32 || codes->bits != 8 ||
        codes->least >= 0 || !f->levels || !f->levels(cpu, s, &level) ||
        !level.scale || level.inverse)
        return c;
    const lb_part *p = &s->part[level.scale];
    if (!has_row_scales(x, p) || !(c.scale = lb_data(p->a))) return c;
    c.code = lb_part_bytes(s, 0);
    c.factor = level.factor != 0 ? level.factor : 1;
    c.size = s->shape.dim[s->shape.rank - 1];
    return c;
}

void lb_attend_convert(const lb_cpu *cpu, const lb_attend_codes *c, int64_t at,
                       int64_t step, int64_t n, float *to)
{
    static const float one = 1;
    const lb_decode_kernel *k = lb_decode_kernel_for(cpu);
    const int64_t rows = step == c->size ? n : 1, m = rows * c->size;
    const lb_spans unscaled = {&one, m, m};
    for (int64_t j = 0; j < n; j += rows, at += step, to += m)
        k->bytes(LB_MEANS_SCALE, c->code + at, m, unscaled, to);
}

void lb_attend_scales(const lb_attend_codes *c, int64_t at, int64_t step,
                      int64_t n, float *to)
{
    const float *from = c->scale + at / c->size;
    for (int64_t j = 0; j < n; j++)
        to[j] = from[j * (step / c->size)] * c->factor;
}
