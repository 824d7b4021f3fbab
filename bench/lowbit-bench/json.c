/* json.c - see json.h. */
#include "json.h"

#include <math.h>
#include <stdio.h>

static bool first;

static void put_text(const char *s)
{
    putchar('"');
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c < 0x20)
            printf("\\u%04x", c);
        else if (c == '"' || c == '\\')
            printf("\\%c", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void put_name(const char *name)
{
    if (!first) fputs(", ", stdout);
    first = false;
    put_text(name);
    fputs(": ", stdout);
}

void json_begin(void)
{
    first = true;
    putchar('{');
}

void json_text(const char *name, const char *value)
{
    put_name(name);
    put_text(value);
}

void json_number(const char *name, double value)
{
    put_name(name);
    if (isfinite(value))
        printf("%.6g", value);
    else
        fputs("null", stdout);
}

void json_integer(const char *name, int64_t value)
{
    put_name(name);
    printf("%lld", (long long)value);
}

void json_bool(const char *name, bool value)
{
    put_name(name);
    fputs(value ? "true" : "false", stdout);
}

void json_end(void)
{
    puts("}");
    fflush(stdout);
}
