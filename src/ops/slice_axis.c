/* slice_axis.c - a slice along one axis.
 */
#include "core/core.h"

/* Negative indices count from the end; both are clamped, as in numpy. */
static int64_t clamped(int64_t i, int64_t n)
{
    if (i < 0) i = i < -n ? 0 : i + n;
    return lb_min_i64(i, n);
}

lb_array *lb_slice_axis(lb_ctx *cx, lb_array *a, int axis, int64_t start,
                        int64_t limit)
{
    int64_t lo[LB_MAX_RANK] = {0}, hi[LB_MAX_RANK];
    if (!cx) return NULL;
    if (!a) {
        lb_fail(cx, LB_E_NULL, "slice_axis: the array is NULL");
        return NULL;
    }
    if (!lb_axis_fix(cx, "slice_axis", axis, a->shape.rank, &axis)) return NULL;
    for (int k = 0; k < a->shape.rank; k++)
        hi[k] = a->shape.dim[k];
    lo[axis] = clamped(start, hi[axis]);
    hi[axis] = lb_max_i64(clamped(limit, hi[axis]), lo[axis]);
    return lb_slice(cx, a, lo, hi, NULL);
}
