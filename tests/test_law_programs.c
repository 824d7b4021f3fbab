/* test_law_programs.c - law 10: a compiled function has the same bits as the
 * function itself, and fails if it fails, for random programs over the registry
 * and their gradients, with any formats, number of threads and dense policy.
 *
 *   test_law_programs [--all | NUMBER]    200,000 programs, or only that one
 */
/* ctest: simde tsan long=--all */
#include "check.h"
#include "laws.h"
#include "random_program.h"
#include "raw_prim.h"

enum { CONTEXTS = 5, SOME = 2000, ALL = 210000, LEAST = 200000 };
static const struct {
    int threads;
    lb_dense_policy dense;
} settings[CONTEXTS] = {{1, LB_DENSE_ALLOW},
                        {2, LB_DENSE_ALLOW},
                        {7, LB_DENSE_ALLOW},
                        {3, LB_DENSE_DENY},
                        {2, LB_DENSE_LOG}};

static struct {
    long programs, failing, denied, gradients, notes;
} seen;

static void note(void *user, const char *sentence)
{
    (void)user, (void)sentence;
    seen.notes++;
}

/* A function of a program, and its number of results. */
typedef struct trial {
    lb_fn_many fn;
    random_program *p;
    int n_out;
} trial;

static bool run_eagerly(lb_ctx *cx, const trial *t, lb_array *const *args,
                        lb_array **out)
{
    return t->fn(cx, args, t->p->n_args, out, t->n_out, t->p);
}

/* Whether only unused calls fail: compiling removes them. Then want has the
 * results of the program without these calls. */
static bool fails_unneeded(lb_ctx *cx, const trial *t, lb_array *const *args,
                           lb_array **want)
{
    random_program needed = *t->p;
    trial same = *t;
    if (t->fn == random_program_gradients) random_program_last_float(&needed);
    needed = random_program_needed(&needed);
    same.p = &needed;
    const bool can = run_eagerly(cx, &same, args, want);
    lb_clear(cx);
    return can;
}

/* Runs a function eagerly and compiled; false, and why, if they differ. */
static bool trial_agrees(lb_ctx *cx, const trial *t, lb_array *const *args,
                         char *why, size_t size)
{
    lb_array *want[PROGRAM_RESULTS] = {NULL}, *got[PROGRAM_RESULTS] = {NULL};
    bool ok = true;
    why[0] = 0;
    char eager[256];
    lb_enter(cx);
    bool can = run_eagerly(cx, t, args, want);
    snprintf(eager, sizeof eager, "%s", lb_error(cx));
    seen.failing += !can;
    seen.denied += lb_error_status(cx) == LB_E_DENIED;
    seen.gradients += can && t->fn == random_program_gradients;
    lb_clear(cx);
    lb_compiled *f = lb_compile_many(cx, t->fn, t->n_out, t->p, NULL);
    for (int round = 0; round < 2 && ok; round++) {
        const bool did = lb_run_many(f, args, t->p->n_args, got);
        if (did && !can) can = fails_unneeded(cx, t, args, want);
        ok = did == can;
        if (!ok)
            snprintf(why, size, "fails only %s: %s",
                     can ? "compiled" : "eagerly", can ? lb_error(cx) : eager);
        lb_clear(cx);
        for (int i = 0; i < t->n_out && ok && can; i++) {
            lb_text text = {""};
            ok = sample_same(got[i], want[i], &text);
            if (!ok)
                snprintf(why, size, "run %d, result %d: %s", round, i, text.s);
        }
    }
    lb_compiled_close(f);
    lb_leave(cx);
    return ok;
}

static bool agrees(lb_ctx *cx, random_program *p, lb_array *const *args,
                   char *why, size_t size)
{
    const trial value = {random_program_run, p, p->n_results};
    const trial gradients = {random_program_gradients, p, PROGRAM_RESULTS};
    return trial_agrees(cx, &value, args, why, size) &&
           trial_agrees(cx, &gradients, args, why, size);
}

/* Removes every call without which the program still fails. */
static void shrink(lb_ctx *cx, random_program *p, lb_array *const *args,
                   char *why, size_t size)
{
    for (int k = p->n_calls - 1; k >= 0; k--) {
        p->call[k].taken = false;
        if (agrees(cx, p, args, why, size)) p->call[k].taken = true;
    }
    agrees(cx, p, args, why, size);
}

static void try_program(lb_ctx *const *of, uint64_t number,
                        const sample_format_list *formats)
{
    lb_ctx *cx = of[number % CONTEXTS];
    random_program p;
    lb_array *args[PROGRAM_VALUES];
    char why[600];
    lb_enter(cx);
    random_program_make(cx, number, &p);
    const bool made = random_program_args(cx, &p, number, formats, args);
    p.args = args;
    lb_clear(cx);
    if (made) {
        seen.programs++;
        if (check_fails(agrees(cx, &p, args, why, sizeof why))) {
            fprintf(stderr, "program %llu: %s\n", (unsigned long long)number,
                    why);
            shrink(cx, &p, args, why, sizeof why);
            fprintf(stderr, "shrunk: %s\n", why);
            random_program_print(&p, args);
        }
    }
    lb_leave(cx);
}

int main(int argc, char **argv)
{
    lb_ctx *cx[CONTEXTS];
    uint64_t from = 0, to = SOME;
    if (argc == 2 && strcmp(argv[1], "--all") == 0) to = ALL;
    if (argc == 2 && argv[1][0] != '-') {
        from = strtoull(argv[1], NULL, 10);
        to = from + 1;
    }
    for (int i = 0; i < CONTEXTS; i++) {
        cx[i] = lb_open(&(lb_options){.threads = settings[i].threads,
                                      .dense = settings[i].dense,
                                      .log = note});
        CHECK(cx[i] && sample_add_outside(cx[i]) &&
              lb_add_primitive(cx[i], &raw_prim));
    }
    sample_format_list formats = law_formats(cx[0]);
    for (uint64_t number = from; number < to; number++)
        if (to == from + 1 || !check_thins()) try_program(cx, number, &formats);
    printf("programs: %ld; runs that fail: %ld, of which by the dense policy: "
           "%ld; gradients: %ld\n",
           seen.programs, seen.failing, seen.denied, seen.gradients);
    if (to - from > 1) CHECK(seen.programs > 50);
    if (seen.programs > 1000) /* not thinned out */
        CHECK(seen.denied && seen.gradients && seen.notes);
    if (to == ALL) CHECK(seen.programs >= LEAST);
    sample_formats_free(&formats);
    for (int i = 0; i < CONTEXTS; i++)
        lb_close(cx[i]);
    return check_report("test_law_programs");
}
