/* test_law_programs.c - law 10: a compiled function has the same bits as the
 * function itself, for random programs over the registry, any formats, any
 * number of threads. `--all` tries 200,000 programs. */
/* ctest: simde tsan long=--all */
#include "check.h"
#include "laws.h"
#include "random_program.h"

enum { CONTEXTS = 3, SOME = 2000, ALL = 200000 };
static const int threads[CONTEXTS] = {1, 2, 7};

static struct {
    long programs, nodes, fused, failing;
} seen;

static void copy_error(lb_ctx *cx, char *to, size_t size)
{
    snprintf(to, size, "%s", lb_error(cx));
}

/* Runs the program in both ways; false, and why, if they differ. */
static bool agrees(lb_ctx *cx, random_program *p, lb_array *const *args,
                   char *why, size_t size)
{
    lb_array *want[PROGRAM_RESULTS] = {NULL}, *got[PROGRAM_RESULTS] = {NULL};
    char first[512], second[512];
    bool ok = true;
    why[0] = 0;
    lb_enter(cx);
    const bool can =
        random_program_run(cx, args, p->n_args, want, p->n_results, p);
    copy_error(cx, first, sizeof first);
    lb_clear(cx);
    lb_compiled *f =
        lb_compile_many(cx, random_program_run, p->n_results, p, NULL);
    for (int round = 0; round < 2 && ok; round++) {
        const bool did = lb_run_many(f, args, p->n_args, got);
        copy_error(cx, second, sizeof second);
        lb_clear(cx);
        /* A failing call whose result nobody uses is removed. */
        ok = did == can || (did && !can);
        if (!ok) snprintf(why, size, "compiled: %s", second);
        for (int i = 0; i < p->n_results && ok && can; i++) {
            lb_text text = {""};
            ok = sample_same(got[i], want[i], &text);
            if (!ok)
                snprintf(why, size, "run %d, result %d: %s", round, i, text.s);
        }
    }
    seen.failing += !can;
    lb_compiled_close(f);
    lb_leave(cx);
    return ok;
}

/* Leaves out calls as long as it still fails. */
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
        cx[i] = lb_open(&(lb_options){.threads = threads[i]});
        CHECK(cx[i] && sample_add_outside(cx[i]));
    }
    sample_format_list formats = law_formats(cx[0]);
    for (uint64_t number = from; number < to; number++)
        if (to == from + 1 || !check_thins()) try_program(cx, number, &formats);
    printf("programs: %ld, of which %ld fail eagerly\n", seen.programs,
           seen.failing);
    CHECK(from || seen.programs > 50);
    sample_formats_free(&formats);
    for (int i = 0; i < CONTEXTS; i++)
        lb_close(cx[i]);
    return check_report("test_law_programs");
}
