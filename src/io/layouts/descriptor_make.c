/* descriptor_make.c - makes the descriptor of an array: of an existing one from
 * its store, of a planned one from the layout of its format. */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "core/registry.h"
#include "io/arrays/saver.h"

const lb_described_part *lb_described_part_of(const lb_described *d,
                                              const char *name)
{
    for (int p = 0; p < d->n_parts; p++)
        if (strcmp(d->part[p].name, name) == 0) return &d->part[p];
    return NULL;
}

static bool too_long(lb_ctx *cx, const char *name)
{
    return lb_fail(cx, LB_E_UNSUPPORTED,
                   "'%s': the name is too long for a file", LB_NAME(name));
}

static bool set_word(lb_ctx *cx, char *to, size_t size, const char *word)
{
    const int n = snprintf(to, size, "%s", word);
    return (n >= 0 && (size_t)n < size) || too_long(cx, word);
}

/* ---- existing arrays ----------------------------------------------------- */

static bool is_whole(const lb_array *a)
{
    return lb_is_row_major(a) && a->offset == 0 &&
           lb_shape_size(&a->shape) == lb_shape_size(&a->store->shape);
}

static bool describe_part(lb_ctx *cx, lb_arena *arena, const char *name,
                          const lb_store *s, int p, lb_described_part *to)
{
    lb_array *a = s->part[p].a;
    to->table = s->part[p];
    to->table.a = NULL;
    to->n_groups = s->shape.rank;
    if (!set_word(cx, to->name, sizeof to->name, s->fmt->part[p].name))
        return false;
    if (a->store->data) {
        to->elem = a->dtype;
        return true;
    }
    to->array = lb_describe_array(cx, arena, name, a);
    return to->array != NULL;
}

lb_described *lb_describe_array(lb_ctx *cx, lb_arena *arena, const char *name,
                                const lb_array *a)
{
    const lb_store *s = a->store;
    lb_described *d = lb_arena_alloc(cx, arena, 1, sizeof *d);
    if (!d || !set_word(cx, d->format, sizeof d->format, s->fmt->name))
        return NULL;
    if (!is_whole(a)) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "'%s' is a view of part of a %s array: only whole arrays can "
                "be saved as stored",
                LB_NAME(name), s->fmt->name);
        return NULL;
    }
    d->dtype = a->dtype;
    d->meaning = s->meaning;
    d->shape = a->shape;
    d->stored = s->shape;
    for (int p = 0; p < LB_MAX_PARTS && s->fmt->part[p].name; p++) {
        if (!s->part[p].a) continue;
        if (!describe_part(cx, arena, name, s, p, &d->part[d->n_parts++]))
            return NULL;
    }
    return d;
}

/* ---- planned arrays ------------------------------------------------------ */

/* Scales of double quantization: as lb_quantize_scales makes them. */
static lb_described *describe_scales(lb_ctx *cx, lb_arena *arena,
                                     const lb_described *of,
                                     const lb_described_part *p)
{
    const lb_quant_config config = {.format = lb_scale_format->name,
                                    .blocks = LB_BLOCKS_FLAT,
                                    .center = true};
    const lb_planned scales = {.name = p->name,
                               .dtype = LB_F32,
                               .shape = lb_part_shape(&of->stored, &p->table),
                               .config = &config};
    return lb_describe_config(cx, arena, &scales);
}

/* A part in another format: one entry per element. */
static lb_described *describe_as(lb_ctx *cx, lb_arena *arena,
                                 const lb_layout *l, int p)
{
    lb_described *d = lb_arena_alloc(cx, arena, 1, sizeof *d);
    if (!d || !set_word(cx, d->format, sizeof d->format, l->as[p]->name))
        return NULL;
    d->dtype = LB_F32;
    d->shape = d->stored = lb_part_shape(&l->stored, &l->part[p]);
    d->n_parts = 1;
    d->part[0].elem = l->elem[p];
    d->part[0].n_groups = d->stored.rank;
    lb_part_rows(&d->part[0].table, &d->stored, 1);
    return set_word(cx, d->part[0].name, sizeof d->part[0].name,
                    l->as[p]->part[0].name)
               ? d
               : NULL;
}

static bool describe_layout(lb_ctx *cx, lb_arena *arena, const lb_format *fmt,
                            const lb_layout *l, bool nested, lb_described *d)
{
    d->dtype = l->dtype;
    d->meaning = l->meaning;
    d->stored = l->stored;
    for (int p = 0; p < LB_MAX_PARTS && fmt->part[p].name; p++) {
        if (!l->elem[p]) continue;
        lb_described_part *to = &d->part[d->n_parts++];
        to->table = l->part[p];
        to->n_groups = l->stored.rank;
        to->elem = l->elem[p];
        if (!set_word(cx, to->name, sizeof to->name, fmt->part[p].name))
            return false;
        if (l->as[p])
            to->array = describe_as(cx, arena, l, p);
        else if (nested && fmt->part[p].scale)
            to->array = describe_scales(cx, arena, d, to);
        else
            continue;
        if (!to->array) return false;
    }
    return true;
}

lb_described *lb_describe_config(lb_ctx *cx, lb_arena *arena,
                                 const lb_planned *p)
{
    lb_quant q;
    lb_layout l;
    lb_described *d = lb_arena_alloc(cx, arena, 1, sizeof *d);
    if (!d ||
        !lb_quant_of(cx, LB_NAME(p->name), p->config, p->shape.rank, &q) ||
        !lb_layout_of(cx, &q, p->dtype, &p->shape, &l))
        return NULL;
    d->shape = p->shape;
    const bool ok =
        set_word(cx, d->format, sizeof d->format, q.format->name) &&
        describe_layout(cx, arena, q.format, &l, p->config->double_quant, d);
    return ok ? d : NULL;
}
