/* laws.h - the laws as loops over the registry's tables.
 *
 * A law is a function of one sample; law_each calls it for every sample of
 * every primitive that the context knows. This is a header and not a .c file so
 * that checks count in the program that runs them.
 *
 * `test_law_x 0/2` runs the first half of the primitives, `--all` also the
 * cases that are skipped by default (see law_thins), and `--few` fewer cases if
 * the law supports that.
 */
#ifndef LB_LAWS_H
#define LB_LAWS_H

#include <stdlib.h>

#include "check.h"
#include "dense_log.h"
#include "samples.h"

typedef void law_fn(lb_ctx *cx, const lb_prim *prim, const sample *s,
                    void *user);

static struct {
    int share, shares;
    bool all, few;
    long combinations, of_pairs, by_rule;
} law_run = {.shares = 1};

static inline void law_args(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--all") == 0)
            law_run.all = true;
        else if (strcmp(argv[i], "--few") == 0)
            law_run.few = true;
        else if (sscanf(argv[i], "%d/%d", &law_run.share, &law_run.shares) !=
                     2 ||
                 law_run.share < 0 || law_run.share >= law_run.shares) {
            fprintf(stderr, "usage: %s [K/N] [--all | --few]\n", argv[0]);
            exit(2);
        }
    }
}

/* A failure of a law: the sample, and details. */
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
        if (k % law_run.shares != law_run.share) continue;
        sample_list list = samples_of(prim->name, size);
        if (check_fails(list.n > 0))
            fprintf(stderr, "%s has no sample\n", prim->name);
        for (int i = 0; i < list.n; i++)
            law(cx, prim, &list.item[i], user);
        samples_free(&list);
    }
}

/* Formats that cx knows; one without encoder and constructor is a failure. */
static inline sample_format_list law_formats(const lb_ctx *cx)
{
    sample_format_list list = sample_formats_of(cx);
    const char *lost = sample_lost_variants(cx).s;
    if (check_fails(!*lost))
        fprintf(stderr, "variants of unknown formats: %s\n", lost);
    int n = 0;
    for (int i = 0; i < list.n; i++) {
        if (check_fails(list.item[i].make != NULL))
            fprintf(stderr, "%s has neither an encoder nor a constructor\n",
                    list.item[i].name);
        else
            list.item[n++] = list.item[i];
    }
    list.n = n;
    return list;
}

/* The first built-in format whose arrays have scales. */
static inline const sample_format *law_scaled(void)
{
    static sample_format f;
    sample_format_list list = sample_formats_of(NULL);
    for (int i = 0; i < list.n && !f.fmt; i++) {
        const lb_format *fmt = list.item[i].fmt;
        for (int p = 0; fmt && p < LB_MAX_PARTS; p++)
            if (fmt->part[p].scale && list.item[i].make) f = list.item[i];
    }
    sample_formats_free(&list);
    return &f;
}

