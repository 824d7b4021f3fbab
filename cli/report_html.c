/* report_html.c - renders a report as one self-contained HTML page: no external
 * scripts, fonts or images. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

void put_html(FILE *to, const char *text)
{
    char *plain = NULL;
    size_t size = 0;
    FILE *f = text ? open_memstream(&plain, &size) : NULL;
    if (!f) return;
    put_text(f, text, strlen(text));
    fclose(f);
    for (const char *p = plain; plain && *p; p++)
        switch (*p) {
        case '&':
            fputs("&amp;", to);
            break;
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '"':
            fputs("&quot;", to);
            break;
        default:
            fputc(*p, to);
        }
    free(plain);
}

/* Names may break after dots. */
void put_html_name(FILE *to, const char *name)
{
    char part[256];
    while (*name) {
        const size_t dot = strcspn(name, ".");
        const size_t n = dot + (name[dot] != 0);
        snprintf(part, sizeof part, "%.*s", (int)n, name);
        put_html(to, n < sizeof part ? part : name);
        if (n >= sizeof part) return;
        name += n;
        if (*name) fputs("<wbr>", to);
    }
}

size_text show_thousands(double n)
{
    char digits[32];
    size_text t;
    size_t at = 0;
    const int length =
        isnan(n) ? 0 : snprintf(digits, sizeof digits, "%.0f", n);
    for (int i = 0; i < length && i < 20; i++) {
        if (i && (length - i) % 3 == 0) t.s[at++] = ',';
        t.s[at++] = digits[i];
    }
    t.s[at] = 0;
    return t;
}

/* ---- terms --------------------------------------------------------------- */

enum { NRMSE, MAX, COSINE, BITS, BLOCK, WEIGHTS, CODES, TERMS };
static const struct {
    const char *word, *meaning;
} terms[TERMS] = {
    [NRMSE] = {"nrmse", "normalized root mean square error: |a - b| / |a| with "
                        "Euclidean norms, 0 is exact"},
    [MAX] = {"max", "largest absolute difference of two values"},
    [COSINE] = {"cosine", "cosine similarity of the values before and after, 1 "
                          "is exact"},
    [BITS] = {"bits", "bits per weight: 8 x bytes / weights, scales included"},
    [BLOCK] = {"block", "number of elements that share a scale"},
    [WEIGHTS] = {"weights", "number of elements"},
    [CODES] = {"entropy", "information per code in bits; it is largest if all "
                          "codes are used equally often"},
};

static void head(FILE *to, int term)
{
    fprintf(to, "<th title=\"%s\">%s</th>", terms[term].meaning,
            terms[term].word);
}

static void legend(FILE *to)
{
    fputs("<section><h2>Terms</h2>\n<dl>", to);
    for (int i = 0; i < TERMS; i++)
        fprintf(to, "<dt>%s</dt><dd>%s</dd>\n", terms[i].word,
                terms[i].meaning);
    fputs("</dl></section>\n", to);
}

/* ---- pieces -------------------------------------------------------------- */

static void tile(FILE *to, const char *label, const char *value)
{
    fprintf(to, "<div class=\"tile\"><b>%s</b><span>%s</span></div>\n", value,
            label);
}

static void term_tile(FILE *to, int term, const char *label, const char *value)
{
    fprintf(to,
            "<div class=\"tile\" title=\"%s\"><b>%s</b><span><abbr>%s</abbr>"
            "</span></div>\n",
            terms[term].meaning, value, label);
}

