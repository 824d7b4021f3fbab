/* convert_file.c - converts a file: arrays are decoded, converted to another
 * dtype, or copied packed.
 */
#include <string.h>

#include "core/core.h"
#include "io/jobs/job.h"

/* Arrays in place in a map are used only to describe their layout. */
lb_verdict lb_job_suits_stored(lb_job *j, const lb_entry *e)
{
    lb_enter(j->cx);
    const lb_planned p = {.name = e->name,
                          .array = lb_file_load(j->cx, j->f, e->name)};
    const lb_verdict v =
        p.array ? lb_saver_suits(j->cx, &p, j->o->kind, j->o->layout)
                : LB_FAILED;
    lb_leave(j->cx);
    return v;
}

/* Packed arrays are copied if the output can store them; otherwise decoded. */
bool lb_job_plan_converted(lb_job *j, lb_job_item *it)
{
    const lb_entry *e = &it->group->entry;
    const lb_convert_options *c = j->convert;
    const char *layout = j->o->layout ? j->o->layout : "native";
    const lb_ctype kind = lb_ctype_of(e->dtype);
    if (j->verbatim) {
        it->kept = "copied unchanged";
        it->raw = true;
        return true;
    }
    if (!lb_job_rank_ok(j, e)) return false;
    if (!e->format)
        return lb_fail(j->cx, LB_E_UNSUPPORTED,
                       "%s: '%s' has type %s, which is not supported",
                       LB_PATH(j->f->r->file[0]->path), LB_NAME(e->name),
                       LB_NAME(e->type));
    const bool packed = strcmp(e->format, "dense") != 0;
    j->quantized += packed;
    if (packed && c->target) return lb_job_plan_moved(j, it);
    if (packed && c->keep) {
        const lb_verdict v = lb_job_suits_stored(j, e);
        it->stored = true;
        it->config.format = e->format;
        it->layout = lb_file_layout_for(layout, e->format);
        if (v != LB_DECLINED) return v == LB_DONE;
        if (c->strict) {
            const bool other = c->kind && strcmp(c->kind, "safetensors") != 0;
            return lb_fail(j->cx, LB_E_UNSUPPORTED,
                           "%s%s cannot store '%s', which is %s",
                           other ? "" : "layout ", other ? c->kind : layout,
                           LB_NAME(e->name), e->format);
        }
        it->stored = false;
        it->layout = NULL;
        it->fell_back = true;
    }
    if ((kind == LB_C_F32 || kind == LB_C_F64) && c->dtype != e->dtype)
        it->dtype = c->dtype;
    it->decoded = packed || it->dtype;
    if (!it->decoded) it->kept = "dense";
    return true;
}

bool lb_convert_file(lb_ctx *cx, const char *from, const char *to,
                     const lb_convert_options *options)
{
    lb_convert_options c = {0};
    if (!cx) return false;
    if (!from || (!to && !(options && options->dry_run)))
        return lb_fail(cx, LB_E_NULL, "convert_file: a path is NULL");
    const size_t size =
        options && options->struct_size ? options->struct_size : sizeof c;
    if (size < sizeof c.struct_size)
        return lb_fail(cx, LB_E_ARG,
                       "convert_file: options.struct_size is %zu, not sizeof "
                       "or 0",
                       size);
    if (options) memcpy(&c, options, size < sizeof c ? size : sizeof c);
    const lb_ctype kind = lb_ctype_of(c.dtype);
    if (c.dtype && kind != LB_C_F32 && kind != LB_C_F64)
        return lb_fail(cx, LB_E_DTYPE, "convert_file: %s is not a float dtype",
                       lb_dtype_name(c.dtype));
    lb_quantize_options as = {.kind = c.kind,
                              .layout = c.layout,
                              .done = c.done,
                              .done_user = c.done_user,
                              .max_memory = c.max_memory,
                              .no_sync = c.no_sync,
                              .measure = c.measure,
                              .dry_run = c.dry_run,
                              .resume = c.resume,
                              .directory = c.directory,
                              .progress = c.progress,
                              .progress_user = c.progress_user,
                              .linear_class = c.linear_class,
                              .verify = c.verify,
                              .comm = c.comm,
                              .cancel = c.cancel,
                              .cancel_user = c.cancel_user,
                              .discarded = c.discarded,
                              .discarded_user = c.discarded_user};
    lb_quantize_options o;
    if (c.target) c.keep = c.strict = true;
    return lb_job_set_target(cx, &c, &as) && lb_job_options(cx, &as, &o) &&
           lb_job_run(cx, from, to, &o, &c);
}
