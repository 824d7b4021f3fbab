/* test_law_memory.c - law 9: whichever allocation fails, there is an error
 * message, nothing is leaked, and the next try works.
 *
 * First lb_open and every sample and function alone, with the k-th allocation
 * failing for k = 1, 2, ... until the call succeeds; then all of them in one
 * context and one scope, so that its lists grow, with every k-th failing.
 */
/* ctest: long=--all skip-tsan skip-ref skip-arm64 */
#include "laws.h"
#include "random_program.h"
#include "scenario.h"

/* ---- a failing allocator ------------------------------------------------ */

typedef struct meter {
    long count;   /* of allocations */
    long fail_at; /* this one; 0: none */
    long every;   /* and each index that this divides; 0: none */
    long failed;
    long blocks;
    size_t bytes;
} meter;

static void *meter_alloc(void *user, size_t size, size_t align)
{
    meter *m = user;
    m->count++;
    if (m->count == m->fail_at || (m->every && m->count % m->every == 0)) {
        m->failed++;
        return NULL;
    }
    void *p = NULL;
    if (posix_memalign(&p, align < sizeof p ? sizeof p : align, size))
        return NULL;
    m->blocks++;
    m->bytes += size;
    return p;
}

static void meter_free(void *user, void *p, size_t size)
{
    meter *m = user;
    m->blocks--;
    m->bytes -= size;
    free(p);
}

static lb_ctx *open_with(meter *m, int threads)
{
    const lb_allocator a = {meter_alloc, meter_free, m};
    return lb_open(
        &(lb_options){.threads = threads, .allocator = &a, .keep_bytes = -1});
}

static void check_closed(const meter *m)
{
    CHECK_EQ_I(m->blocks, 0);
    CHECK_EQ_I(m->bytes, 0);
}

/* The message of a failed allocation. */
static bool says_so(const lb_ctx *cx)
{
    return lb_error_status(cx) == LB_E_NOMEM &&
           strncmp(lb_error(cx), "out of memory", 13) == 0;
}

/* ---- opening ------------------------------------------------------------ */

static void failing_open(int threads)
{
    meter m = {0};
    lb_ctx *cx = NULL;
    long k = 0;
    while (!cx && ++k < 1000) {
        m.fail_at = m.count + k;
        m.failed = 0;
        cx = open_with(&m, threads);
        CHECK(!cx == (m.failed != 0));
        if (!cx) check_closed(&m);
    }
    CHECK(k > 3);
    m.fail_at = 0;
    CHECK_EQ_I(lb_size(lb_scalar(cx, 1)), 1);
    lb_close(cx);
    check_closed(&m);
}

/* ---- one call at a time ------------------------------------------------- */

/* A call: a sample's primitive or a function. */
typedef struct deed {
    const lb_prim *prim;
    const sample *s;
    lb_array *const *in;
    int k;
    const char *name;
    random_program *p;
} deed;

/* Two runs of a random program: the one that traces it, and another. */
static lb_array *run_twice(lb_ctx *cx, const deed *d)
{
    lb_array *out[PROGRAM_RESULTS] = {NULL};
    const lb_fn_many fn =
        d->k % 2 ? random_program_gradients : random_program_run;
    lb_compiled *f = lb_compile_many(cx, fn, d->p->n_results, d->p, NULL);
    lb_enter(cx);
    bool ok = lb_run_many(f, d->in, d->p->n_args, out);
    ok = ok && lb_run_many(f, d->in, d->p->n_args, out);
    lb_compiled_close(f);
    lb_keep(cx, ok ? out[0] : NULL);
    lb_leave(cx);
    return ok ? out[0] : NULL;
}

static lb_array *perform(lb_ctx *cx, deed *d)
{
    if (d->p) return run_twice(cx, d);
    if (d->prim) return law_bind(cx, d->prim, d->s, d->in);
    return scenario_run(cx, d->k, &d->name);
}

static void deed_check(bool ok, const deed *d, long k, const char *what,
                       const char *why)
{
    if (check_fails(ok))
        fprintf(stderr, "memory: %s: allocation %ld fails: %s: %s\n",
                d->s ? sample_text(d->s).s : d->name, k, what, why);
    if (!ok && d->p) random_program_print(d->p, d->in);
}

