/* test_law_threads.c - law 5: 1, 2 and 7 threads give identical bits, for every
 * sample and for larger ones that are split into several work units (otherwise
 * the law would be trivial). */
/* ctest: simde-nightly long=--all never-asan skip-arm64 */
#include "laws.h"

enum { CONTEXTS = 3 };
static const int threads[CONTEXTS] = {1, 2, 7};

/* Made by one thread, so that nothing depends on order. */
static bool is_serial(const char *prim)
{
    return strcmp(prim, "random_permutation") == 0;
}

/* An evaluated call has more than one unit, if there are threads for them. */
static void check_units(lb_ctx *cx, const sample *s, lb_array *const *in)
{
    const char *text = lb_explain(cx, s->prim, in, s->n_in, &s->params);
    const char *units = text ? strstr(text, " units") : NULL;
    long n = 0;
    for (const char *p = units; p && p > text && p[-1] != ' '; p--)
        n = strtol(p - 1, NULL, 10);
    const bool moved =
        text && (strstr(text, ": move") || strstr(text, ": composed"));
    law_check(moved || n > 1 || is_serial(s->prim), s, "threads",
              "one unit only", text ? text : lb_error(cx));
}

/* The same bits from every context. */
static void compare(lb_ctx *const *many, const lb_prim *prim, const sample *s,
                    lb_array *const *in, const char *format)
{
    lb_array *want = NULL;
    bool ok = true;
    law_run.combinations++;
    for (int i = 0; i < CONTEXTS && ok; i++) {
        lb_text why;
        char more[64];
        snprintf(more, sizeof more, "%s, %d threads", format, threads[i]);
        lb_enter(many[i]);
        lb_array *got = law_bind(many[i], prim, s, in);
        if (i == 0) want = lb_ref(got);
        ok = got && sample_same(got, want, &why);
        law_check(ok, s, "threads", more, got ? why.s : lb_error(many[i]));
        lb_clear(many[i]);
        lb_leave(many[i]);
    }
    lb_unref(want);
}

typedef struct contexts {
    lb_ctx *of[CONTEXTS];
    sample_format_list formats;
    bool large;
} contexts;

/* With all operands packed, where units share decoded data. */
static void packed(contexts *many, const lb_prim *prim, const sample *s,
                   const sample_format *f)
{
    lb_ctx *cx = many->of[0];
    lb_array *in[SAMPLE_MAX_IN];
    lb_enter(cx);
    bool ok = law_operands(cx, s, in), any = false;
    for (int i = 0; i < s->n_in && ok; i++) {
        if (!sample_takes(f, &s->in[i])) continue;
        lb_array *a = sample_views[0].make(cx, f, &s->in[i], (uint64_t)i);
        ok = a != NULL;
        if (!a || !law_suits(s, i, a)) continue;
        in[i] = a;
        any = true;
    }
    law_check(ok, s, "threads", f->name, lb_error(cx));
    if (ok && any) compare(many->of, prim, s, in, f->name);
    lb_clear(cx);
    lb_leave(cx);
}

/* A product with a precision: each has algorithms of its own. */
static bool is_rough(const sample *s)
{
    return strcmp(s->prim, "dot_general") == 0 &&
           s->params.dot.precision != LB_PRECISION_DEFAULT;
}

/* Every format with default settings is tried with the first sample of each
 * primitive that accepts it and is not too long, and with products of every
 * precision; of the rest (longer samples and variants) every twentieth. With
 * --few, a fifth of all these: for checking data races rather than bits. */
static bool is_tried(const sample *s, const sample_format *f, int k)
{
    enum { FORMATS = 128, LONG = 300000, EVERY = 20 };
    static char seen[FORMATS][32]; /* the last primitive tried with each */
    static int turn, first;
    const int every = law_run.few ? 5 : 1;
    bool takes = false;
    int64_t size = 0;
    for (int i = 0; i < s->n_in; i++) {
        takes = takes || sample_takes(f, &s->in[i]);
        size += lb_shape_size(&s->in[i].shape);
    }
    if (!takes || !f->fmt) return false;
    if (law_run.all) return true;
    if (is_rough(s) && !f->variant) return first++ % every == 0;
    if (k < FORMATS && !f->variant && size <= LONG &&
        strcmp(seen[k], s->prim) != 0) {
        snprintf(seen[k], sizeof seen[k], "%s", s->prim);
        return first++ % every == 0;
    }
    return turn++ % (EVERY * every) == 0;
}

static void law_threads(lb_ctx *cx, const lb_prim *prim, const sample *s,
                        void *user)
{
    contexts *many = user;
    lb_array *in[SAMPLE_MAX_IN];
    lb_enter(cx);
    const bool ok = law_operands(cx, s, in);
    law_check(ok, s, "threads", "operands", lb_error(cx));
    if (ok && many->large) check_units(many->of[CONTEXTS - 1], s, in);
    if (ok) compare(many->of, prim, s, in, "dense");
    lb_leave(cx);
    for (int k = 0; k < many->formats.n && many->large; k++)
        if (is_tried(s, &many->formats.item[k], k))
            packed(many, prim, s, &many->formats.item[k]);
}

int main(int argc, char **argv)
{
    law_args(argc, argv);
    contexts many = {.large = true};
    bool ok = true;
    for (int i = 0; i < CONTEXTS; i++) {
        many.of[i] = lb_open(&(lb_options){.threads = threads[i]});
        CHECK_EQ_I(lb_threads(many.of[i]), threads[i]);
        ok = ok && many.of[i] && sample_add_outside(many.of[i]);
    }
    CHECK(ok);
    if (ok) {
        many.formats = law_formats(many.of[0]);
        sample_remember(true);
        law_each(many.of[0], SAMPLES_LARGE, law_threads, &many);
        many.large = false;
        law_each(many.of[0], SAMPLES_SMALL, law_threads, &many);
        printf("%d formats and variants, %ld combinations on 1, 2 and 7 "
               "threads\n",
               many.formats.n, law_run.combinations);
    }
    sample_remember(false);
    sample_formats_free(&many.formats);
    for (int i = 0; i < CONTEXTS; i++)
        lb_close(many.of[i]);
    return check_report("law 5, threads");
}
