/* descriptor_match.c - from how parts lie to the config that lays them so.
 *
 * A file says how the parts of an array lie, which any program can follow. But
 * decoders trust the table that they are given, so one from a file must be one
 * that the format itself would have made. There are not many: the members of a
 * config that move anything are tried, with the numbers that the table has.
 */
#include <string.h>

#include "io/layouts/descriptor.h"

static const lb_described_part *part_named(const lb_described *d,
                                           const char *name)
{
    for (int p = 0; p < d->n_parts; p++)
        if (strcmp(d->part[p].name, name) == 0) return &d->part[p];
    return NULL;
}

static bool same_line(const lb_part *a, const lb_part *b, int rank)
{
    for (int k = 0; k < rank; k++)
        if (a->g[k] != b->g[k]) return false;
    return a->own == b->own;
}

/* What the format makes of q: the same shape, every part it needs, every part
 * that there is where it would be. */
static bool fits(const lb_format *fmt, const lb_described *d, const lb_quant *q)
{
    lb_layout l = {
        .stored = d->shape, .dtype = d->dtype, .meaning = d->meaning, .run = 1};
    if (!fmt->layout(NULL, q, LB_F32, &d->shape, &l)) return false;
    if (!lb_shape_equal(&l.stored, &d->stored) || l.meaning != d->meaning)
        return false;
    for (int p = 0; p < LB_MAX_PARTS && fmt->part[p].name; p++) {
        const lb_described_part *has = part_named(d, fmt->part[p].name);
        if (!has && l.elem[p]) return false;
        if (has && fmt->part[p].scale && !l.elem[p]) return false;
        if (has && !same_line(&has->table, &l.part[p], d->stored.rank))
            return false;
    }
    return true;
}

/* Axes that share a scale, as the first part of scales has them. */
static lb_axes shared_axes(const lb_format *fmt, const lb_described *d)
{
    lb_axes axes = {0};
    for (int p = 0; p < LB_MAX_PARTS && fmt->part[p].name; p++) {
        const lb_described_part *has = part_named(d, fmt->part[p].name);
        if (!fmt->part[p].scale || !has) continue;
        for (int k = 0; k < d->stored.rank && d->stored.rank == d->shape.rank;
             k++)
            if (!has->table.g[k]) axes.axis[axes.n++] = k;
        return axes;
    }
    return axes;
}

/* One bit or digit of `which` for each member; false past the last. */
static bool candidate(const lb_described *d, const lb_axes *axes, int which,
                      lb_quant *q)
{
    const int last = d->stored.rank - 1;
    const int block = which / 40; /* 0: the format's, else of part block - 1 */
    if (block > d->n_parts) return false;
    q->scale = (lb_scale)(which % 5);
    q->blocks = which / 5 % 2 ? LB_BLOCKS_FLAT : LB_BLOCKS_IN_ROWS;
    q->center = which / 10 % 2;
    q->axes = which / 20 % 2 ? *axes : (lb_axes){0};
    q->block_size = 0;
    if (block && last >= 0) q->block_size = d->part[block - 1].table.g[last];
    return true;
}

bool lb_description_config(const lb_format *fmt, const lb_described *d,
                           lb_quant_config *config)
{
    if (!fmt->layout || d->meaning < 0 || d->meaning > LB_MEANS_INVERSE)
        return false;
    const lb_axes axes = shared_axes(fmt, d);
    lb_quant q = {
        .format = fmt, .dtype = d->dtype, .meaning = (lb_meaning)d->meaning};
    for (int which = 0; candidate(d, &axes, which, &q); which++) {
        if (!fits(fmt, d, &q)) continue;
        *config = (lb_quant_config){.format = fmt->name,
                                    .block_size = q.block_size,
                                    .axes = q.axes,
                                    .dtype = q.dtype,
                                    .scale = q.scale,
                                    .meaning = q.meaning,
                                    .blocks = q.blocks,
                                    .center = q.center};
        return true;
    }
    return false;
}