static void tiles(const report *r, const report_group *all, FILE *to)
{
    const lb_difference d = report_error(r);
    char text[96], rate[96];
    fputs("<div class=\"tiles\">\n", to);
    tile(to, "before", show_bytes(all->before).s);
    snprintf(text, sizeof text, "after (%.1f %%)",
             all->before ? 100 * (double)all->after / (double)all->before : 0);
    tile(to, text, show_bytes(all->after).s);
    if (!isnan(all->elements))
        term_tile(to, BITS, "bits per weight",
                  show_bits(all->after, all->elements).s);
    if (d.n) {
        snprintf(text, sizeof text, "%.4g", lb_difference_nrmse(&d));
        term_tile(to, NRMSE, "error (nrmse)", text);
        snprintf(text, sizeof text, "%.6f", lb_difference_cosine(&d));
        term_tile(to, COSINE, "cosine similarity", text);
    }
    snprintf(rate, sizeof rate, "%s%s%s", show_rate(all->before, r->seconds).s,
             r->peak ? ", peak memory " : "",
             r->peak ? show_bytes(r->peak).s : "");
    tile(to, rate, show_seconds(r->seconds).s);
    fputs("</div>\n", to);
}

static void error_cells(const lb_difference *d, FILE *to)
{
    const double e = lb_difference_nrmse(d), c = lb_difference_cosine(d);
    if (d->apart)
        fprintf(to,
                "<td data-v=\"%.9g\">%.4g</td><td data-v=\"%.9g\">%.4g</td>"
                "<td data-v=\"%.9g\">%.6f</td>",
                e, e, d->max, d->max, c, c);
    else
        fputs("<td></td><td></td><td></td>", to);
}

static void bytes_cell(uint64_t bytes, FILE *to)
{
    fprintf(to, "<td data-v=\"%" PRIu64 "\" title=\"%s bytes\">%s</td>", bytes,
            show_thousands((double)bytes).s, show_bytes(bytes).s);
}

static void groups_table(const report *r, report_key *key, const char *title,
                         const char *what, bool errors, FILE *to)
{
    report_group g[REPORT_GROUPS];
    const int n = report_groups(r, key, g);
    if (!n) return;
    fprintf(to,
            "<section><h2>%s</h2>\n<div class=\"scroll\"><table><tr><th>%s</th>"
            "<th>arrays</th>",
            title, what);
    head(to, WEIGHTS);
    fputs("<th>before</th><th>after</th>", to);
    head(to, BITS);
    for (int k = NRMSE; errors && k <= COSINE; k++)
        head(to, k);
    fputs("</tr>\n", to);
    for (int i = 0; i < n; i++) {
        fputs("<tr><td>", to);
        put_html(to, g[i].key);
        fprintf(to, "</td><td>%s</td><td>%s</td>",
                show_thousands((double)g[i].count).s,
                show_thousands(g[i].elements).s);
        bytes_cell(g[i].before, to);
        bytes_cell(g[i].after, to);
        fprintf(to, "<td>%s</td>", show_bits(g[i].after, g[i].elements).s);
        if (errors) error_cells(&g[i].error, to);
        fputs("</tr>\n", to);
    }
    fputs("</table></div></section>\n", to);
}

static void name_cell(const char *name, FILE *to)
{
    fputs("<td>", to);
    put_html_name(to, name);
    fputs("</td>", to);
}

static void array_row(const report_row *row, FILE *to)
{
    const double elements = entry_elements(&row->entry);
    fputs("<tr>", to);
    name_cell(row->name, to);
    fprintf(to, "<td data-v=\"%.0f\" title=\"%s elements\">%s</td><td>",
            elements, show_thousands(elements).s, row->shape);
    put_html(to, row->from);
    fputs("</td><td>", to);
    put_html(to, row->to);
    fputs("</td>", to);
    if (row->block)
        fprintf(to, "<td data-v=\"%" PRId64 "\">%s</td>", row->block,
                show_thousands((double)row->block).s);
    else
        fputs("<td></td>", to);
    bytes_cell(row->before, to);
    bytes_cell(row->after, to);
    error_cells(&row->error, to);
    fputs("<td>", to);
    put_html(to, row->kept);
    fputs("</td></tr>\n", to);
}

