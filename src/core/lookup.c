/* lookup.c - primitives and formats by name (the built-in ones, then those
 * added to the context), and the dense policy of each format. */
#include <string.h>

#include "core/core.h"
#include "core/registry.h"

const lb_prim *lb_primitive_at(const lb_ctx *cx, int k)
{
    for (int i = 0; lb_builtin_prims[i]; i++, k--)
        if (k == 0) return lb_builtin_prims[i];
    return cx && k >= 0 && k < cx->prims.n ? cx->prims.item[k] : NULL;
}

const lb_format *lb_format_at(const lb_ctx *cx, int k)
{
    for (int i = 0; lb_builtin_formats[i]; i++, k--)
        if (k == 0) return lb_builtin_formats[i];
    return cx && k >= 0 && k < cx->formats.n ? cx->formats.item[k] : NULL;
}

const char *lb_format_name(const lb_ctx *cx, int k)
{
    const lb_format *f = lb_format_at(cx, k);
    return f ? f->name : NULL;
}

const lb_prim *lb_find_primitive(const lb_ctx *cx, const char *name)
{
    const lb_prim *p = NULL;
    for (int k = 0; name && (p = lb_primitive_at(cx, k)); k++)
        if (strcmp(p->name, name) == 0) break;
    return p;
}

const lb_format *lb_find_format(const lb_ctx *cx, const char *name)
{
    const lb_format *f = NULL;
    for (int k = 0; name && (f = lb_format_at(cx, k)); k++)
        if (strcmp(f->name, name) == 0) break;
    return f;
}

/* The user promised to keep and never to change the items; a list of pointers
 * to const is stored as one of plain pointers. */
static bool add(lb_ctx *cx, lb_list *list, const void *item)
{
    void *plain;
    memcpy(&plain, &item, sizeof plain);
    return lb_list_push(cx, list, plain);
}

bool lb_add_primitive(lb_ctx *cx, const lb_prim *p)
{
    if (!cx || !p || !p->name || !p->infer)
        return lb_fail(cx, LB_E_NULL,
                       "add_primitive: %s has no name or no infer",
                       p && p->name ? p->name : "the primitive");
    if (p->struct_size != sizeof *p)
        return lb_fail(cx, LB_E_ARG,
                       "add_primitive: %s has struct_size %zu, not %zu",
                       p->name, p->struct_size, sizeof *p);
    if (!p->move && (!p->plan || !p->eval))
        return lb_fail(cx, LB_E_NULL,
                       "add_primitive: %s has neither move nor plan and eval",
                       p->name);
    if (!p->plan != !p->eval)
        return lb_fail(cx, LB_E_NULL,
                       "add_primitive: %s has only one of plan and eval",
                       p->name);
    if (p->params_size > LB_MAX_PARAMS || p->n_in < -1)
        return lb_fail(cx, LB_E_SIZE,
                       "add_primitive: %s has %zu bytes of params (at most "
                       "%d) and %d operands",
                       p->name, p->params_size, LB_MAX_PARAMS, p->n_in);
    if (lb_find_primitive(cx, p->name))
        return lb_fail(cx, LB_E_ARG, "add_primitive: %s already exists",
                       p->name);
    return add(cx, &cx->prims, p);
}

/* lb_codes and others rely on these members: they must be consistent. */
static bool codes_make_sense(const lb_format *f)
{
    const lb_code_kind *k = &f->codes;
    if (!k->bits) return true;
    if (k->bits != 1 && k->bits != 2 && k->bits != 4 && k->bits != 8)
        return false;
    const int count = 1 << k->bits;
    return f->part[0].name && f->part[0].raw && k->step >= 1 &&
           k->least >= -128 && k->most >= k->least && k->most <= 255 &&
           (k->most - k->least) / k->step < count && k->filler >= 0 &&
           k->filler < count && (k->least >= 0 || k->most <= 127);
}

