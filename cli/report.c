/* report.c - the data of a report, and figures derived from it. */
#include "report.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* ---- filling ------------------------------------------------------------- */

/* Characters that need quotes in a shell. */
static bool is_plain(const char *word)
{
    static const char more[] = "@%+=:,./-_";
    for (const char *p = word; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr(more, *p)) return false;
    return *word;
}

static bool is_text(const char *word)
{
    const size_t n = strlen(word);
    const unsigned char *p = (const unsigned char *)word;
    for (size_t i = 0, k; i < n; i += k)
        if (!(k = utf8_length(p + i, n - i)) || is_control(p + i, k))
            return false;
    return true;
}

/* Quotes unprintable characters as bash's $'...', so that the command is one
 * line. */
static void put_bytes(FILE *to, const char *word)
{
    fputs("$'", to);
    for (const unsigned char *p = (const unsigned char *)word; *p; p++)
        if (*p < 0x20 || *p >= 0x7f)
            fprintf(to, "\\%03o", *p);
        else
            fprintf(to, *p == '\'' || *p == '\\' ? "\\%c" : "%c", *p);
    fputc('\'', to);
}

static void put_word(FILE *to, const char *word)
{
    if (is_plain(word)) {
        fputs(word, to);
        return;
    }
    if (!is_text(word)) {
        put_bytes(to, word);
        return;
    }
    fputc('\'', to);
    for (const char *p = word; *p; p++)
        if (*p == '\'')
            fputs("'\\''", to);
        else
            fputc(*p, to);
    fputc('\'', to);
}

void report_begin(report *r, const char *what, int argc, char **argv)
{
    size_t size = 0;
    *r = (report){.verb = what,
                  .kept = strcmp(what, "quantize") == 0 ? "Not quantized"
                                                        : "Left unchanged",
                  .seconds = -now()};
    FILE *text = open_memstream(&r->command, &size);
    if (!text) {
        r->lacks_memory = true;
        return;
    }
    fputs("lowbit", text);
    for (int i = 1; i < argc; i++) {
        fputc(' ', text);
        put_word(text, argv[i]);
    }
    fclose(text);
}

static void row_free(report_row *row)
{
    free(row->name);
    free(row->shape);
    free(row->from);
    free(row->to);
    free(row->format);
    free(row->kept);
    free(row->refused);
    free((char *)(uintptr_t)row->entry.type);
    free((char *)(uintptr_t)row->entry.format);
    free((int64_t *)(uintptr_t)row->entry.dim);
}

void report_free(report *r)
{
    for (int64_t i = 0; i < r->n; i++)
        row_free(&r->row[i]);
    free(r->row);
    free(r->command);
    free(r->hash);
}

static char *copy(report *r, const char *text)
{
    char *p = text ? strdup(text) : NULL;
    if (text && !p) r->lacks_memory = true;
    return p;
}

static char *shape_text(report *r, const lb_entry *e)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to) {
        r->lacks_memory = true;
        return NULL;
    }
    put_shape(to, e->dim, e->rank);
    fclose(to);
    return text;
}

static const int64_t *copy_dims(report *r, const lb_entry *e)
{
    int64_t *dim = calloc((size_t)e->rank + 1, sizeof *dim);
    r->lacks_memory |= !dim;
    if (dim && e->rank) memcpy(dim, e->dim, (size_t)e->rank * sizeof *dim);
    return dim;
}

static bool is_verbatim(const char *kept)
{
    return kept && strcmp(kept, "copied unchanged") == 0;
}

