/* test_law_compose.c - a primitive that is a shortcut for other calls
 * (lb_prim.compose) has their bits, for every sample, format, view, level and
 * number of threads; and it is a shortcut: eval runs for some of its samples.
 */
/* ctest: skip-tsan */
#include "laws.h"

static long shortcuts, compared;

static lb_array *pass_on(lb_ctx *cx, lb_layer *self, const lb_prim *prim, int n,
                         lb_array *const *in, const void *params)
{
    (void)self;
    return lb_bind(cx, prim, n, in, params);
}

/* Any layer sees what the primitive is composed of. */
static lb_array *composed(lb_ctx *cx, const lb_prim *prim, const sample *s,
                          lb_array *const *in)
{
    lb_layer layer = {.bind = pass_on};
    lb_push_layer(cx, &layer);
    lb_array *out = law_bind(cx, prim, s, in);
    lb_pop_layer(cx);
    return out;
}

static void compare(lb_ctx *cx, const lb_prim *prim, const sample *s,
                    lb_array *const *in, const char *more)
{
    lb_text why = {""};
    lb_array *want = composed(cx, prim, s, in);
    lb_array *got = law_bind(cx, prim, s, in);
    const bool ok = got && want && sample_same(got, want, &why);
    law_check(ok, s, "compose", more, got && want ? why.s : lb_error(cx));
    compared++;
    const char *text = lb_explain(cx, prim->name, in, s->n_in, &s->params);
    shortcuts += text && strstr(text, ": tiles") != NULL;
    lb_clear(cx);
}

/* One operand as a view, in each format; all in the same format. */
static void dressed(lb_ctx *cx, const lb_prim *prim, const sample *s,
                    const sample_format *f, const sample_view *v)
{
    lb_array *in[SAMPLE_MAX_IN];
    lb_enter(cx);
    bool ok = law_operands(cx, s, in), any = false;
    for (int i = 0; i < s->n_in && ok; i++) {
        if (!sample_takes(f, &s->in[i])) continue;
        lb_array *a = v->make(cx, f, &s->in[i], (uint64_t)i);
        lb_clear(cx); /* not every view exists in every shape */
        if (!a || !law_suits(s, i, a)) continue;
        in[i] = a;
        any = true;
    }
    char more[128];
    snprintf(more, sizeof more, "%s, %s", f->name, v->name);
    if (ok && any) compare(cx, prim, s, in, more);
    lb_leave(cx);
}

static void law_compose(lb_ctx *cx, const lb_prim *prim, const sample *s,
                        void *user)
{
    const sample_format_list *formats = user;
    lb_array *in[SAMPLE_MAX_IN];
    if (!prim->compose) return;
    lb_enter(cx);
    if (law_operands(cx, s, in)) compare(cx, prim, s, in, "dense");
    lb_leave(cx);
    for (const sample_view *v = sample_views; v->name; v++)
        dressed(cx, prim, s, &sample_dense, v);
    for (int k = 0; k < formats->n; k++)
        dressed(cx, prim, s, &formats->item[k], &sample_views[0]);
}

int main(int argc, char **argv)
{
    law_args(argc, argv);
    const char *levels[] = {"ref", NULL};
    int eager = 0, k = 0;
    for (int i = 0; i < 2; i++) {
        lb_ctx *cx = lb_open(&(lb_options){.threads = 1 + i, .isa = levels[i]});
        CHECK(cx && sample_add_outside(cx));
        sample_format_list formats = law_formats(cx);
        law_each(cx, SAMPLES_SMALL, law_compose, &formats);
        if (i) law_each(cx, SAMPLES_LARGE, law_compose, &formats);
        const lb_prim *prim;
        for (k = 0; (prim = lb_primitive_at(cx, k)); k++)
            eager += prim->compose && prim->eval;
        sample_formats_free(&formats);
        lb_close(cx);
    }
    CHECK(eager > 0 && shortcuts > compared / 3);
    printf("%ld calls, %ld of them shortcuts\n", compared, shortcuts);
    return check_report("law of composed primitives");
}
