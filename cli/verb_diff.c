/* verb_diff.c - `lowbit diff`: compare two files array by array, whatever their
 * formats, layouts and kinds. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "places.h"
#include "progress.h"
#include "report.h"
#include "scan.h"

/* One array of the result. */
typedef struct line {
    const char *name;
    const lb_entry *a, *b; /* NULL: only in the other file */
    const char *why;       /* it cannot be compared; NULL: it was */
    lb_difference d;
    bool over; /* exceeds the tolerance, or cannot be compared */
} line;

typedef struct lines {
    line *at;
    int64_t n, over;
    int64_t compared;
    int64_t top; /* lines to print; 0: all, in the order of the files */
    double tolerance;
    lb_difference all;
    report *report; /* NULL: none is wanted */
    progress bar;
    uint64_t done, total; /* bytes of the first file */
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
    report_add(r, l->a, kind, dense ? NULL : l->b->format, l->b->dtype,
               d->apart ? NULL : "equal", l->b->nbytes, d);
}

static const char *verdict_of(const line *l)
{
    if (!l->b) return "only in the first file";
    if (!l->a) return "only in the second file";
    return l->why;
}

/* An array that cannot be compared: only its size is reported. */
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
    report_add(r, &e, kind, NULL, l->b ? l->b->dtype : LB_NO_DTYPE,
               verdict_of(l), nbytes, NULL);
}

static bool compare_whole(lb_ctx *cx, lb_file *fa, lb_file *fb, line *l,
                          lines *all)
{
    lb_enter(cx);
    lb_array *a = lb_file_load(cx, fa, l->a->name);
    lb_array *b = lb_file_load(cx, fb, l->b->name);
    const bool ok = lb_compare(cx, a, b, &l->d) &&
                    (!all->report || report_count(all->report, cx, b));
    if (ok && all->report) {
        report_pair(all->report, l, &l->d);
        report_stored(all->report, cx, l->b, b);
    }
    lb_leave(cx);
    return ok;
}

/* Rows of a chunk; 0: at least one of the arrays must be read as a whole. */
static int64_t rows_of_both(const line *l)
{
    const int64_t a = rows_at_once(l->a), b = rows_at_once(l->b);
    if (!l->a->by_rows || !l->b->by_rows || (!a && !b)) return 0;
    return a && (!b || a < b) ? a : b;
}

static bool compare_rows(lb_ctx *cx, lb_file *fa, lb_file *fb, line *l,
                         int64_t each)
{
    const int64_t n = l->a->dim[0];
    bool ok = true;
    for (int64_t lo = 0; ok && lo < n; lo += each) {
        const int64_t hi = n - lo < each ? n : lo + each;
        lb_enter(cx);
        lb_array *a = lb_file_load_rows(cx, fa, l->a->name, lo, hi);
        lb_array *b = lb_file_load_rows(cx, fb, l->b->name, lo, hi);
        ok = lb_compare(cx, a, b, &l->d);
        lb_leave(cx);
    }
    return ok;
}

/* False and an error that ends the comparison. */
static bool compare(lb_ctx *cx, lb_file *fa, lb_file *fb, line *l, lines *all)
{
    if (!l->a->format || !l->b->format)
        l->why = "unsupported type";
    else if (!same_shape(l->a, l->b))
        l->why = "different shapes";
    if (l->why) return true;
    const int64_t each = all->report ? 0 : rows_of_both(l);
    const bool ok = each ? compare_rows(cx, fa, fb, l, each)
                         : compare_whole(cx, fa, fb, l, all);
    if (!ok && is_beyond(cx)) {
        l->why = "unsupported type or shape";
        lb_clear(cx);
        return true;
    }
    if (!ok) return false;
    l->over = l->d.nonfinite || !(lb_difference_nrmse(&l->d) <= all->tolerance);
    all->compared++;
    difference_add(&all->all, &l->d);
    return true;
}

/* The array of g that corresponds to e of f: of the same name, or the only one
 * if both files have one. */
static const lb_entry *partner(const lb_file *f, const lb_entry *e,
                               const lb_file *g)
{
    if (lb_file_count(f) == 1 && lb_file_count(g) == 1)
        return lb_file_entry(g, 0);
    return lb_file_find(g, e->name);
}

