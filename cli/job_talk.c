/* job_talk.c - messages of jobs that write files. */
#include "job_talk.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "interrupt.h"

verdict job_talk_begin(job_talk *t, const arguments *a, const char *what,
                       const char *source, const char *result)
{
    const char *given = a->value[OPTION_LINEAR_CLASS];
    const bool divides = given && strcasecmp(given, "bitlinear") == 0;
    const verdict v = reports_check(a);
    if (v != DONE) return v;
    *t = (job_talk){.a = a,
                    .reports = a->count[OPTION_REPORT] != 0,
                    .linear_class = divides ? "bitlinear" : "autobitlinear",
                    .leads = true,
                    .details = a->count[OPTION_VERBOSE] > 1,
                    .quiet = a->count[OPTION_QUIET] != 0,
                    .json = a->count[OPTION_JSON] != 0,
                    .verify = a->count[OPTION_VERIFY] != 0 &&
                              !a->count[OPTION_DRY_RUN]};
    t->measure = !t->quiet || t->reports || t->json || t->verify;
    progress_begin(&t->progress, a);
    if (a->comm && a->comm->rank > 0) { /* rank 0 prints */
        t->reports = false;
        t->leads = false;
        t->quiet = true;
        t->json = t->verify = false;
        t->progress.bar = t->progress.lines = false;
    }
    interrupt_defer(true);
    report_begin(&t->report, what, a->argc, a->argv);
    t->report.source = source;
    t->report.result = result;
    t->report.dry_run = a->count[OPTION_DRY_RUN] != 0;
    t->report.output = t->report.dry_run ? NULL : a->value[OPTION_OUTPUT];
    return DONE;
}

/* ---- while it runs ------------------------------------------------------- */

static void line(const job_array *a, bool dry_run)
{
    const lb_entry *e = a->entry;
    char from[64];
    fprintf(stderr, "%" PRId64 "/%" PRId64 " ", a->i + 1, a->n);
    put_text(stderr, e->name, strlen(e->name));
    fputc(' ', stderr);
    put_shape(stderr, e->dim, e->rank);
    if (a->kept) {
        fprintf(stderr, " %s %s (%s)\n", dry_run ? "would be kept" : "kept",
                a->to, a->kept);
        return;
    }
    entry_kind(e, from, sizeof from);
    if (a->moved == LB_MOVED_REFUSED) {
        fprintf(stderr, " %s refused: %s", from, a->refused ? a->refused : "");
        fputc('\n', stderr);
        return;
    }
    fprintf(stderr, " %s -> %s, %s -> %s", from, a->format ? a->format : a->to,
            show_bytes(e->nbytes).s, show_bytes(a->nbytes).s);
    if (a->error.n)
        fprintf(stderr, ", nrmse %.4g", lb_difference_nrmse(&a->error));
    if (a->remark) fprintf(stderr, ", %s", a->remark);
    fputc('\n', stderr);
}

void job_talk_array(job_talk *t, const job_array *a)
{
    report_add(&t->report, a->entry, a->to, a->format, a->dtype, a->kept,
               a->nbytes, &a->error);
    if (t->report.n) {
        report_row *row = &t->report.row[t->report.n - 1];
        row->unfit = a->kept && a->fell_back;
        if (a->block) row->block = a->block;
        row->moved = a->moved;
        row->refused = a->refused ? strdup(a->refused) : NULL;
    }
    if (!t->progress.lines) return;
    progress_clear(&t->progress);
    line(a, t->report.dry_run);
}

