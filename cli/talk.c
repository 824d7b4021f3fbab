/* talk.c - messages, tables, and text from files with control characters
 * escaped. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "verb.h"

static struct {
    bool quiet, complained;
    verdict verdict; /* of the first complaint */
    char first[8192];
} state;

void talk_begin(bool quiet)
{
    state.quiet = quiet;
}

const char *complaint(void)
{
    return state.complained ? state.first : NULL;
}

verdict complaint_verdict(void)
{
    return state.complained ? state.verdict : FAILED;
}

bool may_colour(FILE *to)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && !(term && strcmp(term, "dumb") == 0) &&
           isatty(fileno(to));
}

void failure_begin(void)
{
    if (may_colour(stdout)) fputs("\033[31m", stdout);
}

void failure_end(void)
{
    if (may_colour(stdout)) fputs("\033[0m", stdout);
}

/* In one write, so that the lines of several ranks do not mix. Control
 * characters in paths and arguments are escaped. */
static void put_message(const char *colour, const char *prefix,
                        const char *text)
{
    char line[4 * sizeof state.first + 64] = "";
    const bool coloured = may_colour(stderr);
    FILE *buffer = fmemopen(line, sizeof line, "w");
    FILE *to = buffer ? buffer : stderr; /* out of memory: unbuffered */
    if (coloured) fputs(colour, to);
    fputs(prefix, to);
    if (coloured) fputs("\033[0m", to);
    put_text(to, text, strlen(text));
    fputc('\n', to);
    if (buffer) fclose(buffer);
    fputs(line, stderr);
}

verdict complain(verdict what, const char *fmt, ...)
{
    char text[sizeof state.first];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!state.complained) {
        memcpy(state.first, text, sizeof text);
        state.verdict = what;
    }
    state.complained = true;
    put_message("\033[1;31m", "lowbit: ", text);
    return what;
}

void caution(const char *fmt, ...)
{
    char text[sizeof state.first];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    json_warning(text);
    if (!state.quiet) put_message("\033[1;33m", "lowbit: warning: ", text);
}

const char *option_dashes(const char *message)
{
    static const char *const named[] = {"include '", "exclude '", "override '"};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strncmp(message, named[i], strlen(named[i])) == 0) return "--";
    return "";
}

static verdict verdict_of(lb_status status)
{
    switch (status) {
    case LB_E_ARG: /* an option, by itself or for this input */
    case LB_E_AXIS:
        return USAGE;
    case LB_E_CONTENT:
    case LB_E_UNSUPPORTED:
        return BAD_INPUT;
    case LB_E_DENIED:
        return STRICT;
    default:
        return FAILED;
    }
}

verdict complain_of(const lb_ctx *cx)
{
    const char *text = lb_error(cx);
    return complain(verdict_of(lb_error_status(cx)), "%s%s",
                    option_dashes(text), text);
}

lb_ctx *context_open(int threads)
{
    const lb_options options = {.struct_size = sizeof options,
                                .threads = threads};
    char why[512];
    lb_ctx *cx = lb_open(&options);
    if (cx) return cx;
    lb_open_why(&options, why, sizeof why);
    /* otherwise an environment variable has an invalid value */
    const bool memory = strncmp(why, "out of memory", 13) == 0;
    complain(memory ? FAILED : USAGE, "%s", why);
    return NULL;
}

size_t utf8_length(const unsigned char *p, size_t n)
{
    const size_t k = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (p[0] >= 0x80 && (p[0] < 0xc2 || p[0] > 0xf4)) return 0;
    if (k > n) return 0;
    for (size_t i = 1; i < k; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if (p[0] == 0xe0 && p[1] < 0xa0) return 0;
    if (p[0] == 0xed && p[1] > 0x9f) return 0;
    if (p[0] == 0xf0 && p[1] < 0x90) return 0;
    if (p[0] == 0xf4 && p[1] > 0x8f) return 0;
    return k;
}

/* Includes line separators and characters that change the direction of text:
 * U+200E, U+200F, U+2028 to U+202E and U+2066 to U+2069. */
bool is_control(const unsigned char *p, size_t k)
{
    if (k == 1) return p[0] < 0x20 || p[0] == 0x7f;
    if (k == 2) return p[0] == 0xc2 && p[1] < 0xa0;
    if (k != 3 || p[0] != 0xe2) return false;
    return (p[1] == 0x80 &&
            (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xa8 && p[2] <= 0xae))) ||
           (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);
}

