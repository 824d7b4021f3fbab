/* move_file.c - conversions that move quantized arrays to another layout or
 * type: what each array becomes, and what is refused.
 *
 * Refusals are found while the output is written. It is then given up, and the
 * other arrays are only looked at, so that all refusals are known at the end.
 */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "io/jobs/job.h"

/* ---- the target ---------------------------------------------------------- */

static const char *const gguf = "gguf";

static bool is_layout(const char *name)
{
    for (int k = 0; lb_file_layouts[k]; k++)
        if (lb_file_layouts[k]->plan &&
            lb_layout_is(name, lb_file_layouts[k]->name))
            return true;
    return false;
}

bool lb_job_set_target(lb_ctx *cx, const lb_convert_options *c,
                       lb_quantize_options *o)
{
    const char *to = c->target;
    if (!to) return true;
    if (strcmp(to, gguf) == 0) {
        o->kind = gguf;
        return true;
    }
    if (is_layout(to)) {
        o->layout = to;
        if (!o->kind || strcmp(o->kind, "safetensors") == 0) return true;
        return lb_fail(cx, LB_E_ARG,
                       "layout %s is for safetensors files, not %s", to,
                       LB_NAME(o->kind));
    }
    const lb_format *f = lb_find_format(cx, to);
    return (f && strcmp(f->name, "dense") != 0) ||
           lb_fail(cx, LB_E_ARG,
                   "convert_file: unknown target '%s', which is not a layout, "
                   "a type or a kind of file%s",
                   LB_NAME(to), lb_formats_near(cx, to).s);
}

/* Programs know the tensors of a model by name, and GGUF has names of its own.
 */
bool lb_job_check_names(lb_job *j)
{
    const bool from = strcmp(j->f->r->kind->name, gguf) == 0;
    const bool to = j->o->kind && strcmp(j->o->kind, gguf) == 0;
    if (!j->convert->target) return true;
    const lb_model_config *config = lb_model_config_of(j->cx, j->f);
    if (!config) return false;
    if (from && j->o->directory)
        return lb_fail(j->cx, LB_E_UNSUPPORTED,
                       "%s: its tensors have the names of GGUF, and renaming "
                       "them for a model directory is not supported yet: write "
                       "a .safetensors file, which keeps the names",
                       LB_PATH(j->f->r->file[0]->path));
    if (to && !from && config->there)
        return lb_fail(
            j->cx, LB_E_UNSUPPORTED,
            "%s: its tensors have the names of a Hugging Face model, "
            "and renaming them for GGUF is not supported yet",
            LB_PATH(j->f->r->file[0]->path));
    return true;
}

/* The type of GGUF files with the fewest bytes that an array of that scheme may
 * fit into. */
static bool pick_block_type(lb_job *j, const lb_array *a, const lb_scheme *s,
                            lb_move_plan *p)
{
    const int last = a->shape.rank - 1;
    double least = 0;
    for (const lb_coding *c = lb_container_named(gguf)->coding; c->name; c++) {
        lb_scheme goal;
        const lb_format *f =
            c->dtype ? NULL : lb_file_block_format(j->cx, c->name);
        if (!f || !f->recode || a->shape.dim[last] % c->len) continue;
        const lb_move_target t = {.config = {.format = f->name}};
        const lb_array *to = lb_move_alloc(j->cx, a, &t);
        if (!to || !lb_scheme_of(to, &goal) || !goal.stores ||
            lb_move_excluded(s, &goal) ||
            goal.most - goal.least < s->most - s->least ||
            ((s->bias || s->zero_most > s->zero_least) && !goal.bias))
            continue;
        const double bytes = (double)c->size / (double)c->len;
        if (least > 0 && bytes >= least) continue;
        least = bytes;
        p->target = t;
    }
    lb_clear(j->cx);
    return least > 0;
}

