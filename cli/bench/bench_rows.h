/* bench_rows.h - messages, contexts and JSON rows of the benchmarks. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "bench_options.h"

/* Print a message; returns false. bench_misused: a usage error. */
bool bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool bench_misused(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* A context of the library as requested by the options. threads 0: all cores.
 * NULL after a message. */
lb_ctx *bench_context(const bench_options *o, int threads);

/* One object for each result: an element of "results" of `lowbit bench --json`,
 * or, as lowbit-bench, one line of stdout. */
void rows_open(const bench_options *o);
void rows_close(void);
void row_begin(void);
void row_text(const char *name, const char *value);
void row_number(const char *name, double value); /* null unless finite */
void row_integer(const char *name, int64_t value);
void row_bool(const char *name, bool value);
void row_end(void);

#endif
