/* job_talk.h - messages of a job that writes a file: progress, summary, report.
 */
#ifndef JOB_TALK_H
#define JOB_TALK_H

#include "progress.h"
#include "report.h"

typedef struct job_talk {
    progress progress;
    report report;
    const arguments *a;
    bool reports;             /* --report is given */
    const char *linear_class; /* of the output, for BitNet layers */
    char note[256];           /* the chosen layout; empty: as requested */
    bool leads;               /* this process prints: rank 0 */
    bool details;             /* -vv */
    bool quiet;
    bool json;   /* the report on stdout, too */
    bool moves;  /* quantized arrays are moved to a layout or a type */
    bool verify; /* the result is to be read again */
    int64_t arrays;
    uint64_t resumed_bytes;
    bool measure; /* errors are needed */
} job_talk;

/* Reads --quiet, --verbose, --report, --json and --verify. Not DONE after a
 * message; then job_talk_end must not be called. */
verdict job_talk_begin(job_talk *t, const arguments *a, const char *what,
                       const char *source, const char *result);
/* An array that was written. */
typedef struct job_array {
    const lb_entry *entry; /* of the source */
    int64_t i, n;          /* it is the i-th of n */
    const char *to;        /* its kind in the result */
    const char *format;    /* if quantized, else NULL */
    lb_dtype dtype;        /* in the result; none: not supported */
    const char *kept;      /* why it was not quantized; NULL: it was */
    uint64_t nbytes;       /* in the result */
    lb_difference error;   /* n is 0: it was not measured */
    int64_t block;         /* requested elements per scale; 0: the default */
    bool fell_back;        /* not quantized as requested */
    const char *remark;    /* or NULL */
    lb_moved moved;        /* as in lb_written */
    const char *refused;
} job_array;
void job_talk_array(job_talk *t, const job_array *a);
/* Callbacks for lb_quantize_options.done and .progress; user is the job_talk.
 */
void job_talk_done(void *user, const lb_written *w);
void job_talk_progress(void *user, const lb_progress *p);
/* Callback for .discarded of the same options. */
void job_talk_discarded(void *user, const char *path, uint64_t nbytes,
                        bool same);
/* The job has failed: prints why, and for an interrupted one what was kept. */
verdict job_talk_failed(job_talk *t, const lb_ctx *cx);
/* Ends a job with verdict v. After success, prints the summary, verifies the
 * output and writes the report. Returns the final verdict. */
verdict job_talk_end(job_talk *t, lb_ctx *cx, verdict v);

/* verify.c: compares the output with the report's errors; not DONE after a
 * message. */
verdict verify_result(const report *r, lb_ctx *cx,
                      const lb_file_options *options);

#endif
