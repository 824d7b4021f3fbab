/* can_save.c - asks whether a kind of file has a place for an array. */
#include "core/core.h"
#include "io/save.h"

bool lb_can_save(lb_ctx *cx, const lb_planned *p, const char *kind,
                 const char *layout)
{
    return cx && p && lb_saver_suits(cx, p, kind, layout) == LB_DONE;
}
