/* json_out.c - JSON, written as it comes. */
#include <math.h>
#include <string.h>

#include "verb.h"

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

void json_key(json *j, const char *key)
{
    json_string(j, key);
    fputs(": ", j->to);
    j->more = false;
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

/* ---- members ------------------------------------------------------------- */

void json_put(json *j, const char *key, const char *text)
{
    json_key(j, key);
    json_string(j, text);
}

void json_put_int(json *j, const char *key, int64_t v)
{
    json_key(j, key);
    json_int(j, v);
}

void json_put_uint(json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_uint(j, v);
}

void json_put_double(json *j, const char *key, double v)
{
    json_key(j, key);
    json_double(j, v);
}

void json_put_bool(json *j, const char *key, bool v)
{
    json_key(j, key);
    json_bool(j, v);
}

void json_put_open(json *j, const char *key, char bracket)
{
    json_key(j, key);
    json_open(j, bracket);
}
