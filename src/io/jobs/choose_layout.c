/* choose_layout.c - the layout of a model directory, if the caller names none:
 * the one that transformers loads, if it can store everything as requested.
 *
 * transformers loads a directory only in its own layouts, each of one type. So
 * they are ruled out by mixed types, by settings that they cannot express, and
 * by arrays that were requested by name but that transformers loads as floats.
 * Other such arrays stay floats.
 */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "io/jobs/job.h"
#include "io/jobs/selection.h"

/* The layout in which transformers loads arrays of that format; NULL: none. */
static const lb_file_layout *loadable(const char *format)
{
    for (int k = 0; lb_file_layouts[k]; k++) {
        const lb_file_layout *l = lb_file_layouts[k];
        if (l->configure && l->format && strcmp(l->format, format) == 0)
            return l;
    }
    return NULL;
}

/* Whether a weight of an ordinary shape can be stored with these settings. */
static bool takes_settings(lb_job *j)
{
    const lb_planned p = {.name = "w.weight",
                          .dtype = LB_F32,
                          .shape = LB_SHAPE(256, 256),
                          .config = &j->o->config};
    const bool ok =
        lb_saver_suits(j->cx, &p, j->o->kind, j->o->layout) == LB_DONE;
    lb_clear(j->cx);
    return ok;
}

/* Why the layout cannot be used; NULL: it can. An error counts as a reason and
 * is cleared: an override may combine a type with an unsupported arithmetic. */
static const char *find_obstacle(lb_job *j)
{
    static const char mixed[] =
        "requires one type with the same settings for all arrays";
    static const char declined[] = "cannot store every requested array";
    lb_job_item first = {0};
    bool any = false;
    for (int64_t i = 0; i < j->f->n; i++) {
        lb_job_item it = {.group = j->f->group[i]};
        const char *name = it.group->entry.name;
        const bool ok = lb_job_plan_quantized(j, &it);
        lb_clear(j->cx);
        if (!ok) return j->o->strict ? declined : mixed;
        if (it.fell_back && j->o->selection &&
            lb_selection_asks(j->o->selection, name))
            return declined;
        if (it.kept) continue;
        if (any && (it.layout != first.layout ||
                    it.config.double_quant != first.config.double_quant))
            return mixed;
        if (!any) first = it;
        any = true;
    }
    return any ? NULL : "can store none of the arrays";
}

/* Sets the layout l. Returns why it cannot be used; NULL: it can. */
static const char *try_layout(lb_job *j, const lb_file_layout *l)
{
    if (lb_job_has_target(j)) return "target sizes mix types";
    if (!l) return "transformers does not support this type";
    j->own.layout = l->name;
    if (j->own.config.compat == LB_COMPAT_NATIVE)
        j->own.config.compat = l->compat;
    return takes_settings(j) ? find_obstacle(j)
                             : "does not support these settings";
}

static void choose_quantized(lb_job *j)
{
    const lb_quant_config config = j->own.config;
    const char *format = config.format ? config.format : "";
    const lb_file_layout *l = loadable(format);
    const char *why = try_layout(j, l);
    if (l && !why) {
        snprintf(j->note, sizeof j->note, "layout %s, which transformers loads",
                 l->name);
        return;
    }
    j->own.layout = "native";
    j->own.config = config;
    if (l && !lb_job_has_target(j))
        snprintf(j->note, sizeof j->note,
                 "layout native, which only lowbit loads: layout %s %s",
                 l->name, why);
    else
        snprintf(j->note, sizeof j->note,
                 "layout native, which only lowbit loads: %s", why);
}

/* Packed arrays keep their layout if all of them have the same. */
static void choose_converted(lb_job *j)
{
    const char *name = NULL;
    for (int64_t i = 0; i < j->f->n; i++) {
        const lb_file_layout *l = j->f->group[i]->layout;
        if (!l) continue;
        if (!l->configure || (name && strcmp(name, l->name) != 0)) return;
        name = j->own.layout = l->name;
        const lb_verdict v = lb_job_suits_stored(j, &j->f->group[i]->entry);
        lb_clear(j->cx);
        j->own.layout = NULL;
        if (v != LB_DONE) return;
    }
    j->own.layout = name;
}

void lb_job_choose_layout(lb_job *j)
{
    if (j->o->layout || !j->o->directory || lb_error_status(j->cx)) return;
    if (j->convert && j->convert->keep)
        choose_converted(j);
    else if (!j->convert)
        choose_quantized(j);
}
