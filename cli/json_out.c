/* json_out.c - JSON output: a sequential writer, and the frame of the results
 * (see docs/json.md). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "interrupt.h"

static void comma(json *j)
{
    if (j->more) fputs(", ", j->to);
    j->more = true;
}

void json_open(json *j, char bracket)
{
    comma(j);
    fputc(bracket, j->to);
    j->more = false;
}

void json_close(json *j, char bracket)
{
    fputc(bracket, j->to);
    j->more = true;
}

json *json_key(json *j, const char *key)
{
    json_string(j, key);
    fputs(": ", j->to);
    j->more = false;
    return j;
}

void json_text(json *j, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    comma(j);
    fputc('"', j->to);
    while (n) {
        const size_t k = utf8_length(p, n), m = k ? k : 1;
        if (!k)
            fputs("\\ufffd", j->to);
        else if (*p == '"' || *p == '\\')
            fprintf(j->to, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            fprintf(j->to, "\\u%04x", *p);
        else
            fwrite(p, 1, k, j->to);
        p += m;
        n -= m;
    }
    fputc('"', j->to);
}

void json_null(json *j)
{
    comma(j);
    fputs("null", j->to);
}

void json_string(json *j, const char *text)
{
    if (text)
        json_text(j, text, strlen(text));
    else
        json_null(j);
}

void json_int(json *j, int64_t v)
{
    comma(j);
    fprintf(j->to, "%lld", (long long)v);
}

void json_uint(json *j, uint64_t v)
{
    comma(j);
    fprintf(j->to, "%llu", (unsigned long long)v);
}

void json_double(json *j, double v)
{
    if (!isfinite(v)) {
        json_null(j);
        return;
    }
    comma(j);
    fprintf(j->to, "%.17g", v);
}

void json_bool(json *j, bool v)
{
    comma(j);
    fputs(v ? "true" : "false", j->to);
}

void json_next(json *j)
{
    fputs(j->more ? ",\n" : "\n", j->to);
    j->more = false;
}

void json_shape(json *j, const int64_t *dim, int rank)
{
    json_open(j, '[');
    for (int i = 0; i < rank; i++)
        json_int(j, dim[i]);
    json_close(j, ']');
}

void json_array_head(json *j, const lb_entry *e)
{
    json_string(json_key(j, "name"), e->name);
    json_string(json_key(j, "type"), e->type);
    json_string(json_key(j, "format"), e->format);
    json_string(json_key(j, "dtype"),
                e->dtype ? lb_dtype_name(e->dtype) : NULL);
    json_shape(json_key(j, "shape"), e->dim, e->rank);
    json_uint(json_key(j, "bytes"), e->nbytes);
}

/* ---- the frame ----------------------------------------------------------- */

/* The members of the result, held back until the verb has ended; the warnings,
 * a list without brackets. */
static struct {
    json j, warnings;
    char *text, *warned;
    size_t size, warned_size;
    bool complete;
} result;

void json_head(json *j, const char *name)
{
    json_open(j, '{');
    json_string(json_key(j, "lowbit"), lb_version());
    json_int(json_key(j, "schema"), JSON_SCHEMA);
    json_string(json_key(j, "verb"), name);
}

json *json_begin(const char *name)
{
    FILE *to = open_memstream(&result.text, &result.size);
    result.j = (json){.to = to ? to : stdout};
    json_head(&result.j, name);
    return &result.j;
}

void json_end(json *j)
{
    result.complete = j == &result.j;
}

void json_warning(const char *text)
{
    json *w = &result.warnings;
    if (!w->to) w->to = open_memstream(&result.warned, &result.warned_size);
    if (w->to) json_string(w, text);
}

/* Closes a stream of open_memstream. */
static void close_text(FILE *to, char **text)
{
    if (!to || to == stdout) return;
    if (fclose(to) == 0) return;
    free(*text);
    *text = NULL;
}

int verdict_exit(verdict v)
{
    return v == INTERRUPTED ? interrupt_exit() : (int)v & 0xff;
}

static void put_error(json *j, int exit_code, const char *kind,
                      const char *message)
{
    json_open(json_key(j, "error"), '{');
    json_int(json_key(j, "exit"), exit_code);
    json_string(json_key(j, "kind"), kind);
    json_string(json_key(j, "message"), message);
    json_close(j, '}');
}

static void put_verdict(json *j, verdict v)
{
    static const struct {
        verdict v;
        const char *kind;
    } kinds[] = {{FAILED, "failed"},           {USAGE, "usage"},
                 {BAD_INPUT, "invalid_file"},  {STRICT, "strict"},
                 {INTERRUPTED, "interrupted"}, {DIFFERS, "differs"}};
    const char *kind = "failed";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].v == v) kind = kinds[i].kind;
    put_error(j, verdict_exit(v), kind, complaint());
}

void json_failure(FILE *to, const char *name, int exit_code, const char *kind,
                  const char *message)
{
    json j = {.to = to};
    json_head(&j, name);
    json_open(json_key(&j, "warnings"), '[');
    json_close(&j, ']');
    put_error(&j, exit_code, kind, message);
    json_close(&j, '}');
    fputc('\n', to);
}

void json_finish(const char *name, verdict v)
{
    json j = {.to = stdout};
    if (!result.j.to && !complaint()) return;
    const bool held = result.j.to && result.j.to != stdout;
    close_text(result.j.to, &result.text);
    close_text(result.warnings.to, &result.warned);
    if (held && result.complete && result.text) {
        fwrite(result.text, 1, result.size, stdout);
        j.more = true;
    } else if (result.j.to == stdout)
        j = result.j;
    else
        json_head(&j, name);
    json_open(json_key(&j, "warnings"), '[');
    if (result.warned) fwrite(result.warned, 1, result.warned_size, stdout);
    json_close(&j, ']');
    if (v != DONE) put_verdict(&j, v);
    json_close(&j, '}');
    fputc('\n', stdout);
    free(result.text);
    free(result.warned);
    memset(&result, 0, sizeof result);
}
