/* verb_stats.c - `lowbit stats`: value statistics and histograms. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "histogram.h"
#include "input.h"
#include "scan.h"

/* One array. */
typedef struct array_stats {
    const lb_entry *e;
    lb_findings f;
    lb_histogram h;
    code_counts c;
    const char *why; /* it has no statistics; NULL: it has */
} array_stats;

static double mean_of(const lb_findings *f)
{
    return f->finite ? f->sum / (double)f->finite : 0;
}

static double deviation_of(const lb_findings *f)
{
    const double mean = mean_of(f);
    if (!isfinite(f->squares)) return HUGE_VAL; /* more than a double holds */
    const double var =
        f->finite ? f->squares / (double)f->finite - mean * mean : 0;
    return var > 0 ? sqrt(var) : 0;
}

/* Arrays are read twice: the histogram needs the range of the values. */
enum { TIMES = 2 };

static bool examine(void *user, lb_ctx *cx, lb_array *part)
{
    array_stats *s = user;
    return lb_examine(cx, part, &s->f);
}

static bool count(void *user, lb_ctx *cx, lb_array *part)
{
    array_stats *s = user;
    return lb_count_values(cx, part, &s->h) && codes_add(&s->c, cx, part);
}

static bool find_stats(lb_ctx *cx, lb_file *file, int bins, scan *bar,
                       array_stats *s)
{
    if (!scan_array(bar, cx, file, s->e, examine, s)) return false;
    histogram_span(&s->h, &s->f, bins);
    s->c = (code_counts){.least = 1};
    return scan_array(bar, cx, file, s->e, count, s);
}

/* ---- as JSON ------------------------------------------------------------- */

/* A statistic of the finite values: null if there are none. */
static void put_number(json *j, const char *key, const lb_findings *f, double v)
{
    json_double(json_key(j, key), f->finite ? v : (double)NAN);
}

static void put_counts(json *j, const array_stats *s)
{
    const code_counts *c = &s->c;
    json_open(json_key(j, "histogram"), '{');
    json_double(json_key(j, "lo"), s->h.lo);
    json_double(json_key(j, "hi"), s->h.hi);
    json_int(json_key(j, "below"), s->h.below);
    json_int(json_key(j, "above"), s->h.above);
    json_open(json_key(j, "counts"), '[');
    for (int i = 0; i < s->h.bins; i++)
        json_int(j, s->h.count[i]);
    json_close(j, ']');
    json_close(j, '}');
    if (c->least > c->most) {
        json_null(json_key(j, "codes"));
        return;
    }
    json_open(json_key(j, "codes"), '{');
    json_int(json_key(j, "first"), c->least);
    json_open(json_key(j, "counts"), '[');
    for (int k = c->least; k <= c->most; k++)
        json_int(j, c->count[k & 255]);
    json_close(j, ']');
    json_close(j, '}');
}

static void json_array(json *j, const array_stats *s)
{
    static const char *const members[] = {"min",      "max",       "mean",
                                          "std",      "zeros",     "nan",
                                          "infinite", "histogram", "codes"};
    const lb_findings *f = &s->f;
    json_next(j);
    json_open(j, '{');
    json_array_head(j, s->e);
    json_string(json_key(j, "message"), s->why);
    if (s->why) {
        for (size_t i = 0; i < sizeof members / sizeof *members; i++)
            json_null(json_key(j, members[i]));
    } else {
        put_number(j, "min", f, f->least);
        put_number(j, "max", f, f->most);
        put_number(j, "mean", f, mean_of(f));
        put_number(j, "std", f, deviation_of(f));
        json_int(json_key(j, "zeros"), f->zeros);
        json_int(json_key(j, "nan"), f->nan.n);
        json_int(json_key(j, "infinite"), f->inf.n);
        put_counts(j, s);
    }
    json_close(j, '}');
}

/* ---- one array ----------------------------------------------------------- */

static void colour(const char *escape)
{
    if (may_colour(stdout)) fputs(escape, stdout);
}

