/* report_html.c - a report as one page that needs nothing else: no scripts, no
 * fonts, no pictures from elsewhere. */
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

/* Colours are told apart by lightness, too: f0 and c4 are the darkest. What is
 * scrolled has a shade at the side where there is more of it: the cover of the
 * shade moves with the text, and the shade does not. */
static const char style[] =
    ":root{color-scheme:light dark;--bg:#f6f7f8;--card:#fff;--ink:#1b2126;"
    "--soft:#5a6570;--line:#dfe3e6;--c0:#2a5d9c;--c1:#e08a1e;--c2:#3a9a6b;"
    "--c3:#9d6bb5;--c4:#7a3b2e;--c5:#69b3d6;--c6:#b8a33a;--c7:#8b95a0;"
    "--mark:#c2410c;--shade:#1b212638}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14181b;--card:#1d2327;"
    "--ink:#e6eaed;--soft:#98a4ae;--line:#313a40;--c0:#6aa5e8;--c1:#f0a94a;"
    "--c2:#5fc493;--c3:#c396da;--c4:#d98672;--c5:#8fd0ee;--c6:#d8c766;"
    "--c7:#7d8893;--mark:#ff9a62;--shade:#000b}}\n"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--bg);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif;font-variant-numeric:tabular-nums}\n"
    "main{max-width:1040px;margin:0 auto;padding:24px 16px 48px}"
    "h1{font-size:22px;line-height:1.3;margin:0 0 4px;overflow-wrap:anywhere}"
    "h2{font-size:16px;margin:0 0 12px}"
    "h3{font-size:14px;margin:16px 0 6px}"
    "p{margin:0}.soft{color:var(--soft)}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(148px,"
    "1fr));gap:12px;margin:20px 0}"
    ".tile,section{background:var(--card);border:1px solid var(--line);"
    "border-radius:8px}"
    ".tile{padding:10px 14px}.tile b{display:block;font-size:20px;"
    "font-weight:600}.tile span{color:var(--soft);font-size:13px}\n"
    "section{padding:16px;margin:0 0 16px;min-width:0}"
    "svg{display:block}svg text{fill:var(--soft);font-size:12px}"
    ".plot{width:100%;overflow:visible}.mid{text-anchor:middle}"
    ".seg{stroke:var(--card);stroke-width:1}"
    ".cell{fill:var(--c0);stroke:var(--card);stroke-width:2}.ideal{stroke:var(-"
    "-mark);stroke-width:2}\n"
    ".f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}"
    ".f3{fill:var(--c3)}.f4{fill:var(--c4)}.f5{fill:var(--c5)}"
    ".f6{fill:var(--c6)}.f7{fill:var(--c7)}\n"
    ".legend{color:var(--soft);font-size:13px;margin-top:10px}"
    ".legend span{margin-right:14px;white-space:nowrap}"
    ".legend .say{display:inline-block;margin:0;white-space:normal}"
    ".legend i{display:inline-block;width:11px;height:11px;border-radius:2px;"
    "margin-right:5px;vertical-align:-1px}"
    ".legend .line{height:2px;width:16px;background:var(--mark);"
    "vertical-align:4px}"
    ".legend .ramp{width:90px;background:linear-gradient(90deg,"
    "transparent -12%,var(--c0))}\n"
    ".b0{background:var(--c0)}.b1{background:var(--c1)}"
    ".b2{background:var(--c2)}.b3{background:var(--c3)}"
    ".b4{background:var(--c4)}.b5{background:var(--c5)}"
    ".b6{background:var(--c6)}.b7{background:var(--c7)}\n"
    ".grid{display:flex;gap:8px}.scroll{overflow-x:auto;min-width:0;"
    "background:linear-gradient(90deg,var(--card) 50%,transparent) 0 0/28px "
    "100% no-repeat local,linear-gradient(270deg,var(--card) 50%,transparent) "
    "100% 0/28px 100% no-repeat local,linear-gradient(90deg,var(--shade),"
    "transparent) 0 0/14px 100% no-repeat scroll,linear-gradient(270deg,"
    "var(--shade),transparent) 100% 0/14px 100% no-repeat scroll}"
    ".wide{flex:1}"
    ".names{flex:0 0 auto;max-width:40%;font-size:12px;color:var(--soft)}"
    ".names div{height:20px;line-height:20px;overflow:hidden;"
    "text-overflow:ellipsis;white-space:nowrap}\n"
    ".worst{margin:0;padding:0;list-style:none}.worst li{margin-bottom:10px}"
    ".worst .name{overflow-wrap:anywhere}.worst b{float:right;"
    "margin-left:12px}.worst svg{width:100%;clear:both;margin-top:2px}\n"
    "table{border-collapse:collapse;width:100%;font-size:13px}"
    "th{font-weight:500;color:var(--soft);text-align:right}"
    "td{text-align:right;border-top:1px solid var(--line)}"
    "th,td{padding:4px 0 4px 14px;white-space:nowrap;vertical-align:top}"
    "th:first-child,td:first-child{text-align:left;padding-left:0}"
    "summary{cursor:pointer}"
    "pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px}"
    "\n";

/* ---- pieces -------------------------------------------------------------- */

static void tile(FILE *to, const char *label, const char *value)
{
    fprintf(to, "<div class=\"tile\"><b>%s</b><span>%s</span></div>\n", value,
            label);
}