bool lb_add_format(lb_ctx *cx, const lb_format *f)
{
    if (!cx || !f || !f->name || !f->decode)
        return lb_fail(cx, LB_E_NULL, "add_format: %s has no name or no decode",
                       f && f->name ? f->name : "the format");
    if (f->struct_size != sizeof *f)
        return lb_fail(cx, LB_E_ARG,
                       "add_format: %s has struct_size %zu, not %zu", f->name,
                       f->struct_size, sizeof *f);
    if (!codes_make_sense(f))
        return lb_fail(cx, LB_E_ARG,
                       "add_format: %s has codes of %d bits from %d to %d by "
                       "%d, filler %d, in part %s",
                       f->name, f->codes.bits, f->codes.least, f->codes.most,
                       f->codes.step, f->codes.filler,
                       f->part[0].name ? f->part[0].name : "none");
    for (const lb_foreign *g = f->foreign; g && g->layout; g++)
        if (!g->part[0] || !g->load || !g->save)
            return lb_fail(cx, LB_E_NULL,
                           "add_format: layout %s of %s has no part, load or "
                           "save",
                           g->layout, f->name);
    if (f->layout && !f->part[0].name)
        return lb_fail(cx, LB_E_NULL,
                       "add_format: %s has a layout but no parts", f->name);
    if (f->layout && !f->encode_run && (!f->encode || !f->encode_plan))
        return lb_fail(cx, LB_E_NULL,
                       "add_format: %s has a layout but no encoder: it needs "
                       "encode_run, or encode_plan and encode",
                       f->name);
    if (lb_find_format(cx, f->name))
        return lb_fail(cx, LB_E_ARG, "add_format: %s already exists", f->name);
    return add(cx, &cx->formats, f);
}

/* ---- rules -------------------------------------------------------------- */

bool lb_add_rule(lb_ctx *cx, const char *format, const char *primitive,
                 lb_rule_fn *run)
{
    size_t got;
    if (!cx) return false;
    const lb_format *fmt = format ? lb_find_format(cx, format) : NULL;
    const lb_prim *prim = lb_find_primitive(cx, primitive);
    if (format && !fmt)
        return lb_fail(cx, LB_E_ARG, "add_rule: unknown format \"%.100s\"",
                       format);
    if (!prim)
        return lb_fail(cx, LB_E_ARG, "add_rule: unknown primitive \"%.100s\"",
                       primitive ? primitive : "");
    if (!run)
        return lb_fail(cx, LB_E_NULL, "add_rule: the rule for %s is NULL",
                       prim->name);
    lb_added_rule *r = lb_heap_alloc(cx->heap, sizeof *r, &got);
    if (!r) return lb_fail(cx, LB_E_NOMEM, "out of memory");
    *r = (lb_added_rule){.fmt = fmt, .prim = prim, .run = run, .got = got};
    if (lb_list_push(cx, &cx->rules, r)) return true;
    lb_heap_free(cx->heap, r, got);
    return false;
}

bool lb_has_rules(const lb_ctx *cx, const lb_format *fmt)
{
    for (int64_t i = 0; i < cx->rules.n; i++) {
        const lb_added_rule *r = cx->rules.item[i];
        if (!r->fmt || r->fmt == fmt) return true;
    }
    return fmt->rules != NULL;
}

/* ---- policies ----------------------------------------------------------- */

/* List items are pointers: they point into this table. */
static const lb_dense_policy policies[] = {LB_DENSE_DEFAULT, LB_DENSE_ALLOW,
                                           LB_DENSE_LOG, LB_DENSE_DENY};

lb_dense_policy lb_dense_of(const lb_ctx *cx, const lb_format *fmt)
{
    for (int64_t i = 0; i < cx->dense_policies.n; i++) {
        const lb_dense_policy *p = cx->dense_policies.item[i];
        if (cx->dense_formats.item[i] != fmt) continue;
        return *p == LB_DENSE_DEFAULT ? cx->dense : *p;
    }
    return cx->dense;
}

bool lb_set_dense(lb_ctx *cx, const char *format, lb_dense_policy policy)
{
    if (!cx) return false;
    const lb_format *fmt = lb_find_format(cx, format);
    if (!fmt)
        return lb_fail(cx, LB_E_ARG, "set_dense: unknown format \"%.100s\"",
                       format ? format : "");
    if ((unsigned)policy > LB_DENSE_DENY)
        return lb_fail(cx, LB_E_ARG, "set_dense: %d is not a policy",
                       (int)policy);
    for (int64_t i = 0; i < cx->dense_policies.n; i++)
        if (cx->dense_formats.item[i] == fmt) {
            memcpy(&cx->dense_policies.item[i],
                   &(const lb_dense_policy *){&policies[policy]},
                   sizeof(void *));
            return true;
        }
    if (!add(cx, &cx->dense_formats, fmt)) return false;
    if (add(cx, &cx->dense_policies, &policies[policy])) return true;
    cx->dense_formats.n--;
    return false;
}