/* The operands as plain arrays, dense if possible, in the open scope. */
static inline bool law_operands(lb_ctx *cx, const sample *s, lb_array **in)
{
    for (int i = 0; i < s->n_in; i++) {
        const sample_format *f = s->in[i].scaled ? law_scaled() : &sample_dense;
        in[i] = sample_views[0].make(cx, f, &s->in[i], (uint64_t)i);
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

/* Whether operand i of s may be a, an array in some format. */
static inline bool law_suits(const sample *s, int i, const lb_array *a)
{
    return !s->in[i].scaled || sample_has_scales(a);
}

/* ---- law 3: p(q) == p(materialize(q)) ------------------------------------ */

/* How an operand is stored; f NULL: plain. */
typedef struct law_dress {
    const sample_format *f;
    const sample_view *v;
} law_dress;

/* The plain array equivalent to operand a. A conversion that only changes the
 * logical dtype decodes again, so its operand is the stored value in the
 * requested dtype. */
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

/* |a| + max |a|, as f32. */
static inline lb_array *law_size_of(lb_ctx *cx, lb_array *a)
{
    a = lb_abs(cx, lb_convert(cx, a, LB_F32));
    return lb_add(cx, a, lb_reduce_max(cx, a, NULL));
}

/* The call uses a format's rule, or a kernel that reads packed codes. */
static inline bool law_own_way(const char *explained)
{
    return strstr(explained, ": rule") || strstr(explained, "tiles, gemv q") ||
           strstr(explained, "tiles, dot f32") ||
           strstr(explained, "tiles, attend codes");
}

/* What a result of attention is relative to: twice the largest value. */
static inline lb_array *law_largest(lb_ctx *cx, lb_array *v, lb_array *got)
{
    lb_array *zeros = lb_zeros(cx, LB_F32, lb_shape_of(got));
    return lb_materialize(
        cx, lb_add(cx, zeros, lb_reduce_max(cx, law_size_of(cx, v), NULL)));
}

/* Error bound of a product, relative to sum (|x| + max |x|) (|w| + max |w|): 64
 * roundings of f32 for another order of summation; quantization steps of x, and
 * of w, if these may be large. A product takes what is stored, so an operand of
 * 16 bits adds what materialize rounds. */
static inline double law_off(const sample *s, bool product)
{
    const lb_precision p =
        product ? s->params.dot.precision : LB_PRECISION_HIGHEST;
    double off = p == LB_PRECISION_FASTEST ? 0x1p-6
                 : p == LB_PRECISION_FAST  ? 0x1p-12
                                           : 0x1p-18;
    for (int i = 0; i < 2; i++)
        off += s->in[i].dtype == LB_BF16  ? 0x1p-8
               : s->in[i].dtype == LB_F16 ? 0x1p-11
                                          : 0;
    return off;
}

/* Such algorithms may sum or scale in another order, followed by one rounding
 * to the result's dtype. */
static inline bool law_close(lb_ctx *cx, const lb_prim *prim, const sample *s,
                             lb_array *const *as, lb_array *const *in,
                             lb_array *got, lb_array *want, lb_text *why)
{
    const char *text = lb_explain(cx, prim->name, in, s->n_in, &s->params);
    const bool dot = strcmp(prim->name, "dot_general") == 0;
    const bool conv = strcmp(prim->name, "conv_general_dilated") == 0;
    const bool attends = strcmp(prim->name, "attention") == 0;
    const double part = law_off(s, dot);
    if ((!dot && !conv && !attends) || !got || !want || !text ||
        (part == 0x1p-18 && !law_own_way(text)))
        return false;
    law_run.by_rule++;
    sample_params p = s->params;
    if (dot)
        p.dot.preferred = LB_F32, p.dot.precision = LB_PRECISION_HIGHEST;
    else if (conv)
        p.conv.preferred = LB_F32;
    lb_array *size[] = {law_size_of(cx, as[0]), law_size_of(cx, as[1])};
    lb_array *sum =
        attends ? law_largest(cx, as[2], got) : lb_bind(cx, prim, 2, size, &p);
    lb_array *x = lb_convert(cx, got, LB_F32),
             *y = lb_convert(cx, want, LB_F32);
    x = lb_materialize(cx, x);
    y = lb_materialize(cx, y);
    if (!sum || !x || !y || !lb_shape_equal(&x->shape, &y->shape) ||
        got->dtype != want->dtype)
        return false;
    const float *g = lb_data(x), *w = lb_data(y), *most = lb_data(sum);
    const double unit = got->dtype == LB_BF16  ? 0x1p-8
                        : got->dtype == LB_F16 ? 0x1p-11
                                               : 0x1p-24;
    for (int64_t i = 0; i < lb_size(x); i++) {
        const double off = fabs((double)g[i] - (double)w[i]);
        if (g[i] == w[i] || (isnan(g[i]) && isnan(w[i]))) continue;
        const double may = part * (double)most[i] + unit * fabs((double)w[i]);
        if (off <= may) continue;
        snprintf(why->s, sizeof why->s, "element %lld is %g, not %g",
                 (long long)i, (double)g[i], (double)w[i]);
        return false;
    }
    return true;
}

static inline lb_text law_text(const sample *s, const law_dress *dress)
{
    lb_text t = {"plain"};
    size_t at = 0;
    for (int i = 0; i < s->n_in && at < sizeof t.s; i++)
        if (dress[i].f)
            at += (size_t)snprintf(t.s + at, sizeof t.s - at,
                                   "%soperand %d %s, %s", at ? "; " : "", i,
                                   dress[i].f->name, dress[i].v->name);
    return t;
}

/* Stored operands against plain ones. Operands with a dtype or shape that the
 * format or view does not support stay plain; if all do, nothing is checked. */
static inline void law_transparent(lb_ctx *cx, const lb_prim *prim,
                                   const sample *s, const law_dress *dress)
{
    lb_array *in[SAMPLE_MAX_IN], *as[SAMPLE_MAX_IN];
    lb_text why = {""};
    int dressed = 0;
    bool wanted = !s->n_in;
    for (int i = 0; i < s->n_in; i++)
        wanted = wanted || (dress[i].f && sample_takes(dress[i].f, &s->in[i]));
    if (!wanted || check_thins()) return;
    lb_enter(cx);
    bool ok = law_operands(cx, s, in);
    for (int i = 0; i < s->n_in && ok; i++) {
        as[i] = in[i];
        if (!dress[i].f || !sample_takes(dress[i].f, &s->in[i])) continue;
        lb_array *a =
            dress[i].v->make(cx, dress[i].f, &s->in[i], (uint64_t)i + 7);
        ok = a ? lb_shape_equal(&a->shape, &s->in[i].shape) &&
                     a->dtype == s->in[i].dtype
               : !lb_error_status(cx);
        if (!a || !ok) continue;
        in[i] = a;
        as[i] = law_counts_as(cx, prim, s, a);
        dressed++;
    }
    snprintf(why.s, sizeof why.s, "%s", ok ? "" : lb_error(cx));
    if (ok && (dressed || !s->n_in)) {
        law_run.combinations++;
        lb_array *want = law_bind(cx, prim, s, as);
        lb_array *got = law_bind(cx, prim, s, in);
        ok = want && sample_same(got, want, &why);
        if (lb_error_status(cx))
            snprintf(why.s, sizeof why.s, "%s", lb_error(cx));
        else if (!ok)
            ok = law_close(cx, prim, s, as, in, got, want, &why);
    }
    law_check(ok, s, "transparency", law_text(s, dress).s, why.s);
    lb_clear(cx);
    lb_leave(cx);
}

/* Operands that must have scales have no plain equivalent: compare the view of
 * the result with the result of the view. */
static inline void law_of_scales(lb_ctx *cx, const lb_prim *prim,
                                 const sample *s, const law_dress *dress)
{
    lb_text why = {""};
    if (!sample_takes(dress->f, &s->in[0]) || check_thins()) return;
    lb_enter(cx);
    lb_array *a = dress->v->make(cx, dress->f, &s->in[0], 7);
    bool ok = a || !lb_error_status(cx);
    if (a && law_suits(s, 0, a)) {
        law_run.combinations++;
        lb_array *whole = lb_view(cx, a);
        whole->shape = a->store->shape;
        whole->offset = 0;
        lb_row_major(&whole->shape, whole->stride);
        lb_array *want = law_bind(cx, prim, s, &whole);
        want = want ? lb_view(cx, want) : NULL;
        if (want) {
            want->shape = a->shape;
            want->offset = a->offset;
            memcpy(want->stride, a->stride, sizeof a->stride);
        }
        ok = want && sample_same(law_bind(cx, prim, s, &a), want, &why);
    }
    law_check(ok, s, "transparency", law_text(s, dress).s,
              lb_error_status(cx) ? lb_error(cx) : why.s);
    lb_clear(cx);
    lb_leave(cx);
}

/* Which views a run skips. Dense runs with all of them, and so does every
 * format with default settings for f32 and i8 operands of up to 300 elements.
 * Other dtypes run with every second view, larger operands with every third,
 * variants with every sixth of those. The first view changes from sample to
 * sample. */
static inline bool law_thins(const sample_format *f, const sample *s, int view)
{
    enum { SMALL = 300 };
    static const sample *last;
    static int turn;
    bool large = false, other = false;
    if (last != s) turn++;
    last = s;
    if (law_run.all || !f->fmt) return false;
    for (int i = 0; i < s->n_in; i++) {
        const lb_dtype d = s->in[i].dtype;
        large = large || lb_shape_size(&s->in[i].shape) > SMALL;
        other = other || d == LB_F16 || d == LB_BF16 || d == LB_F64;
    }
    const int every = f->variant ? 6 : other ? 2 : 1;
    return (view + turn) % (every * (large ? 3 : 1)) != 0;
}

static inline void law_transparency(lb_ctx *cx, const lb_prim *prim,
                                    const sample *s, void *user)
{
    const sample_format *f = user;
    for (int k = 0; sample_views[k].name; k++) {
        law_dress dress[SAMPLE_MAX_IN] = {{NULL, NULL}};
        const law_dress d = {f, &sample_views[k]};
        if (law_thins(f, s, k)) continue;
        if (s->n_in && s->in[0].scaled) {
            if (f->fmt) law_of_scales(cx, prim, s, &d);
            continue;
        }
        for (int i = 0; i < s->n_in; i++) {
            dress[i] = d;
            law_transparent(cx, prim, s, dress);
            dress[i].f = NULL;
        }
        for (int i = 0; i < s->n_in; i++)
            dress[i] = d;
        if (s->n_in != 1) law_transparent(cx, prim, s, dress);
        if (!s->n_in) break;
    }
}

#endif