static const char *set_plan(lb_job *j, lb_array *a, lb_move_plan *p)
{
    static const char none[] = "the target cannot store its type";
    const char *to = j->convert->target;
    lb_scheme s;
    const bool has = lb_scheme_of(a, &s);
    *p = (lb_move_plan){.target.config.block_size = j->convert->block_size};
    if (strcmp(to, gguf) == 0)
        return has && pick_block_type(j, a, &s, p) ? NULL : none;
    if (!is_layout(to)) {
        p->target.config.format = to;
        if (lb_can_quantize(j->cx, to)) p->encode = p->target.config;
        return NULL;
    }
    for (int k = 0; lb_file_layouts[k]; k++) {
        const lb_file_layout *l = lb_file_layouts[k];
        if (!l->moves || !lb_layout_is(to, l->name)) continue;
        const lb_moving m = {.a = a,
                             .scheme = has ? &s : NULL,
                             .block_size = j->convert->block_size,
                             .exact = j->convert->allow == LB_ALLOW_EXACT};
        if (l->moves(j->cx, &m, p)) return NULL;
    }
    return none;
}

/* ---- planning ------------------------------------------------------------ */

/* A few rows of an array tell its scheme: all of it need not be read, unless
 * they are a part of tiles. */
static lb_array *first_rows(lb_job *j, const lb_job_item *it)
{
    enum { ROWS = 32 };
    lb_array *some = NULL;
    const lb_group *g = it->group;
    const bool cuts = g->layout && g->layout->cuts && g->layout->cuts(g) &&
                      g->entry.rank > 1 && g->entry.dim[0] > ROWS;
    if (cuts) {
        some = lb_file_load_rows(j->cx, j->f, g->entry.name, 0, ROWS);
        if (!some || lb_size(some) == lb_shape_size(&some->store->shape))
            return some;
    }
    return lb_file_load(j->cx, j->f, g->entry.name);
}

/* An array as it will be written, without its values. */
static lb_array *result_of(lb_job *j, const lb_entry *e, const lb_move_plan *p)
{
    const lb_array like = {.dtype = e->dtype,
                           .shape = lb_shape_make(e->rank, e->dim)};
    if (!p->remake) return lb_move_alloc(j->cx, &like, &p->target);
    lb_array *a = lb_file_load(j->cx, j->f, e->name);
    return a ? p->remake(j->cx, a) : NULL;
}

static lb_verdict suits_moved(lb_job *j, const lb_entry *e,
                              const lb_move_plan *p)
{
    const lb_planned to = {.name = e->name, .array = result_of(j, e, p)};
    return to.array ? lb_saver_suits(j->cx, &to, j->o->kind, j->o->layout)
                    : LB_FAILED;
}

/* What the layout stores is why it does not store something else. */
static const char *unsuited(lb_job *j)
{
    static char none[] = "the output cannot store the result";
    for (int k = 0; j->o->layout && lb_file_layouts[k]; k++) {
        const lb_file_layout *l = lb_file_layouts[k];
        lb_bytes b = {.heap = j->cx->heap};
        if (!l->moves || !lb_layout_is(j->o->layout, l->name)) continue;
        lb_bytes_text(&b, "the layout stores only %s", l->stores);
        const char *text =
            b.failed ? NULL
                     : lb_arena_text(j->cx, &j->arena, (char *)b.at, b.n);
        lb_bytes_free(&b);
        if (text) return text;
    }
    return none;
}

/* Errors are reasons: a shape or a setting that the target does not have. */
static bool plan_move(lb_job *j, lb_job_item *it)
{
    const lb_entry *e = &it->group->entry;
    lb_array *a = first_rows(j, it);
    if (!a) return false;
    const char *why = set_plan(j, a, &it->plan);
    if (!why) {
        const lb_verdict v = suits_moved(j, e, &it->plan);
        if (v == LB_DONE) {
            it->moves = true;
            it->config = it->plan.target.config;
            return true;
        }
        if (lb_error_status(j->cx) == LB_E_NOMEM) return false;
        why = lb_error_status(j->cx) ? lb_error(j->cx) : unsuited(j);
    }
    it->refused = lb_arena_text(j->cx, &j->arena, why, strlen(why));
    it->decoded = true; /* planned as if it were; nothing will be written */
    j->refused++;
    lb_clear(j->cx);
    return it->refused != NULL;
}

/* Whether only a move can tell that it is stored as it is: zero points have as
 * many bits as codes in other programs, and a byte of a power of two has
 * several meanings. */
static bool needs_proof(const lb_array *a)
{
    const lb_store *s = a->store;
    for (int p = 0; p < LB_MAX_PARTS && s->fmt->part[p].name; p++) {
        const lb_array *part = s->part[p].a;
        if (part && (s->fmt->part[p].integers ||
                     (!part->store->data &&
                      strcmp(part->store->fmt->name, "e8m0") == 0)))
            return true;
    }
    return false;
}

