/* verb_stats.c - `lowbit stats`: how the numbers of a file are distributed. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "histogram.h"

typedef struct look {
    const lb_entry *e;
    lb_findings f;
    histogram h;
    code_counts c;
    const char *why; /* it was not looked at; NULL: it was */
} look;

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

static bool look_at(lb_ctx *cx, lb_file *file, int bins, look *l)
{
    lb_enter(cx);
    lb_array *a = lb_file_load(cx, file, l->e->name);
    bool ok = lb_examine(cx, a, &l->f);
    histogram_span(&l->h, &l->f, bins);
    ok = ok && histogram_add(&l->h, cx, a);
    l->c = (code_counts){.least = 1};
    ok = ok && codes_add(&l->c, cx, a);
    lb_leave(cx);
    return ok;
}

/* ---- as JSON ------------------------------------------------------------- */

static void json_look(json *j, const look *l)
{
    const lb_findings *f = &l->f;
    json_open(j, '{');
    json_string(json_key(j, "name"), l->e->name);
    json_string(json_key(j, "format"), l->e->format);
    if (l->why) {
        json_string(json_key(j, "why"), l->why);
        json_close(j, '}');
        return;
    }
    json_int(json_key(j, "elements"), f->n);
    json_double(json_key(j, "min"), f->least);
    json_double(json_key(j, "max"), f->most);
    json_double(json_key(j, "mean"), mean_of(f));
    json_double(json_key(j, "std"), deviation_of(f));
    json_int(json_key(j, "zeros"), f->zeros);
    json_int(json_key(j, "nan"), f->nan.n);
    json_int(json_key(j, "inf"), f->inf.n);
    json_open(json_key(j, "histogram"), '{');
    json_double(json_key(j, "lo"), l->h.lo);
    json_double(json_key(j, "hi"), l->h.hi);
    json_int(json_key(j, "below"), l->h.below);
    json_int(json_key(j, "above"), l->h.above);
    json_open(json_key(j, "count"), '[');
    for (int i = 0; i < l->h.bins; i++)
        json_int(j, l->h.count[i]);
    json_close(j, ']');
    json_close(j, '}');
    if (l->c.least <= l->c.most) {
        json_open(json_key(j, "codes"), '{');
        json_int(json_key(j, "least"), l->c.least);
        json_open(json_key(j, "count"), '[');
        for (int c = l->c.least; c <= l->c.most; c++)
            json_int(j, l->c.count[c & 255]);
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, '}');
}

/* ---- one array ----------------------------------------------------------- */

/* Colour where somebody looks, and has not said NO_COLOR. */
static void colour(const char *escape)
{
    const char *no = getenv("NO_COLOR");
    if (isatty(STDOUT_FILENO) && !(no && *no)) fputs(escape, stdout);
}

static void print_bar(const char *label, int64_t n, int64_t most)
{
    printf("%12s  ", label);
    colour("\033[36m");
    put_bar(stdout, (double)n, (double)most, 48);
    colour("\033[0m");
    printf("%s%" PRId64 "\n", n ? " " : "", n);
}

static void print_histogram(const histogram *h)
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

/* Bytes have too many for lines of their own. */
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

static void print_one(const look *l)
{
    const lb_findings *f = &l->f;
    char kind[64];
    entry_kind(l->e, kind, sizeof kind);
    put_text(stdout, l->e->name, strlen(l->e->name));
    printf("  %s  ", kind);
    put_shape(stdout, l->e->dim, l->e->rank);
    printf("\nmin %.6g, max %.6g, mean %.6g, std %.6g, zeros %" PRId64
           ", NaN %" PRId64 ", infinite %" PRId64 "\n",
           f->least, f->most, mean_of(f), deviation_of(f), f->zeros, f->nan.n,
           f->inf.n);
    if (!f->finite) return;
    print_histogram(&l->h);
    print_codes(&l->c);
}

/* ---- all of them --------------------------------------------------------- */