void report_add(report *r, const lb_entry *from, const char *to,
                const char *format, lb_dtype dtype, const char *kept,
                uint64_t after, const lb_difference *error)
{
    char kind[64];
    if (r->n == r->room) {
        const int64_t room = r->room ? 2 * r->room : 256;
        report_row *row = realloc(r->row, (size_t)room * sizeof *row);
        r->lacks_memory |= !row;
        if (!row) return;
        r->row = row;
        r->room = room;
    }
    entry_kind(from, kind, sizeof kind);
    report_row row = {.name = copy(r, from->name),
                      .shape = shape_text(r, from),
                      .from = copy(r, kind),
                      .to = copy(r, to),
                      .format = copy(r, format),
                      .kept = copy(r, kept),
                      .entry = *from,
                      .dtype = dtype,
                      .elements = is_verbatim(kept) ? (double)NAN
                                                    : entry_elements(from),
                      .before = from->nbytes,
                      .after = after};
    row.entry.name = row.name;
    row.entry.type = copy(r, from->type);
    row.entry.format = copy(r, from->format);
    row.entry.dim = copy_dims(r, from);
    if (error) row.error = *error;
    if (row.name && row.shape && row.from && row.to && row.entry.type &&
        row.entry.dim)
        r->row[r->n++] = row;
    else
        row_free(&row);
}

/* Counts the codes of Gaussian values in the format. */
static bool count_ideal(report_codes *c, lb_ctx *cx)
{
    const lb_quant_config config = {.format = c->format};
    lb_array *x =
        lb_random_normal(cx, (lb_key){0}, LB_F32, LB_SHAPE(256, 1024));
    return codes_add(&c->ideal, cx, lb_quantize(cx, x, &config));
}

bool report_count(report *r, lb_ctx *cx, lb_array *a)
{
    int i = 0;
    const char *format = lb_format_of(a);
    if (!a || strcmp(format, "dense") == 0) return a != NULL;
    while (i < r->n_codes && strcmp(r->codes[i].format, format) != 0)
        i++;
    if (i == REPORT_CODES) return true;
    report_codes *c = &r->codes[i];
    if (i == r->n_codes) {
        *c = (report_codes){.seen.least = 1, .ideal.least = 1};
        snprintf(c->format, sizeof c->format, "%s", format);
        r->n_codes++;
        lb_enter(cx);
        const bool ok = count_ideal(c, cx);
        lb_leave(cx);
        if (!ok) return false;
    }
    return codes_add(&c->seen, cx, a);
}

void report_end(report *r)
{
    struct rusage used;
    const time_t at = time(NULL);
    struct tm tm;
    r->seconds += now();
    if (gmtime_r(&at, &tm))
        strftime(r->date, sizeof r->date, "%Y-%m-%d %H:%M UTC", &tm);
    if (getrusage(RUSAGE_SELF, &used) == 0)
        r->peak = (uint64_t)used.ru_maxrss * 1024;
}

const char *report_title(const report *r)
{
    return r->result ? r->result : r->source;
}

bool report_is_dense(const report *r)
{
    for (int64_t i = 0; i < r->n; i++) {
        const char *format = r->row[i].entry.format;
        if (format && strcmp(format, "dense") != 0) return false;
    }
    return true;
}

/* ---- figures ------------------------------------------------------------- */

void difference_add(lb_difference *all, const lb_difference *d)
{
    all->n += d->n;
    all->apart += d->apart;
    all->nonfinite += d->nonfinite;
    all->aa += d->aa;
    all->bb += d->bb;
    all->ab += d->ab;
    all->dd += d->dd;
    if (d->max > all->max) all->max = d->max;
}

double bits_per_weight(uint64_t bytes, double elements)
{
    if (isnan(elements)) return elements;
    return elements > 0 ? 8 * (double)bytes / elements : 0;
}

size_text show_bits(uint64_t bytes, double elements)
{
    size_text t = {""};
    const double bits = bits_per_weight(bytes, elements);
    if (!isnan(bits)) snprintf(t.s, sizeof t.s, "%.3f", bits);
    return t;
}

bool report_is_verbatim(const report *r)
{
    for (int64_t i = 0; i < r->n; i++)
        if (!is_verbatim(r->row[i].kept)) return false;
    return r->n > 0;
}

