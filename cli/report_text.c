/* report_text.c - renders a report for the terminal, and as Markdown. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { WORST = 10 };

static report_group total(const report *r)
{
    report_group g[REPORT_GROUPS] = {{.key = "all"}};
    report_groups(r, report_all, g);
    return g[0];
}

/* ---- text ---------------------------------------------------------------- */

static void text_types(const report *r, FILE *to)
{
    report_group g[REPORT_GROUPS];
    const int n = report_groups(r, report_by_type, g);
    const report_group all = total(r);
    fprintf(to, "  %-14s %7s %12s %7s %10s %7s %9s %9s %9s\n", "type", "arrays",
            "weights", "", "bytes", "bits", "nrmse", "max", "worst");
    for (int i = 0; i < n; i++) {
        fprintf(to, "  %-14s %7" PRId64, g[i].key, g[i].count);
        if (isnan(g[i].elements))
            fprintf(to, " %12s %7s", "", "");
        else
            fprintf(to, " %12.0f %5.1f %%", g[i].elements,
                    all.elements > 0 ? 100 * g[i].elements / all.elements : 0);
        fprintf(to, " %10s %7s", show_bytes(g[i].after).s,
                show_bits(g[i].after, g[i].elements).s);
        if (g[i].error.apart)
            fprintf(to, " %9.4g %9.4g %9.4g", lb_difference_nrmse(&g[i].error),
                    g[i].error.max, g[i].worst);
        fputc('\n', to);
    }
}

static void text_worst(const report *r, FILE *to)
{
    int64_t worst[WORST];
    const int n = report_worst(r, worst, WORST);
    if (!n) return;
    fputs("largest errors (nrmse)\n", to);
    for (int i = 0; i < n; i++) {
        const report_row *row = &r->row[worst[i]];
        fprintf(to, "  %9.4g  ", lb_difference_nrmse(&row->error));
        put_text(to, row->name, strlen(row->name));
        fprintf(to, "  %s\n", row->to);
    }
}

/* Lists the first few names. */
static void text_reason(const report *r, const report_group *g, FILE *to)
{
    enum { NAMES = 3 };
    int said = 0;
    fprintf(to, "  %7" PRId64 "  %9s  %s:", g->count, show_bytes(g->after).s,
            g->key);
    for (int64_t i = 0; i < r->n && said < NAMES; i++) {
        if (!r->row[i].kept || strcmp(r->row[i].kept, g->key) != 0) continue;
        fputs(said++ ? ", " : " ", to);
        put_text(to, r->row[i].name, strlen(r->row[i].name));
    }
    fputs(g->count > NAMES ? ", ...\n" : "\n", to);
}

/* Arrays that were not changed, by reason. */
static void text_kept(const report *r, FILE *to)
{
    report_group g[REPORT_GROUPS];
    const int n = report_groups(r, report_by_reason, g);
    if (!n) return;
    fprintf(to, "%s\n", r->kept);
    for (int i = 0; i < n; i++)
        text_reason(r, &g[i], to);
}

void report_text(const report *r, FILE *to)
{
    const report_group all = total(r);
    text_types(r, to);
    text_worst(r, to);
    text_kept(r, to);
    fprintf(to, "speed: %s", show_rate(all.before, r->seconds).s);
    if (r->peak) fprintf(to, ", peak memory %s", show_bytes(r->peak).s);
    fputs("\ncommand: ", to);
    if (r->command) put_text(to, r->command, strlen(r->command));
    fputc('\n', to);
}

/* ---- Markdown ------------------------------------------------------------ */

/* Escapes the characters that Markdown interprets outside of code. */
static void put_md(FILE *to, const char *text)
{
    char *plain = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&plain, &size);
    if (!f) return;
    put_text(f, text, strlen(text));
    fclose(f);
    for (const char *p = plain; plain && *p; p++) {
        if (strchr("\\`*_{}[]<>|#", *p)) fputc('\\', to);
        fputc(*p, to);
    }
    free(plain);
}

static void md_error(FILE *to, const lb_difference *d)
{
    if (d->apart)
        fprintf(to, "| %.4g | %.4g | %.7g |\n", lb_difference_nrmse(d), d->max,
                lb_difference_cosine(d));
    else
        fputs("| | | |\n", to);
}