/* Of a valid character; 1 if the locale does not know it. */
static int columns_of(const unsigned char *p, size_t k)
{
    wchar_t c = k == 1 ? p[0] : (wchar_t)(p[0] & (0x7f >> k));
    for (size_t i = 1; i < k; i++)
        c = (wchar_t)(c << 6 | (p[i] & 0x3f));
    const int n = wcwidth(c);
    return n < 0 ? 1 : n;
}

int put_text(FILE *to, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    int columns = 0;
    while (n) {
        const size_t k = utf8_length(p, n);
        const size_t m = k ? k : 1;
        if (k && !is_control(p, k)) {
            if (to) fwrite(p, 1, k, to);
            columns += columns_of(p, k);
        } else
            for (size_t i = 0; i < m; i++, columns += 4)
                if (to) fprintf(to, "\\x%02x", p[i]);
        p += m;
        n -= m;
    }
    return columns;
}

size_text show_bytes(uint64_t n)
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    size_text t;
    double v = (double)n;
    int k = 0;
    for (; v >= (k ? 999.95 : 1000) && k < 6; k++)
        v /= 1000;
    snprintf(t.s, sizeof t.s, "%.*f %s", k ? 1 : 0, v, unit[k]);
    return t;
}

size_text show_count(double n)
{
    static const char *const unit[] = {"", " K", " M", " B", " T"};
    size_text t;
    int k = 0;
    for (; n >= 999.5 && k < 4; k++)
        n /= 1000;
    snprintf(t.s, sizeof t.s, "%.*f%s", k && n < 99.95 ? 1 : 0, n, unit[k]);
    return t;
}

size_text show_rate(uint64_t bytes, double seconds)
{
    size_text t = show_bytes(
        seconds > 0 ? (uint64_t)fmin((double)bytes / seconds, 1e18) : 0);
    memcpy(t.s + strlen(t.s), "/s", 3);
    return t;
}

size_text show_seconds(double seconds)
{
    size_text t;
    const long long whole = (long long)(seconds + 0.5);
    if (seconds < 0.9995)
        snprintf(t.s, sizeof t.s, "%.0f ms", 1000 * seconds);
    else if (seconds < 99.95)
        snprintf(t.s, sizeof t.s, "%.1f s", seconds);
    else if (whole < 3600)
        snprintf(t.s, sizeof t.s, "%lld min %02lld s", whole / 60, whole % 60);
    else
        snprintf(t.s, sizeof t.s, "%lld h %02lld min", whole / 3600,
                 whole / 60 % 60);
    return t;
}

name_text show_name(const char *name)
{
    name_text t = {""};
    const size_t n = strlen(name);
    FILE *f = fmemopen(t.s, sizeof t.s, "w");
    if (!f) return t;
    put_text(f, name, n < 200 ? n : 200); /* at most 4 columns per byte */
    fclose(f);
    return t;
}

void put_shape(FILE *to, const int64_t *dim, int rank)
{
    fputc('(', to);
    for (int i = 0; i < rank; i++)
        fprintf(to, "%s%lld", i ? "," : "", (long long)dim[i]);
    fputc(')', to);
}

void entry_kind(const lb_entry *e, char *to, size_t size)
{
    const bool dense = e->format && strcmp(e->format, "dense") == 0;
    if (!e->format)
        snprintf(to, size, "%.24s%s (not supported)", e->type,
                 strlen(e->type) > 24 ? "..." : "");
    else if (dense)
        snprintf(to, size, "%s", lb_dtype_name(e->dtype));
    else
        snprintf(to, size, "%s (%s)", e->format, lb_dtype_name(e->dtype));
}

double entry_elements(const lb_entry *e)
{
    double n = 1;
    for (int i = 0; i < e->rank; i++)
        n *= (double)e->dim[i];
    return n;
}

int wider(int a, int b)
{
    return a > b ? a : b;
}

int name_width(const char *name)
{
    const int n = put_text(NULL, name, strlen(name));
    return n <= 100 ? n : 0; /* names of experts have 80 */
}

int kind_width(const lb_entry *e)
{
    char kind[64];
    entry_kind(e, kind, sizeof kind);
    return name_width(kind);
}

void put_column(FILE *to, const char *text, int width)
{
    const int n = put_text(to, text, strlen(text));
    fprintf(to, "%*s", n < width ? width - n + 2 : 2, "");
}

void put_kind(FILE *to, const lb_entry *e, int width)
{
    char kind[64];
    entry_kind(e, kind, sizeof kind);
    put_column(to, kind, width);
}

bool is_beyond(const lb_ctx *cx)
{
    const lb_status status = lb_error_status(cx);
    return status == LB_E_UNSUPPORTED || status == LB_E_SHAPE ||
           status == LB_E_SIZE;
}