const char *report_by_type(const report_row *row)
{
    return row->to;
}

const char *report_by_source(const report_row *row)
{
    return row->from;
}

const char *report_by_reason(const report_row *row)
{
    return row->kept;
}

const char *report_all(const report_row *row)
{
    (void)row;
    return "all";
}

int report_groups(const report *r, report_key *key, report_group *to)
{
    int n = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const report_row *row = &r->row[i];
        const char *k = key(row);
        int g = 0;
        if (!k) continue;
        while (g < n && strcmp(to[g].key, k) != 0)
            g++;
        if (g == REPORT_GROUPS) g--; /* the last group takes the rest */
        if (g == n) to[n++] = (report_group){.key = k};
        to[g].count++;
        to[g].elements += row->elements;
        to[g].before += row->before;
        to[g].after += row->after;
        difference_add(&to[g].error, &row->error);
        const double e = row->error.n ? lb_difference_nrmse(&row->error) : 0;
        if (e > to[g].worst) to[g].worst = e;
    }
    return n;
}

lb_difference report_error(const report *r)
{
    lb_difference d = {0};
    for (int64_t i = 0; i < r->n; i++)
        if (r->row[i].error.apart) difference_add(&d, &r->row[i].error);
    return d;
}

/* Values that are not finite rank before all errors. */
static double badness(const report_row *row)
{
    const double e = lb_difference_nrmse(&row->error);
    return isnan(e) ? HUGE_VAL : e;
}

int report_worst(const report *r, int64_t *to, int n)
{
    int have = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const report_row *row = &r->row[i];
        if (!row->error.n || !row->error.apart) continue;
        int at = have;
        while (at > 0 && badness(&r->row[to[at - 1]]) < badness(row))
            at--;
        if (at == n) continue;
        if (have < n) have++;
        memmove(to + at + 1, to + at, (size_t)(have - 1 - at) * sizeof *to);
        to[at] = i;
    }
    return have;
}

/* ---- by layer and module ------------------------------------------------- */

/* Layer and module of a name; layer -1 if the name contains no number. Further
 * numbers (experts) are removed. */
static int layer_of(const char *name, char *module, size_t size)
{
    int layer = -1;
    size_t n = 0;
    for (const char *p = name; *p;) {
        const size_t k = strcspn(p, ".");
        const bool number = k && strspn(p, "0123456789") == k && k < 6;
        if (number && layer < 0) {
            layer = atoi(p);
            n = 0; /* skip what all names have in common */
        } else if (!number && strcmp(p, "weight") != 0)
            n += (size_t)snprintf(module + n, size - n, "%s%.*s", n ? "." : "",
                                  (int)k, p);
        if (n >= size) n = size - 1;
        p += k + (p[k] == '.');
    }
    module[n] = 0;
    return layer < GRID_LAYERS ? layer : -1;
}

static int module_index(report_grid *g, const char *module)
{
    int m = 0;
    while (m < g->modules && strcmp(g->module[m], module) != 0)
        m++;
    if (m == GRID_MODULES) return -1;
    if (m == g->modules)
        snprintf(g->module[g->modules++], sizeof g->module[0], "%s", module);
    return m;
}

bool report_grid_of(const report *r, report_grid *g)
{
    char module[64];
    *g = (report_grid){
        .cell = calloc((size_t)GRID_MODULES * GRID_LAYERS, sizeof *g->cell)};
    if (!g->cell) return false;
    for (int64_t i = 0; i < r->n; i++) {
        const report_row *row = &r->row[i];
        if (!row->error.n || !row->error.apart) continue;
        const int layer = layer_of(row->name, module, sizeof module);
        const int m = layer < 0 ? -1 : module_index(g, module);
        if (m < 0) continue;
        difference_add(&g->cell[m * GRID_LAYERS + layer].error, &row->error);
        if (layer >= g->layers) g->layers = layer + 1;
    }
    return g->layers > 0;
}
