/* report_summary.c - the lines that a job prints at its end. */
#include <inttypes.h>
#include <string.h>

#include "report.h"

static const char *changed_as(const report_row *row)
{
    return row->kept ? NULL : row->format ? row->format : "";
}

/* " (nf4)", or with counts if there are several: " (nf4 20, int8 8)". */
static void put_types(const report_group *g, int n, FILE *to)
{
    enum { SHOWN = 4 };
    const char *before = " (";
    for (int i = 0; i < n && i < SHOWN; i++) {
        if (!*g[i].key) continue;
        fprintf(to, "%s%s", before, g[i].key);
        if (n > 1) fprintf(to, " %" PRId64, g[i].count);
        before = ", ";
    }
    if (*before == ',') fputs(n > SHOWN ? ", ...)" : ")", to);
}

static void put_arrays(const report *r, const char *note, FILE *to)
{
    report_group g[REPORT_GROUPS];
    const int n = report_groups(r, changed_as, g);
    const char end = r->verb[strlen(r->verb) - 1];
    int64_t changed = 0;
    for (int i = 0; i < n; i++)
        changed += g[i].count;
    fputs(!r->dry_run ? "wrote "
          : r->result ? "dry run: would write "
                      : "dry run",
          to);
    if (r->result) put_text(to, r->result, strlen(r->result));
    fprintf(to, ": %" PRId64 " array%s %s%s%s", changed,
            changed == 1 ? "" : "s", r->result ? "" : "would be ", r->verb,
            end == 'e' ? "d" : "ed");
    put_types(g, n, to);
    fprintf(to, ", %" PRId64 " left unchanged", r->n - changed);
    if (*note) fputs("; ", to);
    put_text(to, note, strlen(note));
    fputc('\n', to);
}

static void put_verbatim(const report *r, FILE *to)
{
    report_group all[REPORT_GROUPS] = {{.key = "all"}};
    report_groups(r, report_all, all);
    fputs(!r->dry_run ? "copied " : "dry run: would copy ", to);
    put_text(to, r->source, strlen(r->source));
    if (r->result) {
        fputs(" to ", to);
        put_text(to, r->result, strlen(r->result));
    }
    fprintf(to,
            " unchanged: %" PRId64 " tensor%s, %s, quantized by another "
            "program\n",
            r->n, r->n == 1 ? "" : "s", show_bytes(all[0].after).s);
}

static void put_sizes(const report *r, FILE *to)
{
    report_group all[REPORT_GROUPS] = {{.key = "all"}};
    report_groups(r, report_all, all);
    const double before = (double)all[0].before, after = (double)all[0].after;
    fprintf(to, "size: %s -> %s", show_bytes(all[0].before).s,
            show_bytes(all[0].after).s);
    if (after > 0 && before >= 1.05 * after)
        fprintf(to, " (%.1f times smaller)", before / after);
    if (before > 0 && after >= 1.05 * before)
        fprintf(to, " (%.1f times larger)", after / before);
    fprintf(to, ", %.4g bits per weight, in %s\n",
            bits_per_weight(all[0].after, all[0].elements),
            show_seconds(r->seconds).s);
}

static void put_error(const report *r, FILE *to)
{
    const lb_difference d = report_error(r);
    int64_t worst = 0;
    if (!report_worst(r, &worst, 1)) return;
    fprintf(to, "error: nrmse %.4g, cosine %.5g, largest %.4g (",
            lb_difference_nrmse(&d), lb_difference_cosine(&d),
            lb_difference_nrmse(&r->row[worst].error));
    put_text(to, r->row[worst].name, strlen(r->row[worst].name));
    fputs(")\n", to);
}

/* ---- arrays that were not quantized -------------------------------------- */

/* Large matrices that the default policy leaves out by their names. */
static bool is_optional(const report_row *row)
{
    return row->kept && (strcmp(row->kept, "embedding") == 0 ||
                         strcmp(row->kept, "output head") == 0);
}

static const char *why_unfit(const report_row *row)
{
    return row->unfit ? row->kept : NULL;
}

static const char *why_kept(const report_row *row)
{
    return is_optional(row) ? NULL : row->kept;
}

/* The reasons for arrays that were selected; if nothing at all was quantized,
 * all reasons. */
static void put_reasons(const report *r, FILE *to)
{
    enum { SHOWN = 3 };
    report_group g[REPORT_GROUPS];
    const bool none = report_groups(r, changed_as, g) == 0;
    const int n = report_groups(r, none ? why_kept : why_unfit, g);
    int64_t rest = 0;
    if (strcmp(r->verb, "quantize") != 0) return;
    for (int i = 0; i < n; i++) {
        if (i >= SHOWN) {
            rest += g[i].count;
            continue;
        }
        fprintf(to, "kept: %s (%" PRId64 " array%s, %s)\n", g[i].key,
                g[i].count, g[i].count == 1 ? "" : "s",
                show_bytes(g[i].after).s);
    }
    if (rest) fprintf(to, "kept: %" PRId64 " more (-v lists all)\n", rest);
}

/* ---- embeddings and the output head ------------------------------------  */

/* The last two components of a name: long enough to match little else. */
static const char *last_words(const char *name)
{
    const char *p = name + strlen(name);
    for (int dots = 0; p > name; p--)
        if (p[-1] == '.' && ++dots == 2) break;
    return p;
}

static bool is_word_seen(const report *r, int64_t n, const char *word)
{
    for (int64_t i = 0; i < n; i++)
        if (is_optional(&r->row[i]) &&
            strcmp(last_words(r->row[i].name), word) == 0)
            return true;
    return false;
}

/* A pattern between quotes: other characters would need escapes. */
static bool is_quotable(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return *word && word[strspn(word, plain)] == 0;
}

/* transformers loads neither of them quantized: with --include, the default
 * layout of a directory, which note names, becomes native. */
static void put_optional(const report *r, const char *note, FILE *to)
{
    enum { SHOWN = 4 };
    const char *word[SHOWN], *kept = NULL;
    uint64_t bytes = 0;
    int64_t n = 0;
    int words = 0;
    bool both = false;
    for (int64_t i = 0; i < r->n; i++) {
        const report_row *row = &r->row[i];
        if (!is_optional(row)) continue;
        const char *last = last_words(row->name);
        both |= kept && strcmp(kept, row->kept) != 0;
        kept = row->kept;
        bytes += row->after;
        n++;
        if (words < SHOWN && is_quotable(last) && !is_word_seen(r, i, last))
            word[words++] = last;
    }
    if (!n || !words) return;
    fprintf(to, "kept: %s (%" PRId64 " array%s, %s)",
            both ? "embedding and output head" : kept, n, n == 1 ? "" : "s",
            show_bytes(bytes).s);
    if (r->loader_layout) {
        fprintf(to, ", as the loaders of layout %s expect\n", r->loader_layout);
        return;
    }
    fprintf(to, "; to quantize %s as well, add --include '",
            n == 1 ? "it" : "them");
    for (int i = 0; i < words; i++)
        fprintf(to, "%s%s", i ? "|" : "", word[i]);
    fputs("'", to);
    if (*note && strncmp(note, "layout native", 13) != 0)
        fputs(" (then only lowbit loads the model)", to);
    fputc('\n', to);
}

void report_summary(const report *r, const char *note, FILE *to)
{
    if (report_is_verbatim(r)) {
        put_verbatim(r, to);
        return;
    }
    put_arrays(r, note, to);
    if (report_has_moves(r)) report_moves(r, to);
    put_sizes(r, to);
    put_error(r, to);
    put_reasons(r, to);
    put_optional(r, note, to);
}
