/* bench_rows.c - see bench_rows.h. */
#include "bench_rows.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "verb.h"

bool bench_fail(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    complain(FAILED, "%s", text);
    return false;
}

bool bench_misused(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    complain(USAGE, "%s", text);
    return false;
}

lb_ctx *bench_context(const bench_options *o, int threads)
{
    const lb_options options = {.threads = threads, .isa = o->isa};
    lb_ctx *const cx = lb_open(&options);
    if (cx) return cx;
    char why[256];
    lb_open_why(&options, why, sizeof why);
    /* the library's variables are named like our options */
    const char *const ours = strncmp(why, "options.", 8) ? NULL : why + 8;
    bench_fail("%s%s", ours ? "--" : "", ours ? ours : why);
    return NULL;
}

/* ---- JSON ---------------------------------------------------------------- */

static struct {
    json lines; /* as lowbit-bench */
    json *to;   /* NULL: no JSON */
} rows;

void rows_open(const bench_options *o)
{
    if (!o->json) return;
    rows.lines = (json){.to = stdout};
    rows.to = o->lines ? &rows.lines : json_begin("bench");
    if (!o->lines) json_open(json_key(rows.to, "results"), '[');
}

void rows_close(void)
{
    if (!rows.to || rows.to == &rows.lines) return;
    json_close(rows.to, ']');
    json_end(rows.to);
}

void row_begin(void)
{
    if (rows.to == &rows.lines)
        rows.lines.more = false;
    else
        json_next(rows.to);
    json_open(rows.to, '{');
}

void row_text(const char *name, const char *value)
{
    json_string(json_key(rows.to, name), value);
}

void row_number(const char *name, double value)
{
    json_key(rows.to, name);
    if (!isfinite(value)) {
        json_null(rows.to);
        return;
    }
    fprintf(rows.to->to, "%.6g", value);
    rows.to->more = true;
}

void row_integer(const char *name, int64_t value)
{
    json_int(json_key(rows.to, name), value);
}

void row_bool(const char *name, bool value)
{
    json_bool(json_key(rows.to, name), value);
}

void row_end(void)
{
    json_close(rows.to, '}');
    if (rows.to != &rows.lines) return;
    putchar('\n');
    fflush(stdout);
}