static void print_bar(const char *label, int64_t n, int64_t most)
{
    printf("%12s  ", label);
    colour("\033[36m");
    put_bar(stdout, (double)n, (double)most, 48);
    colour("\033[0m");
    printf("%s%" PRId64 "\n", n ? " " : "", n);
}

static void print_histogram(const lb_histogram *h)
{
    int64_t most = 1;
    char label[32];
    for (int i = 0; i < h->bins; i++)
        if (h->count[i] > most) most = h->count[i];
    if (h->below) printf("%12s  %" PRId64 "\n", "below", h->below);
    for (int i = 0; i < h->bins; i++) {
        const double part = (double)i / h->bins;
        snprintf(label, sizeof label, "%.4g",
                 h->lo * (1 - part) + h->hi * part);
        print_bar(label, h->count[i], most);
    }
    snprintf(label, sizeof label, "%.4g", h->hi);
    printf("%12s\n", label);
    if (h->above) printf("%12s  %" PRId64 "\n", "above", h->above);
}

/* 8-bit codes are too many for one line each. */
static void print_codes(const code_counts *c)
{
    int64_t most = 1;
    char label[32];
    if (c->least > c->most || c->most - c->least > 31) return;
    puts("codes");
    for (int k = c->least; k <= c->most; k++)
        if (c->count[k & 255] > most) most = c->count[k & 255];
    for (int k = c->least; k <= c->most; k++) {
        snprintf(label, sizeof label, "%d", k);
        print_bar(label, c->count[k & 255], most);
    }
}

static void print_one(const array_stats *s)
{
    const lb_findings *f = &s->f;
    char kind[64];
    entry_kind(s->e, kind, sizeof kind);
    put_text(stdout, s->e->name, strlen(s->e->name));
    printf("  %s  ", kind);
    put_shape(stdout, s->e->dim, s->e->rank);
    printf("\nmin %.6g, max %.6g, mean %.6g, std %.6g, zeros %" PRId64
           ", NaN %" PRId64 ", infinite %" PRId64 "\n",
           f->least, f->most, mean_of(f), deviation_of(f), f->zeros, f->nan.n,
           f->inf.n);
    if (!f->finite) return;
    print_histogram(&s->h);
    print_codes(&s->c);
}

/* ---- all of them --------------------------------------------------------- */

static void print_row(const array_stats *s, int name, int kind)
{
    const lb_findings *f = &s->f;
    put_column(stdout, s->e->name, name);
    put_kind(stdout, s->e, kind);
    if (s->why) {
        puts(s->why);
        return;
    }
    printf("%9.3g %10.3g %10.3g %10.3g  ", f->least, f->most, mean_of(f),
           deviation_of(f));
    put_spark(stdout, s->h.count, f->finite ? s->h.bins : 0);
    if (f->nan.n) printf("  %" PRId64 " NaN", f->nan.n);
    if (f->inf.n) printf("  %" PRId64 " infinite", f->inf.n);
    putchar('\n');
}

/* An array that cannot be loaded is listed with the reason. False and an
 * error. */
static bool find_if_possible(lb_ctx *cx, lb_file *f, int bins, scan *bar,
                             array_stats *s)
{
    if (!s->e->format)
        s->why = "unsupported type";
    else if (find_stats(cx, f, bins, bar, s))
        return true;
    else if (is_beyond(cx)) {
        s->why = "unsupported type or shape";
        lb_clear(cx);
    }
    return s->why != NULL;
}

static void find_widths(const lb_file *f, int *name, int *kind)
{
    *name = 4;
    *kind = 12;
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        *name = wider(*name, name_width(lb_file_entry(f, i)->name));
        *kind = wider(*kind, kind_width(lb_file_entry(f, i)));
    }
}

/* JSON lists them in file order, as that of info does. */
static verdict all(lb_ctx *cx, lb_file *f, int bins, scan *bar, json *j)
{
    int name, kind;
    verdict v = DONE;
    const lb_entry **sorted = entries_by_name(f);
    if (!sorted) return complain(FAILED, "out of memory");
    find_widths(f, &name, &kind);
    if (!j) {
        put_column(stdout, "name", name);
        put_column(stdout, "type", kind);
        printf("%9s %10s %10s %10s\n", "min", "max", "mean", "std");
    }
    for (int64_t i = 0; v == DONE && i < lb_file_count(f); i++) {
        array_stats s = {.e = j ? lb_file_entry(f, i) : sorted[i]};
        const bool ok = find_if_possible(cx, f, bins, bar, &s);
        if (!j || !ok) scan_clear(bar);
        if (!ok)
            v = complain_of(cx);
        else if (j)
            json_array(j, &s);
        else
            print_row(&s, name, kind);
    }
    scan_clear(bar);
    free(sorted);
    return v;
}