/* Fails each allocation of a call in turn; false if there is no such call. */
static bool failing_call(lb_ctx *cx, meter *m, deed *d)
{
    lb_text why = {""};
    lb_enter(cx);
    lb_array *want = perform(cx, d);
    lb_enter(cx); /* lists of the context grow, also that of scopes */
    perform(cx, d);
    lb_leave(cx);
    if (!want && !d->prim && !d->name) {
        lb_leave(cx);
        return false;
    }
    deed_check(want != NULL, d, 0, "no result", lb_error(cx));
    const size_t before = m->bytes;
    bool failed = want != NULL;
    for (long k = 1; failed && k < 1000; k++) {
        m->fail_at = m->count + k;
        m->failed = 0;
        lb_enter(cx);
        lb_array *got = perform(cx, d);
        m->fail_at = 0;
        failed = m->failed != 0;
        if (failed) deed_check(says_so(cx), d, k, "not said", lb_error(cx));
        if (failed && !got) /* the scope has nothing to free */
            deed_check(m->bytes == before, d, k, "litter", "bytes are left");
        if (!failed)
            deed_check(sample_same(got, want, &why), d, k, "result", why.s);
        lb_leave(cx);
        deed_check(m->bytes == before, d, k, "leak", "bytes are left");
        lb_clear(cx);
        if (!failed) continue;
        lb_enter(cx);
        got = perform(cx, d);
        deed_check(sample_same(got, want, &why), d, k, "next try", why.s);
        lb_clear(cx);
        lb_leave(cx);
    }
    lb_clear(cx);
    lb_leave(cx);
    return true;
}

typedef struct packed_law {
    meter *m;
    sample_format_list formats;
} packed_law;

static void law_memory(lb_ctx *cx, const lb_prim *prim, const sample *s,
                       void *user)
{
    lb_array *in[SAMPLE_MAX_IN];
    lb_enter(cx);
    deed d = {.prim = prim, .s = s, .in = in};
    law_run.combinations++;
    if (law_operands(cx, s, in)) failing_call(cx, user, &d);
    lb_leave(cx);
}

/* The same for packed operands, whose blocks are moved part by part: plain and
 * transposed, in every format; for variants, one of them in turn. */
static void law_memory_packed(lb_ctx *cx, const lb_prim *prim, const sample *s,
                              void *user)
{
    enum { EVERY = 16 };
    static int turn;
    packed_law *law = user;
    const sample_view *transposed = &sample_views[1];
    for (int k = 0; k < law->formats.n; k++) {
        const sample_format *f = &law->formats.item[k];
        if (!f->fmt) continue;
        if (f->variant && !law_run.all && turn++ % EVERY) continue;
        for (const sample_view *v = sample_views; v <= transposed; v++) {
            lb_array *in[SAMPLE_MAX_IN];
            bool packed = false;
            if (check_thins()) continue;
            lb_enter(cx);
            deed d = {.prim = prim, .s = s, .in = in};
            bool ok = law_operands(cx, s, in);
            for (int i = 0; i < s->n_in && ok; i++) {
                if (!sample_takes(f, &s->in[i])) continue;
                lb_array *a = v->make(cx, f, &s->in[i], (uint64_t)i);
                if (!a || !law_suits(s, i, a)) continue;
                in[i] = a;
                packed = true;
            }
            law_check(!lb_error_status(cx), s, "memory", f->name, lb_error(cx));
            if (ok && packed && !lb_error_status(cx)) {
                law_run.combinations++;
                failing_call(cx, law->m, &d);
            }
            lb_clear(cx);
            lb_leave(cx);
        }
    }
}

/* ---- compiled functions ------------------------------------------------- */

