/* report_plots.c - plots of a report, as SVG inside HTML.
 *
 * Widths are percentages and heights pixels, so that a plot is as wide as the
 * page and its text stays readable on a phone. Colours (--c0, ...) are defined
 * by the page, for light and dark mode.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* ---- sizes --------------------------------------------------------------- */

enum { COLOURS = 8 };

/* A type has the same colour in both bars. */
typedef struct palette {
    const char *key[2 * REPORT_GROUPS];
    int n;
} palette;

static int colour_of(palette *p, const char *key)
{
    int i = 0;
    while (i < p->n && strcmp(p->key[i], key) != 0)
        i++;
    if (i == p->n) p->key[p->n++] = key;
    return i % COLOURS;
}

static void size_bar(FILE *to, palette *p, const report_group *g, int n,
                     bool after, double most, int y)
{
    double x = 0;
    for (int i = 0; i < n; i++) {
        const uint64_t bytes = after ? g[i].after : g[i].before;
        const double w = most > 0 ? 100 * (double)bytes / most : 0;
        fprintf(to,
                "<rect x=\"%.3f%%\" y=\"%d\" width=\"%.3f%%\" height=\"26\" "
                "class=\"f%d seg\"><title>",
                x, y, w, colour_of(p, g[i].key));
        put_html(to, g[i].key);
        fprintf(to, ", %" PRId64 " array%s, %s</title></rect>\n", g[i].count,
                g[i].count == 1 ? "" : "s", show_bytes(bytes).s);
        x += w;
    }
}

void plot_sizes(const report *r, FILE *to)
{
    report_group was[REPORT_GROUPS], is[REPORT_GROUPS], all[REPORT_GROUPS];
    const int n = report_groups(r, report_by_source, was);
    const int m = report_groups(r, report_by_type, is);
    palette p = {.n = 0};
    if (!report_groups(r, report_all, all)) return;
    const double most = fmax((double)all[0].before, (double)all[0].after);
    fprintf(to,
            "<svg class=\"plot\" height=\"104\" role=\"img\" aria-label=\"Size "
            "before and after\">\n<text y=\"14\">before: %s</text>\n",
            show_bytes(all[0].before).s);
    size_bar(to, &p, was, n, false, most, 20);
    fprintf(to, "<text y=\"68\">after: %s</text>\n",
            show_bytes(all[0].after).s);
    size_bar(to, &p, is, m, true, most, 74);
    fputs("</svg>\n<p class=\"legend\">", to);
    for (int i = 0; i < p.n; i++) {
        fprintf(to, "<span><i class=\"b%d\"></i>", i % COLOURS);
        put_html(to, p.key[i]);
        fputs("</span> ", to);
    }
    fputs("</p>\n", to);
}

/* ---- layers -------------------------------------------------------------- */

/* Cells share the available width, but have a minimum size; if they do not fit
 * they scroll, while the names, in a column of their own, stay in place. */
static void layer_cells(const report_grid *g, double hi, FILE *to)
{
    enum { HIGH = 20, NARROW = 9 };
    const double w = 100.0 / g->layers;
    const int step = g->layers > 40 ? 10 : g->layers > 10 ? 5 : 1;
    fprintf(to,
            "<div class=\"scroll wide\"><svg class=\"plot\" height=\"%d\" "
            "style=\"min-width:%dpx\" role=\"img\" aria-label=\"Error by layer "
            "and module\">\n",
            g->modules * HIGH + 18, g->layers * NARROW);
    for (int m = 0; m < g->modules; m++)
        for (int l = 0; l < g->layers; l++) {
            const lb_difference *d = &g->cell[m * GRID_LAYERS + l].error;
            if (!d->n) continue;
            const double e = lb_difference_nrmse(d);
            const double v = isfinite(e) && hi > 0 ? e / hi : 1;
            fprintf(to,
                    "<rect x=\"%.3f%%\" y=\"%d\" width=\"%.3f%%\" "
                    "height=\"%d\" class=\"cell\" fill-opacity=\"%.3f\">"
                    "<title>layer %d, ",
                    l * w, m * HIGH, w, HIGH, 0.04 + 0.96 * v, l);
            put_html(to, g->module[m]);
            fprintf(to, ": nrmse %.4g</title></rect>\n", e);
        }
    for (int l = 0; l < g->layers; l += step)
        fprintf(to, "<text x=\"%.3f%%\" y=\"%d\" class=\"mid\">%d</text>\n",
                (l + 0.5) * w, g->modules * HIGH + 14, l);
    fputs("</svg></div>", to);
}

void plot_layers(const report *r, FILE *to)
{
    report_grid g;
    double hi = 0;
    if (!report_grid_of(r, &g)) {
        free(g.cell);
        return;
    }
    for (int i = 0; i < g.modules * GRID_LAYERS; i++) {
        const double e = lb_difference_nrmse(&g.cell[i].error);
        if (!g.cell[i].error.n || !isfinite(e)) continue;
        hi = fmax(hi, e);
    }
    fputs("<section><h2>Error by layer and module</h2>\n<div class=\"grid\">"
          "<div class=\"names\">",
          to);
    for (int m = 0; m < g.modules; m++) {
        fputs("<div title=\"", to);
        put_html(to, g.module[m]);
        fputs("\">", to);
        put_html(to, g.module[m]);
        fputs("</div>", to);
    }
    fputs("</div>", to);
    layer_cells(&g, hi, to);
    fprintf(to,
            "</div>\n<p class=\"legend\"><span>nrmse 0 <i class=\"ramp\">"
            "</i> %.4g</span> <span>x axis: layer</span></p></section>\n",
            hi);
    free(g.cell);
}