static verdict no_array(const lb_file *f, const char *name)
{
    const int64_t n = lb_file_count(f);
    const char **names = calloc((size_t)n + 1, sizeof *names);
    for (int64_t i = 0; names && i < n; i++)
        names[i] = lb_file_entry(f, i)->name;
    const char *meant = names ? nearest(name, names, (int)n) : NULL;
    free(names);
    if (meant)
        return complain(USAGE, "no array '%.200s'; did you mean %s?", name,
                        show_name(meant).s);
    return complain(USAGE, "no array '%.200s' (lowbit info lists them)", name);
}

static verdict one(lb_ctx *cx, lb_file *f, const lb_entry *e, int bins,
                   scan *bar, json *j)
{
    array_stats s = {.e = e};
    const bool ok = find_stats(cx, f, bins, bar, &s);
    scan_clear(bar);
    if (!ok) return complain_of(cx);
    if (j)
        json_array(j, &s);
    else
        print_one(&s);
    return DONE;
}

static verdict print_stats(const arguments *a, lb_ctx *cx, lb_file *f, int bins)
{
    const bool single = a->n_operands == 2;
    const lb_entry *e = single ? lb_file_find(f, a->operand[1]) : NULL;
    json *j = NULL;
    scan bar;
    if (single && !e) return no_array(f, a->operand[1]);
    if (a->count[OPTION_JSON]) {
        j = json_begin("stats");
        json_string(json_key(j, "path"), a->operand[0]);
        json_string(json_key(j, "kind"), lb_file_kind(f));
        json_open(json_key(j, "arrays"), '[');
    }
    scan_begin(&bar, a, f, e, TIMES);
    const verdict v =
        single ? one(cx, f, e, bins, &bar, j) : all(cx, f, bins, &bar, j);
    if (j && v == DONE) {
        json_close(j, ']');
        json_end(j);
    }
    return v;
}

static verdict run(const arguments *a)
{
    const lb_file_options options = {.struct_size = sizeof options,
                                     .no_map = true,
                                     .raw = a->count[OPTION_RAW] != 0};
    int64_t bins = 24, jobs = 0;
    if (!argument_number(a, OPTION_BINS, 2, LB_HISTOGRAM_MOST, &bins) ||
        !argument_number(a, OPTION_JOBS, 1, 256, &jobs))
        return USAGE;
    const char *input = input_path(a->operand[0]);
    lb_ctx *cx = input ? context_open((int)jobs) : NULL;
    if (!cx) return complaint_verdict();
    lb_file *f = lb_file_open(cx, input, &options);
    const verdict v = f ? print_stats(a, cx, f, (int)bins) : complain_of(cx);
    lb_file_close(f);
    lb_close(cx);
    return v;
}

static const option_id options_taken[] = {OPTION_BINS, OPTION_JOBS, OPTION_JSON,
                                          OPTION_RAW, N_OPTIONS};

const verb verb_stats = {
    .name = "stats",
    .operands = "FILE [ARRAY]",
    .summary = "Show value statistics and histograms",
    .help = "One line per array, or full detail for one array: minimum, "
            "maximum, mean, standard deviation and a histogram, which covers "
            "at most four standard deviations on either side of the mean; for "
            "quantized arrays with codes of up to 5 bits also the number of "
            "times that each code occurs. FILE is any file or directory that "
            "lowbit info accepts; - is standard input.",
    .examples = "lowbit stats model.safetensors\n"
                "lowbit stats model.safetensors lm_head.weight --bins 40",
    .n_operands = 1,
    .n_optional = 1,
    .options = options_taken,
    .run = run,
    .streams = true,
};
