/* tree_quantize.c - quantizes the arrays of a tree, one at a time, and reports
 * formats, sizes and errors.
 */
#include <math.h>
#include <string.h>

#include "core/core.h"
#include "core/distance.h"

/* |b - a| / |a| over values that are finite in both, as lb_compare has it. NaN
 * if there is nothing to compare, or on error. */
static double nrmse_of(lb_ctx *cx, lb_array *a, lb_array *b)
{
    const int64_t n = lb_size(a), most = LB_DISTANCE_MOST;
    const lb_shape flat = {1, {n}};
    const bool wide = a->dtype == LB_F64 || b->dtype == LB_F64;
    lb_apart sum = {0};
    if (a->store->traced || b->store->traced) return NAN;
    lb_enter(cx);
    lb_array *x = lb_reshape(cx, a, flat), *y = lb_reshape(cx, b, flat);
    if (!lb_dtype_is_float(b->dtype)) y = lb_as(cx, y, LB_F32);
    bool ok = x && y;
    for (int64_t lo = 0; ok && lo < n; lo += most) {
        const int64_t hi = lb_min_i64(n, lo + most);
        lb_enter(cx);
        lb_array *p = lb_slice(cx, x, &lo, &hi, NULL);
        lb_array *q = lb_slice(cx, y, &lo, &hi, NULL);
        ok = p && q &&
             lb_distance_add(cx, p, q, wide ? LB_C_F64 : LB_C_F32, &sum);
        lb_leave(cx);
    }
    lb_leave(cx);
    if (!ok || (n && sum.nonfinite == n)) return NAN;
    if (sum.dd == 0) return 0;
    return sum.aa > 0 ? sqrt(sum.dd / sum.aa) : INFINITY;
}

/* Prefixes the message of an error with the array's name. */
static void name_error(lb_ctx *cx, const char *name)
{
    char why[LB_ERROR_SIZE];
    const lb_status status = cx->status;
    memcpy(why, cx->error, sizeof why);
    lb_clear(cx);
    lb_fail(cx, status, "'%.100s': %s", name, why);
}

bool lb_tree_quantize_at(lb_tree *t, int i, const lb_quant_config *config,
                         lb_tree_change *report)
{
    if (!t) return false;
    lb_ctx *cx = lb_tree_context(t);
    lb_array *a = lb_tree_at(t, i);
    const char *name = lb_tree_name(t, i);
    if (!a)
        return lb_fail(cx, LB_E_ARG, "tree: array %d of %d does not exist", i,
                       lb_tree_count(t));
    const bool clear = !cx->status;
    lb_enter(cx);
    lb_array *q = lb_quantize(cx, a, config);
    if (q && report)
        *report = (lb_tree_change){.name = name,
                                   .before = lb_format_of(a),
                                   .after = lb_format_of(q),
                                   .bytes_before = lb_nbytes(a),
                                   .bytes_after = lb_nbytes(q),
                                   .nrmse = nrmse_of(cx, a, q)};
    const bool ok = q && !(clear && cx->status) && lb_tree_set(t, name, q);
    if (clear && cx->status) name_error(cx, name);
    lb_leave(cx);
    return ok;
}

bool lb_tree_quantize(lb_tree *t, lb_tree_choose choose, void *user,
                      lb_tree_change *report)
{
    if (!t) return false;
    if (!choose)
        return lb_fail(lb_tree_context(t), LB_E_NULL,
                       "tree: the function that chooses is NULL");
    for (int i = 0; i < lb_tree_count(t); i++) {
        const char *name = lb_tree_name(t, i);
        lb_array *a = lb_tree_at(t, i);
        const lb_quant_config *config = choose(name, a, user);
        lb_tree_change *to = report ? report + i : NULL;
        if (config) {
            if (!lb_tree_quantize_at(t, i, config, to)) return false;
        } else if (to) {
            const size_t bytes = lb_nbytes(a);
            *to = (lb_tree_change){
                .name = name,
                .before = lb_format_of(a),
                .after = lb_format_of(a),
                .bytes_before = bytes,
                .bytes_after = bytes,
                .kept = "not chosen",
            };
        }
    }
    return true;
}
