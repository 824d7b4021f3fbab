/* talk.c - sentences for people, and text from files made harmless. */
#include <stdarg.h>
#include <string.h>
#include <wchar.h>

#include "verb.h"

/* At once, so that it stays a line among those of other ranks. */
verdict complain(verdict what, const char *fmt, ...)
{
    char line[8192] = "lowbit: ";
    const size_t n = strlen(line);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line + n, sizeof line - n - 1, fmt, ap);
    va_end(ap);
    memcpy(line + strlen(line), "\n", 2);
    fputs(line, stderr);
    return what;
}

verdict complain_of(const lb_ctx *cx)
{
    const lb_status status = lb_error_status(cx);
    return complain(status == LB_E_CONTENT  ? BAD_INPUT
                    : status == LB_E_DENIED ? STRICT
                                            : FAILED,
                    "%s", lb_error(cx));
}

lb_ctx *context_open(int threads)
{
    const lb_options options = {.struct_size = sizeof options,
                                .threads = threads};
    char why[512];
    lb_ctx *cx = lb_open(&options);
    if (!cx) complain(FAILED, "%s", lb_open_why(&options, why, sizeof why));
    return cx;
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

static bool is_control(const unsigned char *p, size_t k)
{
    return (k == 1 && (p[0] < 0x20 || p[0] == 0x7f)) ||
           (k == 2 && p[0] == 0xc2 && p[1] < 0xa0);
}

/* Of a character that is right; where the locale does not know it, 1. */
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
    for (; v >= 999.5 && k < 6; k++)
        v /= 1000;
    snprintf(t.s, sizeof t.s, "%.*f %s",
             k && v < 99.95 ? (v < 9.995 ? 2 : 1) : 0, v, unit[k]);
    return t;
}

name_text show_name(const char *name)
{
    name_text t = {""};
    const size_t n = strlen(name);
    FILE *f = fmemopen(t.s, sizeof t.s, "w");
    if (!f) return t;
    put_text(f, name, n < 200 ? n : 200); /* at most 4 for a byte */
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
        snprintf(to, size, "(%.32s%s)", e->type,
                 strlen(e->type) > 32 ? ".." : "");
    else if (dense)
        snprintf(to, size, "%s", lb_dtype_name(e->dtype));
    else
        snprintf(to, size, "%s %s", e->format, lb_dtype_name(e->dtype));
}

double entry_elements(const lb_entry *e)
{
    double n = 1;
    for (int i = 0; i < e->rank; i++)
        n *= (double)e->dim[i];
    return n;
}

int name_width(const char *const *name, int64_t n)
{
    int most = 4;
    for (int64_t i = 0; i < n; i++) {
        const int k = put_text(NULL, name[i], strlen(name[i]));
        if (k > most && k <= 60) most = k;
    }
    return most;
}

void put_column(FILE *to, const char *text, int width)
{
    const int n = put_text(to, text, strlen(text));
    fprintf(to, "%*s", n < width ? width - n + 2 : 2, "");
}
