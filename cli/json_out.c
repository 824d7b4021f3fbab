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