/* What a few rows do not suit, the array does not suit either. */
static lb_verdict suits_stored(lb_job *j, const lb_job_item *it)
{
    lb_enter(j->cx);
    const lb_planned some = {.name = it->group->entry.name,
                             .array = first_rows(j, it)};
    lb_verdict v = LB_FAILED;
    if (some.array) v = lb_saver_suits(j->cx, &some, j->o->kind, j->o->layout);
    if (v == LB_DONE && lb_job_writes_moved(j) && needs_proof(some.array))
        v = LB_DECLINED;
    lb_leave(j->cx);
    return v == LB_DONE ? lb_job_suits_stored(j, &it->group->entry) : v;
}

/* Embeddings, which MLX quantizes, are floats in programs that replace linear
 * layers, and in some of them the output head is as well. */
static bool wants_floats(const lb_job *j, const lb_entry *e)
{
    const char *role = lb_name_role(e->name);
    for (int k = 0; j->o->directory && lb_file_layouts[k]; k++) {
        const lb_file_layout *l = lb_file_layouts[k];
        if (l->moves && l->refuses && lb_layout_is(j->convert->target, l->name))
            return lb_role_is_embedding(role) ||
                   (!l->packs_head && lb_role_is_head(role));
    }
    return false;
}

bool lb_job_plan_moved(lb_job *j, lb_job_item *it)
{
    const lb_entry *e = &it->group->entry;
    const char *to = j->convert->target;
    const bool type = !is_layout(to) && strcmp(to, gguf) != 0;
    it->decoded = wants_floats(j, e);
    if (it->decoded) return true;
    if (!type || strcmp(to, e->format) == 0) {
        const lb_verdict v = suits_stored(j, it);
        if (v == LB_FAILED && lb_error_status(j->cx) != LB_E_UNSUPPORTED)
            return false;
        lb_clear(j->cx);
        it->stored = v == LB_DONE;
    }
    if (it->stored) {
        it->config.format = e->format;
        it->layout = lb_file_layout_for(j->o->layout ? j->o->layout : "native",
                                        e->format);
        return true;
    }
    lb_enter(j->cx);
    const bool ok = plan_move(j, it);
    lb_leave(j->cx);
    return ok;
}

/* Layouts of one format have an arithmetic of their own to quantize to it. */
static bool encodes_moved(const lb_file_layout *l)
{
    return l->moves && !l->format;
}

bool lb_job_writes_moved(const lb_job *j)
{
    for (int k = 0; j->o->layout && lb_file_layouts[k]; k++)
        if (encodes_moved(lb_file_layouts[k]) &&
            lb_layout_is(j->o->layout, lb_file_layouts[k]->name))
            return true;
    return false;
}

/* Whether all arrays with scheme s fit into the scheme of `to`. */
static bool fits_always(const lb_array *to, const lb_scheme *s)
{
    lb_scheme goal;
    const int last = to->shape.rank - 1;
    if (last < 0 || !lb_scheme_of(to, &goal) || !goal.stores ||
        lb_move_excluded(s, &goal) ||
        goal.most - goal.least < s->most - s->least || (s->bias && !goal.bias))
        return false;
    return !s->g[last] || (goal.g[last] && s->g[last] % goal.g[last] == 0);
}

/* Why a layout does not store arrays that are quantized so, after a move. */
static const char *why_not(lb_ctx *cx, const lb_file_layout *l,
                           const lb_planned *p, const char *kind,
                           lb_move_plan *plan)
{
    static const char none[] = "the layout does not support it";
    lb_scheme s, goal;
    const lb_move_target t = {.config = *p->config};
    const lb_array like = {.dtype = p->dtype, .shape = p->shape};
    const lb_array *a = lb_move_alloc(cx, &like, &t);
    if (!a) return none;
    const lb_moving m = {.a = a, .scheme = lb_scheme_of(a, &s) ? &s : NULL};
    if (!m.scheme || !l->moves(cx, &m, plan)) return none;
    plan->encode = *p->config;
    const lb_planned to = {.name = p->name,
                           .array = lb_move_alloc(cx, a, &plan->target)};
    if (!to.array || !fits_always(to.array, &s) ||
        lb_saver_suits(cx, &to, kind, l->name) != LB_DONE)
        return none;
    if (lb_scheme_of(to.array, &goal) &&
        lb_scheme_bits(&goal) > lb_scheme_bits(&s))
        return "the layout would store its codes in more bits";
    return NULL;
}

