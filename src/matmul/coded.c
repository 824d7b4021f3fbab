/* coded.c - see coded.h. */
#include "matmul/coded.h"

#include "core/core.h"
#include "kernels/convert.h"

static bool lines_of(const lb_store *s, const lb_levels *numbers, lb_lines *l)
{
    const int last = s->shape.rank - 1;
    if (last < 0 || !lb_shape_size(&s->shape)) return false;
    for (int k = 0; k < last; k++)
        if (s->shape.dim[k] != 1 && s->part[0].g[k] != 1) return false;
    *l = (lb_lines){.length = s->shape.dim[last]};
    l->bytes = lb_ceil_div(l->length * s->fmt->codes.bits, 8);
    if (!numbers->scale) return true;
    const int64_t g = s->part[numbers->scale].g[last];
    l->g = g >= l->length ? 0 : g;
    return !s->part[numbers->scale].own;
}

/* A position at which a byte begins, and a scale. */
static bool is_cut(const lb_lines *l, int bits, int64_t at)
{
    return at * bits % 8 == 0 && (!l->g || at % l->g == 0);
}

/* The pieces of a single line that lie `step` elements apart as lines. */
static bool cut_line(const lb_store *s, int64_t step, lb_lines *l)
{
    const int bits = s->fmt->codes.bits;
    if (lb_shape_size(&s->shape) != l->length || step <= 0 ||
        step > l->length || !is_cut(l, bits, step))
        return false;
    l->length = step;
    l->bytes = step * bits / 8;
    return true;
}

static bool has_factor(const lb_coded *c)
{
    return c->numbers.factor != 0 && c->numbers.factor != 1;
}

/* Scales lie as they are used. */
static const float *direct(const lb_coded *c)
{
    if (!c->numbers.scale || c->numbers.inverse || has_factor(c)) return NULL;
    const lb_array *a = c->store->part[c->numbers.scale].a;
    return a->dtype == LB_F32 ? lb_data(a) : NULL;
}

/* The scales of n lines, step elements apart, lie at equal distances, too: of
 * axes that are one here, all have scales of their own or none has. */
static bool place_scales(lb_coded *c, int64_t e, int64_t step, int64_t n)
{
    if (!c->numbers.scale) return true;
    const int part = c->numbers.scale;
    c->first = lb_part_entry(c->store, part, e);
    if (n < 2) return true;
    c->scale_step = lb_part_entry(c->store, part, e + step) - c->first;
    return lb_part_entry(c->store, part, e + (n - 1) * step) ==
           c->first + (n - 1) * c->scale_step;
}

/* And so they do in every matrix of a batch: a view may cross an axis that has
 * scales of its own in some of them. Of very many it is not looked at. */
static bool batches_alike(const lb_coded *c, const lb_matrix *m)
{
    enum { MANY = 1 << 12 };
    const lb_dims *over = c->along ? &m->row : &m->depth;
    const int64_t step = over->stride[0], n = over->dim[0];
    const int part = c->numbers.scale;
    int64_t batches = 1;
    for (int k = 0; k < m->batch.n; k++)
        batches *= m->batch.dim[k];
    if (!part || n <= 1) return true;
    if (batches > MANY) return false;
    for (int64_t b = 1; b < batches; b++) {
        const int64_t e = m->a->offset + lb_dims_offset(&m->batch, b);
        const int64_t first = lb_part_entry(c->store, part, e);
        const int64_t second = lb_part_entry(c->store, part, e + step);
        const int64_t last = lb_part_entry(c->store, part, e + (n - 1) * step);
        if (second != first + c->scale_step ||
            last != first + (n - 1) * c->scale_step)
            return false;
    }
    return true;
}

/* Where the matrix begins, and whether it stays within lines. */
static bool place(lb_coded *c, const lb_matrix *m)
{
    lb_lines *l = &c->lines;
    const lb_dims *in = c->along ? &m->depth : &m->row;
    const lb_dims *over = c->along ? &m->row : &m->depth;
    const int64_t step = over->stride[0];
    if (over->dim[0] > 1 && step % l->length != 0 &&
        !cut_line(c->store, step, l))
        return false;
    const int64_t e = m->a->offset, at = e % l->length;
    if (!is_cut(l, c->bits, at) || at + in->dim[0] > l->length) return false;
    for (int k = 0; k < m->batch.n; k++)
        if (m->batch.stride[k] % l->length != 0) return false;
    c->byte_step = step / l->length * l->bytes;
    c->bytes = lb_part_bytes(c->store, 0);
    c->bytes += e / l->length * l->bytes + at * c->bits / 8;
    return place_scales(c, e, step, over->dim[0]) && batches_alike(c, m);
}

/* A stored row that is a line of its own axis; a single axis to walk. */
static bool is_plain(const lb_matrix *m)
{
    return m->row.n == 1 && m->depth.n == 1;
}

bool lb_coded_of(const lb_cpu *cpu, const lb_source *s, lb_coded *c)
{
    const lb_matrix *m = s->matrix;
    if (!m || !is_plain(m)) return false;
    const lb_store *store = m->a->store;
    const lb_format *fmt = store->fmt;
    *c = (lb_coded){
        .store = store,
        .bits = fmt->codes.bits,
        .high_first = fmt->codes.high_first,
        .along = m->depth.stride[0] == 1 || m->depth.dim[0] == 1,
    };
    if (!fmt->levels || !c->bits || s->type != LB_C_F32) return false;
    if (!c->along && m->row.stride[0] != 1) return false;
    if (!lb_dtype_is_float(m->a->dtype) ||
        !fmt->levels(cpu, store, &c->numbers))
        return false;
    if (!lines_of(store, &c->numbers, &c->lines) || !place(c, m)) return false;
    c->scale = direct(c);
    return true;
}

lb_coded lb_coded_at(const lb_coded *c, const lb_source *s, int64_t batch)
{
    lb_coded r = *c;
    const int64_t off = lb_dims_offset(&s->matrix->batch, batch);
    if (!off) return r;
    r.bytes += off / c->lines.length * c->lines.bytes;
    if (c->numbers.scale)
        r.first = lb_part_entry(c->store, c->numbers.scale,
                                s->matrix->a->offset + off);
    return r;
}

const float *lb_coded_scales(const lb_coded *c, const lb_cpu *cpu, int64_t line,
                             int64_t block, int64_t n, float *tmp)
{
    const int64_t at = c->first + line * c->scale_step + block;
    if (c->scale) return c->scale + at;
    const float factor = c->numbers.factor != 0 ? c->numbers.factor : 1;
    if (!c->numbers.scale) {
        for (int64_t i = 0; i < n; i++)
            tmp[i] = 1;
        return tmp;
    }
    lb_tile_read_flat(cpu, c->store->part[c->numbers.scale].a, at, n, LB_C_F32,
                      tmp);
    for (int64_t i = 0; i < n; i++)
        tmp[i] = (c->numbers.inverse ? 1 / tmp[i] : tmp[i]) * factor;
    return tmp;
}

void lb_coded_fetch(const lb_coded *c, int64_t line, int64_t lines, int64_t at,
                    int64_t n)
{
    const int64_t end = lb_ceil_div((at + n) * c->bits, 8);
    for (; lines > 0; lines--, line++)
        for (int64_t b = at * c->bits / 8; b < end; b += 64)
            __builtin_prefetch(c->bytes + line * c->byte_step + b, 0, 2);
}
