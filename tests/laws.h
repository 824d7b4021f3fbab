/* laws.h - the laws as loops over the registry's tables.
 *
 * A law is a function of one sample; law_each calls it for every sample of
 * every primitive that the context knows. Here and not in a .c file so that
 * checks count in the program that runs them.
 */
#ifndef LB_LAWS_H
#define LB_LAWS_H

#include <stdlib.h>

#include "check.h"
#include "samples.h"

typedef void law_fn(lb_ctx *cx, const lb_prim *prim, const sample *s,
                    void *user);

/* A failure of a law: which sample, and more about it. */
static inline void law_check(bool ok, const sample *s, const char *law,
                             const char *more, const char *why)
{
    if (check_fails(ok))
        fprintf(stderr, "%s: %s: %s: %s\n", law, sample_text(s).s, more, why);
}

static inline void law_each(lb_ctx *cx, sample_size size, law_fn *law,
                            void *user)
{
    const lb_prim *prim;
    for (int k = 0; (prim = lb_primitive_at(cx, k)); k++) {
        sample_list list = samples_of(prim->name, size);
        if (check_fails(list.n > 0))
            fprintf(stderr, "%s has no sample\n", prim->name);
        for (int i = 0; i < list.n; i++)
            law(cx, prim, &list.item[i], user);
        samples_free(&list);
    }
}

/* The operands as plain dense arrays, in the open scope. */
static inline bool law_operands(lb_ctx *cx, const sample *s, lb_array **in)
{
    for (int i = 0; i < s->n_in; i++) {
        in[i] = sample_views[0].make(cx, sample_format_named("dense"),
                                     &s->in[i], (uint64_t)i);
        if (!in[i]) return false;
    }
    return true;
}

static inline lb_array *law_bind(lb_ctx *cx, const lb_prim *prim,
                                 const sample *s, lb_array *const *in)
{
    return lb_bind(cx, prim, s->n_in, in,
                   prim->params_size ? &s->params : NULL);
}

/* ---- law 3: p(q) == p(materialize(q)) ------------------------------------ */

/* What operand a counts as: the plain array of its elements. A conversion
 * that only changes a label decodes anew, so its operand counts as what is
 * stored, in the dtype that is asked for. */
static inline lb_array *law_counts_as(lb_ctx *cx, const lb_prim *prim,
                                      const sample *s, const lb_array *a)
{
    lb_array v = *a;
    if (strcmp(prim->name, "convert_element_type") == 0 &&
        a->store->fmt->relabel &&
        sample_kind_of(s->params.convert.dtype) == KIND_F)
        v.dtype = s->params.convert.dtype;
    return sample_plain(cx, &v);
}

/* Operands from <= i < to are such a view, the others plain. */
static inline void law_transparent(lb_ctx *cx, const lb_prim *prim,
                                   const sample *s, const sample_format *f,
                                   const sample_view *v, int from, int to)
{
    lb_array *in[SAMPLE_MAX_IN], *as[SAMPLE_MAX_IN];
    lb_text why = {""};
    char more[192];
    bool takes = !s->n_in;
    for (int i = from; i < to; i++)
        takes = takes || f->takes(s->in[i].dtype);
    if (!takes) return;
    lb_enter(cx);
    bool ok = law_operands(cx, s, in);
    for (int i = 0; i < s->n_in && ok; i++) {
        as[i] = in[i];
        if (i < from || i >= to || !f->takes(s->in[i].dtype)) continue;
        in[i] = v->make(cx, f, &s->in[i], (uint64_t)i + 7);
        ok = in[i] && lb_shape_equal(&in[i]->shape, &s->in[i].shape) &&
             in[i]->dtype == s->in[i].dtype;
        as[i] = in[i] ? law_counts_as(cx, prim, s, in[i]) : NULL;
    }
    snprintf(more, sizeof more, "%s, %s, operands %d to %d", f->name, v->name,
             from, to - 1);
    if (ok) {
        lb_array *want = law_bind(cx, prim, s, as);
        lb_array *got = law_bind(cx, prim, s, in);
        ok = want && sample_same(got, want, &why);
        if (!*why.s) snprintf(why.s, sizeof why.s, "%s", lb_error(cx));
    } else { /* no such view of that shape, which is not an error */
        ok = !lb_error_status(cx);
        snprintf(why.s, sizeof why.s, "%s", lb_error(cx));
    }
    law_check(ok, s, "transparency", more, why.s);
    lb_clear(cx);
    lb_leave(cx);
}

static inline void law_transparency(lb_ctx *cx, const lb_prim *prim,
                                    const sample *s, void *user)
{
    const sample_format *f = user;
    for (const sample_view *v = sample_views; v->name; v++) {
        for (int i = 0; i < s->n_in; i++)
            law_transparent(cx, prim, s, f, v, i, i + 1);
        if (s->n_in != 1) law_transparent(cx, prim, s, f, v, 0, s->n_in);
        if (!s->n_in) break;
    }
}

#endif
