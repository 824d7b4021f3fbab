/* test_law_threads.c - law 5: 1, 2 and 7 threads give identical bits, for
 * every sample and for larger ones, which must be cut into several units or
 * the law would say nothing. */
#include "laws.h"

enum { CONTEXTS = 3 };
static const int threads[CONTEXTS] = {1, 2, 7};

/* Made by one thread, so that nothing depends on order. */
static bool is_serial(const char *prim)
{
    return strcmp(prim, "random_permutation") == 0;
}

/* A call that is evaluated has more than one unit, where there are threads for
 * them. */
static void check_units(lb_ctx *cx, const sample *s, lb_array *const *in)
{
    const char *text = lb_explain(cx, s->prim, in, s->n_in, &s->params);
    const char *units = text ? strstr(text, " units") : NULL;
    long n = 0;
    for (const char *p = units; p && p > text && p[-1] != ' '; p--)
        n = strtol(p - 1, NULL, 10);
    const bool moved = text && strstr(text, ": move");
    law_check(moved || n > 1 || is_serial(s->prim), s, "threads",
              "one unit only", text ? text : lb_error(cx));
}

/* The same bits from every context. */
static void compare(lb_ctx *const *many, const lb_prim *prim, const sample *s,
                    lb_array *const *in, const char *format)
{
    lb_array *want = NULL;
    bool ok = true;
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

static void law_threads(lb_ctx *cx, const lb_prim *prim, const sample *s,
                        void *user)
{
    lb_ctx *const *many = user;
    lb_array *in[SAMPLE_MAX_IN];
    const bool large = !many[CONTEXTS];
    lb_enter(cx);
    bool ok = law_operands(cx, s, in);
    law_check(ok, s, "threads", "operands", lb_error(cx));
    if (ok && large) check_units(many[CONTEXTS - 1], s, in);
    if (ok) compare(many, prim, s, in, "dense");
    /* And packed, where units decode what they share. */
    bool packed = false;
    for (int i = 0; i < s->n_in && ok && large; i++) {
        if (!sample_toys->takes(s->in[i].dtype)) continue;
        in[i] = sample_views[0].make(cx, sample_toys, &s->in[i], (uint64_t)i);
        ok = packed = in[i] != NULL;
    }
    if (ok && packed) compare(many, prim, s, in, sample_toys->name);
    law_check(ok, s, "threads", "operands", lb_error(cx));
    lb_leave(cx);
}

int main(void)
{
    /* The last says which samples these are: NULL for large ones. */
    lb_ctx *many[CONTEXTS + 1] = {0};
    for (int i = 0; i < CONTEXTS; i++) {
        many[i] = lb_open(&(lb_options){.threads = threads[i]});
        CHECK_EQ_I(lb_threads(many[i]), threads[i]);
    }
    if (many[0] && many[1] && many[2]) {
        law_each(many[0], SAMPLES_LARGE, law_threads, many);
        many[CONTEXTS] = many[0];
        law_each(many[0], SAMPLES_SMALL, law_threads, many);
    }
    for (int i = 0; i < CONTEXTS; i++)
        lb_close(many[i]);
    return check_report("law 5, threads");
}
