/* descriptor_match.c - finds the quantization config that produces the parts of
 * a descriptor.
 *
 * A descriptor says how the parts of an array are laid out, so that other
 * programs can read it. But decoders trust the parts table. So a table from a
 * file must be one that the format itself would produce. Few members of a
 * config affect the table: all their combinations are tried, with the numbers
 * from the table.
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

/* Whether the format produces the table for q: the same shape, every part that
 * it needs, and every existing part in its place. */
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

/* The axes that share a scale, according to the first part with scales. */
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

/* One bit or digit of `which` for each member; false after the last
 * combination. */
static bool candidate(const lb_described *d, const lb_axes *axes, int which,
                      lb_quant *q)
{
    const int last = d->stored.rank - 1;
    const int block = which / 60; /* 0: the default of the format; else that of
                                   * part block - 1 */
    if (block > d->n_parts) return false;
    q->scale = (lb_scale)(which % 5);
    q->blocks = (lb_blocks)(LB_BLOCKS_IN_ROWS + which / 5 % 3);
    q->center = which / 15 % 2;
    q->axes = which / 30 % 2 ? *axes : (lb_axes){0};
    q->block_size = 0;
    if (!block || last < 0) return true;
    const lb_part *table = &d->part[block - 1].table;
    const bool listed = q->blocks == LB_BLOCKS_LISTED;
    q->block_size = listed ? table->own : table->g[last];
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
