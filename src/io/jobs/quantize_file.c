/* quantize_file.c - quantizes a file: decides what happens to each array.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/core.h"
#include "io/jobs/job.h"
#include "io/jobs/selection.h"

/* ---- whether it can be --------------------------------------------------- */

/* Whether the layout has another format's arithmetic (compat), which an
 * override inherits and does not support: the error names the layout. */
static void blame_layout(lb_job *j, const lb_job_item *it)
{
    const char *layout = j->o->layout;
    const lb_status status = lb_error_status(j->cx);
    if (!layout || it->config.compat == LB_COMPAT_NATIVE ||
        (status != LB_E_ARG && status != LB_E_UNSUPPORTED) ||
        strcmp(layout, "native") == 0 ||
        lb_file_layout_for(layout, it->config.format))
        return;
    lb_clear(j->cx);
    lb_fail(j->cx, LB_E_ARG, "layout %s cannot store '%s' as %s", layout,
            LB_NAME(it->group->entry.name), it->config.format);
}

/* Replaces config.format by the format's own name, which is permanent. */
static bool name_format(lb_job *j, lb_job_item *it)
{
    lb_quant q;
    if (!lb_quant_to(j->cx, LB_NAME(it->group->entry.name), &it->config,
                     it->group->entry.rank, &q))
        return false;
    it->config.format = q.format->name;
    return true;
}

/* Whether only the shape was the problem: the layout can store a plain one. */
static bool shape_declines(lb_job *j, lb_planned p)
{
    p.shape = LB_SHAPE(256, 256);
    return lb_saver_suits(j->cx, &p, j->o->kind, j->o->layout) == LB_DONE;
}

/* Why the output cannot store the shape: names the block size of GGUF types.
 * NULL and an error: out of memory. */
static const char *shape_reason(lb_job *j, const lb_job_item *it,
                                const lb_shape *shape)
{
    char why[96];
    const char *kind = j->o->kind ? j->o->kind : "safetensors";
    const lb_coding *c = lb_container_named(kind)->coding;
    const int64_t row = shape->rank ? shape->dim[shape->rank - 1] : 1;
    while (c->name && strcasecmp(c->name, it->config.format) != 0)
        c++;
    if (!c->name || row % c->len == 0)
        return "the layout cannot store its shape";
    snprintf(why, sizeof why, "row length %lld is not a multiple of %d",
             (long long)row, c->len);
    return lb_arena_text(j->cx, &j->arena, why, strlen(why));
}

/* LB_DECLINED: the layout cannot store it; or the format cannot represent its
 * shape (that error is cleared). */
static lb_verdict try_config(lb_job *j, lb_job_item *it, const char **why)
{
    const lb_quantize_options *o = j->o;
    const lb_planned p = lb_job_planned(it);
    const bool clear = !lb_error_status(j->cx);
    if (!name_format(j, it)) return LB_FAILED;
    const lb_verdict v = lb_saver_suits(j->cx, &p, o->kind, o->layout);
    if (v == LB_FAILED && clear) blame_layout(j, it);
    it->layout =
        lb_file_layout_for(o->layout ? o->layout : "native", it->config.format);
    *why = v == LB_DECLINED && shape_declines(j, p)
               ? shape_reason(j, it, &p.shape)
               : "the layout cannot store it";
    if (!*why) return LB_FAILED;
    if (v == LB_DONE && o->directory && it->layout && it->layout->refuses) {
        const lb_model_config *c = lb_model_config_of(j->cx, j->f);
        if (!c) return LB_FAILED;
        *why = it->layout->refuses(c, &it->group->entry);
        if (*why) return LB_DECLINED;
    }
    if (v != LB_FAILED || !clear || lb_error_status(j->cx) != LB_E_SHAPE)
        return v;
    *why = "its shape does not suit the type";
    if (o->fallback == LB_FALLBACK_ERROR) return LB_FAILED;
    lb_clear(j->cx);
    return LB_DECLINED;
}

static bool deny(lb_job *j, const lb_job_item *it, const char *why)
{
    const lb_planned p = lb_job_planned(it);
    return lb_fail(j->cx, LB_E_DENIED,
                   "cannot quantize '%s' as requested: %s, shape %s",
                   LB_NAME(it->group->entry.name), why, LB_SHOW(&p.shape));
}

bool lb_job_tries(lb_job *j, lb_job_item *it)
{
    const char *why = NULL;
    return try_config(j, it, &why) == LB_DONE;
}

bool lb_job_suits(lb_job *j, lb_job_item *it)
{
    const lb_quantize_options *o = j->o;
    const char *why = NULL;
    const lb_planned p = lb_job_planned(it);
    lb_verdict v = try_config(j, it, &why);
    if (v != LB_DECLINED) return v == LB_DONE;
    if (o->strict) return deny(j, it, why);
    if (o->fallback == LB_FALLBACK_ERROR)
        return lb_fail(j->cx, LB_E_UNSUPPORTED, "'%s', %s: %s, shape %s",
                       LB_NAME(it->group->entry.name), it->config.format, why,
                       LB_SHOW(&p.shape));
    it->fell_back = true;
    const char *first = why;
    for (int i = 0; o->fallback == LB_FALLBACK_ADJUST && i < o->n_other; i++) {
        it->config = o->other[i];
        v = try_config(j, it, &why);
        if (v != LB_DECLINED) return v == LB_DONE;
    }
    it->kept = first;
    it->layout = NULL;
    return true;
}

