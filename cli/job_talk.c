/* job_talk.c - the lines of a job, and its end. */
#include "job_talk.h"

#include <inttypes.h>
#include <string.h>

#include "places.h"

verdict job_talk_begin(job_talk *t, const arguments *a, const char *what,
                       const char *source, const char *result)
{
    const verdict v =
        place_of_report(a) ? report_path_check(a->value[OPTION_REPORT]) : USAGE;
    if (v != DONE) return v;
    *t = (job_talk){.report_path = a->value[OPTION_REPORT],
                    .linear_class = a->count[OPTION_LINEAR_CLASS]
                                        ? a->value[OPTION_LINEAR_CLASS]
                                        : "autobitlinear",
                    .quiet = a->count[OPTION_QUIET] != 0,
                    .json = a->count[OPTION_JSON] != 0,
                    .dry_run = a->count[OPTION_DRY_RUN] != 0,
                    .verify = a->count[OPTION_VERIFY] != 0};
    t->measure = !t->quiet || t->report_path || t->json || t->verify;
    progress_begin(&t->progress, a);
    if (a->comm && a->comm->rank > 0) { /* the first one talks */
        t->report_path = NULL;
        t->quiet = true;
        t->json = t->verify = false;
        t->progress.bar = t->progress.lines = false;
    }
    report_begin(&t->report, what, a->argc, a->argv);
    t->report.source = source;
    t->report.result = result;
    return DONE;
}

/* ---- while it runs ------------------------------------------------------- */

static void line(const job_array *a)
{
    const lb_entry *e = a->entry;
    fprintf(stderr, "%" PRId64 "/%" PRId64 " ", a->i + 1, a->n);
    put_text(stderr, e->name, strlen(e->name));
    fputc(' ', stderr);
    put_shape(stderr, e->dim, e->rank);
    if (a->kept)
        fprintf(stderr, " stays %s: %s", a->to, a->kept);
    else
        fprintf(stderr, " %s, %s -> %s", a->format ? a->format : a->to,
                show_bytes(e->nbytes).s, show_bytes(a->nbytes).s);
    if (!a->kept && a->error.n)
        fprintf(stderr, ", nrmse %.4g", lb_difference_nrmse(&a->error));
    if (a->remark) fprintf(stderr, ", %s", a->remark);
    fputc('\n', stderr);
}

void job_talk_array(job_talk *t, const job_array *a)
{
    report_add(&t->report, a->entry, a->to, a->format, a->kept, a->nbytes,
               &a->error);
    if (!t->progress.lines) return;
    progress_clear(&t->progress);
    line(a);
}

void job_talk_done(void *user, const lb_written *w)
{
    const char *format = strcmp(w->format, "dense") == 0 ? NULL : w->format;
    char kind[64];
    if (format)
        snprintf(kind, sizeof kind, "%s (%s)", format, lb_dtype_name(w->dtype));
    else
        snprintf(kind, sizeof kind, "%s",
                 w->dtype ? lb_dtype_name(w->dtype) : w->entry->type);
    job_talk_array(user, &(job_array){.entry = w->entry,
                                      .i = w->i,
                                      .n = w->n,
                                      .to = kind,
                                      .format = format,
                                      .kept = w->kept,
                                      .nbytes = w->nbytes,
                                      .error = w->error,
                                      .remark = w->resumed ? "done before"
                                                : w->fell_back && !w->kept
                                                    ? "not as it was asked for"
                                                    : NULL});
}

void job_talk_progress(void *user, const lb_progress *p)
{
    job_talk *t = user;
    progress_at(&t->progress,
                &(progress_step){.name = p->entry ? p->entry->name : NULL,
                                 .i = p->arrays_done,
                                 .n = p->arrays,
                                 .done = p->done,
                                 .total = p->total});
}

/* ---- the end ------------------------------------------------------------- */

static const char *changed(const report_row *row)
{
    return row->kept ? NULL : "changed";
}

static void sum_up(const job_talk *t)
{
    report_group all[REPORT_GROUPS] = {{.key = ""}}, some[REPORT_GROUPS];
    const char end = t->report.verb[strlen(t->report.verb) - 1];
    some[0] = all[0];
    report_groups(&t->report, report_all, all);
    report_groups(&t->report, changed, some);
    fputs("lowbit: ", stderr);
    put_text(stderr, t->report.result, strlen(t->report.result));
    fprintf(stderr,
            ": %" PRId64 " array%s %s%s (%.1f %% of the bytes), %" PRId64
            " as %s; %s -> %s\n",
            some[0].count, some[0].count == 1 ? "" : "s", t->report.verb,
            end == 'e' ? "d" : "ed",
            all[0].before ? 100 * (double)some[0].before / (double)all[0].before
                          : 0,
            all[0].count - some[0].count,
            all[0].count - some[0].count == 1 ? "it was" : "they were",
            show_bytes(all[0].before).s, show_bytes(all[0].after).s);
    report_text(&t->report, stderr);
}

/* The codes that were written: they are in the file. */
static bool count_codes(job_talk *t, lb_ctx *cx, const lb_file_options *options)
{
    lb_file *f = lb_file_open(cx, t->report.result, options);
    bool ok = f != NULL;
    for (int64_t i = 0; ok && i < lb_file_count(f); i++) {
        const lb_entry *e = lb_file_entry(f, i);
        if (!e->format || strcmp(e->format, "dense") == 0) continue;
        lb_enter(cx);
        ok = report_count(&t->report, cx, lb_file_load(cx, f, e->name));
        lb_leave(cx);
    }
    lb_file_close(f);
    return ok;
}

verdict job_talk_end(job_talk *t, lb_ctx *cx, verdict v)
{
    /* Not mapped: pages of the result would count as this process's memory. */
    const lb_file_options options = {.struct_size = sizeof options,
                                     .no_map = true,
                                     .linear_class = t->linear_class};
    progress_clear(&t->progress);
    report_end(&t->report);
    if (v == DONE && !t->quiet) sum_up(t);
    if (v == DONE && t->verify) {
        v = verify_result(&t->report, cx, &options);
        if (v == DONE && !t->quiet)
            fprintf(stderr, "verified: %" PRId64 " array%s\n", t->report.n,
                    t->report.n == 1 ? "" : "s");
    }
    if (v == DONE && (t->report_path || t->json) && !t->dry_run &&
        !count_codes(t, cx, &options))
        v = complain_of(cx);
    if (v == DONE && t->json) report_json(&t->report, stdout);
    if (v == DONE && t->report_path) {
        v = report_save(&t->report, t->report_path);
        if (v == DONE && !t->quiet) {
            fputs("report: ", stderr);
            put_text(stderr, t->report_path, strlen(t->report_path));
            fputc('\n', stderr);
        }
    }
    report_free(&t->report);
    return v;
}
