/* report_json.c - a report for programs. */
#include <math.h>
#include <string.h>

#include "report.h"

static void json_error(json *j, const lb_difference *d)
{
    if (!d->n) return;
    json_double(json_key(j, "nrmse"), lb_difference_nrmse(d));
    json_double(json_key(j, "max"), d->max);
    json_double(json_key(j, "cosine"), lb_difference_cosine(d));
}

static void json_group(json *j, const report_group *g)
{
    json_int(json_key(j, "arrays"), g->count);
    json_double(json_key(j, "weights"), g->elements);
    json_uint(json_key(j, "before"), g->before);
    json_uint(json_key(j, "after"), g->after);
    json_double(json_key(j, "bits"), bits_per_weight(g->after, g->elements));
    json_error(j, &g->error);
}

static void json_row(json *j, const report_row *row)
{
    json_open(j, '{');
    json_string(json_key(j, "name"), row->name);
    json_string(json_key(j, "shape"), row->shape);
    json_string(json_key(j, "was"), row->from);
    json_string(json_key(j, "is"), row->to);
    json_string(json_key(j, "kept"), row->kept);
    json_uint(json_key(j, "before"), row->before);
    json_uint(json_key(j, "after"), row->after);
    json_error(j, &row->error);
    json_close(j, '}');
}

static void json_groups(json *j, const char *name, const report *r,
                        report_key *key)
{
    report_group g[REPORT_GROUPS];
    const int n = report_groups(r, key, g);
    json_open(json_key(j, name), '{');
    for (int i = 0; i < n; i++) {
        json_open(json_key(j, g[i].key), '{');
        json_group(j, &g[i]);
        json_close(j, '}');
    }
    json_close(j, '}');
}

static void json_codes(json *j, const report_codes *c)
{
    json_open(json_key(j, c->format), '{');
    json_int(json_key(j, "least"), c->seen.least);
    json_open(json_key(j, "count"), '[');
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
    json_string(json_key(&j, "verb"), r->verb);
    json_string(json_key(&j, "version"), lb_version());
    json_string(json_key(&j, "source"), r->source);
    json_string(json_key(&j, "result"), r->result);
    json_string(json_key(&j, "command"), r->command);
    json_double(json_key(&j, "seconds"), r->seconds);
    json_uint(json_key(&j, "peak_bytes"), r->peak);
    const lb_difference d = report_error(r);
    all[0].error = d;
    json_group(&j, &all[0]);
    json_groups(&j, "types", r, report_by_type);
    json_groups(&j, "kept", r, report_by_reason);
    json_open(json_key(&j, "codes"), '{');
    for (int i = 0; i < r->n_codes; i++)
        json_codes(&j, &r->codes[i]);
    json_close(&j, '}');
    json_open(json_key(&j, "list"), '[');
    for (int64_t i = 0; i < r->n; i++) {
        fputs(i ? ",\n" : "\n", to);
        j.more = false;
        json_row(&j, &r->row[i]);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    fputc('\n', to);
}