static void show_progress(lines *all, const lb_entry *e, int64_t i, int64_t n)
{
    progress_at(&all->bar, &(progress_step){.name = e->name,
                                            .i = i,
                                            .n = n,
                                            .done = all->done,
                                            .total = all->total});
    all->done += e->nbytes;
}

static bool compare_all(lb_ctx *cx, lb_file *fa, lb_file *fb, lines *all)
{
    const int64_t n = lb_file_count(fa);
    for (int64_t i = 0; i < n; i++)
        all->total += lb_file_entry(fa, i)->nbytes;
    for (int64_t i = 0; i < n; i++) {
        line *l = &all->at[all->n++];
        l->a = lb_file_entry(fa, i);
        l->name = l->a->name;
        l->b = partner(fa, l->a, fb);
        l->over = true;
        show_progress(all, l->a, i, n);
        if (l->b && !compare(cx, fa, fb, l, all)) return false;
        if (all->report && verdict_of(l)) report_odd(all->report, l);
    }
    for (int64_t i = 0; i < lb_file_count(fb); i++) {
        const lb_entry *b = lb_file_entry(fb, i);
        if (partner(fb, b, fa)) continue;
        line *l = &all->at[all->n++];
        *l = (line){.name = b->name, .b = b, .over = true};
        if (all->report) report_odd(all->report, l);
    }
    for (int64_t i = 0; i < all->n; i++)
        all->over += all->at[i].over;
    return true;
}

/* ---- output -------------------------------------------------------------- */

/* Columns of the table: names, and types in either file. */
typedef struct diff_widths {
    int name, a, b;
} diff_widths;

static diff_widths widths_of(const line *l, int64_t n)
{
    diff_widths w = {4, 8, 8};
    for (int64_t i = 0; i < n; i++) {
        w.name = wider(w.name, name_width(l[i].name));
        if (!l[i].a || !l[i].b) continue;
        w.a = wider(w.a, kind_width(l[i].a));
        w.b = wider(w.b, kind_width(l[i].b));
    }
    return w;
}

static void print_line(const line *l, diff_widths w)
{
    const char *why = verdict_of(l);
    put_column(stdout, l->name, w.name);
    if (l->a && l->b) {
        put_kind(stdout, l->a, w.a);
        put_kind(stdout, l->b, w.b);
    }
    if (l->over) failure_begin();
    if (why && l->a && l->b && !same_shape(l->a, l->b)) {
        fputs("different shapes: ", stdout);
        put_shape(stdout, l->a->dim, l->a->rank);
        fputs(" and ", stdout);
        put_shape(stdout, l->b->dim, l->b->rank);
    } else if (!why && !l->d.apart)
        fputs("equal", stdout);
    else if (why)
        fputs(why, stdout);
    else {
        printf("nrmse %-9.4g max %-9.4g cosine %.7g",
               lb_difference_nrmse(&l->d), l->d.max,
               lb_difference_cosine(&l->d));
        if (l->d.nonfinite)
            printf("  %" PRId64 " not finite in one file", l->d.nonfinite);
    }
    if (l->over) failure_end();
    putchar('\n');
}

/* null where no values were compared. */
static void json_errors(json *j, const lb_difference *d)
{
    const double none = (double)NAN;
    json_int(json_key(j, "values"), d->n);
    json_int(json_key(j, "differing"), d->apart);
    json_int(json_key(j, "nonfinite"), d->nonfinite);
    json_double(json_key(j, "nrmse"), d->n ? lb_difference_nrmse(d) : none);
    json_double(json_key(j, "max"), d->n ? d->max : none);
    json_double(json_key(j, "cosine"), d->n ? lb_difference_cosine(d) : none);
}

static void json_line(json *j, const line *l)
{
    json_next(j);
    json_open(j, '{');
    json_array_head(j, l->a ? l->a : l->b);
    json_string(json_key(j, "in"), !l->b ? "first" : !l->a ? "second" : "both");
    json_key(j, "second");
    if (l->a && l->b) {
        json_open(j, '{');
        json_array_head(j, l->b);
        json_close(j, '}');
    } else
        json_null(j);
    json_string(json_key(j, "message"), verdict_of(l));
    json_errors(j, &l->d);
    json_bool(json_key(j, "differs"), l->over);
    json_close(j, '}');
}

