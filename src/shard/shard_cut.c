/* shard_cut.c - cuts slices from local arrays. */
#include "shard/shard_move.h"

lb_array *lb_cut_view(lb_ctx *cx, lb_array *a, const int64_t *start,
                      const int64_t *count)
{
    lb_array *v = lb_view(cx, a);
    for (int k = 0; v && k < a->shape.rank; k++) {
        v->shape.dim[k] = count[k];
        if (count[k]) v->offset += start[k] * v->stride[k];
    }
    if (v) v->weak = false;
    return v;
}

lb_array *lb_cut_compact(lb_ctx *cx, lb_array *a, const int64_t *start,
                         const int64_t *count)
{
    lb_array *view = lb_cut_view(cx, a, start, count), *out = NULL;
    lb_shape from = {.rank = a->shape.rank};
    if (!view || lb_size(view) == lb_size(a)) return view;
    switch (lb_pack(cx, view, &out)) {
    case LB_DONE:
        return out;
    case LB_FAILED:
        return NULL;
    case LB_DECLINED:
        break;
    }
    /* Arrays whose blocks cannot be moved become dense; others must stay
     * packed. */
    if (lb_can_pack(a)) {
        for (int k = 0; k < from.rank; k++)
            from.dim[k] = start[k];
        lb_fail(cx, LB_E_SHAPE,
                "the slice %s at %s of %s %s%s begins or ends inside a block",
                LB_SHOW(&view->shape), LB_SHOW(&from), lb_format_of(a),
                lb_dtype_name(a->dtype), LB_SHOW(&a->shape));
        return NULL;
    }
    return lb_bind(cx, lb_find_primitive(cx, "copy"), 1, &view, NULL);
}

lb_array *lb_cut_here(lb_mesh *mesh, lb_array *a, const lb_spec *spec,
                      bool compact)
{
    int64_t start[LB_MAX_RANK], count[LB_MAX_RANK];
    lb_spec_slice(&mesh->grid, spec, &a->shape, mesh->comm->rank, start, count);
    return (compact ? lb_cut_compact : lb_cut_view)(mesh->cx, a, start, count);
}

static int64_t lcm(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y) {
        const int64_t r = x % y;
        x = y;
        y = r;
    }
    return a / x * b;
}

bool lb_cut_grain(const lb_array *a, int64_t *grain)
{
    lb_box b;
    for (int k = 0; k < LB_MAX_RANK; k++)
        grain[k] = 1;
    if (a->store->data) return true;
    if (!lb_as_box(a, &b)) return false;
    for (int k = 0; k < a->shape.rank; k++) {
        const int at = b.axis[k];
        for (int p = 0; at >= 0 && p < LB_MAX_PARTS; p++) {
            const int64_t g = b.part[p].a ? b.part[p].g[at] : 0;
            if (g > 1) grain[k] = lcm(grain[k], g);
        }
    }
    return true;
}