bool lb_can_save(lb_ctx *cx, const lb_planned *p, const char *kind,
                 const char *layout)
{
    lb_move_plan plan;
    if (!cx || !p) return false;
    bool ok = lb_saver_suits(cx, p, kind, layout) == LB_DONE;
    if (ok || !p->config || p->array || !layout) return ok;
    lb_clear(cx);
    lb_enter(cx);
    for (int k = 0; !ok && lb_file_layouts[k]; k++)
        ok = encodes_moved(lb_file_layouts[k]) &&
             lb_layout_is(layout, lb_file_layouts[k]->name) &&
             !why_not(cx, lb_file_layouts[k], p, kind, &plan);
    lb_leave(cx);
    return ok;
}

static const char *plan_encoded(lb_job *j, lb_job_item *it)
{
    const char *last = "the layout does not support it";
    const lb_entry *e = &it->group->entry;
    const lb_model_config *c = lb_model_config_of(j->cx, j->f);
    const lb_planned p = {.name = e->name,
                          .dtype = e->dtype,
                          .shape = lb_shape_make(e->rank, e->dim),
                          .config = &it->config};
    for (int k = 0; c && lb_file_layouts[k]; k++) {
        const lb_file_layout *l = lb_file_layouts[k];
        if (!encodes_moved(l) || !lb_layout_is(j->o->layout, l->name)) continue;
        const char *why =
            l->refuses && j->o->directory ? l->refuses(c, e) : NULL;
        if (!why) why = why_not(j->cx, l, &p, j->o->kind, &it->plan);
        if (!why) return NULL;
        last = why;
    }
    return last;
}

bool lb_job_plan_encoded(lb_job *j, lb_job_item *it)
{
    lb_enter(j->cx);
    const char *why = plan_encoded(j, it);
    lb_leave(j->cx);
    if (lb_error_status(j->cx) == LB_E_NOMEM) return false;
    if (!why) it->config = it->plan.target.config;
    it->moves = !why;
    it->kept = why;
    it->fell_back = why != NULL;
    if (why && j->o->strict)
        return lb_fail(j->cx, LB_E_DENIED,
                       "cannot quantize '%s' as requested: %s",
                       LB_NAME(it->group->entry.name), why);
    lb_clear(j->cx);
    return true;
}

lb_array *lb_job_move_result(lb_job *j, const lb_job_item *it)
{
    return result_of(j, &it->group->entry, &it->plan);
}

/* ---- doing --------------------------------------------------------------- */

/* Adds the error to a reason. */
static void add_cost(lb_move_result *r)
{
    const size_t n = strlen(r->why);
    if (r->moved == LB_MOVED_REFUSED && r->error.n)
        snprintf(r->why + n, sizeof r->why - n, "%s nrmse %.2g",
                 r->rounds ? ":" : "; quantized again:",
                 lb_difference_nrmse(&r->error));
}

bool lb_job_move(lb_job *j, lb_job_item *it, const lb_transfer *t, lb_saver *s,
                 lb_move_result *r)
{
    *r = (lb_move_result){.moved = LB_MOVED_REFUSED};
    if (it->refused) {
        snprintf(r->why, sizeof r->why, "%s", it->refused);
        if (!lb_transfer_price(j->cx, t, &it->plan, r)) return false;
        add_cost(r);
        return true;
    }
    const lb_allow allow = j->convert ? j->convert->allow : LB_ALLOW_REQUANTIZE;
    if (!lb_transfer_moved(j->cx, t, &it->plan, allow, s, r)) return false;
    if (!j->convert) {
        r->moved = LB_MOVED_NONE;
        r->why[0] = 0;
    }
    if (r->moved == LB_MOVED_REFUSED) j->refused++;
    add_cost(r);
    return true;
}

void lb_job_deny_moves(lb_job *j, const char *name, const lb_move_result *r)
{
    lb_fail(j->cx, LB_E_DENIED,
            "%lld of %lld quantized arrays cannot be moved to %s, the first is "
            "'%s': %s",
            (long long)j->refused, (long long)j->quantized, j->convert->target,
            LB_NAME(name), r->why);
}