static void print_text(const lines *all, int64_t top)
{
    const diff_widths w = widths_of(all->at, top);
    for (int64_t i = 0; i < top; i++)
        print_line(&all->at[i], w);
    printf("%" PRId64 " array%s, %" PRId64 " exceed%s tolerance %g; ", all->n,
           all->n == 1 ? "" : "s", all->over, all->over == 1 ? "s" : "",
           all->tolerance);
    if (!all->all.n)
        puts("no values were compared");
    else
        printf("overall nrmse %.4g, max %.4g, cosine %.7g\n",
               lb_difference_nrmse(&all->all), all->all.max,
               lb_difference_cosine(&all->all));
}

static void print_json(const arguments *a, const lines *all, int64_t top)
{
    json *j = json_begin("diff");
    json_string(json_key(j, "first"), a->operand[0]);
    json_string(json_key(j, "second"), a->operand[1]);
    json_double(json_key(j, "tolerance"), all->tolerance);
    json_int(json_key(j, "compared"), all->compared);
    json_int(json_key(j, "differ"), all->over);
    json_errors(j, &all->all);
    json_open(json_key(j, "arrays"), '[');
    for (int64_t i = 0; i < top; i++)
        json_line(j, &all->at[i]);
    json_close(j, ']');
    json_end(j);
    if (all->over)
        complain(DIFFERS,
                 "%" PRId64 " of %" PRId64
                 " arrays exceed tolerance %g or were not compared",
                 all->over, all->n, all->tolerance);
}

/* ---- the verb ------------------------------------------------------------ */

/* An array that cannot be compared ranks before any error. */
static double badness(const line *l)
{
    if (verdict_of(l) || l->d.nonfinite) return HUGE_VAL;
    return lb_difference_nrmse(&l->d);
}

/* The worst first; equal ones by name. */
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
    progress_begin(&all->bar, a);
    const bool ok = compare_all(cx, fa, fb, all);
    progress_clear(&all->bar);
    if (!ok) return complain_of(cx);
    if (all->top) qsort(all->at, (size_t)all->n, sizeof *all->at, by_badness);
    const int64_t top = all->top && all->top < all->n ? all->top : all->n;
    if (a->count[OPTION_JSON])
        print_json(a, all, top);
    else if (!a->count[OPTION_QUIET])
        print_text(all, top);
    if (all->report) {
        report_end(all->report);
        report_identify(all->report);
        const verdict v = reports_save(all->report, a);
        if (v != DONE) return v;
    }
    return all->over ? DIFFERS : DONE;
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
    verdict v = reports_check(a);
    if (v != DONE) return v;
    lb_ctx *cx = context_open((int)jobs);
    if (!cx) return complaint_verdict();
    if (all.report) report_begin(&r, "diff", a->argc, a->argv);
    r.source = a->operand[0];
    r.result = r.output = a->operand[1];
    r.kept = "Equal, or not compared";
    const lb_file_options o = {.struct_size = sizeof o, .no_map = true};
    lb_file *fa = lb_file_open(cx, a->operand[0], &o);
    lb_file *fb = fa ? lb_file_open(cx, a->operand[1], &o) : NULL;
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
    .summary = "Compare two files array by array",
    .help =
        "Arrays are matched by name; formats, layouts and kinds of files may "
        "differ. If each file holds one array, the two are compared "
        "whatever their names.\n\n"
        "nrmse is |a-b| / |a| (Euclidean norms), max the largest absolute "
        "difference, cosine the cosine similarity. The exit code is 1 if "
        "the nrmse of an array exceeds the tolerance, if a value is finite "
        "in one file only, or if an array cannot be compared or is in one "
        "file only.",
    .examples =
        "lowbit diff model.safetensors model.nf4.safetensors --tolerance 0.1\n"
        "lowbit diff a b --top 10 --report diff.html",
    .n_operands = 2,
    .options = options_taken,
    .run = run,
};