/* Open unless it is longer than a few pages. */
static void arrays_table(const report *r, FILE *to)
{
    enum { SHORT = 400 };
    fprintf(to,
            "<section><details%s><summary>%s%s array%s <span class=\"soft\">"
            "(click a column to sort)</span></summary>\n<div class=\"scroll\">"
            "<table class=\"sort\"><thead><tr><th>array</th><th>shape</th>"
            "<th>from</th><th>to</th>",
            r->n <= SHORT ? " open" : "", r->n == 1 ? "" : "All ",
            show_thousands((double)r->n).s, r->n == 1 ? "" : "s");
    head(to, BLOCK);
    fputs("<th>before</th><th>after</th>", to);
    for (int k = NRMSE; k <= COSINE; k++)
        head(to, k);
    fprintf(to, "<th>%s</th></tr></thead><tbody>\n",
            strcmp(r->verb, "diff") == 0 ? "note" : "reason");
    for (int64_t i = 0; i < r->n; i++)
        array_row(&r->row[i], to);
    fputs("</tbody></table></div></details></section>\n", to);
}

static void fact(FILE *to, const char *what, const char *text)
{
    if (!text || !*text) return;
    fprintf(to, "<dt>%s</dt><dd>", what);
    /* Line by line: put_html would escape line breaks. */
    while (*text) {
        const size_t n = strcspn(text, "\n");
        char *line = strndup(text, n);
        put_html(to, line);
        free(line);
        text += n + (text[n] != 0);
        if (*text) fputc('\n', to);
    }
    fputs("</dd>\n", to);
}

static void facts(const report *r, FILE *to)
{
    char layouts[128], blocks[256];
    const bool diff = strcmp(r->verb, "diff") == 0;
    report_layouts(r, layouts, sizeof layouts);
    report_blocks(r, blocks, sizeof blocks);
    fputs("<section><h2>Job</h2>\n<dl>", to);
    fact(to, diff ? "first" : "source", r->source);
    fact(to, "source hash (XXH128)", r->hash);
    if (r->result) fact(to, diff ? "second" : "output", r->result);
    fact(to, "layout", layouts);
    fact(to, "block size", blocks);
    fact(to, "date", r->date);
    fact(to, "lowbit", lb_version());
    fact(to, "command", r->command);
    fputs("</dl></section>\n", to);
}

static void codes_section(const report *r, FILE *to)
{
    bool any = false;
    for (int i = 0; i < r->n_codes; i++)
        any |= r->codes[i].seen.least <= r->codes[i].seen.most;
    if (!any) return;
    fputs("<section><h2>Code usage</h2>\n", to);
    for (int i = 0; i < r->n_codes; i++)
        plot_codes(&r->codes[i], to);
    fputs("</section>\n", to);
}

/* ---- the page ------------------------------------------------------------ */

static void put_title(const report *r, FILE *to)
{
    if (strcmp(r->verb, "diff") == 0) {
        put_html(to, r->source);
        fputs(" vs. ", to);
    }
    put_html(to, report_title(r));
}

void report_html(const report *r, FILE *to)
{
    report_group all[REPORT_GROUPS] = {{.key = "all"}};
    report_groups(r, report_all, all);
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,"
          "initial-scale=1\">\n<title>",
          to);
    put_title(r, to);
    fprintf(to, "</title>\n<style>\n%s%s</style></head><body><main>\n<h1>",
            report_style, report_table_style);
    put_title(r, to);
    fprintf(to, "</h1>\n<p class=\"soft\">%s%s",
            r->dry_run ? "Dry run, nothing was written: " : "", r->verb);
    if (strcmp(r->verb, "diff") != 0) {
        fputs(" of ", to);
        put_html(to, r->source);
    }
    fprintf(to, ", %s array%s, lowbit %s, %s</p>\n",
            show_thousands((double)r->n).s, r->n == 1 ? "" : "s", lb_version(),
            r->date);
    tiles(r, &all[0], to);
    fputs("<section><h2>Size</h2>\n", to);
    plot_sizes(r, to);
    fputs("</section>\n", to);
    groups_table(r, report_by_type, "Types", "type", true, to);
    plot_layers(r, to);
    plot_worst(r, to);
    codes_section(r, to);
    groups_table(r, report_by_reason, r->kept, "reason", false, to);
    arrays_table(r, to);
    facts(r, to);
    legend(to);
    fprintf(to, "</main>\n<script>\n%s</script></body></html>\n",
            report_script);
}