/* Random programs, compiled; those that can run. */
static void failing_programs(lb_ctx *cx, meter *m,
                             const sample_format_list *formats)
{
    const int most = law_run.all ? 3000 : 60;
    for (int k = 0; k < most; k++) {
        random_program p;
        lb_array *in[PROGRAM_VALUES];
        char name[32];
        if (check_thins()) continue;
        snprintf(name, sizeof name, "random program %d", k);
        lb_enter(cx);
        random_program_make(cx, (uint64_t)k, &p);
        const bool made = random_program_args(cx, &p, (uint64_t)k, formats, in);
        p.args = in;
        deed d = {.in = in, .k = k, .name = name, .p = &p};
        lb_clear(cx);
        if (made && run_twice(cx, &d)) failing_call(cx, m, &d);
        lb_clear(cx);
        lb_leave(cx);
    }
}

/* ---- everything in one scope -------------------------------------------- */

static void expect(lb_ctx *cx, const meter *m, const char *name)
{
    const bool ok =
        m->every ? !lb_error_status(cx) || says_so(cx) : !lb_error_status(cx);
    if (check_fails(ok))
        fprintf(stderr, "memory: every %ld fails: %s: %s\n", m->every, name,
                lb_error(cx));
    lb_clear(cx);
}

static void everything(lb_ctx *cx, const meter *m)
{
    enum { EACH = 3 }; /* samples of a primitive */
    lb_array *in[SAMPLE_MAX_IN];
    const lb_prim *prim;
    for (int k = 0; (prim = lb_primitive_at(cx, k)); k++) {
        sample_list list = samples_of(prim->name, SAMPLES_SMALL);
        for (int i = 0; i < EACH && i < list.n; i++) {
            if (law_operands(cx, &list.item[i], in))
                law_bind(cx, prim, &list.item[i], in);
            expect(cx, m, prim->name);
        }
        samples_free(&list);
    }
    const char *name = "";
    for (int k = 0; name; k++) {
        scenario_run(cx, k, &name);
        expect(cx, m, name);
    }
}

static void failing_every(long every)
{
    meter m = {.every = every};
    lb_ctx *cx = open_with(&m, 2);
    if (!cx) {
        CHECK(m.failed > 0);
        check_closed(&m);
        m.every = 0; /* and what comes after opening */
        cx = open_with(&m, 2);
        m.every = every;
    }
    CHECK(cx != NULL);
    everything(cx, &m);
    CHECK(m.failed > 0);
    m.every = 0;
    everything(cx, &m);
    lb_close(cx);
    check_closed(&m);
}

/* Scopes that could not be recorded give their arrays to the enclosing one. */
static void failing_scopes(void)
{
    enum { SCOPES = 100 };
    meter m = {0};
    lb_ctx *cx = open_with(&m, 1);
    lb_array *a = lb_scalar(cx, 3);
    m.every = 1;
    for (int i = 0; i < SCOPES; i++)
        lb_enter(cx);
    CHECK(says_so(cx));
    lb_clear(cx);
    m.every = 0;
    lb_array *b = lb_scalar(cx, 4);
    lb_keep(cx, b);
    for (int i = 0; i < SCOPES - 1; i++)
        lb_leave(cx);
    lb_enter(cx);
    lb_scalar(cx, 5);
    lb_leave(cx);
    lb_leave(cx);
    CHECK(lb_item(cx, a) == 3);
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
    lb_close(cx);
    check_closed(&m);
}

int main(int argc, char **argv)
{
    meter m = {0};
    law_args(argc, argv);
    failing_scopes();
    failing_open(1);
    failing_open(3);
    lb_ctx *cx = open_with(&m, 1);
    CHECK(cx != NULL);
    if (cx) {
        CHECK(sample_add_outside(cx));
        packed_law law = {&m, law_formats(cx)};
        law_each(cx, SAMPLES_SMALL, law_memory, &m);
        law_each(cx, SAMPLES_SMALL, law_memory_packed, &law);
        failing_programs(cx, &m, &law.formats);
        deed d = {.k = 0};
        while (failing_call(cx, &m, &d))
            d.k++;
        CHECK(d.k > 100);
        printf("%d formats and variants, %ld combinations, %d functions: every "
               "allocation failed once\n",
               law.formats.n, law_run.combinations, d.k);
        sample_formats_free(&law.formats);
    }
    lb_close(cx);
    check_closed(&m);
    for (long every = 1 + law_run.share; every <= 50; every += law_run.shares)
        failing_every(every);
    return check_report("law 9, memory");
}
