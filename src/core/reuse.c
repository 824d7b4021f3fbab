/* reuse.c - reports of arrays that were copied although their holder gave them
 * up (lb_update_in_place).
 */
#include <stdio.h>

#include "core/core.h"

/* NULL: it was not copied. */
static const char *why_copied(const lb_ctx *cx, const lb_array *a, int refs,
                              const lb_array *to)
{
    if (a->store->traced) return NULL;
    if (a->store->sharding && to->store->part[0].a == a->store->part[0].a)
        return NULL;
    if (!refs) return "its elements are needed later";
    const char *why = lb_shared_why(a, refs);
    if (why) return why;
    for (const lb_layer *l = cx->layer; l; l = l->below)
        if (!l->transparent) return "a gradient tape or a layer may need it";
    if (a->store->sharding) return "its slice is stored otherwise";
    if (!a->store->data) return "the update does not consist of whole blocks";
    /* Repeated elements (stride 0) must be stored separately before one can
     * change.
     */
    if (lb_shape_size(&a->store->shape) < lb_shape_size(&a->shape)) return NULL;
    return lb_data(a) ? "a rule handled the call" : "it is not row-major";
}

void lb_copy_report(lb_ctx *cx, const lb_array *a, int refs, const lb_array *to)
{
    char s[LB_ERROR_SIZE];
    if (!cx->log || cx->quiet || lb_dense_of(cx, a->store->fmt) != LB_DENSE_LOG)
        return;
    const char *why = why_copied(cx, a, refs, to);
    if (!why) return;
    snprintf(s, sizeof s, "update_in_place copies %s %s%s of %zu bytes: %s",
             lb_format_of(a), lb_dtype_name(a->dtype), LB_SHOW(&a->shape),
             lb_nbytes(a), why);
    cx->log(cx->log_user, s);
}