static void print_row(const look *l, int name, int kind)
{
    const lb_findings *f = &l->f;
    put_column(stdout, l->e->name, name);
    put_kind(stdout, l->e, kind);
    if (l->why) {
        puts(l->why);
        return;
    }
    printf("%9.3g %10.3g %10.3g %10.3g  ", f->least, f->most, mean_of(f),
           deviation_of(f));
    put_spark(stdout, l->h.count, f->finite ? l->h.bins : 0);
    if (f->nan.n) printf("  %" PRId64 " NaN", f->nan.n);
    if (f->inf.n) printf("  %" PRId64 " infinite", f->inf.n);
    putchar('\n');
}

/* What cannot be loaded is named with the reason. False and an error. */
static bool look_if_possible(lb_ctx *cx, lb_file *f, int bins, look *l)
{
    if (!l->e->format)
        l->why = "a type that is not known here";
    else if (look_at(cx, f, bins, l))
        return true;
    else if (is_beyond(cx)) {
        l->why = "cannot be loaded here";
        lb_clear(cx);
    }
    return l->why != NULL;
}

static verdict all(lb_ctx *cx, lb_file *f, int bins, json *j)
{
    int name = 4, kind = 12;
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        name = wider(name, name_width(lb_file_entry(f, i)->name));
        kind = wider(kind, kind_width(lb_file_entry(f, i)));
    }
    if (j)
        json_open(j, '[');
    else {
        put_column(stdout, "name", name);
        put_column(stdout, "type", kind);
        printf("%9s %10s %10s %10s\n", "min", "max", "mean", "std");
    }
    verdict v = DONE;
    for (int64_t i = 0; v == DONE && i < lb_file_count(f); i++) {
        look l = {.e = lb_file_entry(f, i)};
        if (!look_if_possible(cx, f, bins, &l)) {
            v = complain_of(cx);
        } else if (j) {
            fputs(j->more ? ",\n" : "\n", stdout);
            j->more = false;
            json_look(j, &l);
        } else
            print_row(&l, name, kind);
    }
    if (j) {
        json_close(j, ']');
        putchar('\n');
    }
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
        return complain(FAILED, "no array '%.200s'; is it %s?", name,
                        show_name(meant).s);
    return complain(FAILED, "no array '%.200s'; lowbit info lists them", name);
}

static verdict one(lb_ctx *cx, lb_file *f, const char *name, int bins, json *j)
{
    look l = {.e = lb_file_find(f, name)};
    if (!l.e) return no_array(f, name);
    if (!look_at(cx, f, bins, &l)) return complain_of(cx);
    if (j) {
        json_look(j, &l);
        putchar('\n');
    } else
        print_one(&l);
    return DONE;
}

static verdict run(const arguments *a)
{
    const lb_file_options options = {.struct_size = sizeof options,
                                     .raw = a->count[OPTION_RAW] != 0};
    json text = {.to = stdout}, *j = a->count[OPTION_JSON] ? &text : NULL;
    int64_t bins = 24, jobs = 0;
    if (!argument_number(a, OPTION_BINS, 2, BINS_MOST, &bins) ||
        !argument_number(a, OPTION_JOBS, 1, 256, &jobs))
        return USAGE;
    lb_ctx *cx = context_open((int)jobs);
    if (!cx) return FAILED;
    lb_file *f = lb_file_open(cx, a->operand[0], &options);
    verdict v;
    if (!f)
        v = complain_of(cx);
    else if (a->n_operands == 2)
        v = one(cx, f, a->operand[1], (int)bins, j);
    else
        v = all(cx, f, (int)bins, j);
    lb_file_close(f);
    lb_close(cx);
    return v;
}

static const option_id options_taken[] = {OPTION_BINS, OPTION_JOBS, OPTION_JSON,
                                          OPTION_RAW, N_OPTIONS};

const verb verb_stats = {
    .name = "stats",
    .operands = "FILE [ARRAY]",
    .summary = "Draws how the numbers of a file are distributed",
    .help = "Of every array a line, or of one all there is to see: the least "
            "and the largest number,\nmean, standard deviation, and a "
            "histogram, which ends four deviations from the mean;\nof codes, "
            "too, where there are not too many. NO_COLOR is obeyed.",
    .examples = "lowbit stats model.safetensors\n"
                "lowbit stats model.safetensors lm_head.weight --bins 40",
    .n_operands = 1,
    .n_optional = 1,
    .options = options_taken,
    .run = run,
};
