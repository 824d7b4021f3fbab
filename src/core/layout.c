/* layout.c - the layout of an array before it has values: the format's layout,
 * checked, and the array with space for its parts. */
#include <string.h>

#include "core/core.h"

void lb_part_rows(lb_part *part, const lb_shape *stored, int64_t g)
{
    for (int k = 0; k < stored->rank; k++)
        part->g[k] = k < stored->rank - 1 ? 1 : g;
}

const char *lb_compat_name(lb_compat compat)
{
    static const char *const name[] = {"native", "eformer", "bnb-cuda",
                                       "bnb-cpu"};
    const size_t n = sizeof name / sizeof *name;
    return (size_t)compat < n ? name[compat] : "unknown";
}

bool lb_layout_is(const char *given, const char *name)
{
    return strcmp(given, name) == 0 ||
           (strcmp(given, "seed") == 0 && strcmp(name, "eformer") == 0);
}

bool lb_layout_of(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                  const lb_shape *shape, lb_layout *to)
{
    const lb_format *fmt = q->format;
    *to = (lb_layout){
        .stored = *shape,
        .dtype = q->dtype ? q->dtype : from,
        .meaning = (int)q->meaning,
        .run = 1,
    };
    if (!fmt->layout)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "quantize: %s has no layout: its arrays are built from "
                       "parts",
                       fmt->name);
    if (!lb_quant_check(cx, "quantize", q, shape->rank)) return false;
    if (!fmt->layout(cx, q, from, shape, to))
        return lb_fail(cx, LB_E_ARG, "%s: invalid configuration", fmt->name);
    if (!lb_shape_check(cx, fmt->name, &to->stored)) return false;
    if (lb_shape_size(&to->stored) != lb_shape_size(shape) || to->run < 1)
        return lb_fail(cx, LB_E_SHAPE,
                       "%s: its layout stores %s for shape %s in runs of %lld",
                       fmt->name, LB_SHOW(&to->stored), LB_SHOW(shape),
                       (long long)to->run);
    for (int p = 0; p < LB_MAX_PARTS && fmt->part[p].name; p++)
        if (to->elem[p] &&
            !lb_part_check(cx, fmt, p, &to->stored, &to->part[p]))
            return false;
    return true;
}

/* The row-major view of a store's elements in another shape. */
static lb_array *in_shape(lb_array *a, const lb_shape *shape)
{
    if (a) {
        a->shape = *shape;
        lb_row_major(shape, a->stride);
    }
    return a;
}

lb_made lb_made_by(const lb_quant *q)
{
    return (lb_made){q->reference, q->clip_gradient, q->compat, q->threshold};
}

lb_array *lb_layout_make(lb_ctx *cx, const lb_quant *q, const lb_layout *l,
                         const lb_shape *shape)
{
    lb_array *a =
        lb_make(cx, q->format, l->dtype, l->meaning, &l->stored, l->part);
    if (a) a->store->made = lb_made_by(q);
    return in_shape(a, shape);
}

/* Space for a part, as an array of its format. */
static lb_array *part_alloc(lb_ctx *cx, const lb_layout *l, int p,
                            const lb_shape *s)
{
    lb_part table[LB_MAX_PARTS] = {0};
    lb_array *bytes = lb_dense(cx, l->elem[p], s);
    if (!bytes || !l->as[p]) return bytes;
    lb_part_rows(&table[0], s, 1);
    table[0].a = bytes;
    return lb_make(cx, l->as[p], LB_F32, 0, s, table);
}

lb_array *lb_layout_alloc(lb_ctx *cx, const lb_quant *q, lb_layout *l,
                          const lb_shape *shape)
{
    const lb_format *fmt = q->format;
    lb_enter(cx);
    bool ok = true;
    for (int p = 0; p < LB_MAX_PARTS && ok; p++) {
        l->part[p].a = NULL;
        if (!fmt->part[p].name || !l->elem[p]) continue;
        const lb_shape s = lb_part_shape(&l->stored, &l->part[p]);
        ok = lb_shape_check(cx, fmt->name, &s) &&
             (l->part[p].a = part_alloc(cx, l, p, &s));
    }
    return lb_leave_with(cx, ok ? lb_layout_make(cx, q, l, shape) : NULL);
}

void *lb_part_place(lb_store *s, int part)
{
    const lb_store *p = s->part[part].a->store;
    return p->data ? p->data : p->part[0].a->store->data;
}
