/* verb_diff.c - `lowbit diff`: what two files have in common, array by array,
 * whatever formats, layouts and kinds of files they are in. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "places.h"
#include "report.h"

/* One line of the result. */
typedef struct line {
    const char *name;
    const lb_entry *a, *b; /* NULL: the other file has it alone */
    const char *why;       /* it cannot be compared; NULL: it was */
    double nrmse, cosine, max;
    int64_t apart;
    bool over; /* beyond the tolerance */
} line;

typedef struct lines {
    line *at;
    int64_t n, over;
    int64_t top; /* lines to print; 0: all, in the order of the files */
    double tolerance;
    lb_difference all;
    report *report; /* NULL: none is wanted */
} lines;

/* ---- comparing ----------------------------------------------------------- */

static bool same_shape(const lb_entry *a, const lb_entry *b)
{
    return a->rank == b->rank &&
           memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

static void report_pair(report *r, const line *l, const lb_difference *d)
{
    const bool dense = strcmp(l->b->format, "dense") == 0;
    char kind[64];
    entry_kind(l->b, kind, sizeof kind);
    report_add(r, l->a, kind, dense ? NULL : l->b->format,
               d->apart ? NULL : "the same", l->b->nbytes, d);
}

static const char *verdict_of(const line *l)
{
    if (!l->b) return "only in the first";
    if (!l->a) return "only in the second";
    return l->why;
}

/* One that cannot be compared: all that there is to say is its size. */
static void report_odd(report *r, const line *l)
{
    char kind[64] = "(none)";
    lb_entry e = {0};
    uint64_t nbytes = 0;
    if (l->b) {
        e = *l->b;
        e.nbytes = 0;
        nbytes = l->b->nbytes;
        entry_kind(l->b, kind, sizeof kind);
    }
    if (l->a) e = *l->a;
    report_add(r, &e, kind, NULL, verdict_of(l), nbytes, NULL);
}

/* False and an error that ends it all. */
static bool compare(lb_ctx *cx, lb_file *fa, lb_file *fb, line *l, lines *all)
{
    lb_difference d = {0};
    l->over = true;
    if (!l->a->format || !l->b->format)
        l->why = "a type that is not known here";
    else if (!same_shape(l->a, l->b))
        l->why = "another shape";
    if (l->why) return true;
    lb_enter(cx);
    lb_array *a = lb_file_load(cx, fa, l->a->name);
    lb_array *b = lb_file_load(cx, fb, l->b->name);
    const bool ok = lb_compare(cx, a, b, &d) &&
                    (!all->report || report_count(all->report, cx, b));
    lb_leave(cx);
    if (!ok && is_beyond(cx)) {
        l->why = "cannot be loaded here";
        lb_clear(cx);
        return true;
    }
    if (!ok) return false;
    if (all->report) report_pair(all->report, l, &d);
    l->nrmse = lb_difference_nrmse(&d);
    l->cosine = lb_difference_cosine(&d);
    l->max = d.max;
    l->apart = d.apart;
    l->over = !(l->nrmse <= all->tolerance);
    difference_add(&all->all, &d);
    return true;
}

static bool compare_all(lb_ctx *cx, lb_file *fa, lb_file *fb, lines *all)
{
    for (int64_t i = 0; i < lb_file_count(fa); i++) {
        line *l = &all->at[all->n++];
        l->a = lb_file_entry(fa, i);
        l->name = l->a->name;
        l->b = lb_file_find(fb, l->a->name);
        l->over = true;
        if (l->b && !compare(cx, fa, fb, l, all)) return false;
        if (all->report && verdict_of(l)) report_odd(all->report, l);
    }
    for (int64_t i = 0; i < lb_file_count(fb); i++) {
        const lb_entry *b = lb_file_entry(fb, i);
        if (lb_file_find(fa, b->name)) continue;
        line *l = &all->at[all->n++];
        *l = (line){.name = b->name, .b = b, .over = true};
        if (all->report) report_odd(all->report, l);
    }
    for (int64_t i = 0; i < all->n; i++)
        all->over += all->at[i].over;
    return true;
}

/* ---- what is printed ----------------------------------------------------- */

/* Columns of a table: names, and kinds in either file. */
typedef struct widths {
    int name, a, b;
} widths;

static widths widths_of(const line *l, int64_t n)
{
    widths w = {4, 8, 8};
    for (int64_t i = 0; i < n; i++) {
        w.name = wider(w.name, name_width(l[i].name));
        if (!l[i].a || !l[i].b) continue;
        w.a = wider(w.a, kind_width(l[i].a));
        w.b = wider(w.b, kind_width(l[i].b));
    }
    return w;
}

static void print_line(const line *l, widths w)
{
    const char *why = verdict_of(l);
    put_column(stdout, l->name, w.name);
    if (l->a && l->b) {
        put_kind(stdout, l->a, w.a);
        put_kind(stdout, l->b, w.b);
    }
    if (why && l->a && l->b && !same_shape(l->a, l->b)) {
        put_shape(stdout, l->a->dim, l->a->rank);
        fputs(" and ", stdout);
        put_shape(stdout, l->b->dim, l->b->rank);
        putchar('\n');
    } else if (why)
        puts(why);
    else if (!l->apart)
        puts("the same");
    else
        printf("nrmse %-9.4g max %-9.4g cosine %.7g\n", l->nrmse, l->max,
               l->cosine);
}

static void json_line(json *j, const line *l)
{
    const char *why = verdict_of(l);
    json_open(j, '{');
    json_string(json_key(j, "name"), l->name);
    if (why) {
        json_string(json_key(j, "why"), why);
    } else {
        json_int(json_key(j, "apart"), l->apart);
        json_double(json_key(j, "nrmse"), l->nrmse);
        json_double(json_key(j, "max"), l->max);
        json_double(json_key(j, "cosine"), l->cosine);
    }
    json_bool(json_key(j, "differs"), l->over);
    json_close(j, '}');
}

static void print_text(const lines *all, int64_t top)
{
    const widths w = widths_of(all->at, top);
    for (int64_t i = 0; i < top; i++)
        print_line(&all->at[i], w);
    printf("%" PRId64 " array%s, %" PRId64 " differ%s by more than %g; ",
           all->n, all->n == 1 ? "" : "s", all->over, all->over == 1 ? "s" : "",
           all->tolerance);
    if (all->over && !all->all.n) {
        puts("no numbers were compared");
        return;
    }
    printf("of all numbers: nrmse %.4g, max %.4g, cosine %.7g\n",
           lb_difference_nrmse(&all->all), all->all.max,
           lb_difference_cosine(&all->all));
}

static void print_json(const lines *all, int64_t top)
{
    json j = {.to = stdout};
    json_open(&j, '{');
    json_int(json_key(&j, "arrays"), all->n);
    json_int(json_key(&j, "differ"), all->over);
    json_double(json_key(&j, "tolerance"), all->tolerance);
    json_double(json_key(&j, "nrmse"), lb_difference_nrmse(&all->all));
    json_double(json_key(&j, "max"), all->all.max);
    json_double(json_key(&j, "cosine"), lb_difference_cosine(&all->all));
    json_open(json_key(&j, "list"), '[');
    for (int64_t i = 0; i < top; i++) {
        fputs(i ? ",\n" : "\n", stdout);
        j.more = false;
        json_line(&j, &all->at[i]);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    putchar('\n');
}

/* ---- the verb ------------------------------------------------------------ */

/* What cannot be compared is worse than any error. */
static double badness(const line *l)
{
    if (verdict_of(l)) return HUGE_VAL;
    return isnan(l->nrmse) ? HUGE_VAL : l->nrmse;
}

/* Of equals the first in the file, which is the first in the list. */
static int by_badness(const void *a, const void *b)
{
    const double x = badness(a), y = badness(b);
    if (x != y) return x < y ? 1 : -1;
    return strcmp(((const line *)a)->name, ((const line *)b)->name);
}

static verdict diff(const arguments *a, lb_ctx *cx, lb_file *fa, lb_file *fb,
                    lines *all)
{
    const int64_t room = lb_file_count(fa) + lb_file_count(fb);
    all->at = calloc((size_t)room + 1, sizeof *all->at);
    if (!all->at) return complain(FAILED, "out of memory");
    if (!compare_all(cx, fa, fb, all)) return complain_of(cx);
    if (all->top) qsort(all->at, (size_t)all->n, sizeof *all->at, by_badness);
    const int64_t top = all->top && all->top < all->n ? all->top : all->n;
    if (a->count[OPTION_JSON])
        print_json(all, top);
    else if (!a->count[OPTION_QUIET])
        print_text(all, top);
    if (all->report) {
        report_end(all->report);
        const verdict v = report_save(all->report, a->value[OPTION_REPORT]);
        if (v != DONE) return v;
    }
    return all->over ? FAILED : DONE;
}

static verdict run(const arguments *a)
{
    report r = {0};
    lines all = {.report = a->count[OPTION_REPORT] ? &r : NULL};
    int64_t jobs = 0;
    if (!argument_number(a, OPTION_JOBS, 1, 256, &jobs) ||
        !argument_number(a, OPTION_TOP, 1, INT32_MAX, &all.top) ||
        !argument_real(a, OPTION_TOLERANCE, 0, HUGE_VAL, &all.tolerance))
        return USAGE;
    verdict v =
        place_of_report(a) ? report_path_check(a->value[OPTION_REPORT]) : USAGE;
    if (v != DONE) return v;
    lb_ctx *cx = context_open((int)jobs);
    if (!cx) return FAILED;
    if (all.report) report_begin(&r, "diff", a->argc, a->argv);
    r.source = a->operand[0];
    r.result = a->operand[1];
    r.kept = "The same, or not compared";
    lb_file *fa = lb_file_open(cx, a->operand[0], NULL);
    lb_file *fb = fa ? lb_file_open(cx, a->operand[1], NULL) : NULL;
    v = fb ? diff(a, cx, fa, fb, &all) : complain_of(cx);
    free(all.at);
    report_free(&r);
    lb_file_close(fa);
    lb_file_close(fb);
    lb_close(cx);
    return v;
}

static const option_id options_taken[] = {
    OPTION_JOBS,      OPTION_JSON, OPTION_QUIET, OPTION_REPORT,
    OPTION_TOLERANCE, OPTION_TOP,  N_OPTIONS};

const verb verb_diff = {
    .name = "diff",
    .operands = "A B",
    .summary = "Compares two files, array by array",
    .help = "Arrays are known by their names; formats, layouts and kinds of "
            "files may differ.\nnrmse: |a-b| / |a|, with the norms of all "
            "numbers; max: the largest |a-b|; cosine: of\nthe angle between "
            "them. The exit status is 1 if an array's nrmse is above the\n"
            "tolerance, if one cannot be compared, or if it is in one file "
            "only.",
    .examples =
        "lowbit diff model.safetensors model.nf4.safetensors --tolerance 0.1\n"
        "lowbit diff a b --top 10 --report diff.html",
    .n_operands = 2,
    .options = options_taken,
    .run = run,
};