/* ---- whether it should --------------------------------------------------- */

static bool same_axes(const lb_axes *a, const lb_axes *b)
{
    for (int i = 0; i < a->n && a->n == b->n; i++)
        if (a->axis[i] != b->axis[i]) return false;
    return a->n == b->n;
}

/* Compared by member: the padding of a struct is indeterminate. */
bool lb_job_same_config(const lb_quant_config *a, const lb_quant_config *b)
{
    const char *f = a->format ? a->format : "", *g = b->format ? b->format : "";
    return strcmp(f, g) == 0 && a->block_size == b->block_size &&
           same_axes(&a->axes, &b->axes) && a->dtype == b->dtype &&
           a->simulate == b->simulate && a->reference == b->reference &&
           a->compat == b->compat && a->decode == b->decode &&
           a->scale == b->scale && a->meaning == b->meaning &&
           a->threshold == b->threshold && a->blocks == b->blocks &&
           a->on_nonfinite == b->on_nonfinite &&
           a->double_quant == b->double_quant && a->center == b->center &&
           a->clip_gradient == b->clip_gradient;
}

bool lb_job_rank_ok(lb_job *j, const lb_entry *e)
{
    return e->rank <= LB_MAX_RANK ||
           lb_fail(j->cx, LB_E_UNSUPPORTED,
                   "%s: '%s' has rank %d; the maximum is %d",
                   LB_PATH(j->f->r->file[0]->path), LB_NAME(e->name), e->rank,
                   LB_MAX_RANK);
}

/* For loaders that pack every linear layer, tiny ones must be packed as well.
 * Also true if there will be an error. */
static bool loader_packs(lb_job *j, const lb_job_item *it)
{
    static const lb_model_config any = {0};
    lb_job_item named = *it;
    if (!j->o->layout) return false;
    if (!name_format(j, &named)) return true;
    const lb_file_layout *l =
        lb_file_layout_for(j->o->layout, named.config.format);
    if (!l || !l->refuses) return false;
    const lb_model_config *c =
        j->o->directory ? lb_model_config_of(j->cx, j->f) : &any;
    return !c || !l->refuses(c, &it->group->entry);
}

/* Arrays not requested by name are kept if they would not become smaller, such
 * as those with rows of one element. */
static bool should_shrink(lb_job *j, lb_job_item *it)
{
    const lb_entry *e = &it->group->entry;
    uint64_t nbytes = 0;
    if (it->kept || j->o->choose ||
        (j->o->selection && lb_selection_asks(j->o->selection, e->name)) ||
        (it->layout && it->layout->refuses))
        return true;
    if (!lb_job_bytes(j, it, &nbytes)) return false;
    if (nbytes < e->nbytes) return true;
    it->kept = "would not be smaller";
    it->layout = NULL;
    return true;
}

bool lb_job_decide(lb_job *j, lb_job_item *it)
{
    return lb_job_suits(j, it) && should_shrink(j, it);
}

/* Arrays that are quantized already are refused, whether or not they are
 * chosen: requantizing them would add up the errors of both types. */
bool lb_job_plan_quantized(lb_job *j, lb_job_item *it)
{
    const lb_quantize_options *o = j->o;
    const lb_entry *e = &it->group->entry;
    const lb_choose choose = o->choose ? o->choose : lb_choose_weights;
    it->config = o->config;
    it->kept = o->selection ? lb_selection_choose(o->selection, e, &it->config)
                            : choose(o->choose_user, e, &it->config);
    if (!lb_job_rank_ok(j, e)) return false;
    if (lb_role_is_tiny(it->kept) && loader_packs(j, it)) it->kept = NULL;
    if (!e->format)
        return lb_fail(j->cx, LB_E_UNSUPPORTED,
                       "%s: '%s' has unsupported type %s; cannot quantize or "
                       "copy it",
                       LB_PATH(j->f->r->file[0]->path), LB_NAME(e->name),
                       LB_NAME(e->type));
    if (strcmp(e->format, "dense") != 0)
        return lb_fail(j->cx, LB_E_UNSUPPORTED,
                       "%s: '%s' is already quantized (%s); run `lowbit "
                       "dequantize` first",
                       LB_PATH(j->f->r->file[0]->path), LB_NAME(e->name),
                       e->format);
    it->fixed = !lb_job_same_config(&it->config, &o->config);
    if (!it->kept && lb_job_writes_moved(j) && !lb_job_tries(j, it))
        return lb_job_plan_encoded(j, it);
    if (it->kept || (lb_job_has_target(j) && !it->fixed)) return true;
    return lb_job_decide(j, it);
}

/* ---- for users ----------------------------------------------------------- */

bool lb_quantize_file(lb_ctx *cx, const char *from, const char *to,
                      const lb_quantize_options *options)
{
    lb_quantize_options o;
    if (!cx) return false;
    if (!from || (!to && !(options && options->dry_run)))
        return lb_fail(cx, LB_E_NULL, "quantize_file: a path is NULL");
    if (!lb_job_options(cx, options, &o)) return false;
    return lb_job_run(cx, from, to, &o, NULL);
}
