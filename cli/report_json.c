/* report_json.c - a report for programs. */
#include <math.h>
#include <string.h>

#include "report.h"

static void json_error(json *j, const lb_difference *d)
{
    if (!d->n) return;
    json_put_double(j, "nrmse", lb_difference_nrmse(d));
    json_put_double(j, "max", d->max);
    json_put_double(j, "cosine", lb_difference_cosine(d));
}

static void json_group(json *j, const report_group *g)
{
    json_put_int(j, "arrays", g->count);
    json_put_double(j, "weights", g->elements);
    json_put_uint(j, "before", g->before);
    json_put_uint(j, "after", g->after);
    json_put_double(j, "bits", bits_per_weight(g->after, g->elements));
    json_error(j, &g->error);
}

static void json_row(json *j, const report_row *row)
{
    json_open(j, '{');
    json_put(j, "name", row->name);
    json_put(j, "shape", row->shape);
    json_put(j, "was", row->from);
    json_put(j, "is", row->to);
    json_put(j, "kept", row->kept);
    json_put_uint(j, "before", row->before);
    json_put_uint(j, "after", row->after);
    json_error(j, &row->error);
    json_close(j, '}');
}

static void json_groups(json *j, const char *name, const report *r,
                        report_key *key)
{
    report_group g[REPORT_GROUPS];
    const int n = report_groups(r, key, g);
    json_put_open(j, name, '{');
    for (int i = 0; i < n; i++) {
        json_put_open(j, g[i].key, '{');
        json_group(j, &g[i]);
        json_close(j, '}');
    }
    json_close(j, '}');
}

static void json_codes(json *j, const report_codes *c)
{
    json_put_open(j, c->format, '{');
    json_put_int(j, "least", c->seen.least);
    json_put_open(j, "count", '[');
    for (int k = c->seen.least; k <= c->seen.most; k++)
        json_int(j, c->seen.count[k & 255]);
    json_close(j, ']');
    json_close(j, '}');
}

void report_json(const report *r, FILE *to)
{
    report_group all[REPORT_GROUPS] = {{.key = "all"}};
    json j = {.to = to};
    report_groups(r, report_all, all);
    json_open(&j, '{');
    json_put(&j, "verb", r->verb);
    json_put(&j, "version", lb_version());
    json_put(&j, "source", r->source);
    json_put(&j, "result", r->result);
    json_put(&j, "command", r->command);
    json_put_double(&j, "seconds", r->seconds);
    json_put_uint(&j, "peak_bytes", r->peak);
    const lb_difference d = report_error(r);
    all[0].error = d;
    json_group(&j, &all[0]);
    json_groups(&j, "types", r, report_by_type);
    json_groups(&j, "kept", r, report_by_reason);
    json_put_open(&j, "codes", '{');
    for (int i = 0; i < r->n_codes; i++)
        json_codes(&j, &r->codes[i]);
    json_close(&j, '}');
    json_put_open(&j, "list", '[');
    for (int64_t i = 0; i < r->n; i++) {
        fputs(i ? ",\n" : "\n", to);
        j.more = false;
        json_row(&j, &r->row[i]);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    fputc('\n', to);
}