static void tiles(const report *r, const report_group *all, FILE *to)
{
    const lb_difference d = report_error(r);
    char text[96], rate[96];
    fputs("<div class=\"tiles\">\n", to);
    tile(to, "before", show_bytes(all->before).s);
    snprintf(text, sizeof text, "after, %.1f %%",
             all->before ? 100 * (double)all->after / (double)all->before : 0);
    tile(to, text, show_bytes(all->after).s);
    snprintf(text, sizeof text, "%.3f",
             bits_per_weight(all->after, all->elements));
    tile(to, "bits per weight", text);
    if (d.n) {
        snprintf(text, sizeof text, "%.4g", lb_difference_nrmse(&d));
        tile(to, "nrmse of what changed", text);
        snprintf(text, sizeof text, "%.6f", lb_difference_cosine(&d));
        tile(to, "cosine", text);
    }
    snprintf(rate, sizeof rate, "%s%s%s", show_rate(all->before, r->seconds).s,
             r->peak ? ", peak memory " : "",
             r->peak ? show_bytes(r->peak).s : "");
    tile(to, rate, show_seconds(r->seconds).s);
    fputs("</div>\n", to);
}

static void error_cells(const lb_difference *d, FILE *to)
{
    if (d->apart)
        fprintf(to, "<td>%.4g</td><td>%.4g</td><td>%.6f</td>",
                lb_difference_nrmse(d), d->max, lb_difference_cosine(d));
    else
        fputs("<td></td><td></td><td></td>", to);
}

static void groups_table(const report *r, report_key *key, const char *title,
                         const char *what, bool errors, FILE *to)
{
    report_group g[REPORT_GROUPS];
    const int n = report_groups(r, key, g);
    if (!n) return;
    fprintf(to,
            "<section><h2>%s</h2>\n<div class=\"scroll\"><table><tr><th>%s</th>"
            "<th>arrays</th><th>weights</th><th>before</th><th>after</th>"
            "<th>bits</th>%s</tr>\n",
            title, what,
            errors ? "<th>nrmse</th><th>max</th><th>cosine</th>" : "");
    for (int i = 0; i < n; i++) {
        fputs("<tr><td>", to);
        put_html(to, g[i].key);
        fprintf(to,
                "</td><td>%" PRId64 "</td><td>%.0f</td><td>%s</td><td>%s</td>"
                "<td>%.3f</td>",
                g[i].count, g[i].elements, show_bytes(g[i].before).s,
                show_bytes(g[i].after).s,
                bits_per_weight(g[i].after, g[i].elements));
        if (errors) error_cells(&g[i].error, to);
        fputs("</tr>\n", to);
    }
    fputs("</table></div></section>\n", to);
}

static void arrays_table(const report *r, FILE *to)
{
    fprintf(to,
            "<section><details><summary>%s%" PRId64 " array%s</summary>\n"
            "<div class=\"scroll\"><table><tr><th>array</th><th>shape</th>"
            "<th>was</th><th>is</th><th>before</th><th>after</th><th>nrmse</th>"
            "<th>max</th><th>cosine</th><th></th></tr>\n",
            r->n == 1 ? "" : "All ", r->n, r->n == 1 ? "" : "s");
    for (int64_t i = 0; i < r->n; i++) {
        const report_row *row = &r->row[i];
        fputs("<tr><td>", to);
        put_html(to, row->name);
        fprintf(to, "</td><td>%s</td><td>", row->shape);
        put_html(to, row->from);
        fputs("</td><td>", to);
        put_html(to, row->to);
        fprintf(to, "</td><td>%s</td><td>%s</td>", show_bytes(row->before).s,
                show_bytes(row->after).s);
        error_cells(&row->error, to);
        fputs("<td>", to);
        put_html(to, row->kept);
        fputs("</td></tr>\n", to);
    }
    fputs("</table></div></details></section>\n", to);
}

static void codes_section(const report *r, FILE *to)
{
    bool any = false;
    for (int i = 0; i < r->n_codes; i++)
        any |= r->codes[i].seen.least <= r->codes[i].seen.most;
    if (!any) return;
    fputs("<section><h2>How often each code is used</h2>\n", to);
    for (int i = 0; i < r->n_codes; i++)
        plot_codes(&r->codes[i], to);
    fputs("</section>\n", to);
}

/* ---- the page ------------------------------------------------------------ */

void report_html(const report *r, FILE *to)
{
    report_group all[REPORT_GROUPS] = {{.key = "all"}};
    report_groups(r, report_all, all);
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,"
          "initial-scale=1\">\n<title>",
          to);
    put_html(to, r->result);
    fprintf(to, "</title>\n<style>\n%s</style></head><body><main>\n<h1>",
            style);
    put_html(to, r->result);
    fputs("</h1>\n<p class=\"soft\">", to);
    fputs(r->verb, to);
    fputs(" of ", to);
    put_html(to, r->source);
    fprintf(to, ", %" PRId64 " array%s, lowbit %s</p>\n", r->n,
            r->n == 1 ? "" : "s", lb_version());
    tiles(r, &all[0], to);
    fputs("<section><h2>Size</h2>\n", to);
    plot_sizes(r, to);
    fputs("</section>\n", to);
    groups_table(r, report_by_type, "Types", "type", true, to);
    plot_layers(r, to);
    plot_worst(r, to);
    codes_section(r, to);
    groups_table(r, report_by_reason, r->kept, "why", false, to);
    arrays_table(r, to);
    fputs("<section><h2>The same again</h2>\n<pre>", to);
    put_html(to, r->command);
    fputs("</pre></section>\n</main></body></html>\n", to);
}