/* ---- codes --------------------------------------------------------------- */

static double all_of(const code_counts *c)
{
    double n = 0;
    for (int k = 0; k < CODES_MOST; k++)
        n += (double)c->count[k];
    return n;
}

/* Entropy in bits per code. */
static double entropy(const code_counts *c)
{
    const double n = all_of(c);
    double h = 0;
    for (int k = 0; k < CODES_MOST; k++)
        if (c->count[k]) {
            const double p = (double)c->count[k] / n;
            h -= p * log2(p);
        }
    return h;
}

/* The codes to draw: a range, without the gaps in a small one (binary has -1
 * and 1). Returns their number. */
static int drawn_codes(const report_codes *c, int code[CODES_MOST])
{
    enum { SMALL = 16 };
    const int least =
        c->seen.least < c->ideal.least ? c->seen.least : c->ideal.least;
    const int most =
        c->seen.most > c->ideal.most ? c->seen.most : c->ideal.most;
    int n = 0;
    for (int k = least; k <= most && n < CODES_MOST; k++)
        if (most - least >= SMALL || c->seen.count[k & 255] ||
            c->ideal.count[k & 255])
            code[n++] = k;
    return n;
}

void plot_codes(const report_codes *c, FILE *to)
{
    enum { HIGH = 130 };
    int code[CODES_MOST];
    const int n = drawn_codes(c, code);
    const double seen = all_of(&c->seen), ideal = all_of(&c->ideal);
    double top = 0;
    if (!(seen > 0) || !(ideal > 0)) return;
    for (int at = 0; at < n; at++) {
        top = fmax(top, (double)c->seen.count[code[at] & 255] / seen);
        top = fmax(top, (double)c->ideal.count[code[at] & 255] / ideal);
    }
    fprintf(to,
            "<h3>%s</h3>\n<svg class=\"plot\" height=\"%d\" role=\"img\" "
            "aria-label=\"Codes of %s\">\n",
            c->format, HIGH + 20, c->format);
    for (int at = 0; at < n; at++) {
        const int k = code[at];
        const double x = 100.0 * at / n, w = 100.0 / n;
        const double s = (double)c->seen.count[k & 255] / seen;
        const double i = (double)c->ideal.count[k & 255] / ideal;
        fprintf(
            to,
            "<rect x=\"%.3f%%\" y=\"%.1f\" width=\"%.3f%%\" height=\"%.1f\" "
            "class=\"f0\"><title>code %d: %.2f %%, Gaussian %.2f "
            "%%</title></rect>\n",
            x + 0.1 * w, HIGH - HIGH * s / top, 0.8 * w, HIGH * s / top, k,
            100 * s, 100 * i);
        fprintf(to,
                "<line x1=\"%.3f%%\" x2=\"%.3f%%\" y1=\"%.1f\" y2=\"%.1f\" "
                "class=\"ideal\"/>\n",
                x, x + w, HIGH - HIGH * i / top, HIGH - HIGH * i / top);
        if (n <= 16 || k % 32 == 0)
            fprintf(to, "<text x=\"%.3f%%\" y=\"%d\" class=\"mid\">%d</text>\n",
                    x + w / 2, HIGH + 15, k);
    }
    fprintf(to,
            "</svg>\n<p class=\"legend\"><span><i class=\"b0\"></i>these "
            "weights</span> <span><i class=\"line\"></i>Gaussian values</span> "
            "<span class=\"say\">entropy %.2f bits per code (Gaussian: "
            "%.2f)</span></p>\n",
            entropy(&c->seen), entropy(&c->ideal));
}

/* ---- worst --------------------------------------------------------------- */

void plot_worst(const report *r, FILE *to)
{
    int64_t worst[10];
    const int n = report_worst(r, worst, 10);
    double top = 0;
    if (!n) return;
    for (int i = 0; i < n; i++) {
        const double e = lb_difference_nrmse(&r->row[worst[i]].error);
        if (isfinite(e)) top = fmax(top, e);
    }
    fputs("<section><h2>Largest errors (nrmse)</h2>\n<ol class=\"worst\">\n",
          to);
    for (int i = 0; i < n; i++) {
        const report_row *row = &r->row[worst[i]];
        const double e = lb_difference_nrmse(&row->error);
        fprintf(to, "<li><b>%.4g</b><span class=\"name\">", e);
        put_html_name(to, row->name);
        fputs("</span> <span class=\"soft\">", to);
        put_html(to, row->to);
        fprintf(to,
                ", max %.3g, cosine %.6g</span>"
                "<svg height=\"6\" aria-hidden=\"true\"><rect class=\"f0\" "
                "height=\"6\" rx=\"3\" width=\"%.2f%%\"/></svg></li>\n",
                row->error.max, lb_difference_cosine(&row->error),
                isfinite(e) && top > 0 ? 100 * e / top : 100);
    }
    fputs("</ol></section>\n", to);
}