static void md_groups(const report *r, report_key *key, const char *title,
                      FILE *to)
{
    report_group g[REPORT_GROUPS];
    const int n = report_groups(r, key, g);
    if (!n) return;
    fprintf(to,
            "\n| %s | arrays | weights | before | after | bits | nrmse | max | "
            "cosine |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
            title);
    for (int i = 0; i < n; i++) {
        fputs("| ", to);
        put_md(to, g[i].key);
        fprintf(to, " | %" PRId64 " | %s | %s | %s | %s ", g[i].count,
                show_thousands(g[i].elements).s, show_bytes(g[i].before).s,
                show_bytes(g[i].after).s,
                show_bits(g[i].after, g[i].elements).s);
        md_error(to, &g[i].error);
    }
}

/* The title of a diff names both files. */
static void md_title(const report *r, FILE *to)
{
    fputs("# ", to);
    if (strcmp(r->verb, "diff") == 0) {
        put_md(to, r->source);
        fputs(" vs. ", to);
    }
    put_md(to, report_title(r));
    fputc('\n', to);
}

static void md_fact(const char *what, const char *text, FILE *to)
{
    if (!text || !*text) return;
    fprintf(to, "- %s: ", what);
    put_md(to, text);
    fputc('\n', to);
}

/* r->hash has lines of "hash  file". */
static void md_facts(const report *r, FILE *to)
{
    char layouts[128], blocks[256];
    report_layouts(r, layouts, sizeof layouts);
    report_blocks(r, blocks, sizeof blocks);
    fputs("\n## Job\n\n", to);
    md_fact("layout", layouts, to);
    md_fact("block size", blocks, to);
    md_fact("date", r->date, to);
    md_fact("lowbit", lb_version(), to);
    for (const char *p = r->hash; p && *p;) {
        const size_t n = strcspn(p, "\n");
        char *line = strndup(p, n);
        if (line) md_fact("source hash (XXH128)", line, to);
        free(line);
        p += n + (p[n] != 0);
    }
}

static void md_row(const report_row *row, FILE *to)
{
    fputs("| ", to);
    put_md(to, row->name);
    fprintf(to, " | %s | %s | %s | %s | %s ", row->shape, row->from, row->to,
            show_bytes(row->before).s, show_bytes(row->after).s);
    md_error(to, &row->error);
}

static void md_refused(const report *r, FILE *to)
{
    bool any = false;
    for (int64_t i = 0; i < r->n; i++) {
        const report_row *row = &r->row[i];
        if (!row->refused) continue;
        if (!any)
            fputs("\n| array | shape | from | why it was not moved |\n"
                  "|---|---|---|---|\n",
                  to);
        any = true;
        fputs("| ", to);
        put_md(to, row->name);
        fprintf(to, " | %s | %s | ", row->shape, row->from);
        put_md(to, row->refused);
        fputs(" |\n", to);
    }
}

static const char md_head[] =
    "| array | shape | from | to | before | after | nrmse | max | cosine |\n"
    "|---|---|---|---|--:|--:|--:|--:|--:|\n";

void report_markdown(const report *r, FILE *to)
{
    const report_group all = total(r);
    const lb_difference d = report_error(r);
    int64_t worst[WORST];
    const int n = report_worst(r, worst, WORST);
    md_title(r, to);
    fputs(r->dry_run ? "\nDry run, nothing was written. " : "\n", to);
    fputs("From `", to);
    put_text(to, r->source, strlen(r->source));
    fprintf(to, "`: %s to %s", show_bytes(all.before).s,
            show_bytes(all.after).s);
    if (!isnan(all.elements))
        fprintf(to, ", %.4g bits per weight",
                bits_per_weight(all.after, all.elements));
    if (d.n) fprintf(to, "; error: nrmse %.4g", lb_difference_nrmse(&d));
    fprintf(to, ".\n\n    %s\n", r->command ? r->command : "");
    md_facts(r, to);
    fputs("\n## Types\n", to);
    md_groups(r, report_by_type, "type", to);
    if (n) fprintf(to, "\n## Largest errors\n\n%s", md_head);
    for (int i = 0; i < n; i++)
        md_row(&r->row[worst[i]], to);
    if (report_has_moves(r)) fputs("\n## Quantized arrays\n", to);
    md_groups(r, report_moved, "moved", to);
    md_refused(r, to);
    fprintf(to, "\n## %s\n", r->kept);
    md_groups(r, report_by_reason, "reason", to);
    fprintf(to, "\n## Arrays\n\n%s", md_head);
    for (int64_t i = 0; i < r->n; i++)
        md_row(&r->row[i], to);
}