void job_talk_done(void *user, const lb_written *w)
{
    job_talk *t = user;
    t->arrays = w->n;
    if (w->resumed) {
        t->report.resumed++;
        t->resumed_bytes += w->nbytes;
    }
    const char *format = strcmp(w->format, "dense") == 0 ? NULL : w->format;
    char kind[64];
    if (format)
        snprintf(kind, sizeof kind, "%s (%s)", format, lb_dtype_name(w->dtype));
    else
        snprintf(kind, sizeof kind, "%s",
                 w->dtype ? lb_dtype_name(w->dtype) : w->entry->type);
    job_talk_array(
        user,
        &(job_array){.entry = w->entry,
                     .i = w->i,
                     .n = w->n,
                     .to = kind,
                     .format = format,
                     .dtype = w->dtype,
                     .kept = w->kept,
                     .nbytes = w->nbytes,
                     .error = w->error,
                     .block = w->config ? w->config->block_size : 0,
                     .fell_back = w->fell_back,
                     .moved = w->moved,
                     .refused = w->refused,
                     .remark =
                         w->resumed ? "kept from the interrupted run"
                         : w->fell_back && !w->kept   ? "not the requested type"
                         : w->moved == LB_MOVED_EXACT ? "moved"
                         : w->moved == LB_MOVED_ROUNDED     ? "rounded"
                         : w->moved == LB_MOVED_REQUANTIZED ? "requantized"
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

void job_talk_discarded(void *user, const char *path, uint64_t nbytes,
                        bool same)
{
    job_talk *t = user;
    progress_clear(&t->progress);
    if (t->quiet) return;
    fputs("lowbit: discarded ", stderr);
    put_text(stderr, path, strlen(path));
    fprintf(stderr, " (%s) of an interrupted run %s\n", show_bytes(nbytes).s,
            same ? "(it could have been resumed)"
                 : "with other inputs or options");
}

/* ---- the end ------------------------------------------------------------- */

static void sum_up(const job_talk *t)
{
    char warning[REPORT_WARNING];
    if ((t->moves || strcmp(t->report.verb, "dequantize") == 0) &&
        report_is_dense(&t->report))
        caution("%s has no quantized arrays", t->report.source);
    if (!t->quiet) report_summary(&t->report, t->note, stderr);
    if (report_warning(&t->report, warning, sizeof warning))
        caution("%s", warning);
    if (!t->quiet && t->details) report_text(&t->report, stderr);
}

/* Counts the codes that were written, from the output file. */
static bool count_codes(job_talk *t, lb_ctx *cx, const lb_file_options *options)
{
    lb_file *f = lb_file_open(cx, t->report.result, options);
    bool ok = f != NULL;
    for (int64_t i = 0; ok && i < lb_file_count(f); i++) {
        const lb_entry *e = lb_file_entry(f, i);
        if (!e->format || strcmp(e->format, "dense") == 0) continue;
        lb_enter(cx);
        lb_array *a = lb_file_load(cx, f, e->name);
        ok = report_count(&t->report, cx, a) &&
             report_stored(&t->report, cx, e, a);
        lb_leave(cx);
    }
    lb_file_close(f);
    return ok;
}

static void list_reports(const arguments *a)
{
    for (int i = 0; i < a->n_given; i++) {
        if (a->given[i].id != OPTION_REPORT) continue;
        fputs("report: ", stderr);
        put_text(stderr, a->given[i].value, strlen(a->given[i].value));
        fputc('\n', stderr);
    }
}

verdict job_talk_failed(job_talk *t, const lb_ctx *cx)
{
    progress_clear(&t->progress);
    if (!t->leads && lb_error_status(cx) == LB_E_CANCELLED) return INTERRUPTED;
    return interrupt_verdict(cx, t->report.dry_run ? NULL : t->report.result);
}

static void sum_up_resumed(const job_talk *t)
{
    if (t->report.resumed)
        fprintf(stderr,
                "lowbit: resumed: skipped %" PRId64 " of %" PRId64
                " arrays (%s), which were already written\n",
                t->report.resumed, t->arrays, show_bytes(t->resumed_bytes).s);
}

verdict job_talk_end(job_talk *t, lb_ctx *cx, verdict v)
{
    /* Not mapped: pages of the result would count as this process's memory. */
    const lb_file_options options = {.struct_size = sizeof options,
                                     .no_map = true,
                                     .linear_class = t->linear_class};
    if (v == DONE) interrupt_defer(false); /* the output is complete */
    progress_clear(&t->progress);
    report_end(&t->report);
    const bool denied = v == STRICT && t->leads && report_has_moves(&t->report);
    if (v == DONE && t->leads) sum_up(t);
    if (denied && !t->quiet) report_moves(&t->report, stderr);
    if (v == DONE && !t->quiet) sum_up_resumed(t);
    if (v == DONE && t->verify) {
        v = verify_result(&t->report, cx, &options);
        if (v == DONE && !t->quiet)
            fprintf(stderr, "verified: %" PRId64 " array%s\n", t->report.n,
                    t->report.n == 1 ? "" : "s");
    }
    if (v == DONE && (t->reports || t->json) && !t->report.dry_run &&
        !count_codes(t, cx, &options))
        v = complain_of(cx);
    if (v == DONE && t->reports) report_identify(&t->report);
    if ((v == DONE || denied) && t->json) {
        json *j = json_begin(t->report.verb);
        report_json(&t->report, j);
        json_end(j);
    }
    if ((v == DONE || denied) && t->reports) {
        const verdict saved = reports_save(&t->report, t->a);
        if (saved == DONE && !t->quiet) list_reports(t->a);
        if (v == DONE) v = saved;
    }
    report_free(&t->report);
    return v;
}
