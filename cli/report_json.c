/* report_json.c - a report for programs (docs/json.md). */
#include <math.h>
#include <string.h>

#include "report.h"

/* null where no values were compared. */
static void put_errors(json *j, const lb_difference *d)
{
    const double none = (double)NAN;
    json_double(json_key(j, "nrmse"), d->n ? lb_difference_nrmse(d) : none);
    json_double(json_key(j, "max"), d->n ? d->max : none);
    json_double(json_key(j, "cosine"), d->n ? lb_difference_cosine(d) : none);
}

static void put_sizes(json *j, const report_group *g)
{
    json_double(json_key(j, "parameters"), g->elements);
    json_uint(json_key(j, "source_bytes"), g->before);
    json_uint(json_key(j, "output_bytes"), g->after);
    json_double(json_key(j, "bits_per_weight"),
                bits_per_weight(g->after, g->elements));
    put_errors(j, &g->error);
}

static void put_row(json *j, const report_row *row)
{
    const char *dense = row->dtype ? "dense" : NULL;
    lb_entry e = row->entry;
    e.nbytes = row->before;
    json_next(j);
    json_open(j, '{');
    json_array_head(j, &e);
    json_string(json_key(j, "output_format"),
                row->format ? row->format : dense);
    json_string(json_key(j, "output_dtype"),
                row->dtype ? lb_dtype_name(row->dtype) : NULL);
    json_uint(json_key(j, "output_bytes"), row->after);
    json_string(json_key(j, "layout"), row->layout);
    json_key(j, "block_size");
    if (row->block)
        json_int(j, row->block);
    else
        json_string(j, NULL);
    json_string(json_key(j, "kept"), row->kept);
    json_string(json_key(j, "moved"), report_moved(row));
    json_string(json_key(j, "refused"), row->refused);
    put_errors(j, &row->error);
    json_close(j, '}');
}

static void put_groups(json *j, const char *name, const char *key_name,
                       const report *r, report_key *key)
{
    report_group g[REPORT_GROUPS];
    const int n = report_groups(r, key, g);
    json_open(json_key(j, name), '[');
    for (int i = 0; i < n; i++) {
        json_open(j, '{');
        json_string(json_key(j, key_name), g[i].key);
        json_int(json_key(j, "arrays"), g[i].count);
        put_sizes(j, &g[i]);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_codes(json *j, const report_codes *c)
{
    json_open(j, '{');
    json_string(json_key(j, "format"), c->format);
    json_int(json_key(j, "first"), c->seen.least);
    json_open(json_key(j, "counts"), '[');
    for (int k = c->seen.least; k <= c->seen.most; k++)
        json_int(j, c->seen.count[k & 255]);
    json_close(j, ']');
    json_close(j, '}');
}

/* Lines of "hash  file". */
static void put_hashes(json *j, const char *text)
{
    json_open(json_key(j, "source_hashes"), '[');
    while (text && *text) {
        const size_t line = strcspn(text, "\n"), hash = strcspn(text, " ");
        json_open(j, '{');
        json_key(j, "file");
        json_text(j, text + hash + 2, line - hash - 2);
        json_key(j, "xxh128");
        json_text(j, text, hash);
        json_close(j, '}');
        text += line + (text[line] != 0);
    }
    json_close(j, ']');
}

void report_json(const report *r, json *j)
{
    report_group all[REPORT_GROUPS] = {{.key = "all"}};
    report_groups(r, report_all, all);
    all[0].error = report_error(r);
    json_string(json_key(j, "source"), r->source);
    json_string(json_key(j, "output"), r->output);
    json_bool(json_key(j, "dry_run"), r->dry_run);
    json_int(json_key(j, "resumed"), r->resumed);
    json_string(json_key(j, "command"), r->command);
    json_string(json_key(j, "date"), r->date);
    put_hashes(j, r->hash);
    json_double(json_key(j, "seconds"), r->seconds);
    json_uint(json_key(j, "peak_bytes"), r->peak);
    put_sizes(j, &all[0]);
    put_groups(j, "types", "type", r, report_by_type);
    put_groups(j, "kept", "reason", r, report_by_reason);
    put_groups(j, "moved", "how", r, report_moved);
    json_open(json_key(j, "codes"), '[');
    for (int i = 0; i < r->n_codes; i++)
        put_codes(j, &r->codes[i]);
    json_close(j, ']');
    json_open(json_key(j, "arrays"), '[');
    for (int64_t i = 0; i < r->n; i++)
        put_row(j, &r->row[i]);
    json_close(j, ']');
}

void report_json_file(const report *r, FILE *to)
{
    json j = {.to = to};
    json_head(&j, r->verb);
    report_json(r, &j);
    json_close(&j, '}');
    fputc('\n', to);
}
