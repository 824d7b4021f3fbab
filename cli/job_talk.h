/* job_talk.h - what is said of a job that writes a file: while it runs, and at
 * the end, with a report of what it cost. */
#ifndef JOB_TALK_H
#define JOB_TALK_H

#include "progress.h"
#include "report.h"

typedef struct job_talk {
    progress progress;
    report report;
    const arguments *a;
    bool reports;             /* --report is given */
    const char *linear_class; /* of the result, if it is BitNet's */
    char note[256];           /* the chosen layout; empty: as requested */
    bool leads;               /* this process prints: rank 0 */
    bool details;             /* -vv */
    bool quiet;
    bool json;   /* the report on stdout, too */
    bool verify; /* the result is to be read again */
    int64_t arrays;
    uint64_t resumed_bytes;
    bool measure; /* somebody wants to know errors */
} job_talk;

/* As the options of a verb say, which are --quiet, --verbose, --report, --json
 * and --verify; or a sentence, and nothing to end, if they make no sense. */
verdict job_talk_begin(job_talk *t, const arguments *a, const char *what,
                       const char *source, const char *result);
/* An array that has been written. */
typedef struct job_array {
    const lb_entry *entry; /* of the source */
    int64_t i, n;          /* it is the i-th of n */
    const char *to;        /* its kind in the result */
    const char *format;    /* it is quantized to; NULL: it is dense */
    lb_dtype dtype;        /* in the result; none: not supported */
    const char *kept;      /* why it stays as it was; NULL: it does not */
    uint64_t nbytes;       /* in the result */
    lb_difference error;   /* n is 0: it was not measured */
    int64_t block;         /* requested elements per scale; 0: the default */
    const char *remark;    /* or NULL */
} job_array;
void job_talk_array(job_talk *t, const job_array *a);
/* For lb_quantize_options.done and .progress, with the talk as user. */
void job_talk_done(void *user, const lb_written *w);
void job_talk_progress(void *user, const lb_progress *p);
/* For their .discarded. */
void job_talk_discarded(void *user, const char *path, uint64_t nbytes,
                        bool same);
/* The job has failed: prints why, and for an interrupted one what was kept. */
verdict job_talk_failed(job_talk *t, const lb_ctx *cx);
/* The end: v is how it went; what was done is said, and the report written, if
 * it went well. Returns how all of it went. */
verdict job_talk_end(job_talk *t, lb_ctx *cx, verdict v);

/* verify.c: the result against what the report says; or a sentence. */
verdict verify_result(const report *r, lb_ctx *cx,
                      const lb_file_options *options);

#endif
